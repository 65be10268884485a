package storage

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

// loadSome gives a writer numbered rows and makes them durable under a note.
func loadSome(t testing.TB, w *LoadWriter, def *schema.Table, from, to int64, note string) {
	t.Helper()
	require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(from, to, "copied"))))
	require.NoError(t, w.Checkpoint(ctx, []byte(note)))
}

func swapIn(t testing.TB, s *Store, db DatabaseID, id TableID, l *Load) {
	t.Helper()
	require.NoError(t, l.Finish(ctx))
	x := s.Begin(db)
	require.NoError(t, x.SwapLoad(id, l))
	_, err := x.Commit(ctx)
	require.NoError(t, err)
}

func notesOf(notes [][]byte) []string {
	var out []string
	for _, n := range notes {
		out = append(out, string(n))
	}
	return out
}

// requireOnlyParts checks that nothing but the parts of tables is left once nobody reads.
func requireOnlyParts(t testing.TB, s *Store, want int) {
	t.Helper()
	require.NoError(t, s.Maintain(ctx))
	n := 0
	require.NoError(t, s.walkParts(func(string) error { n++; return nil }))
	require.Equal(t, want, n, "parts")
	require.NoError(t, s.walkLoads(func(path string) error { t.Errorf("%s is left", path); return nil }))
}

// TestResumeLoad (SNAP-10): a copy that was cut off goes on with what was durable, once, and the rest is copied again.
func TestResumeLoad(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	_, _, err := s.ResumeLoad(ids[0])
	require.ErrorIs(t, err, ErrNotFound)
	_, _, err = s.ResumeLoad(ids[0] + 100)
	require.ErrorIs(t, err, ErrNotFound)

	l, err := s.NewLoad(ids[0])
	require.NoError(t, err)
	a, b := l.NewWriter(), l.NewWriter()
	loadSome(t, a, def, 0, 120, "to 120")
	loadSome(t, b, def, 500, 530, "to 530")
	require.NoError(t, a.Checkpoint(ctx, []byte("nothing more")))
	require.NoError(t, a.Add(ctx, rowsOf(t, def, numbered(120, 200, "lost")))) // a piece is on disk, the rest in memory
	_, _, err = s.ResumeLoad(ids[0])
	require.ErrorIs(t, err, ErrLoadOpen)
	require.EqualValues(t, 230, l.Rows())
	require.Empty(t, headContents(t, s, ids[0]))
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, l.Close())
	require.NoError(t, s.Close())

	s = openTest(t, "/data", smallOptions(&faultFS{FS: crashed}))
	requireSound(t, s)
	l, notes, err := s.ResumeLoad(ids[0])
	require.NoError(t, err)
	require.Equal(t, []string{"to 120", "to 530", "nothing more"}, notesOf(notes))
	require.EqualValues(t, 150, l.Rows())
	w := l.NewWriter()
	loadSome(t, w, def, 120, 130, "to 130")
	require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(130, 140, "copied")))) // with the swap only
	require.NoError(t, w.Close(ctx))
	swapIn(t, s, db, ids[0], l)
	want := numbered(0, 140, "copied")
	maps.Copy(want, numbered(500, 530, "copied"))
	requireRows(t, want, headContents(t, s, ids[0]))
	_, _, err = s.ResumeLoad(ids[0])
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, l.Abort(), "nothing to abort")
	require.NoError(t, s.Close())
	s = openTest(t, "/data", smallOptions(&faultFS{FS: crashed}))
	requireRows(t, want, headContents(t, s, ids[0]))
	requireOnlyParts(t, s, len(s.head.Load().tables[ids[0]].parts))
	closeTest(t, s)
}

// TestWriterAborts: what a read that broke off gave is dropped, in memory and on disk, and comes again.
func TestWriterAborts(t *testing.T) {
	s := memStore(t)
	def := testTable("items")
	db, ids := createTest(t, s, def)
	l, err := s.NewLoad(ids[0])
	require.NoError(t, err)
	w := l.NewWriter()
	loadSome(t, w, def, 0, 10, "10")
	require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(10, 90, "broken off"))))
	require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(90, 95, "broken off"))))
	require.NoError(t, w.Abort())
	require.EqualValues(t, 10, l.Rows())
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	w = l.NewWriter()
	require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(10, 20, "copied"))))
	require.ErrorIs(t, w.Checkpoint(cancelled, nil), context.Canceled)
	require.NoError(t, w.Checkpoint(ctx, []byte("20")))
	require.Equal(t, []string{"10", "20"}, notesOf(l.Notes()))
	swapIn(t, s, db, ids[0], l)
	requireRows(t, numbered(0, 20, "copied"), headContents(t, s, ids[0]))
	requireOnlyParts(t, s, 2)
	closeTest(t, s)
}

