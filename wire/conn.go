package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// Config says where a source is and who we are there.
type Config struct {
	Host     string
	Port     int
	User     string
	Password string
	// Timeout bounds the connecting and the login; 0 is 10 seconds.
	Timeout time.Duration
	// TLS is how the connection is secured. nil takes a plain connection, and an encrypted one whose certificate is
	// not verified where the server insists (require_secure_transport), as MySQL's own clients do by default.
	TLS *tls.Config
}

const (
	defaultTimeout = 10 * time.Second
	readBuffer     = 256 << 10
)

// Addr is host:port.
func (c Config) Addr() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

// Error codes of the server that callers tell apart.
const (
	CodeAccessDenied       = mysql.ER_ACCESS_DENIED_ERROR
	CodeTooManyConnections = mysql.ER_CON_COUNT_ERROR
	CodeParse              = mysql.ER_PARSE_ERROR
	CodeLockTimeout        = mysql.ER_LOCK_WAIT_TIMEOUT
	CodeNoPrivilege        = mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR
	CodeUnknownVariable    = mysql.ER_UNKNOWN_SYSTEM_VARIABLE
	CodeUnknownColumn      = mysql.ER_BAD_FIELD_ERROR
	CodeNoSuchTable        = mysql.ER_NO_SUCH_TABLE
	CodeNoSuchKey          = mysql.ER_KEY_DOES_NOT_EXITS
	CodeTableChanged       = mysql.ER_TABLE_DEF_CHANGED
	CodeXARecoverDenied    = mysql.ER_XAER_RMERR
)

const (
	codeSecureTransport  = 3159
	codeUserConnections  = mysql.ER_TOO_MANY_USER_CONNECTIONS
	codeUserLimitReached = mysql.ER_USER_LIMIT_REACHED
)

// ConnectError is a connection that could not be made. It never carries the password.
type ConnectError struct {
	Addr, User string
	// Denied tells that the server answered and refused the login.
	Denied bool
	// Full tells that the server has no connection left to give.
	Full bool
	Err  error
}

func (e *ConnectError) Error() string {
	switch {
	case e.Denied:
		return fmt.Sprintf("MySQL at %s refuses user %s: %v; check the user's name and password, and the hosts it may come from", e.Addr, e.User, e.Err)
	case e.Full:
		return fmt.Sprintf("MySQL at %s has no free connection: %v; raise max_connections or end idle ones", e.Addr, e.Err)
	}
	return fmt.Sprintf("can't connect to MySQL at %s: %v; check the host and the port, and that the server runs", e.Addr, e.Err)
}

// Unwrap gives the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// ServerError finds the server's own error in err, nil when there is none.
func ServerError(err error) *mysql.MyError {
	for err != nil {
		var my *mysql.MyError
		if errors.As(err, &my) {
			return my
		}
		// go-mysql wraps errors with Cause, which errors.As does not follow.
		c, ok := err.(interface{ Cause() error })
		if !ok {
			return nil
		}
		err = c.Cause()
	}
	return nil
}

// Code is the server's error code in err, 0 when the server sent none.
func Code(err error) uint16 {
	if my := ServerError(err); my != nil {
		return my.Code
	}
	return 0
}

// Conn is one session on the source.
type Conn struct {
	conn *client.Conn
	br   *bufio.Reader
	long []byte // a row of several packets, and any row longer than the read buffer
	addr string
}

