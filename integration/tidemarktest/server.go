package tidemarktest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// patience bounds every wait: a test that reaches it hangs.
const patience = 90 * time.Second

// Options describe the server a test wants.
type Options struct {
	// DataDir is the data directory; "": a fresh one, removed with the test.
	DataDir string
	// Args are further arguments of tidemark serve.
	Args []string
}

// Server is a `tidemark serve` that may be stopped, killed and started again at the same address. Its methods are for
// one goroutine, except those that only ask (Run, Status, DB).
type Server struct {
	mysqltest.Login
	DataDir string

	tb      testing.TB
	binary  string
	args    []string
	logPath string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has ended
}

// Start runs a server for the test and waits until it answers.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := New(tb, o)
	s.Start()
	return s
}

// New prepares a server that has not been started.
func New(tb testing.TB, o Options) *Server {
	tb.Helper()
	dir := tb.TempDir()
	s := &Server{Login: mysqltest.Login{Host: "127.0.0.1", Port: freePort(tb), User: "root"}, DataDir: o.DataDir,
		tb: tb, binary: Binary(tb), args: o.Args, logPath: filepath.Join(dir, "log")}
	if s.DataDir == "" {
		s.DataDir = filepath.Join(dir, "data")
	}
	tb.Cleanup(func() {
		s.Kill()
		for _, report := range []string{"DATA RACE", "panic: ", "fatal error: "} {
			if strings.Contains(s.Log(), report) {
				tb.Errorf("tidemark serve reported: %s", report)
			}
		}
		if tb.Failed() {
			tb.Logf("log of tidemark serve:\n%s", tail(s.Log(), 12_000))
		}
	})
	return s
}

// Launch starts the process and does not wait for it.
func (s *Server) Launch() {
	s.tb.Helper()
	log, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	s.check(err)
	defer log.Close()
	args := append([]string{"serve", "--data", s.DataDir, "--mysql-addr", s.Addr()}, s.args...)
	cmd := exec.Command(s.binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	s.check(mysqltest.StartTied(cmd))
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.cmd, s.exited = cmd, exited
}

// Start starts the process and waits until it answers.
func (s *Server) Start() {
	s.tb.Helper()
	s.Launch()
	db, err := s.open("")
	s.check(err)
	defer db.Close()
	deadline := time.Now().Add(patience)
	for {
		err := db.PingContext(s.tb.Context())
		if err == nil {
			return
		}
		select {
		case <-s.exited:
			s.tb.Fatalf("tidemark serve ended while it started (%v):\n%s", s.cmd.ProcessState, tail(s.Log(), 4000))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.tb.Fatalf("tidemark serve does not answer: %v\n%s", err, tail(s.Log(), 4000))
		}
	}
}

// WaitExit waits until the process has ended by itself and gives its exit code.
func (s *Server) WaitExit() int {
	s.tb.Helper()
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.tb.Fatalf("tidemark serve does not end:\n%s", tail(s.Log(), 4000))
	}
	return s.cmd.ProcessState.ExitCode()
}

// Stop ends the server in good order; the test fails when it does not end cleanly.
func (s *Server) Stop() {
	s.tb.Helper()
	s.check(s.cmd.Process.Signal(syscall.SIGTERM))
	if code := s.WaitExit(); code != 0 {
		s.tb.Fatalf("tidemark serve ended with code %d:\n%s", code, tail(s.Log(), 4000))
	}
}

// Kill ends the server at once, as kill -9 does.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Restart stops the server in good order and starts it again.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	s.Start()
}

// PID is the process of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log is what all processes of this server have printed so far.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.logPath)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		s.tb.Error(err)
	}
	return string(b)
}

// Result is what a subcommand gave.
type Result struct {
	Out, Err string
	Code     int
}

// Run runs a subcommand against this server.
func (s *Server) Run(args ...string) Result {
	s.tb.Helper()
	return Run(s.tb, append(args, "--addr", s.Addr())...)
}

// Run runs the program.
func Run(tb testing.TB, args ...string) Result {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(tb), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		tb.Fatalf("tidemark %s: %v", strings.Join(args, " "), err)
	}
	if ctx.Err() != nil {
		tb.Fatalf("tidemark %s does not end:\n%s%s", strings.Join(args, " "), out.String(), errs.String())
	}
	return Result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// DB returns a pool of connections to a database ("" for none), closed at the end of the test.
func (s *Server) DB(database string) *sql.DB {
	s.tb.Helper()
	db, err := s.open(database)
	s.check(err)
	s.tb.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *Server) open(database string) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", s.Addr(), s.User, database
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Exec runs one statement and gives its error.
func (s *Server) Exec(statement string) error {
	s.tb.Helper()
	db, err := s.open("")
	s.check(err)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// CreateStatement is the statement that materializes a database of a source.
func CreateStatement(source mysqltest.Login, sourceDatabase, name string, settings ...string) string {
	text := fmt.Sprintf("CREATE DATABASE `%s` ENGINE = MaterializedMySQL('%s', '%s', '%s', '%s')", name, source.Addr(), sourceDatabase, source.User, source.Password)
	if len(settings) > 0 {
		text += " SETTINGS " + strings.Join(settings, ", ")
	}
	return text
}

// Create materializes a database of a source under the same name, in the way chosen for this run, and waits until its
// stream runs.
func (s *Server) Create(source mysqltest.Login, database string, settings ...string) {
	s.tb.Helper()
	way := Chosen()
	s.check(s.Exec(CreateStatement(way.login(s.tb, source), database, database, way.settings(source, settings)...)))
	s.Await(database, "its stream runs", func(st Status) bool { return st.State == "streaming" })
}

// VerifyStore fails the test when the store is not sound. The server goes on.
func (s *Server) VerifyStore() {
	s.tb.Helper()
	if r := s.Run("verify", "--store"); r.Code != 0 {
		s.tb.Fatalf("verify --store: code %d\n%s%s", r.Code, r.Out, r.Err)
	}
}

// VerifyStoreOffline is the same for a server that does not run.
func (s *Server) VerifyStoreOffline() {
	s.tb.Helper()
	if r := Run(s.tb, "verify", "--store", "--data", s.DataDir); r.Code != 0 {
		s.tb.Fatalf("verify --store --data: code %d\n%s%s", r.Code, r.Out, r.Err)
	}
}

func (s *Server) check(err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatal(err)
	}
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return "..." + text[len(text)-limit:]
}
