package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

// dead marks rows for which f says so.
func dead(n int, f func(i int) bool) []uint64 {
	words := make([]uint64, (n+63)/64)
	for i := range n {
		if f(i) {
			words[i/64] |= 1 << (i % 64)
		}
	}
	return words
}

func third(i int) bool { return i%3 == 0 }

// mixed makes a table of four parts and three segments, rows 0..69999, some of them deleted in all but one each.
func mixed(t testing.TB, dir string) (Table, int) {
	table := Table{Schema: items()}
	alive := 0
	for p := range 4 {
		part := writePart(t, filepath.Join(dir, fmt.Sprintf("p%d.parquet", p)), itemRecord(t, items(), p*15000, (p+1)*15000))
		if p != 2 {
			part.Dead = dead(15000, third)
			alive -= 5000
		}
		alive += 15000
		table.Parts = append(table.Parts, part)
	}
	for i, n := range []int{1, 3999, 6000} {
		from := 60000 + []int{0, 1, 4000}[i]
		segment := Segment{Record: itemRecord(t, items(), from, from+n)}
		if i == 1 {
			segment.Dead = dead(n, third)
			alive -= 1333
		}
		alive += n
		table.Segments = append(table.Segments, segment)
	}
	return table, alive
}

// QUERY-01: deleted rows are gone, for plain scans, aggregates and shortcuts over metadata alike.
func TestDeletedRowsAreGone(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	table, alive := mixed(t, dir)
	s := scan(t, e, table)
	require.EqualValues(t, alive, s.Rows())
	require.Equal(t, []string{fmt.Sprint(alive)}, ask(t, e, "SELECT count(*) FROM "+s.SQL()))
	require.Equal(t, []string{fmt.Sprint(alive)}, ask(t, e, "SELECT count(DISTINCT c1) FROM "+s.SQL()))
	require.Equal(t, []string{"1|69999"}, ask(t, e, "SELECT min(c1), max(c1) FROM "+s.SQL()))
	require.Equal(t, []string{"15001|15001"}, ask(t, e, "SELECT c1, c2 FROM "+s.SQL()+" WHERE c1 IN (15000, 15001)"))
	require.Equal(t, []string{"30000"}, ask(t, e, "SELECT c1 FROM "+s.SQL()+" WHERE c1 = 30000"))
	require.Equal(t, []string{"60000", "60002"}, ask(t, e, "SELECT c1 FROM "+s.SQL()+" WHERE c1 BETWEEN 60000 AND 60002 ORDER BY 1"))
}

// Statistics prune row groups and files; the filter on deleted rows must go on to mean the same files.
func TestPrunedScanKeepsFileIndex(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	table, _ := mixed(t, dir)
	s := scan(t, e, table)
	for _, id := range []int{1, 14999, 45000, 45001, 59998, 59999} {
		want := []string{fmt.Sprint(id)}
		if id%15000%3 == 0 {
			want = nil
		}
		require.Equal(t, want, ask(t, e, fmt.Sprintf("SELECT c1 FROM %s WHERE c1 = %d", s.SQL(), id)), "id %d", id)
	}
}

// A relation of some columns has the same rows as that of all.
func TestSomeColumns(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	table, alive := mixed(t, dir)
	s := scan(t, e, table)
	require.Equal(t, []string{"2|15001|15001"}, ask(t, e, "SELECT (SELECT count(*) FROM (DESCRIBE FROM "+s.SQLOf([]uint32{2, 1}, false)+")), c1, c2 FROM "+s.SQLOf([]uint32{2, 1}, false)+" WHERE c1 = 15001"))
	require.Equal(t, ask(t, e, "SELECT c2, exact FROM "+s.SQL()+" ORDER BY 1"), ask(t, e, "SELECT * FROM "+s.SQLOf([]uint32{2}, true)+" ORDER BY 1"))
	require.Equal(t, []string{fmt.Sprint(alive)}, ask(t, e, "SELECT count(*) FROM "+s.SQLOf(nil, false)))
	require.Equal(t, []string{fmt.Sprint(alive) + "|0"}, ask(t, e, "SELECT count(*), count(exact) FROM "+s.SQLOf(nil, true)))

	empty := scan(t, e, Table{Schema: items()})
	require.Empty(t, ask(t, e, "SELECT c2 FROM "+empty.SQLOf([]uint32{2}, false)))
	require.Equal(t, []string{"0"}, ask(t, e, "SELECT count(exact) FROM "+empty.SQLOf(nil, true)))
}

