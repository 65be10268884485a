package column

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/schema"
)

func table(cols ...schema.Column) *schema.Table {
	t := &schema.Table{Database: "d", Name: "t", Version: 1, Columns: cols, Key: []int{0}, NextColumnID: uint32(len(cols)) + 1}
	for i := range t.Columns {
		t.Columns[i].ID = uint32(i) + 1
		if t.Columns[i].Name == "" {
			t.Columns[i].Name = fmt.Sprintf("c%d", i)
		}
	}
	return t
}

var id = schema.Column{Name: "id", Type: schema.Int}

// printed builds one value and prints it as SELECT would.
func printed(t *testing.T, c schema.Column, put func(Appender)) string {
	t.Helper()
	b := NewBuilder(memory.DefaultAllocator, table(id, c))
	b.Column(0).Int(1)
	put(b.Column(1))
	b.EndRow()
	batch, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if batch.Exact != nil {
		if text, ok := FindExact(batch.Exact.Value(0), 2); ok {
			return string(text)
		}
	}
	return string(Print(nil, &batch.Table.Columns[1], batch.Record.Column(1), 0, time.UTC))
}

func TestPrint(t *testing.T) {
	col := func(t schema.Type, set ...func(*schema.Column)) schema.Column {
		c := schema.Column{Type: t, Scale: 0}
		for _, f := range set {
			f(&c)
		}
		return c
	}
	unsigned := func(c *schema.Column) { c.Unsigned = true }
	zerofill := func(n int) func(*schema.Column) {
		return func(c *schema.Column) { c.Unsigned, c.Zerofill, c.Length = true, true, n }
	}
	length := func(n int) func(*schema.Column) { return func(c *schema.Column) { c.Length = n } }
	fsp := func(n int) func(*schema.Column) { return func(c *schema.Column) { c.FSP = n } }
	decimal := func(p, s int) func(*schema.Column) { return func(c *schema.Column) { c.Precision, c.Scale = p, s } }
	floating := func(c *schema.Column) { c.Scale = schema.FloatUnscaled }
	charset := func(n string) func(*schema.Column) { return func(c *schema.Column) { c.Charset = n } }
	labels := func(c *schema.Column) { c.Elements = []string{"a", "b", "c"} }

	for _, tc := range []struct {
		col  schema.Column
		put  func(Appender)
		want string
	}{
		{col(schema.TinyInt), func(a Appender) { a.Int(-128) }, "-128"},
		{col(schema.Int, zerofill(8)), func(a Appender) { a.Uint(42) }, "00000042"},
		{col(schema.BigInt, unsigned), func(a Appender) { a.Uint(math.MaxUint64) }, "18446744073709551615"},
		{col(schema.Year), func(a Appender) { a.Int(0) }, "0000"},
		{col(schema.Decimal, decimal(5, 2)), func(a Appender) { a.DecimalText([]byte("-0.05")) }, "-0.05"},
		{col(schema.Decimal, decimal(5, 2)), func(a Appender) { a.DecimalText([]byte("1")) }, "1.00"},
		{col(schema.Decimal, decimal(65, 30)), func(a Appender) { a.DecimalText([]byte("-000.5")) }, "-0.5" + strings.Repeat("0", 29)},
		{col(schema.Decimal, decimal(5, 2), zerofill(6)), func(a Appender) { a.DecimalText([]byte("1.5")) }, "001.50"},
		{col(schema.Float, floating), func(a Appender) { a.Float(16777216) }, "16777200"},
		{col(schema.Float, floating), func(a Appender) { a.Float(1e-20) }, "1e-20"},
		{col(schema.Float, func(c *schema.Column) { c.Scale = 2 }), func(a Appender) { a.Float(1.5) }, "1.50"},
		{col(schema.Double, floating), func(a Appender) { a.Double(0.1) }, "0.1"},
		{col(schema.Double, floating), func(a Appender) { a.Double(1e15) }, "1e15"},
		{col(schema.Double, floating), func(a Appender) { a.Double(1234567890123456.5) }, "1234567890123456.5"},
		{col(schema.Double, floating), func(a Appender) { a.Double(-123456789012345) }, "-123456789012345"},
		{col(schema.Double, floating), func(a Appender) { a.Double(1e-15) }, "0.000000000000001"},
		{col(schema.Double, floating), func(a Appender) { a.Double(math.MaxFloat64) }, "1.7976931348623157e308"},
		{col(schema.Date), func(a Appender) { a.Date(1, 1, 1) }, "0001-01-01"},
		{col(schema.Date), func(a Appender) { a.Date(0, 0, 0) }, "0000-00-00"},
		{col(schema.Date), func(a Appender) { a.Date(2024, 2, 31) }, "2024-02-31"},
		{col(schema.DateTime, fsp(3)), func(a Appender) { a.DateTime(9999, 12, 31, 23, 59, 59, 999000) }, "9999-12-31 23:59:59.999"},
		{col(schema.DateTime, fsp(2)), func(a Appender) { a.DateTime(2024, 0, 5, 1, 2, 3, 40000) }, "2024-00-05 01:02:03.04"},
		{col(schema.Timestamp, fsp(6)), func(a Appender) { a.Timestamp(1, 5) }, "1970-01-01 00:00:01.000005"},
		{col(schema.Timestamp), func(a Appender) { a.Timestamp(0, 0) }, "0000-00-00 00:00:00"},
		{col(schema.Time, fsp(1)), func(a Appender) { a.Time(-3020399_000000) }, "-838:59:59.0"},
		{col(schema.Time), func(a Appender) { a.Time(0) }, "00:00:00"},
		{col(schema.VarChar, charset("latin1")), func(a Appender) { a.Bytes([]byte("\x80\xe9\x81")) }, "€é\u0081"},
		{col(schema.VarChar, charset("utf8mb4")), func(a Appender) { a.Bytes([]byte("a\xffb")) }, "a\xffb"},
		{col(schema.Binary, length(4)), func(a Appender) { a.Bytes([]byte("ab")) }, "ab\x00\x00"},
		{col(schema.Enum, labels), func(a Appender) { a.Enum(3) }, "c"},
		{col(schema.Enum, labels), func(a Appender) { a.Enum(0) }, ""},
		{col(schema.Set, labels), func(a Appender) { a.Set(5) }, "a,c"},
		{col(schema.Bit, length(10)), func(a Appender) { a.Bit(0x2ff) }, "\x02\xff"},
		{col(schema.Bit, length(64)), func(a Appender) { a.Bit(math.MaxUint64) }, strings.Repeat("\xff", 8)},
	} {
		if got := printed(t, tc.col, tc.put); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.col.Type, got, tc.want)
		}
	}
}

