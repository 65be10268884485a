// Package server speaks MySQL's protocol to clients: the handshake, commands, prepared statements and cursors, sessions
// with their variables, SHOW, and the statements that manage materialized databases.
//
// The protocol is its own on the level of packets. go-mysql's server package was looked at and not taken: it boxes every
// value, sends a packet a write, knows neither COM_CHANGE_USER nor COM_RESET_CONNECTION nor cursors nor the end-of-rows form of
// today's clients, cannot tell that a client has gone while a statement runs, and pulls in the replication package.
//
// What holds:
//
//   - Rows are sent as they are computed, at the client's pace; a connection holds one block of rows and one buffer.
//   - A statement stops when its client goes away, on KILL, after max_execution_time and at shutdown; then its rows are
//     closed, and with them the version they pinned.
//   - Text leaves in the session's character_set_results, whatever form the values are kept in.
//   - Passwords are in no message.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/storage"
)

// DefaultVersion is the version announced to clients. Drivers read its first numbers to know what they may ask for.
const DefaultVersion = "8.4.0-Tidemark"

// Config configures a server. All fields without a remark are required.
type Config struct {
	// Version is what VERSION() gives; empty: DefaultVersion.
	Version string
	// Release is Tidemark's own version, for SELECT @@tidemark_version.
	Release string
	// Users are the users' passwords. A user with an empty password may log in from this machine only.
	Users map[string]string
	// TLS is what encrypted connections use; nil: there are none.
	TLS *tls.Config
	// MaxConnections bounds the clients at one time; 0: 151, as in MySQL.
	MaxConnections int
	// DataDir and UUID are shown as @@datadir and @@server_uuid.
	DataDir, UUID string
	Queries       *query.Processor
	Manager       Manager
	// Store is read back by SYSTEM VERIFY STORE.
	Store *storage.Store
	// Logger; nil: nothing is logged.
	Logger *slog.Logger
}

const defaultMaxConnections = 151

// Validate reports all faults at once.
func (c *Config) Validate() error {
	var faults []error
	if c.Queries == nil {
		faults = append(faults, errors.New("no query processor"))
	}
	if c.Manager == nil {
		faults = append(faults, errors.New("no manager of databases"))
	}
	if c.Store == nil {
		faults = append(faults, errors.New("no store"))
	}
	if len(c.Users) == 0 {
		faults = append(faults, errors.New("no users"))
	}
	if c.MaxConnections < 0 {
		faults = append(faults, fmt.Errorf("max connections: %d is negative", c.MaxConnections))
	}
	return errors.Join(faults...)
}

// Server is a running server. Its methods may be called from several goroutines.
type Server struct {
	config  Config
	tls     *tls.Config
	queries *query.Processor
	manager Manager
	globals *globals
	logger  *slog.Logger
	started time.Time

	mu        sync.Mutex
	conns     map[uint32]*conn
	lastID    uint32
	questions uint64
	listeners []net.Listener
	closing   bool
	wait      sync.WaitGroup
}

// New makes a server; Serve starts it.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("server configuration: %w", err)
	}
	c.Version = cmp.Or(c.Version, DefaultVersion)
	c.MaxConnections = cmp.Or(c.MaxConnections, defaultMaxConnections)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, tls: c.TLS, queries: c.Queries, manager: c.Manager, logger: c.Logger, started: time.Now(), conns: map[uint32]*conn{}}
	hostname, _ := os.Hostname()
	s.globals = &globals{values: map[string]string{
		"version": c.Version, "tidemark_version": c.Release, "max_connections": strconv.Itoa(c.MaxConnections),
		"hostname": hostname, "datadir": c.DataDir, "server_uuid": c.UUID,
		"version_compile_machine": runtime.GOARCH, "version_compile_os": runtime.GOOS,
	}}
	return s, nil
}

