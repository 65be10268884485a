package storage

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

func memStore(t *testing.T) *Store {
	return openTest(t, "/data", smallOptions(&faultFS{FS: vfs.NewMem()}))
}

func TestMetadataFormatIsPinned(t *testing.T) {
	require.EqualValues(t, 24, metaFormat, "docs/format/meta.md")
	require.EqualValues(t, 24, pebble.FormatValueSeparation)
}

func TestCatalog(t *testing.T) {
	s := memStore(t)
	db, ids := createTest(t, s, testTable("b"), testTable("a"))
	_, err := s.CreateDatabase(ctx, "shop", nil)
	require.ErrorIs(t, err, ErrExists)
	_, err = s.Database("none")
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, s.UpdateConfig(ctx, db, []byte("new")))
	x := s.Begin(db)
	require.NoError(t, x.SetState(ids[1], Copying))
	x.PutPendingXA("x'1'", []byte("one"))
	x.PutPendingXA("x'2'", nil)
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	require.NoError(t, x.Abort())

	tables := s.Tables(db)
	require.Len(t, tables, 2)
	require.Equal(t, "a", tables[0].Def.Name)
	require.Equal(t, Copying, tables[0].State)
	require.Equal(t, Live, tables[1].State)
	table, err := s.Table(db, "b")
	require.NoError(t, err)
	require.Equal(t, ids[0], table.ID)
	_, err = s.Table(db, "B")
	require.ErrorIs(t, err, ErrNotFound)
	xids, err := s.PendingXAs(db)
	require.NoError(t, err)
	require.Equal(t, []string{"x'1'", "x'2'"}, xids)
	x = s.Begin(db)
	x.DeletePendingXA("x'1'")
	x.SetConfig([]byte("newer"))
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	_, err = s.PendingXA(db, "x'1'")
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, "newer", string(s.Databases()[0].Config))

	v, err := s.Pin(db)
	require.NoError(t, err)
	require.NoError(t, s.DropDatabase(ctx, db))
	require.ErrorIs(t, s.DropDatabase(ctx, db), ErrNotFound)
	require.Empty(t, s.Databases())
	require.Len(t, v.Tables(db), 2, "a pinned version does not change")
	v.Release()
	_, err = s.Pin(db)
	require.ErrorIs(t, err, ErrNotFound)
	x = s.Begin(db)
	_, err = x.CreateTable(testTable("c"))
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, x.Abort())
	closeTest(t, s)
}

func TestEventLogIsBounded(t *testing.T) {
	s := memStore(t)
	for i := range 55 {
		require.NoError(t, s.Log(ctx, Event{Kind: "k", Message: fmt.Sprint(i)}))
	}
	events, err := s.Events(100)
	require.NoError(t, err)
	require.Len(t, events, s.opt.Events)
	require.Equal(t, "54", events[0].Message)
	closeTest(t, s)
}

// TestDDLInOneTransaction: drop and create of one name, create and drop, rename, truncate, in one commit.
func TestDDLInOneTransaction(t *testing.T) {
	s := memStore(t)
	def := testTable("a")
	db, ids := createTest(t, s, def)
	require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(0, 100, "old")))

	x := s.Begin(db)
	_, err := x.CreateTable(def)
	require.ErrorIs(t, err, ErrExists)
	require.NoError(t, x.DropTable(ids[0]))
	require.ErrorIs(t, x.Apply(ctx, ids[0], &Changes{}), ErrNotFound)
	again, err := x.CreateTable(def)
	require.NoError(t, err)
	require.NotEqual(t, ids[0], again)
	gone, err := x.CreateTable(testTable("temporary"))
	require.NoError(t, err)
	require.NoError(t, x.Apply(ctx, gone, &Changes{Puts: rowsOf(t, testTable("temporary"), numbered(0, 100, "t"))}))
	require.NoError(t, x.DropTable(gone))
	require.NoError(t, x.Apply(ctx, again, &Changes{Puts: rowsOf(t, def, numbered(0, 3, "new"))}))
	renamed := def.Clone()
	renamed.Name, renamed.Version = "b", 2
	require.NoError(t, x.Alter(again, renamed))
	require.Error(t, x.Alter(again, renamed), "the version must go up")
	got, err := x.Def(again)
	require.NoError(t, err)
	require.Equal(t, "b", got.Name)
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	require.Len(t, s.Tables(db), 1)
	requireRows(t, numbered(0, 3, "new"), headContents(t, s, again))

	x = s.Begin(db)
	require.NoError(t, x.Truncate(again))
	require.NoError(t, x.Apply(ctx, again, &Changes{Puts: rowsOf(t, renamed, numbered(1, 2, "t")), PutExpect: expectAll(MustNotExist, 1)}))
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	requireRows(t, numbered(1, 2, "t"), headContents(t, s, again))
	require.NoError(t, s.Maintain(ctx))
	closeTest(t, s)
}

