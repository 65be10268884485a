package snapshot

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

// each runs a test with each kind of cut.
func each(t *testing.T, test func(t *testing.T, lock compat.LockPlan)) {
	t.Helper()
	for _, lock := range []compat.LockPlan{compat.LockGlobal, compat.LockNone} {
		t.Run(string(lock), func(t *testing.T) { test(t, lock) })
	}
}

// cutConn is a connection that ends after some bytes, as if a proxy had ended it.
type cutConn struct {
	net.Conn
	left int
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		_ = c.Conn.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// TestConnectionsCut is SNAP-11 and SNAP-16: the copy goes on when its connections end in the middle of chunks, at any byte,
// and no chunk that was cut off passes for complete.
func TestConnectionsCut(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	makeMoved(t, s, db)
	each(t, func(t *testing.T, lock compat.LockPlan) {
		stop := writers(t, s, db, 2, move)
		defer stop()
		cfg := config(t, s, db)
		cfg.Plan.Lock, cfg.ChunkRows, cfg.BatchRows = lock, 300, 200
		var dials atomic.Int64
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(7, 7))
		cfg.Source.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			mu.Lock()
			defer mu.Unlock()
			if n := dials.Add(1); err != nil || n <= 3 || n > 25 { // the cut is made on whole ones
				return conn, err
			}
			return &cutConn{Conn: conn, left: 10_000 + r.IntN(20_000)}, nil
		}
		cfg.Source.TLS = wire.TLS{Mode: wire.TLSDisabled, AskServerKey: true} // TLS gives nothing of a record that is cut off
		again := map[string]int64{}
		cfg.Progress = func(p Progress) { again[p.Table] = p.Again }
		m := newKeeper()
		result := mustRun(t, cfg, m)
		require.Greater(t, dials.Load(), int64(3))
		require.Positive(t, again["ints"]+again["words"]+again["pairs"])
		stop()
		newOracle(t, m, result).check(s, db)
	})
}

// TestKilled is SNAP-16: KILL QUERY and KILL CONNECTION in the middle of chunks, and time limits of the server.
func TestKilled(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--max-execution-time=1", "--net-write-timeout=1", "--wait-timeout=1", "--interactive-timeout=1"}})
	const db = "killed"
	s.Exec(t, "", "CREATE DATABASE killed", "CREATE USER tm@'%' IDENTIFIED BY 'x'", "GRANT ALL ON *.* TO tm@'%'")
	makeMoved(t, s, db)
	each(t, func(t *testing.T, lock compat.LockPlan) {
		cfg := config(t, s, db)
		cfg.Plan.Lock, cfg.ChunkRows, cfg.BatchRows = lock, 1500, 100
		cfg.Source.User, cfg.Source.Password = "tm", "x"
		m := newKeeper()
		var adds atomic.Int64
		m.onAdd = func(string) {
			n := adds.Add(1)
			if n%20 != 5 || n > 100 {
				return
			}
			what := "QUERY"
			if n%40 == 25 {
				what = "CONNECTION"
			}
			for _, id := range sessionsOf(t, s, "tm", "") {
				_, _ = s.DB(t, "").ExecContext(t.Context(), fmt.Sprintf("KILL %s %d", what, id)) // it may be gone
			}
		}
		r := mustRun(t, cfg, m)
		require.EqualValues(t, 3*moverRows, r.Rows)
		s.Exec(t, "", "SET GLOBAL max_execution_time = 0") // the client that reads it again has no other
		newOracle(t, m, r).check(s, db)
		s.Exec(t, "", "SET GLOBAL max_execution_time = 1")
	})
}

