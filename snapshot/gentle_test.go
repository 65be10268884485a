package snapshot

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// TestBucket: all readers together stay below the rate, and come near it.
func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket{perSecond: 1000}
		begun := time.Now()
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for range 100 {
					if err := b.take(t.Context(), 25); err != nil {
						t.Error(err)
					}
				}
			})
		}
		readers.Wait()
		elapsed := time.Since(begun)
		require.InDelta(t, 10, elapsed.Seconds(), 0.2)
		require.NoError(t, (&bucket{}).take(t.Context(), 1<<40))
		require.Zero(t, time.Since(begun)-elapsed)
	})
}

// TestBoundedRate: at a bounded rate, chunks are short enough not to hold a lock for long.
func TestBoundedRate(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t SELECT i FROM "+numbers(900))
	cfg := config(t, s, db)
	cfg.Plan.Lock, cfg.RowsPerSecond = compat.LockNone, 400
	m := newKeeper()
	m.onDone = func(_ string, rows int) error {
		assert.LessOrEqual(t, rows, 400*5/4)
		return nil
	}
	require.EqualValues(t, 900, mustRun(t, cfg, m).Rows)
}

// TestBusySource: while many statements run on the source, one reader works at a time, and says so.
func TestBusySource(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE acc")
	makeMoved(t, s, "acc")
	for range 5 {
		sleeper, err := s.DB(t, "acc").Conn(t.Context())
		require.NoError(t, err)
		go func() { _, _ = sleeper.ExecContext(t.Context(), "DO SLEEP(300)") }() // killed below
	}
	cfg := config(t, s, "acc")
	cfg.Plan.Lock, cfg.ChunkRows, cfg.Limits.ThreadsRunning = compat.LockNone, 300, 3
	said := make(chan string, 100)
	cfg.Slowed = func(reason string) { said <- reason }
	var mu sync.Mutex
	var reasons []string
	m := newKeeper()
	m.onDone = func(string, int) error {
		mu.Lock()
		defer mu.Unlock()
		switch len(reasons) {
		case 0:
			reasons = append(reasons, <-said)
		case 1:
			for _, id := range sessionsOf(t, s, "root", "User sleep") {
				_, _ = s.DB(t, "").ExecContext(t.Context(), fmt.Sprintf("KILL %d", id))
			}
			reasons = append(reasons, <-said)
		}
		return nil
	}
	r := mustRun(t, cfg, m)
	require.EqualValues(t, 3*moverRows, r.Rows)
	require.Len(t, reasons, 2)
	require.Contains(t, reasons[0], "statements of others run at once on the source (limit 3)")
	require.Empty(t, reasons[1])
}

// TestStaleStatistics: estimates that are wrong by orders of magnitude make neither giant nor many tiny chunks.
func TestStaleStatistics(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	for _, table := range []string{"low", "high"} {
		s.Exec(t, db, "SET cte_max_recursion_depth = 100000", "CREATE TABLE "+table+" (id VARCHAR(40) PRIMARY KEY, v VARCHAR(100)) STATS_AUTO_RECALC=0", "ANALYZE TABLE "+table,
			"INSERT INTO "+table+" SELECT CONCAT(LEFT(SHA2(i, 256), 20), i), REPEAT('x', 100) FROM "+numbers(8000))
	}
	s.Exec(t, db, "UPDATE mysql.innodb_table_stats SET n_rows = 100000000, clustered_index_size = 10000000 WHERE table_name = 'high' AND database_name = '"+db+"'", "FLUSH TABLES low, high")
	cfg := config(t, s, db)
	cfg.Plan.Lock, cfg.ChunkRows = compat.LockNone, 500
	m := newKeeper()
	mustRun(t, cfg, m)
	for _, table := range []string{"low", "high"} {
		all, err := takeOver(m.cut.Tables[0], m.notes[table])
		require.NoError(t, err)
		require.EqualValues(t, 8000, all.rows)
		require.Less(t, len(all.notes), 60, table)
		for _, n := range all.notes {
			require.LessOrEqual(t, n.Rows, int64(500))
		}
	}
}

// TestRunningTail: a writer that appends faster than we read does not keep us for ever.
func TestRunningTail(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)", "INSERT INTO t (v) SELECT i FROM "+numbers(1000))
	cfg := config(t, s, db)
	cfg.Plan.Lock, cfg.ChunkRows = compat.LockNone, 200
	m := newKeeper()
	m.onDone = func(string, int) error {
		s.Exec(t, db, "INSERT INTO t (v) SELECT i FROM "+numbers(500))
		return nil
	}
	r := mustRun(t, cfg, m)
	newOracle(t, m, r).check(s, db)
}

