package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

func TestMain(m *testing.M) {
	code := mysqltest.Run(m)
	for _, s := range sources.servers {
		if err := s.Close(); err != nil {
			slog.Error("ending a shared server", "error", err)
			code = max(code, 1)
		}
	}
	tidemarktest.CleanUp()
	os.Exit(code)
}

// sources are the servers that several tests use, by their options.
var sources struct {
	sync.Mutex
	servers map[string]*mysqltest.Server
}

// sharedSource gives a server with these options, started once for all tests. They use databases of their own, leave
// global variables alone and never stop it.
func sharedSource(t *testing.T, args ...string) *mysqltest.Server {
	t.Helper()
	sources.Lock()
	defer sources.Unlock()
	key := strings.Join(args, " ")
	if s := sources.servers[key]; s != nil {
		return s
	}
	s, err := mysqltest.StartServer(context.Background(), mysqltest.Options{Args: args, Own: true})
	if errors.Is(err, mysqltest.ErrNotOwn) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if sources.servers == nil {
		sources.servers = map[string]*mysqltest.Server{}
	}
	sources.servers[key] = s
	return s
}

// abroad are the options of most shared sources: a time zone that is not UTC and has odd minutes.
var abroad = []string{"--default-time-zone=+05:30"}

// script runs statements through the mysql client, which sends them byte for byte.
func script(t *testing.T, s mysqltest.Login, database, text string) {
	t.Helper()
	if _, err := s.Client(t.Context(), strings.NewReader(text), database); err != nil {
		t.Fatalf("%v\nin: %.2000s", err, text)
	}
}

// value asks for one value as text.
func value(t *testing.T, s mysqltest.Login, query string, args ...any) string {
	t.Helper()
	out, err := s.Client(t.Context(), nil, "-N", "--batch", "-e", fmt.Sprintf(query, args...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(out), "\n")
}
