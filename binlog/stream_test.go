package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

// patience bounds every wait of the tests for a server.
const patience = 60 * time.Second

func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// here is the source's present end, as a point to start from.
func here(t testing.TB, s *mysqltest.Server) gtid.Point {
	t.Helper()
	var file, doDB, ignoreDB, set string
	var offset uint64
	err := s.DB(t, "").QueryRow("SHOW BINARY LOG STATUS").Scan(&file, &offset, &doDB, &ignoreDB, &set)
	if err != nil && strings.Contains(err.Error(), "1064") {
		err = s.DB(t, "").QueryRow("SHOW MASTER STATUS").Scan(&file, &offset, &doDB, &ignoreDB, &set)
	}
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := gtid.ParseSet(set)
	if err != nil {
		t.Fatal(err)
	}
	return gtid.Point{Set: parsed, Position: gtid.Position{File: file, Offset: offset}}
}

// config follows database t only, from the present end, by GTIDs unless the server has none.
func config(t testing.TB, s *mysqltest.Server) Config {
	t.Helper()
	var mode string
	if err := s.DB(t, "").QueryRow("SELECT @@global.gtid_mode").Scan(&mode); err != nil {
		t.Fatal(err)
	}
	return Config{
		Source: wire.Config{Host: s.Host, Port: s.Port, User: s.User, Password: s.Password}, ServerID: 4_000_000_001,
		AutoPosition: mode == "ON", Start: here(t, s), SpillDir: t.TempDir(),
		Follow: func(db, _ string) bool { return db == "t" },
	}
}

func open(t testing.TB, cfg Config) *Stream {
	t.Helper()
	s, err := Open(timeout(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// next waits for the next transaction and leaves out progress.
func next(t testing.TB, s *Stream) *Transaction {
	t.Helper()
	for {
		tx, err := s.Next(timeout(t))
		if err != nil {
			t.Fatal(err)
		}
		if tx.Kind != Progress {
			t.Cleanup(func() { tx.Release() })
			return tx
		}
	}
}

// story tells a transaction in one line.
func story(t testing.TB, tx *Transaction) string {
	t.Helper()
	parts := []string{tx.Kind.String()}
	for e, err := range tx.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *RowsEvent:
			part := fmt.Sprintf("%s %s", e.Action, e.Table.Table)
			if parts[len(parts)-1] != part {
				parts = append(parts, part)
			}
		case *Statement:
			parts = append(parts, e.SQL)
		}
	}
	return strings.Join(parts, "; ")
}

func wantStories(t testing.TB, s *Stream, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := story(t, next(t, s)); got != w {
			t.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}

// nextError waits for the stream to end.
func nextError(t testing.TB, s *Stream) error {
	t.Helper()
	for {
		tx, err := s.Next(timeout(t))
		if err != nil {
			return err
		}
		tx.Release()
	}
}

func wantClass(t testing.TB, err error, want Class) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("error %v, want class %q", err, want)
	}
	return e
}

func TestMain(m *testing.M) {
	code := mysqltest.Run(m)
	if withoutGTIDs != nil {
		withoutGTIDs.Close()
	}
	os.Exit(code)
}

// shared gives the package's server with GTIDs, and an empty database t on it.
func shared(t testing.TB) *mysqltest.Server {
	t.Helper()
	s := mysqltest.Shared(t)
	s.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t")
	return s
}

// withoutGTIDs is the package's server without GTIDs, started by the first test that needs it.
var withoutGTIDs *mysqltest.Server

func sharedWithoutGTIDs(t testing.TB) *mysqltest.Server {
	t.Helper()
	if withoutGTIDs == nil {
		s, err := mysqltest.StartServer(context.WithoutCancel(t.Context()),
			mysqltest.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}})
		if errors.Is(err, mysqltest.ErrNotOwn) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		withoutGTIDs = s
	}
	withoutGTIDs.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t")
	return withoutGTIDs
}

// bothModes runs a test on servers with gtid_mode ON and OFF.
func bothModes(t *testing.T, f func(t *testing.T, s *mysqltest.Server)) {
	t.Run("gtid", func(t *testing.T) { f(t, shared(t)) })
	t.Run("position", func(t *testing.T) { f(t, sharedWithoutGTIDs(t)) })
}

// bothModesOwn does so on servers that the test may stop.
func bothModesOwn(t *testing.T, f func(t *testing.T, s *mysqltest.Server)) {
	for name, args := range map[string][]string{"gtid": nil, "position": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Start(t, mysqltest.Options{Own: true, Args: args})
			s.Exec(t, "", "CREATE DATABASE t")
			f(t, s)
		})
	}
}

