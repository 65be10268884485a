package storage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// bag is the oracle of a table without a key: how often each row is there.
type bag map[row]int

func keylessTable(name string) *schema.Table {
	t := testTable(name)
	t.Key, t.KeyName = nil, ""
	return t
}

func (b bag) list() []row {
	var rows []row
	for r, n := range b {
		rows = append(rows, slices.Repeat([]row{r}, n)...)
	}
	return rows
}

func (b bag) remove(going bag) {
	for r, n := range going {
		if b[r] -= n; b[r] == 0 {
			delete(b, r)
		}
	}
}

// counts gives the bag in the form of a table with a key, for the oracle of crashes.
func (b bag) counts() map[int64]row {
	rows := map[int64]row{}
	for r, n := range b {
		rows[r.n<<8|int64(r.name[0])] = row{name: r.name, n: r.n, more: int64(n)}
	}
	return rows
}

func (b bag) add(rows []row) {
	for _, r := range rows {
		b[r]++
	}
}

// bagRows gives rows as they come from a source: named by hashes, without numbers. The key column holds n.
func bagRows(t testing.TB, def *schema.Table, rows []row) *column.Batch {
	b := column.NewBuilder(memory.DefaultAllocator, def)
	for _, r := range rows {
		appendBagRow(b, def, r)
		b.EndRow()
	}
	batch, err := b.Finish()
	require.NoError(t, err)
	return batch
}

func appendBagRow(b interface{ Column(int) column.Appender }, def *schema.Table, r row) {
	b.Column(0).Int(r.n)
	b.Column(1).Bytes([]byte(r.name))
	b.Column(2).Int(r.n)
	for c := 3; c < len(def.Columns); c++ {
		b.Column(c).Int(r.more)
	}
}

// removals are the changes that take rows away: n of each.
func removals(t testing.TB, def *schema.Table, b bag) *Changes {
	c := &Changes{}
	kb := column.NewKeyBuilder(def)
	for r, n := range b {
		appendBagRow(kb, def, r)
		kb.EndRow()
		c.Removals = append(c.Removals, Removal{Gone: n, There: n})
	}
	var err error
	c.Deletes, err = kb.Finish()
	require.NoError(t, err)
	return c
}

func bagContents(t testing.TB, v *Version, id TableID) bag {
	t.Helper()
	got := bag{}
	require.NoError(t, v.Scan(ctx, id, func(b *column.Batch, dead uniquekey.Bitset) error {
		for i := range b.Rows() {
			if !dead.Has(uint32(i)) {
				got[bagRow(b, i)]++
			}
		}
		return nil
	}))
	return got
}

func bagRow(b *column.Batch, i int) row {
	r := row{name: b.Record.Column(1).(*array.String).Value(i), n: b.Record.Column(0).(*array.Int64).Value(i)}
	if b.Record.NumCols() > 3 {
		r.more = b.Record.Column(3).(*array.Int64).Value(i)
	}
	return r
}

func requireBag(t testing.TB, want bag, s *Store, id TableID) {
	t.Helper()
	require.Equal(t, want, headBag(t, s, id))
}

func headBag(t testing.TB, s *Store, id TableID) bag {
	t.Helper()
	v, err := s.Pin()
	require.NoError(t, err)
	defer v.Release()
	return bagContents(t, v, id)
}