func TestSameTableTwiceInOneQuery(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	table, alive := mixed(t, dir)
	s := scan(t, e, table)
	n := fmt.Sprint(alive)
	require.Equal(t, []string{n}, ask(t, e, "SELECT count(*) FROM "+s.SQL()+" a JOIN "+s.SQL()+" b ON a.c1 = b.c1"))
	require.Equal(t, []string{n + "|" + n}, ask(t, e, fmt.Sprintf(
		"WITH x AS (SELECT c1 FROM %s), y AS (SELECT c1 FROM %s) SELECT (SELECT count(*) FROM x), (SELECT count(*) FROM y)", s.SQL(), s.SQL())))
	require.Equal(t, []string{n}, ask(t, e, fmt.Sprintf("WITH x AS (%s) SELECT count(*) FROM x a JOIN x b USING (c1)", s.SQL())))
	only := scan(t, e, Table{Schema: items(), Segments: table.Segments})
	require.Equal(t, []string{"8667"}, ask(t, e, "SELECT count(*) FROM "+only.SQL()+" a JOIN "+only.SQL()+" b ON a.c1 = b.c1"))
}

func TestOddPaths(t *testing.T) {
	for _, name := range []string{"with space", "a=b", "st*r", "[x]", "it's", "qu?stion", "ünï – 文", `back\slash`, "{a,b}", "%20", "a]b[c", "**", "#;--", `"q"`} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			part := writePart(t, filepath.Join(dir, "sub", "p.parquet"), itemRecord(t, items(), 0, 10))
			e := open(t, dir)
			s := scan(t, e, Table{Schema: items(), Parts: []Part{part}})
			require.Equal(t, []string{"10|17"}, ask(t, e, "SELECT count(*), (SELECT count(*) FROM (DESCRIBE SELECT * FROM "+s.SQL()+"))+2 FROM "+s.SQL()))
		})
	}
}

// A pattern must not find another file in place of a missing one.
func TestMissingPartIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[ab]")
	other := filepath.Join(filepath.Dir(dir), "a")
	e := open(t, dir, other)
	writePart(t, filepath.Join(other, "p.parquet"), itemRecord(t, items(), 0, 10))
	s := scan(t, e, Table{Schema: items(), Parts: []Part{{Path: filepath.Join(dir, "p.parquet"), Rows: 10}}})
	_, err := try(e, "SELECT count(*) FROM "+s.SQL())
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, KindFile, typed.Kind)
}

func TestDamagedPartIsAnError(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	part := writePart(t, filepath.Join(dir, "p.parquet"), itemRecord(t, items(), 0, 1000))
	whole, err := os.ReadFile(part.Path)
	require.NoError(t, err)
	for _, cut := range []int{0, 3, 100, len(whole) / 2, len(whole) - 5} {
		require.NoError(t, os.WriteFile(part.Path, whole[:cut], 0o644))
		s := scan(t, e, Table{Schema: items(), Parts: []Part{part}})
		_, err := try(e, "SELECT * FROM "+s.SQL())
		require.Error(t, err, "cut at %d", cut)
	}
	require.NoError(t, os.WriteFile(part.Path, whole, 0o644))
}

// A part with more rows than recorded would be filtered by bits that do not belong to it.
func TestRowsBeyondTheRecordAreAnError(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	part := writePart(t, filepath.Join(dir, "p.parquet"), itemRecord(t, items(), 0, 1000))
	part.Rows, part.Dead = 999, []uint64{1}
	s := scan(t, e, Table{Schema: items(), Parts: []Part{part}})
	_, err := try(e, "SELECT count(*) FROM "+s.SQL())
	require.ErrorContains(t, err, "more rows than its record says")
}

