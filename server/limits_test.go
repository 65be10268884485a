package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/translate"
)

// endless runs for as long as anybody lets it.
const endless = "SELECT COUNT(*) FROM things a, things b, things c, things d WHERE a.price + b.price + c.price + d.price < 0"

// QUERY-16: KILL QUERY, KILL, max_execution_time and a client that goes away stop a statement.
func TestStopping(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 2000, "things")
	watcher := f.db("shop")

	run := func(db *sql.DB, prepare ...string) (id int64, over chan error) {
		conn, err := db.Conn(context.Background())
		require.NoError(t, err)
		for _, q := range prepare {
			_, err := conn.ExecContext(context.Background(), q)
			require.NoError(t, err)
		}
		require.NoError(t, conn.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&id))
		over = make(chan error, 1)
		go func() {
			defer conn.Close()
			var n int
			over <- conn.QueryRowContext(context.Background(), endless).Scan(&n)
		}()
		return id, over
	}
	running := func(id int64) bool {
		for _, c := range f.server.connections() {
			if int64(c.id) == id {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.stop != nil
			}
		}
		return false
	}

	id, over := run(f.db("shop"))
	require.Eventually(t, func() bool { return running(id) }, 10*time.Second, time.Millisecond)
	_, err := watcher.Exec(fmt.Sprintf("KILL QUERY %d", id))
	require.NoError(t, err)
	requireCode(t, <-over, 1317)

	id, over = run(f.db("shop"))
	require.Eventually(t, func() bool { return running(id) }, 10*time.Second, time.Millisecond)
	_, err = watcher.Exec(fmt.Sprintf("KILL %d", id))
	require.NoError(t, err)
	require.Error(t, <-over)
	require.Eventually(t, func() bool { return len(f.server.connections()) >= 1 && !running(id) }, 10*time.Second, time.Millisecond)

	_, over = run(f.db("shop"), "SET SESSION max_execution_time = 50")
	requireCode(t, <-over, 3024)

	// a client that vanishes: its connection is closed without a word
	nc, err := net.Dial("tcp", f.addr.String())
	require.NoError(t, err)
	raw := logIn(t, nc)
	raw.send(0, append([]byte{comQuery}, "USE shop"...))
	raw.receive()
	raw.send(0, append([]byte{comQuery}, endless...))
	require.Eventually(t, func() bool { return f.busy() == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, nc.Close())
	require.Eventually(t, func() bool { return f.busy() == 0 }, 10*time.Second, time.Millisecond)
}

func (f *fixture) busy() int {
	n := 0
	for _, c := range f.server.connections() {
		c.mu.Lock()
		if c.stop != nil {
			n++
		}
		c.mu.Unlock()
	}
	return n
}

// rawClient speaks the protocol by hand.
type rawClient struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func (c *rawClient) send(seq byte, payload []byte) {
	header := []byte{byte(len(payload)), byte(len(payload) >> 8), byte(len(payload) >> 16), seq}
	_, err := c.nc.Write(append(header, payload...))
	require.NoError(c.t, err)
}

func (c *rawClient) receive() []byte {
	var header [4]byte
	_, err := io.ReadFull(c.r, header[:])
	require.NoError(c.t, err)
	b := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	_, err = io.ReadFull(c.r, b)
	require.NoError(c.t, err)
	return b
}

// logIn logs root in without a password and without the newer ways of the protocol.
func logIn(t testing.TB, nc net.Conn) *rawClient {
	c := &rawClient{t, nc, bufio.NewReader(nc)}
	require.Equal(t, byte(10), c.receive()[0])
	b := binary.LittleEndian.AppendUint32(nil, capProtocol41|capSecureConnection|capLongPassword)
	b = append(b, 0, 0, 0, 1, 45)
	b = append(b, make([]byte, 23)...)
	c.send(1, append(b, "root\x00\x00"...))
	require.Equal(t, byte(headerOK), c.receive()[0])
	return c
}

// A cursor gives its rows piece by piece (COM_STMT_FETCH).
func TestCursor(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 5, "things")
	nc, err := net.Dial("tcp", f.addr.String())
	require.NoError(t, err)
	defer nc.Close()
	c := logIn(t, nc)
	c.send(0, append([]byte{comStmtPrepare}, "SELECT id FROM shop.things ORDER BY id"...))
	ok := c.receive()
	require.Equal(t, byte(headerOK), ok[0])
	id := ok[1:5]
	c.receive() // the column
	c.receive() // EOF
	execute := append([]byte{comStmtExecute}, id...)
	c.send(0, append(execute, cursorReadOnly, 1, 0, 0, 0))
	require.Equal(t, []byte{1}, c.receive())
	c.receive() // the column
	eof := c.receive()
	require.Equal(t, byte(headerEOF), eof[0])
	require.NotZero(t, binary.LittleEndian.Uint16(eof[3:])&statusCursorExists)
	var got []int64
	for last := false; !last; {
		fetch := append([]byte{comStmtFetch}, id...)
		c.send(0, append(fetch, 2, 0, 0, 0))
		for {
			b := c.receive()
			if b[0] == headerEOF {
				last = binary.LittleEndian.Uint16(b[3:])&statusLastRowSent != 0
				break
			}
			got = append(got, int64(binary.LittleEndian.Uint64(b[2:])))
		}
	}
	require.Equal(t, []int64{1, 2, 3, 4, 5}, got)
}