func applyBag(t testing.TB, s *Store, db DatabaseID, id TableID, changes ...*Changes) {
	t.Helper()
	inTxn(t, s, db, func(x *Txn) error {
		for _, c := range changes {
			if err := x.Apply(ctx, id, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestEqualRows: as many as were inserted are there, and each delete takes one.
func TestEqualRows(t *testing.T) {
	s := memStore(t)
	def := keylessTable("log")
	db, ids := createTest(t, s, def)
	id := ids[0]
	a, b := row{name: "a", n: 1}, row{name: "b", n: 1}
	applyBag(t, s, db, id, &Changes{Puts: bagRows(t, def, []row{a, b, a, a})})
	requireBag(t, bag{a: 3, b: 1}, s, id)
	applyBag(t, s, db, id, removals(t, def, bag{a: 2}), &Changes{Puts: bagRows(t, def, []row{b})}, removals(t, def, bag{a: 1, b: 2}), &Changes{Puts: bagRows(t, def, []row{b, b})})
	requireBag(t, bag{b: 2}, s, id)

	var diverged *DivergenceError
	x := s.Begin(db)
	require.NoError(t, x.Apply(ctx, id, &Changes{Puts: bagRows(t, def, []row{b})}))
	require.ErrorAs(t, x.Apply(ctx, id, removals(t, def, bag{b: 4})), &diverged)
	require.ErrorAs(t, x.Apply(ctx, id, removals(t, def, bag{a: 1})), &diverged)
	more := removals(t, def, bag{b: 3})
	more.Removals[0] = Removal{Gone: 1, There: 4}
	require.ErrorAs(t, x.Apply(ctx, id, more), &diverged)
	more.Removals[0] = Removal{Gone: 1, There: 3}
	require.NoError(t, x.Apply(ctx, id, more))
	tolerant := removals(t, def, bag{a: 3, b: 1})
	tolerant.Tolerant = true
	require.NoError(t, x.Apply(ctx, id, tolerant))
	_, err := x.Commit(ctx)
	require.NoError(t, err)
	requireBag(t, bag{b: 1}, s, id)

	// What does not fit a table without a key.
	x = s.Begin(db)
	twice := removals(t, def, bag{b: 1})
	twice.Deletes.Append(twice.Deletes.At(0))
	twice.Removals = append(twice.Removals, Removal{})
	require.ErrorIs(t, x.Apply(ctx, id, twice), errTwice)
	require.Error(t, x.Apply(ctx, id, &Changes{Deletes: removals(t, def, bag{b: 1}).Deletes}))
	require.Error(t, x.Apply(ctx, id, &Changes{Puts: bagRows(t, def, []row{a}).Numbered(7)}))
	numbered := removals(t, def, bag{b: 1})
	numbered.Deletes = bagRows(t, def, []row{b}).Numbered(7).Keys
	require.Error(t, x.Apply(ctx, id, numbered))
	narrower := def.Clone()
	narrower.Columns, narrower.Version = narrower.Columns[:2], 2
	require.ErrorContains(t, x.Alter(id, narrower), "new copy")
	keyed := testTable("log")
	keyed.Version = 2
	require.ErrorContains(t, x.Alter(id, keyed), "new copy")
	require.NoError(t, x.Abort())
	closeTest(t, s)
}

// TestManyEqualRows of one hash, over segments, parts, layers and remaps.
func TestManyEqualRows(t *testing.T) {
	s := memStore(t)
	def := keylessTable("log")
	db, ids := createTest(t, s, def)
	same := row{name: "same", n: 7}
	n := 0
	for i := range 40 {
		k := 1 + i*7%60
		applyBag(t, s, db, ids[0], &Changes{Puts: bagRows(t, def, slices.Repeat([]row{same}, k))})
		n += k
		if i%3 == 2 {
			applyBag(t, s, db, ids[0], removals(t, def, bag{same: n / 2}))
			n -= n / 2
		}
		if i%10 == 9 {
			require.NoError(t, s.Maintain(ctx))
		}
	}
	requireBag(t, bag{same: n}, s, ids[0])
	applyBag(t, s, db, ids[0], removals(t, def, bag{same: n}))
	requireBag(t, bag{}, s, ids[0])
	require.NoError(t, s.Maintain(ctx))
	closeTest(t, s)
}

// bagModel compares tables without a key with counts.
type bagModel struct {
	t    *testing.T
	rng  *rand.Rand
	s    *Store
	db   DatabaseID
	id   TableID
	def  *schema.Table
	rows bag
	opt  Options
	pins []bagPin
}

type bagPin struct {
	v    *Version
	want bag
}

// TestRandomOperationsWithoutKey: transactions of several pieces, aborts, loads, DDL, maintenance, pins, restarts.
func TestRandomOperationsWithoutKey(t *testing.T) {
	seed := *flagSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Log("seed", seed)
	m := &bagModel{t: t, rng: rand.New(rand.NewPCG(seed, 4)), def: keylessTable("log"), rows: bag{}, opt: smallOptions(&faultFS{FS: vfs.NewMem()})}
	m.opt.NoMaintenance = m.rng.IntN(2) == 0
	m.s = openTest(t, "/data", m.opt)
	db, ids := createTest(t, m.s, m.def)
	m.db, m.id = db, ids[0]
	for range *flagSteps {
		m.step()
	}
	m.releasePins()
	if m.opt.NoMaintenance {
		require.NoError(t, m.s.Maintain(ctx))
	}
	requireBag(t, m.rows, m.s, m.id)
	closeTest(t, m.s)
}

func (m *bagModel) step() {
	switch k := m.rng.IntN(41); {
	case k < 30:
		m.transaction()
	case k < 32:
		m.load()
	case k == 40:
		m.widen()
	case k < 34:
		v, err := m.s.Pin(m.db)
		require.NoError(m.t, err)
		m.pins = append(m.pins, bagPin{v, maps.Clone(m.rows)})
	case k < 36:
		m.releasePins()
	case k < 38:
		if m.opt.NoMaintenance {
			require.NoError(m.t, m.s.Maintain(ctx))
		}
	default:
		m.releasePins()
		requireSound(m.t, m.s)
		require.NoError(m.t, m.s.Close())
		m.opt.NoMaintenance = m.rng.IntN(2) == 0
		m.s = openTest(m.t, "/data", m.opt)
		requireBag(m.t, m.rows, m.s, m.id)
	}
}

// someRows gives rows of which many are equal.
func (m *bagModel) someRows(most int) []row {
	var rows []row
	for range m.rng.IntN(most) {
		r := row{name: fmt.Sprint(m.rng.IntN(4)), n: m.rng.Int64N(1 + m.rng.Int64N(60))}
		if len(m.def.Columns) > 3 {
			r.more = 7 - m.rng.Int64N(3)/2
		}
		rows = append(rows, r)
	}
	return rows
}

func (m *bagModel) transaction() {
	x := m.s.Begin(m.db)
	next := maps.Clone(m.rows)
	for range 1 + m.rng.IntN(4) {
		m.change(x, next)
	}
	if m.rng.IntN(8) == 0 {
		require.NoError(m.t, x.Abort())
		return
	}
	_, err := x.Commit(ctx)
	require.NoError(m.t, err)
	m.rows = next
}

func (m *bagModel) change(x *Txn, rows bag) {
	if m.rng.IntN(40) == 0 {
		require.NoError(m.t, x.Truncate(m.id))
		clear(rows)
		return
	}
	going := bag{}
	for r, n := range rows {
		if m.rng.IntN(5) == 0 {
			going[r] = 1 + m.rng.IntN(n)
		}
	}
	c := removals(m.t, m.def, going)
	coming := slices.DeleteFunc(m.someRows(90), func(r row) bool { return going[r] > 0 })
	if m.rng.IntN(3) > 0 {
		c.Puts = bagRows(m.t, m.def, coming)
	} else {
		coming = nil
	}
	if len(c.Removals) > 0 && m.rng.IntN(5) == 0 {
		wrong := *c
		wrong.Removals = slices.Clone(c.Removals)
		wrong.Removals[0].There += 1 << 20
		var diverged *DivergenceError
		require.ErrorAs(m.t, x.Apply(ctx, m.id, &wrong), &diverged)
	}
	require.NoError(m.t, x.Apply(ctx, m.id, c))
	rows.remove(going)
	rows.add(coming)
}

// widen adds a column; the rows keep their hashes.
func (m *bagModel) widen() {
	if len(m.def.Columns) > 3 {
		return
	}
	m.def = widened(m.def)
	inTxn(m.t, m.s, m.db, func(x *Txn) error { return x.Alter(m.id, m.def) })
	wider := bag{}
	for r, n := range m.rows {
		r.more = 7
		wider[r] = n
	}
	m.rows = wider
}

func (m *bagModel) load() {
	l, err := m.s.NewLoad(m.id)
	require.NoError(m.t, err)
	rows := bag{}
	writers := []*LoadWriter{l.NewWriter(), l.NewWriter()}
	for i := range 10 {
		some := m.someRows(40)
		rows.add(some)
		w := writers[i%2]
		require.NoError(m.t, w.Add(ctx, bagRows(m.t, m.def, some)))
		if m.rng.IntN(3) == 0 {
			require.NoError(m.t, w.Checkpoint(ctx, nil))
		}
	}
	for _, w := range writers {
		require.NoError(m.t, w.Checkpoint(ctx, nil))
	}
	if m.rng.IntN(2) == 0 {
		require.NoError(m.t, l.Close())
		l, _, err = m.s.ResumeLoad(m.id)
		require.NoError(m.t, err)
	}
	swapIn(m.t, m.s, m.db, m.id, l)
	m.rows = rows
}

func (m *bagModel) releasePins() {
	for _, p := range m.pins {
		require.Equal(m.t, p.want, bagContents(m.t, p.v, m.id))
		asked, ask := bag{}, bag{}
		def := p.v.st.tables[m.id].rec.Def
		for _, r := range m.someRows(20) {
			if len(def.Columns) == 3 {
				r.more = 0
			}
			ask[r] = 1
			if n := p.want[r]; n > 0 {
				asked[r] = n
			}
		}
		got, err := p.v.Lookup(ctx, m.id, removals(m.t, def, ask).Deletes)
		require.NoError(m.t, err)
		found := bag{}
		for i := range got.Rows() {
			found[bagRow(got, i)]++
		}
		require.Equal(m.t, asked, found)
		p.v.Release()
	}
	m.pins = nil
}