// sessionsOf lists the sessions of a user that are in a state, "" for any. It is no SELECT, which has a time limit here.
func sessionsOf(t *testing.T, s *mysqltest.Server, user, state string) (ids []int64) {
	t.Helper()
	rows, err := s.DB(t, "").QueryContext(t.Context(), "SHOW PROCESSLIST")
	if err != nil {
		t.Error(err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var by, in sql.NullString
		var rest [5]any
		if err := rows.Scan(&id, &by, &rest[0], &rest[1], &rest[2], &rest[3], &in, &rest[4]); err != nil {
			t.Error(err)
			return nil
		}
		if by.String == user && (state == "" || in.String == state) {
			ids = append(ids, id)
		}
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	return ids
}

// TestConnectionsTakenAway is SNAP-18: readers whose connections end and who get no new ones retire; one goes on.
func TestConnectionsTakenAway(t *testing.T) {
	s := shared(t, "few")
	defer s.Exec(t, "", "DROP USER few@'%'")
	s.Exec(t, "", "CREATE USER few@'%' IDENTIFIED BY 'x'", "GRANT ALL ON *.* TO few@'%'")
	makeMoved(t, s, "few")
	cfg := config(t, s, "few")
	cfg.Plan.Lock, cfg.ChunkRows, cfg.BatchRows, cfg.Readers = compat.LockNone, 300, 100, 6
	cfg.Source.User, cfg.Source.Password = "few", "x"
	m := newKeeper()
	var once sync.Once
	m.onAdd = func(string) {
		once.Do(func() {
			s.Exec(t, "", "ALTER USER few@'%' WITH MAX_USER_CONNECTIONS 2")
			for _, id := range sessionsOf(t, s, "few", "") {
				_, _ = s.DB(t, "").ExecContext(t.Context(), fmt.Sprintf("KILL %d", id))
			}
		})
	}
	r := mustRun(t, cfg, m)
	newOracle(t, m, r).check(s, "few")
}

// TestChangedWithoutLock is SNAP-03 without a lock: the changed table's copy is worthless, and the others' are not.
func TestChangedWithoutLock(t *testing.T) {
	for name, ddl := range map[string]string{
		"instant": "ALTER TABLE late ADD COLUMN c2 INT, ALGORITHM=INSTANT", "truncate": "TRUNCATE TABLE late", "drop": "DROP TABLE late",
		"exchange": "RENAME TABLE late TO x, twin TO late, x TO twin", "half read": "ALTER TABLE big ADD COLUMN c2 INT FIRST",
	} {
		t.Run(name, func(t *testing.T) {
			s, db := mysqltest.FreshDatabase(t)
			s.Exec(t, db, "SET cte_max_recursion_depth = 1000000", "CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO big SELECT i, 'v' FROM "+numbers(5000),
				"CREATE TABLE late (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO late VALUES (1, 'x')", "CREATE TABLE twin LIKE late", "CREATE TABLE fine (id INT PRIMARY KEY)",
				"INSERT INTO fine VALUES (1)", "ANALYZE TABLE big, late")
			cfg := config(t, s, db)
			cfg.Plan.Lock, cfg.Readers, cfg.ChunkRows = compat.LockNone, 1, 1000
			m := newKeeper()
			var once sync.Once
			m.onDone = func(string, int) error {
				once.Do(func() { s.Exec(t, db, ddl) })
				return nil
			}
			r := mustRun(t, cfg, m)
			var changed []string
			for _, table := range r.Tables {
				if table.Changed != "" {
					changed = append(changed, table.Name)
				}
			}
			want := map[string][]string{"half read": {"big"}, "exchange": {"late", "twin"}}[name]
			if want == nil {
				want = []string{"late"}
			}
			require.Equal(t, want, changed)
			newOracle(t, m, r).check(s, db)
		})
	}
}

// TestGivesWay is SNAP-05: a definition change does not wait for a chunk that takes long, be it that the sink is slow or
// that it hangs.
func TestGivesWay(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprint("hangs ", hangs), func(t *testing.T) {
			s, db := mysqltest.FreshDatabase(t)
			s.Exec(t, db, "SET cte_max_recursion_depth = 1000000", "CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(2000))", "INSERT INTO big SELECT i, REPEAT('v', 2000) FROM "+numbers(20000),
				"CREATE TABLE fine (id INT PRIMARY KEY)", "INSERT INTO fine VALUES (1)")
			cfg := config(t, s, db)
			cfg.Plan.Lock, cfg.Readers, cfg.BatchRows, cfg.Limits.LockWaits = compat.LockNone, 1, 20, time.Second
			m := newKeeper()
			altered := make(chan struct{})
			var once sync.Once
			m.onAdd = func(table string) {
				if table != "big" {
					return
				}
				once.Do(func() {
					go func() {
						defer close(altered)
						s.Exec(t, db, "SET lock_wait_timeout = 300", "ALTER TABLE big ADD COLUMN c INT")
					}()
				})
				if hangs {
					<-altered
				}
				select {
				case <-altered:
				case <-time.After(50 * time.Millisecond): // 1000 of them would be too many
				}
			}
			r := mustRun(t, cfg, m)
			select {
			case <-altered:
			default:
				t.Error("the copy was faster")
			}
			require.NotEmpty(t, r.Tables[0].Changed)
			require.Empty(t, r.Tables[1].Changed)
		})
	}
}

