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
)

// partialSource is a table on a source that logs what it pleases of its rows.
type partialSource struct {
	rnd  *rand.Rand
	def  *schema.Table
	m    *binlog.TableMap
	rows map[int]binlogtest.Row
}

func newPartialSource(seed uint64) *partialSource {
	column := func(id uint32, typ schema.Type) schema.Column {
		return schema.Column{ID: id, Name: fmt.Sprint("c", id), Type: typ, Nullable: id > 1, ColumnType: typ.String()}
	}
	def := &schema.Table{Database: "shop", Name: "p", Version: 1, NextColumnID: 6, Key: []int{1}, KeyName: "PRIMARY", Columns: []schema.Column{
		column(2, schema.Int), column(1, schema.Int), column(3, schema.VarChar), column(4, schema.Date), column(5, schema.BigInt)}}
	def.Columns[2].Length, def.Columns[2].Charset = 20, "utf8mb4"
	return &partialSource{rnd: rand.New(rand.NewPCG(seed, 5)), def: def, m: binlogtest.Table(def), rows: map[int]binlogtest.Row{}}
}

func (s *partialSource) row(id int) binlogtest.Row {
	row := binlogtest.Row{s.rnd.IntN(100), id, fmt.Sprint("v", s.rnd.IntN(100)), fmt.Sprintf("2024-02-%02d", 1+s.rnd.IntN(31)), s.rnd.IntN(1000)}
	for i := range row {
		if i != 1 && s.rnd.IntN(6) == 0 {
			row[i] = nil
		}
	}
	return row
}

// event changes some rows. Of a deleted or updated row the key is logged, and of the rest what chance says; of a new one
// all that has changed.
func (s *partialSource) event() binlog.Event {
	there := slices.Sorted(maps.Keys(s.rows))
	s.rnd.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
	there = there[:min(len(there), 1+s.rnd.IntN(3))]
	kind := s.rnd.IntN(5)
	if len(there) == 0 {
		kind = 0
	}
	logged := [2][]bool{s.some(), s.some()} // old, new
	logged[0][1] = true
	var images []binlogtest.Row
	log := func(which int, row binlogtest.Row) {
		out := slices.Clone(row)
		for i := range out {
			if !logged[which][i] {
				out[i] = binlogtest.Absent
			}
		}
		images = append(images, out)
	}
	switch kind {
	case 0:
		for range 1 + s.rnd.IntN(3) {
			if id := s.rnd.IntN(12); s.rows[id] == nil {
				s.rows[id] = s.row(id)
				images = append(images, s.rows[id])
			}
		}
		return binlogtest.Insert(s.m, s.def, images...)
	case 1:
		for _, id := range there {
			log(0, s.rows[id])
			delete(s.rows, id)
		}
		return binlogtest.Delete(s.m, s.def, images...)
	}
	for _, id := range there {
		old, next := s.rows[id], s.row(id)
		if to := s.rnd.IntN(12); kind == 2 && s.rows[to] == nil {
			next[1] = to
		}
		logged[1][1] = logged[1][1] || kind == 2
		for i := range next {
			if !logged[1][i] {
				next[i] = old[i]
			}
		}
		log(0, old)
		log(1, next)
		delete(s.rows, id)
		s.rows[next[1].(int)] = next
	}
	return binlogtest.Update(s.m, s.def, images...)
}

func (s *partialSource) some() []bool {
	out := make([]bool, len(s.def.Columns))
	all := s.rnd.IntN(6) == 0
	for i := range out {
		out[i] = all || s.rnd.IntN(3) == 0
	}
	return out
}

