package part

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// allTypes is a table with a column of each stored form. Its BIGINT UNSIGNED column has number 2.
func allTypes() *schema.Table {
	t := &schema.Table{Database: "d", Name: "all", Version: 3, Key: []int{0}, Columns: []schema.Column{
		{Name: "id", Type: schema.Int}, {Name: "big", Type: schema.BigInt}, {Name: "ubig", Type: schema.BigInt, Unsigned: true},
		{Name: "dec9", Type: schema.Decimal, Precision: 9, Scale: 2}, {Name: "dec18", Type: schema.Decimal, Precision: 18, Scale: 6},
		{Name: "dec38", Type: schema.Decimal, Precision: 38, Scale: 10}, {Name: "dec65", Type: schema.Decimal, Precision: 65, Scale: 30},
		{Name: "f", Type: schema.Float, Scale: schema.FloatUnscaled}, {Name: "d", Type: schema.Double, Scale: schema.FloatUnscaled},
		{Name: "day", Type: schema.Date}, {Name: "dt", Type: schema.DateTime, FSP: 6}, {Name: "ts", Type: schema.Timestamp, FSP: 3},
		{Name: "tm", Type: schema.Time, FSP: 6}, {Name: "y", Type: schema.Year}, {Name: "txt", Type: schema.Text, Charset: "utf8mb4"},
		{Name: "bin", Type: schema.Blob}, {Name: "e", Type: schema.Enum, Elements: []string{"a", "b"}}, {Name: "exact", Type: schema.JSON}, {Name: "a.b", Type: schema.Bit, Length: 64},
	}}
	for i := range t.Columns {
		t.Columns[i].ID = uint32(i)*3 + 1
	}
	return t
}

// fill builds n rows from first on: every seventh is NULL in all columns but the key, some have exact values.
func fill(t testing.TB, tbl *schema.Table, first, n int, wide bool) *column.Batch {
	b := column.NewBuilder(memory.DefaultAllocator, tbl)
	for i := first; i < first+n; i++ {
		b.Column(0).Int(int64(i))
		if i%7 == 3 {
			for c := 1; c < len(tbl.Columns); c++ {
				b.Column(c).Null()
			}
			b.EndRow()
			continue
		}
		u := uint64(i)
		if wide && i%5 == 0 {
			u = math.MaxUint64 - uint64(i)
		}
		b.Column(1).Int(int64(i) * -1e12)
		b.Column(2).Uint(u)
		b.Column(3).DecimalText(fmt.Appendf(nil, "-%d.25", i%1e6))
		b.Column(4).DecimalText(fmt.Appendf(nil, "%d.000001", i))
		b.Column(5).DecimalText(fmt.Appendf(nil, "1234567890123456789012345678.%d", i%1000))
		b.Column(6).DecimalText(fmt.Appendf(nil, "-%d12345678901234567890123456789012345.5", i%10))
		b.Column(7).Float(float32(i) / 3)
		b.Column(8).Double(float64(i) / 7)
		b.Column(9).Date(2024, 2, 27+i%5)
		b.Column(10).DateTime(2024, 1+i%12, 1, 0, 0, 0, i%1e6)
		b.Column(11).Timestamp(int64(i%2), 0)
		b.Column(12).Time(int64(i) * -1000)
		b.Column(13).Int(int64(1901 + i%200))
		b.Column(14).Bytes([]byte(strings.Repeat("é", i%9)))
		b.Column(15).Bytes([]byte{0, byte(i), 0xff})
		b.Column(16).Enum(i % 3)
		b.Column(17).JSON(fmt.Appendf(nil, `{"i": %d}`, i))
		b.Column(18).Bit(uint64(i) << 40)
		b.EndRow()
	}
	batch, err := b.Finish()
	require.NoError(t, err)
	return batch
}

