package storage

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

type scenario struct {
	c      *crasher
	s      *Store
	db     DatabaseID
	tables map[string]TableID
	defs   map[string]*schema.Table
	point  int
}

func (sc *scenario) run() {
	c, s := sc.c, sc.s
	c.step(c.acked, func() (err error) { sc.db, err = s.CreateDatabase(ctx, "shop", nil); return err })
	sc.txn(func(x *Txn, next *shown) { sc.create(x, next, "a"); sc.create(x, next, "b") })
	sc.load("a", 0, 170)
	for i := range 12 {
		sc.txn(func(x *Txn, next *shown) {
			sc.upsert(x, next, "a", int64(i*10), int64(i*10+15))
			sc.upsert(x, next, "b", int64(i*3), int64(i*3+6))
			sc.remove(x, next, "a", int64(i*10+3), int64(i*10+6))
		})
		if i%4 == 3 {
			sc.maintain()
		}
	}
	sc.txn(func(x *Txn, next *shown) { // one that is spilled to parts and a layer
		for i := range 5 {
			sc.upsert(x, next, "a", int64(100+i*60), int64(170+i*60))
			sc.remove(x, next, "a", int64(100+i*60), int64(110+i*60))
		}
		sc.upsert(x, next, "b", 0, 3)
	})
	sc.txn(func(x *Txn, next *shown) { sc.upsert(x, next, "a", 120, 160); sc.remove(x, next, "a", 300, 320) })
	sc.maintain()
	sc.txn(func(x *Txn, next *shown) { // DDL between rows of one transaction
		sc.upsert(x, next, "b", 50, 60)
		sc.widen(x, next, "b")
		sc.upsert(x, next, "b", 55, 65)
	})
	sc.aborted()
	sc.load("b", 20, 90)
	sc.txn(func(x *Txn, next *shown) { sc.truncate(x, next, "b"); sc.upsert(x, next, "b", 1, 9) })
	sc.txn(func(x *Txn, next *shown) {
		sc.drop(x, next, "a")
		sc.create(x, next, "a")
		sc.upsert(x, next, "a", 0, 100)
	})
	sc.maintain()
	sc.withoutKey()
	sc.copyBeside("a")
	sc.maintain()
	sc.checkpoint(sc.newLoad("b"), "b", 0, 20, "left behind")
	sc.createShadow("b")
	id := sc.db
	c.step(nothing(), func() error { return s.DropDatabase(ctx, id) })
	sc.maintain()
}

// withoutKey fills a table whose rows are partly equal, takes some away, in small transactions and in one that is spilled,
// and loads it anew.
func (sc *scenario) withoutKey() {
	t, s := sc.c.t, sc.s
	def := keylessTable("log")
	rows := bag{}
	var id TableID
	change := func(fill func(x *Txn)) {
		sc.txn(func(x *Txn, next *shown) {
			fill(x)
			next.rows["log"] = rows.counts()
		})
	}
	add := func(x *Txn, n int64) {
		var some []row
		for i := range n {
			some = append(some, slices.Repeat([]row{{name: "r", n: i / 7}}, int(i%3))...)
		}
		require.NoError(t, x.Apply(ctx, id, &Changes{Puts: bagRows(t, def, some)}))
		rows.add(some)
	}
	take := func(x *Txn) {
		going := bag{}
		for r, n := range rows {
			going[r] = (n + 1) / 2
		}
		require.NoError(t, x.Apply(ctx, id, removals(t, def, going)))
		rows.remove(going)
	}
	change(func(x *Txn) {
		var err error
		id, err = x.CreateTable(def)
		require.NoError(t, err)
	})
	for i := range int64(5) {
		change(func(x *Txn) { add(x, 20+i*5); take(x) })
	}
	change(func(x *Txn) { add(x, 160); take(x); add(x, 30); take(x) })
	sc.maintain()
	l, err := s.NewLoad(id)
	require.NoError(t, err)
	rows = bag{{name: "l", n: 1}: 90, {name: "l", n: 2}: 3}
	for range 2 {
		w := l.NewWriter()
		require.NoError(t, w.Add(ctx, bagRows(t, def, rows.list())))
		require.NoError(t, w.Close(ctx))
	}
	rows.add(rows.list())
	require.NoError(t, l.Finish(ctx))
	change(func(x *Txn) { require.NoError(t, x.SwapLoad(id, l)); take(x) })
}