// What Print shows, AppendText reads back to the same.
func TestDaysFromCivil(t *testing.T) {
	for day := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10000; day = day.AddDate(0, 0, 1) {
		if got, want := DaysFromCivil(day.Year(), int(day.Month()), day.Day()), int(day.Unix()/86400); got != want {
			t.Fatalf("%s is day %d, not %d", day.Format(time.DateOnly), got, want)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	for _, tc := range []struct {
		col  schema.Column
		text string
	}{
		{schema.Column{Type: schema.BigInt, Unsigned: true}, "18446744073709551615"},
		{schema.Column{Type: schema.Decimal, Precision: 20, Scale: 4}, "-12.3400"},
		{schema.Column{Type: schema.Date}, "0000-00-00"},
		{schema.Column{Type: schema.DateTime, FSP: 6}, "2024-02-29 01:02:03.000004"},
		{schema.Column{Type: schema.Timestamp, FSP: 0}, "2024-02-29 01:02:03"},
		{schema.Column{Type: schema.Timestamp, FSP: 2}, "0000-00-00 00:00:00.00"},
		{schema.Column{Type: schema.Time, FSP: 2}, "-01:02:03.04"},
		{schema.Column{Type: schema.Year}, "1901"},
		{schema.Column{Type: schema.VarChar, Charset: "latin1"}, "€é"},
		{schema.Column{Type: schema.Set, Elements: []string{"a", "b"}}, "a,b"},
		{schema.Column{Type: schema.Enum, Elements: []string{"a", "b"}}, "b"},
		{schema.Column{Type: schema.Double, Scale: schema.FloatUnscaled}, "1e100"},
	} {
		got := printed(t, tc.col, func(a Appender) {
			if err := AppendText(a, &tc.col, tc.text); err != nil {
				t.Fatal(err)
			}
		})
		if got != tc.text {
			t.Errorf("%v: got %q, want %q", tc.col.Type, got, tc.text)
		}
	}
}

// Values that a column can't have are errors that name the column and not the value (OPS-13).
func TestRefusedValues(t *testing.T) {
	for name, put := range map[string]func(Appender){
		"text":   func(a Appender) { a.Bytes([]byte("secret")) },
		"double": func(a Appender) { a.Double(4711) },
	} {
		b := NewBuilder(memory.DefaultAllocator, table(id, schema.Column{Type: schema.Date, ColumnType: "date"}))
		b.Column(0).Int(1)
		put(b.Column(1))
		b.EndRow()
		_, err := b.Finish()
		if err == nil || !strings.Contains(err.Error(), "c1") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNullKeyIsRefused(t *testing.T) {
	b := NewKeyBuilder(table(id))
	b.Column(0).Null()
	b.EndRow()
	if _, err := b.Finish(); err == nil {
		t.Fatal("no error")
	}
}

// A row's key is the same whether it comes from a whole row or from a before image, and follows the key's order of columns.
func TestKeysOfBothBuilders(t *testing.T) {
	tbl := table(schema.Column{Type: schema.Binary, Length: 4}, id, schema.Column{Type: schema.VarChar, Charset: "utf8mb4"})
	tbl.Key = []int{2, 0}
	rows, keys := NewBuilder(memory.DefaultAllocator, tbl), NewKeyBuilder(tbl)
	put := func(text, bin string) {
		rows.Column(0).Bytes([]byte(bin))
		rows.Column(1).Int(1)
		rows.Column(2).Bytes([]byte(text))
		rows.EndRow()
		keys.Column(0).Bytes([]byte(bin))
		keys.Column(2).Bytes([]byte(text))
		keys.EndRow()
	}
	put("b", "x")
	put("a", "y\x00")
	put("a", "x\x00\x00\x00")
	if keys.Column(1) != nil {
		t.Error("a column outside the key has an appender")
	}
	batch, err := rows.Finish()
	if err != nil {
		t.Fatal(err)
	}
	only, err := keys.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for i := range only.Len() {
		if !bytes.Equal(only.At(i), batch.Keys.At(i)) {
			t.Errorf("row %d: %x, %x", i, only.At(i), batch.Keys.At(i))
		}
	}
	sorted := batch.SortByKey()
	var got []string
	for i := range sorted.Rows() {
		got = append(got, string(Print(nil, &tbl.Columns[2], sorted.Record.Column(2), i, time.UTC))+string(Print(nil, &tbl.Columns[0], sorted.Record.Column(0), i, time.UTC)))
	}
	if fmt.Sprintf("%q", got) != `["ax\x00\x00\x00" "ay\x00\x00\x00" "bx\x00\x00\x00"]` {
		t.Errorf("sorted: %q", got)
	}
}

// An exact value that can't be read is an error, and is not left out.
func TestProjectDamagedExact(t *testing.T) {
	b := NewBuilder(memory.DefaultAllocator, table(id))
	b.Column(0).Int(1)
	b.EndRow()
	batch, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	exact := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	exact.Append([]byte{2, 200})
	batch.Exact = exact.NewBinaryArray()
	now := batch.Table.Clone()
	now.Version++
	if _, err := batch.Project(now); !errors.Is(err, errExactDamaged) {
		t.Error(err)
	}
}

// DDL-20: rows older than an added column have its initial value, exact values included; a dropped column takes its
// exact values along.
func TestProject(t *testing.T) {
	old := table(id, schema.Column{Name: "gone", Type: schema.Date})
	b := NewBuilder(memory.DefaultAllocator, old)
	for i := range 3 {
		b.Column(0).Int(int64(i))
		b.Column(1).Date(0, 0, i)
		b.EndRow()
	}
	batch, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	zero, seven := "0000-00-00", "7"
	now := old.Clone()
	now.Version = 2
	now.Columns = []schema.Column{
		{ID: 3, Name: "n", Type: schema.BigInt, Unsigned: true, Added: true, Initial: &seven},
		now.Columns[0],
		{ID: 4, Name: "z", Type: schema.Date, Added: true, Initial: &zero},
		{ID: 5, Name: "null", Type: schema.Text, Charset: "utf8mb4", Added: true},
	}
	now.Key = []int{1}
	p, err := batch.Project(now)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(Print(nil, &now.Columns[0], p.Record.Column(0), 2, time.UTC)); got != "7" {
		t.Errorf("initial value %q", got)
	}
	if !p.Record.Column(2).IsNull(1) || !p.Record.Column(3).IsNull(1) {
		t.Error("initial values that no array holds are not NULL")
	}
	if got, _ := FindExact(p.Exact.Value(1), 4); string(got) != zero {
		t.Errorf("exact initial value %q", got)
	}
	if _, ok := FindExact(p.Exact.Value(1), 2); ok {
		t.Error("a dropped column has kept its exact value")
	}
	ids, err := p.ExactColumns()
	if err != nil || fmt.Sprint(ids) != "[4]" {
		t.Errorf("exact columns %v, %v", ids, err)
	}
}

func TestConcatAndTake(t *testing.T) {
	tbl := table(id, schema.Column{Type: schema.Date})
	build := func(days ...int) *Batch {
		b := NewBuilder(memory.DefaultAllocator, tbl)
		for _, d := range days {
			b.Column(0).Int(int64(d))
			b.Column(1).Date(2024, 1, d)
			b.EndRow()
		}
		batch, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return batch
	}
	all, err := Concat([]*Batch{build(1, 2), build(0), build(3)})
	if err != nil {
		t.Fatal(err)
	}
	if all.Rows() != 4 || all.Keys.Len() != 4 || !all.Exact.IsNull(0) || all.Exact.IsNull(2) {
		t.Fatalf("%d rows, %d keys, exact %v", all.Rows(), all.Keys.Len(), all.Exact)
	}
	some := all.Take([]int{3, 0})
	if some.Exact != nil || some.Record.Column(0).(interface{ Value(int) int32 }).Value(0) != 3 {
		t.Fatalf("%v", some.Record)
	}
	if again := all.Take([]int{2}); again.Exact == nil || !again.Record.Column(1).IsNull(0) {
		t.Fatal("exact value lost")
	}
}

func TestBuilderIsReusable(t *testing.T) {
	b := NewBuilder(memory.DefaultAllocator, table(id, schema.Column{Type: schema.Date}))
	for round := range 3 {
		b.Column(0).Int(int64(round))
		b.Column(1).Date(0, 0, 0)
		b.EndRow()
		batch, err := b.Finish()
		if err != nil || batch.Rows() != 1 || batch.Keys.Len() != 1 || batch.Exact.Len() != 1 {
			t.Fatal(round, batch, err)
		}
	}
	b.Column(0).Int(1)
	b.EndRow()
	if _, err := b.Finish(); err == nil {
		t.Fatal("a row with a missing value was taken")
	}
}

func FuzzWalkExact(f *testing.F) {
	f.Add(AppendExact(AppendExact(nil, 1, []byte("x")), 300, nil))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		if WalkExact(b, func(id uint32, text []byte) { again = AppendExact(again, id, text) }) == nil && len(again) > len(b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

func FuzzAppendText(f *testing.F) {
	for _, s := range []string{"1", "-1.5", "2024-02-30 1:2:3.4", "b'101'", "a,b"} {
		for typ := range uint8(schema.JSON) {
			f.Add(typ, s)
		}
	}
	f.Fuzz(func(_ *testing.T, typ uint8, s string) {
		c := schema.Column{ID: 2, Name: "c", Type: schema.Type(typ), Precision: 10, Scale: 2, Charset: "latin1", Elements: []string{"a", "b"}, Initial: &s}
		if c.Type.Supported() {
			_, _, _ = Initial(table(id, c), &c)
		}
	})
}

func BenchmarkBuilder(b *testing.B) {
	tbl := table(id, schema.Column{Type: schema.BigInt}, schema.Column{Type: schema.Decimal, Precision: 10, Scale: 2}, schema.Column{Type: schema.VarChar, Charset: "utf8mb4"}, schema.Column{Type: schema.DateTime})
	bl := NewBuilder(memory.DefaultAllocator, tbl)
	text := []byte("some text of a row")
	for i := range b.N {
		bl.Column(0).Int(int64(i))
		bl.Column(1).Int(int64(i))
		bl.Column(2).DecimalText([]byte("12.34"))
		bl.Column(3).Bytes(text)
		bl.Column(4).DateTime(2024, 5, 6, 7, 8, 9, 0)
		bl.EndRow()
		if bl.Rows() == 65536 {
			_, _ = bl.Finish()
		}
	}
}

func TestShortDecimalsAgree(t *testing.T) {
	for _, text := range []string{"0", "-0", "1.5", "-1.50", "999999999999.99", "-0.01", ".5", "-", "1.234", "x", "", "1.", "1..2"} {
		v, ok := shortUnscaled([]byte(text), 2)
		n, err := unscaled([]byte(text), 2)
		if ok != (err == nil) && ok {
			t.Errorf("%q: short form %d, long form %v", text, v, err)
		}
		if ok && n.Int64() != v {
			t.Errorf("%q: %d, %v", text, v, n)
		}
	}
}

// Keys computed from stored values are those of the rows as they came, exact values included.
func TestKeysFromStoredValues(t *testing.T) {
	cols := []schema.Column{
		{Type: schema.BigInt, Unsigned: true}, {Type: schema.Decimal, Precision: 40, Scale: 2}, {Type: schema.Decimal, Precision: 9, Scale: 2},
		{Type: schema.Date}, {Type: schema.DateTime, FSP: 6}, {Type: schema.Timestamp, FSP: 6}, {Type: schema.Time}, {Type: schema.Year},
		{Type: schema.VarChar, Charset: "latin1"}, {Type: schema.VarChar, Charset: "utf8mb4"}, {Type: schema.Binary, Length: 3},
		{Type: schema.Enum, Elements: []string{"x", "y"}}, {Type: schema.Set, Elements: []string{"x", "y"}}, {Type: schema.Bit, Length: 64}, {Type: schema.Double, Scale: schema.FloatUnscaled},
		{Type: schema.SmallInt},
	}
	tbl := table(cols...)
	tbl.Key = nil
	for i := range cols {
		tbl.Key = append(tbl.Key, i)
	}
	rows := []func(b *Builder){
		func(b *Builder) {
			b.Column(0).Uint(math.MaxUint64)
			b.Column(1).DecimalText([]byte("-12345678901234567890123456789012345678.5"))
			b.Column(2).DecimalText([]byte("-1.25"))
			b.Column(3).Date(2024, 2, 29)
			b.Column(4).DateTime(1, 1, 1, 0, 0, 0, 1)
			b.Column(5).Timestamp(1<<31, 999999)
			b.Column(6).Time(-1)
			b.Column(7).Int(2155)
			b.Column(8).Bytes([]byte("\xe9\x81"))
			b.Column(9).Bytes([]byte("😀\x00"))
			b.Column(10).Bytes([]byte("a"))
			b.Column(11).Enum(2)
			b.Column(12).Set(3)
			b.Column(13).Bit(1 << 63)
			b.Column(14).Double(-1.5)
			b.Column(15).Int(-32768)
		},
		func(b *Builder) {
			b.Column(0).Uint(0)
			b.Column(1).DecimalText([]byte("0"))
			b.Column(2).DecimalText([]byte("0"))
			b.Column(3).Date(0, 0, 0)
			b.Column(4).DateTime(2024, 2, 31, 1, 2, 3, 4)
			b.Column(5).Timestamp(0, 0)
			b.Column(6).Time(0)
			b.Column(7).Int(0)
			b.Column(8).Bytes(nil)
			b.Column(9).Bytes([]byte("\xff\xfe"))
			b.Column(10).Bytes(nil)
			b.Column(11).Enum(0)
			b.Column(12).Set(0)
			b.Column(13).Bit(0)
			b.Column(14).Double(0)
			b.Column(15).Int(0)
		},
	}
	b := NewBuilder(memory.DefaultAllocator, tbl)
	for _, put := range rows {
		put(b)
		b.EndRow()
	}
	batch, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	again, err := (&Batch{Table: tbl, Record: batch.Record, Exact: batch.Exact}).WithKeys()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if !bytes.Equal(again.Keys.At(i), batch.Keys.At(i)) {
			t.Errorf("row %d:\n%x\n%x", i, again.Keys.At(i), batch.Keys.At(i))
		}
	}
}

// Values and texts as MySQL 9.7 prints them for FLOAT(M,D) and DOUBLE(M,D).
func TestFixedScale(t *testing.T) {
	for _, tc := range []struct {
		v     float64
		scale int
		want  string
	}{
		{1234567890123456.75, 4, "1234567890123456.8000"}, {123456789012345.67, 4, "123456789012345.6700"}, {0.00004, 4, "0.0000"},
		{1e22, 4, "10000000000000000000000.0000"}, {0.1, 20, "0.10000000000000000000"}, {float64(float32(0.1)), 20, "0.10000000149011612000"},
		{float64(float32(1e22)), 4, "9999999778196308000000.0000"}, {-99999.99, 2, "-99999.99"}, {5, 0, "5"},
	} {
		if got := string(schema.AppendFixed([]byte("x"), tc.v, tc.scale)); got != "x"+tc.want {
			t.Errorf("%v: %s, want %s", tc.v, got, tc.want)
		}
	}
}
