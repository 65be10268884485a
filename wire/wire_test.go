package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

func config(l mysqltest.Login) Config {
	return Config{Host: l.Host, Port: l.Port, User: l.User, Password: l.Password}
}

func dial(t *testing.T, cfg Config) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// rowsQuery gives n rows of some size.
func rowsQuery(n int) string {
	return fmt.Sprintf("WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < %d) SELECT i, REPEAT('x', 100) FROM s", n)
}

func count(r *Rows) (int, error) {
	for n := 0; ; n++ {
		row, err := r.Next()
		if row == nil || err != nil {
			return n, err
		}
	}
}

// A connection takes short queries and long results in turn.
func TestInTurn(t *testing.T) {
	c := dial(t, config(mysqltest.Shared(t).Login))
	if err := c.Exec(t.Context(), "SET cte_max_recursion_depth = 1000000"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		rows, err := c.Stream(t.Context(), rowsQuery(20000))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := count(rows); n != 20000 || err != nil || rows.Count() != 20000 {
			t.Fatal(n, err)
		}
		if row, err := rows.Next(); row != nil || err != nil {
			t.Error("a row after the end")
		}
		r, err := c.Query(t.Context(), "SELECT NULL, 'a', 12, @@session.time_zone")
		if err != nil || r.Cell(0, 0) != nil || r.Text(0, 1) != "a" || r.Int(0, 2) != 12 || r.Text(0, 3) != "+00:00" {
			t.Fatal(r, err)
		}
	}
	if _, err := c.Stream(t.Context(), "SELECT no_such_column"); Code(err) != CodeUnknownColumn {
		t.Error(err)
	}
	if _, err := c.Stream(t.Context(), "SET @x = 1"); err == nil {
		t.Error("a statement without rows")
	}
}

// cutProxy lets through some bytes of the server's and then cuts the connection.
func cutProxy(t *testing.T, target string, limit int64) Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				return
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.CopyN(in, out, limit); _ = in.Close(); _ = out.Close() }()
		}
	}()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	number, _ := strconv.Atoi(port)
	return Config{Host: host, Port: number}
}

// SNAP-16: a connection that is cut, wherever that happens, is an error and no end.
func TestCutAnywhere(t *testing.T) {
	s := mysqltest.Shared(t)
	for limit := int64(1500); limit < 70000; limit += 1777 {
		cfg := cutProxy(t, s.Addr(), limit)
		cfg.User, cfg.Password = s.User, s.Password
		c, err := Dial(t.Context(), cfg)
		if err != nil {
			continue // cut in the login
		}
		rows, err := c.Stream(t.Context(), rowsQuery(1000))
		n := 0
		if err == nil {
			n, err = count(rows)
		}
		if err == nil || n >= 1000 {
			t.Errorf("after %d bytes: %d rows, %v", limit, n, err)
		}
		_ = c.Close()
	}
}

// SNAP-16: the server's own time limits do not end a long read.
func TestServerTimeouts(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--net-write-timeout=1", "--max-execution-time=100", "--wait-timeout=1", "--net-buffer-length=1024"}})
	c := dial(t, config(s.Login))
	if err := c.Exec(t.Context(), "SET cte_max_recursion_depth = 1000000"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	rows, err := c.Stream(t.Context(), rowsQuery(300_000))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond)
	if n, err := count(rows); n != 300_000 || err != nil {
		t.Error(n, err)
	}
}