func TestKindsOfTransactions(t *testing.T) {
	bothModes(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "DROP DATABASE IF EXISTS other", "CREATE DATABASE other")
		stream := open(t, config(t, s))
		s.Exec(t, "t",
			"CREATE TABLE a (id INT PRIMARY KEY, v INT)",
			"CREATE TABLE b (id INT PRIMARY KEY, v INT)",
			"CREATE TABLE other.x (id INT PRIMARY KEY)",
			"INSERT INTO a VALUES (1,1),(2,2)",
			"INSERT INTO b VALUES (1,1),(2,2)",
			"INSERT INTO other.x VALUES (1)",
			"BEGIN", "UPDATE a SET v = 3", "INSERT INTO other.x VALUES (2)", "DELETE FROM b WHERE id = 2", "COMMIT",
			"BEGIN", "DELETE FROM a", "ROLLBACK",
			"UPDATE a JOIN b USING (id) SET a.v = 9, b.v = 9",
			"SET binlog_rows_query_log_events = ON", "INSERT INTO a VALUES (7, 7)",
			"SET binlog_format = 'STATEMENT'", "UPDATE a SET v = v + 1",
			"TRUNCATE b",
			"DROP TABLE other.x",
		)
		wantStories(t, stream,
			"ddl; CREATE TABLE a (id INT PRIMARY KEY, v INT)",
			"ddl; CREATE TABLE b (id INT PRIMARY KEY, v INT)",
			"ddl; CREATE TABLE other.x (id INT PRIMARY KEY)",
			"rows; insert a", "rows; insert b", "empty",
			"rows; update a; delete b",
			"rows; update a; update b",     // PROTO-17: both table maps come first
			"rows; insert a",               // PROTO-20: ROWS_QUERY is passed over
			"rows; UPDATE a SET v = v + 1", // PROTO-19
			"ddl; TRUNCATE b",
			"ddl; DROP TABLE `other`.`x` /* generated by server */",
		)
	})
}

func TestPositionsAndCommitTimes(t *testing.T) {
	bothModes(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)")
		start := here(t, s)
		stream := open(t, config(t, s))
		before := time.Now().Add(-time.Minute).UnixMicro()
		s.Exec(t, "t", "INSERT INTO a VALUES (1)")
		tx := next(t, stream)
		if tx.Start != start.Position || tx.End != here(t, s).Position {
			t.Errorf("transaction from %v to %v, want from %v to %v", tx.Start, tx.End, start.Position, here(t, s).Position)
		}
		if after := here(t, s).Set; !start.Set.Add(tx.GTID).Equal(after) {
			t.Errorf("GTID %v, but the source went from %v to %v", tx.GTID, start.Set, after)
		}
		if tx.OriginalCommit < uint64(before) || tx.OriginalCommit != tx.ImmediateCommit || tx.XID == 0 || tx.Timestamp == 0 {
			t.Errorf("commit times or XID: %+v", tx)
		}
		if tx.Source.IsZero() || tx.FileCreated == 0 {
			t.Errorf("identity: %+v", tx.Identity())
		}
	})
}

func TestStatementContext(t *testing.T) {
	s := shared(t)
	stream := open(t, config(t, s))
	s.Exec(t, "t", "SET timestamp = 1700000000.123456, sql_mode = 'ANSI_QUOTES', time_zone = '+05:30', character_set_client = latin1",
		"CREATE TABLE a (id INT PRIMARY KEY, c TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6))",
		"ALTER TABLE a ADD d DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)")
	next(t, stream)
	for e := range next(t, stream).Events() {
		st := e.(*Statement)
		if st.Database != "t" || st.SQLMode&4 == 0 || st.CharsetClient != 8 || st.DDLXID == 0 || st.ThreadID == 0 || !st.ExplicitDefaults {
			t.Errorf("context: %+v", st)
		}
		if want := time.Unix(1700000000, 123456000); !st.Time.Equal(want) {
			t.Errorf("time %v, want %v", st.Time, want)
		}
		if st.TimeZone != "+05:30" {
			t.Errorf("time zone %q", st.TimeZone)
		}
	}
}

// DDL-07: the CREATE of CREATE TABLE .. SELECT and its rows are one transaction.
func TestCreateSelect(t *testing.T) {
	s := shared(t)
	s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)", "INSERT INTO t.a VALUES (1)")
	stream := open(t, config(t, s))
	s.Exec(t, "t", "CREATE TABLE c (PRIMARY KEY (id)) AS SELECT id FROM a")
	got := story(t, next(t, stream))
	if !strings.HasPrefix(got, "rows; CREATE TABLE `c` (") || !strings.HasSuffix(got, "START TRANSACTION; insert c") {
		t.Error(got)
	}
}

