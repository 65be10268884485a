package engine

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
)

// everyType has a column of each MySQL type and physical form.
func everyType() *schema.Table {
	text := func(t schema.Type) schema.Column { return schema.Column{Type: t, Length: 100, Charset: "utf8mb4"} }
	t := &schema.Table{Database: "d", Name: "t", Key: []int{0}, Columns: []schema.Column{
		{Type: schema.Int}, {Type: schema.TinyInt}, {Type: schema.MediumInt, Unsigned: true}, {Type: schema.Int, Unsigned: true}, {Type: schema.BigInt},
		{Type: schema.BigInt, Unsigned: true}, {Type: schema.Bit, Length: 64}, {Type: schema.Bit, Length: 5}, {Type: schema.Year},
		{Type: schema.Decimal, Precision: 4, Scale: 2}, {Type: schema.Decimal, Precision: 9, Scale: 0}, {Type: schema.Decimal, Precision: 18, Scale: 18},
		{Type: schema.Decimal, Precision: 38, Scale: 10}, {Type: schema.Decimal, Precision: 65, Scale: 30},
		{Type: schema.Float, Scale: schema.FloatUnscaled}, {Type: schema.Double, Scale: schema.FloatUnscaled},
		{Type: schema.Date}, {Type: schema.DateTime, FSP: 6}, {Type: schema.Timestamp, FSP: 3}, {Type: schema.Time, FSP: 6},
		text(schema.VarChar), text(schema.LongText), {Type: schema.VarBinary, Length: 100}, {Type: schema.LongBlob},
		{Type: schema.Enum, Charset: "utf8mb4", Elements: []string{"x", "é"}}, {Type: schema.Set, Charset: "utf8mb4", Elements: []string{"x", "y"}}, text(schema.JSON),
	}}
	for i := range t.Columns {
		t.Columns[i].ID, t.Columns[i].Name = uint32(i+1), columnName(uint32(i+1))
	}
	t.NextColumnID = uint32(len(t.Columns) + 1)
	return t
}

// rowsOfEveryType gives the smallest, the largest, plain, empty and invalid values, and NULLs.
var rowsOfEveryType = [][]string{
	{"1", "-128", "0", "0", "-9223372036854775808", "0", "0", "0", "0000", "-99.99", "-999999999", "-0.999999999999999999", "-9999999999999999999999999999.9999999999",
		"-99999999999999999999999999999999999.999999999999999999999999999999", "-3.40282e38", "-1.7976931348623157e308", "1000-01-01", "1000-01-01 00:00:00.000000",
		"1970-01-01 00:00:01.000", "-838:59:59.000000", "", "", "", "", "x", "", "null"},
	{"2", "127", "16777215", "4294967295", "9223372036854775807", "18446744073709551615", "18446744073709551615", "31", "2155", "99.99", "999999999", "0.999999999999999999",
		"9999999999999999999999999999.9999999999", "99999999999999999999999999999999999.999999999999999999999999999999", "3.40282e38", "1.7976931348623157e308", "9999-12-31",
		"9999-12-31 23:59:59.999999", "2038-01-19 03:14:07.999", "838:59:59.000000", "twelve bytes", "日本 😀 a text that is longer", "\x00", "\x00a binary value, longer", "é", "x,y", `{"a": [1, "é"]}`},
	{"3"},
	{"4", "0", "1", "1", "1", "9223372036854775808", "9223372036854775808", "1", "1999", "0.00", "0", "0.000000000000000000", "0.0000000000",
		"0.000000000000000000000000000000", "0", "0", "0000-00-00", "2024-02-31 01:02:03.000004", "2024-01-01 00:00:00.000", "00:00:00.000000", "a", "b", "c", "d", "x", "y", "1"},
}

func everyTypeBatch(t *testing.T) *column.Batch {
	table := everyType()
	b := column.NewBuilder(memory.DefaultAllocator, table)
	for _, row := range rowsOfEveryType {
		for i := range table.Columns {
			if i >= len(row) {
				b.Column(i).Null()
				continue
			}
			require.NoError(t, column.AppendText(b.Column(i), &table.Columns[i], row[i]), table.Columns[i].Type)
		}
		b.EndRow()
	}
	batch, err := b.Finish()
	require.NoError(t, err)
	return batch
}

