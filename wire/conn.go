package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

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
	raw       *patient // below TLS; closing it ends every wait
	packets   *packets
	encrypted bool
	id        uint32
	addr      string
}

// Dial logs in and prepares the session. Errors of the way there are *ConnectError.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	conn, err := Login(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := conn.prepareSession(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
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
func (c *Conn) Close() error { return c.raw.Close() }

// ID is the server's number of the connection, as its process list has it.
func (c *Conn) ID() uint32 { return c.id }

// Addr is the server's address.
func (c *Conn) Addr() string { return c.addr }

// Encrypted tells whether the connection is.
func (c *Conn) Encrypted() bool { return c.encrypted }

// SetReadTimeout changes how long the source may be silent. It is for the goroutine that reads.
func (c *Conn) SetReadTimeout(d time.Duration) { c.raw.read = d }

// guard closes the connection when ctx ends, which ends its waits. The returned function ends the watch.
func (c *Conn) guard(ctx context.Context) func() {
	stop := context.AfterFunc(ctx, func() { _ = c.raw.Close() })
	return func() { stop() }
}

// Command sends a packet that begins an exchange, and with answer waits for the server's OK. Without, everything that the
// server sends in answer is to be read from Network, its first packet with number 1.
func (c *Conn) Command(ctx context.Context, answer bool, payload ...byte) error {
	defer c.guard(ctx)()
	err := c.packets.command(payload...)
	if err == nil && answer {
		err = c.packets.readOK()
	}
	if err != nil {
		return c.wrap(ctx, err)
	}
	return nil
}

// Network is the connection itself, inside of TLS. Nothing was read ahead, as a server is silent until it gets a command.
func (c *Conn) Network() net.Conn { return c.packets.conn }

// Query runs one statement and gives its whole result as text.
func (c *Conn) Query(ctx context.Context, statement string) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	defer c.guard(ctx)()
	r, err := c.packets.query(statement)
	if err != nil {
		return nil, c.wrap(ctx, err)
	}
	return r, nil
}

func (p *packets) query(statement string) (*Result, error) {
	if err := p.command(append([]byte{mysql.COM_QUERY}, statement...)...); err != nil {
		return nil, err
	}
	fields, err := p.readFields()
	if err != nil || fields == nil {
		return &Result{}, err
	}
	r := &Result{}
	for _, f := range fields {
		r.columns = append(r.columns, f.Name)
	}
	for {
		b, err := p.read()
		if err != nil {
			return nil, err
		}
		if isEnd(b) {
			return r, nil
		}
		row, err := textRow(b, len(fields))
		if err != nil {
			return nil, err
		}
		r.cells = append(r.cells, row)
	}
}

// textRow reads a row of length-encoded strings.
func textRow(b []byte, columns int) ([]*string, error) {
	p := packetReader{rest: b}
	row := make([]*string, columns)
	for i := range row {
		if text := p.text(); text != nil {
			row[i] = new(string(text))
		}
	}
	if p.bad || len(p.rest) > 0 {
		return nil, mysql.ErrMalformPacket
	}
	return row, nil
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