// PROTO-15: the rows of an XA transaction come with its PREPARE, the outcome later.
func TestXA(t *testing.T) {
	bothModes(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)")
		stream := open(t, config(t, s))
		s.Exec(t, "t",
			"XA START 'g1','b1',7", "INSERT INTO a VALUES (1)", "XA END 'g1','b1',7", "XA PREPARE 'g1','b1',7", "XA COMMIT 'g1','b1',7",
			"XA START 'g2'", "INSERT INTO a VALUES (2)", "XA END 'g2'", "XA PREPARE 'g2'", "XA ROLLBACK 'g2'",
			"XA START 'g3'", "INSERT INTO a VALUES (3)", "XA END 'g3'", "XA COMMIT 'g3' ONE PHASE")
		for _, want := range []struct {
			story string
			id    XID
		}{
			{"xa prepare; insert a", XID{7, "g1", "b1"}}, {"xa commit", XID{7, "g1", "b1"}},
			{"xa prepare; insert a", XID{1, "g2", ""}}, {"xa rollback", XID{1, "g2", ""}},
			{"rows; insert a", XID{1, "g3", ""}},
		} {
			tx := next(t, stream)
			if got := story(t, tx); got != want.story || tx.XA != want.id {
				t.Errorf("got %s %+v, want %+v", got, tx.XA, want)
			}
		}
	})
}

func TestSavepointsAndTablesWithoutTransactions(t *testing.T) {
	s := sharedWithoutGTIDs(t)
	s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)", "CREATE TABLE t.m (id INT PRIMARY KEY) ENGINE=MyISAM")
	stream := open(t, config(t, s))
	s.Exec(t, "t",
		"INSERT INTO m VALUES (1)",
		"BEGIN", "INSERT INTO a VALUES (1)", "SAVEPOINT s1", "INSERT INTO a VALUES (2)", "ROLLBACK TO s1", "INSERT INTO a VALUES (3)", "COMMIT",
		"SET binlog_format = 'STATEMENT'",
		"BEGIN", "INSERT INTO a VALUES (4)", "INSERT INTO m SELECT id FROM a WHERE id = 4", "ROLLBACK")
	wantStories(t, stream, "rows; insert m")
	got := next(t, stream)
	rows, kinds := 0, 0
	for e := range got.Events() {
		if _, ok := e.(*RowsEvent); ok {
			rows++
		} else if e.(*Statement).Kind != StatementOther {
			kinds++
		}
	}
	if got.Kind != Rows || rows != 2 || kinds != len(slicesOf(got))-2 {
		t.Errorf("savepoint: %s", story(t, got))
	}
	if tx := next(t, stream); tx.Kind != RolledBack || tx.StatementCount != 2 {
		t.Errorf("rollback of a table without transactions: %s", story(t, tx))
	}
}

func slicesOf(tx *Transaction) (out []Event) {
	for e := range tx.Events() {
		out = append(out, e)
	}
	return out
}

// PROTO-01, PROTO-02: compressed transactions are the same as others, and stand at the payload's position.
func TestCompression(t *testing.T) {
	bothModes(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY, v LONGTEXT)")
		stream := open(t, config(t, s))
		s.Exec(t, "t", "SET binlog_transaction_compression = ON, binlog_transaction_compression_level_zstd = 22",
			"BEGIN", "INSERT INTO a VALUES (1, REPEAT('x', 3000000)), (2, 'y')", "UPDATE a SET v = 'z' WHERE id = 2", "COMMIT",
			"INSERT INTO a VALUES (3, 'w')",
			"XA START 'g'", "INSERT INTO a VALUES (4, 'w')", "XA END 'g'", "XA PREPARE 'g'", "XA COMMIT 'g'")
		tx := next(t, stream)
		if got := story(t, tx); got != "rows; insert a; update a" {
			t.Error(got)
		}
		if tx.Size() < 3000000 || tx.End.Offset-tx.Start.Offset > 100000 {
			t.Errorf("%d bytes from %v to %v: was it compressed?", tx.Size(), tx.Start, tx.End)
		}
		wantStories(t, stream, "rows; insert a", "xa prepare; insert a", "xa commit")
		if s.Exec(t, "t", "INSERT INTO a VALUES (5, 'w')"); next(t, stream).End != here(t, s).Position {
			t.Error("position after payloads is off")
		}
	})
}

