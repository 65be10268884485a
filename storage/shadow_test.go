package storage

import (
	"fmt"
	"maps"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

// shadowContents reads a shadow, which no version shows.
func shadowContents(t testing.TB, s *Store, id TableID) map[int64]row {
	t.Helper()
	v, err := s.Pin()
	require.NoError(t, err)
	defer v.Release()
	_, err = v.view(v.st.tables[id])
	require.NoError(t, err) // now v.table would give it by its id
	st := *v.st
	st.tables = maps.Clone(st.tables)
	unmasked := *st.tables[id]
	unmasked.rec.Shadow = false
	st.tables[id] = &unmasked
	v.st = &st
	return contents(t, v, id)
}

func createShadow(t testing.TB, s *Store, db DatabaseID, def *schema.Table) (id TableID) {
	t.Helper()
	inTxn(t, s, db, func(x *Txn) (err error) {
		id, err = x.CreateShadow(def)
		return err
	})
	return id
}

// TestShadow (SNAP-21): a table is copied anew beside itself, catches up, and takes its own place in one commit, while
// readers see the old rows until then, and those that pinned before, after it.
func TestShadow(t *testing.T) {
	fs := &faultFS{FS: vfs.NewMem()}
	s := openTest(t, "/data", smallOptions(fs))
	def := testTable("items")
	db, ids := createTest(t, s, def, testTable("other"))
	old := ids[0]
	require.NoError(t, upsertRows(t, s, db, old, def, numbered(0, 90, "old")))
	shadow := createShadow(t, s, db, def)
	require.NotEqual(t, old, shadow)
	second := createShadow(t, s, db, def)

	l, err := s.NewLoad(shadow)
	require.NoError(t, err)
	loadSome(t, l.NewWriter(), def, 0, 100, "all")
	swapIn(t, s, db, shadow, l)
	require.NoError(t, s.Close())
	s = openTest(t, "/data", smallOptions(fs))

	x := s.BeginShadow(shadow)
	wider := widened(def)
	require.NoError(t, x.Apply(ctx, shadow, &Changes{Puts: rowsOf(t, def, numbered(100, 110, "copied")), PutExpect: expectAll(MustNotExist, 10)}))
	require.NoError(t, x.Alter(shadow, wider))
	require.NoError(t, x.SetTablePoint(shadow, []byte("p1")))
	require.NoError(t, x.SetWindow(shadow, []byte("w")))
	x.PutPendingXA("x", []byte("rows"))
	_, err = x.Commit(ctx)
	require.NoError(t, err)

	require.Len(t, s.Tables(db), 2)
	info, err := s.Table(db, "items")
	require.NoError(t, err)
	require.Equal(t, old, info.ID)
	shadows := s.Shadows(db)
	require.Len(t, shadows, 2)
	require.Equal(t, []TableID{shadow, second}, []TableID{shadows[0].ID, shadows[1].ID})
	require.True(t, shadows[0].Shadow)
	require.Equal(t, "p1", string(shadows[0].Point))
	require.Equal(t, "w", string(shadows[0].Window))
	require.Equal(t, Copying, shadows[0].State)
	want := numbered(0, 110, "copied")
	for k, r := range want {
		r.more = 7
		want[k] = r
	}
	requireRows(t, want, shadowContents(t, s, shadow))
	xa, err := s.ShadowPendingXA(shadow, "x")
	require.NoError(t, err)
	require.Equal(t, "rows", string(xa))
	_, err = s.PendingXA(db, "x")
	require.ErrorIs(t, err, ErrNotFound)

	v, err := s.Pin(db)
	require.NoError(t, err)
	_, err = v.Lookup(ctx, shadow, keysOf(t, def, 1))
	require.ErrorIs(t, err, ErrNotFound)
	require.Len(t, v.Tables(db), 2)

	x = s.Begin(db)
	require.ErrorIs(t, x.Replace(0, shadow), ErrExists)
	require.ErrorIs(t, x.Replace(ids[1], shadow), ErrExists)
	require.Error(t, x.Replace(old, ids[1]), "it is no shadow")
	require.Error(t, x.Replace(second, shadow), "a shadow can't be replaced")
	require.NoError(t, x.SetWindow(shadow, nil))
	require.NoError(t, x.Replace(old, shadow))
	require.NoError(t, x.DropTable(second))
	x.SetPoint([]byte("p1"))
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	info, err = s.Table(db, "items")
	require.NoError(t, err)
	require.Equal(t, shadow, info.ID)
	require.Equal(t, Live, info.State)
	require.Nil(t, info.Point)
	require.Nil(t, info.Window)
	require.Empty(t, s.Shadows(db))
	_, err = s.TableByID(old)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = s.ShadowPendingXA(shadow, "x")
	require.ErrorIs(t, err, ErrNotFound)
	requireRows(t, numbered(0, 90, "old"), contents(t, v, old))
	requireRows(t, want, headContents(t, s, shadow))
	require.NoError(t, s.Maintain(ctx))
	requireRows(t, numbered(0, 90, "old"), contents(t, v, old))
	v.Release()
	requireOnlyParts(t, s, len(s.head.Load().tables[shadow].parts))
	require.NoError(t, s.Close())
	s = openTest(t, "/data", smallOptions(fs))
	requireRows(t, want, headContents(t, s, shadow))
	closeTest(t, s)
}

// TestShadowTransactionsGoBeside: a shadow's transaction and one of the database don't wait for each other, and it can do
// nothing to others.
func TestShadowTransactionsGoBeside(t *testing.T) {
	s := memStore(t)
	def := testTable("items")
	db, ids := createTest(t, s, def)
	shadow := createShadow(t, s, db, def)
	main := s.Begin(db)
	require.NoError(t, main.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, def, numbered(0, 5, "main"))}))
	beside := s.BeginShadow(shadow)
	require.NoError(t, beside.Apply(ctx, shadow, &Changes{Puts: rowsOf(t, def, numbered(0, 7, "beside"))}))
	require.ErrorIs(t, beside.Apply(ctx, ids[0], &Changes{}), ErrNotFound)
	beside.Log(Event{Kind: "k"})
	_, err := main.Commit(ctx)
	require.NoError(t, err)
	_, err = beside.Commit(ctx)
	require.NoError(t, err)
	requireRows(t, numbered(0, 7, "beside"), shadowContents(t, s, shadow))
	requireRows(t, numbered(0, 5, "main"), headContents(t, s, ids[0]))

	for name, forbidden := range map[string]func(x *Txn){
		"point":   func(x *Txn) { x.SetPoint([]byte("p")) },
		"config":  func(x *Txn) { x.SetConfig([]byte("c")) },
		"create":  func(x *Txn) { _, err := x.CreateTable(testTable("new")); require.Error(t, err) },
		"shadow":  func(x *Txn) { _, err := x.CreateShadow(testTable("new")); require.Error(t, err) },
		"replace": func(x *Txn) { require.Error(t, x.Replace(ids[0], shadow)) },
	} {
		x := s.BeginShadow(shadow)
		forbidden(x)
		_, err := x.Commit(ctx)
		require.Error(t, err, name)
		require.NoError(t, x.Abort())
	}
	for _, id := range []TableID{ids[0], 1 << 40} {
		x := s.BeginShadow(id)
		_, err := x.Commit(ctx)
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, x.Abort())
	}
	// One that becomes a table meanwhile is a shadow's no more.
	x := s.BeginShadow(shadow)
	inTxn(t, s, db, func(x *Txn) error { return x.Replace(ids[0], shadow) })
	x.PutPendingXA("x", nil)
	_, err = x.Commit(ctx)
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, x.Abort())
	require.Error(t, s.Begin(db).SetTablePoint(shadow, []byte("p")), "a table has the database's point")
	require.NoError(t, s.Close())
}