// A client that sends nonsense gets an error or is dropped; the server goes on.
func TestNonsense(t *testing.T) {
	f := newFixture(t)
	for _, body := range [][]byte{{}, {200}, {comStmtExecute}, {comStmtExecute, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {comStmtFetch, 9}, {comStmtSendLong, 1}, {comSetOption, 9, 9}, {comFieldList}, {comChangeUser, 1}, {comProcessKill}} {
		nc, err := net.Dial("tcp", f.addr.String())
		require.NoError(t, err)
		c := logIn(t, nc)
		c.send(0, body)
		c.send(0, []byte{comPing})
		require.NotEmpty(t, c.receive(), "%v", body)
		_ = nc.Close()
	}
	nc, err := net.Dial("tcp", f.addr.String())
	require.NoError(t, err)
	_, _ = nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	_ = nc.Close()
	require.NoError(t, f.db("").Ping())
}

// Rows are computed at the client's pace (QUERY-16): a reader that stops keeps the server from going on.
func TestBackPressure(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 2000, "things")
	nc, err := net.Dial("tcp", f.addr.String())
	require.NoError(t, err)
	defer nc.Close()
	c := logIn(t, nc)
	c.send(0, append([]byte{comQuery}, "SELECT a.name, b.name FROM shop.things a, shop.things b"...))
	require.Equal(t, []byte{2}, c.receive())
	// the four million rows stay where they are until they are read
	require.Never(t, func() bool { return f.busy() == 0 }, 200*time.Millisecond, 20*time.Millisecond)
	require.NoError(t, nc.Close())
	require.Eventually(t, func() bool { return f.busy() == 0 }, 10*time.Second, time.Millisecond)
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	f := newFixture(t, func(c *Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		c.Users = map[string]string{"root": "S3cret"}
	})
	db := f.db("", func(c *driver.Config) { c.TLSConfig, c.Passwd = "skip-verify", "S3cret" })
	var n int
	require.NoError(t, db.QueryRow("SELECT 1").Scan(&n))
	out, err := f.tryClient("SHOW STATUS LIKE 'Ssl_c%'", "--ssl-mode=REQUIRED", "-pS3cret")
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "Ssl_cipher\tTLS_")
}

func TestMultiStatements(t *testing.T) {
	db := newFixture(t).db("", func(c *driver.Config) { c.MultiStatements = true })
	rows, err := db.Query("SELECT 1; SET @a = 2; SELECT @a, 3")
	require.NoError(t, err)
	defer rows.Close()
	var a, b int
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&a))
	require.True(t, rows.NextResultSet())
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&a, &b))
	require.Equal(t, []int{2, 3}, []int{a, b})
	_, err = db.Exec("SELECT 1; SELEC 2; SELECT 3")
	requireCode(t, err, 1064)
}

// A transaction reads one point, whatever is committed meanwhile.
func TestTransactionSnapshot(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 1, "things")
	db := f.db("")
	tx, err := db.Begin()
	require.NoError(t, err)
	count := func(q interface{ QueryRow(string, ...any) *sql.Row }) (n int) {
		require.NoError(t, q.QueryRow("SELECT COUNT(*) FROM information_schema.SCHEMATA s JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = s.SCHEMA_NAME WHERE t.TABLE_NAME = 'things'").Scan(&n))
		return n
	}
	require.Equal(t, 1, count(tx))
	f.fill("shop2", 1, "things")
	require.Equal(t, 2, count(db))
	require.Equal(t, 1, count(tx))
	require.NoError(t, tx.Commit())
}

// A client that takes nothing does not keep the server from ending.
func TestShutdownEndsBlockedClients(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 2000, "things")
	nc, err := net.Dial("tcp", f.addr.String())
	require.NoError(t, err)
	defer nc.Close()
	c := logIn(t, nc)
	c.send(0, append([]byte{comQuery}, "SELECT a.name, b.name FROM shop.things a, shop.things b"...))
	c.receive()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.server.Shutdown(ctx)
	require.Empty(t, f.server.connections())
}