// PROTO-12: events in several packets, exact multiples of a packet included.
func TestLargeEvents(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--max-allowed-packet=256M"}})
	s.Exec(t, "", "CREATE DATABASE t", "CREATE TABLE t.a (id INT PRIMARY KEY, v LONGTEXT)")
	stream := open(t, config(t, s))
	base := 0
	for i, size := range []int{1, maxPacket - 1000, 40_000_000} {
		s.Exec(t, "t", fmt.Sprintf("INSERT INTO a VALUES (%d, REPEAT('x', %d))", i, size))
		tx := next(t, stream)
		if i == 0 {
			base = int(tx.Size()) - 1
		}
		if int(tx.Size())-base != size {
			t.Errorf("%d bytes arrived as %d", size, int(tx.Size())-base)
		}
	}
	// The row event besides its image: header, post-header, checksum; around it the status byte of the packet.
	overhead := base + headerSize + 10 + checksumSize + 1
	for i := -3; i <= 3; i++ {
		for _, packets := range []int{1, 2} {
			size := packets*maxPacket - overhead + i
			s.Exec(t, "t", fmt.Sprintf("REPLACE INTO a VALUES (9, REPEAT('x', %d))", size), "DELETE FROM a WHERE id = 9")
			if tx := next(t, stream); int(tx.Size())-base != size {
				t.Errorf("%d bytes arrived as %d", size, int(tx.Size())-base)
			}
			next(t, stream).Release()
		}
	}
}

// PROTO-07: tagged GTIDs are counted, and asked for again correctly.
func TestTaggedGTIDs(t *testing.T) {
	s := shared(t)
	s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)")
	if _, err := s.DB(t, "").Exec("SET gtid_next = 'AUTOMATIC:app1'"); err != nil {
		t.Skipf("%s has no tagged GTIDs: %v", s.Version(), err)
	}
	cfg := config(t, s)
	stream := open(t, cfg)
	s.Exec(t, "t", "SET gtid_next = 'AUTOMATIC:App1'", "INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)",
		"SET gtid_next = 'AUTOMATIC'", "INSERT INTO a VALUES (3)", "SET gtid_next = 'AUTOMATIC:b'", "INSERT INTO a VALUES (4)")
	set := cfg.Start.Set
	for range 3 {
		tx := next(t, stream)
		if tx.OriginalCommit == 0 || tx.OriginalCommit != tx.ImmediateCommit {
			t.Errorf("commit times %d, %d", tx.OriginalCommit, tx.ImmediateCommit)
		}
		set = set.Add(tx.GTID)
	}
	stream.Close()
	cfg.Start = gtid.Point{Set: set}
	stream = open(t, cfg)
	set = set.Add(next(t, stream).GTID)
	if want := here(t, s).Set; !set.Equal(want) {
		t.Errorf("counted %v, the source has %v", set, want)
	}
}

// A source with nothing to send gives its position away, and moves it over what is not followed.
func TestProgress(t *testing.T) {
	bothModes(t, func(t *testing.T, s *mysqltest.Server) {
		cfg := config(t, s)
		cfg.Heartbeat = 50 * time.Millisecond
		stream := open(t, cfg)
		s.Exec(t, "", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
		want := here(t, s).Position
		for last := cfg.Start.Position; last != want; {
			tx, err := stream.Next(timeout(t))
			if err != nil {
				t.Fatal(err)
			}
			if tx.Kind != Progress || tx.End.Compare(last) < 0 {
				t.Fatalf("%s after %s", tx, last)
			}
			last = tx.End
		}
	})
}

// cutter is a network in which connections can be cut after a number of bytes.
type cutter struct {
	mu    sync.Mutex
	after int // bytes that may still be read; negative: no limit
}

type cutConn struct {
	net.Conn
	cutter *cutter
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &cutConn{conn, c}, err
}

func (c *cutConn) Read(b []byte) (int, error) {
	c.cutter.mu.Lock()
	defer c.cutter.mu.Unlock()
	if c.cutter.after == 0 {
		c.Conn.Close()
		return 0, errors.New("the network was cut")
	}
	if c.cutter.after > 0 {
		b = b[:min(len(b), c.cutter.after)]
	}
	n, err := c.Conn.Read(b)
	if c.cutter.after > 0 {
		c.cutter.after -= n
	}
	return n, err
}

func (c *cutter) set(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = n
}

// PROTO-03: a connection cut at any place inside a transaction neither counts nor loses it.
func TestCutConnection(t *testing.T) {
	bothModes(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100))")
		cfg := config(t, s)
		s.Exec(t, "t", "INSERT INTO a (v) VALUES ('one'), ('two')", "INSERT INTO a (v) SELECT REPEAT('x', 100) FROM a", "INSERT INTO a (v) VALUES ('last')")
		end := here(t, s)
		net := &cutter{after: -1}
		cfg.Source.Dial = net.dial
		got, cuts := []string{}, 0
		for n := 1; len(got) < 3; n += 37 {
			net.set(-1)
			stream := open(t, cfg)
			net.set(n)
			for len(got) < 3 {
				tx, err := stream.Next(timeout(t))
				if err != nil {
					if e := wantClass(t, err, ConnectionLost); !e.Temporary() {
						t.Fatal("a lost connection is not worth a second try?")
					}
					cuts++
					break
				}
				cfg.Start = gtid.Point{Set: cfg.Start.Set.Add(tx.GTID), Position: tx.End}
				if tx.Kind != Progress {
					got = append(got, story(t, tx))
				}
			}
			stream.Close()
		}
		if strings.Join(got, ", ") != "rows; insert a, rows; insert a, rows; insert a" || cuts < 5 {
			t.Errorf("%d cuts, got %s", cuts, got)
		}
		if !cfg.Start.Set.Equal(end.Set) || cfg.Start.Position != end.Position {
			t.Errorf("ended at %v, the source is at %v", cfg.Start, end)
		}
	})
}

