package binlog

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
)

// tableOf reads a table's definition, with the columns of the primary key as its key.
func tableOf(t testing.TB, s *mysqltest.Server, name string) *schema.Table {
	t.Helper()
	db := s.DB(t, "")
	rows, err := db.Query(`SELECT column_name, column_type, is_nullable, IFNULL(character_set_name, ''), IFNULL(collation_name, ''), column_key
		FROM information_schema.columns WHERE table_schema = 't' AND table_name = ? ORDER BY ordinal_position`, name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	table := &schema.Table{Database: "t", Name: name, Version: 1}
	for rows.Next() {
		var colName, typ, nullable, charset, collation, key string
		if err := rows.Scan(&colName, &typ, &nullable, &charset, &collation, &key); err != nil {
			t.Fatal(err)
		}
		c, err := schema.ParseColumnType(typ)
		if err != nil {
			t.Fatal(err)
		}
		c.ID, c.Name, c.ColumnType, c.Nullable = uint32(len(table.Columns)+1), colName, typ, nullable == "YES"
		c.Charset, c.Collation = charset, collation
		if key == "PRI" {
			table.Key = append(table.Key, len(table.Columns))
		}
		table.Columns = append(table.Columns, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return table
}

// decoded gives the rows after the row events of a transaction, printed, and the keys before them.
func decoded(t testing.TB, tx *Transaction, table *schema.Table) (after [][]string, before []string) {
	t.Helper()
	rows, keys := column.NewBuilder(memory.DefaultAllocator, table), column.NewKeyBuilder(table)
	for e, err := range tx.Events() {
		if err != nil {
			t.Fatal(err)
		}
		ev := e.(*RowsEvent)
		d, err := NewDecoder(ev.Table, table)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(ev, keys, rows, nil); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := rows.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys.Keys().Len() {
		before = append(before, string(keys.Keys().At(i)))
	}
	return printed(batch), before
}

const null = "<NULL>"

func printed(b *column.Batch) [][]string {
	out := make([][]string, b.Rows())
	for i := range out {
		for j := range b.Table.Columns {
			c := &b.Table.Columns[j]
			a := b.Record.Column(j)
			text := null
			if !a.IsNull(i) {
				text = string(column.Print(nil, c, a, i, time.UTC))
			}
			if b.Exact != nil && !b.Exact.IsNull(i) {
				if exact, ok := column.FindExact(b.Exact.Value(i), c.ID); ok {
					text = string(exact)
				}
			}
			out[i] = append(out[i], text)
		}
	}
	return out
}

// selected gives what the server prints for a query, with the session in UTC.
func selected(t testing.TB, s *mysqltest.Server, query string) [][]string {
	t.Helper()
	conn, err := s.DB(t, "t").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "SET time_zone = '+00:00'"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for rows.Next() {
		cells := make([]sql.RawBytes, len(names))
		to := make([]any, len(names))
		for i := range cells {
			to[i] = &cells[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(names))
		for i, c := range cells {
			if row[i] = string(c); c == nil {
				row[i] = null
			}
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// asText lists the columns so that the driver does not make Go numbers of their text.
func asText(table *schema.Table) string {
	list := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		list[i] = c.Name
		if c.Type.IsInteger() || c.Type == schema.Float || c.Type == schema.Double || c.Type == schema.Year {
			list[i] = "CONCAT(" + c.Name + ")"
		}
	}
	return strings.Join(list, ", ")
}

func wantRows(t testing.TB, table *schema.Table, got, want [][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	bad := 0
	for i := range want {
		for j := range want[i] {
			if got[i][j] != want[i][j] && bad < 20 {
				bad++
				t.Errorf("row %d, column %s %s: got %q, want %q", i, table.Columns[j].Name, table.Columns[j].ColumnType, got[i][j], want[i][j])
			}
		}
	}
}

// columnCase is a column and values for it, written in SQL.
type columnCase struct {
	definition string
	values     []string
}

func ints(bits int, unsigned bool) []string {
	if unsigned {
		return []string{"0", "1", fmt.Sprint(uint64(1)<<(bits-1) - 1), fmt.Sprint(uint64(1) << (bits - 1)), fmt.Sprint(^uint64(0) >> (64 - bits))}
	}
	return []string{"0", "-1", "1", fmt.Sprint(-1 << (bits - 1)), fmt.Sprint(int64(uint64(1)<<(bits-1) - 1))}
}

// hex256 is all bytes that a single-byte character set can hold.
func hex256() string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%02x", i)
	}
	return "X'" + b.String() + "'"
}

func labels(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf("'m%d'", i+1)
	}
	return strings.Join(parts, ",")
}

func columnCases() []columnCase {
	dates := []string{"'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "'2024-00-00'", "'2024-02-00'", "'2024-02-31'", "'0001-01-01'", "'1969-12-31'"}
	var dateTimes []string
	for _, d := range dates {
		dateTimes = append(dateTimes, strings.TrimSuffix(d, "'")+" 23:59:58.987654'", strings.TrimSuffix(d, "'")+" 00:00:00'")
	}
	stamps := []string{"'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2024-03-31 02:30:00.123456'", "'1970-01-01 00:00:01.5'"}
	times := []string{"'00:00:00'", "'-00:00:01'", "'-00:00:00.01'", "'-838:59:58.999999'", "'838:59:59'", "'-838:59:59'", "'100:00:00.50'", "'00:00:01.000001'",
		"'-411:22:33'", "'-15:07:03.75'", "'-15:07:03.020406'", "'-00:00:00.000001'"} // TYPE-06
	cases := []columnCase{
		{"TINYINT", ints(8, false)}, {"TINYINT UNSIGNED", ints(8, true)}, {"TINYINT(1)", []string{"2", "-1"}}, // TYPE-01, TYPE-24
		{"SMALLINT", ints(16, false)}, {"SMALLINT UNSIGNED", ints(16, true)},
		{"MEDIUMINT", ints(24, false)}, {"MEDIUMINT UNSIGNED", ints(24, true)}, // TYPE-02
		{"INT", ints(32, false)}, {"INT UNSIGNED", ints(32, true)}, {"INT(7) ZEROFILL", []string{"42", "0", "4294967295"}},
		{"BIGINT", ints(64, false)}, {"BIGINT UNSIGNED", ints(64, true)},
		{"DECIMAL", []string{"-1", "0", "9999999999"}}, // TYPE-21
		{"DECIMAL(13,4)", []string{"0.2718", "-0.0001", "-999999999.9999", "0.3333"}},
		{"DECIMAL(65,30)", []string{"-99999999999999999999999999999999999.999999999999999999999999999999", "0.000000000000000000000000000001", "0", "-0.5"}},
		{"DECIMAL(5,5)", []string{"0.00001", "-0.99999"}}, {"DECIMAL(10,2) ZEROFILL", []string{"0", "7"}},
		{"DECIMAL(38,10)", []string{"9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "1"}},
		{"DECIMAL(39,0)", []string{"999999999999999999999999999999999999999", "-1"}}, {"DECIMAL(18,9)", []string{"-123456789.123456789"}},
		{"DECIMAL(19,0)", []string{"9999999999999999999", "-9999999999999999999"}}, {"DECIMAL(20,19)", []string{"9.9999999999999999999", "-1"}},
		{"FLOAT", []string{"0", "0.1", "16777216", "-3.402823466e38", "1.175494351e-38", "-0e0"}},
		{"FLOAT(7,3)", []string{"123.456", "-0.001"}},
		{"DOUBLE", []string{"1234567.8901234567", "-1.7976931348623157e308", "2.2250738585072014e-308", "1e15", "1e16", "0.1", "1234567890123456.5", "1e-14", "1e-15", "-0e0"}}, // TYPE-22
		{"DOUBLE(20,5)", []string{"123.45", "-99999.99999"}},
		{"BIT(1)", []string{"b'1'", "b'0'"}}, {"BIT(13)", []string{"b'1000000000001'", "b'10'"}}, {"BIT(64)", []string{"~0", "1"}}, // TYPE-23
		{"DATE", dates}, {"YEAR", []string{"0", "1901", "2155"}}, // TYPE-03, TYPE-08
		{"CHAR(5) COLLATE utf8mb4_bin", []string{"'ja'", "'x '", "''", "'😀'"}}, {"CHAR(0)", []string{"''"}}, {"CHAR(255)", []string{"REPEAT('é', 255)"}}, // TYPE-10
		{"CHAR(200) CHARACTER SET latin1", []string{"'x'", "REPEAT('x', 200)"}},
		{"VARCHAR(20)", []string{"CONCAT('a',CHAR(0),'b')", "''", "CHAR(4)", "'z  '"}}, {"VARCHAR(300)", []string{"REPEAT('é', 300)", "'x'"}}, // TYPE-31
		{"VARCHAR(255) CHARACTER SET latin1", []string{hex256()[:2+510] + "'", "''"}}, {"VARCHAR(256) CHARACTER SET latin1", []string{hex256()}}, // TYPE-13
		{"VARCHAR(10) CHARACTER SET utf8mb3", []string{"'ÿß€'"}}, {"VARCHAR(10) CHARACTER SET ascii", []string{"'abc'"}},
		{"TINYTEXT", []string{"''", "REPEAT('x', 255)"}}, {"TEXT", []string{"REPEAT('é', 30000)"}}, {"MEDIUMTEXT", []string{"REPEAT('x', 70000)"}}, {"LONGTEXT", []string{"'x'"}},
		{"TEXT CHARACTER SET latin1", []string{hex256()}},
		{"BINARY(4)", []string{"X'01020000'", "X''", "X'00000001'"}}, {"BINARY(255)", []string{hex256()[:2+510] + "'"}}, // TYPE-09
		{"VARBINARY(300)", []string{hex256(), "X''", "X'0000'"}}, {"TINYBLOB", []string{"X'00ff'"}}, {"BLOB", []string{hex256()}},
		{"MEDIUMBLOB", []string{"REPEAT(X'00', 70000)"}}, {"LONGBLOB", []string{"X'ff'"}},
		{"ENUM('a','b','ü')", []string{"'a'", "'ü'", "0"}}, {"ENUM(" + labels(255) + ")", []string{"'m255'"}}, {"ENUM(" + labels(300) + ")", []string{"'m300'", "'m256'", "'m1'"}}, // TYPE-12
		{"ENUM('ä','ö') CHARACTER SET latin1", []string{"'ö'"}},
		{"SET('a','b')", []string{"''", "'a,b'"}}, {"SET(" + labels(18) + ")", []string{"'m1,m17,m18'"}}, {"SET(" + labels(33) + ")", []string{"'m33'"}}, {"SET(" + labels(64) + ")", []string{"'m1,m64'"}},
		{"JSON", []string{`'{"b": [1, 2.0, null], "a": "x"}'`, "'[]'"}},
	}
	for _, fsp := range []string{"", "(1)", "(2)", "(3)", "(4)", "(5)", "(6)"} {
		cases = append(cases, columnCase{"DATETIME" + fsp, dateTimes}, columnCase{"TIMESTAMP" + fsp, stamps}, columnCase{"TIME" + fsp, times})
	}
	return cases
}

// Every type comes out of the stream as the server prints it, with minimal and full metadata.
func TestTypesAgainstServer(t *testing.T) {
	s := shared(t)
	cases := columnCases()
	var columns []string
	rows := 1
	for i, c := range cases {
		columns = append(columns, fmt.Sprintf("c%d %s NULL", i, c.definition))
		rows = max(rows, len(c.values)+1)
	}
	s.Exec(t, "t", "SET sql_mode = ''", "CREATE TABLE v (id INT PRIMARY KEY, "+strings.Join(columns, ", ")+") ROW_FORMAT=DYNAMIC")
	table := tableOf(t, s, "v")
	for _, metadata := range []string{"MINIMAL", "FULL"} {
		cfg := config(t, s)
		statements := []string{"SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'", "SET SESSION binlog_row_metadata = " + metadata, "DELETE FROM v", "BEGIN"}
		statements[1] = "SET GLOBAL binlog_row_metadata = " + metadata
		for r := range rows {
			cells := []string{fmt.Sprint(r)}
			for _, c := range cases {
				if r < len(c.values) {
					cells = append(cells, c.values[r])
				} else {
					cells = append(cells, "NULL")
				}
			}
			statements = append(statements, "INSERT INTO v VALUES ("+strings.Join(cells, ",")+")")
		}
		s.Exec(t, "t", append(statements, "COMMIT", "SET GLOBAL binlog_row_metadata = MINIMAL")...)
		stream := open(t, cfg)
		tx := next(t, stream)
		if metadata == "FULL" { // the DELETE
			tx = next(t, stream)
		}
		got, _ := decoded(t, tx, table)
		wantRows(t, table, got, selected(t, s, "SELECT "+asText(table)+" FROM v ORDER BY id"))
	}
}

// Keys of old rows, of deletes and updates, are those of the same rows when they were inserted.
func TestKeysOfBeforeImages(t *testing.T) {
	s := shared(t)
	s.Exec(t, "t", "CREATE TABLE k (a INT, b BINARY(16), c VARCHAR(10), d DECIMAL(10,2), e DATETIME(3), v INT, PRIMARY KEY (c, b, a, d, e))")
	table := tableOf(t, s, "k")
	table.Key = []int{2, 1, 0, 3, 4}
	stream := open(t, config(t, s))
	s.Exec(t, "t", "INSERT INTO k VALUES (-1, X'AABBCCDDEEFF00112233445566770000', 'x', 1.50, '2024-01-01 00:00:00.123', 1), (2, X'00', '', -3, '1000-01-01', 2)",
		"UPDATE k SET v = 9", "UPDATE k SET c = 'y' WHERE a = 2", "DELETE FROM k")
	keysOf := func(tx *Transaction) (before, after []string) {
		rows, keys := column.NewBuilder(memory.DefaultAllocator, table), column.NewKeyBuilder(table)
		for e := range tx.Events() {
			d, err := NewDecoder(e.(*RowsEvent).Table, table)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Decode(e.(*RowsEvent), keys, rows, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := range keys.Keys().Len() {
			before = append(before, string(keys.Keys().At(i)))
		}
		for i := range rows.Keys().Len() {
			after = append(after, string(rows.Keys().At(i)))
		}
		return before, after
	}
	_, inserted := keysOf(next(t, stream))
	before, after := keysOf(next(t, stream))
	if fmt.Sprintf("%q", before) != fmt.Sprintf("%q", after) || len(before) != 2 || !sameStrings(before, inserted) {
		t.Errorf("update without a change of keys: %q, then %q, then %q", inserted, before, after)
	}
	before, after = keysOf(next(t, stream)) // KEY-01
	if len(before) != 1 || before[0] == after[0] || !strings.Contains(strings.Join(inserted, "|"), before[0]) {
		t.Errorf("update of a key: %q became %q", before, after)
	}
	deleted, none := keysOf(next(t, stream)) // TYPE-09
	if len(none) != 0 || len(deleted) != 2 || !strings.Contains(strings.Join(deleted, "|"), after[0]) {
		t.Errorf("deleted %q", deleted)
	}
}

func sameStrings(a, b []string) bool {
	seen := map[string]int{}
	for _, s := range a {
		seen[s]++
	}
	for _, s := range b {
		seen[s]--
	}
	for _, n := range seen {
		if n != 0 {
			return false
		}
	}
	return true
}

// TYPE-18, TYPE-15: partial images are told, never guessed at.
func TestPartialImages(t *testing.T) {
	s := shared(t)
	s.Exec(t, "t", "CREATE TABLE p (id INT PRIMARY KEY, a INT, t TEXT, j JSON)", `INSERT INTO p VALUES (1, 4, 'keep', '{"a": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}')`)
	table := tableOf(t, s, "p")
	stream := open(t, config(t, s))
	s.Exec(t, "t", "SET binlog_row_image = NOBLOB", "UPDATE p SET a = 5", "SET binlog_row_image = MINIMAL", "UPDATE p SET a = NULL", "INSERT INTO p (id) VALUES (2)",
		"DELETE FROM p WHERE id = 2", "SET binlog_row_image = FULL, binlog_row_value_options = PARTIAL_JSON", "UPDATE p SET j = JSON_SET(j, '$.a', 'yyyy')")
	for range 5 {
		for e := range next(t, stream).Events() {
			ev := e.(*RowsEvent)
			d, err := NewDecoder(ev.Table, table)
			if err != nil {
				t.Fatal(err)
			}
			var image *ImageError
			if err = d.Decode(ev, nil, column.NewBuilder(memory.DefaultAllocator, table), nil); !errors.As(err, &image) || !errors.Is(err, ErrPartialImage) {
				t.Errorf("%s: %v", ev.Action, err)
			}
		}
	}
}

// DDL-02: a definition that is not the one of the event is refused, by what differs.
func TestMismatch(t *testing.T) {
	s := shared(t)
	s.Exec(t, "t", "CREATE TABLE m (id INT PRIMARY KEY, u INT UNSIGNED, s VARCHAR(10) CHARACTER SET latin1, d DECIMAL(10,2), e ENUM('a','b'), ts TIMESTAMP(3) NULL, b BIT(9), y BINARY(3), x TEXT)",
		"SET GLOBAL binlog_row_metadata = FULL")
	defer s.Exec(t, "", "SET GLOBAL binlog_row_metadata = MINIMAL")
	table := tableOf(t, s, "m")
	stream := open(t, config(t, s))
	s.Exec(t, "t", "INSERT INTO m (id) VALUES (1)")
	var m *TableMap
	for e := range next(t, stream).Events() {
		m = e.(*RowsEvent).Table
	}
	if _, err := NewDecoder(m, table); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(c []schema.Column){
		"columns":              func(c []schema.Column) { table.Columns = c[:8] },
		"id: nullable":         func(c []schema.Column) { c[0].Nullable = true },
		"id: type":             func(c []schema.Column) { c[0].Type = schema.BigInt },
		"u: unsigned":          func(c []schema.Column) { c[1].Unsigned = false },
		"s: length":            func(c []schema.Column) { c[2].Length = 11 },
		"s: length of charset": func(c []schema.Column) { c[2].Charset = "utf8mb4" },
		"s: character set":     func(c []schema.Column) { c[2].Charset = "ascii" },
		"d: decimal":           func(c []schema.Column) { c[3].Scale = 3 },
		"e: labels":            func(c []schema.Column) { c[4].Elements = []string{"a", "b", "c"} },
		"e: label":             func(c []schema.Column) { c[4].Elements = []string{"a", "x"} },
		"ts: fsp":              func(c []schema.Column) { c[5].FSP = 0 },
		"ts: type":             func(c []schema.Column) { c[5].Type = schema.DateTime },
		"b: bits":              func(c []schema.Column) { c[6].Length = 10 },
		"y: length":            func(c []schema.Column) { c[7].Length = 4 },
		"x: blob":              func(c []schema.Column) { c[8].Type, c[8].Charset = schema.Blob, "" },
		"x: name":              func(c []schema.Column) { c[8].Name = "z" },
		"u, s: order":          func(c []schema.Column) { c[1], c[2] = c[2], c[1] },
		"geometry":             func(c []schema.Column) { c[8].Type = schema.Geometry },
	} {
		original := table
		table = table.Clone()
		change(table.Columns)
		var e *MismatchError
		if _, err := NewDecoder(m, table); !errors.As(err, &e) || e.Reason == "" {
			t.Errorf("%s: %v", what, err)
		}
		table = original
	}
}

// A table without columns is refused: its rows have no bytes, so that an event of them would have no end.
func TestNoColumns(t *testing.T) {
	var e *MismatchError
	if _, err := NewDecoder(&TableMap{}, &schema.Table{}); !errors.As(err, &e) {
		t.Error(err)
	}
}

// Columns that are not in the definition's plain list: spatial ones, generated and invisible ones, the hidden ones of functional
// indexes (TYPE-20, TYPE-25, TYPE-26).
func TestUnusualColumns(t *testing.T) {
	s := shared(t)
	s.Exec(t, "t", "CREATE TABLE g (id INT PRIMARY KEY, p POINT)",
		"CREATE TABLE f (id INT PRIMARY KEY, j JSON, INDEX k ((CAST(j->'$.tags' AS UNSIGNED ARRAY))), INDEX k2 ((CAST(j->>'$.n' AS CHAR(20)))))", // TYPE-20
		"CREATE TABLE n (id INT PRIMARY KEY, v INT AS (id * 2) VIRTUAL, w INT AS (id * 3) STORED, i INT INVISIBLE)")                              // TYPE-26
	stream := open(t, config(t, s))
	s.Exec(t, "t", "INSERT INTO g VALUES (1, POINT(1, 2))", `INSERT INTO f VALUES (1, '{"tags": [1, 2], "n": "X"}')`, "INSERT INTO n (id, i) VALUES (4, 5)")
	got, _ := decoded(t, next(t, stream), tableOf(t, s, "g"))
	wantRows(t, tableOf(t, s, "g"), got, selected(t, s, "SELECT id, p FROM g"))
	got, _ = decoded(t, next(t, stream), tableOf(t, s, "f"))
	wantRows(t, tableOf(t, s, "f"), got, selected(t, s, "SELECT id, j FROM f"))
	got, _ = decoded(t, next(t, stream), tableOf(t, s, "n"))
	wantRows(t, tableOf(t, s, "n"), got, [][]string{{"4", "8", "12", "5"}})
}

// JSON text is the server's, byte for byte.
func TestJSONAgainstServer(t *testing.T) {
	s := shared(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	docs := []string{
		"'null'", "'true'", "'1'", "'-1'", "'32767'", "'-32768'", "'32768'", "'65535'", "'65536'", "'2147483648'", "'-2147483649'", "'9223372036854775807'",
		"'18446744073709551615'", "'-9223372036854775808'", "'18446744073709551616'", "'1.0'", "'0.1'", "'-0.0'", "'1e15'", "'1e16'", "'1e20'", "'1e300'", "'1e-5'", "'1e-15'", "'1.5e-20'",
		"'123456789012345.6'", "'1234567890123456.5'", "'12345678901234567.5'", "'1.7976931348623157e308'", "'5e-324'", "'100000000000000000'",
		`'""'`, `'"a\\"b\\\\c/d\\u0001\\b\\f\\n\\r\\t\\u001f\\u007f\\u2028é😀"'`, "'[]'", "'{}'", "'[[], {}, [[[]]]]'", `'{"": 1, "b": 2, "aa": 3, "a": 4}'`,
		`'[0, 1, -1, 100000, 1.5, "x", null, true, false, {"k": [1, 2]}]'`,
		"CAST(1.50 AS JSON)", "CAST(-0.0001 AS JSON)", "CAST(CAST(99999999999999999999999999999999999.999999999999999999999999999999 AS DECIMAL(65,30)) AS JSON)", "CAST(CAST(0 AS DECIMAL(5,5)) AS JSON)",
		"CAST(DATE '2024-02-29' AS JSON)", "CAST(TIMESTAMP '2024-02-29 12:34:56.789' AS JSON)", "CAST(TIMESTAMP '0001-01-01 00:00:00' AS JSON)", "CAST(TIME '-12:34:56.000001' AS JSON)", "CAST(TIME '838:59:59' AS JSON)",
		"CAST(X'00ff' AS JSON)", "CAST(REPEAT(X'616263', 100) AS JSON)", "CAST(b'1010' AS JSON)", "CAST(CAST('abc' AS BINARY) AS JSON)", "CAST(CAST('' AS BINARY) AS JSON)",
		"JSON_ARRAY(DATE '2024-01-01', 1.50, CAST('x' AS BINARY), NULL, 1e0, CAST(1 AS UNSIGNED), CAST(2024 AS YEAR))",
		"JSON_OBJECT('k', REPEAT('x', 70000), 'n', 100000, 'm', -5, 'd', 1.5e0)", // TYPE-17: the large form
		"CAST(CONCAT('[', REPEAT('123456,', 20000), '1]') AS JSON)", "CAST(CONCAT(REPEAT('[', 99), REPEAT(']', 99)) AS JSON)", "CAST(CONCAT('\"', REPEAT('x', 200), '\"') AS JSON)",
		"CAST(ST_GeomFromText('POINT(1 2)') AS JSON)",
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		docs = append(docs, "'"+strings.ReplaceAll(randomJSON(rnd, 5), `\`, `\\`)+"'")
	}
	s.Exec(t, "t", "CREATE TABLE j (id INT PRIMARY KEY AUTO_INCREMENT, d JSON)")
	table := tableOf(t, s, "j")
	cfg := config(t, s)
	statements := []string{"BEGIN"}
	for _, d := range docs {
		statements = append(statements, "INSERT INTO j (d) VALUES ("+d+")")
	}
	// TYPE-17: in-place updates leave holes.
	s.Exec(t, "t", append(statements, "COMMIT",
		"UPDATE j SET d = JSON_SET(d, '$.k', 'short', '$.n', JSON_ARRAY(1, NULL, '', JSON_OBJECT())) WHERE JSON_TYPE(d) = 'OBJECT'",
		"UPDATE j SET d = JSON_REMOVE(d, '$.m', '$.aa') WHERE JSON_TYPE(d) = 'OBJECT'")...)
	stream := open(t, cfg)
	next(t, stream).Release()
	got, _ := decoded(t, next(t, stream), table)
	if len(got) == 0 {
		t.Fatal("nothing was updated")
	}
	s.Exec(t, "t", "UPDATE j SET id = id + 10000 ORDER BY id DESC")
	next(t, stream).Release()
	got, _ = decoded(t, next(t, stream), table)
	wantRows(t, table, got, selected(t, s, "SELECT id, CAST(d AS CHAR) FROM j ORDER BY id DESC"))
}

func randomJSON(rnd *rand.Rand, depth int) string {
	kind := rnd.IntN(9)
	if depth == 0 {
		kind %= 6
	}
	switch kind {
	case 0:
		return []string{"null", "true", "false"}[rnd.IntN(3)]
	case 1:
		return fmt.Sprint(int64(rnd.Uint64()) >> rnd.IntN(64))
	case 2:
		return fmt.Sprint(rnd.Uint64() >> rnd.IntN(64))
	case 3:
		return fmt.Sprintf("%g", (rnd.Float64()-0.5)*[]float64{1, 1e-10, 1e16, 1e100}[rnd.IntN(4)])
	case 4, 5:
		return fmt.Sprintf("%q", strings.Repeat([]string{"a", "é", "\n", "x y"}[rnd.IntN(4)], rnd.IntN(100)))
	case 6, 7:
		parts := make([]string, rnd.IntN(6))
		for i := range parts {
			parts[i] = fmt.Sprintf(`"k%d": %s`, rnd.IntN(200), randomJSON(rnd, depth-1))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	parts := make([]string, rnd.IntN(6))
	for i := range parts {
		parts[i] = randomJSON(rnd, depth-1)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