func TestStaleHandleIsAnError(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	table, _ := mixed(t, dir)
	s, err := e.Scan(table)
	require.NoError(t, err)
	sql := s.SQL()
	s.Close()
	_, err = try(e, "SELECT * FROM "+sql)
	require.ErrorContains(t, err, "stale handle")
	holed, err := e.Scan(Table{Schema: items(), Parts: table.Parts[:2]})
	require.NoError(t, err)
	sql = holed.SQL()
	holed.Close()
	_, err = try(e, "SELECT * FROM "+sql)
	require.ErrorContains(t, err, "stale handle")
	_, err = try(e, "SELECT * FROM tidemark_segments(0::UBIGINT)")
	require.ErrorContains(t, err, "stale handle")
	_, err = try(e, "SELECT * FROM tidemark_segments(NULL)")
	require.Error(t, err)
}

func TestQueryClosesItsScans(t *testing.T) {
	e := open(t)
	s, err := e.Scan(Table{Schema: items(), Segments: []Segment{{Record: itemRecord(t, items(), 0, 10)}}})
	require.NoError(t, err)
	require.Equal(t, []string{"10"}, ask(t, e, "SELECT count(*) FROM "+s.SQL(), s))
	_, err = try(e, "SELECT count(*) FROM "+s.SQL())
	require.ErrorContains(t, err, "stale handle")
	require.Empty(t, e.scans)
}

func TestEmptyTable(t *testing.T) {
	e := open(t)
	s := scan(t, e, Table{Schema: items()})
	require.Empty(t, ask(t, e, "SELECT * FROM "+s.SQL()))
	require.Equal(t, []string{"0|NULL"}, ask(t, e, "SELECT count(*), sum(c3) FROM "+s.SQL()))
	columns, err := e.Describe(context.Background(), "SELECT * FROM "+s.SQL())
	require.NoError(t, err)
	require.Len(t, columns, 15)
	for i, c := range s.Columns() {
		require.Equal(t, c.Name, columns[i].Name)
		require.Equal(t, c.Type.String(), columns[i].Type.String())
	}
}

func TestAllRowsDead(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	part := writePart(t, filepath.Join(dir, "p.parquet"), itemRecord(t, items(), 0, 100))
	all := func(int) bool { return true }
	part.Dead = dead(100, all)
	record := itemRecord(t, items(), 100, 9000)
	half := Segment{Record: record, Dead: dead(8900, func(i int) bool { return i < 8899 })}
	s := scan(t, e, Table{Schema: items(), Parts: []Part{part}, Segments: []Segment{{Record: record, Dead: dead(8900, all)}, half}})
	require.Equal(t, []string{"8999"}, ask(t, e, "SELECT c1 FROM "+s.SQL()))
	require.EqualValues(t, 1, s.Rows())
}

func TestBigUnsigned(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	table := &schema.Table{Database: "d", Name: "t", Columns: []schema.Column{{ID: 1, Name: "u", Type: schema.BigInt, Unsigned: true}}}
	record := func(values ...uint64) arrow.RecordBatch {
		b := array.NewRecordBuilder(memory.DefaultAllocator, table.ArrowSchema())
		b.Field(0).(*array.Uint64Builder).AppendValues(values, nil)
		return b.NewRecordBatch()
	}
	small := writePart(t, filepath.Join(dir, "small.parquet"), record(1, 1<<63-1))
	wide := Part{Path: filepath.Join(dir, "wide.parquet"), Rows: 1, Wide: []uint32{1}}
	f := table.Columns[0].ArrowField()
	f.Type = &arrow.Decimal128Type{Precision: 20}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{f}, nil))
	require.NoError(t, b.Field(0).(*array.Decimal128Builder).AppendValueFromString("18446744073709551615"))
	writeParquet(t, wide.Path, b.NewRecordBatch())

	fits := scan(t, e, Table{Schema: table, Parts: []Part{small}, Segments: []Segment{{Record: record(5)}}})
	require.Equal(t, "BIGINT", fits.Columns()[0].Type.String())
	require.Equal(t, []string{"1", "5", "9223372036854775807"}, ask(t, e, "SELECT c1 FROM "+fits.SQL()+" ORDER BY 1"))

	inPart := scan(t, e, Table{Schema: table, Parts: []Part{small, wide}, Segments: []Segment{{Record: record(5)}}})
	require.Equal(t, "UBIGINT", inPart.Columns()[0].Type.String())
	require.Equal(t, []string{"1", "5", "9223372036854775807", "18446744073709551615"}, ask(t, e, "SELECT c1 FROM "+inPart.SQL()+" ORDER BY c1"))
	require.Equal(t, []string{"18446744073709551615"}, ask(t, e, "SELECT c1 FROM "+inPart.SQL()+" WHERE c1 > 9223372036854775807"))

	inSegment := scan(t, e, Table{Schema: table, Parts: []Part{small}, Segments: []Segment{{Record: record(1 << 63)}}})
	require.Equal(t, []string{"1", "9223372036854775807", "9223372036854775808"}, ask(t, e, "SELECT c1 FROM "+inSegment.SQL()+" ORDER BY c1"))
}