// A source that stops, dies and comes back is a lost connection; nothing is missing afterwards.
func TestRestartedSource(t *testing.T) {
	bothModesOwn(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)")
		cfg := config(t, s)
		var last gtid.Identity
		for i, stop := range []func(context.Context) error{s.Stop, s.Kill} {
			stream := open(t, cfg)
			s.Exec(t, "t", fmt.Sprintf("INSERT INTO a VALUES (%d)", i))
			tx := next(t, stream)
			cfg.Start = gtid.Point{Set: cfg.Start.Set.Add(tx.GTID), Position: tx.End}
			last = tx.Identity()
			if err := stop(timeout(t)); err != nil {
				t.Fatal(err)
			}
			wantClass(t, nextError(t, stream), ConnectionLost)
			_, err := Open(timeout(t), cfg)
			wantClass(t, err, ConnectionLost) // PROTO-10
			if err := s.Restart(timeout(t)); err != nil {
				t.Fatal(err)
			}
			if err := VerifyLast(timeout(t), cfg, last); err != nil {
				t.Fatal(err)
			}
		}
		stream := open(t, cfg)
		s.Exec(t, "t", "INSERT INTO a VALUES (100)")
		tx := next(t, stream)
		if got := story(t, tx); got != "rows; insert a" || tx.End != here(t, s).Position {
			t.Errorf("after the restart: %s, %s", got, tx)
		}
	})
}

// CLOUD-20, PROTO-05, PROTO-08.
func TestRewoundAndPurgedSource(t *testing.T) {
	bothModesOwn(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)")
		cfg := config(t, s)
		first := cfg
		stream := open(t, cfg)
		s.Exec(t, "t", "INSERT INTO a VALUES (1)")
		tx := next(t, stream)
		last := tx.Identity()
		cfg.Start = gtid.Point{Set: cfg.Start.Set.Add(tx.GTID), Position: tx.End}
		if err := VerifyLast(timeout(t), cfg, last); err != nil {
			t.Fatal(err)
		}
		wrong := last
		wrong.Committed++
		wantClass(t, VerifyLast(timeout(t), cfg, wrong), Rewound)
		wrong = last
		wrong.FileCreated++
		wantClass(t, VerifyLast(timeout(t), cfg, wrong), Rewound)
		wrong = last
		wrong.Start.Offset++
		wantClass(t, VerifyLast(timeout(t), cfg, wrong), Rewound)
		wrong.Start.Offset += 100000
		wantClass(t, VerifyLast(timeout(t), cfg, wrong), Rewound)
		// The stream's own dump went on meanwhile.
		s.Exec(t, "t", "INSERT INTO a VALUES (2)")
		wantStories(t, stream, "rows; insert a")
		stream.Close()

		s.Exec(t, "t", "FLUSH BINARY LOGS", "INSERT INTO a VALUES (3)", "FLUSH BINARY LOGS", "INSERT INTO a VALUES (4)")

		purge(t, s)
		wantClass(t, VerifyLast(timeout(t), cfg, last), UnknownIdentity)
		if cfg.AutoPosition {
			_, err := Open(timeout(t), first)
			if e := wantClass(t, err, PurgedLogs); !strings.Contains(e.Error(), e.Missing.String()) || !e.Missing.Has(tx.GTID) {
				t.Errorf("which are missing? %v", e)
			}
		} else {
			wantClass(t, nextError(t, open(t, first)), PurgedLogs)
		}

		reset := "RESET BINARY LOGS AND GTIDS"
		if _, err := s.DB(t, "").Exec(reset); err != nil {
			s.Exec(t, "", "RESET MASTER")
		}
		for i := 10; i < 20; i++ {
			s.Exec(t, "t", fmt.Sprintf("INSERT INTO a VALUES (%d)", i))
		}
		wantClass(t, VerifyLast(timeout(t), cfg, last), Rewound)
	})
}