// TestShadowsComeAndGo in one transaction, under names that others have or change, and a shadow's own transaction drops it.
func TestShadowsComeAndGo(t *testing.T) {
	s := memStore(t)
	a, b := testTable("a"), testTable("b")
	db, ids := createTest(t, s, a, b)
	var made TableID
	inTxn(t, s, db, func(x *Txn) (err error) { // a table that no one had, by a shadow
		def := testTable("c")
		if made, err = x.CreateShadow(def); err != nil {
			return err
		}
		require.NoError(t, x.Apply(ctx, made, &Changes{Puts: rowsOf(t, def, numbered(0, 3, "c"))}))
		return x.Replace(0, made)
	})
	requireRows(t, numbered(0, 3, "c"), headContents(t, s, made))
	inTxn(t, s, db, func(x *Txn) error { // one that is gone again
		id, err := x.CreateShadow(a)
		require.NoError(t, err)
		require.NoError(t, x.Revoke(id))
		_, err = x.CreateTable(testTable("d"))
		return err
	})
	require.Empty(t, s.Shadows(db))

	shadow := createShadow(t, s, db, a)
	renamed := a.Clone()
	renamed.Name, renamed.Version = "b", 2
	x := s.BeginShadow(shadow)
	require.NoError(t, x.Alter(shadow, renamed), "a shadow takes any name")
	_, err := x.Commit(ctx)
	require.NoError(t, err)
	inTxn(t, s, db, func(x *Txn) error { return x.Replace(ids[1], shadow) })
	info, err := s.Table(db, "b")
	require.NoError(t, err)
	require.Equal(t, shadow, info.ID)

	shadow = createShadow(t, s, db, b)
	x = s.BeginShadow(shadow)
	x.PutPendingXA("x", []byte("y"))
	require.NoError(t, x.DropTable(shadow))
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	require.Empty(t, s.Shadows(db))
	_, err = s.ShadowPendingXA(shadow, "x")
	require.ErrorIs(t, err, ErrNotFound)
	createShadow(t, s, db, b)
	require.NoError(t, s.DropDatabase(ctx, db))
	require.Empty(t, s.head.Load().tables)
	closeTest(t, s)
}