// TestWideRows is SNAP-14: rows larger than the estimate said end a chunk early, in the view that it was read in.
func TestWideRows(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) STATS_AUTO_RECALC=0", "ANALYZE TABLE t", "INSERT INTO t SELECT i, REPEAT('x', 40000) FROM "+numbers(300),
		"CREATE TABLE fat (id INT PRIMARY KEY, b LONGBLOB) STATS_AUTO_RECALC=0", "ANALYZE TABLE fat", "INSERT INTO fat SELECT i, REPEAT('x', 3000000) FROM "+numbers(4))
	for _, lock := range []compat.LockPlan{compat.LockGlobal, compat.LockNone} {
		cfg := config(t, s, db)
		cfg.Plan.Lock, cfg.ChunkBytes, cfg.Readers = lock, 1<<20, 2
		m := newKeeper()
		r := mustRun(t, cfg, m)
		require.EqualValues(t, 304, r.Rows)
		require.Greater(t, len(m.notes["t"]), 5)
		require.Greater(t, len(m.notes["fat"]), 1)
		for _, table := range r.Tables {
			require.Equal(t, lock == compat.LockGlobal, table.To.IsZero(), "the view was lost")
		}
	}
}

// TestBrackets: a table without a key is read in one view, between two points; when nobody wrote to it between them, it is
// right. CLOUD-12: one with a generated invisible key is an ordinary one.
func TestBrackets(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	makeMoved(t, s, db)
	s.Exec(t, db, "SET sql_generate_invisible_primary_key = ON", "CREATE TABLE gipk (w INT)", "INSERT INTO gipk SELECT i % 10 FROM "+numbers(900),
		"SET sql_generate_invisible_primary_key = OFF", "CREATE TABLE keyless (a INT, b VARCHAR(20))", "INSERT INTO keyless SELECT i, 'x' FROM "+numbers(900),
		"DELETE FROM keyless WHERE a = 5")
	stop := writers(t, s, db, 2, move)
	defer stop()
	each(t, func(t *testing.T, lock compat.LockPlan) {
		cfg := config(t, s, db)
		cfg.Plan.Lock, cfg.ChunkRows, cfg.Plan.MayLockTables = lock, 200, false
		m := newKeeper()
		r := mustRun(t, cfg, m)
		for _, table := range r.Tables {
			require.Equal(t, table.Name == "keyless" && lock == compat.LockNone, table.Bracket, table.Name)
		}
		require.Len(t, m.notes["keyless"], 1)
		require.Greater(t, len(m.notes["gipk"]), 4)
		require.Equal(t, "my_row_id", tableNamed(m.cut.Tables, "gipk").Columns[0].Name)
		all := 0
		for _, b := range m.batches["keyless"] {
			all += b.Rows()
		}
		require.Equal(t, 899, all)
		if lock == compat.LockNone {
			for _, table := range r.Tables {
				if table.Bracket {
					require.False(t, table.From.Set.IsZero())
					require.True(t, table.From.Set.Contains(r.Point.Set))
					require.GreaterOrEqual(t, table.To.Compare(table.From.Position), 0)
				}
			}
		}
		// A resumed copy keeps the bracket of then.
		var resumed *keeper
		resumed, cfg.Resume = m.resume()
		again := mustRun(t, cfg, resumed)
		require.Zero(t, again.Rows)
		for i, table := range again.Tables {
			require.Equal(t, r.Tables[i].Bracket, table.Bracket)
			if table.Bracket {
				require.Equal(t, r.Tables[i].To, table.To)
			}
		}
	})
}

// TestBusyKeyless: a table without a key to which others write all the time has an exact copy when it may be locked for
// the moment at which its view is opened.
func TestBusyKeyless(t *testing.T) {
	for name, args := range map[string][]string{"gtids": nil, "positions": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Shared(t)
			if args != nil {
				s = mysqltest.Start(t, mysqltest.Options{Args: args})
			}
			s.Exec(t, "", "DROP DATABASE IF EXISTS acc", "CREATE DATABASE acc", "CREATE TABLE acc.keyless (a BIGINT)", "INSERT INTO acc.keyless SELECT -i FROM "+numbers(900))
			stop := writers(t, s, "acc", 4, func(ctx context.Context, c *sql.Conn, r *rand.Rand, _ int) error {
				_, err := c.ExecContext(ctx, "INSERT INTO keyless VALUES (?)", int64(r.Uint64()>>1)) // values that no other row has
				return err
			})
			defer stop()
			cfg := config(t, s, "acc")
			cfg.Plan.Lock = compat.LockNone
			require.True(t, cfg.Plan.MayLockTables)
			m := newKeeper()
			r := mustRun(t, cfg, m)
			stop()
			require.True(t, r.Tables[0].Bracket && r.Tables[0].To == r.Tables[0].From.Position, "%+v", r.Tables)
			require.NotEqual(t, r.Point, r.Tables[0].From)
			newOracle(t, m, r).check(s, "acc")
		})
	}
}