// show prints all rows as a client would see them.
func show(t testing.TB, b *column.Batch) []string {
	var out []string
	for i := range b.Rows() {
		var row []string
		for c := range b.Table.Columns {
			col := &b.Table.Columns[c]
			text := "NULL"
			if a := b.Record.Column(c); a.IsValid(i) {
				text = string(column.Print(nil, col, a, i, time.UTC))
			}
			if b.Exact != nil && b.Exact.IsValid(i) {
				if e, ok := column.FindExact(b.Exact.Value(i), col.ID); ok {
					text = "exact:" + string(e)
				}
			}
			row = append(row, text)
		}
		out = append(out, strings.Join(row, "|")+fmt.Sprintf("|%x", b.Keys.At(i)))
	}
	return out
}

func readAll(t testing.TB, path string, tbl *schema.Table) []string {
	r, err := Open(nil, path)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	var out []string
	require.NoError(t, r.Read(context.Background(), tbl, func(b *column.Batch) error {
		out = append(out, show(t, b)...)
		return nil
	}))
	return out
}

func TestRoundTrip(t *testing.T) {
	for _, wide := range []bool{false, true} {
		tbl := allTypes()
		batches := []*column.Batch{fill(t, tbl, 0, 40_000, false), fill(t, tbl, 40_000, 1, false), fill(t, tbl, 40_001, 100_000, wide)}
		path := filepath.Join(t.TempDir(), "p.parquet")
		info, err := Write(context.Background(), path, tbl, batches, WriteOptions{})
		require.NoError(t, err)
		require.NoError(t, Verify(nil, path, info))
		require.EqualValues(t, 140_001, info.Rows)
		require.Equal(t, wide, slices.Contains(info.Wide, tbl.Columns[2].ID))
		require.Equal(t, []uint32{tbl.Columns[9].ID, tbl.Columns[11].ID, tbl.Columns[16].ID}, info.ExactColumns)
		require.Equal(t, batches[0].Keys.At(0), info.MinKey)
		require.Equal(t, batches[2].Keys.At(99_999), info.MaxKey)
		var want []string
		for _, b := range batches {
			want = append(want, show(t, b)...)
		}
		require.Equal(t, want, readAll(t, path, tbl))

		r, err := Open(nil, path)
		require.NoError(t, err)
		rows := []uint32{0, 1, 32767, 32768, 122_879, 122_880, 140_000}
		got, err := r.ReadRows(context.Background(), tbl, rows)
		require.NoError(t, err)
		for i, line := range show(t, got) {
			require.Equal(t, want[rows[i]], line)
		}
		_, err = r.ReadRows(context.Background(), tbl, []uint32{140_001})
		require.ErrorAs(t, err, new(*DamageError))
		require.NoError(t, r.Close())
	}
}

func TestSegmentRoundTrip(t *testing.T) {
	tbl := allTypes()
	for _, n := range []int{0, 1, 8, 1000} {
		for _, b := range []*column.Batch{fill(t, tbl, 0, n, true), fill(t, tbl, 0, n+5, true).Take(ascending(2, n))} {
			enc, err := EncodeSegment(b)
			require.NoError(t, err)
			got, err := DecodeSegment(enc, tbl)
			require.NoError(t, err)
			require.Equal(t, show(t, b), show(t, got))
		}
	}
}

func ascending(first, n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = first + i
	}
	return rows
}

// A schema change never rewrites parts or segments: columns are mapped by id.
func TestReadUnderNewerSchema(t *testing.T) {
	old := allTypes()
	b := fill(t, old, 0, 10, true)
	path := filepath.Join(t.TempDir(), "p.parquet")
	_, err := Write(context.Background(), path, old, []*column.Batch{b}, WriteOptions{})
	require.NoError(t, err)
	enc, err := EncodeSegment(b)
	require.NoError(t, err)

	now := old.Clone()
	now.Version++
	initial := "added"
	now.Columns = append([]schema.Column{{ID: 1000, Name: "new", Type: schema.VarChar, Charset: "utf8mb4", Added: true, Initial: &initial}}, old.Columns[:9]...)
	now.Key = []int{1}
	lines := readAll(t, path, now)
	require.Len(t, lines, 10)
	for i, line := range show(t, b) {
		fields := strings.Split(line, "|")
		want := strings.Join(append([]string{"added"}, append(slices.Clone(fields[:9]), fields[len(fields)-1])...), "|")
		require.Equal(t, want, lines[i])
	}
	seg, err := DecodeSegment(enc, now)
	require.NoError(t, err)
	require.Equal(t, lines, show(t, seg))
	require.Nil(t, seg.Exact, "exact values of dropped columns are left")
}