func TestExactColumn(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	b.AppendNull()
	b.Append([]byte("\x07\x030-0"))
	exact := b.NewBinaryArray()
	plain := itemRecord(t, items(), 0, 2)
	fields := append(plain.Schema().Fields(), schema.ExactField())
	with := array.NewRecordBatch(arrow.NewSchema(fields, nil), append(append([]arrow.Array{}, plain.Columns()...), exact), 2)
	part := writePart(t, filepath.Join(dir, "p.parquet"), with)
	part.Exact = []uint32{7}
	other := writePart(t, filepath.Join(dir, "q.parquet"), itemRecord(t, items(), 2, 4))
	segments := []Segment{
		{Record: itemRecord(t, items(), 4, 6), Exact: exact, ExactColumns: []uint32{5}},
		{Record: itemRecord(t, items(), 6, 7)},
	}
	s := scan(t, e, Table{Schema: items(), Parts: []Part{part, other}, Segments: segments})
	require.Equal(t, []string{"0|NULL", `1|\x07\x030-0`, "2|NULL", "3|NULL", "4|NULL", `5|\x07\x030-0`, "6|NULL"},
		ask(t, e, "SELECT c1, exact FROM "+s.SQL()+" ORDER BY c1"))
	for _, c := range s.Columns() {
		require.Equal(t, c.ID == 5 || c.ID == 7, c.Exact, c.Name)
	}
}

// RES-13: whatever a segment's arrays claim, C reads nothing outside their buffers, and DuckDB gets valid text only.
func TestBrokenSegmentsAreErrors(t *testing.T) {
	e := open(t)
	table := &schema.Table{Database: "d", Name: "t", Columns: []schema.Column{{ID: 1, Name: "s", Type: schema.Text}}}
	for name, a := range map[string]arrow.Array{
		"falling offsets":   rawText([]int32{0, 4, 2, 4}, "abcd"),
		"negative offsets":  rawText([]int32{-1, 4, 4}, "abcd"),
		"past the end":      rawText([]int32{0, 4, 1 << 30}, "abcd"),
		"wrong type":        itemRecord(t, items(), 0, 2).Column(0),
		"no UTF-8":          rawText([]int32{0, 4, 8}, "abcd\xffbcd"),
		"cut character":     rawText([]int32{0, 3, 4}, "ab\xc3\xa9"),
		"overlong":          rawText([]int32{0, 2}, "\xc0\x80"),
		"surrogate":         rawText([]int32{0, 3}, "\xed\xa0\x80"),
		"beyond Unicode":    rawText([]int32{0, 4}, "\xf4\x90\x80\x80"),
		"cut at the end":    rawText([]int32{0, 9}, "12345678\xe2"),
		"lone continuation": rawText([]int32{0, 1}, "\x80"),
	} {
		s := scan(t, e, Table{Schema: table, Segments: []Segment{{Record: fakeRecord{schema: table.ArrowSchema(), column: a}}}})
		_, err := try(e, "SELECT * FROM "+s.SQL())
		require.ErrorContains(t, err, "segment:", name)
		require.NotErrorIs(t, err, ErrBroken)
	}
	for _, text := range []string{"", "é", "12345678é", "日本\U0001f600\U0010ffff", "\u07ff\u0800\ue000\uffff", strings.Repeat("é12345678", 9)} {
		s := scan(t, e, Table{Schema: table, Segments: []Segment{{Record: fakeRecord{schema: table.ArrowSchema(), column: rawText([]int32{0, int32(len(text))}, text)}}}})
		require.Equal(t, []string{text}, ask(t, e, "SELECT c1 FROM "+s.SQL()))
	}
}

// rawText makes an array from buffers, past what arrow-go would check.
func rawText(offsets []int32, data string) arrow.Array {
	n := len(offsets) - 1
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendEmptyValues(n)
	buffers := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes([]byte(data))}
	return rebuilt{b.NewStringArray(), array.NewData(arrow.BinaryTypes.String, n, buffers, nil, 0, 0)}
}

