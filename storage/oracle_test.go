package storage

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

var (
	flagSeed  = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")
	flagSteps = flag.Int("steps", 250, "steps of the random tests")
)

// model is the dumb oracle: what each table holds.
type model struct {
	t      *testing.T
	rng    *rand.Rand
	s      *Store
	db     DatabaseID
	opt    Options
	point  int
	tables map[TableID]*modelTable
	loads  map[TableID]*Load // open handles of durable loads
	pins   []modelPin
	names  int
}

type modelTable struct {
	def    *schema.Table
	rows   map[int64]row
	shadow bool
	window string
	point  string // of a shadow
	load   *modelLoad
}

func (t *modelTable) clone() *modelTable {
	c := *t
	c.rows = maps.Clone(t.rows)
	return &c
}

func cloneTables(tables map[TableID]*modelTable) map[TableID]*modelTable {
	c := map[TableID]*modelTable{}
	for id, t := range tables {
		c[id] = t.clone()
	}
	return c
}

type modelPin struct {
	v    *Version
	want map[TableID]map[int64]row
}

func (m *model) copyRows() map[TableID]map[int64]row {
	c := map[TableID]map[int64]row{}
	for id, t := range m.tables {
		if !t.shadow {
			c[id] = maps.Clone(t.rows)
		}
	}
	return c
}

// TestRandomOperations compares the store with a map under random transactions, DDL, loads, aborts, pins, maintenance
// and restarts.
func TestRandomOperations(t *testing.T) {
	seed := *flagSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for i := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed+i), func(t *testing.T) { randomOperations(t, seed+i) })
	}
}

func randomOperations(t *testing.T, seed uint64) {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), tables: map[TableID]*modelTable{}, loads: map[TableID]*Load{}, opt: smallOptions(&faultFS{FS: vfs.NewMem()})}
	m.opt.NoMaintenance = m.rng.IntN(2) == 0
	m.s = openTest(t, "/data", m.opt)
	var err error
	m.db, err = m.s.CreateDatabase(ctx, "shop", nil)
	require.NoError(t, err)
	for range *flagSteps {
		m.step()
	}
	m.releasePins()
	if m.opt.NoMaintenance {
		require.NoError(t, m.s.Maintain(ctx))
	}
	m.check()
	closeTest(t, m.s)
}

func (m *model) step() {
	switch k := m.rng.IntN(46); {
	case k < 30:
		m.transaction()
	case k >= 43:
		m.besideTransaction()
	case k >= 40:
		m.durableLoad()
	case k < 32:
		m.load()
	case k < 34:
		m.pin()
	case k < 35:
		m.releasePins()
	case k < 37:
		if m.opt.NoMaintenance {
			require.NoError(m.t, m.s.Maintain(ctx))
		}
	case k < 38:
		m.releasePins()
		m.check()
		requireSound(m.t, m.s)
		m.letLoadsGo()
		require.NoError(m.t, m.s.Close())
		m.opt.NoMaintenance = m.rng.IntN(2) == 0
		m.s = openTest(m.t, "/data", m.opt)
		m.check()
		requireSound(m.t, m.s)
	default:
		m.check()
	}
}

func (m *model) check() {
	named := 0
	for id, t := range m.tables {
		info, err := m.s.TableByID(id)
		require.NoError(m.t, err)
		require.Equal(m.t, []any{t.shadow, t.window, t.point}, []any{info.Shadow, string(info.Window), string(info.Point)})
		if t.shadow {
			requireRows(m.t, t.rows, shadowContents(m.t, m.s, id))
			continue
		}
		named++
		requireRows(m.t, t.rows, headContents(m.t, m.s, id))
		byName, err := m.s.Table(m.db, t.def.Name)
		require.NoError(m.t, err)
		require.Equal(m.t, id, byName.ID)
	}
	d, err := m.s.Database("shop")
	require.NoError(m.t, err)
	if m.point > 0 {
		require.Equal(m.t, fmt.Sprint(m.point), string(d.Point))
	}
	require.Len(m.t, m.s.Tables(m.db), named)
	require.Len(m.t, m.s.Shadows(m.db), len(m.tables)-named)
}

func (m *model) pin() {
	v, err := m.s.Pin(m.db)
	require.NoError(m.t, err)
	m.pins = append(m.pins, modelPin{v, m.copyRows()})
}

func (m *model) releasePins() {
	for _, p := range m.pins {
		for id, want := range p.want {
			requireRows(m.t, want, contents(m.t, p.v, id))
			m.lookup(p.v, id, want)
		}
		p.v.Release()
	}
	m.pins = nil
}

func (m *model) lookup(v *Version, id TableID, want map[int64]row) {
	ids := m.someKeys(1 + m.rng.IntN(20))
	got, err := v.Lookup(ctx, id, keysOf(m.t, v.st.tables[id].rec.Def, ids...))
	require.NoError(m.t, err)
	n := 0
	for _, k := range ids {
		if _, ok := want[k]; ok {
			n++
		}
	}
	require.Equal(m.t, n, got.Rows())
}

const modelKeys = 700