// TestNamesSwapped: tables that change names with each other in one commit (RENAME TABLE a TO x, b TO a, x TO b).
func TestNamesSwapped(t *testing.T) {
	fs := &faultFS{FS: vfs.NewMem()}
	s := openTest(t, "/data", smallOptions(fs))
	db, ids := createTest(t, s, testTable("a"), testTable("b"))
	inTxn(t, s, db, func(x *Txn) error {
		for i, step := range []struct {
			id   TableID
			name string
		}{{ids[0], "x"}, {ids[1], "a"}, {ids[0], "b"}} {
			def := testTable(step.name)
			def.Version = uint32(i + 2)
			require.NoError(t, x.Alter(step.id, def))
		}
		return nil
	})
	for range 2 {
		for i, name := range []string{"b", "a"} {
			info, err := s.Table(db, name)
			require.NoError(t, err)
			require.Equal(t, ids[i], info.ID)
		}
		require.Len(t, s.Tables(db), 2)
		requireSound(t, s)
		require.NoError(t, s.Close())
		s = openTest(t, "/data", smallOptions(fs))
	}
	closeTest(t, s)
}

// TestTablesTakeChangesWhileCopying: after their loads, and become readable together.
func TestTablesTakeChangesWhileCopying(t *testing.T) {
	s := memStore(t)
	db, err := s.CreateDatabase(ctx, "shop", nil)
	require.NoError(t, err)
	const tables = 30
	var ids []TableID
	inTxn(t, s, db, func(x *Txn) error {
		for i := range tables {
			id, err := x.CreateTable(testTable(fmt.Sprint("t", i)))
			require.NoError(t, err)
			require.NoError(t, x.SetState(id, Copying))
			ids = append(ids, id)
		}
		return nil
	})
	inTxn(t, s, db, func(x *Txn) error {
		for i, id := range ids {
			l, err := s.NewLoad(id)
			require.NoError(t, err)
			loadSome(t, l.NewWriter(), testTable(fmt.Sprint("t", i)), 0, 5, "")
			require.NoError(t, l.Finish(ctx))
			require.NoError(t, x.SwapLoad(id, l))
			require.NoError(t, x.SetWindow(id, []byte("to")))
		}
		return nil
	})
	require.Equal(t, Copying, s.Tables(db)[7].State)
	require.Equal(t, "to", string(s.Tables(db)[7].Window))
	inTxn(t, s, db, func(x *Txn) error {
		for i, id := range ids {
			// Row 4 is there already, row 9 is not.
			def := testTable(fmt.Sprint("t", i))
			require.NoError(t, x.Apply(ctx, id, &Changes{
				Puts: rowsOf(t, def, numbered(4, 7, "copied")), PutExpect: expectAll(MustNotExist, 3),
				Deletes: keysOf(t, def, 9), DeleteExpect: expectAll(MustExist, 1), Tolerant: true,
			}))
		}
		return nil
	})
	inTxn(t, s, db, func(x *Txn) error {
		for _, id := range ids {
			require.NoError(t, x.SetWindow(id, nil))
			require.NoError(t, x.SetState(id, Live))
		}
		return nil
	})
	for _, info := range s.Tables(db) {
		require.Equal(t, Live, info.State)
		require.Nil(t, info.Window)
		requireRows(t, numbered(0, 7, "copied"), headContents(t, s, info.ID))
	}
	closeTest(t, s)
}

// TestEarlierFormat: a directory of format 1 is opened, and has format 2 then, which version 1 refuses.
func TestEarlierFormat(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(0, 3, "x")))
	require.NoError(t, s.Close())
	require.NoError(t, replaceFile(mem, "/data", formatName, []byte("tidemark store format 1\n")))
	s = openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
	version, err := readFormat(mem.CrashClone(vfs.CrashCloneCfg{}), "/data")
	require.NoError(t, err)
	require.Equal(t, 2, version)
	requireRows(t, numbered(0, 3, "x"), headContents(t, s, ids[0]))
	closeTest(t, s)
}

// TestBusyTablesAreFlushedLater: a transaction that keeps one table, such as a large one of a shadow, does not hold up the
// flushes of others, and so their writers.
func TestBusyTablesAreFlushedLater(t *testing.T) {
	s := openTest(t, "/data", smallOptions(&faultFS{FS: vfs.NewMem()}))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	shadow := createShadow(t, s, db, def)
	for i := range int64(s.opt.FlushSegments) {
		x := s.BeginShadow(shadow)
		require.NoError(t, x.Apply(ctx, shadow, &Changes{Puts: rowsOf(t, def, numbered(i, i+1, "x"))}))
		_, err := x.Commit(ctx)
		require.NoError(t, err)
	}
	long := s.BeginShadow(shadow)
	require.NoError(t, long.Apply(ctx, shadow, &Changes{Puts: rowsOf(t, def, numbered(100, 101, "x"))}))
	s.opt.NoMaintenance = false
	s.work.start()
	for i := range int64(8 * s.opt.FlushSegments) {
		require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(i, i+1, "x")))
	}
	require.Len(t, s.head.Load().tables[shadow].segments, s.opt.FlushSegments)
	_, err := long.Commit(ctx)
	require.NoError(t, err)
	waitUntil(t, "the shadow is flushed", func() bool { return len(s.head.Load().tables[shadow].segments) < s.opt.FlushSegments })
	closeTest(t, s)
}
