package storage

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

var errNoSpace = syscall.ENOSPC

// upsertRows commits rows, some of them enough for a part.
func upsertRows(t testing.TB, s *Store, db DatabaseID, id TableID, def *schema.Table, rows map[int64]row) error {
	x := s.Begin(db)
	defer func() { require.NoError(t, x.Abort()) }()
	if err := x.Apply(ctx, id, &Changes{Puts: rowsOf(t, def, rows)}); err != nil {
		return err
	}
	_, err := x.Commit(ctx)
	return err
}

func numbered(from, to int64, name string) map[int64]row {
	rows := map[int64]row{}
	for i := from; i < to; i++ {
		rows[i] = row{name: name, n: i}
	}
	return rows
}

// TestReserveStopsWritesAndTheyGoOn (RES-08): below the reserve nothing is written, reads go on, and the same transaction
// commits once there is space.
func TestReserveStopsWritesAndTheyGoOn(t *testing.T) {
	fs := &faultFS{FS: vfs.NewMem()}
	opt := smallOptions(fs)
	opt.ReserveBytes = 100 << 20
	s := openTest(t, "/data", opt)
	def := testTable("items")
	fs.free = 1 << 30
	db, ids := createTest(t, s, def)
	want := numbered(0, 10, "a")
	require.NoError(t, upsertRows(t, s, db, ids[0], def, want))

	x := s.Begin(db)
	require.NoError(t, x.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, def, numbered(5, 12, "b"))}))
	fs.free = 50 << 20
	_, err := x.Commit(ctx)
	require.ErrorIs(t, err, ErrDiskFull)
	require.Contains(t, err.Error(), "/data has 50 MiB left")
	requireRows(t, want, headContents(t, s, ids[0]))
	fs.free = 1 << 30
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	maps.Copy(want, numbered(5, 12, "b"))
	requireRows(t, want, headContents(t, s, ids[0]))

	fs.free = 50 << 20
	require.ErrorIs(t, upsertRows(t, s, db, ids[0], def, numbered(0, 90, "c")), ErrDiskFull)
	fs.free = 1 << 30
	closeTest(t, s)
}

// TestPartWriteFails: a full disk under a part is an error of that transaction only.
func TestPartWriteFails(t *testing.T) {
	fs := &faultFS{FS: vfs.NewMem()}
	s := openTest(t, "/data", smallOptions(fs))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	want := numbered(0, 10, "a")
	require.NoError(t, upsertRows(t, s, db, ids[0], def, want))
	for _, op := range []string{"create", "write", "sync"} {
		fs.set(func(o, path string) error {
			if o == op && strings.HasSuffix(path, ".parquet") {
				return errNoSpace
			}
			return nil
		})
		err := upsertRows(t, s, db, ids[0], def, numbered(0, 90, "b"))
		require.ErrorIs(t, err, ErrDiskFull, op)
		fs.set(nil)
		requireRows(t, want, headContents(t, s, ids[0]))
		requireSound(t, s)
	}
	require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(0, 90, "b")))
	requireRows(t, numbered(0, 90, "b"), headContents(t, s, ids[0]))
	closeTest(t, s)
}

// TestDiskFullAtEachWrite (RES-08) lets every write from the k-th on fail as on a full disk, for a sample of k: errors are
// typed, reads go on, nothing acknowledged is lost, and after space is back, or a restart where the metadata store had to
// stop, the store works again.
func TestDiskFullAtEachWrite(t *testing.T) {
	step := uint64(23)
	if *flagEveryCrash {
		step = 1
	}
	for k := uint64(0); ; k += step {
		if !diskFullAt(t, k) {
			return
		}
	}
}

