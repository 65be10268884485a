package storage

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// benchTable has the 13 columns of the design's measurements.
func benchTable() *schema.Table {
	t := &schema.Table{Database: "shop", Name: "lines", Version: 1, Key: []int{0}, KeyName: "PRIMARY"}
	add := func(c schema.Column) {
		c.ID = uint32(len(t.Columns) + 1)
		c.Name = fmt.Sprint("c", c.ID)
		t.Columns = append(t.Columns, c)
	}
	text := func(n int) schema.Column {
		return schema.Column{Type: schema.VarChar, Length: n, Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci", ColumnType: "varchar"}
	}
	add(schema.Column{Type: schema.BigInt, ColumnType: "bigint"})
	for range 3 {
		add(schema.Column{Type: schema.Int, ColumnType: "int"})
	}
	for range 4 {
		add(schema.Column{Type: schema.Decimal, Precision: 15, Scale: 2, ColumnType: "decimal(15,2)"})
	}
	add(text(1))
	add(text(10))
	add(schema.Column{Type: schema.Date, ColumnType: "date"})
	add(schema.Column{Type: schema.DateTime, ColumnType: "datetime"})
	add(text(44))
	t.NextColumnID = 14
	return t
}

func benchRows(b testing.TB, t *schema.Table, rng *rand.Rand, ids []int64) *column.Batch {
	words := []string{"carefully", "final", "deposits", "sleep", "furiously", "ironic", "packages", "haggle", "quickly"}
	bl := column.NewBuilder(memory.DefaultAllocator, t)
	for _, id := range ids {
		bl.Column(0).Int(id)
		for c := 1; c < 4; c++ {
			bl.Column(c).Int(rng.Int64N(200000))
		}
		for c := 4; c < 8; c++ {
			bl.Column(c).Decimal(decimal128.FromI64(rng.Int64N(10_000_000)))
		}
		bl.Column(8).Bytes([]byte("ANR")[id%3 : id%3+1])
		bl.Column(9).Bytes([]byte(words[id%9]))
		bl.Column(10).Date(1992+int(id%7), 1+int(id%12), 1+int(id%28))
		bl.Column(11).DateTime(2024, 1+int(id%12), 1+int(id%28), int(id%24), int(id%60), int(id%60), 0)
		bl.Column(12).Bytes(fmt.Appendf(nil, "%s %s %s %d", words[rng.IntN(9)], words[rng.IntN(9)], words[rng.IntN(9)], rng.IntN(1000)))
		bl.EndRow()
	}
	batch, err := bl.Finish()
	require.NoError(b, err)
	return batch
}

func sequence(from, n int64) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = from + int64(i)
	}
	return ids
}

// cpuMeter reports the processor time a row takes, all background work included: what a busy machine can't blur.
func cpuMeter(b *testing.B) func(rows int) {
	used := func() float64 {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1000
	}
	start := used()
	return func(rows int) { b.ReportMetric((used()-start)/float64(rows), "cpu-us/row") }
}

func benchStore(b *testing.B) (*Store, DatabaseID, TableID, *schema.Table) {
	s := openTest(b, b.TempDir(), Options{})
	def := benchTable()
	db, ids := createTest(b, s, def)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	return s, db, ids[0], def
}

// fill loads rows 0..n-1 with two writers.
func fill(b *testing.B, s *Store, db DatabaseID, id TableID, def *schema.Table, n int64) {
	l, err := s.NewLoad(id)
	require.NoError(b, err)
	const piece = 32 << 10
	rng := rand.New(rand.NewPCG(1, 1))
	template := benchRows(b, def, rng, sequence(0, piece))
	var wg sync.WaitGroup
	for half := range int64(2) {
		wg.Go(func() {
			w := l.NewWriter()
			for from := half * n / 2; from < (half+1)*n/2; from += piece {
				rows := min(piece, (half+1)*n/2-from)
				require.NoError(b, w.Add(ctx, renumbered(b, def, template, from, int(rows))))
			}
			require.NoError(b, w.Close(ctx))
		})
	}
	wg.Wait()
	require.NoError(b, l.Finish(ctx))
	x := s.Begin(db)
	require.NoError(b, x.SwapLoad(id, l))
	_, err = x.Commit(ctx)
	require.NoError(b, err)
}

// renumbered gives the template's rows with ascending keys.
func renumbered(b testing.TB, def *schema.Table, template *column.Batch, from int64, n int) *column.Batch {
	keys := schema.Table{Database: def.Database, Name: def.Name, Version: def.Version, Columns: def.Columns[:1], Key: def.Key}
	bl := column.NewBuilder(memory.DefaultAllocator, &keys)
	for i := range n {
		bl.Column(0).Int(from + int64(i))
		bl.EndRow()
	}
	k, err := bl.Finish()
	require.NoError(b, err)
	rest := template.Slice(0, n)
	columns := rest.Record.Columns()
	columns[0] = k.Record.Column(0)
	return &column.Batch{Table: def, Record: newRecord(def, columns, n), Keys: k.Keys}
}

