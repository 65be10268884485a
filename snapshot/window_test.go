package snapshot

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
)

// oracle is the plainest replica: maps of rows, to which row events are applied one by one. Inside a table's window it
// puts and removes rows whatever is there; outside, every event must find exactly what it says.
type oracle struct {
	t      *testing.T
	def    map[string]*schema.Table
	rows   map[string]map[string][]string // by table and key
	result map[string]TableResult
	from   gtid.Point
}

func newOracle(t *testing.T, m *keeper, r *Result) *oracle {
	o := &oracle{t: t, def: map[string]*schema.Table{}, rows: map[string]map[string][]string{}, result: map[string]TableResult{}, from: r.Point}
	for i, def := range m.cut.Tables {
		o.def[def.Name], o.result[def.Name], o.rows[def.Name] = def, r.Tables[i], map[string][]string{}
		for _, b := range m.batches[def.Name] {
			o.put(def.Name, b)
		}
	}
	return o
}

func (o *oracle) put(table string, b *column.Batch) {
	for i := range b.Rows() {
		key := string(b.Keys.At(i))
		require.Nil(o.t, o.rows[table][key], "table %s: a row came twice in the copy", table)
		o.rows[table][key] = printRow(b, i, time.UTC)
	}
}

// follow applies everything from the copy's point up to an end.
func (o *oracle) follow(source *mysqltest.Server, from gtid.Point, end gtid.Position) {
	o.t.Helper()
	for table, r := range o.result {
		if r.Changed != "" {
			delete(o.rows, table)
		}
	}
	stream, err := binlog.Open(o.t.Context(), binlog.Config{
		Source: sourceConfig(source.Login), ServerID: 4_000_000_077, AutoPosition: !from.Set.IsZero(), Start: from, SpillDir: o.t.TempDir(),
		Follow: func(_, table string) bool { return o.rows[table] != nil },
	})
	require.NoError(o.t, err)
	defer stream.Close()
	for at := (gtid.Position{}); at.Compare(end) < 0; {
		tx, err := stream.Next(o.t.Context())
		require.NoError(o.t, err)
		for e, err := range tx.Events() {
			require.NoError(o.t, err)
			if rows, ok := e.(*binlog.RowsEvent); ok {
				o.apply(tx, rows)
			}
		}
		at = tx.End
		require.NoError(o.t, tx.Release())
	}
}

func (o *oracle) apply(tx *binlog.Transaction, e *binlog.RowsEvent) {
	table := e.Table.Table
	def, r := o.def[table], o.result[table]
	if r.Bracket {
		seen := r.From.Set.Has(tx.GTID) || r.From.Set.IsZero() && tx.End.Compare(r.From.Position) <= 0
		if seen {
			return
		}
		require.Positive(o.t, tx.End.Compare(r.To), "table %s changed inside its bracket", table)
	}
	tolerant := tx.End.Compare(r.To) <= 0
	d, err := binlog.NewDecoder(e.Table, def)
	require.NoError(o.t, err)
	before, after := column.NewBuilder(memory.DefaultAllocator, def), column.NewBuilder(memory.DefaultAllocator, def)
	require.NoError(o.t, d.Decode(e, before, after, func() error { // one row at a time
		if before.Rows() > 0 {
			o.remove(table, before, tolerant, tx)
		}
		if after.Rows() > 0 {
			o.insert(table, after, tolerant, tx)
		}
		return nil
	}))
}

func (o *oracle) one(b *column.Builder) (string, []string) {
	batch, err := b.Finish()
	require.NoError(o.t, err)
	return string(batch.Keys.At(0)), printRow(batch, 0, time.UTC)
}

func (o *oracle) remove(table string, b *column.Builder, tolerant bool, tx *binlog.Transaction) {
	key, row := o.one(b)
	if !tolerant {
		require.Equal(o.t, row, o.rows[table][key], "table %s: what %s changes is not there as it says", table, tx)
	}
	delete(o.rows[table], key)
}

