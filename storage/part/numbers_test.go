package part

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// Rows of a table without a key keep their numbers, and so their keys, in parts and in segments, beside exact values and
// beside columns of the hidden columns' names, and also when the definition has changed since.
func TestNumbersRoundTrip(t *testing.T) {
	tbl := allTypes()
	tbl.Key = nil
	tbl.Columns[14].Name = schema.NumberName
	rows := fill(t, tbl, 0, 500, true).Numbered(1 << 40)
	later := tbl.Clone()
	later.Version++
	initial := "7"
	later.Columns = append(later.Columns, schema.Column{ID: 1000, Name: "added", Type: schema.Int, Added: true, Initial: &initial})

	check := func(got *column.Batch) {
		t.Helper()
		require.Equal(t, rows.Numbers.Int64Values(), got.Numbers.Int64Values())
		for i := range rows.Rows() {
			require.Equal(t, rows.Keys.At(i), got.Keys.At(i), "row %d", i)
		}
	}
	encoded, err := EncodeSegment(rows)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "p.parquet")
	_, err = Write(context.Background(), path, tbl, []*column.Batch{rows.Slice(0, 200), rows.Slice(200, 500)}, WriteOptions{})
	require.NoError(t, err)
	for _, def := range []*schema.Table{tbl, later} {
		segment, err := DecodeSegment(slices.Clone(encoded), def)
		require.NoError(t, err)
		check(segment)
		r, err := Open(nil, path)
		require.NoError(t, err)
		var pieces []*column.Batch
		require.NoError(t, r.Read(context.Background(), def, func(b *column.Batch) error {
			pieces = append(pieces, b)
			return nil
		}))
		part, err := column.Concat(pieces)
		require.NoError(t, err)
		check(part)
		some, err := r.ReadRows(context.Background(), def, []uint32{3, 499})
		require.NoError(t, err)
		require.Equal(t, []int64{1<<40 + 3, 1<<40 + 499}, some.Numbers.Int64Values())
		require.NoError(t, r.Close())
	}
}

// Rows that nobody numbered are refused, and files in which numbers are missing are damaged.
func TestNumbersAreDemanded(t *testing.T) {
	keyed := allTypes()
	tbl := keyed.Clone()
	tbl.Key = nil
	dir := t.TempDir()
	rows := fill(t, tbl, 0, 10, false)
	_, err := EncodeSegment(rows)
	require.ErrorIs(t, err, errNoNumbers)
	_, err = Write(context.Background(), filepath.Join(dir, "a"), tbl, []*column.Batch{rows}, WriteOptions{})
	require.ErrorIs(t, err, errNoNumbers)

	rows = fill(t, keyed, 0, 10, false)
	encoded, err := EncodeSegment(rows)
	require.NoError(t, err)
	_, err = DecodeSegment(encoded, tbl)
	var damage *DamageError
	require.ErrorAs(t, err, &damage)
	path := filepath.Join(dir, "b")
	_, err = Write(context.Background(), path, keyed, []*column.Batch{rows}, WriteOptions{})
	require.NoError(t, err)
	r, err := Open(nil, path)
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Batches(context.Background(), tbl)
	if err == nil {
		err = r.Read(context.Background(), tbl, func(*column.Batch) error { return nil })
	}
	require.ErrorAs(t, err, &damage)
}