// diskFullAt runs a load of commits and maintenance with a disk that is full from the k-th write on. It tells whether
// there were so many.
func diskFullAt(t *testing.T, k uint64) (reached bool) {
	mem := vfs.NewCrashableMem()
	fs := &faultFS{FS: mem}
	s := openTest(t, "/data", smallOptions(fs))
	def, copied := testTable("items"), testTable("copied")
	db, ids := createTest(t, s, def, copied)
	load, err := s.NewLoad(ids[1])
	require.NoError(t, err)
	chunks := 0
	var writes atomic.Uint64
	fs.set(func(op, path string) error {
		if (op == "write" || op == "create" || op == "sync") && writes.Add(1) > k {
			return fmt.Errorf("%s %s: %w", op, path, errNoSpace)
		}
		return nil
	})
	acked := map[int64]row{}
	var next map[int64]row
	for i := range int64(14) {
		rows := numbered(i*7, i*7+20+60*(i%3/2), fmt.Sprint("v", i))
		next = maps.Clone(acked)
		maps.Copy(next, rows)
		if err := upsertRows(t, s, db, ids[0], def, rows); err != nil {
			requireDiskError(t, err)
			break
		}
		acked = next
		w := load.NewWriter()
		if err := firstError(w.Add(ctx, rowsOf(t, copied, numbered(i*30, i*30+30+i%2*25, "c"))), w.Checkpoint(ctx, []byte(fmt.Sprint(i)))); err != nil {
			requireDiskError(t, err)
			require.NoError(t, w.Abort())
			break
		}
		chunks++
		if i%5 == 4 {
			if err := s.Maintain(ctx); err != nil {
				requireDiskError(t, err)
			}
		}
	}
	reached = writes.Load() > k
	requireRows(t, acked, headContents(t, s, ids[0]))
	if err := load.Finish(ctx); err != nil && reached { // keys of its pieces may overlap
		var twice *DuplicateKeyError
		if !errors.As(err, &twice) {
			requireDiskError(t, err)
		}
	}
	fs.set(nil)
	if s.Failed() == nil {
		require.NoError(t, load.Close())
		require.Equal(t, chunks, resumable(t, s, ids[1]), "k=%d", k)
		require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(1000, 1010, "after")), "k=%d", k)
		maps.Copy(acked, numbered(1000, 1010, "after"))
		require.NoError(t, s.Maintain(ctx))
		requireRows(t, acked, headContents(t, s, ids[0]))
		closeTest(t, s)
		return reached
	}
	var failed *FailedError
	require.ErrorAs(t, s.Close(), &failed)
	require.ErrorIs(t, s.Failed(), errNoSpace)
	// A restart: what the process had written is there.
	s = openTest(t, "/data", smallOptions(&faultFS{FS: mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, k))})}))
	got := headContents(t, s, ids[0])
	if !maps.Equal(got, acked) {
		requireRows(t, next, got)
	}
	if n := resumable(t, s, ids[1]); n != chunks { // the one in flight may have come through
		require.Equal(t, chunks+1, n, "k=%d", k)
	}
	closeTest(t, s)
	return reached
}

// resumable gives the number of chunks that a copy need not read again.
func resumable(t *testing.T, s *Store, id TableID) int {
	t.Helper()
	l, notes, err := s.ResumeLoad(id)
	if errors.Is(err, ErrNotFound) {
		return 0
	}
	require.NoError(t, err)
	for i, note := range notes {
		require.Equal(t, fmt.Sprint(i), string(note))
	}
	require.NoError(t, l.Close())
	return len(notes)
}

// TestUnknownCommitKeepsItsFiles: when the log's sync fails, the commit may be durable all the same, so the files that it
// names must stay.
func TestUnknownCommitKeepsItsFiles(t *testing.T) {
	fs := &faultFS{FS: vfs.NewMem()}
	s := openTest(t, "/data", smallOptions(fs))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	fs.set(func(op, path string) error {
		if op == "sync" && strings.HasSuffix(path, ".log") {
			return errNoSpace
		}
		return nil
	})
	var failed *FailedError
	require.ErrorAs(t, upsertRows(t, s, db, ids[0], def, numbered(0, 100, "x")), &failed)
	files := 0
	require.NoError(t, s.walkParts(func(string) error { files++; return nil }))
	require.Equal(t, 1, files)
	require.ErrorAs(t, upsertRows(t, s, db, ids[0], def, numbered(0, 100, "x")), &failed)
	require.Empty(t, headContents(t, s, ids[0]), "reads go on")
	require.ErrorAs(t, s.Close(), &failed)
}

func requireDiskError(t *testing.T, err error) {
	t.Helper()
	var failed *FailedError
	require.True(t, errors.Is(err, ErrDiskFull) || errors.As(err, &failed), "%v", err)
}

