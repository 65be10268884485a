package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/shop"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	tidemarktest.CleanUp()
	os.Exit(code)
}

// TestDemo plays the demo in small: it ends well, shows equal answers and equal tables, and leaves nothing behind; with
// keep it leaves both servers, and the command that it prints ends them.
func TestDemo(t *testing.T) {
	o := options{binary: tidemarktest.Binary(t), rows: 3000, traders: 2, trading: 2 * time.Second}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)

	t.Run("once", func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), o, &out), "%s", &out)
		checkEqual(t, out.String())
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left)
		require.False(t, answers(out.String()), "tidemark still answers")
	})

	t.Run("keep", func(t *testing.T) {
		o.keep = true
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), o, &out), "%s", &out)
		checkEqual(t, out.String())
		require.True(t, answers(out.String()))
		end := regexp.MustCompile(`end them: +(.*)`).FindStringSubmatch(out.String())
		require.NotNil(t, end, "%s", &out)
		require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", end[1]).Run())
		require.Eventually(t, func() bool { return !answers(out.String()) }, time.Minute, 50*time.Millisecond)
	})
}

// checkEqual: the answers were equal in every round, and verify says so of every table.
func checkEqual(t *testing.T, out string) {
	t.Helper()
	require.Regexp(t, `ms +[0-9]+ ms +equal `, out)
	for _, table := range shop.Tables {
		require.Regexp(t, regexp.MustCompile(`(?m)^.*\b`+table+`\b.*\bequal\b`), out)
	}
}

// answers tells whether the tidemark whose command line was printed accepts connections.
func answers(out string) bool {
	_, rest, _ := strings.Cut(out, "--mysql-addr ")
	conn, err := net.DialTimeout("tcp", strings.Fields(rest)[0], time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// TestInterrupted: Ctrl-C in the middle ends what was started.
func TestInterrupted(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	err := run(ctx, options{binary: tidemarktest.Binary(t), rows: 3000, traders: 2, trading: time.Hour}, writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte(" equal ")) {
			cancel()
		}
		return out.Write(p)
	}))
	require.ErrorIs(t, err, context.Canceled, "%s", &out)
	left, readErr := os.ReadDir(temp)
	require.NoError(t, readErr)
	require.Empty(t, left)
	require.False(t, answers(out.String()))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