func (o *oracle) insert(table string, b *column.Builder, tolerant bool, tx *binlog.Transaction) {
	key, row := o.one(b)
	if !tolerant {
		require.Nil(o.t, o.rows[table][key], "table %s: what %s inserts is there already", table, tx)
	}
	o.rows[table][key] = row
}

// equal compares with the source as it is.
func (o *oracle) equal(s *mysqltest.Server, db, table, columns string) {
	o.t.Helper()
	byKey := func(a, b []string) int { return slices.Compare(a, b) }
	got := make([][]string, 0, len(o.rows[table]))
	for _, row := range o.rows[table] {
		got = append(got, row)
	}
	want := sourceRows(o.t, s, db, table, columns, "1")
	slices.SortFunc(got, byKey)
	slices.SortFunc(want, byKey)
	sameRows(o.t, "table "+table, got, want)
}

func endOf(t *testing.T, cfg Config) gtid.Position {
	t.Helper()
	conn, err := dial(t.Context(), &cfg, gtid.UUID{})
	require.NoError(t, err)
	defer conn.Close()
	p, err := status(t.Context(), conn, cfg.Plan)
	require.NoError(t, err)
	return p.Position
}

const moverRows = 6000

// makeMoved makes three tables among which amounts are moved, and their rows to and fro, and a table without a key.
func makeMoved(t *testing.T, s *mysqltest.Server, db string) {
	t.Helper()
	s.Exec(t, db, "SET cte_max_recursion_depth = 100000",
		"CREATE TABLE ints (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)", "INSERT INTO ints SELECT i * 1000, 100 FROM "+numbers(moverRows),
		"CREATE TABLE words (id VARCHAR(40) PRIMARY KEY, n BIGINT NOT NULL)", "INSERT INTO words SELECT CONCAT(LEFT(SHA2(i, 256), 12), i), 100 FROM "+numbers(moverRows),
		"CREATE TABLE pairs (a INT NOT NULL, b INT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (a, b DESC))", "INSERT INTO pairs SELECT i % 10, i, 100 FROM "+numbers(moverRows),
		"CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n BIGINT NOT NULL)", "ANALYZE TABLE ints, words, pairs")
}

// move changes some rows in one transaction: their sum stays.
func move(ctx context.Context, c *sql.Conn, r *rand.Rand, _ int) error {
	const shift = "SET n = n + ?"
	amount := r.IntN(50)
	statements := []struct {
		sql  string
		args []any
	}{
		{"UPDATE ints " + shift + ", id = (id + ?) % 6000000 WHERE id >= ? ORDER BY id LIMIT 1", []any{-amount, r.IntN(6_000_000), r.IntN(6_000_000)}},
		{"UPDATE words " + shift + ", id = IF(? > 0, CONCAT(LEFT(SHA2(RAND(), 256), 12), 'x', ?), UPPER(id)) WHERE id >= ? ORDER BY id LIMIT 1", []any{amount, r.IntN(3), r.Uint64(), fmt.Sprintf("%x", r.Uint32())}},
		{"INSERT INTO pairs VALUES (?, ?, 7) ON DUPLICATE KEY UPDATE n = n + 7", []any{r.IntN(10), r.IntN(20000)}},
		{"DELETE FROM pairs WHERE a = ? AND b >= ? LIMIT 1", []any{r.IntN(10), r.IntN(20000)}},
		{"INSERT INTO log (n) VALUES (?)", []any{amount}},
	}
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.sql, s.args...); err != nil {
			_ = tx.Rollback()
			if strings.Contains(err.Error(), "Deadlock") || strings.Contains(err.Error(), "Duplicate") {
				return nil
			}
			return err
		}
	}
	return tx.Commit()
}