func (m *model) someKeys(n int) []int64 {
	set := map[int64]bool{}
	for range n {
		set[m.rng.Int64N(modelKeys)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// transaction applies random changes to some tables; what it did is taken over by the model when it commits.
func (m *model) transaction() {
	x := m.s.Begin(m.db)
	next, before := cloneTables(m.tables), m.tables
	for range 1 + m.rng.IntN(4) {
		m.operation(x, next, before)
	}
	m.point++
	x.SetPoint(fmt.Append(nil, m.point))
	if m.rng.IntN(8) == 0 {
		require.NoError(m.t, x.Abort())
		m.point--
		return
	}
	_, err := x.Commit(ctx)
	require.NoError(m.t, err)
	m.tables = next
	m.loadsGone()
}

func (m *model) operation(x *Txn, next, before map[TableID]*modelTable) {
	ids := slices.Sorted(maps.Keys(next))
	if len(ids) == 0 || len(ids) < 4 && m.rng.IntN(10) == 0 {
		m.names++
		def := testTable(fmt.Sprint("t", m.names))
		id, err := x.CreateTable(def)
		require.NoError(m.t, err)
		next[id] = &modelTable{def: def, rows: map[int64]row{}}
		return
	}
	id := ids[m.rng.IntN(len(ids))]
	t := next[id]
	switch k := m.rng.IntN(64); {
	case k == 63 && len(ids) < 6:
		def := t.def.Clone()
		shadow, err := x.CreateShadow(def)
		require.NoError(m.t, err)
		next[shadow] = &modelTable{def: def, rows: map[int64]row{}, shadow: true}
	case k >= 61 && t.shadow:
		m.replace(x, id, next)
	case k == 60:
		t.window = fmt.Sprint("w", m.rng.IntN(9))
		require.NoError(m.t, x.SetWindow(id, []byte(t.window)))
	case k == 0:
		require.NoError(m.t, x.DropTable(id))
		delete(next, id)
	case k == 1:
		require.NoError(m.t, x.Truncate(id))
		t.rows = map[int64]row{}
	case k == 2 && len(t.def.Columns) == 3:
		t.def, t.load = widened(t.def), nil
		require.NoError(m.t, x.Alter(id, t.def))
		for key, r := range t.rows {
			r.more = 7
			t.rows[key] = r
		}
	case k == 3:
		require.NoError(m.t, x.Revoke(id))
		if old := before[id]; old != nil {
			next[id] = old.clone()
		} else {
			delete(next, id)
		}
	case k < 8:
		m.read(x, id, t)
	default:
		m.change(x, id, t)
	}
}

func (m *model) change(x *Txn, id TableID, t *modelTable) {
	c := &Changes{}
	rows := map[int64]row{}
	var deletes []int64
	keys := m.someKeys(1 + m.rng.IntN(1+m.rng.IntN(150)))
	m.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var order []int64
	expect := func(key int64) Expect {
		if m.rng.IntN(3) == 0 {
			return Any
		}
		if _, ok := t.rows[key]; ok {
			return MustExist
		}
		return MustNotExist
	}
	for _, key := range keys {
		if m.rng.IntN(3) == 0 {
			deletes = append(deletes, key)
			c.DeleteExpect = append(c.DeleteExpect, expect(key))
			continue
		}
		r := row{name: fmt.Sprint("n", m.rng.IntN(1000)), n: m.rng.Int64N(1 << 30)}
		if len(t.def.Columns) > 3 {
			r.more = m.rng.Int64N(1000)
		}
		rows[key] = r
		order = append(order, key)
		c.PutExpect = append(c.PutExpect, expect(key))
	}
	c.Puts = testRows(m.t, t.def, rows, order)
	c.Deletes = keysOf(m.t, t.def, deletes...)
	m.diverge(x, id, t, rows)
	require.NoError(m.t, x.Apply(ctx, id, c))
	for _, key := range deletes {
		delete(t.rows, key)
	}
	maps.Copy(t.rows, rows)
}

// diverge tries a wrong expectation now and then; it must change nothing.
func (m *model) diverge(x *Txn, id TableID, t *modelTable, rows map[int64]row) {
	if len(rows) == 0 || m.rng.IntN(5) > 0 {
		return
	}
	batch := rowsOf(m.t, t.def, rows)
	wrong := MustExist
	if _, ok := t.rows[slices.Max(slices.Collect(maps.Keys(rows)))]; ok {
		wrong = MustNotExist
	}
	expect := make([]Expect, len(rows))
	expect[len(rows)-1] = wrong
	var diverged *DivergenceError
	require.ErrorAs(m.t, x.Apply(ctx, id, &Changes{Puts: batch, PutExpect: expect}), &diverged)
}

// load replaces a table's rows by a bulk load with several writers.
func (m *model) load() {
	if len(m.tables) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(m.tables))
	id := ids[m.rng.IntN(len(ids))]
	t := m.tables[id]
	l, err := m.s.NewLoad(id)
	require.NoError(m.t, err)
	rows := map[int64]row{}
	writers := []*LoadWriter{l.NewWriter(), l.NewWriter()}
	mixed := m.rng.IntN(2)
	for start := int64(0); start < modelKeys; start += 50 {
		some := map[int64]row{}
		for range m.rng.IntN(60) {
			r := row{name: "loaded", n: start}
			if len(t.def.Columns) > 3 {
				r.more = 3
			}
			some[start+m.rng.Int64N(50)] = r
		}
		maps.Copy(rows, some)
		w := writers[0]
		if mixed == 1 && start%100 == 0 || mixed == 0 && start > modelKeys/2 {
			w = writers[1]
		}
		order := slices.Collect(maps.Keys(some))
		require.NoError(m.t, w.Add(ctx, testRows(m.t, t.def, some, order)))
	}
	for _, w := range writers {
		require.NoError(m.t, w.Close(ctx))
	}
	require.NoError(m.t, l.Finish(ctx))
	if m.rng.IntN(3) == 0 {
		require.NoError(m.t, l.Abort())
		return
	}
	x := m.s.Begin(m.db)
	require.NoError(m.t, x.SwapLoad(id, l))
	t = t.clone()
	t.rows, t.load = rows, nil
	m.change(x, id, t)
	_, err = x.Commit(ctx)
	require.NoError(m.t, err)
	m.tables[id] = t
	m.loadsGone()
}