// rebuilt is an array whose data are others than it was made with.
type rebuilt struct {
	arrow.Array
	data arrow.ArrayData
}

func (r rebuilt) Data() arrow.ArrayData { return r.data }

// fakeRecord is a record that did not go through arrow-go's checks.
type fakeRecord struct {
	arrow.RecordBatch
	schema *arrow.Schema
	column arrow.Array
}

func (r fakeRecord) Schema() *arrow.Schema  { return r.schema }
func (r fakeRecord) NumRows() int64         { return int64(r.column.Len()) }
func (r fakeRecord) Column(int) arrow.Array { return r.column }

func TestConcurrentQueries(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	table, alive := mixed(t, dir)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				s, err := e.Scan(table)
				if err != nil {
					t.Error(err)
					return
				}
				out, err := try(e, "SELECT count(*), sum(length(c4)) > 0 FROM "+s.SQL(), s)
				if err != nil || out[0] != fmt.Sprintf("%d|true", alive) {
					t.Error(out, err)
				}
			}
		})
	}
	all.Wait()
	require.Empty(t, e.scans)
}

// QUERY-16: a query is stopped while it computes and while its reader sleeps.
func TestCancel(t *testing.T) {
	e := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := e.Query(ctx, "SELECT count(*) FROM range(100000000000) a, range(1000000) b WHERE a.range % 7 = b.range % 5")
	require.ErrorIs(t, err, context.Canceled)
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, KindInterrupted, typed.Kind)

	ctx, cancel = context.WithCancel(context.Background())
	rows, err := e.Query(ctx, "SELECT range FROM range(100000000000)")
	require.NoError(t, err)
	_, err = rows.Next()
	require.NoError(t, err)
	cancel()
	for err == nil {
		_, err = rows.Next()
	}
	require.ErrorIs(t, err, context.Canceled)
	rows.Close()
	_, err = e.Query(ctx, "SELECT 1")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"1"}, ask(t, e, "SELECT 1"))
}

// QUERY-16: a result far larger than the memory limit passes through, and an early Close ends the query.
func TestResultsAreStreamed(t *testing.T) {
	e, err := Open(Options{MemoryLimitBytes: 64 << 20, Threads: 2})
	require.NoError(t, err)
	defer e.Close()
	rows, err := e.Query(context.Background(), "SELECT repeat('x', 1000) || range FROM range(200000)")
	require.NoError(t, err)
	var n, bytes int
	for {
		c, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		n += c.Len()
		for i := range c.Len() {
			bytes += len(c.Vector(0).Bytes(i))
		}
	}
	rows.Close()
	require.Equal(t, 200000, n)
	require.Greater(t, bytes, 2*(64<<20))

	rows, err = e.Query(context.Background(), "SELECT range FROM range(1000000000000)")
	require.NoError(t, err)
	_, err = rows.Next()
	require.NoError(t, err)
	rows.Close()
	_, err = rows.Next()
	require.Error(t, err)
}

func TestMemoryLimit(t *testing.T) {
	e, err := Open(Options{MemoryLimitBytes: 32 << 20, Threads: 2})
	require.NoError(t, err)
	defer e.Close()
	_, err = try(e, "SELECT count(*) FROM (SELECT DISTINCT range, repeat('y', 100) || range FROM range(3000000))")
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, KindMemory, typed.Kind)
	require.Equal(t, []string{"1"}, ask(t, e, "SELECT 1"))

	dir := t.TempDir()
	spilling, err := Open(Options{MemoryLimitBytes: 64 << 20, Threads: 2, TempDir: dir})
	require.NoError(t, err)
	defer spilling.Close()
	require.Equal(t, []string{"1500000"}, ask(t, spilling, "SELECT count(*) FROM (SELECT range, repeat('y', 100) || range AS y FROM range(1500000) ORDER BY y OFFSET 0)"))
}