// purge removes all binlog files but the current one. A dump thread whose reader has gone keeps its file until it
// notices.
func purge(t testing.TB, s *mysqltest.Server) {
	t.Helper()
	db := s.DB(t, "")
	if _, err := db.Exec("FLUSH BINARY LOGS"); err != nil {
		t.Fatal(err)
	}
	current := here(t, s).Position.File
	for n := 2; n > 1; time.Sleep(20 * time.Millisecond) {
		if _, err := db.Exec("PURGE BINARY LOGS TO '" + current + "'"); err != nil {
			t.Fatal(err)
		}
		rows, err := db.Query("SHOW BINARY LOGS")
		if err != nil {
			t.Fatal(err)
		}
		for n = 0; rows.Next(); n++ {
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// After a fail-over the transaction is looked up by its GTID.
func TestVerifyLastOnAnotherServer(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE t", "CREATE TABLE t.a (id INT PRIMARY KEY)")
	cfg := config(t, s)
	stream := open(t, cfg)
	s.Exec(t, "t", "INSERT INTO a VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO a VALUES (2)")
	last := next(t, stream).Identity()
	last.Source, last.Start = gtid.UUID{1}, gtid.Position{File: "elsewhere.000001", Offset: 4}
	if err := VerifyLast(timeout(t), cfg, last); err != nil {
		t.Error(err)
	}
	wrong := last
	wrong.Committed--
	wantClass(t, VerifyLast(timeout(t), cfg, wrong), Rewound)
	wrong = last
	wrong.GTID.Number += 1000
	wantClass(t, VerifyLast(timeout(t), cfg, wrong), Rewound)
	stream.Close()
	purge(t, s)
	wantClass(t, VerifyLast(timeout(t), cfg, last), UnknownIdentity)

	cfg.Heartbeat, cfg.DeadAfter = 100*time.Millisecond, time.Second
	cfg.Start.Set = here(t, s).Set.Add(gtid.GTID{Source: gtid.UUID{7}, Number: 3})
	_, err := Open(timeout(t), cfg)
	if e := wantClass(t, err, Rewound); e.Missing.String() != "07000000-0000-0000-0000-000000000000:3" {
		t.Errorf("missing %s", e.Missing)
	}
}

// PROTO-11.
func TestDuplicateServerID(t *testing.T) {
	s := shared(t)
	cfg := config(t, s)
	first := open(t, cfg)
	next := open(t, cfg) // the same installation, again: the old one gives way
	wantClass(t, nextError(t, first), DuplicateServerID)
	if _, err := next.Next(timeout(t)); err != nil {
		t.Error(err)
	}
	cfg.ReplicaUUID = gtid.UUID{1, 2, 3}
	_, err := Open(timeout(t), cfg)
	if e := wantClass(t, err, DuplicateServerID); !strings.Contains(e.Error(), "4000000001") {
		t.Error(e)
	}
	var own uint32
	if err := s.DB(t, "").QueryRow("SELECT @@server_id").Scan(&own); err != nil {
		t.Fatal(err)
	}
	cfg.ServerID = own
	_, err = Open(timeout(t), cfg)
	wantClass(t, err, DuplicateServerID)
}

func TestRefusals(t *testing.T) {
	s := shared(t)
	s.Exec(t, "", "DROP USER IF EXISTS nobody@'%', reader@'%'", "CREATE USER nobody@'%' IDENTIFIED BY 'pw'", "CREATE USER reader@'%' IDENTIFIED BY 'secret%word'", "GRANT REPLICATION SLAVE ON *.* TO reader@'%'")
	cfg := config(t, s)
	try := func(change func(c *Config)) error {
		c := cfg
		change(&c)
		stream, err := Open(timeout(t), c)
		if err == nil {
			defer stream.Close()
			err = nextError(t, stream)
		}
		return err
	}
	err := try(func(c *Config) { c.Source.User, c.Source.Password = "nobody", "wrong-word" })
	if wantClass(t, err, AuthFailed); strings.Contains(err.Error(), "wrong-word") { // OPS-13
		t.Error("the password is in the error")
	}
	wantClass(t, try(func(c *Config) { c.Source.User, c.Source.Password = "nobody", "pw" }), AuthFailed) // CLOUD-09
	wantClass(t, try(func(c *Config) { c.Source.Port = 1 }), ConnectionLost)
	wantClass(t, try(func(c *Config) { c.ServerID = 0 }), Misconfigured)
	wantClass(t, try(func(c *Config) { c.AutoPosition = false; c.Start.Position.File = "binlog.999999" }), PurgedLogs)
	wantClass(t, try(func(c *Config) { c.AutoPosition = false; c.Start.Position.Offset += 100000 }), Rewound)

	// CLOUD-09: REPLICATION SLAVE alone is enough.
	cfg.Source.User, cfg.Source.Password = "reader", "secret%word"
	stream := open(t, cfg)
	s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY)")
	last := next(t, stream).Identity()
	if err := VerifyLast(timeout(t), cfg, last); err != nil {
		t.Error(err)
	}
}

// CLOUD-16: what the source's TLS settings refuse is no lost connection.
func TestTLS(t *testing.T) {
	s := shared(t)
	s.Exec(t, "", "DROP USER IF EXISTS safe@'%'", "CREATE USER safe@'%' IDENTIFIED BY 'pw' REQUIRE SSL", "GRANT REPLICATION SLAVE ON *.* TO safe@'%'")
	cfg := config(t, s)
	cfg.Source.User, cfg.Source.Password, cfg.Source.TLS.Mode = "safe", "pw", wire.TLSDisabled
	cfg.Source.TLS.AskServerKey = true
	_, err := Open(timeout(t), cfg)
	wantClass(t, err, AuthFailed)
	cfg.Source.TLS.Mode = wire.TLSVerifyCA
	_, err = Open(timeout(t), cfg)
	wantClass(t, err, Misconfigured)
	cfg.Source.TLS.Mode = wire.TLSPreferred
	stream := open(t, cfg)
	s.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY, v LONGTEXT)", "INSERT INTO a VALUES (1, REPEAT('x', 20000000))")
	next(t, stream)
	if tx := next(t, stream); tx.Size() < 20000000 {
		t.Errorf("%d bytes", tx.Size())
	}
}

// PROTO-19: a file loaded in statement format is a statement like others.
func TestLoadDataAsStatement(t *testing.T) {
	s := sharedWithoutGTIDs(t)
	s.Exec(t, "t", "SET GLOBAL local_infile = ON", "CREATE TABLE a (id INT PRIMARY KEY)")
	driver.RegisterReaderHandler("rows", func() io.Reader { return strings.NewReader("1\n2\n") })
	defer driver.DeregisterReaderHandler("rows")
	stream := open(t, config(t, s))
	s.Exec(t, "t", "SET binlog_format = 'STATEMENT'", "LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE a")
	if got := story(t, next(t, stream)); !strings.HasPrefix(got, "rows; LOAD DATA LOCAL INFILE") {
		t.Error(got)
	}
}

func TestSocket(t *testing.T) {
	s := shared(t)
	cfg := config(t, s)
	if err := s.DB(t, "").QueryRow("SELECT @@socket").Scan(&cfg.Source.Socket); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(cfg.Source.Socket, "/") {
		cfg.Source.Socket = s.DataDir() + "/" + cfg.Source.Socket
	}
	if _, err := os.Stat(cfg.Source.Socket); err != nil || s.DataDir() == "" {
		t.Skip("the server's socket can not be reached")
	}
	cfg.Source.Host, cfg.Source.Port = "", 0
	stream := open(t, cfg)
	s.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY)")
	wantStories(t, stream, "ddl; CREATE TABLE a (id INT PRIMARY KEY)")
}

