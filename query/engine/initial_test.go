package engine

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

func altered(columns ...schema.Column) *schema.Table {
	t := items()
	for i, c := range columns {
		c.ID, c.Added = uint32(20+i), true
		t.Columns = append(t.Columns, c)
	}
	return t
}

func value(s string) *string { return &s }

// DDL-20: rows older than a column have its initial value, in parts and in segments, with and without deleted rows.
func TestMissingColumns(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	now := altered(
		schema.Column{Name: "a", Type: schema.Int, Initial: value("-7")},
		schema.Column{Name: "b", Type: schema.BigInt, Unsigned: true, Initial: value("18446744073709551615")},
		schema.Column{Name: "c", Type: schema.Decimal, Precision: 38, Scale: 2, Initial: value("-1.25")},
		schema.Column{Name: "d", Type: schema.VarChar, Length: 20, Charset: "utf8mb4", Initial: value(`it's "é" \ ok`)},
		schema.Column{Name: "e", Type: schema.DateTime, FSP: 6, Initial: value("2024-02-29 01:02:03.000004")},
		schema.Column{Name: "f", Type: schema.Timestamp, Initial: value("2024-02-29 01:02:03")},
		schema.Column{Name: "g", Type: schema.Date, Initial: value("1000-01-01")},
		schema.Column{Name: "h", Type: schema.Float, Initial: value("0.1")},
		schema.Column{Name: "i", Type: schema.Double, Initial: value("1e300")},
		schema.Column{Name: "k", Type: schema.Time, Initial: value("-838:59:59")},
		schema.Column{Name: "l", Type: schema.Decimal, Precision: 4, Scale: 1, Initial: value("9.5")},
		schema.Column{Name: "m", Type: schema.Int},
		schema.Column{Name: "n", Type: schema.Year, Initial: value("2024")},
		schema.Column{Name: "o", Type: schema.Enum, Charset: "utf8mb4", Elements: []string{"x", "y"}, Initial: value("y")},
		schema.Column{Name: "p", Type: schema.VarBinary, Length: 9, Initial: value("a\x00\xff'\\\n")},
	)
	part := writePart(t, filepath.Join(dir, "p.parquet"), itemRecord(t, items(), 0, 2))
	part.Columns = ids(items())
	holed := writePart(t, filepath.Join(dir, "q.parquet"), itemRecord(t, items(), 2, 4))
	holed.Columns, holed.Dead = part.Columns, []uint64{1}
	segment := Segment{Record: itemRecord(t, items(), 4, 6)}
	whole := Segment{Record: itemRecord(t, now, 100, 101)}
	s := scan(t, e, Table{Schema: now, Parts: []Part{part, holed}, Segments: []Segment{segment, whole}})
	got := ask(t, e, "SELECT COLUMNS('^c2[0-9]$') FROM "+s.SQL()+" ORDER BY c1")
	const old = `-7|18446744073709551615|-1.25|it's "é" \ ok|2024-02-29 01:02:03.000004|2024-02-29 01:02:03+00|1000-01-01|0.1|1e+300|-3020399000000`
	require.Len(t, got, 6)
	for _, row := range got[:5] {
		require.Equal(t, old, row)
	}
	require.Equal(t, "100|100|0.00|n100|1970-01-01 00:01:40|1970-01-01 00:01:40+00|1970-04-11|50.0|25.0|100000000", got[5])
	require.Equal(t, []string{`9.5|NULL|2024|y|a\x00\xFF\x27\x5C\x0A`, `0.0|100|100|n100|\x00\xFFd`},
		ask(t, e, "SELECT DISTINCT COLUMNS('^c3[0-9]$') FROM "+s.SQL()+" ORDER BY 1 DESC"))
}

// An initial value that no physical type holds stands in the hidden column of every older row.
func TestMissingColumnWithExactInitialValue(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir)
	now := altered(schema.Column{Name: "z", Type: schema.Date, Initial: value("0000-00-00")})
	part := writePart(t, filepath.Join(dir, "p.parquet"), itemRecord(t, items(), 0, 1))
	part.Columns = ids(items())
	newer := writePart(t, filepath.Join(dir, "q.parquet"), itemRecord(t, now, 1, 2))
	segments := []Segment{{Record: itemRecord(t, items(), 2, 3)}, {Record: itemRecord(t, now, 3, 4)}}
	s := scan(t, e, Table{Schema: now, Parts: []Part{part, newer}, Segments: segments})
	require.True(t, s.Columns()[14].Exact)
	require.Equal(t, []string{`0|NULL|\x14\x0A0000-00-00`, "1|1970-01-02|NULL", `2|NULL|\x14\x0A0000-00-00`, "3|1970-01-04|NULL"},
		ask(t, e, "SELECT c1, c20, exact FROM "+s.SQL()+" ORDER BY c1"))
}

func ids(t *schema.Table) []uint32 {
	var out []uint32
	for i := range t.Columns {
		out = append(out, t.Columns[i].ID)
	}
	return out
}
