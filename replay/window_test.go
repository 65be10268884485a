package replay

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay/ddl"
)

// lockless is an oracle whose tables are copied piece by piece while it goes on.
type lockless struct {
	*oracle
	log     []*binlog.Transaction // from the first one on
	history []string              // the tables behind each transaction
	tables  []*piecewise
}

// piecewise is one table's copy.
type piecewise struct {
	rows   map[int]string
	chunks []int // still to be read
	to     int64 // the transaction in front of which the window ends
}

const chunkKeys = 4

func (o *lockless) step() {
	tx := o.oracle.transaction()
	if o.rnd.IntN(12) == 0 && len(o.xa) == 0 {
		o.log, o.history = append(o.log, tx), append(o.history, o.print())
		tx = o.truncate()
	}
	o.log, o.history = append(o.log, tx), append(o.history, o.print())
}

func (o *lockless) truncate() *binlog.Transaction {
	t := o.rnd.IntN(len(o.defs))
	clear(o.rows[t])
	return o.oracle.log(binlog.DDL, binlogtest.Statement("shop", "TRUNCATE TABLE "+o.defs[t].Name, time.Unix(0, 0)))
}

// copyAll reads all chunks in any order at any time. The lower bound of what they see is the transaction it gives.
func (o *lockless) copyAll() (from int64) {
	for range 3 + o.rnd.IntN(20) {
		o.step()
	}
	from = max(0, o.number-int64(o.rnd.IntN(8)))
	for len(o.xa) > 0 {
		o.step()
	}
	var left []int
	for t := range o.defs {
		o.tables = append(o.tables, &piecewise{rows: map[int]string{}, chunks: o.rnd.Perm(keySpace / chunkKeys)})
		left = append(left, t)
	}
	for len(left) > 0 {
		for range o.rnd.IntN(4) {
			o.step()
		}
		i := o.rnd.IntN(len(left))
		if o.readChunk(left[i]) {
			left = slices.Delete(left, i, i+1)
		}
	}
	for range 20 {
		o.step()
	}
	return from
}

// readChunk is true when the table is complete.
func (o *lockless) readChunk(t int) bool {
	p := o.tables[t]
	first := p.chunks[0] * chunkKeys
	for k := first; k < first+chunkKeys; k++ {
		if v, ok := o.rows[t][k]; ok {
			p.rows[k] = v
		}
	}
	p.chunks = p.chunks[1:]
	if len(p.chunks) > 0 {
		return false
	}
	for range o.rnd.IntN(3) {
		o.step()
	}
	p.to = o.number + 1
	return true
}

func place(n int64) gtid.Position {
	return gtid.Position{File: "binlog.000001", Offset: uint64(n * 100)}
}

// store gives what the copy left.
func (o *lockless) store(t *testing.T, from int64) *memoryStore {
	m := newMemory()
	m.state = o.state()
	m.state.Point.Set = gtid.Set{}
	for n := range from {
		m.state.Point.Set = m.state.Point.Set.Add(gtid.GTID{Source: testUUID, Number: n + 1})
	}
	for i, d := range o.defs {
		w := &Window{To: place(o.tables[i].to)}
		m.state.Tables[d.Name] = Table{Def: d, Live: true, Window: w}
		m.tables[d.Name] = &memoryTable{def: d, rows: map[string]map[uint32]string{}, window: w}
		rows := make([]binlogtest.Row, 0, keySpace)
		for _, k := range slices.Sorted(maps.Keys(o.tables[i].rows)) {
			rows = append(rows, binlogtest.Row{k, o.tables[i].rows[k]})
		}
		if len(rows) == 0 {
			continue
		}
		f := newFold(d)
		_, err := f.add(binlogtest.Insert(o.maps[i], d, rows...))
		require.NoError(t, err)
		changes, _, err := f.changes()
		require.NoError(t, err)
		for n := range changes.Puts.Rows() {
			m.tables[d.Name].rows[string(changes.Puts.Keys.At(n))] = rowOf(changes.Puts, n)
		}
	}
	return m
}

// check compares the tables that stand at the store's point with the source's at that point.
func (o *lockless) check(t *testing.T, m *memoryStore, seed uint64) (converging int) {
	n := int64(m.state.Point.Set.Count())
	if n == 0 {
		return len(o.defs)
	}
	want, got := strings.Split(o.history[n-1], "\n"), strings.Split(m.print(), "\n")
	for i := range o.defs {
		if m.state.Tables[o.defs[i].Name].Window != nil {
			require.Less(t, n+1, o.tables[i].to, "seed %d: a window is left open", seed)
			converging++
			continue
		}
		require.Equal(t, want[i], got[i], "seed %d, at %d, behind the window that ends at %d", seed, n, o.tables[i].to)
	}
	return converging
}