func TestTempDirIsCleaned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's [new]", "tmp")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "spill-7"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spill-7", "left"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o644))
	e, err := Open(Options{MemoryLimitBytes: 48 << 20, Threads: 2, TempDir: dir})
	require.NoError(t, err)
	rows, err := e.Query(context.Background(), "SELECT range, repeat('y', 100) || range AS y FROM range(1000000) ORDER BY y")
	require.NoError(t, err)
	spilled, err := filepath.Glob(filepath.Join(strings.NewReplacer("[", `\[`, "]", `\]`).Replace(dir), "spill-1", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, spilled)
	rows.Close()
	require.NoError(t, e.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "other", entries[0].Name())
}

func TestOnlyPartsCanBeRead(t *testing.T) {
	dir := t.TempDir()
	e := open(t, filepath.Join(dir, "parts"))
	outside := writePart(t, filepath.Join(dir, "p.parquet"), itemRecord(t, items(), 0, 10))
	for _, sql := range []string{
		"SELECT * FROM " + Quote(outside.Path),
		"SELECT * FROM read_parquet(" + Quote(filepath.Join(dir, "parts", "..", "p.parquet")) + ")",
		"SELECT * FROM read_csv('/etc/passwd')",
		"SELECT * FROM glob('/etc/*')",
		"COPY (SELECT 1) TO " + Quote(filepath.Join(dir, "out.csv")),
		"ATTACH " + Quote(filepath.Join(dir, "x.db")),
		"INSTALL httpfs", "LOAD httpfs",
		"SET threads = 7", "SET TimeZone = 'Europe/Berlin'", "RESET lock_configuration", "SET enable_external_access = true",
	} {
		_, err := e.Query(context.Background(), sql)
		require.Error(t, err, sql)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	e := open(t)
	for sql, kind := range map[string]Kind{
		"SELEC 1":               KindSyntax,
		"SELECT a FROM nowhere": KindUnresolved,
		"SELECT CAST('x' || range AS INTEGER) FROM range(3)": KindValue,
		"SELECT range::TINYINT FROM range(1000)":             KindValue,
		"SELECT (SELECT range FROM range(3))":                KindValue,
		"SET threads = 3":                                    KindValue,
	} {
		_, err := try(e, sql)
		if err == nil {
			_, err = e.Query(context.Background(), sql)
		}
		var typed *Error
		require.ErrorAs(t, err, &typed, sql)
		if !strings.HasPrefix(sql, "SET") {
			require.Equal(t, kind, typed.Kind, "%s: %v", sql, err)
		}
		require.NotContains(t, err.Error(), "LINE ")
	}
}

func TestStatementText(t *testing.T) {
	e := open(t)
	for _, sql := range []string{"SELECT 1\x00; nonsense", "SELECT 'a\xff'"} {
		_, err := e.Query(context.Background(), sql)
		require.ErrorContains(t, err, "syntax", sql)
	}
	for _, text := range []string{"", "it's", `back\slash`, "a\x00b", "\x00", "''\x00''", "é\n\t😀"} {
		require.Equal(t, []string{text}, ask(t, e, "SELECT "+Quote(text)), "%q", text)
	}
}

func TestOptionsReportAllFaults(t *testing.T) {
	_, err := Open(Options{MemoryLimitBytes: -1, Threads: -2, TempDir: "a\x00b", PartDirs: []string{"parts"}})
	require.ErrorContains(t, err, "memory limit")
	require.ErrorContains(t, err, "threads")
	require.ErrorContains(t, err, "NUL")
	require.ErrorContains(t, err, "absolute")
}

func TestClose(t *testing.T) {
	e, err := Open(Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	_, err = e.Query(context.Background(), "SELECT 1")
	require.ErrorIs(t, err, errClosed)
}

// RES-13: after an internal error the next query runs in a fresh DuckDB, and those that still run end in theirs.
func TestBrokenEngineIsReplaced(t *testing.T) {
	e := open(t)
	running, err := e.Query(context.Background(), "SELECT range FROM range(100000)")
	require.NoError(t, err)
	broken := running.instance
	in, err := e.acquire()
	require.NoError(t, err)
	require.Same(t, broken, in)
	e.release(in, newError(context.Background(), errorTypeOf("INTERNAL Error: x"), "INTERNAL Error: x"))
	require.Equal(t, []string{"ab"}, ask(t, e, "SELECT tm_lower('AB', 255)"))
	require.NotSame(t, broken, e.current)
	_, err = running.Next()
	require.NoError(t, err)
	running.Close()
	require.Zero(t, broken.users)
}
