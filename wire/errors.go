package wire

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// ConnectError is a connection that could not be made. It never carries the password. With none of the three flags, the
// server does not answer, or not for now.
type ConnectError struct {
	Addr, User string
	// Denied tells that the server answered and refused the login.
	Denied bool
	// Renewed tells that the password came from a file or a command, which may give another one next time.
	Renewed bool
	// Full tells that the server has no connection left to give.
	Full bool
	// Setup tells that the connection is set up in a way that cannot work: TLS, certificates, where the password comes from,
	// or what listens there. Somebody has to change something, here or on the server.
	Setup bool
	// Advice is what to do, for people.
	Advice string
	Err    error
}

func (e *ConnectError) Error() string {
	what := "can't connect to MySQL at " + e.Addr
	switch {
	case e.Denied:
		what = fmt.Sprintf("MySQL at %s refuses user %s", e.Addr, e.User)
	case e.Full:
		what = fmt.Sprintf("MySQL at %s has no free connection", e.Addr)
	}
	return fmt.Sprintf("%s: %v; %s", what, e.Err, e.Advice)
}

// Unwrap gives the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// setupError is a fault of how the connection is set up.
type setupError struct {
	err    error
	advice string
}

func (e *setupError) Error() string { return e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }

// Error codes of the login that go-mysql does not name.
const (
	codeSecureTransport = 3159
	codeAccountLocked   = 3118
	codePluginMissing   = 1524
)

func connectError(ctx context.Context, cfg Config, err error) error {
	renewed := cfg.PasswordFile != "" || len(cfg.PasswordCommand) > 0
	e := &ConnectError{Addr: cfg.Addr(), User: cfg.User, Renewed: renewed, Err: err, Advice: "check the host and the port, and that the server runs"}
	my := ServerError(err)
	var setup *setupError
	var opErr *net.OpError
	switch {
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	case my != nil:
		e.Err = my
		e.classify(my.Code)
	case errors.As(err, &setup):
		e.Setup, e.Err, e.Advice = true, setup.err, setup.advice
	case errors.As(err, &opErr):
		e.Err = opErr
	}
	return e
}

// classify tells what a refusal is about. CLOUD-16
func (e *ConnectError) classify(code uint16) {
	switch code {
	case mysql.ER_CON_COUNT_ERROR, mysql.ER_TOO_MANY_USER_CONNECTIONS, mysql.ER_USER_LIMIT_REACHED:
		e.Full, e.Advice = true, "raise max_connections or the account's limits, or end idle connections"
	case mysql.ER_SERVER_SHUTDOWN, mysql.ER_NORMAL_SHUTDOWN, mysql.ER_NEW_ABORTING_CONNECTION, mysql.ER_NET_READ_ERROR, mysql.ER_NET_READ_INTERRUPTED,
		mysql.ER_NET_ERROR_ON_WRITE, mysql.ER_NET_WRITE_INTERRUPTED, mysql.ER_OUT_OF_RESOURCES, mysql.ER_CANT_CREATE_THREAD:
	case codeSecureTransport:
		e.Setup, e.Advice = true, "it demands encryption (require_secure_transport): set ssl_mode = 'required' or stricter"
	case mysql.ER_HOST_IS_BLOCKED:
		e.Setup, e.Advice = true, "let the server forget earlier failed connections: TRUNCATE TABLE performance_schema.host_cache"
	case codePluginMissing, mysql.ER_NOT_SUPPORTED_AUTH_MODE:
		e.Setup, e.Advice = true, "the server lacks the account's authentication plugin: ALTER USER ... IDENTIFIED WITH caching_sha2_password BY ..."
	case codeAccountLocked:
		e.Denied, e.Advice = true, "ALTER USER ... ACCOUNT UNLOCK"
	case mysql.ER_MUST_CHANGE_PASSWORD, mysql.ER_MUST_CHANGE_PASSWORD_LOGIN:
		e.Denied, e.Advice = true, "the password has expired: give the account a new one, here too"
	default:
		e.Denied, e.Advice = true, "check the user's name and password, and the hosts it may come from; an account may also demand encryption or a certificate (REQUIRE SSL, X509)"
	}
}
