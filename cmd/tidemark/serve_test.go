package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/replica"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

// log is what a server writes.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startServer runs "tidemark serve" in this process and gives its address. stop ends it and gives its exit code.
func startServer(t *testing.T, dir string, args ...string) (address string, output *log, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	output = &log{}
	over := make(chan int, 1)
	go func() {
		over <- run(ctx, append([]string{"serve", "--data", dir, "--mysql-addr", "127.0.0.1:0", "--memory", "512MiB"}, args...), strings.NewReader(""), io.Discard, output)
	}()
	ready := regexp.MustCompile(`msg="tidemark is ready".* mysql=(\S+)`)
	require.Eventually(t, func() bool { return ready.MatchString(output.String()) || len(over) > 0 }, 30*time.Second, 5*time.Millisecond, "no server")
	m := ready.FindStringSubmatch(output.String())
	require.NotNil(t, m, output.String())
	var once sync.Once
	code := -1
	stop = func() int {
		once.Do(func() {
			cancel()
			code = <-over
		})
		return code
	}
	t.Cleanup(func() { stop() })
	return m[1], output, stop
}

func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data of a [server] *x=y")
	metrics := freeAddress(t)
	address, output, stop := startServer(t, dir, "--metrics-addr", metrics)

	code, out, errs := tidemark(t, "SELECT 1 AS a, NULL; SELECT 'b\tc'", "sql", "--addr", address)
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, "a\tNULL\n1\tNULL\nb\tc\nb\\tc\n", out)
	code, out, _ = tidemark(t, "", "sql", "--addr", address, "--format", "json", "SELECT 1 AS a, NULL AS b")
	require.Equal(t, exitOK, code)
	require.Equal(t, "{\"a\":\"1\",\"b\":null}\n", out)
	code, out, _ = tidemark(t, "", "sql", "--addr", address, "--format", "table", "SELECT 'é' AS long_name")
	require.Equal(t, exitOK, code)
	require.Equal(t, "long_name\n---------\né\n1 rows\n", out)
	code, _, errs = tidemark(t, "", "sql", "--addr", address, "SELEC 1")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "You have an error in your SQL syntax")

	code, out, _ = tidemark(t, "", "sync", "status", "--addr", address, "--json")
	require.Equal(t, exitOK, code)
	require.Equal(t, "[]\n", out)
	code, out, errs = tidemark(t, "", "verify", "--store", "--addr", address)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "sound")
	require.Contains(t, get(t, metrics, "/metrics"), "tidemark_statements_total")
	require.Equal(t, "ok\n", get(t, metrics, "/healthz"))

	// bad input: each gets one clear message
	for args, want := range map[string]string{
		"serve --mysql-addr 127.0.0.1:0 --data " + dir:                         "is in use by another process",
		"serve --data x --mysql-addr " + address:                               "is in use by another process",
		"serve --data x --mysql-addr 0.0.0.0:1":                                "has no password",
		"serve --data x --memory 1MiB":                                         "--memory",
		"serve --data x --memory lots":                                         "is not a size",
		"serve --data x --log-level loud":                                      "--log-level",
		"serve --data x --tls-cert y":                                          "go together",
		"serve --data x --mysql-password-file /nonexistent":                    "password file",
		"serve --data /proc/tidemark --mysql-addr 127.0.0.1:0":                 "data directory",
		"sync status nothing --addr " + address:                                "no database nothing",
		"sync start nothing --addr " + address:                                 "--from sets up a new one",
		"sync stop nothing --addr " + address:                                  "Unknown database",
		"verify nothing --addr " + address:                                     "Unknown database",
		"sync start x --from mysql://u:S3cret@127.0.0.1:1/d --addr " + address: "127.0.0.1:1",
	} {
		code, _, errs := tidemark(t, "", splitArgs(args, dir)...)
		require.NotEqual(t, exitOK, code, args)
		require.Contains(t, errs, want, args)
		require.NotContains(t, errs, "S3cret", args) // OPS-13
	}
	require.NotContains(t, output.String(), "S3cret")
	require.Equal(t, exitOK, stop())
	code, out, errs = tidemark(t, "", "verify", "--store", "--data", dir)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "sound")
}