// TestWindows is SNAP-01 and SNAP-04 for copies without any lock: with writers that move rows across all of the tables'
// keys while they are read chunk by chunk, in any view, what was read and the binlog from P0 on give the source, and from
// each table's P1 on every event finds what it says.
func TestWindows(t *testing.T) {
	for name, args := range map[string][]string{"gtids": nil, "positions": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Start(t, mysqltest.Options{Own: true, Args: append(args, "--sync-binlog=1")})
			const db = "moved"
			s.Exec(t, "", "CREATE DATABASE moved")
			makeMoved(t, s, db)
			s.Exec(t, "", "CREATE DATABASE other", "CREATE TABLE other.noise (id BIGINT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))")
			locks := []compat.LockPlan{compat.LockNone, compat.LockTables}
			if args != nil {
				locks[1] = compat.LockGlobal
			}
			if soak() {
				locks = slices.Repeat(locks, 25)
			}
			for _, lock := range locks {
				movers := 8
				if lock == compat.LockTables {
					movers = 2 // writers go in front of LOCK TABLES ... READ: more of them may never let it through
				}
				stop, stopNoise := writers(t, s, db, movers, move), writers(t, s, "other", 2, makeNoise)
				cfg := config(t, s, db)
				cfg.Plan.Lock, cfg.ChunkRows, cfg.BatchRows = lock, 300, 200
				m := newKeeper()
				r := mustRun(t, cfg, m)
				atEnd := endOf(t, cfg)
				for endOf(t, cfg).Compare(atEnd) == 0 { // more to be applied strictly
					time.Sleep(time.Millisecond)
				}
				stop()
				stopNoise()
				require.Equal(t, lock, r.Lock)
				for _, table := range r.Tables {
					require.Equal(t, lock != compat.LockNone, table.To.IsZero())
					require.LessOrEqual(t, table.To.Compare(atEnd), 0)
				}
				require.Greater(t, len(m.notes["ints"]), moverRows/300-1)
				newOracle(t, m, r).check(s, db)
			}
		})
	}
}

// makeNoise writes to a table of another database: what is logged around the cut need not be seen by it.
func makeNoise(ctx context.Context, c *sql.Conn, _ *rand.Rand, _ int) error {
	_, err := c.ExecContext(ctx, "INSERT INTO noise (v) VALUES (REPEAT('x', 200))")
	return err
}

// check follows the source to its end, which must stand still, and compares the tables.
func (o *oracle) check(s *mysqltest.Server, db string) {
	o.t.Helper()
	// A writer that was stopped in the middle of a statement may still commit it.
	waitFor(o.t, s, "SELECT COUNT(*) = 0 FROM information_schema.PROCESSLIST WHERE DB = '"+db+"' AND COMMAND <> 'Sleep'")
	o.follow(s, o.from, endOf(o.t, config(o.t, s, db)))
	for table, def := range o.def {
		names := make([]string, len(def.Columns))
		for i, c := range def.Columns {
			names[i] = c.Name
		}
		if o.result[table].Changed == "" {
			o.equal(s, db, table, strings.Join(names, ", "))
		}
	}
}

// errCut ends a copy as SIGKILL would: what was not Done is gone.
var errCut = errors.New("killed")

// TestResume is SNAP-11: a copy that is killed again and again under its writers goes on each time with what is left, and
// what it has in the end and the binlog from the first P0 on give the source. It begins with each kind of lock.
func TestResume(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	makeMoved(t, s, db)
	s.Exec(t, db, "CREATE TABLE quiet (id INT PRIMARY KEY)", "INSERT INTO quiet VALUES (1), (2)")
	for _, lock := range []compat.LockPlan{compat.LockGlobal, compat.LockTables, compat.LockNone} {
		t.Run(string(lock), func(t *testing.T) {
			stop := writers(t, s, db, 2, move)
			defer stop()
			cfg := config(t, s, db)
			cfg.Plan.Lock, cfg.ChunkRows, cfg.BatchRows = lock, 300, 200
			m := newKeeper()
			var r *Result
			kills := 0
			for r == nil {
				left := 12
				m.onDone = func(string, int) error {
					m.mu.Lock()
					defer m.mu.Unlock()
					if left--; left < 0 {
						return errCut
					}
					return nil
				}
				var err error
				if r, err = run(t, cfg, m); err != nil {
					require.ErrorIs(t, err, errCut)
					kills++
					m, cfg.Resume = m.resume()
				}
			}
			stop()
			require.Greater(t, kills, 3)
			require.True(t, m.cut.Point.Equal(r.Point))
			require.False(t, r.Exact)
			newOracle(t, m, r).check(s, db)
		})
	}
}
