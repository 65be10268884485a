package snapshot

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// writers runs n sessions that call step until the test or the returned function ends them.
func writers(t *testing.T, s *mysqltest.Server, db string, n int, step func(ctx context.Context, c *sql.Conn, r *rand.Rand, writer int) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pool := s.DB(t, db)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			conn, err := pool.Conn(ctx)
			if err != nil {
				return
			}
			defer conn.Close()
			for ctx.Err() == nil {
				if err := step(ctx, conn, r, i); err != nil && ctx.Err() == nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
			}
		})
	}
	return func() { cancel(); wait.Wait() }
}

// soak tells whether the tests run in their long mode, as in `make soak`.
func soak() bool { return os.Getenv("TIDEMARK_SOAK") != "" }

// TestViewIsThePoint is SNAP-01: each transaction of 16 writers inserts one row, so that the rows that the read view
// shows can be counted against the transactions of the recorded set, and against those before the recorded position.
func TestViewIsThePoint(t *testing.T) {
	tries := 20
	if soak() {
		tries = 200
	}
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE acc", "CREATE TABLE acc.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, w INT) ", "CREATE TABLE acc.u (id BIGINT PRIMARY KEY AUTO_INCREMENT)")
	cfg := config(t, s, "acc")
	base := executed(t, s)
	events := &xidCounter{s: s, t: t}
	start := events.upTo(firstPosition(t, s))
	stop := writers(t, s, "acc", 16, func(ctx context.Context, c *sql.Conn, r *rand.Rand, w int) error {
		table := "t (w) VALUES (1)"
		if r.IntN(4) == 0 {
			table = "u () VALUES ()"
		}
		_, err := c.ExecContext(ctx, "INSERT INTO "+table)
		return err
	})
	defer stop()
	for i := range tries {
		m := newKeeper()
		r := mustRun(t, cfg, m)
		if got := uint64(r.Rows); got != r.Point.Set.Count()-base {
			t.Fatalf("try %d: %d rows in the view, %d transactions in the set", i, got, r.Point.Set.Count()-base)
		}
		if got := events.upTo(r.Point.Position) - start; int64(got) != r.Rows {
			t.Fatalf("try %d: %d rows in the view, %d transactions before the position", i, r.Rows, got)
		}
	}
}

func executed(t *testing.T, s *mysqltest.Server) uint64 {
	t.Helper()
	var text string
	if err := s.DB(t, "").QueryRowContext(t.Context(), "SELECT @@global.gtid_executed").Scan(&text); err != nil {
		t.Fatal(err)
	}
	set, err := gtid.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return set.Count()
}

func firstPosition(t *testing.T, s *mysqltest.Server) gtid.Position {
	t.Helper()
	source, _, err := compat.Check(t.Context(), sourceConfig(s.Login), compat.Wishes{Database: "acc"})
	if err != nil {
		t.Fatal(err)
	}
	return source.Position
}

// xidCounter counts the commits in the source's binlog, going on where it stopped.
type xidCounter struct {
	s     *mysqltest.Server
	t     *testing.T
	pos   gtid.Position
	count int
}