// copyBeside copies a table anew, in pieces, the first of which a restart cuts off, and puts the copy in its place.
func (sc *scenario) copyBeside(name string) {
	t, s := sc.c.t, sc.s
	sc.createShadow(name)
	shadow := "shadow " + name
	l := sc.newLoad(shadow)
	w := sc.checkpoint(l, shadow, 0, 60, "60")
	require.NoError(t, w.Add(ctx, rowsOf(t, sc.defs[shadow], sc.some(shadow, 60, 120)))) // a piece that no one names
	require.NoError(t, l.Close())
	l, _, err := s.ResumeLoad(sc.tables[shadow])
	require.NoError(t, err)
	sc.checkpoint(l, shadow, 60, 90, "90")
	require.NoError(t, l.Finish(ctx))
	require.NoError(t, l.Close()) // as if the process had ended before the swap
	l, _, err = s.ResumeLoad(sc.tables[shadow])
	require.NoError(t, err)
	sc.checkpoint(l, shadow, 200, 230, "230")
	require.NoError(t, l.Finish(ctx))
	rows := sc.some(shadow, 0, 90)
	maps.Copy(rows, sc.some(shadow, 200, 230))
	sc.beside(shadow, func(x *Txn, next *shown) {
		require.NoError(t, x.SwapLoad(sc.tables[shadow], l))
		require.NoError(t, x.SetTablePoint(sc.tables[shadow], []byte("P0")))
		require.NoError(t, x.SetWindow(sc.tables[shadow], []byte("to P1")))
		next.rows[shadow] = maps.Clone(rows)
		next.beside[shadow] = besides(TableInfo{State: Copying, Window: []byte("to P1"), Point: []byte("P0")}, 0, nil)
	})
	sc.beside(shadow, func(x *Txn, next *shown) {
		sc.upsert(x, next, shadow, 80, 150)
		sc.widen(x, next, shadow)
		sc.remove(x, next, shadow, 0, 30)
		require.NoError(t, x.SetTablePoint(sc.tables[shadow], []byte("P1")))
		require.NoError(t, x.SetWindow(sc.tables[shadow], nil))
		next.beside[shadow] = besides(TableInfo{State: Copying, Point: []byte("P1")}, 0, nil)
	})
	sc.txn(func(x *Txn, next *shown) {
		sc.upsert(x, next, name, 0, 10)
		require.NoError(t, x.Replace(sc.tables[name], sc.tables[shadow]))
		sc.tables[name], sc.defs[name] = sc.tables[shadow], sc.defs[shadow]
		next.rows[name] = next.rows[shadow]
		delete(next.rows, shadow)
		delete(next.beside, shadow)
		next.beside[name] = besides(TableInfo{State: Live}, 0, nil)
	})
}

func (sc *scenario) createShadow(name string) {
	shadow := "shadow " + name
	sc.txn(func(x *Txn, next *shown) {
		def := sc.defs[name].Clone()
		id, err := x.CreateShadow(def)
		require.NoError(sc.c.t, err)
		sc.tables[shadow], sc.defs[shadow], next.rows[shadow] = id, def, map[int64]row{}
		next.beside[shadow] = besides(TableInfo{State: Copying}, 0, nil)
	})
}

// beside commits what fill does to a shadow in a transaction of its own.
func (sc *scenario) beside(shadow string, fill func(*Txn, *shown)) {
	x := sc.s.BeginShadow(sc.tables[shadow])
	next := sc.c.acked.with(func(n *shown) { fill(x, n) })
	sc.c.step(next, func() error { _, err := x.Commit(ctx); return err })
}

func (sc *scenario) newLoad(name string) *Load {
	l, err := sc.s.NewLoad(sc.tables[name])
	require.NoError(sc.c.t, err)
	return l
}

// checkpoint adds rows to a load, durably.
func (sc *scenario) checkpoint(l *Load, name string, from, to int64, note string) *LoadWriter {
	w := l.NewWriter()
	loaded := l.Rows() + to - from
	require.NoError(sc.c.t, w.Add(ctx, rowsOf(sc.c.t, sc.defs[name], sc.some(name, from, to))))
	notes := append(notesOf(l.Notes()), note)
	next := sc.c.acked.with(func(n *shown) {
		info, err := sc.s.TableByID(sc.tables[name])
		require.NoError(sc.c.t, err)
		n.beside[name] = besides(info, loaded, notes)
	})
	sc.c.step(next, func() error { return w.Checkpoint(ctx, []byte(note)) })
	return w
}