// TestResumedLoadFindsDuplicates between rows from before and after.
func TestResumedLoadFindsDuplicates(t *testing.T) {
	s := memStore(t)
	def := testTable("items")
	_, ids := createTest(t, s, def)
	l, err := s.NewLoad(ids[0])
	require.NoError(t, err)
	loadSome(t, l.NewWriter(), def, 0, 30, "30")
	require.NoError(t, l.Finish(ctx))
	require.Error(t, l.NewWriter().Checkpoint(ctx, nil), "it is finished")
	require.NoError(t, l.Close())
	l, _, err = s.ResumeLoad(ids[0])
	require.NoError(t, err)
	loadSome(t, l.NewWriter(), def, 29, 40, "40")
	var duplicate *DuplicateKeyError
	require.ErrorAs(t, l.Finish(ctx), &duplicate)
	require.NoError(t, l.Close())
	l, notes, err := s.ResumeLoad(ids[0])
	require.NoError(t, err)
	require.Len(t, notes, 2)
	require.NoError(t, l.Abort())
	require.NoError(t, l.Abort())
	_, _, err = s.ResumeLoad(ids[0])
	require.ErrorIs(t, err, ErrNotFound)
	requireOnlyParts(t, s, 0)
	closeTest(t, s)
}

// TestLoadsVanish: with their table, with its definition, and when another load takes their place.
func TestLoadsVanish(t *testing.T) {
	def := testTable("items")
	for name, vanish := range map[string]func(t *testing.T, s *Store, db DatabaseID, id TableID){
		"drop": func(t *testing.T, s *Store, db DatabaseID, id TableID) {
			inTxn(t, s, db, func(x *Txn) error { return x.DropTable(id) })
		},
		"drop of the database": func(t *testing.T, s *Store, db DatabaseID, _ TableID) {
			require.NoError(t, s.DropDatabase(ctx, db))
		},
		"alter": func(t *testing.T, s *Store, db DatabaseID, id TableID) {
			inTxn(t, s, db, func(x *Txn) error { return x.Alter(id, widened(def)) })
		},
		"another durable one": func(t *testing.T, s *Store, _ DatabaseID, id TableID) {
			l, err := s.NewLoad(id)
			require.NoError(t, err)
			loadSome(t, l.NewWriter(), def, 0, 5, "other")
			require.NoError(t, l.Close())
		},
		"another current one": func(t *testing.T, s *Store, db DatabaseID, id TableID) {
			l, err := s.NewLoad(id)
			require.NoError(t, err)
			swapIn(t, s, db, id, l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := &faultFS{FS: vfs.NewMem()}
			s := openTest(t, "/data", smallOptions(fs))
			db, ids := createTest(t, s, def)
			l, err := s.NewLoad(ids[0])
			require.NoError(t, err)
			w := l.NewWriter()
			loadSome(t, w, def, 0, 60, "60")
			require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(60, 70, "more"))))
			vanish(t, s, db, ids[0])
			require.ErrorIs(t, w.Checkpoint(ctx, nil), ErrNotFound)
			require.NoError(t, l.Abort())
			l, notes, err := s.ResumeLoad(ids[0])
			if name == "another durable one" {
				require.NoError(t, err)
				require.Equal(t, []string{"other"}, notesOf(notes))
				require.NoError(t, l.Abort())
			} else {
				require.ErrorIs(t, err, ErrNotFound)
			}
			requireOnlyParts(t, s, 0)
			require.NoError(t, s.Close())
			s = openTest(t, "/data", smallOptions(fs))
			requireOnlyParts(t, s, 0)
			closeTest(t, s)
		})
	}
}

// inTxn commits what fill does.
func inTxn(t testing.TB, s *Store, db DatabaseID, fill func(*Txn) error) {
	t.Helper()
	x := s.Begin(db)
	require.NoError(t, fill(x))
	_, err := x.Commit(ctx)
	require.NoError(t, err)
}

// TestSmallChunksLeaveFewParts (SNAP-07, RES-03): many small chunks are merged once they are current, not before, and each
// row is written again only a few times.
func TestSmallChunksLeaveFewParts(t *testing.T) {
	fs := &faultFS{FS: vfs.NewMem()}
	s := openTest(t, "/data", smallOptions(fs))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	l, err := s.NewLoad(ids[0])
	require.NoError(t, err)
	const chunks = 300
	for i := range int64(chunks) {
		loadSome(t, l.NewWriter(), def, i*4, i*4+4, fmt.Sprint(i))
		if i%50 == 0 {
			before := len(l.pieces)
			require.NoError(t, s.Maintain(ctx))
			require.Len(t, l.pieces, before)
		}
	}
	require.NoError(t, l.Close())
	l, notes, err := s.ResumeLoad(ids[0])
	require.NoError(t, err)
	require.Len(t, notes, chunks)
	created := 0
	fs.set(func(op, path string) error {
		if op == "create" && strings.HasSuffix(path, ".parquet") {
			created++
		}
		return nil
	})
	swapIn(t, s, db, ids[0], l)
	require.NoError(t, s.Maintain(ctx))
	fs.set(nil)
	require.LessOrEqual(t, len(s.head.Load().tables[ids[0]].parts), smallParts)
	require.Less(t, created, chunks/8, "parts written by merges")
	requireRows(t, numbered(0, 4*chunks, "copied"), headContents(t, s, ids[0]))
	requireOnlyParts(t, s, len(s.head.Load().tables[ids[0]].parts))
	closeTest(t, s)
}