// TestDamagedParts (EXACT-18): a flipped byte, a cut file and a missing file are found and named; other tables go on.
func TestDamagedParts(t *testing.T) {
	damageIt := map[string]func(t *testing.T, fs *vfs.MemFS, path string){
		"flipped byte": func(t *testing.T, fs *vfs.MemFS, path string) {
			b, err := fs.UnsafeGetFileDataBuffer(path)
			require.NoError(t, err)
			b[len(b)/3] ^= 0x10
		},
		"cut file": func(t *testing.T, fs *vfs.MemFS, path string) {
			b, err := fs.UnsafeGetFileDataBuffer(path)
			require.NoError(t, err)
			short := append([]byte(nil), b[:len(b)/2]...)
			f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			_, err = f.Write(short)
			require.NoError(t, firstError(err, f.Close()))
		},
		"missing file": func(t *testing.T, fs *vfs.MemFS, path string) { require.NoError(t, fs.Remove(path)) },
	}
	for name, damageIt := range damageIt {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
			bad, good := testTable("bad"), testTable("good")
			db, ids := createTest(t, s, bad, good)
			require.NoError(t, upsertRows(t, s, db, ids[0], bad, numbered(0, 100, "x")))
			require.NoError(t, upsertRows(t, s, db, ids[1], good, numbered(0, 100, "y")))
			path := s.path(s.head.Load().tables[ids[0]].parts[0].rec.Path)
			damageIt(t, mem, path)

			report, err := s.Verify(ctx)
			require.NoError(t, err)
			require.False(t, report.OK())
			require.Contains(t, report.String(), path)
			require.NoError(t, s.Close())

			s = openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
			requireRows(t, numbered(0, 100, "y"), headContents(t, s, ids[1]))
			require.NoError(t, upsertRows(t, s, db, ids[1], good, numbered(0, 3, "z")))
			if name != "flipped byte" { // which only reading the whole file finds
				v, err := s.Pin(db)
				require.NoError(t, err)
				_, err = v.Table(db, "bad")
				var damage *DamageError
				require.ErrorAs(t, err, &damage)
				require.Contains(t, err.Error(), path)
				v.Release()
			}
			// The way out: a new copy.
			l, err := s.NewLoad(ids[0])
			require.NoError(t, err)
			w := l.NewWriter()
			require.NoError(t, w.Add(ctx, rowsOf(t, bad, numbered(0, 5, "new"))))
			require.NoError(t, firstError(w.Close(ctx), l.Finish(ctx)))
			x := s.Begin(db)
			require.NoError(t, x.SwapLoad(ids[0], l))
			_, err = x.Commit(ctx)
			require.NoError(t, err)
			requireRows(t, numbered(0, 5, "new"), headContents(t, s, ids[0]))
			require.NoError(t, s.Maintain(ctx))
			closeTest(t, s)
		})
	}
}

// TestDamagedMetadata (EXACT-18): a flipped byte anywhere in the metadata store's files is an error at open or a problem
// of verify, or did not matter. Pebble takes damage in its newest log for a torn end and drops the commits after it: the
// store notices, and goes on from the earlier commit, whole, when it is told to.
func TestDamagedMetadata(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	commits := []map[int64]row{{}}
	for i := range int64(30) {
		rows := numbered(i*3, i*3+10, fmt.Sprint("v", i))
		next := maps.Clone(commits[len(commits)-1])
		maps.Copy(next, rows)
		commits = append(commits, next)
		require.NoError(t, upsertRows(t, s, db, ids[0], def, rows))
	}
	require.NoError(t, s.Close())
	rng := rand.New(rand.NewPCG(7, 7))
	names, err := mem.List("/data/meta")
	require.NoError(t, err)
	for _, name := range names {
		for range 12 {
			fs := mem.CrashClone(vfs.CrashCloneCfg{})
			b, err := fs.UnsafeGetFileDataBuffer("/data/meta/" + name)
			if err != nil || len(b) == 0 {
				continue
			}
			at := rng.IntN(len(b))
			b[at] ^= 1 << rng.IntN(8)
			where := fmt.Sprintf("%s byte %d of %d", name, at, len(b))
			lost := lostCommits(t, fs, ids[0], commits, where)
			require.LessOrEqual(t, lost, 0, "%s: commits are gone, and nothing was noticed", where)
			if lost < 0 && strings.HasSuffix(name, ".log") {
				_, err := Open("/data", smallOptions(&faultFS{FS: fs}))
				require.ErrorContains(t, err, "were acknowledged and are gone", where)
				require.NoError(t, fs.Remove("/data/"+witnessName))
				require.Positive(t, lostCommits(t, fs, ids[0], commits, where))
			}
		}
	}
}