// BenchmarkLoad loads 2 M rows of 13 columns with two writers; building the rows is not much of it.
func BenchmarkLoad(b *testing.B) {
	const n = 2_000_000
	report := cpuMeter(b)
	for b.Loop() {
		s, db, id, def := benchStore(b)
		fill(b, s, db, id, def, n)
	}
	report(n * b.N)
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkCommit commits transactions of a few random rows each in a table of a million, alone and beside copies that are
// under way: shadows, each with a durable load of ten pieces.
func BenchmarkCommit(b *testing.B) {
	for _, copies := range []int{0, 300} {
		b.Run(fmt.Sprint("copies=", copies), func(b *testing.B) {
			s, db, id, def := benchStore(b)
			fill(b, s, db, id, def, 1_000_000)
			rng := rand.New(rand.NewPCG(1, 1))
			for range copies {
				l, err := s.NewLoad(createShadow(b, s, db, def))
				require.NoError(b, err)
				for i := range int64(10) {
					w := l.NewWriter()
					require.NoError(b, w.Add(ctx, benchRows(b, def, rng, sequence(i*10, 10))))
					require.NoError(b, w.Checkpoint(ctx, []byte("note")))
				}
				require.NoError(b, l.Close())
			}
			report := cpuMeter(b)
			for b.Loop() {
				benchUpsert(b, s, db, id, def, rng, 1_000_000, 10)
			}
			report(10 * b.N)
		})
	}
}

func benchUpsert(b *testing.B, s *Store, db DatabaseID, id TableID, def *schema.Table, rng *rand.Rand, keys int64, rows int) {
	set := map[int64]bool{}
	for len(set) < rows {
		set[rng.Int64N(keys)] = true
	}
	ids := make([]int64, 0, rows)
	for k := range set {
		ids = append(ids, k)
	}
	b.StopTimer()
	batch := benchRows(b, def, rng, ids)
	b.StartTimer()
	x := s.Begin(db)
	require.NoError(b, x.Apply(ctx, id, &Changes{Puts: batch, PutExpect: expectAll(MustExist, rows)}))
	_, err := x.Commit(ctx)
	require.NoError(b, err)
}

// BenchmarkUpsert upserts random keys, 20000 a commit, with flushes and merges beside.
func BenchmarkUpsert(b *testing.B) {
	for _, n := range []int64{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("table=%dM", n/1_000_000), func(b *testing.B) {
			s, db, id, def := benchStore(b)
			fill(b, s, db, id, def, n)
			rng := rand.New(rand.NewPCG(1, 1))
			const rows = 20_000
			report := cpuMeter(b)
			for b.Loop() {
				benchUpsert(b, s, db, id, def, rng, n, rows)
			}
			report(rows * b.N)
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkInsert inserts ascending keys, 60000 a commit.
func BenchmarkInsert(b *testing.B) {
	s, db, id, def := benchStore(b)
	rng := rand.New(rand.NewPCG(1, 1))
	const rows = 60_000
	template := benchRows(b, def, rng, sequence(0, rows))
	next := int64(0)
	for b.Loop() {
		b.StopTimer()
		batch := renumbered(b, def, template, next, rows)
		next += rows
		b.StartTimer()
		x := s.Begin(db)
		require.NoError(b, x.Apply(ctx, id, &Changes{Puts: batch, PutExpect: expectAll(MustNotExist, rows)}))
		_, err := x.Commit(ctx)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkLookup finds 20000 random keys of a loaded table: what an upsert waits for.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int64{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("table=%dM", n/1_000_000), func(b *testing.B) {
			s, db, id, def := benchStore(b)
			fill(b, s, db, id, def, n)
			rng := rand.New(rand.NewPCG(1, 1))
			const rows = 20_000
			st := s.head.Load().tables[id]
			x := newIndex(st.rec.Generation, &st.idx)
			for b.Loop() {
				b.StopTimer()
				ids := make([]int64, 0, rows)
				for range rows {
					ids = append(ids, rng.Int64N(n))
				}
				kb := column.NewKeyBuilder(def)
				for _, k := range ids {
					kb.Column(0).Int(k)
					kb.EndRow()
				}
				keys, err := kb.Finish()
				require.NoError(b, err)
				b.StartTimer()
				order, _ := keyOrder(&keys)
				require.NoError(b, x.lookup(ctx, s.meta, &keys, order, make([]found, rows)))
			}
			b.ReportMetric(float64(s.meta.Metrics().DiskSpaceUsage())/float64(n), "index-bytes/row")
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}

// BenchmarkWithoutKey takes 10000 rows of a table without a key away and adds as many, in each commit; every row is there
// three times.
func BenchmarkWithoutKey(b *testing.B) {
	s := openTest(b, b.TempDir(), Options{})
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	def := keylessTable("log")
	db, ids := createTest(b, s, def)
	const n, rows = 500_000, 10_000
	l, err := s.NewLoad(ids[0])
	require.NoError(b, err)
	w := l.NewWriter()
	for from := int64(0); from < n; from += rows {
		for range 3 {
			require.NoError(b, w.Add(ctx, bagRows(b, def, bagSequence(from, rows))))
		}
	}
	require.NoError(b, w.Close(ctx))
	swapIn(b, s, db, ids[0], l)
	rng := rand.New(rand.NewPCG(1, 1))
	report := cpuMeter(b)
	for b.Loop() {
		b.StopTimer()
		from := rng.Int64N(n - 2*rows)
		going := bag{}
		going.add(bagSequence(from, rows))
		c := removals(b, def, going)
		c.Puts = bagRows(b, def, bagSequence(from+rows, rows))
		b.StartTimer()
		applyBag(b, s, db, ids[0], c)
		b.StopTimer()
		applyBag(b, s, db, ids[0], &Changes{Puts: bagRows(b, def, bagSequence(from, rows))}) // so that there are always enough
		b.StartTimer()
	}
	report(3 * rows * b.N)
}

func bagSequence(from, n int64) []row {
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{name: "some text", n: from + int64(i)}
	}
	return rows
}
