package binlogtest_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
)

func table() *schema.Table {
	t := &schema.Table{Database: "shop", Name: "all", Version: 1, Key: []int{0}}
	for i, typ := range []string{"int", "mediumint unsigned", "bigint", "decimal(20,5)", "decimal(65,30)", "float", "double", "bit(13)", "date", "datetime(3)", "timestamp(6)",
		"time(2)", "year", "char(200)", "varchar(20)", "binary(4)", "longblob", "enum('a','b')", "set('a','b')", "json", "text"} {
		c, err := schema.ParseColumnType(typ)
		if err != nil {
			panic(err)
		}
		c.ID, c.Name, c.Nullable = uint32(i+1), "c"+typ, i > 0
		if c.Type.IsText() {
			c.Charset = "utf8mb4"
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

// What is encoded here is decoded there, and prints as it was given.
func TestRoundTrip(t *testing.T) {
	def := table()
	m := binlogtest.Table(def)
	row := binlogtest.Row{-7, 16777215, -1, "-123.45000", "0.000000000000000000000000000001", 1.5, -2.25, 4097, "2024-02-29", "2024-02-29 23:59:58.123",
		"2038-01-19 03:14:07.000001", "-838:59:58.01", 2155, "é", "x", "a\x00\x00\x00", "\x00\xff", 2, 3, "q\"", "t"}
	want := []string{"-7", "16777215", "-1", "-123.45000", "0.000000000000000000000000000001", "1.5", "-2.25", "\x10\x01", "2024-02-29", "2024-02-29 23:59:58.123",
		"2038-01-19 03:14:07.000001", "-838:59:58.01", "2155", "é", "x", "a\x00\x00\x00", "\x00\xff", "b", "a,b", `"q\""`, "t"}
	other := append(binlogtest.Row{8}, make([]any, len(row)-1)...)
	d, err := binlog.NewDecoder(m, def)
	if err != nil {
		t.Fatal(err)
	}
	rows, keys := column.NewBuilder(memory.DefaultAllocator, def), column.NewKeyBuilder(def)
	calls := 0
	for _, e := range []*binlog.RowsEvent{binlogtest.Insert(m, def, row, other), binlogtest.Update(m, def, other, row), binlogtest.Delete(m, def, row)} {
		if err := d.Decode(e, keys, rows, func() error { calls++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := rows.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []int{0, 2} {
		for i, w := range want {
			if got := string(column.Print(nil, &def.Columns[i], batch.Record.Column(i), r, time.UTC)); got != w {
				t.Errorf("row %d, %s: got %q, want %q", r, def.Columns[i].ColumnType, got, w)
			}
		}
	}
	if k := keys.Keys(); calls != 4 || k.Len() != 2 || !bytes.Equal(k.At(0), batch.Keys.At(1)) || !bytes.Equal(k.At(1), batch.Keys.At(0)) {
		t.Errorf("%d calls, %d old keys", calls, k.Len())
	}
}

func TestTransaction(t *testing.T) {
	def := table()
	at := time.Unix(1700000000, 123456000).UTC()
	tx := binlogtest.Transaction(binlog.Rows, gtid.GTID{}, gtid.Position{File: "b.1", Offset: 4}, gtid.Position{File: "b.1", Offset: 9},
		binlogtest.Statement("shop", "SAVEPOINT a", at), binlogtest.Delete(binlogtest.Table(def), def))
	b, err := tx.MarshalEvents()
	if err != nil {
		t.Fatal(err)
	}
	back, err := binlog.UnmarshalEvents(b)
	if err != nil || back.Size() != tx.Size() || back.RowEvents != 1 || back.StatementCount != 1 {
		t.Fatal(back, err)
	}
	var told []string
	for e := range back.Events() {
		switch e := e.(type) {
		case *binlog.Statement:
			if !e.Time.Equal(at) || e.Kind != binlog.StatementSavepoint {
				t.Errorf("%+v", e)
			}
			told = append(told, e.Database+": "+e.SQL)
		case *binlog.RowsEvent:
			told = append(told, e.Action.String()+" "+e.Table.Database+"."+e.Table.Table)
		}
	}
	if got := strings.Join(told, "; "); got != "shop: SAVEPOINT a; delete shop.all" {
		t.Error(got)
	}
}
