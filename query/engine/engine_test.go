package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

func open(t testing.TB, dirs ...string) *Engine {
	t.Helper()
	e, err := Open(Options{PartDirs: dirs, TempDir: filepath.Join(t.TempDir(), "tmp"), Threads: 2, MemoryLimitBytes: 256 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// ask gives all rows of a query as text, columns separated by |, in DuckDB's own text form.
func ask(t testing.TB, e *Engine, sql string, scans ...*Scan) []string {
	t.Helper()
	out, err := try(e, sql, scans...)
	require.NoError(t, err)
	return out
}

func try(e *Engine, sql string, scans ...*Scan) ([]string, error) {
	rows, err := e.Query(context.Background(), "SELECT coalesce(CAST(COLUMNS(*) AS VARCHAR), 'NULL') FROM ("+sql+")", scans...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for {
		c, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range c.Len() {
			var row []string
			for j := range rows.Columns() {
				row = append(row, c.Vector(j).Text(i))
			}
			out = append(out, strings.Join(row, "|"))
		}
	}
}

// items is a table with one column of each kind.
func items() *schema.Table {
	return &schema.Table{Database: "shop", Name: "items", Key: []int{0}, Columns: []schema.Column{
		{ID: 1, Name: "id", Type: schema.Int},
		{ID: 2, Name: "big", Type: schema.BigInt, Unsigned: true},
		{ID: 3, Name: "price", Type: schema.Decimal, Precision: 10, Scale: 2},
		{ID: 4, Name: "name", Type: schema.VarChar, Length: 50, Charset: "utf8mb4"},
		{ID: 5, Name: "at", Type: schema.DateTime},
		{ID: 6, Name: "stamp", Type: schema.Timestamp},
		{ID: 7, Name: "day", Type: schema.Date},
		{ID: 8, Name: "f", Type: schema.Float},
		{ID: 9, Name: "d", Type: schema.Double},
		{ID: 10, Name: "raw", Type: schema.VarBinary, Length: 50},
		{ID: 11, Name: "tiny", Type: schema.Decimal, Precision: 4, Scale: 1},
		{ID: 12, Name: "mid", Type: schema.Decimal, Precision: 9, Scale: 0},
		{ID: 13, Name: "huge", Type: schema.Decimal, Precision: 38, Scale: 5},
		{ID: 14, Name: "span", Type: schema.Time},
	}}
}

// itemRecord makes rows from..to-1; each seventh row is NULL but for its id.
func itemRecord(t testing.TB, table *schema.Table, from, to int) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, table.ArrowSchema())
	defer b.Release()
	for i := from; i < to; i++ {
		for j := range table.Columns {
			appendItem(t, b.Field(j), i, i%7 == 6 && j > 0)
		}
	}
	return b.NewRecordBatch()
}

func appendItem(t testing.TB, field array.Builder, i int, null bool) {
	if null {
		field.AppendNull()
		return
	}
	switch b := field.(type) {
	case *array.Int32Builder:
		b.Append(int32(i))
	case *array.Int64Builder:
		b.Append(int64(i) * 1_000_000)
	case *array.Uint64Builder:
		b.Append(uint64(i))
	case *array.Decimal128Builder:
		require.NoError(t, b.AppendValueFromString(fmt.Sprint(i%100)))
	case *array.StringBuilder:
		b.Append(fmt.Sprintf("n%d%s", i, strings.Repeat("-", i%20)))
	case *array.BinaryBuilder:
		b.Append([]byte{0, 255, byte(i)})
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(i) * 1_000_000)
	case *array.Date32Builder:
		b.Append(arrow.Date32(i))
	case *array.Float32Builder:
		b.Append(float32(i) / 2)
	case *array.Float64Builder:
		b.Append(float64(i) / 4)
	default:
		t.Fatalf("no value for %T", b)
	}
}

// writePart writes a record as Parquet, uint64 columns as int64, as parts have them.
func writePart(t testing.TB, path string, record arrow.RecordBatch) Part {
	t.Helper()
	fields := make([]arrow.Field, record.NumCols())
	columns := make([]arrow.Array, record.NumCols())
	for i, f := range record.Schema().Fields() {
		columns[i] = record.Column(i)
		if u, ok := columns[i].(*array.Uint64); ok {
			f.Type = arrow.PrimitiveTypes.Int64
			columns[i] = array.NewInt64Data(array.NewData(f.Type, u.Len(), u.Data().Buffers(), nil, u.NullN(), u.Data().Offset()))
		}
		fields[i] = f
	}
	writeParquet(t, path, array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, record.NumRows()))
	return Part{Path: path, Rows: record.NumRows()}
}

func writeParquet(t testing.TB, path string, record arrow.RecordBatch) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(record.Schema(), f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(record))
	require.NoError(t, w.Close())
}

func scan(t testing.TB, e *Engine, table Table) *Scan {
	t.Helper()
	s, err := e.Scan(table)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestPartAndSegmentGiveTheSameRows(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	record := itemRecord(t, items(), 0, 5000)
	part := writePart(t, filepath.Join(dir, "a.parquet"), record)
	fromPart := scan(t, e, Table{Schema: items(), Parts: []Part{part}})
	fromSegment := scan(t, e, Table{Schema: items(), Segments: []Segment{{Record: record}}})
	want := ask(t, e, "SELECT * FROM "+fromPart.SQL()+" ORDER BY c1")
	require.Len(t, want, 5000)
	require.Equal(t, want, ask(t, e, "SELECT * FROM "+fromSegment.SQL()+" ORDER BY c1"))
	require.Equal(t, "6|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL", want[6])
	require.Equal(t, `30|30|30.00|n30----------|1970-01-01 00:00:30|1970-01-01 00:00:30+00|1970-01-31|15.0|7.5|\x00\xFF\x1E|30.0|30|30.00000|30000000|NULL`, want[30])
}