// TestQuarantine (OPS-03): a table set aside keeps its last good rows; the others go on in the same commit.
func TestQuarantine(t *testing.T) {
	s := memStore(t)
	bad, good := testTable("bad"), testTable("good")
	db, ids := createTest(t, s, bad, good)
	require.NoError(t, upsertRows(t, s, db, ids[0], bad, numbered(0, 5, "ok")))
	x := s.Begin(db)
	require.NoError(t, x.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, bad, numbered(3, 100, "half"))}))
	require.NoError(t, x.Alter(ids[0], widened(bad)))
	require.NoError(t, x.Apply(ctx, ids[1], &Changes{Puts: rowsOf(t, good, numbered(0, 5, "go on"))}))
	require.NoError(t, x.Quarantine(ids[0], "no good", []byte("point 7")))
	require.ErrorIs(t, x.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, bad, numbered(0, 1, "no"))}), ErrQuarantined)
	_, err := x.Commit(ctx)
	require.NoError(t, err)
	requireRows(t, numbered(0, 5, "ok"), headContents(t, s, ids[0]))
	requireRows(t, numbered(0, 5, "go on"), headContents(t, s, ids[1]))
	info, err := s.Table(db, "bad")
	require.NoError(t, err)
	require.Equal(t, Quarantined, info.State)
	require.Equal(t, "no good", info.Reason)
	require.Equal(t, "point 7", string(info.Point))
	require.Len(t, info.Def.Columns, 3)
	require.ErrorIs(t, upsertRows(t, s, db, ids[0], bad, numbered(0, 1, "no")), ErrQuarantined)
	closeTest(t, s)
}

// TestReadersNeverSeeHalfATransaction (QUERY-14): the sum over two tables is constant in every version, while transfers
// are committed and background work runs.
func TestReadersNeverSeeHalfATransaction(t *testing.T) {
	opt := smallOptions(&faultFS{FS: vfs.NewMem()})
	opt.NoMaintenance = false
	s := openTest(t, "/data", opt)
	a, b := testTable("a"), testTable("b")
	db, ids := createTest(t, s, a, b)
	balance := [2]map[int64]row{numbered(0, 50, ""), numbered(0, 50, "")}
	for i, def := range []TableID{ids[0], ids[1]} {
		for k := range balance[i] {
			balance[i][k] = row{n: 100}
		}
		require.NoError(t, upsertRows(t, s, db, def, a, balance[i]))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				v, err := s.Pin(db)
				if !assertNoError(t, err, "pin") {
					return
				}
				sum := int64(0)
				for _, id := range ids {
					for _, r := range contents(t, v, id) {
						sum += r.n
					}
				}
				v.Release()
				if sum != 10_000 {
					t.Errorf("sum is %d in version %d", sum, v.Seq())
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		x := s.Begin(db)
		for i, amount := range []int64{-7, 7} {
			k := rng.Int64N(50)
			r := balance[i][k]
			r.n += amount
			balance[i][k] = r
			require.NoError(t, x.Apply(ctx, ids[i], &Changes{Puts: rowsOf(t, a, map[int64]row{k: r}), PutExpect: expectAll(MustExist, 1)}))
		}
		_, err := x.Commit(ctx)
		require.NoError(t, err)
	}
	cancel()
	readers.Wait()
	closeTest(t, s)
}

// TestManyKeysAreLookedUpOnAllCores covers lookups that are shared out.
func TestManyKeysAreLookedUpOnAllCores(t *testing.T) {
	opt := smallOptions(&faultFS{FS: vfs.NewMem()})
	opt.SegmentRows, opt.SpillKeys = 1000, 100_000
	s := openTest(t, "/data", opt)
	def := testTable("items")
	db, ids := createTest(t, s, def)
	require.NoError(t, upsertRows(t, s, db, ids[0], def, numbered(0, 9000, "a")))
	x := s.Begin(db)
	require.NoError(t, x.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, def, numbered(100, 8900, "b")), PutExpect: expectAll(MustExist, 8800)}))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, x.Apply(cancelled, ids[0], &Changes{Puts: rowsOf(t, def, numbered(0, 9, "c"))}), context.Canceled)
	_, err := x.Commit(cancelled)
	require.ErrorIs(t, err, context.Canceled)
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 9000, s.Tables(db)[0].Rows)
	closeTest(t, s)
}

