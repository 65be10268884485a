package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// Config says where a source is, who we are there, and how the connection is secured. Package binlog takes the same.
type Config struct {
	// Host and Port, or the path of a Unix socket. A Socket wins.
	Host   string
	Port   int
	Socket string
	User   string
	// Password is ours, unless it is to be had anew at each connect, from one of the next two.
	Password string
	// PasswordFile is a file whose first line is the password.
	PasswordFile string
	// PasswordCommand is a program and its arguments, run without a shell; the first line that it prints is the password.
	// It has TIDEMARK_SOURCE_HOST, TIDEMARK_SOURCE_PORT and TIDEMARK_SOURCE_USER in its environment.
	PasswordCommand []string
	TLS             TLS
	// Timeout bounds the way to a session, from the look-up of the name to the login, and the PasswordCommand once more;
	// 0 is 10 seconds.
	Timeout time.Duration
	// ReadTimeout is how long the source may be silent while an answer is due, WriteTimeout how long it may leave bytes of
	// ours untaken, before the connection counts as lost; 0 is 10 minutes and 1 minute. A long statement is silent, too.
	ReadTimeout, WriteTimeout time.Duration
	// File gives the path of a file or program that is named above; nil: the name is the path.
	File func(name string) (string, error)
	// Dial replaces the network connection, for tunnels and tests; nil is a plain net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// The defaults of [Config].
const (
	DefaultTimeout      = 10 * time.Second
	DefaultReadTimeout  = 10 * time.Minute
	DefaultWriteTimeout = time.Minute
)

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.File == nil {
		c.File = func(name string) (string, error) { return name, nil }
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	return c
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Socket == "" && c.Host == "" {
		errs = append(errs, errors.New("no host"))
	}
	if c.User == "" {
		errs = append(errs, errors.New("no user"))
	}
	if c.PasswordFile != "" && len(c.PasswordCommand) > 0 {
		errs = append(errs, errors.New("the password can come from a file or from a command, not from both"))
	}
	return errors.Join(append(errs, c.TLS.validate())...)
}

// Addr is host:port, or the path of the socket.
func (c Config) Addr() string {
	if c.Socket != "" {
		return c.Socket
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
}

// read gives the contents of a file that is named in the configuration.
func (c Config) read(name, what, setting string) ([]byte, error) {
	path, err := c.File(name)
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &setupError{fmt.Errorf("%s: %w", what, err), "check " + setting}
	}
	return b, nil
}

func (c Config) network() string {
	if c.Socket != "" {
		return "unix"
	}
	return "tcp"
}

// patient bounds each wait for the network, so that a connection that died without a sign is noticed.
type patient struct {
	net.Conn
	read, write time.Duration
}

// SilentError is the error of a connection on which nothing came for too long.
type SilentError struct {
	For time.Duration
	Err error
}

func (e *SilentError) Error() string { return "the source was silent for " + e.For.String() }

// Unwrap gives the network's error.
func (e *SilentError) Unwrap() error { return e.Err }

func (c *patient) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.read)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		err = &SilentError{For: c.read, Err: err}
	}
	return n, err
}

func (c *patient) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.write)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