// lostCommits opens a damaged store. It gives -1 when the damage was noticed, else how many commits are missing.
func lostCommits(t *testing.T, fs vfs.FS, id TableID, commits []map[int64]row, where string) int {
	s, err := Open("/data", smallOptions(&faultFS{FS: fs}))
	if err != nil {
		return -1
	}
	defer func() { _ = s.Close() }()
	if report, err := s.Verify(ctx); err != nil || !report.OK() {
		return -1
	}
	if s.head.Load().tables[id] == nil {
		return len(commits)
	}
	got := headContents(t, s, id)
	for i := range commits {
		if maps.Equal(got, commits[len(commits)-1-i]) {
			return i
		}
	}
	t.Errorf("%s: the store shows rows that no commit had", where)
	return -1
}

// TestWritersWaitForFlushes (RES-03): segments stay bounded while commits are faster than flushes.
func TestWritersWaitForFlushes(t *testing.T) {
	opt := smallOptions(&faultFS{FS: vfs.NewMem()})
	opt.NoMaintenance = false
	s := openTest(t, "/data", opt)
	def := testTable("items")
	db, ids := createTest(t, s, def)
	most := 0
	for i := range int64(300) {
		require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(i*5, i*5+5, "x")))
		most = max(most, len(s.head.Load().tables[ids[0]].segments))
	}
	require.LessOrEqual(t, most, 4*opt.FlushSegments)
	waitUntil(t, "few parts", func() bool {
		info := s.head.Load().tables[ids[0]]
		return len(info.parts) <= smallParts && len(info.segments) <= opt.FlushSegments
	})
	requireRows(t, numbered(0, 1500, "x"), headContents(t, s, ids[0]))
	closeTest(t, s)
}

// TestDeletedRowsLeaveTheDisk (QUERY-04): the files of rows that are gone go away, after the last reader and the
// retention.
func TestDeletedRowsLeaveTheDisk(t *testing.T) {
	now := time.Unix(1000, 0)
	mem := vfs.NewMem()
	opt := smallOptions(&faultFS{FS: mem})
	opt.Retention = time.Minute
	opt.Now = func() time.Time { return now }
	s := openTest(t, "/data", opt)
	def := testTable("items")
	db, ids := createTest(t, s, def)
	require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(0, 100, "secret")))
	old := s.path(s.head.Load().tables[ids[0]].parts[0].rec.Path)
	v, err := s.Pin(db)
	require.NoError(t, err)
	x := s.Begin(db)
	var keys []int64
	for i := range int64(90) {
		keys = append(keys, i)
	}
	require.NoError(t, x.Apply(ctx, ids[0], &Changes{Deletes: keysOf(t, def, keys...), DeleteExpect: expectAll(MustExist, 90)}))
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	there := func() bool { _, err := mem.Stat(old); return err == nil }
	require.NoError(t, s.Maintain(ctx))
	now = now.Add(2 * time.Minute)
	require.NoError(t, s.Maintain(ctx))
	require.True(t, there(), "a reader holds it")
	requireRows(t, numbered(0, 100, "secret"), contents(t, v, ids[0]))
	v.Release()
	require.NoError(t, s.Maintain(ctx))
	require.False(t, there())
	require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(200, 300, "x")))
	require.NoError(t, s.Close())
	s = openTest(t, "/data", opt)
	requireRows(t, maps.Collect(func(yield func(int64, row) bool) {
		for k, r := range numbered(90, 100, "secret") {
			yield(k, r)
		}
		for k, r := range numbered(200, 300, "x") {
			yield(k, r)
		}
	}), headContents(t, s, ids[0]))
	closeTest(t, s)
}