// TestLoadFindsDuplicates within a writer and across writers, and what is left of a failed load goes away.
func TestLoadFindsDuplicates(t *testing.T) {
	s := memStore(t)
	def := testTable("items")
	_, ids := createTest(t, s, def)
	var duplicate *DuplicateKeyError
	for _, one := range []bool{true, false} {
		l, err := s.NewLoad(ids[0])
		require.NoError(t, err)
		w := l.NewWriter()
		require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(0, 10, "a"))))
		if !one {
			require.NoError(t, w.Close(ctx))
			w = l.NewWriter()
		}
		require.NoError(t, w.Add(ctx, rowsOf(t, def, numbered(9, 15, "b"))))
		err = firstError(w.Close(ctx), l.Finish(ctx))
		require.ErrorAs(t, err, &duplicate)
		require.NoError(t, l.Abort())
		requireSound(t, s)
	}
	require.NoError(t, s.walkParts(func(path string) error { t.Errorf("%s is left", path); return nil }))
	closeTest(t, s)
}

// TestHugeTransactionInSlices (RES-01): the memory of a transaction does not grow with its rows.
func TestHugeTransactionInSlices(t *testing.T) {
	if testing.Short() {
		t.Skip("writes many rows")
	}
	// Under the race detector Pebble's memtables are part of the heap, so they are kept small.
	s := openTest(t, t.TempDir(), Options{SpillKeys: 20_000, SegmentRows: 4_000, NoMaintenance: true, Retention: -1, MemTableBytes: 1 << 20})
	def := testTable("items")
	db, ids := createTest(t, s, def)
	x := s.Begin(db)
	heap := func() uint64 {
		require.NoError(t, x.jobs.wait()) // what is being written is bounded, but not the same each time
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	slice := func(from int64, expect Expect) {
		rows := numbered(from, from+10_000, "some text that takes room in memory")
		require.NoError(t, x.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, def, rows), PutExpect: expectAll(expect, len(rows))}))
	}
	for i := range int64(6) {
		slice(i*10_000, MustNotExist)
	}
	before := heap()
	for i := range int64(14) {
		slice((6+i)*10_000, MustNotExist)
	}
	slice(0, MustExist)
	grown := int64(heap()) - int64(before)
	require.Less(t, grown, int64(6<<20), "140000 more rows took %d bytes", grown)
	_, err := x.Commit(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 200_000, s.Tables(db)[0].Rows)
	require.NoError(t, s.Maintain(ctx))
	require.Empty(t, s.head.Load().tables[ids[0]].idx.Layers)
	closeTest(t, s)
}

// TestDeadRowsOfAllVersions compares the sets of dead rows with naive ones, for versions old and new in any order.
func TestDeadRowsOfAllVersions(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const rows = 3000
	d := &deadRows{rows: rows}
	naive := []map[uint32]bool{{}} // by commit
	pinned := []CommitSeq{0}
	type hold struct {
		set  *flatSet
		want int
	}
	var holds []hold
	for seq := CommitSeq(1); seq < 400; seq++ {
		next := map[uint32]bool{}
		for r := range naive[seq-1] {
			next[r] = true
		}
		var died []uint32
		for range rng.IntN(8) {
			if r := uint32(rng.IntN(rows)); !next[r] {
				next[r] = true
				died = append(died, r)
			}
		}
		naive = append(naive, next)
		if len(died) > 0 {
			d.add(seq, died, min(pinned[0], seq-1))
		}
		if rng.IntN(3) == 0 {
			pinned = append(pinned, seq)
		}
		ask := pinned[rng.IntN(len(pinned))]
		set := d.at(ask)
		n := 0
		if set != nil {
			n = set.bits.Count()
			for r := range naive[ask] {
				require.True(t, set.bits.Has(r))
			}
		}
		require.Equal(t, len(naive[ask]), n)
		holds = append(holds, hold{set, n})
		if len(pinned) > 20 {
			pinned = pinned[1:]
		}
		if len(holds) > 10 {
			if h := holds[0]; h.set != nil {
				require.Equal(t, h.want, h.set.bits.Count(), "a set that is held does not change")
				d.release(h.set)
			}
			holds = holds[1:]
		}
	}
}