func (s *partialSource) print() string {
	var out []string
	for _, row := range s.rows {
		out = append(out, "("+printCells(row)+")")
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TYPE-18: partial images are merged column by column, with those before them in the batch and with what is stored, for any
// size of batches and any budget.
func TestPartialImageOracle(t *testing.T) {
	for seed := range uint64(200) {
		s := newPartialSource(seed)
		m := newMemory()
		m.tables[s.def.Name] = &memoryTable{def: s.def, rows: map[string]map[uint32]string{}}
		m.state = State{Tables: map[string]Table{s.def.Name: {Def: s.def, Live: true}}}
		r := New(Config{Database: "shop", Server: ddl.Server{Version: 90704}, Budget: 1 + s.rnd.IntN(2000)}, m, m.state)
		number := int64(0)
		for range 40 {
			var txs []*binlog.Transaction
			for range 1 + s.rnd.IntN(4) {
				var events []binlog.Event
				for range 1 + s.rnd.IntN(4) {
					events = append(events, s.event())
				}
				number++
				at := func(n int64) gtid.Position { return gtid.Position{File: "b.000001", Offset: uint64(n * 100)} }
				txs = append(txs, binlogtest.Transaction(binlog.Rows, gtid.GTID{Source: testUUID, Number: number}, at(number), at(number+1), events...))
			}
			require.NoError(t, r.Apply(t.Context(), txs), "seed %d", seed)
			mt := m.tables[s.def.Name]
			require.Empty(t, mt.reason, "seed %d", seed)
			require.Equal(t, s.print(), printAll(mt), "seed %d", seed)
		}
	}
}

// TYPE-18: partial images inside the window of a copy whose rows were each read at another moment. Once the window is
// passed the table is the source's, or was set aside before it ever stood at a point.
func TestPartialImagesInAWindow(t *testing.T) {
	converged, aside := 0, 0
	for seed := range uint64(400) {
		s := newPartialSource(seed)
		var txs []*binlog.Transaction
		step := func() {
			n := int64(len(txs) + 1)
			txs = append(txs, binlogtest.Transaction(binlog.Rows, gtid.GTID{Source: testUUID, Number: n}, place(n), place(n+1), s.event()))
		}
		for range 3 {
			step()
		}
		from := len(txs) // all of these are in the copy
		copied := map[int]binlogtest.Row{}
		for _, id := range s.rnd.Perm(12) {
			for range s.rnd.IntN(2) {
				step()
			}
			if row := s.rows[id]; row != nil {
				copied[id] = row
			}
		}
		to := int64(len(txs) + 1)
		for range 10 {
			step()
		}
		m := newMemory()
		w := &Window{To: place(to)}
		m.state = State{Tables: map[string]Table{s.def.Name: {Def: s.def, Live: true, Window: w}}}
		for n := range from {
			m.state.Point.Set = m.state.Point.Set.Add(gtid.GTID{Source: testUUID, Number: int64(n + 1)})
		}
		m.tables[s.def.Name] = &memoryTable{def: s.def, rows: s.stored(t, copied), window: w}
		r := New(Config{Database: "shop", Server: ddl.Server{Version: 90704}, Budget: 1 + s.rnd.IntN(2000)}, m, m.state)
		for left := txs[from:]; len(left) > 0; {
			n := 1 + s.rnd.IntN(len(left))
			require.NoError(t, r.Apply(t.Context(), left[:n]), "seed %d", seed)
			left = left[n:]
		}
		table := r.State().Tables[s.def.Name]
		if !table.Live {
			require.NotNil(t, table.Window, "seed %d: %s", seed, m.tables[s.def.Name].reason)
			aside++
			continue
		}
		converged++
		require.Equal(t, s.print(), printAll(m.tables[s.def.Name]), "seed %d", seed)
	}
	t.Logf("%d converged, %d have to be copied again", converged, aside)
	require.Greater(t, converged, 100)
	require.Greater(t, aside, 3)
}

// stored gives rows as the store has them.
func (s *partialSource) stored(t *testing.T, rows map[int]binlogtest.Row) map[string]map[uint32]string {
	out := map[string]map[uint32]string{}
	if len(rows) == 0 {
		return out
	}
	f := newFold(s.def)
	_, err := f.add(binlogtest.Insert(s.m, s.def, slices.Collect(maps.Values(rows))...))
	require.NoError(t, err)
	changes, _, err := f.changes()
	require.NoError(t, err)
	for n := range changes.Puts.Rows() {
		out[string(changes.Puts.Keys.At(n))] = rowOf(changes.Puts, n)
	}
	return out
}

func printAll(mt *memoryTable) string {
	var out []string
	for _, cells := range mt.rows {
		out = append(out, "("+printRow(mt.def, cells)+")")
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