// An error packet after rows is an error.
func TestErrorAmongRows(t *testing.T) {
	s := mysqltest.Shared(t)
	c := dial(t, config(s.Login))
	if err := c.Exec(t.Context(), "SET cte_max_recursion_depth = 100000000", "SET max_execution_time = 0"); err != nil {
		t.Fatal(err)
	}
	rows, err := c.Stream(t.Context(), "SELECT a.i FROM (WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 3000) SELECT i FROM s) AS a,"+
		" (WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 3000) SELECT i FROM s) AS b")
	if err != nil {
		t.Fatal(err)
	}
	if row, err := rows.Next(); row == nil || err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "", fmt.Sprintf("KILL QUERY %d", c.ID()))
	n, err := count(rows)
	if Code(err) != mysql.ER_QUERY_INTERRUPTED || n >= 9_000_000 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestCancelled(t *testing.T) {
	c := dial(t, config(mysqltest.Shared(t).Login))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Query(ctx, "SELECT SLEEP(100)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// CLOUD-16, CLOUD-17: a server that insists on TLS gets it, and a password that is not in its cache is accepted.
func TestLogins(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE USER tm@'%' IDENTIFIED WITH caching_sha2_password BY 'S3cret'")
	cfg := config(s.Login)
	cfg.User, cfg.Password = "tm", "S3cret"
	dial(t, cfg)
	s.Exec(t, "", "FLUSH PRIVILEGES", "SET GLOBAL require_secure_transport = ON")
	c := dial(t, cfg)
	if r, err := c.Query(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'"); err != nil || r.Text(0, 1) == "" {
		t.Error("not encrypted", err)
	}
	cfg.Password = "wrong"
	var refused *ConnectError
	if _, err := Dial(t.Context(), cfg); !errors.As(err, &refused) || !refused.Denied || strings.Contains(err.Error(), "wrong") {
		t.Error(err)
	}
}

func everyKind() *schema.Table {
	t := &schema.Table{Database: "d", Name: "t", Key: []int{0}}
	for i, c := range []schema.Column{{Type: schema.Int}, {Type: schema.TinyInt, Unsigned: true}, {Type: schema.SmallInt}, {Type: schema.Year}, {Type: schema.BigInt, Unsigned: true},
		{Type: schema.Decimal, Precision: 10, Scale: 2}, {Type: schema.Float}, {Type: schema.Double}, {Type: schema.Date}, {Type: schema.DateTime, FSP: 6}, {Type: schema.Timestamp},
		{Type: schema.Time}, {Type: schema.VarChar, Charset: "utf8mb4"}, {Type: schema.Blob}, {Type: schema.Enum, Elements: []string{"a"}}, {Type: schema.Set, Elements: []string{"a"}},
		{Type: schema.Bit, Length: 9}, {Type: schema.JSON}} {
		c.ID, c.Name = uint32(i+1), "c"+strconv.Itoa(i)
		t.Columns = append(t.Columns, c)
	}
	return t
}

func fieldsOf(t *schema.Table) []Field {
	fields := make([]Field, len(t.Columns))
	for i := range t.Columns {
		_, types := kindOf(&t.Columns[i])
		fields[i] = Field{Type: types[0], Unsigned: t.Columns[i].Unsigned}
	}
	return fields
}

// FuzzRow: whatever a packet holds, it is a row or an error.
func FuzzRow(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add(append([]byte{0, 0xFC, 0xFF, 0xFF}, 1, 2, 3))
	f.Add(append(make([]byte, 4), []byte{1, 0, 0, 0, 5, 1, 0, 208, 7, 1, 2, 3, 4, 5, 6, 7, 8, 4, '1', '.', '5', '0', 0, 0, 128, 63, 0, 0, 0, 0, 0, 0, 240, 63, 4, 232, 7, 1, 2, 11, 232, 7, 1, 2, 3, 4, 5, 6, 0, 0, 0,
		7, 232, 7, 1, 2, 3, 4, 5, 8, 1, 0, 0, 0, 0, 1, 2, 3, 2, 'a', 'b', 0xFC, 1, 0, 'x', 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 2, '{', '}'}...))
	table := everyKind()
	f.Fuzz(func(t *testing.T, packet []byte) {
		b := column.NewBuilder(memory.DefaultAllocator, table)
		d, err := NewDecoder(table, fieldsOf(table), b)
		if err != nil {
			t.Fatal(err)
		}
		if len(packet) == 0 || packet[0] != 0 {
			return // Rows gives no such packet
		}
		if err := d.Row(packet); err != nil {
			return
		}
		if batch, err := b.Finish(); err == nil && batch.Rows() != 1 {
			t.Error("not one row")
		}
	})
}

// A definition that is not that of the rows is noticed before any row.
func TestMismatch(t *testing.T) {
	table := everyKind()
	fields := fieldsOf(table)
	fields[4].Unsigned = false
	var mismatch *MismatchError
	if _, err := NewDecoder(table, fields, column.NewBuilder(memory.DefaultAllocator, table)); !errors.As(err, &mismatch) || mismatch.Column != "c4" {
		t.Error(err)
	}
	if _, err := NewDecoder(table, fields[1:], column.NewBuilder(memory.DefaultAllocator, table)); err == nil {
		t.Error("a column less is not noticed")
	}
}
