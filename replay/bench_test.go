package replay

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay/ddl"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// nowhere is a target that takes everything and keeps nothing, so that decoding and folding are measured alone.
type nowhere struct{}

func (nowhere) Begin(context.Context) (Target, error)                 { return nowhere{}, nil }
func (nowhere) Prepared(string) ([]byte, bool, error)                 { return nil, false, nil }
func (nowhere) Apply(context.Context, string, *storage.Changes) error { return nil }
func (nowhere) Read(context.Context, string, *column.Keys, func(*column.Batch) error) error {
	return nil
}
func (nowhere) Create(*schema.Table) error                                { return nil }
func (nowhere) Drop(string) error                                         { return nil }
func (nowhere) Truncate(string) error                                     { return nil }
func (nowhere) Alter(*schema.Table) error                                 { return nil }
func (nowhere) SetWindow(string, *Window) error                           { return nil }
func (nowhere) Quarantine(string, string, gtid.Point) error               { return nil }
func (nowhere) CreateQuarantined(*schema.Table, string, gtid.Point) error { return nil }
func (nowhere) PutPrepared(string, []byte)                                {}
func (nowhere) DeletePrepared(string)                                     {}
func (nowhere) Commit(context.Context, State) error                       { return nil }
func (nowhere) Abort() error                                              { return nil }

// wide is the 13-column table of the design's measurements.
func wide() *schema.Table {
	t := &schema.Table{Database: "shop", Name: "lineitem", Version: 1, NextColumnID: 14, Key: []int{0}, KeyName: "PRIMARY"}
	for i, text := range []string{"bigint", "int", "int", "decimal(12,2)", "decimal(12,2)", "decimal(12,2)", "char(1)", "date", "date", "datetime", "varchar(25)", "varchar(10)", "varchar(44)"} {
		c, err := schema.ParseColumnType(text)
		if err != nil {
			panic(err)
		}
		c.ID, c.Name = uint32(i+1), fmt.Sprint("c", i+1)
		if c.Type.IsText() {
			c.Charset = "utf8mb4"
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

func wideRow(k int) binlogtest.Row {
	return binlogtest.Row{k, k % 1000, k % 7, "12345.67", "0.05", "99.90", "N", "2024-02-29", "2024-03-01", "2024-03-01 12:34:56", "DELIVER IN PERSON", "TRUCK", "the quick brown fox jumps over the lazy dog"}
}

func bench(b *testing.B, txs []*binlog.Transaction, rows int) {
	def := wide()
	cfg := Config{Database: "shop", Server: ddl.Server{Version: 90704}}
	state := State{Tables: map[string]Table{def.Name: {Def: def, Live: true}}}
	b.ReportAllocs()
	for b.Loop() {
		if err := New(cfg, nowhere{}, state).Apply(b.Context(), txs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkBulk folds inserts of 100 rows an event, 1000 a transaction.
func BenchmarkBulk(b *testing.B) {
	def := wide()
	m := binlogtest.Table(def)
	var txs []*binlog.Transaction
	key := 0
	for n := range 50 {
		var events []binlog.Event
		for range 10 {
			var rows []binlogtest.Row
			for range 100 {
				rows = append(rows, wideRow(key))
				key++
			}
			events = append(events, binlogtest.Insert(m, def, rows...))
		}
		txs = append(txs, numbered(n, events...))
	}
	bench(b, txs, key)
}

// BenchmarkMix folds transactions of two updates, a delete and an insert, an event each.
func BenchmarkMix(b *testing.B) {
	def := wide()
	m := binlogtest.Table(def)
	var txs []*binlog.Transaction
	const transactions = 10_000
	for n := range transactions {
		k := n * 7 % 20_011 * 4
		txs = append(txs, numbered(n, binlogtest.Update(m, def, wideRow(k), wideRow(k)), binlogtest.Update(m, def, wideRow(k+1), wideRow(k+1)),
			binlogtest.Delete(m, def, wideRow(k+2)), binlogtest.Insert(m, def, wideRow(k+2))))
	}
	bench(b, txs, 4*transactions)
}

func numbered(n int, events ...binlog.Event) *binlog.Transaction {
	at := func(n int) gtid.Position { return gtid.Position{File: "binlog.000001", Offset: uint64(n * 100)} }
	return binlogtest.Transaction(binlog.Rows, gtid.GTID{Source: testUUID, Number: int64(n + 1)}, at(n+1), at(n+2), events...)
}