// What the store writes is read alike from its parts and its segments, value by value.
func TestStoredValues(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	batch := everyTypeBatch(t)
	path := filepath.Join(dir, "p.parquet")
	info, err := part.Write(context.Background(), path, batch.Table, []*column.Batch{batch}, part.WriteOptions{})
	require.NoError(t, err)
	exact, err := batch.ExactColumns()
	require.NoError(t, err)
	stored := Part{Path: path, Rows: info.Rows, Wide: info.Wide, Exact: info.ExactColumns, Columns: info.Columns}
	fromPart := scan(t, e, Table{Schema: batch.Table, Parts: []Part{stored}})
	fromSegment := scan(t, e, Table{Schema: batch.Table, Segments: []Segment{{Record: batch.Record, Exact: batch.Exact, ExactColumns: exact}}})
	require.Equal(t, fromPart.Columns(), fromSegment.Columns())

	got := ask(t, e, "SELECT * FROM "+fromPart.SQL()+" ORDER BY c1")
	require.Equal(t, got, ask(t, e, "SELECT * FROM "+fromSegment.SQL()+" ORDER BY c1"))
	require.Equal(t, "1|-128|0|0|-9223372036854775808|0|0|0|0|-99.99|-999999999|-.999999999999999999|-9999999999999999999999999999.9999999999|"+
		"-99999999999999999999999999999999999.999999999999999999999999999999|-3.40282e+38|-1.7976931348623157e+308|1000-01-01|1000-01-01 00:00:00|"+
		"1970-01-01 00:00:01+00|-3020399000000|||||x||null|NULL", got[0])
	require.Equal(t, "2|127|16777215|4294967295|9223372036854775807|18446744073709551615|18446744073709551615|31|2155|99.99|999999999|.999999999999999999|"+
		"9999999999999999999999999999.9999999999|99999999999999999999999999999999999.999999999999999999999999999999|3.40282e+38|1.7976931348623157e+308|9999-12-31|"+
		"9999-12-31 23:59:59.999999|2038-01-19 03:14:07.999+00|3020399000000|twelve bytes|日本 😀 a text that is longer|\\x00|\\x00a binary value, longer|é|x,y|"+`{"a": [1, "é"]}|NULL`, got[1])
	require.Equal(t, "4|NULL|NULL", ask(t, e, "SELECT c1, c17, c18 FROM "+fromPart.SQL()+" WHERE exact IS NOT NULL")[0])
	for _, c := range fromPart.Columns() {
		require.Equal(t, c.ID == 17 || c.ID == 18, c.Exact, c.Name)
	}
}

// Comparisons with constants prune and filter as plain values do, in every type.
func TestStoredValuesFilter(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	batch := everyTypeBatch(t)
	path := filepath.Join(dir, "p.parquet")
	info, err := part.Write(context.Background(), path, batch.Table, []*column.Batch{batch}, part.WriteOptions{})
	require.NoError(t, err)
	s := scan(t, e, Table{Schema: batch.Table, Parts: []Part{{Path: path, Rows: info.Rows, Wide: info.Wide, Exact: info.ExactColumns, Columns: info.Columns, Dead: []uint64{1 << 3}}}})
	for where, want := range map[string]string{
		"c5 = -9223372036854775808":                         "1",
		"c6 = 18446744073709551615":                         "2",
		"c6 > 9223372036854775807":                          "2",
		"c7 >= 18446744073709551615":                        "2",
		"c10 = -99.99":                                      "1",
		"c13 = 9999999999999999999999999999.9999999999":     "2",
		"c16 > 1e308":                                       "2",
		"c17 = DATE '1000-01-01'":                           "1",
		"c18 = TIMESTAMP '9999-12-31 23:59:59.999999'":      "2",
		"c19 = TIMESTAMPTZ '1970-01-01 00:00:01+00'":        "1",
		"tm_utc(c19) = TIMESTAMP '2038-01-19 03:14:07.999'": "2",
		"c20 = -3020399000000":                              "1",
		"c21 = 'twelve bytes'":                              "2",
		`c23 = '\x00'::BLOB`:                                "2",
		"c25 = 'é'":                                         "2",
		"c2 IS NULL AND c26 IS NULL":                        "3",
	} {
		require.Equal(t, []string{want}, ask(t, e, "SELECT c1 FROM "+s.SQL()+" WHERE "+where), where)
	}
}