// TestResumeOfChanged: what was changed while nobody copied is found, and the rest goes on.
func TestResumeOfChanged(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	tables := []string{"altered", "begun", "dropped", "exchanged", "fine", "truncated"}
	for _, table := range tables {
		s.Exec(t, db, "SET cte_max_recursion_depth = 1000000", "CREATE TABLE "+table+" (id INT PRIMARY KEY, v INT)", "INSERT INTO "+table+" SELECT i, 1 FROM "+numbers(1000))
	}
	s.Exec(t, db, "CREATE TABLE twin LIKE exchanged")
	cfg := config(t, s, db)
	cfg.ChunkRows, cfg.Readers = 300, 1
	cfg.Plan.Filter = func(table string) bool { return table != "twin" }
	m := newKeeper()
	m.onDone = func(table string, _ int) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if table == "begun" && len(m.notes["begun"]) == 2 {
			return errCut
		}
		return nil
	}
	_, err := run(t, cfg, m)
	require.ErrorIs(t, err, errCut)
	m, cfg.Resume = m.resume()
	s.Exec(t, db, "ALTER TABLE altered MODIFY v BIGINT", "DROP TABLE dropped", "RENAME TABLE exchanged TO x, twin TO exchanged", "TRUNCATE TABLE truncated", "CREATE TABLE later (id INT PRIMARY KEY)",
		"INSERT INTO fine VALUES (-1, 2)", "UPDATE begun SET v = 7")
	r := mustRun(t, cfg, m)
	require.Len(t, r.Tables, len(tables))
	for _, table := range r.Tables {
		require.Equal(t, table.Name == "fine" || table.Name == "begun" || len(cfg.Resume.Chunks[table.Name]) == 0 && (table.Name == "truncated" || table.Name == "exchanged"), table.Changed == "", table.Name)
	}
	newOracle(t, m, r).check(s, db)

	other := *cfg.Resume
	other.Cut.Server[3]++
	cfg.Resume = &other
	_, err = Run(t.Context(), cfg, newKeeper())
	var otherServer *otherServerError
	require.ErrorAs(t, err, &otherServer)
}

// TestOneTable: a table is copied by itself, as for a table that is copied anew beside the stream.
func TestOneTable(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)", "CREATE TABLE b (id INT PRIMARY KEY)")
	cfg := config(t, s, db)
	cfg.Plan.Lock, cfg.Tables = compat.LockNone, []string{"a"}
	r := mustRun(t, cfg, newKeeper())
	require.Len(t, r.Tables, 1)
	require.EqualValues(t, 2, r.Rows)
	require.False(t, r.Listed.IsZero() || r.Tables[0].To.Compare(r.Listed) < 0)
	cfg.Tables = []string{"a", "nosuch"}
	_, err := Run(t.Context(), cfg, newKeeper())
	require.ErrorIs(t, err, ErrSchemaChanged)
	require.ErrorContains(t, err, "nosuch")
}

// TestViewsGivenUp: an exact cut whose read views get too old, or keep too long a history, goes on with windows.
func TestViewsGivenUp(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	makeMoved(t, s, db)
	for name, limits := range map[string]Limits{"age": {ViewAge: time.Nanosecond}, "history": {HistoryLength: 1}} {
		t.Run(name, func(t *testing.T) {
			stop := writers(t, s, db, 2, move)
			defer stop()
			cfg := config(t, s, db)
			cfg.ChunkRows, cfg.Limits = 500, limits
			slowed := make(chan string, 100)
			cfg.Slowed = func(reason string) { slowed <- reason }
			m := newKeeper()
			var once sync.Once
			m.onDone = func(string, int) error {
				if name == "history" {
					once.Do(func() { assert.Contains(t, <-slowed, "history list") })
				}
				return nil
			}
			r := mustRun(t, cfg, m)
			stop()
			require.True(t, r.Exact)
			require.True(t, slices.ContainsFunc(r.Tables, func(t TableResult) bool { return !t.To.IsZero() }))
			newOracle(t, m, r).check(s, db)
		})
	}
}