// TestCommitsOfManyTables (RES-03, RES-10): one row in each of many tables, over and over, leaves few files and segments.
func TestCommitsOfManyTables(t *testing.T) {
	opt := smallOptions(&faultFS{FS: vfs.NewMem()})
	opt.PartMinRows = 1000
	s := openTest(t, "/data", opt)
	var defs []*column.Batch
	db, err := s.CreateDatabase(ctx, "shop", nil)
	require.NoError(t, err)
	x := s.Begin(db)
	var ids []TableID
	for i := range 60 {
		def := testTable(fmt.Sprint("t", i))
		id, err := x.CreateTable(def)
		require.NoError(t, err)
		ids = append(ids, id)
		defs = append(defs, rowsOf(t, def, map[int64]row{int64(i): {name: "x"}}))
	}
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	for range 20 {
		x := s.Begin(db)
		for i, id := range ids {
			require.NoError(t, x.Apply(ctx, id, &Changes{Puts: defs[i]}))
		}
		_, err := x.Commit(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Maintain(ctx))
	}
	for _, info := range s.Tables(db) {
		require.EqualValues(t, 1, info.Rows)
		require.Zero(t, info.Parts)
		require.LessOrEqual(t, info.Segments, opt.FlushSegments)
	}
	closeTest(t, s)
}

// TestSegmentMemoryIsBounded (RES-02): few rows of many bytes, in one table or over many, leave memory.
func TestSegmentMemoryIsBounded(t *testing.T) {
	for _, tables := range []int{1, 30} {
		opt := smallOptions(&faultFS{FS: vfs.NewMem()})
		opt.NoMaintenance = false
		opt.SegmentMemory = 1 << 20
		opt.PartMinRows = 1000
		s := openTest(t, "/data", opt)
		db, err := s.CreateDatabase(ctx, "shop", nil)
		require.NoError(t, err)
		x := s.Begin(db)
		var ids []TableID
		for i := range tables {
			id, err := x.CreateTable(testTable(fmt.Sprint("t", i)))
			require.NoError(t, err)
			ids = append(ids, id)
		}
		_, err = x.Commit(ctx)
		require.NoError(t, err)
		text := strings.Repeat("x", 100_000)
		for i := range int64(90) {
			def := testTable(fmt.Sprint("t", int(i)%tables))
			require.NoError(t, upsertRows(t, s, db, ids[int(i)%tables], def, map[int64]row{i: {name: text}}))
			require.LessOrEqual(t, s.head.Load().segmentBytes, 2*opt.SegmentMemory+200_000)
		}
		closeTest(t, s)
	}
}

// TestLargeRows: rows of a quarter of a megabyte go through parts and merges in pieces of few.
func TestLargeRows(t *testing.T) {
	s := openTest(t, "/data", Options{FS: &faultFS{FS: vfs.NewMem()}, NoMaintenance: true, Retention: -1, ReserveBytes: 1, SegmentBytes: 1 << 20})
	def := testTable("items")
	db, ids := createTest(t, s, def)
	rng := rand.New(rand.NewPCG(1, 1))
	want := map[int64]row{}
	for part := range int64(4) {
		rows := map[int64]row{}
		for i := range int64(60) {
			rows[i*4+part] = row{name: strings.Repeat(string(rune('a'+rng.IntN(26))), 1<<18)}
		}
		maps.Copy(want, rows)
		require.NoError(t, upsertRows(t, s, db, ids[0], def, rows))
	}
	require.NoError(t, s.Maintain(ctx))
	require.Len(t, s.head.Load().tables[ids[0]].parts, 1)
	require.NoError(t, s.scanPart(ctx, &PartView{Path: s.path(s.head.Load().tables[ids[0]].parts[0].rec.Path)}, def, func(b *column.Batch, _ uniquekey.Bitset) error {
		require.LessOrEqual(t, b.Rows(), 150, "rows read at a time")
		return nil
	}))
	requireRows(t, want, headContents(t, s, ids[0]))
	closeTest(t, s)
}

func TestOptionsReportAllFaults(t *testing.T) {
	err := (&Options{CacheBytes: -1, FlushRows: -5}).Validate()
	require.ErrorContains(t, err, "CacheBytes")
	require.ErrorContains(t, err, "FlushRows")
	_, err = Open("/data", Options{FS: vfs.NewMem(), Events: -1})
	require.Error(t, err)
}