// Dial logs in and prepares the session. Errors of the way there are *ConnectError.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	c, err := login(ctx, cfg, cfg.TLS)
	if Code(err) == codeSecureTransport && cfg.TLS == nil {
		c, err = login(ctx, cfg, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // stated on Config.TLS
	}
	if err != nil {
		return nil, connectError(ctx, cfg, err)
	}
	conn := &Conn{conn: c, addr: cfg.Addr()}
	if err := conn.prepareSession(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func login(ctx context.Context, cfg Config, secure *tls.Config) (*client.Conn, error) {
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	deadline := time.Now().Add(timeout)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.SetDeadline(deadline) // of the login; Dial's session then has none
		}
		return c, err
	}
	c, err := client.ConnectWithDialer(ctx, "tcp", cfg.Addr(), cfg.User, cfg.Password, "", dial, func(c *client.Conn) error {
		// With these off, a row can't be taken for the end packet, and an execute packet has no optional parts.
		c.UnsetCapability(mysql.CLIENT_DEPRECATE_EOF)
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES)
		if secure != nil {
			c.SetTLSConfig(withName(secure, cfg.Host))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Time{})
}

func withName(secure *tls.Config, host string) *tls.Config {
	if secure.ServerName != "" || secure.InsecureSkipVerify {
		return secure
	}
	named := secure.Clone()
	named.ServerName = host
	return named
}

func connectError(ctx context.Context, cfg Config, err error) error {
	e := &ConnectError{Addr: cfg.Addr(), User: cfg.User, Err: err}
	my := ServerError(err)
	switch {
	case my != nil:
		e.Err = my
		e.Full = my.Code == CodeTooManyConnections || my.Code == codeUserConnections || my.Code == codeUserLimitReached
		e.Denied = !e.Full
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	default:
		e.Err = innermost(err)
	}
	return e
}

// innermost drops go-mysql's layers, which name its functions and say nothing more.
func innermost(err error) error {
	var netErr *net.OpError
	if errors.As(err, &netErr) {
		return netErr
	}
	if c, ok := err.(interface{ Cause() error }); ok && c.Cause() != nil {
		return c.Cause()
	}
	return err
}

// sessionSettings make values come as they are stored and keep a long read alive (SNAP-16).
const sessionSettings = "SET SESSION time_zone = '+00:00', sql_mode = '', autocommit = 1, character_set_results = NULL," +
	" transaction_isolation = 'REPEATABLE-READ', wait_timeout = 604800, net_write_timeout = 86400, net_read_timeout = 86400," +
	" lock_wait_timeout = 30, innodb_lock_wait_timeout = 30, max_execution_time = 0, sql_select_limit = DEFAULT," +
	" sql_big_selects = 1, group_concat_max_len = 1048576"

// optionalSettings are not known to all versions.
var optionalSettings = []string{
	"SET SESSION show_gipk_in_create_table_and_information_schema = ON", // CLOUD-12
	"SET SESSION information_schema_stats_expiry = 0",
}

func (c *Conn) prepareSession(ctx context.Context) error {
	if _, err := c.Query(ctx, sessionSettings); err != nil {
		// Look-alikes of MySQL may lack some of these; compat says so by name once it has seen the version.
		if Code(err) != CodeUnknownVariable {
			return fmt.Errorf("preparing the session: %w", err)
		}
	}
	for _, set := range optionalSettings {
		if _, err := c.Query(ctx, set); err != nil && Code(err) != CodeUnknownVariable {
			return fmt.Errorf("preparing the session: %w", err)
		}
	}
	return nil
}

// Close ends the session. A transaction that is open is rolled back by the server and its locks are released.
func (c *Conn) Close() error { return c.conn.Close() }

// ID is the server's number of the connection, as its process list has it.
func (c *Conn) ID() uint32 { return c.conn.GetConnectionID() }

// Addr is the server's address.
func (c *Conn) Addr() string { return c.addr }

// guard closes the connection's waits when ctx ends. The returned function ends the watch.
func (c *Conn) guard(ctx context.Context) func() {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

// Query runs one statement and gives its whole result as text.
func (c *Conn) Query(ctx context.Context, statement string) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	defer c.guard(ctx)()
	r, err := c.conn.Execute(statement)
	if err != nil {
		return nil, c.wrap(ctx, err)
	}
	return textResult(r)
}

// Exec runs statements one after the other and drops their results.
func (c *Conn) Exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := c.Query(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) wrap(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("MySQL at %s: %w", c.addr, context.Cause(ctx))
	}
	if my := ServerError(err); my != nil {
		return fmt.Errorf("MySQL at %s: %w", c.addr, my)
	}
	return fmt.Errorf("the connection to MySQL at %s was lost: %w", c.addr, err)
}

// Result is the answer to a short query.
type Result struct {
	columns []string
	cells   [][]*string
}

func textResult(r *mysql.Result) (*Result, error) {
	out := &Result{}
	if !r.HasResultset() {
		return out, nil
	}
	for _, f := range r.Fields {
		out.columns = append(out.columns, string(f.Name))
	}
	for i := range r.Values {
		row := make([]*string, len(out.columns))
		for j := range row {
			null, err := r.IsNull(i, j)
			if err != nil {
				return nil, err
			}
			if null {
				continue
			}
			text, err := r.GetString(i, j)
			if err != nil {
				return nil, err
			}
			copied := strings.Clone(text)
			row[j] = &copied
		}
		out.cells = append(out.cells, row)
	}
	return out, nil
}

// Rows is the number of rows.
func (r *Result) Rows() int { return len(r.cells) }

// Columns is the number of columns.
func (r *Result) Columns() int { return len(r.columns) }

// Cell gives a value, nil for NULL.
func (r *Result) Cell(row, col int) *string { return r.cells[row][col] }

// Text gives a value, "" for NULL.
func (r *Result) Text(row, col int) string {
	if p := r.cells[row][col]; p != nil {
		return *p
	}
	return ""
}

// Int gives a value as an integer, 0 for NULL and for what is none.
func (r *Result) Int(row, col int) int64 {
	v, _ := strconv.ParseInt(r.Text(row, col), 10, 64)
	return v
}

// Find gives the number of a column by its name, in any letter case; -1 when there is none.
func (r *Result) Find(name string) int {
	for i, c := range r.columns {
		if strings.EqualFold(c, name) {
			return i
		}
	}
	return -1
}

// Named gives a value by its column's name, "" for NULL and for a column that is not there.
func (r *Result) Named(row int, name string) string {
	if i := r.Find(name); i >= 0 {
		return r.Text(row, i)
	}
	return ""
}

// Identifier quotes a name.
func Identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Literal quotes a text, for sessions with an empty sql_mode.
func Literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''", "\x00", `\0`).Replace(text) + "'"
}
