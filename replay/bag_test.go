package replay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay/ddl"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// applyBag is Apply for a table without a key.
func (t *memoryTarget) applyBag(mt *memoryTable, c *storage.Changes) error {
	if c.Tolerant || c.Checks.Len() > 0 || len(c.Removals) != c.Deletes.Len() {
		panic("changes of a table with a key")
	}
	going := map[string]bool{}
	for i, r := range c.Removals {
		hash := string(c.Deletes.At(i))
		var there []string
		for _, k := range slices.Sorted(maps.Keys(mt.rows)) {
			if strings.HasPrefix(k, hash) {
				there = append(there, k)
			}
		}
		if _, again := going[hash]; again || r.Gone > r.There || r.There == 0 {
			panic(fmt.Sprintf("removal %+v of a hash", r))
		}
		going[hash] = r.Gone > 0
		if len(there) < r.There {
			return &storage.DivergenceError{Table: mt.def.FullName(), Key: c.Deletes.At(i), Expected: storage.MustExist}
		}
		for _, k := range there[:r.Gone] {
			delete(mt.rows, k)
		}
	}
	for i := range rowsOf(c) {
		hash := string(c.Puts.Keys.At(i))
		if going[hash] {
			panic("a row came and an equal one went")
		}
		t.m.number++
		mt.rows[fmt.Sprintf("%s#%08d", hash, t.m.number)] = rowOf(c.Puts, i)
	}
	return t.note("apply %s: %d puts, %d deletes", mt.def.Name, rowsOf(c), c.Deletes.Len())
}

func rowsOf(c *storage.Changes) int {
	if c.Puts == nil {
		return 0
	}
	return c.Puts.Rows()
}

func bagDefinition() *schema.Table {
	return &schema.Table{Database: "shop", Name: "np", Version: 1, NextColumnID: 3, Columns: []schema.Column{
		{ID: 1, Name: "a", Type: schema.Int, Nullable: true, ColumnType: "int"},
		{ID: 2, Name: "b", Type: schema.VarChar, Length: 9, Charset: "utf8mb4", Nullable: true, ColumnType: "varchar(9)"}}}
}

// KEY-03: equal rows are counted, and one of them is as good as another; batches of any size and a budget of any size
// give the same rows.
func TestBagOracle(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		def := bagDefinition()
		table := binlogtest.Table(def)
		m := newMemory()
		m.tables[def.Name] = &memoryTable{def: def, rows: map[string]map[uint32]string{}}
		m.state = State{Tables: map[string]Table{def.Name: {Def: def, Live: true}}}
		r := New(Config{Database: "shop", Server: ddl.Server{Version: 90704}, Budget: 1 + rnd.IntN(600)}, m, m.state)
		source := map[[2]int]int{} // rows, counted; 0 stands for NULL
		row := func(k [2]int) binlogtest.Row {
			out := binlogtest.Row{nil, nil}
			if k[0] > 0 {
				out[0] = k[0]
			}
			if k[1] > 0 {
				out[1] = fmt.Sprint("v", k[1])
			}
			return out
		}
		change := func() binlog.Event {
			k, to := [2]int{rnd.IntN(3), rnd.IntN(2)}, [2]int{rnd.IntN(3), rnd.IntN(2)}
			n := 1 + rnd.IntN(4)
			var rows []binlogtest.Row
			switch have := min(n, source[k]); {
			case have == 0 || rnd.IntN(3) == 0:
				for range n {
					source[k]++
					rows = append(rows, row(k))
				}
				return binlogtest.Insert(table, def, rows...)
			case rnd.IntN(2) == 0:
				for range have {
					source[k]--
					rows = append(rows, row(k))
				}
				return binlogtest.Delete(table, def, rows...)
			default: // some of the equal rows change, perhaps to what they are
				for range have {
					source[k]--
					source[to]++
					rows = append(rows, row(k), row(to))
				}
				return binlogtest.Update(table, def, rows...)
			}
		}
		number := int64(0)
		for range 40 {
			var txs []*binlog.Transaction
			for range 1 + rnd.IntN(4) {
				var events []binlog.Event
				for range 1 + rnd.IntN(5) {
					events = append(events, change())
				}
				number++
				at := func(n int64) gtid.Position { return gtid.Position{File: "b.000001", Offset: uint64(n * 100)} }
				txs = append(txs, binlogtest.Transaction(binlog.Rows, gtid.GTID{Source: testUUID, Number: number}, at(number), at(number+1), events...))
			}
			require.NoError(t, r.Apply(t.Context(), txs), "seed %d", seed)
			require.True(t, m.state.Tables[def.Name].Live, "seed %d", seed)
			var want, got []string
			for k, n := range source {
				want = append(want, slices.Repeat([]string{printCells(row(k))}, n)...)
			}
			for _, cells := range m.tables[def.Name].rows {
				got = append(got, printRow(def, cells))
			}
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, "seed %d", seed)
		}
	}
}

func printCells(row binlogtest.Row) string {
	out := make([]string, len(row))
	for i, v := range row {
		out[i] = "NULL"
		if v != nil {
			out[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(out, ", ")
}

// What comes and goes within a batch needs nothing of the store; what goes and comes again needs its rows there, but
// changes none; more deletes than rows are a divergence, whatever is inserted afterwards.
func TestBagNetsOut(t *testing.T) {
	def := bagDefinition()
	table := binlogtest.Table(def)
	x, y := binlogtest.Row{1, "x"}, binlogtest.Row{nil, nil}
	changes := func(events ...*binlog.RowsEvent) *storage.Changes {
		f := newFold(def)
		for _, e := range events {
			_, err := f.add(e)
			require.NoError(t, err)
		}
		c, _, err := f.changes()
		require.NoError(t, err)
		require.Zero(t, f.bytes())
		return c
	}
	rows := func(e binlog.Event) *binlog.RowsEvent { return e.(*binlog.RowsEvent) }
	insert := func(r ...binlogtest.Row) *binlog.RowsEvent { return rows(binlogtest.Insert(table, def, r...)) }
	remove := func(r ...binlogtest.Row) *binlog.RowsEvent { return rows(binlogtest.Delete(table, def, r...)) }

	c := changes(insert(x, x, y), remove(x, y, x))
	require.Zero(t, rowsOf(c)+c.Deletes.Len())
	c = changes(remove(x, x), insert(x), remove(y))
	require.Zero(t, rowsOf(c))
	require.Equal(t, []storage.Removal{{Gone: 1, There: 2}, {Gone: 1, There: 1}}, c.Removals)
	c = changes(remove(x), insert(x, x, y))
	require.Equal(t, 2, rowsOf(c))
	require.Equal(t, []storage.Removal{{Gone: 0, There: 1}}, c.Removals)
	c = changes(rows(binlogtest.Update(table, def, x, x)))
	require.Zero(t, rowsOf(c))
	require.Equal(t, []storage.Removal{{Gone: 0, There: 1}}, c.Removals)
}
