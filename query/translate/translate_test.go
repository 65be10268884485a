package translate

import (
	"errors"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shop is a catalog of one table t in the database shop.
type shop struct{}

func (shop) Table(database, name string) (*TableInfo, error) {
	switch {
	case database != "shop":
		return nil, sqlerr.New(sqlerr.UnknownDatabase, "Unknown database '%s'", database)
	case name != "t":
		return nil, nil
	}
	return &TableInfo{
		Table: &schema.Table{
			Database: "shop", Name: "t", Key: []int{0}, KeyName: "PRIMARY",
			Columns: []schema.Column{
				{ID: 1, Name: "id", Type: schema.Int, ColumnType: "int"},
				{ID: 2, Name: "name", Type: schema.VarChar, Length: 40, Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci", Nullable: true, ColumnType: "varchar(40)"},
				{ID: 3, Name: "code", Type: schema.VarChar, Length: 10, Charset: "utf8mb4", Collation: "utf8mb4_bin", Nullable: true, ColumnType: "varchar(10)"},
				{ID: 4, Name: "price", Type: schema.Decimal, Precision: 10, Scale: 2, Nullable: true, ColumnType: "decimal(10,2)"},
				{ID: 5, Name: "n", Type: schema.BigInt, Nullable: true, ColumnType: "bigint"},
				{ID: 6, Name: "u", Type: schema.BigInt, Unsigned: true, Nullable: true, ColumnType: "bigint unsigned"},
				{ID: 7, Name: "day", Type: schema.Date, Nullable: true, ColumnType: "date"},
				{ID: 8, Name: "at", Type: schema.Timestamp, ColumnType: "timestamp"},
				{ID: 9, Name: "kind", Type: schema.Enum, Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci", Elements: []string{"b", "a"}, ColumnType: "enum('b','a')"},
				{ID: 10, Name: "zero", Type: schema.Date, Nullable: true, ColumnType: "date"},
				{ID: 11, Name: "wide", Type: schema.Decimal, Precision: 65, Scale: 2, Nullable: true, ColumnType: "decimal(65,2)"},
				{ID: 12, Name: "doc", Type: schema.JSON, Nullable: true, ColumnType: "json"},
			},
		},
		Exact: func(id uint32) bool { return id == 10 },
	}, nil
}

func testSession() *Session {
	return &Session{
		Database: "shop", SQLMode: SQLMode{OnlyFullGroupBy: true}, Now: time.Unix(1718456789, 0),
		Function: func(name string) (Value, bool) {
			return Value{Kind: TextValue, Text: "shop"}, name == "DATABASE"
		},
		SystemVariable: func(scope, name string) (Value, error) {
			if name != "max_allowed_packet" {
				return Value{}, sqlerr.New(sqlerr.UnknownVariable, "Unknown system variable '%s'", name)
			}
			return Value{Kind: IntValue, Int: 1 << 26}, nil
		},
		UserVariable: func(name string) Value { return Value{Kind: TextValue, Text: "of " + name} },
	}
}

func translateText(sql string, session *Session, params ...Value) (*Statement, error) {
	stmts, err := NewParser().Parse(sql, session.SQLMode)
	if err != nil {
		return nil, err
	}
	if len(stmts) == 0 {
		return nil, errors.New("no statement")
	}
	return Select(stmts[0], session, shop{}, append([]Value{}, params...))
}

func rendered(s *Statement) string {
	return s.Render(func(i int) string { return "rel" + strconv.Itoa(i) })
}

// TestGolden shows the DuckDB text of statements. go test -run Golden -update writes the file anew, to be reviewed.
func TestGolden(t *testing.T) {
	const file = "testdata/golden.txt"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		sql, _, _ := strings.Cut(block, "\n")
		out.WriteString(sql + "\n")
		s, err := translateText(sql, testSession())
		if err != nil {
			out.WriteString("  error: " + err.Error() + "\n\n")
			continue
		}
		out.WriteString("  " + rendered(s) + "\n")
		for _, r := range s.Tables {
			out.WriteString("  reads " + r.Table.Name + columnsText(r) + "\n")
		}
		out.WriteString("\n")
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
	}
	require.Equal(t, string(text), out.String())
}

func columnsText(r TableRead) string {
	var b strings.Builder
	for _, id := range r.Columns {
		b.WriteString(" " + strconv.Itoa(int(id)))
	}
	if r.Exact {
		b.WriteString(" and exact")
	}
	return b.String()
}

func TestErrorsOfMySQL(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT nope FROM t":                      "1054 Unknown column 'nope' in 'field list'",
		"SELECT 1 FROM t WHERE t.nope = 1":        "1054 Unknown column 't.nope' in 'where clause'",
		"SELECT id FROM t ORDER BY nope":          "1054 Unknown column 'nope' in 'order clause'",
		"SELECT * FROM nope":                      "1146 Table 'shop.nope' doesn't exist",
		"SELECT * FROM other.t":                   "1049 Unknown database 'other'",
		"SELECT id FROM t a, t b":                 "1052 Column 'id' in field list is ambiguous",
		"SELECT 1 FROM t, t":                      "1066 Not unique table/alias: 't'",
		"SELECT nofunc(1)":                        "1305 FUNCTION shop.nofunc does not exist",
		"SELECT ABS()":                            "1582 Incorrect parameter count in the call to native function 'ABS'",
		"SELECT 1 FROM t WHERE SUM(id) > 1":       "1111 Invalid use of group function",
		"SELECT @@nope":                           "1193 Unknown system variable 'nope'",
		"SELECT 1 UNION SELECT 1, 2":              "1222 The used SELECT statements have a different number of columns",
		"SELECT (SELECT 1, 2)":                    "1241 Operand should contain 1 column(s)",
		"SELECT * FROM (SELECT 1)":                "1248 Every derived table must have its own alias",
		"SELECT id FROM t WHERE":                  "1064 You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '' at line 1",
		"SELECT name, COUNT(*) FROM t GROUP BY n": "1055 Expression #1 of SELECT list is not in GROUP BY clause and contains nonaggregated column 'shop.t.name' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by",
		"SELECT name, COUNT(*) FROM t":            "1140 In aggregated query without GROUP BY, expression #1 of SELECT list contains nonaggregated column 'shop.t.name'; this is incompatible with sql_mode=only_full_group_by",
		"SELECT DATE '2024-02-31'":                "1525 Incorrect DATE value: '2024-02-31'",
		"SELECT 'a' COLLATE utf8mb4_bin = 'b' COLLATE utf8mb4_0900_ai_ci": "1267 Illegal mix of collations (utf8mb4_bin,EXPLICIT) and (utf8mb4_0900_ai_ci,EXPLICIT) for operation '='",
	} {
		_, err := translateText(sql, testSession())
		var e *sqlerr.Error
		require.ErrorAs(t, err, &e, sql)
		require.Equal(t, want, strconv.Itoa(int(e.Code))+" "+e.Message, sql)
	}
}

func TestRefusalsNameTheConstruct(t *testing.T) {
	for sql, construct := range map[string]string{
		"SELECT zero IS NULL FROM t":                          "an expression over column t.zero, which has values outside of its type's range (such as zero dates)",
		"SELECT DISTINCT zero FROM t":                         "an expression over column t.zero, which has values outside of its type's range (such as zero dates)",
		"SELECT * FROM (SELECT zero FROM t) d":                "an expression over column t.zero, which has values outside of its type's range (such as zero dates)",
		"SELECT wide + 1 FROM t":                              "arithmetic over DECIMAL values of more than 38 digits",
		"SELECT id FROM t ORDER BY wide":                      "sorting DECIMAL values of more than 38 digits",
		"SELECT id FROM t ORDER BY doc":                       "sorting JSON values",
		"SELECT name REGEXP 'x' FROM t":                       "REGEXP",
		"SELECT SOUNDEX(name) FROM t":                         "function SOUNDEX",
		"SELECT * FROM t, LATERAL (SELECT t.id) x":            "LATERAL",
		"SELECT id FROM t FOR UPDATE":                         "FOR UPDATE",
		"SELECT id FROM t INTO OUTFILE '/tmp/x'":              "SELECT ... INTO",
		"SELECT name COLLATE utf8mb4_de_pb_0900_ai_ci FROM t": "collation utf8mb4_de_pb_0900_ai_ci",
	} {
		_, err := translateText(sql, testSession())
		var u *Unsupported
		require.ErrorAs(t, err, &u, sql)
		require.Equal(t, construct, u.Construct, sql)
	}
}

// TestParameters shows the types that parameters of prepared statements get. // QUERY-08
func TestParameters(t *testing.T) {
	sql := "SELECT ? FROM t WHERE at > ? AND id IN (?, ?) AND name = ? LIMIT ?"
	s, err := translateText(sql, testSession(),
		Value{Kind: DecimalValue, Text: "1.50"}, Value{Kind: TextValue, Text: "2025-02-03 04:05:06"}, Value{Kind: IntValue, Int: 1},
		Value{Kind: UintValue, Uint: 1<<64 - 1}, Value{Kind: NullValue}, Value{Kind: IntValue, Int: 5})
	require.NoError(t, err)
	text := rendered(s)
	require.Contains(t, text, "TIMESTAMPTZ '2025-02-03 04:05:06.000000+00'")
	require.Contains(t, text, "18446744073709551615::UBIGINT")
	require.Contains(t, text, "LIMIT 5")
	require.Equal(t, field.NewDecimal, s.Columns[0].Type)
	require.Equal(t, uint8(2), s.Columns[0].Decimals)
	_, err = translateText(sql, testSession(), Value{Kind: IntValue, Int: 1})
	require.ErrorContains(t, err, "Incorrect arguments to EXECUTE")
}

// TestPreparedColumns: a statement whose parameters are not known yet tells its columns.
func TestPreparedColumns(t *testing.T) {
	stmts, err := NewParser().Parse("SELECT id, name FROM t WHERE n = ? LIMIT ?", SQLMode{})
	require.NoError(t, err)
	s, err := Select(stmts[0], testSession(), shop{}, nil)
	require.NoError(t, err)
	require.Len(t, s.Columns, 2)
	require.Equal(t, "name", s.Columns[1].Name)
}

// TestSessionValues: functions and variables of the session are constants. // QUERY-06
func TestSessionValues(t *testing.T) {
	s, err := translateText("/* driver */SELECT DATABASE(), @@session.max_allowed_packet AS p, @x", testSession())
	require.NoError(t, err)
	require.Contains(t, rendered(s), "'shop'")
	require.Contains(t, rendered(s), "67108864")
	require.Contains(t, rendered(s), "'of x'")
	require.Equal(t, []string{"DATABASE()", "p", "@x"}, []string{s.Columns[0].Name, s.Columns[1].Name, s.Columns[2].Name})
}

// TestPlainPredicates: comparisons of columns with constants stay plain, so that the engine can skip row groups.
func TestPlainPredicates(t *testing.T) {
	for where, want := range map[string]string{
		"id < 5":                       "(t1.c1 < 5)",
		"price >= 1.25":                "(t1.c4 >= CAST('1.25' AS DECIMAL(3,2)))",
		"day = '2024-01-02'":           "(t1.c7 = DATE '2024-01-02')",
		"day < '2024-01-02 00:00:00'":  "(t1.c7 < DATE '2024-01-02')",
		"at < '2024-01-02'":            "(t1.c8 < TIMESTAMPTZ '2024-01-02 00:00:00.000000+00')",
		"n = '12'":                     "(t1.c5 = 12)",
		"id IN (1, 2)":                 "(t1.c1 IN (1, 2))",
		"at >= NOW() - INTERVAL 1 DAY": "(t1.c8 >= TIMESTAMPTZ '2024-06-14 13:06:29.000000+00')",
		"id BETWEEN 3 AND 4":           "((t1.c1 >= 3) AND (t1.c1 <= 4))",
		"at IS NULL":                   "(t1.c8 IS NULL)",
	} {
		s, err := translateText("SELECT 1 FROM t WHERE "+where, testSession())
		require.NoError(t, err, where)
		require.Contains(t, rendered(s), "WHERE "+want, where)
	}
}

// TestBinaryCollation: under tidemark_collation = 'binary' text compares as it is.
func TestBinaryCollation(t *testing.T) {
	session := testSession()
	session.BinaryCollation = true
	s, err := translateText("SELECT name, COUNT(*) FROM t WHERE name > 'x' AND name LIKE 'a%' GROUP BY name ORDER BY name", session)
	require.NoError(t, err)
	require.NotContains(t, rendered(s), "tm_")
}

// TestResultColumns: exact columns and metadata of plain columns.
func TestResultColumns(t *testing.T) {
	s, err := translateText("SELECT x.zero AS z, x.id FROM t x", testSession())
	require.NoError(t, err)
	c := s.Columns[0]
	require.Equal(t, 2, c.Exact)
	require.Equal(t, uint32(10), c.ColumnID)
	require.Equal(t, []string{"z", "zero", "x", "t", "shop"}, []string{c.Name, c.OrgName, c.Table, c.OrgTable, c.Database})
	require.Equal(t, FormatDate, c.Format)
	require.Zero(t, s.Columns[1].Exact)
}

// FuzzSelect: any text gives a translation or an error, never a panic.
func FuzzSelect(f *testing.F) {
	text, err := os.ReadFile("testdata/golden.txt")
	require.NoError(f, err)
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "SELECT") {
			f.Add(line)
		}
	}
	for _, sql := range []string{
		"WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n", "SELECT * FROM t NATURAL JOIN t b",
		"SELECT GROUP_CONCAT(DISTINCT name ORDER BY id SEPARATOR ';') FROM t", "SELECT a.* FROM t a JOIN t b USING (id) WHERE (a.id, b.n) IN (SELECT id, n FROM t)",
		"SELECT CASE kind WHEN 'a' THEN 1 END, doc->>'$.a' FROM t GROUP BY 1 WITH ROLLUP", "TABLE t", "VALUES ROW(1)", "SELECT 1 LIMIT ?", "SELECT TRIM(BOTH 'x' FROM name), EXTRACT(DAY FROM day) FROM t",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		s, err := translateText(sql, testSession(), Value{Kind: IntValue, Int: 1})
		if err == nil {
			rendered(s)
		}
	})
}