// TestDamagedLoad (EXACT-18): a durable load whose files are missing, cut or damaged is found by verify and not resumed
// where a look at the files can tell; the copy starts anew, and takes its place.
func TestDamagedLoad(t *testing.T) {
	for _, suffix := range []string{".parquet", ".sst"} {
		for _, kind := range []string{"flipped", "cut", "missing"} {
			t.Run(kind+suffix, func(t *testing.T) {
				mem := vfs.NewMem()
				s := openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
				def := testTable("items")
				db, ids := createTest(t, s, def)
				l, err := s.NewLoad(ids[0])
				require.NoError(t, err)
				loadSome(t, l.NewWriter(), def, 0, 40, "40")
				p := l.pieces[0]
				require.NoError(t, l.Close())
				path := p.index.path
				if suffix == ".parquet" {
					path = s.path(p.part.rec.Path)
				}
				damageFile(t, mem, path, kind)
				report, err := s.Verify(ctx)
				require.NoError(t, err)
				require.False(t, report.OK())
				require.Contains(t, report.String(), strings.TrimPrefix(path, "/data/"))
				require.NoError(t, s.Close())

				s = openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
				l, _, err = s.ResumeLoad(ids[0])
				if kind == "flipped" {
					require.NoError(t, err)
					require.NoError(t, l.Close())
				} else {
					var damage *DamageError
					require.ErrorAs(t, err, &damage)
					require.Equal(t, path, damage.Path)
				}
				l, err = s.NewLoad(ids[0])
				require.NoError(t, err)
				loadSome(t, l.NewWriter(), def, 0, 45, "45")
				swapIn(t, s, db, ids[0], l)
				requireRows(t, numbered(0, 45, "copied"), headContents(t, s, ids[0]))
				requireOnlyParts(t, s, 1)
				closeTest(t, s)
			})
		}
	}
}

func damageFile(t *testing.T, mem *vfs.MemFS, path, kind string) {
	t.Helper()
	b, err := mem.UnsafeGetFileDataBuffer(path)
	require.NoError(t, err)
	switch kind {
	case "flipped":
		b[10] ^= 0x10 // of the first rows or entries
	case "cut":
		short := append([]byte(nil), b[:len(b)/2]...)
		f, err := mem.Create(path, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write(short)
		require.NoError(t, firstError(err, f.Close()))
	case "missing":
		require.NoError(t, mem.Remove(path))
	}
}

// TestDamagedLoadRecords: records that no checkpoint leaves are refused at open.
func TestDamagedLoadRecords(t *testing.T) {
	good := checkpointRecord{KeyEncoding: 1}
	for name, bad := range map[string]func(s *Store, id TableID) (key []byte, rec any){
		"no such table": func(_ *Store, id TableID) ([]byte, any) { return makeKey(kindLoad, uint64(id)+50, 9, 9), good },
		"two loads":     func(_ *Store, id TableID) ([]byte, any) { return makeKey(kindLoad, uint64(id), 1<<40, 9), good },
		"no JSON":       func(_ *Store, id TableID) ([]byte, any) { return makeKey(kindLoad, uint64(id), 1<<40, 9), "text" },
		"short key":     func(_ *Store, id TableID) ([]byte, any) { return makeKey(kindLoad, uint64(id), 9), good },
		"newer keys": func(s *Store, id TableID) ([]byte, any) {
			return makeKey(kindLoad, uint64(id), uint64(s.head.Load().tables[id].load.gen), 1<<40), checkpointRecord{KeyEncoding: 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := &faultFS{FS: vfs.NewMem()}
			s := openTest(t, "/data", smallOptions(fs))
			def := testTable("items")
			_, ids := createTest(t, s, def)
			l, err := s.NewLoad(ids[0])
			require.NoError(t, err)
			loadSome(t, l.NewWriter(), def, 0, 4, "4")
			require.NoError(t, l.Close())
			key, rec := bad(s, ids[0])
			value, err := frameJSON(key, rec)
			require.NoError(t, err)
			require.NoError(t, s.meta.Set(key, value, nil))
			require.NoError(t, s.Close())
			_, err = Open("/data", smallOptions(fs))
			if name == "newer keys" {
				require.ErrorIs(t, err, ErrNewerFormat)
				return
			}
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
		})
	}
}
