package mysqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Kind names the way a server was had; see the package comment.
type Kind string

// The ways, in the order in which they are tried.
const (
	External       Kind = "external"
	Testcontainers Kind = "testcontainers"
	Path           Kind = "path"
	Debian         Kind = "debian"
)

// ErrNotOwn is returned when a server that belongs to somebody else (External) would have to be started with options,
// stopped or killed. Start turns it into a skipped test.
var ErrNotOwn = errors.New("the MySQL server is not ours to configure or stop")

// startTimeout bounds the wait for a started server's first answer. Containers initialize their data directory first.
const startTimeout = 3 * time.Minute

// instance is one running server, however it was had. Calls come one at a time.
type instance interface {
	login() Login
	dataDir() string
	start(ctx context.Context) error // again, after stop or kill, at the same address
	stop(ctx context.Context) error
	kill(ctx context.Context) error
	pause(ctx context.Context) error
	resume(ctx context.Context) error
	remove(ctx context.Context) error // ends it and deletes what it left on disk
	endCommand() string               // for a shell; "" if it is not ours to end
	failure() string                  // why it ended, "" while it runs or when nothing is known
}

// Server is a running MySQL server. Its methods may be used by several goroutines, except those that
// start, stop, kill or remove it.
type Server struct {
	Login
	kind     Kind
	version  string
	instance instance
	closing  sync.Once
	closeErr error
}

// StartServer starts a server for a caller that is no test; Close ends it.
func StartServer(ctx context.Context, o Options) (*Server, error) {
	w, err := chosenWay(ctx, o.logger())
	if err != nil {
		return nil, err
	}
	return startBy(ctx, w, o)
}

func startBy(ctx context.Context, w way, o Options) (*Server, error) {
	in, err := w.launch(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("starting MySQL (%s): %w", w.kind(), err)
	}
	s := &Server{Login: in.login(), kind: w.kind(), instance: in}
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	o.logger().Info("mysqltest: MySQL is up", "way", s.kind, "version", s.version, "address", s.Addr())
	return s, nil
}

// awaitReady waits until the server answers a query and notes its version.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	db, err := s.Open("")
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		err := db.QueryRowContext(ctx, "SELECT version()").Scan(&s.version)
		if err == nil {
			return nil
		}
		if why := s.instance.failure(); why != "" {
			return fmt.Errorf("MySQL (%s) ended while it started: %s", s.kind, why)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("MySQL (%s) at %s does not answer: %w", s.kind, s.Addr(), err)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// Kind tells how the server was had.
func (s *Server) Kind() Kind { return s.kind }

// Version is what SELECT version() says, such as "8.4.7".
func (s *Server) Version() string { return s.version }

// DataDir is the server's data directory on this machine, "" for external servers and containers.
func (s *Server) DataDir() string { return s.instance.dataDir() }

// EndCommand is what a person types to end a server that outlives this process; "" if it isn't ours to end. Its data are
// deleted with it, or by the next run.
func (s *Server) EndCommand() string { return s.instance.endCommand() }

// Stop shuts the server down in good order. Restart brings it back.
func (s *Server) Stop(ctx context.Context) error { return s.instance.stop(ctx) }

// Kill ends the server at once, as kill -9 does. Restart brings it back.
func (s *Server) Kill(ctx context.Context) error { return s.instance.kill(ctx) }

// Restart stops the server if it runs and starts it with the same options, data and address.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.instance.stop(ctx); err != nil {
		return err
	}
	if err := s.instance.start(ctx); err != nil {
		return err
	}
	return s.awaitReady(ctx)
}

// Pause freezes the server: connections stay open and nothing answers. Resume lets it go on.
func (s *Server) Pause(ctx context.Context) error { return s.instance.pause(ctx) }

// Resume ends a Pause.
func (s *Server) Resume(ctx context.Context) error { return s.instance.resume(ctx) }

// Close ends the server and deletes its data. Servers of Start are closed by the test; a second Close does nothing.
func (s *Server) Close() error {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.closeErr = s.instance.remove(ctx)
	})
	return s.closeErr
}

// Open returns a pool of connections to a database ("" for none). The caller closes it.
func (s *Server) Open(database string) (*sql.DB, error) {
	connector, err := mysql.NewConnector(s.driverConfig(database))
	if err != nil {
		return nil, fmt.Errorf("MySQL at %s: %w", s.Addr(), err)
	}
	return sql.OpenDB(connector), nil
}

// DSN is the address in the form of go-sql-driver/mysql.
func (s *Server) DSN(database string) string { return s.driverConfig(database).FormatDSN() }

func (s *Server) driverConfig(database string) *mysql.Config {
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", s.Addr()
	c.User, c.Passwd = s.User, s.Password
	c.DBName = database
	// The driver logs every refused connection to stderr, also those of a server that is only just starting.
	c.Logger = &mysql.NopLogger{}
	return c
}

// DB returns a pool of connections to a database ("" for none), closed at the end of the test.
func (s *Server) DB(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	db, err := s.Open(database)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs statements one after the other on one connection, with a database selected ("" for none).
func (s *Server) Exec(tb testing.TB, database string, statements ...string) {
	tb.Helper()
	db, err := s.Open(database)
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(tb.Context())
	if err != nil {
		tb.Fatalf("MySQL at %s: %v", s.Addr(), err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatalf("%v\nin: %s", err, clip(statement, 500))
		}
	}
}

// Client runs MySQL's own mysql client against the server and returns what it printed. See Login.Client.
func (s *Server) Client(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return s.Login.Client(ctx, stdin, args...)
}

// Login is an address and an account, as MySQL's client programs take them. It need not be MySQL that listens there.
type Login struct {
	Host     string
	Port     int
	User     string
	Password string
}

// Addr is host:port.
func (l Login) Addr() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// args are the options for a client program. They begin with --no-defaults, which must come first.
func (l Login) args() []string {
	args := []string{"--no-defaults", "--protocol=tcp", "--host=" + l.Host, "--port=" + strconv.Itoa(l.Port), "--user=" + l.User}
	if l.Password != "" {
		args = append(args, "--password="+l.Password)
	}
	return args
}

// parseLogin reads user:password@host:port. The password may contain any character, also ':' and '@'.
func parseLogin(text string) (Login, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return Login{}, errors.New("want user:password@host:port, there is no @")
	}
	user, password, _ := strings.Cut(text[:at], ":")
	host, port, err := net.SplitHostPort(text[at+1:])
	if err != nil {
		return Login{}, fmt.Errorf("want user:password@host:port: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Login{}, fmt.Errorf("want user:password@host:port, the port is %q", port)
	}
	return Login{Host: host, Port: int(number), User: user, Password: password}, nil
}

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "..."
}
