package query

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// benchTable is the table of command bench.
func benchTable(t testing.TB) *schema.Table {
	def := &schema.Table{Database: "bench", Name: "line_items", Version: 1, Key: []int{0}, KeyName: "PRIMARY", Charset: "utf8mb4", Collation: "utf8mb4_bin"}
	for _, c := range [][2]string{
		{"id", "bigint"}, {"order_id", "int"}, {"part_id", "int"}, {"supplier_id", "int"}, {"quantity", "decimal(10,2)"}, {"price", "decimal(12,2)"},
		{"discount", "decimal(4,2)"}, {"tax", "decimal(4,2)"}, {"return_flag", "char(1)"}, {"status", "char(1)"}, {"ship_date", "date"}, {"mode", "varchar(10)"}, {"note", "varchar(60)"},
	} {
		column, err := schema.ParseColumnType(c[1])
		require.NoError(t, err)
		column.ID, column.Name = uint32(len(def.Columns)+1), c[0]
		if column.Type.IsText() {
			column.Charset, column.Collation = "utf8mb4", "utf8mb4_bin"
		}
		def.Columns = append(def.Columns, column)
	}
	def.NextColumnID = uint32(len(def.Columns) + 1)
	return def
}

// benchRows gives rows first, first+step ... below end.
func benchRows(t testing.TB, def *schema.Table, first, end, step int) *column.Batch {
	words := []string{"carefully", "final", "deposits", "sleep", "quickly", "bold", "requests", "among", "express", "ideas"}
	modes := []string{"AIR", "SHIP", "RAIL", "TRUCK", "MAIL", "FOB", "REG AIR"}
	b := column.NewBuilder(memory.DefaultAllocator, def)
	for i := first; i < end; i += step {
		h := uint64(i) * 0x9E3779B97F4A7C15
		h ^= h >> 29
		b.Column(0).Int(int64(i))
		b.Column(1).Int(int64(i / 4))
		b.Column(2).Int(int64(h >> 16 % 200_000))
		b.Column(3).Int(int64(h >> 20 % 10_000))
		b.Column(4).Decimal(decimal128.FromU64(100 * (h%50 + 1)))
		b.Column(5).Decimal(decimal128.FromU64((90_000 + h>>8%110_000) * (h%50 + 1)))
		b.Column(6).Decimal(decimal128.FromU64(h >> 24 % 11))
		b.Column(7).Decimal(decimal128.FromU64(h >> 28 % 9))
		b.Column(8).Bytes([]byte("ANR"[h>>32%3:][:1]))
		b.Column(9).Bytes([]byte("OF"[h>>36%2:][:1]))
		day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(h>>12%2500))
		b.Column(10).Date(day.Year(), int(day.Month()), day.Day())
		b.Column(11).Bytes([]byte(modes[h>>40%7]))
		b.Column(12).Bytes(fmt.Appendf(nil, "%s %s %s %d", words[h>>44%10], words[h>>48%10], words[h>>52%10], h%100_000))
		b.EndRow()
	}
	batch, err := b.Finish()
	require.NoError(t, err)
	return batch
}

// benchProcessor has a million rows of which every tenth was updated.
func benchProcessor(b *testing.B) (*Processor, *Session) {
	const rows = 1_000_000
	ctx, dir, def := b.Context(), b.TempDir(), benchTable(b)
	store, err := storage.Open(dir, storage.Options{NoMaintenance: true})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	db, err := store.CreateDatabase(ctx, "bench", nil)
	require.NoError(b, err)
	txn := store.Begin(db)
	id, err := txn.CreateTable(def)
	require.NoError(b, err)
	require.NoError(b, txn.Apply(ctx, id, &storage.Changes{Puts: benchRows(b, def, 0, rows, 1)}))
	txn.SetPoint([]byte("point"))
	_, err = txn.Commit(ctx)
	require.NoError(b, err)
	for first := 0; first < rows; first += rows / 5 {
		txn := store.Begin(db)
		require.NoError(b, txn.Apply(ctx, id, &storage.Changes{Puts: benchRows(b, def, first, first+rows/5, 10)}))
		_, err = txn.Commit(ctx)
		require.NoError(b, err)
	}
	e, err := engine.Open(engine.Options{PartDirs: []string{dir}, TempDir: b.TempDir()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	session := &Session{Session: translate.Session{Database: "bench", SQLMode: translate.SQLMode{OnlyFullGroupBy: true}, Location: time.UTC}}
	return New(Options{Store: store, Engine: e}), session
}

// benchQueries are those of command bench.
var benchQueries = []struct{ name, sql string }{
	{"group", `SELECT return_flag, status, SUM(quantity), SUM(price), SUM(price * (1 - discount)), COUNT(*) FROM line_items WHERE ship_date <= '2026-09-02' GROUP BY return_flag, status ORDER BY return_flag, status`},
	{"filter", `SELECT SUM(price * discount) FROM line_items WHERE ship_date >= '2022-01-01' AND ship_date < '2023-01-01' AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24`},
	{"key", `SELECT id, price, note FROM line_items WHERE id = 123456`},
	{"groups", `SELECT supplier_id, COUNT(*), MAX(price) FROM line_items GROUP BY supplier_id ORDER BY 2 DESC, 1 LIMIT 10`},
	{"like", `SELECT mode, COUNT(*) FROM line_items WHERE note LIKE '%bold requests%' GROUP BY mode ORDER BY mode`},
}

func BenchmarkAnalytical(b *testing.B) {
	p, session := benchProcessor(b)
	ctx := b.Context()
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			stmts, err := translate.NewParser().Parse(q.sql, session.SQLMode)
			require.NoError(b, err)
			for b.Loop() {
				r, err := p.Select(ctx, stmts[0], session, nil, nil)
				require.NoError(b, err)
				for err == nil {
					_, err = r.Rows.Next()
				}
				require.True(b, errors.Is(err, io.EOF))
				r.Rows.Close()
			}
		})
	}
}