// SNAP-04, KEY-02: tables copied without a lock, in pieces read at any time and in any order, with windows of their own,
// are the source's as soon as their windows are passed, whatever the batches, failed commits and restarts.
func TestWindowsConverge(t *testing.T) {
	for seed := range uint64(400) {
		o := &lockless{oracle: newOracle(seed)}
		from := o.copyAll()
		m := o.store(t, from)
		broken := errors.New("the target fails")
		m.fail = func(string) error {
			if o.rnd.IntN(40) == 0 {
				return broken
			}
			return nil
		}
		cfg := Config{Database: "shop", Server: ddl.Server{Version: 90704}, Budget: 1 + o.rnd.IntN(400)}
		r := New(cfg, m, m.state)
		for {
			n := m.state.Point.Set.Count()
			left := o.log[n:]
			if len(left) == 0 {
				break
			}
			err := r.Apply(t.Context(), left[:1+o.rnd.IntN(min(9, len(left)))])
			if err != nil {
				require.ErrorIs(t, err, broken, "seed %d", seed)
			}
			o.check(t, m, seed)
			if err != nil || o.rnd.IntN(4) == 0 {
				r = New(cfg, m, m.state)
			}
		}
		require.Zero(t, o.check(t, m, seed), "seed %d", seed)
		require.Equal(t, o.print(), m.print(), "seed %d", seed)
	}
}

// What diverges behind a window is found at its transaction, wherever the batch that passes the window's end begins and
// ends; the rows in front of it are the source's.
func TestDivergenceBehindAWindow(t *testing.T) {
	for seed := range uint64(300) {
		o := &lockless{oracle: newOracle(seed)}
		from := o.copyAll()
		bad := o.rnd.IntN(len(o.defs))
		at := o.tables[bad].to + int64(o.rnd.IntN(4)) // the first transaction behind the window, or soon after
		fake := *o.log[at-1]
		o.log[at-1] = binlogtest.Transaction(binlog.Rows, fake.GTID, fake.Start, fake.End,
			binlogtest.Insert(o.maps[bad], o.defs[bad], binlogtest.Row{99, "x"}, binlogtest.Row{99, "y"}))
		m := o.store(t, from)
		r := New(Config{Database: "shop", Server: ddl.Server{Version: 90704}}, m, m.state)
		first := int(from) + o.rnd.IntN(int(at-from))
		require.NoError(t, r.Apply(t.Context(), o.log[from:first]))
		require.NoError(t, r.Apply(t.Context(), o.log[first:at]))
		table := m.tables[o.defs[bad].Name]
		require.Contains(t, table.reason, "diverged", "seed %d", seed)
		require.Equal(t, uint64(at-1), uint64(table.at.Set.Count()), "seed %d", seed)
		want := strings.Split(o.history[at-2], "\n")[bad]
		require.Equal(t, fmt.Sprintf("%s quarantined at %s", want, short(table.at)), strings.Split(m.print(), "\n")[bad], "seed %d", seed)
	}
}

// Ahead finds the last statement that held a table for itself, and no other.
func TestAhead(t *testing.T) {
	o := newOracle(1)
	a := NewAhead(Config{Database: "shop", Server: ddl.Server{Version: 90704}}, o.state())
	for _, sql := range []string{
		"CREATE TABLE t0 (id INT PRIMARY KEY)", "ALTER TABLE t0 ADD v VARCHAR(20)", "INSERT INTO t0 VALUES (1, 'a')", "ANALYZE TABLE t0",
		"CREATE TABLE IF NOT EXISTS t0 (id INT PRIMARY KEY)", "TRUNCATE t1", "RENAME TABLE t1 TO x", "DROP TABLE other.t1", "CREATE INDEX i ON t2 (v)",
		"DROP TABLE IF EXISTS t2, t9", "ALTER DATABASE shop CHARSET latin1", "WHATEVER t2",
	} {
		require.NoError(t, a.Take(o.log(binlog.DDL, binlogtest.Statement("shop", sql, time.Unix(0, 0)))))
	}
	require.Equal(t, place(3), a.From("t0"))
	require.Equal(t, place(8), a.From("t1"))
	require.Equal(t, place(11), a.From("t2"))
	require.Zero(t, a.From("t3"))
}

// A table that was made beside the stream is followed from the next batch on.
func TestAdopt(t *testing.T) {
	m := newMemory()
	r, tx := overlapping(m)
	require.NoError(t, r.Start(t.Context(), tx(0), nil))
	other := newOracle(1)
	def := other.defs[0]
	w := &Window{To: place(3)}
	require.NoError(t, r.Adopt(def.Name, Table{Def: def, Live: true, Window: w}))
	m.tables[def.Name] = &memoryTable{def: def, rows: map[string]map[uint32]string{}, window: w}
	require.NoError(t, r.Apply(t.Context(), []*binlog.Transaction{numbered(1, binlogtest.Delete(other.maps[0], def, binlogtest.Row{5, "x"}))}))
	require.Nil(t, m.tables[def.Name].window, "the end of the transaction is behind the window")
	require.NoError(t, r.Apply(t.Context(), []*binlog.Transaction{numbered(2, binlogtest.Delete(other.maps[0], def, binlogtest.Row{5, "x"}))}))
	require.Contains(t, m.tables[def.Name].reason, "diverged")
}