func (x *xidCounter) upTo(end gtid.Position) int {
	x.t.Helper()
	if x.pos.File == "" {
		x.pos = end
	}
	if x.pos.File != end.File {
		x.t.Fatalf("the binlog went on in %s", end.File)
	}
	rows, err := x.s.DB(x.t, "").QueryContext(x.t.Context(), fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d", end.File, x.pos.Offset))
	if err != nil {
		x.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var file, kind, info string
		var pos, server, next uint64
		if err := rows.Scan(&file, &pos, &kind, &server, &next, &info); err != nil {
			x.t.Fatal(err)
		}
		if next > end.Offset {
			break
		}
		if kind == "Xid" {
			x.count++
		}
	}
	if err := rows.Err(); err != nil {
		x.t.Fatal(err)
	}
	x.pos = end
	return x.count
}

// TestOnePointForAllTables is SNAP-04: transfers between two tables keep a sum, and every copy has it, with ranges read
// by several readers while the writers go on.
func TestOnePointForAllTables(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	for _, table := range []string{"a", "z"} {
		s.Exec(t, db, "SET cte_max_recursion_depth = 100000", "CREATE TABLE "+table+" (id INT PRIMARY KEY, n BIGINT NOT NULL)",
			"INSERT INTO "+table+" SELECT i, 100 FROM "+numbers(20000), "ANALYZE TABLE "+table)
	}
	stop := writers(t, s, db, 8, func(ctx context.Context, c *sql.Conn, r *rand.Rand, _ int) error {
		_, err := c.ExecContext(ctx, "UPDATE a JOIN z ON z.id = ? SET a.n = a.n - 1, z.n = z.n + 1 WHERE a.id = ?", r.IntN(20000), r.IntN(20000))
		if err != nil && strings.Contains(err.Error(), "Deadlock") {
			return nil
		}
		return err
	})
	defer stop()
	cfg := config(t, s, db)
	cfg.ChunkRows = 1500
	for range 5 {
		m := newKeeper()
		mustRun(t, cfg, m)
		sum, rows := 0, 0
		for _, table := range []string{"a", "z"} {
			for _, row := range m.rows(t, table, time.UTC) {
				n, _ := strconv.Atoi(row[1])
				sum, rows = sum+n, rows+1
			}
		}
		if rows != 40000 || sum != 4_000_000 {
			t.Errorf("%d rows, sum %d", rows, sum)
		}
	}
}

// TestTablesCreatedMeanwhile is SNAP-19: tables that appear while the snapshot begins are in the copy if they were there
// at the cut, with their row if that was committed, and else come by the stream.
func TestTablesCreatedMeanwhile(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE first (id INT PRIMARY KEY)")
	var created int
	cfg := config(t, s, db)
	stop := writers(t, s, db, 1, func(ctx context.Context, c *sql.Conn, _ *rand.Rand, _ int) error {
		if _, err := c.ExecContext(ctx, fmt.Sprintf("CREATE TABLE n%d (id INT PRIMARY KEY)", created)); err != nil {
			return err
		}
		created++
		_, err := c.ExecContext(ctx, fmt.Sprintf("INSERT INTO n%d VALUES (1)", created-1))
		return err
	})
	m := newKeeper()
	r := mustRun(t, cfg, m)
	stop()
	listed := len(r.Tables) - 1
	if listed > created || r.Rows != int64(listed) && r.Rows != int64(listed)-1 {
		t.Errorf("%d tables listed, %d rows, %d created", listed, r.Rows, created)
	}
}

func lockError(t *testing.T, err error, want Obstacle, words ...string) {
	t.Helper()
	var e *LockError
	if !errors.As(err, &e) || e.Obstacle != want {
		t.Fatalf("%v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing: %v", w, err)
		}
	}
}

// TestLongStatement is SNAP-02: we do not queue behind a long statement, and nobody queues behind us.
func TestLongStatement(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE acc", "CREATE TABLE acc.t (id INT PRIMARY KEY)", "INSERT INTO acc.t VALUES (1)", "CREATE TABLE acc.u (id INT PRIMARY KEY)")
	cfg := config(t, s, "acc")
	slow, err := s.DB(t, "acc").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = slow.ExecContext(t.Context(), "SELECT SLEEP(60) FROM t") }()
	waitFor(t, s, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' AND TIME >= 1")
	cfg.LockPatience = time.Millisecond
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Busy, "a statement of user root", "end it")
	if strings.Contains(err.Error(), "SLEEP") { // OPS-13
		t.Error(err)
	}
	s.Exec(t, "acc", "SELECT * FROM t", "INSERT INTO t VALUES (2)") // nothing is locked

	// Where it could not be seen in time, the wait ends soon and says what was in the way.
	cfg.LongStatement, cfg.LockWait = time.Hour, time.Second
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Busy, "a statement of user root", "statements on the tables that it reads wait for it")
	s.Exec(t, "acc", "INSERT INTO u VALUES (3)") // t is not to be had: see lockTimeout

	// It goes on by itself once the statement has ended.
	cfg.LongStatement, cfg.LockPatience = 0, time.Minute
	killSleeper(t, s)
	mustRun(t, cfg, newKeeper())
}

