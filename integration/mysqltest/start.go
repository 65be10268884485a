package mysqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Start gives the test a server, which ends with the test. Where the options can't be had (an external server), the
// test is skipped with the reason; any other failure fails it.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	if o.Logger == nil {
		o.Logger = testLogger(tb)
	}
	s, err := StartServer(tb.Context(), o)
	if errors.Is(err, ErrNotOwn) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// shared is the one server that the tests of this process have together. It must outlive the test that starts it, so
// it hangs on the process: Run ends it, else the death of the process does.
var shared struct {
	sync.Mutex
	server *Server
}

// Shared gives the server that all tests of this process share: default options, never stopped. Tests use databases
// of their own there (FreshDatabase) and leave global variables alone.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		s, err := StartServer(context.WithoutCancel(tb.Context()), Options{Logger: testLogger(tb)})
		if err != nil {
			tb.Fatal(err)
		}
		shared.server = s
	}
	return shared.server
}

var databases atomic.Int64

// FreshDatabase creates an empty database on the shared server and drops it when the test ends.
func FreshDatabase(tb testing.TB) (*Server, string) {
	tb.Helper()
	s := Shared(tb)
	return s, s.FreshDatabase(tb)
}

// FreshDatabase creates an empty database and drops it when the test ends. The name tells the test and never repeats
// in one process.
func (s *Server) FreshDatabase(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("%s_%d", identifier(tb.Name()), databases.Add(1))
	s.Exec(tb, "", "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
	tb.Cleanup(func() {
		db, err := s.Open("")
		if err == nil {
			err = dropAndClose(db, name)
		}
		if err != nil {
			tb.Logf("mysqltest: database %s stays: %v", name, err)
		}
	})
	return name
}

func dropAndClose(db *sql.DB, name string) error {
	_, err := db.Exec("DROP DATABASE IF EXISTS " + name)
	return errors.Join(err, db.Close())
}

// identifier turns a test's name into one that needs no quotes and leaves room for a number in MySQL's 64 characters.
func identifier(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
	return "t_" + clean[:min(len(clean), 40)]
}

// Run is for TestMain in packages that use Shared: it runs the tests, ends the shared server and deletes its data.
//
//	func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }
func Run(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			slog.Error("mysqltest: ending the shared server", "error", err)
			return max(code, 1)
		}
	}
	return code
}

// testLogger writes to the test's log.
func testLogger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{tb}, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	return a
}

type testWriter struct{ tb testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.tb.Helper()
	w.tb.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