// EXACT-18: damage is an error that names the file, never a normal end and never a panic.
func TestDamagedPart(t *testing.T) {
	tbl := allTypes()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.parquet")
	info, err := Write(context.Background(), path, tbl, []*column.Batch{fill(t, tbl, 0, 3000, true)}, WriteOptions{})
	require.NoError(t, err)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	damage := map[string][]byte{"empty": {}, "truncated": whole[:len(whole)/2], "foreign": []byte("hello"), "longer": append(slices.Clone(whole), 0)}
	for at := 0; at < len(whole); at += len(whole)/300 + 1 {
		b := slices.Clone(whole)
		b[at] ^= 0x41
		damage[fmt.Sprintf("byte %d", at)] = b
	}
	for name, b := range damage {
		bad := filepath.Join(dir, "bad.parquet")
		require.NoError(t, os.WriteFile(bad, b, 0o600))
		err := Verify(nil, bad, info)
		var de *DamageError
		require.Truef(t, errors.As(err, &de), "%s: %v", name, err)
		require.Equal(t, bad, de.Path)
		if r, err := Open(nil, bad); err == nil {
			_ = r.Read(context.Background(), tbl, func(*column.Batch) error { return nil })
			_ = r.Close()
		}
	}
}

func TestWriterRefusesWhatTheFileCanNotHold(t *testing.T) {
	tbl := allTypes()
	path := filepath.Join(t.TempDir(), "p.parquet")
	w, err := NewWriter(path, tbl, WriteOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, w.Add(fill(t, tbl, 0, 10, true)), "ubig")
	w.Abort()
	require.NoFileExists(t, path)
}

func FuzzDecodeSegment(f *testing.F) {
	tbl := allTypes()
	for _, n := range []int{0, 3, 100} {
		enc, err := EncodeSegment(fill(f, tbl, 0, n, true))
		require.NoError(f, err)
		f.Add(enc)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		batch, err := DecodeSegment(b, tbl)
		if err == nil {
			show(t, batch)
		}
	})
}

// FuzzSegmentBody reads bodies behind a right checksum, which plain fuzzing never gets past.
func FuzzSegmentBody(f *testing.F) {
	tbl := allTypes()
	for _, n := range []int{0, 3, 20} {
		b := fill(f, tbl, 0, n, true)
		var body []byte
		for i := range tbl.Columns {
			var err error
			body, err = appendArray(body, tbl.Columns[i].ID, b.Record.Column(i))
			require.NoError(f, err)
		}
		f.Add(uint16(n), uint8(len(tbl.Columns)), body)
	}
	f.Fuzz(func(_ *testing.T, rows uint16, columns uint8, body []byte) {
		c := &cursor{b: body}
		for range columns {
			if c.array(int(rows), tbl); c.err != nil {
				return
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	tbl := allTypes()
	batches := []*column.Batch{fill(b, tbl, 0, 100_000, false)}
	dir := b.TempDir()
	b.ResetTimer()
	for range b.N {
		info, err := Write(context.Background(), filepath.Join(dir, "p"), tbl, batches, WriteOptions{})
		require.NoError(b, err)
		b.ReportMetric(float64(info.Bytes), "bytes")
	}
	b.ReportMetric(float64(b.N)*100_000/b.Elapsed().Seconds(), "rows/s")
}