func killSleeper(t *testing.T, s *mysqltest.Server) {
	t.Helper()
	var id int
	if err := s.DB(t, "").QueryRowContext(t.Context(), "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { s.Exec(t, "", fmt.Sprintf("KILL %d", id)) })
}

func waitFor(t *testing.T, s *mysqltest.Server, query string) {
	t.Helper()
	for {
		var n int
		if err := s.DB(t, "").QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A prepared XA transaction has its GTID in the set and its rows in no view: the cut waits for its end.
func TestPreparedXA(t *testing.T) { // PROTO-15
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE acc", "CREATE TABLE acc.t (id INT PRIMARY KEY)")
	cfg := config(t, s, "acc")
	s.Exec(t, "acc", "XA START 'x1'", "INSERT INTO t VALUES (10)", "XA END 'x1'", "XA PREPARE 'x1'")
	cfg.LockPatience = time.Millisecond
	_, err := run(t, cfg, newKeeper())
	lockError(t, err, PreparedXA, "1 XA transactions are prepared")
	cfg.LockPatience = time.Minute
	time.AfterFunc(400*time.Millisecond, func() { s.Exec(t, "acc", "XA COMMIT 'x1'") })
	if r := mustRun(t, cfg, newKeeper()); r.Rows != 1 {
		t.Errorf("%d rows", r.Rows)
	}
}

// CLOUD-01: a refused lock is not taken for a wrong password.
func TestLockDenied(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE USER nolock@'%' IDENTIFIED BY 'x'",
		"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT, XA_RECOVER_ADMIN ON *.* TO nolock@'%'")
	defer s.Exec(t, "", "DROP USER nolock@'%'")
	cfg := config(t, s, db)
	cfg.Source.User, cfg.Source.Password, cfg.Plan.Process = "nolock", "x", false
	cfg.Plan.Weaker = nil
	_, err := run(t, cfg, newKeeper())
	lockError(t, err, Denied, "RELOAD or FLUSH_TABLES", "nothing to do with its password")
	cfg.Plan.Weaker = []compat.LockPlan{compat.LockTables}
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Denied, "LOCK TABLES ON `"+db+"`.*")
	cfg.Plan.Weaker = []compat.LockPlan{compat.LockTables, compat.LockNone}
	if r := mustRun(t, cfg, newKeeper()); r.Lock != compat.LockNone || r.Exact || r.Tables[0].To.IsZero() { // SNAP-20
		t.Errorf("%+v", r)
	}
}

// An account with the usual grants is enough; long statements that it can't see are met by a short wait.
func TestUsualGrants(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE acc", "CREATE TABLE acc.t (id INT PRIMARY KEY)", "INSERT INTO acc.t VALUES (1)",
		"CREATE USER tm@'%' IDENTIFIED BY 'x'", "GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO tm@'%'")
	l := s.Login
	l.User, l.Password = "tm", "x"
	_, plan, err := compat.Check(t.Context(), sourceConfig(l), compat.Wishes{Database: "acc"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Source: sourceConfig(l), Plan: plan, LockPatience: time.Millisecond}
	if r := mustRun(t, cfg, newKeeper()); r.Rows != 1 {
		t.Errorf("%d rows", r.Rows)
	}
	slow, err := s.DB(t, "acc").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = slow.ExecContext(t.Context(), "SELECT SLEEP(60) FROM t") }()
	waitFor(t, s, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'")
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Busy, "within 1 s", "without PROCESS it can't be seen")
	killSleeper(t, s)
	cfg.LockPatience = time.Minute
	mustRun(t, cfg, newKeeper())
}

// SNAP-18: with fewer connections to have than wished, the copy runs on fewer.
func TestFewConnections(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE acc", "CREATE TABLE acc.t (id INT PRIMARY KEY)", "INSERT INTO acc.t VALUES (1)")
	cfg := config(t, s, "acc")
	s.Exec(t, "", "CREATE USER few@'%' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 3", "GRANT ALL ON *.* TO few@'%'")
	cfg.Source.User, cfg.Source.Password, cfg.Readers = "few", "x", 8
	if r := mustRun(t, cfg, newKeeper()); r.Rows != 1 {
		t.Errorf("%d rows", r.Rows)
	}
}

// The lock and every transaction are gone when the context ends, at any moment.
func TestCancel(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "SET cte_max_recursion_depth = 1000000", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO t SELECT i, REPEAT('x', 200) FROM "+numbers(100000))
	cfg := config(t, s, db)
	for _, after := range []time.Duration{0, 5, 10, 15, 20, 30, 50, 80, 120} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		_, err := Run(ctx, cfg, newKeeper())
		if err == nil {
			t.Logf("done within %d ms", after)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d ms: %v", after, err)
		}
		cancel()
		s.Exec(t, db, "INSERT INTO t VALUES (-1, 'not locked')", "DELETE FROM t WHERE id = -1")
	}
}