// splitArgs cuts at blanks, but keeps dir, which has some, whole.
func splitArgs(args, dir string) []string {
	fields := strings.Fields(strings.ReplaceAll(args, dir, "\x00"))
	for i, f := range fields {
		fields[i] = strings.ReplaceAll(f, "\x00", dir)
	}
	return fields
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func get(t *testing.T, address, path string) string {
	r, err := http.Get("http://" + address + path)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

// The way of a stranger: start, wait, look, stop, start again, drop.
func TestSync(t *testing.T) {
	source, database := mysqltest.FreshDatabase(t)
	source.Exec(t, database, "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
	dir := t.TempDir()
	address, output, stop := startServer(t, dir)
	from := fmt.Sprintf("mysql://%s:%s@%s/%s", source.User, source.Password, source.Addr(), database)

	code, out, errs := tidemark(t, "", "sync", "start", "shop", "--from", from, "--wait", "--addr", address, "--setting", "max_flush_data_time=50")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "shop is complete: 1 tables, 2 rows")
	require.Equal(t, int64(2), status(t, address).Tables[0].Rows)

	code, out, errs = tidemark(t, "", "sync", "resync", "shop.orders", "--wait", "--addr", address)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "shop.orders is copied anew: 2 rows")
	code, _, errs = tidemark(t, "", "sync", "resync", "shop.nothing", "--addr", address)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "doesn't exist here")

	source.Exec(t, database, "INSERT INTO orders VALUES (3, 'c')")
	require.Eventually(t, func() bool { return status(t, address).Tables[0].Rows == 3 }, 30*time.Second, 20*time.Millisecond)
	st := status(t, address)
	require.Equal(t, replica.StateStreaming, st.State)
	require.NotEmpty(t, st.File)
	require.Nil(t, st.Error)

	code, _, errs = tidemark(t, "", "sync", "stop", "shop", "--addr", address)
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, replica.StateStopped, status(t, address).State)
	code, out, _ = tidemark(t, "", "sync", "status", "shop", "--addr", address)
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "stopped")
	code, _, errs = tidemark(t, "", "sync", "start", "shop", "--addr", address, "--wait")
	require.Equal(t, exitOK, code, errs)
	code, out, errs = tidemark(t, "", "sql", "--addr", address, "SHOW CREATE DATABASE shop")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "SETTINGS max_flush_data_time = 50")
	code, _, errs = tidemark(t, "", "sync", "drop", "shop", "--addr", address)
	require.Equal(t, exitOK, code, errs)
	code, out, _ = tidemark(t, "", "sync", "status", "--addr", address)
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "no databases yet")
	if source.Password != "" {
		require.NotContains(t, output.String(), source.Password)
	}
	require.Equal(t, exitOK, stop())
}

// TYPE-05: the first answer of a new database already has its source's time zone.
func TestTimeZoneFromTheFirstAnswer(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Args: []string{"--default-time-zone=+05:30"}})
	database := source.FreshDatabase(t)
	source.Exec(t, database, "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP)", "INSERT INTO t VALUES (1, '2024-02-29 12:00:00')")
	address, _, _ := startServer(t, t.TempDir())
	from := fmt.Sprintf("mysql://%s:%s@%s/%s", source.User, source.Password, source.Addr(), database)
	code, _, errs := tidemark(t, "", "sync", "start", "shop", "--from", from, "--addr", address)
	require.Equal(t, exitOK, code, errs)
	require.Eventually(t, func() bool {
		code, out, errs := tidemark(t, "", "sql", "--addr", address, "SELECT ts FROM shop.t WHERE ts = '2024-02-29 12:00:00'")
		if code != exitOK {
			require.Contains(t, errs, "not readable yet")
			return false
		}
		require.Equal(t, "ts\n2024-02-29 12:00:00\n", out)
		return true
	}, 30*time.Second, time.Millisecond)
}

func status(t *testing.T, address string) replica.Status {
	t.Helper()
	code, out, errs := tidemark(t, "", "sync", "status", "--json", "--addr", address)
	require.Equal(t, exitOK, code, errs)
	var list []replica.Status
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list, 1)
	return list[0]
}