// txn commits what fill does to the store and to the rows that are expected.
func (sc *scenario) txn(fill func(*Txn, *shown)) {
	x := sc.s.Begin(sc.db)
	sc.point++
	next := sc.c.acked.with(func(n *shown) {
		fill(x, n)
		n.point = fmt.Sprint(sc.point)
	})
	x.SetPoint([]byte(next.point))
	sc.c.step(next, func() error { _, err := x.Commit(ctx); return err })
}

func (sc *scenario) maintain() {
	sc.c.step(sc.c.acked, func() error { return sc.s.Maintain(ctx) })
}

func (sc *scenario) aborted() {
	x := sc.s.Begin(sc.db)
	next := sc.c.acked.with(func(*shown) {})
	for i := range 4 {
		sc.upsert(x, &next, "a", int64(i*50), int64(i*50+90))
	}
	require.NoError(sc.c.t, x.Abort())
}

func (sc *scenario) create(x *Txn, next *shown, name string) {
	def := testTable(name)
	id, err := x.CreateTable(def)
	require.NoError(sc.c.t, err)
	sc.tables[name], sc.defs[name], next.rows[name] = id, def, map[int64]row{}
	next.beside[name] = besides(TableInfo{State: Live}, 0, nil)
}

func (sc *scenario) drop(x *Txn, next *shown, name string) {
	require.NoError(sc.c.t, x.DropTable(sc.tables[name]))
	delete(next.rows, name)
	delete(next.beside, name)
}

func (sc *scenario) truncate(x *Txn, next *shown, name string) {
	require.NoError(sc.c.t, x.Truncate(sc.tables[name]))
	next.rows[name] = map[int64]row{}
}

func (sc *scenario) widen(x *Txn, next *shown, name string) {
	sc.defs[name] = widened(sc.defs[name])
	require.NoError(sc.c.t, x.Alter(sc.tables[name], sc.defs[name]))
	for id, r := range next.rows[name] {
		r.more = 7
		next.rows[name][id] = r
	}
}

func (sc *scenario) some(name string, from, to int64) map[int64]row {
	rows := map[int64]row{}
	for id := from; id < to; id++ {
		rows[id] = row{name: fmt.Sprint(name, sc.point), n: id}
	}
	return rows
}

func (sc *scenario) upsert(x *Txn, next *shown, name string, from, to int64) {
	rows := sc.some(name, from, to)
	require.NoError(sc.c.t, x.Apply(ctx, sc.tables[name], &Changes{Puts: rowsOf(sc.c.t, sc.defs[name], rows)}))
	maps.Copy(next.rows[name], rows)
}

func (sc *scenario) remove(x *Txn, next *shown, name string, from, to int64) {
	var ids []int64
	for id := from; id < to; id++ {
		ids = append(ids, id)
		delete(next.rows[name], id)
	}
	require.NoError(sc.c.t, x.Apply(ctx, sc.tables[name], &Changes{Deletes: keysOf(sc.c.t, sc.defs[name], ids...)}))
}

func (sc *scenario) load(name string, from, to int64) {
	l, err := sc.s.NewLoad(sc.tables[name])
	require.NoError(sc.c.t, err)
	rows := sc.some(name, from, to)
	even, odd := map[int64]row{}, map[int64]row{}
	for id, r := range rows {
		if id%2 == 0 {
			even[id] = r
		} else {
			odd[id] = r
		}
	}
	for _, half := range []map[int64]row{even, odd} {
		w := l.NewWriter()
		require.NoError(sc.c.t, w.Add(ctx, rowsOf(sc.c.t, sc.defs[name], half)))
		require.NoError(sc.c.t, w.Close(ctx))
	}
	require.NoError(sc.c.t, l.Finish(ctx))
	sc.txn(func(x *Txn, next *shown) {
		require.NoError(sc.c.t, x.SwapLoad(sc.tables[name], l))
		next.rows[name] = rows
	})
}