func TestGTIDsOff(t *testing.T) {
	s := sharedWithoutGTIDs(t)
	cfg := config(t, s)
	cfg.AutoPosition = true
	_, err := Open(timeout(t), cfg)
	wantClass(t, err, Misconfigured)
}

func TestCancel(t *testing.T) {
	s := shared(t)
	cfg := config(t, s)
	cfg.Heartbeat = 20 * time.Second
	stream := open(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	var err error
	for err == nil {
		_, err = stream.Next(ctx)
	}
	wantClass(t, err, Cancelled)
	if _, again := stream.Next(t.Context()); again != err {
		t.Errorf("after the end: %v", again)
	}

	stream = open(t, cfg)
	time.AfterFunc(50*time.Millisecond, func() { stream.Close() })
	wantClass(t, nextError(t, stream), Cancelled)
}

// PROTO-09: a source that says nothing at all is a lost connection.
func TestSilentSource(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	cfg := config(t, s)
	cfg.Heartbeat, cfg.DeadAfter = 100*time.Millisecond, time.Second
	stream := open(t, cfg)
	if tx, err := stream.Next(timeout(t)); err != nil || tx.Kind != Progress {
		t.Fatal(tx, err)
	}
	if err := s.Pause(timeout(t)); err != nil {
		t.Fatal(err)
	}
	err := nextError(t, stream)
	if err := s.Resume(timeout(t)); err != nil {
		t.Fatal(err)
	}
	if wantClass(t, err, ConnectionLost); !strings.Contains(err.Error(), "silent for 1s") {
		t.Error(err)
	}
}

// RES-01: a large transaction lies on disk, compressed or not.
func TestLargeTransactionMemory(t *testing.T) {
	const rows, width = 200, 1 << 20 // 200 MiB
	for _, compression := range []string{"OFF", "ON"} {
		t.Run("compression "+compression, func(t *testing.T) {
			s := shared(t)
			s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY, v LONGTEXT)")
			cfg := config(t, s)
			cfg.SpillBytes = 8 << 20
			stream := open(t, cfg)
			statements := []string{"SET binlog_transaction_compression = " + compression, "BEGIN"}
			for i := range rows {
				statements = append(statements, fmt.Sprintf("INSERT INTO a VALUES (%d, REPEAT('%c', %d))", i, 'a'+i%26, width))
			}
			s.Exec(t, "t", append(statements, "COMMIT")...)
			runtime.GC()
			peak := watchHeap(t)
			tx := next(t, stream)
			if !tx.Spilled() || tx.RowEvents != rows || tx.Size() < rows*width {
				t.Errorf("spilled %v, %d row events, %d bytes", tx.Spilled(), tx.RowEvents, tx.Size())
			}
			seen := 0
			for e, err := range tx.Events() {
				if err != nil {
					t.Fatal(err)
				}
				if body := e.(*RowsEvent).body; body[len(body)-1] != byte('a'+seen%26) {
					t.Fatalf("event %d is not the one that was written", seen)
				}
				seen++
			}
			if mib := peak() >> 20; seen != rows || mib > 96 {
				t.Errorf("%d events, heap grew to %d MiB", seen, mib)
			}
			if err := tx.Release(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(cfg.SpillDir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// watchHeap samples the heap in use until its result is called, which gives the highest sample.
func watchHeap(t *testing.T) (peak func() uint64) {
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var highest uint64
		var m runtime.MemStats
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				runtime.ReadMemStats(&m)
				highest = max(highest, m.HeapInuse)
			case <-stop:
				done <- highest
				return
			}
		}
	}()
	return func() uint64 { close(stop); return <-done }
}

func TestSpillDirMissing(t *testing.T) {
	s := shared(t)
	s.Exec(t, "", "CREATE TABLE t.a (id INT PRIMARY KEY, v LONGTEXT)")
	cfg := config(t, s)
	cfg.SpillBytes, cfg.SpillDir = 1000, cfg.SpillDir+"/gone"
	stream := open(t, cfg)
	s.Exec(t, "t", "INSERT INTO a VALUES (1, REPEAT('x', 5000))")
	wantClass(t, nextError(t, stream), Local)
}

// PROTO-18: the checksum is switched while the stream runs.
func TestChecksumSwitch(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE t", "CREATE TABLE t.a (id INT PRIMARY KEY)")
	stream := open(t, config(t, s))
	s.Exec(t, "t", "INSERT INTO a VALUES (1)", "SET GLOBAL binlog_checksum = NONE", "INSERT INTO a VALUES (2)",
		"SET GLOBAL binlog_checksum = CRC32", "INSERT INTO a VALUES (3)", "SET GLOBAL binlog_checksum = NONE")
	wantStories(t, stream, "rows; insert a", "rows; insert a", "rows; insert a")
	stream = open(t, config(t, s))
	s.Exec(t, "t", "INSERT INTO a VALUES (4)")
	wantStories(t, stream, "rows; insert a")
}

// TYPE-15: partial JSON updates are told from others.
func TestPartialJSON(t *testing.T) {
	s := shared(t)
	s.Exec(t, "", "CREATE TABLE t.j (id INT PRIMARY KEY, d JSON)", `INSERT INTO t.j VALUES (1, '{"a": 1, "b": "ccccccccccccccccccccccccccccccc"}')`)
	stream := open(t, config(t, s))
	s.Exec(t, "t", "SET binlog_row_value_options = 'PARTIAL_JSON', binlog_row_image = 'MINIMAL'", "UPDATE j SET d = JSON_SET(d, '$.a', 2)")
	wantStories(t, stream, "rows; partial update j")
}

// A binlog file on disk reads like the stream.
func TestFile(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	if s.DataDir() == "" {
		t.Skip("the server's files can not be reached")
	}
	s.Exec(t, "", "FLUSH BINARY LOGS")
	cfg := config(t, s)
	stream := open(t, cfg)
	s.Exec(t, "", "CREATE DATABASE t", "CREATE TABLE t.a (id INT PRIMARY KEY)", "INSERT INTO t.a VALUES (1)",
		"SET binlog_transaction_compression = ON", "INSERT INTO t.a VALUES (2)")
	file, err := os.Open(s.DataDir() + "/" + cfg.Start.Position.File)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := NewLog(file, LogConfig{Name: cfg.Start.Position.File, Source: stream.Source(), Follow: cfg.Follow})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 4 {
		want := next(t, stream)
		got, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if story(t, got) != story(t, want) || got.Identity() != want.Identity() || got.End != want.End {
			t.Errorf("file: %s %+v, stream: %s %+v", story(t, got), got.Identity(), story(t, want), want.Identity())
		}
	}
	if tx, err := f.Next(); err == nil {
		t.Errorf("behind the end: %s", tx)
	}
}
