package storage

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
)

// modelLoad is what is durable of a load. It is not changed, so that copies of a table may share it.
type modelLoad struct {
	rows  map[int64]row
	notes []string
}

// replace makes a shadow the table of its name.
func (m *model) replace(x *Txn, shadow TableID, next map[TableID]*modelTable) {
	t := next[shadow]
	old := TableID(0)
	for id, other := range next {
		if !other.shadow && other.def.Name == t.def.Name {
			old = id
		}
	}
	if old != 0 && m.rng.IntN(4) == 0 {
		require.ErrorIs(m.t, x.Replace(0, shadow), ErrExists)
	}
	require.NoError(m.t, x.Replace(old, shadow))
	delete(next, old)
	t.shadow, t.point = false, ""
}

// besideTransaction changes a shadow in a transaction of its own, while one of the database is open.
func (m *model) besideTransaction() {
	id, ok := m.pick(func(t *modelTable) bool { return t.shadow })
	if !ok {
		return
	}
	main := m.s.Begin(m.db)
	x := m.s.BeginShadow(id)
	t := m.tables[id].clone()
	m.point++
	t.point = fmt.Sprint(m.point)
	require.NoError(m.t, x.SetTablePoint(id, []byte(t.point)))
	m.change(x, id, t)
	main.SetPoint([]byte(t.point))
	_, err := main.Commit(ctx)
	require.NoError(m.t, err)
	if m.rng.IntN(5) == 0 {
		require.NoError(m.t, x.Abort())
		return
	}
	_, err = x.Commit(ctx)
	require.NoError(m.t, err)
	m.tables[id] = t
}

// pick chooses a table.
func (m *model) pick(which func(*modelTable) bool) (TableID, bool) {
	var ids []TableID
	for _, id := range slices.Sorted(maps.Keys(m.tables)) {
		if which(m.tables[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return 0, false
	}
	return ids[m.rng.IntN(len(ids))], true
}

// durableLoad goes on with a durable load of some table, or begins one.
func (m *model) durableLoad() {
	id, ok := m.pick(func(*modelTable) bool { return true })
	if !ok {
		return
	}
	t := m.tables[id].clone()
	m.tables[id] = t
	l := m.loads[id]
	switch k := m.rng.IntN(12); {
	case l == nil && t.load != nil && k > 0:
		l = m.resume(id, t.load)
	case l == nil || k == 0:
		m.letLoadGo(id)
		l = m.beginLoad(id)
		t.load = nil
	case k == 1:
		require.NoError(m.t, l.Abort())
		delete(m.loads, id)
		t.load = nil
		return
	}
	for range 1 + m.rng.IntN(4) {
		m.addDurably(l, t)
	}
	if m.rng.IntN(4) == 0 {
		m.swapDurable(id, l, t)
	}
}

func (m *model) beginLoad(id TableID) *Load {
	l, err := m.s.NewLoad(id)
	require.NoError(m.t, err)
	m.loads[id] = l
	return l
}

func (m *model) resume(id TableID, want *modelLoad) *Load {
	l, notes, err := m.s.ResumeLoad(id)
	require.NoError(m.t, err)
	require.Equal(m.t, want.notes, notesOf(notes))
	require.EqualValues(m.t, len(want.rows), l.Rows())
	m.loads[id] = l
	return l
}

// addDurably adds rows of new keys by a writer of its own, which now and then breaks off behind its checkpoint.
func (m *model) addDurably(l *Load, t *modelTable) {
	next := modelLoad{rows: map[int64]row{}}
	if t.load != nil {
		next.rows, next.notes = maps.Clone(t.load.rows), slices.Clone(t.load.notes)
	}
	w := l.NewWriter()
	some := m.newRows(t, next.rows)
	require.NoError(m.t, w.Add(ctx, testRows(m.t, t.def, some, slices.Collect(maps.Keys(some)))))
	note := fmt.Sprint("n", m.rng.IntN(1000))
	require.NoError(m.t, w.Checkpoint(ctx, []byte(note)))
	maps.Copy(next.rows, some)
	next.notes = append(next.notes, note)
	t.load = &next
	if m.rng.IntN(3) == 0 {
		require.NoError(m.t, w.Add(ctx, rowsOf(m.t, t.def, m.newRows(t, next.rows))))
		require.NoError(m.t, w.Abort())
	}
}

// newRows gives rows whose keys a load does not have.
func (m *model) newRows(t *modelTable, has map[int64]row) map[int64]row {
	some := map[int64]row{}
	for _, key := range m.someKeys(1 + m.rng.IntN(70)) {
		if _, there := has[key]; there {
			continue
		}
		r := row{name: "copied", n: key}
		if len(t.def.Columns) > 3 {
			r.more = 5
		}
		some[key] = r
	}
	return some
}

func (m *model) swapDurable(id TableID, l *Load, t *modelTable) {
	require.NoError(m.t, l.Finish(ctx))
	if m.rng.IntN(3) == 0 { // cut off before the swap
		m.letLoadGo(id)
		l = m.resume(id, t.load)
		require.NoError(m.t, l.Finish(ctx))
	}
	x := m.s.Begin(m.db)
	require.NoError(m.t, x.SwapLoad(id, l))
	_, err := x.Commit(ctx)
	require.NoError(m.t, err)
	delete(m.loads, id)
	t.rows, t.load = t.load.rows, nil
}

func (m *model) letLoadGo(id TableID) {
	if l := m.loads[id]; l != nil {
		require.NoError(m.t, l.Close())
		delete(m.loads, id)
	}
}

// letLoadsGo ends the process's part in all loads; some are not even closed.
func (m *model) letLoadsGo() {
	for id := range m.loads {
		if m.rng.IntN(2) == 0 {
			m.letLoadGo(id)
		}
	}
	m.loads = map[TableID]*Load{}
}

// loadsGone ends the loads that a commit has taken away.
func (m *model) loadsGone() {
	for id, l := range m.loads {
		if t := m.tables[id]; t != nil && t.load != nil {
			continue
		}
		require.ErrorIs(m.t, l.NewWriter().Checkpoint(ctx, nil), ErrNotFound)
		require.NoError(m.t, l.Abort())
		delete(m.loads, id)
	}
}

// read reads rows as a transaction has them, and changes some meanwhile, which must not show.
func (m *model) read(x *Txn, id TableID, t *modelTable) {
	before := maps.Clone(t.rows)
	keys := m.someKeys(1 + m.rng.IntN(200))
	asked := keysOf(m.t, t.def, keys...)
	got := map[int64]row{}
	require.NoError(m.t, x.Read(ctx, id, &asked, func(b *column.Batch) error {
		require.Equal(m.t, b.Rows(), b.Keys.Len())
		maps.Copy(got, rowsOfBatch(m.t, b, nil, got))
		if m.rng.IntN(3) == 0 {
			m.change(x, id, t)
		}
		return nil
	}))
	want := map[int64]row{}
	for _, key := range keys {
		if r, ok := before[key]; ok {
			want[key] = r
		}
	}
	requireRows(m.t, want, got)
}