// CheckAddress refuses to listen where other machines can reach a user without a password.
func (c *Config) CheckAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	for user, password := range c.Users {
		if password == "" {
			return fmt.Errorf("address %s can be reached from other machines, and user %s has no password; set one", address, user)
		}
	}
	return nil
}

// Serve takes clients from l until Shutdown. It returns nil after Shutdown.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.addListener(l); err != nil {
		return err
	}
	if _, port, err := net.SplitHostPort(l.Addr().String()); err == nil {
		s.globals.set("port", port)
	}
	for {
		nc, err := l.Accept()
		if err == nil {
			s.accept(ctx, nc)
			continue
		}
		if s.isClosing() {
			return nil
		}
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			continue
		}
		if isTooManyFiles(err) {
			s.logger.Warn("cannot take a client", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		return fmt.Errorf("accept on %s: %w", l.Addr(), err)
	}
}

func (s *Server) addListener(l net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return errors.New("server was shut down")
	}
	s.listeners = append(s.listeners, l)
	return nil
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

func (s *Server) accept(ctx context.Context, nc net.Conn) {
	c, err := s.register(nc)
	if err != nil {
		go func() {
			_ = nc.SetDeadline(time.Now().Add(handshakeTimeout))
			w := conn{out: newPacketWriter(nc)}
			_ = w.refuse(err)
			_ = nc.Close()
		}()
		return
	}
	go func() {
		defer s.wait.Done()
		defer s.unregister(c)
		err := c.serve(ctx)
		s.logger.Debug("client left", "connection", c.id, "user", c.session.user, "reason", err)
	}()
}

func (s *Server) register(nc net.Conn) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, errShutdown
	}
	if len(s.conns) >= s.config.MaxConnections {
		return nil, sqlerr.New(sqlerr.TooManyConnections, "Too many connections")
	}
	s.lastID++
	c := newConn(s, s.lastID, nc)
	s.conns[c.id] = c
	s.wait.Add(1)
	return c, nil
}

func (s *Server) unregister(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.id)
}

// Shutdown stops listening, ends idle connections, and lets running statements finish until ctx ends; then they are
// stopped, and a little later their connections with them: a client may not take what it is sent. It returns when all
// connections are gone.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	for _, l := range s.listeners {
		_ = l.Close()
	}
	s.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		s.wait.Wait()
		close(gone)
	}()
	forced := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(forceAfter, func() { close(forced) }) })()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		for _, c := range s.connections() {
			c.shutdown(ctx.Err() != nil, isClosed(forced))
		}
		select {
		case <-gone:
			return
		case <-poll.C:
		}
	}
}

// forceAfter is how long a stopped statement may take to tell its client.
const forceAfter = time.Second

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// shutdown ends the connection when it is idle or by force, and stops its statement when now is set.
func (c *conn) shutdown(now, force bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now && c.stop != nil {
		c.stop(errShutdown)
	}
	if c.end != nil && (force || c.stop == nil) {
		c.end(errShutdown)
	}
}

// connections gives the connections by id.
func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return list
}

// kill stops a connection's statement, or the connection with it.
func (s *Server) kill(id uint32, statementOnly bool, by *session) error {
	s.mu.Lock()
	c := s.conns[id]
	s.mu.Unlock()
	if c == nil {
		return sqlerr.New(sqlerr.NoSuchThread, "Unknown thread id: %d", id)
	}
	c.interrupt(errKilled)
	if statementOnly {
		return nil
	}
	c.mu.Lock()
	end := c.end
	c.mu.Unlock()
	if end != nil {
		end(errKilled)
	}
	if by.conn == c {
		return errKilled
	}
	return nil
}

// Load gives the number of clients and of the statements run since the start.
func (s *Server) Load() (clients int, statements uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.questions
}

func (s *Server) statistics() string {
	clients, statements := s.Load()
	return fmt.Sprintf("Uptime: %d  Threads: %d  Questions: %d", int(time.Since(s.started).Seconds()), clients, statements)
}

func (s *Server) countQuestion() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions++
}