// A cursor keeps the point it reads though its transaction ends.
func TestCursorOutlivesTransaction(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 5000, "things")
	nc, err := net.Dial("tcp", f.addr.String())
	require.NoError(t, err)
	defer nc.Close()
	c := logIn(t, nc)
	command := func(text string) {
		c.send(0, append([]byte{comQuery}, text...))
		require.Equal(t, byte(headerOK), c.receive()[0])
	}
	command("BEGIN")
	c.send(0, append([]byte{comStmtPrepare}, "SELECT id FROM shop.things ORDER BY id"...))
	id := c.receive()[1:5]
	c.receive()
	c.receive()
	c.send(0, append(append([]byte{comStmtExecute}, id...), cursorReadOnly, 1, 0, 0, 0))
	for range 3 {
		c.receive()
	}
	command("COMMIT")
	c.send(0, append(append([]byte{comStmtFetch}, id...), 0x10, 0x27, 0, 0))
	rows := 0
	for c.receive()[0] == headerOK {
		rows++
	}
	require.Equal(t, 5000, rows)
}

func TestShutdownStopsStatements(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 2000, "things")
	over := make(chan error, 1)
	db := f.db("shop")
	go func() {
		var n int
		over <- db.QueryRow(endless).Scan(&n)
	}()
	require.Eventually(t, func() bool { return f.busy() == 1 }, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.server.Shutdown(ctx)
	requireCode(t, <-over, 1053)
}

func TestBinaryDates(t *testing.T) {
	for text, want := range map[string][]byte{
		"2024-02-29":                 {4, 0xe8, 7, 2, 29},
		"2024-02-29 00:00:00.000":    {4, 0xe8, 7, 2, 29},
		"2024-02-29 12:30:01":        {7, 0xe8, 7, 2, 29, 12, 30, 1},
		"2024-02-29 12:30:01.5":      {11, 0xe8, 7, 2, 29, 12, 30, 1, 0x20, 0xa1, 7, 0},
		"0000-00-00 00:00:00":        {0},
		"2024-00-00":                 {4, 0xe8, 7, 0, 0},
		"2024-02-29 00:00:00.000001": {11, 0xe8, 7, 2, 29, 0, 0, 0, 1, 0, 0, 0},
	} {
		got, ok := appendBinaryDate(nil, []byte(text))
		require.True(t, ok)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string][]byte{
		"00:00:00": {0}, "-838:59:59": {8, 1, 34, 0, 0, 0, 22, 59, 59}, "01:02:03.000004": {12, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0},
	} {
		got, ok := appendBinaryTime(nil, []byte(text))
		require.True(t, ok)
		require.Equal(t, want, got, text)
	}
	_, ok := appendBinaryDate(nil, []byte("x"))
	require.False(t, ok)
}

func TestLongCells(t *testing.T) {
	s := &session{resultCharset: "utf8mb4"}
	table := result.NewTable(result.Text("a"))
	for _, n := range []int{0, 250, 251, 65535, 65536, 1 << 24} {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte('a' + i%7)
		}
		table = result.NewTable(table.Fields()...)
		table.Add(string(text))
		cells, err := table.Next()
		require.NoError(t, err)
		got, null := appendCell(s, []byte("x"), &table.Fields()[0], cells, 0, 0)
		require.False(t, null)
		d := decoder{b: got[1:]}
		require.Equal(t, string(text), string(d.lenBytes()))
		require.False(t, d.bad)
		require.Empty(t, d.b)
	}
}

func FuzzLogin(f *testing.F) {
	f.Add([]byte{})
	f.Add(append(append(binary.LittleEndian.AppendUint32(nil, 0xffffffff), make([]byte, 28)...), "root\x00\x01xdb\x00plugin\x00\x03\x01a\x00"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseLogin(b)
		_, _ = parseChangeUser(b, 0xffffffff)
	})
}

func FuzzBind(f *testing.F) {
	f.Add(uint8(2), []byte{0, 1, 8, 0, 253, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Add(uint8(3), []byte{0, 1, 12, 0, 11, 0, 10, 0, 11, 0xe8, 7, 2, 29, 12, 30, 1, 0x20, 0xa1, 7, 0, 12, 1, 1, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, params uint8, b []byte) {
		st := &statement{params: int(params)}
		values, err := st.bind(&decoder{b: b}, "utf8mb4")
		if err == nil && len(values) != int(params) {
			t.Fatalf("%d values of %d parameters", len(values), params)
		}
		for _, v := range values {
			if v.Kind == translate.DateTimeValue && len(v.Text) < 10 {
				t.Fatal(v.Text)
			}
		}
	})
}
