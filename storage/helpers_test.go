package storage

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

var ctx = context.Background()

// row is a row of the tests' table; the oracle is a map from id to row.
type row struct {
	name string
	n    int64
	more int64 // of a column added later; 0 when the table does not have it
}

func testTable(name string) *schema.Table {
	return &schema.Table{
		Database: "shop", Name: name, Version: 1, Key: []int{0}, KeyName: "PRIMARY", NextColumnID: 4,
		Columns: []schema.Column{
			{ID: 1, Name: "id", Type: schema.BigInt, ColumnType: "bigint"},
			{ID: 2, Name: "name", Type: schema.VarChar, Length: 100, Charset: "utf8mb4", Collation: "utf8mb4_bin", Nullable: true, ColumnType: "varchar(100)"},
			{ID: 3, Name: "n", Type: schema.Int, Nullable: true, ColumnType: "int"},
		},
	}
}

// widened is the next version of a table, with a column added whose old rows have the value 7.
func widened(t *schema.Table) *schema.Table {
	w := t.Clone()
	initial := "7"
	w.Version++
	w.Columns = append(w.Columns, schema.Column{ID: t.NextColumnID, Name: fmt.Sprintf("c%d", t.NextColumnID), Type: schema.BigInt, ColumnType: "bigint", Added: true, Initial: &initial})
	w.NextColumnID++
	return w
}

func testRows(t testing.TB, def *schema.Table, rows map[int64]row, order []int64) *column.Batch {
	b := column.NewBuilder(memory.DefaultAllocator, def)
	for _, id := range order {
		r := rows[id]
		b.Column(0).Int(id)
		b.Column(1).Bytes([]byte(r.name))
		b.Column(2).Int(r.n)
		for c := 3; c < len(def.Columns); c++ {
			b.Column(c).Int(r.more)
		}
		b.EndRow()
	}
	batch, err := b.Finish()
	require.NoError(t, err)
	return batch
}

func rowsOf(t testing.TB, def *schema.Table, rows map[int64]row) *column.Batch {
	return testRows(t, def, rows, slices.Sorted(maps.Keys(rows)))
}

func keysOf(t testing.TB, def *schema.Table, ids ...int64) column.Keys {
	b := column.NewKeyBuilder(def)
	for _, id := range ids {
		b.Column(0).Int(id)
		b.EndRow()
	}
	keys, err := b.Finish()
	require.NoError(t, err)
	return keys
}

func expectAll(e Expect, n int) []Expect { return slices.Repeat([]Expect{e}, n) }

// smallOptions make everything happen early.
func smallOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, NoMaintenance: true, Retention: -1, CacheBytes: 1 << 20, MemTableBytes: 256 << 10, ReserveBytes: 1,
		SegmentRows: 40, FlushSegments: 4, FlushRows: 200, PartMinRows: 20, SpillKeys: 150, LoadRows: 50, MergeRows: 4000, Events: 20,
		settleRows: 16, settleRemaps: 9, settleAfter: 20 * time.Millisecond, deltasPerBase: 3, deltaRowsFloor: 10, deadFloor: 5, spillBytes: 1000,
	}
}

func openTest(t testing.TB, dir string, opt Options) *Store {
	s, err := Open(dir, opt)
	require.NoError(t, err)
	return s
}

// closeTest ends a test as each must end: with the full check.
func closeTest(t testing.TB, s *Store) {
	requireSound(t, s)
	require.NoError(t, s.Close())
	for _, stack := range strings.Split(allStacks(), "\n\n") {
		require.NotContains(t, stack, "storage.(*maintenance)", "a goroutine is left")
	}
}

func allStacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

func requireSound(t testing.TB, s *Store) {
	t.Helper()
	report, err := s.Verify(ctx)
	require.NoError(t, err)
	require.True(t, report.OK(), report.String())
}

func createTest(t testing.TB, s *Store, tables ...*schema.Table) (DatabaseID, []TableID) {
	db, err := s.CreateDatabase(ctx, "shop", []byte(`{"host":"h"}`))
	require.NoError(t, err)
	x := s.Begin(db)
	var ids []TableID
	for _, def := range tables {
		id, err := x.CreateTable(def)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	return db, ids
}

// contents reads a table in a version.
func contents(t testing.TB, v *Version, id TableID) map[int64]row {
	t.Helper()
	got := map[int64]row{}
	err := v.Scan(ctx, id, func(b *column.Batch, dead uniquekey.Bitset) error {
		maps.Copy(got, rowsOfBatch(t, b, dead, got))
		return nil
	})
	require.NoError(t, err)
	return got
}

// rowsOfBatch gives the live rows of a batch, none of which was met before.
func rowsOfBatch(t testing.TB, b *column.Batch, dead uniquekey.Bitset, before map[int64]row) map[int64]row {
	t.Helper()
	got := map[int64]row{}
	for i := range b.Rows() {
		if dead.Has(uint32(i)) {
			continue
		}
		key := b.Record.Column(0).(*array.Int64).Value(i)
		_, twice := got[key]
		_, again := before[key]
		require.False(t, twice || again, "key %d is there twice", key)
		r := row{name: b.Record.Column(1).(*array.String).Value(i), n: int64(b.Record.Column(2).(*array.Int32).Value(i))}
		if b.Record.NumCols() > 3 {
			r.more = b.Record.Column(3).(*array.Int64).Value(i)
		}
		got[key] = r
	}
	return got
}

// requireRows compares without printing whole tables.
func requireRows(t testing.TB, want, got map[int64]row) {
	t.Helper()
	var diff []string
	for k, r := range want {
		if g, ok := got[k]; !ok || g != r {
			diff = append(diff, fmt.Sprintf("%d: want %v, got %v (%v)", k, r, g, ok))
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			diff = append(diff, fmt.Sprintf("%d: want none, got %v", k, g))
		}
	}
	if len(diff) > 0 {
		slices.Sort(diff)
		t.Fatalf("%d rows differ, first: %s", len(diff), diff[:min(5, len(diff))])
	}
}

func headContents(t testing.TB, s *Store, id TableID) map[int64]row {
	t.Helper()
	v, err := s.Pin()
	require.NoError(t, err)
	defer v.Release()
	return contents(t, v, id)
}

// waitUntil waits for background work.
func waitUntil(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for range 2000 {
		if cond() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func newRecord(def *schema.Table, columns []arrow.Array, n int) arrow.RecordBatch {
	return array.NewRecordBatch(def.ArrowSchema(), columns, int64(n))
}
