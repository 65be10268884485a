package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDuckDBDialect(t *testing.T) {
	e := open(t)
	ctx := context.Background()
	relations := map[string]string{
		"orders": "(SELECT 1 AS id, 10.5 AS price UNION ALL SELECT 2, 20)",
		"items":  "(SELECT 1 AS order_id, 'tidemark_table_' AS name)",
	}
	for sql, want := range map[string][]string{
		"SELECT * FROM orders ORDER BY id": {"1|10.5", "2|20.0"},
		"SELECT shop.orders.id, o.name FROM shop.orders JOIN shop.items o ON shop.orders.id = o.order_id":    {"1|tidemark_table_"},
		"WITH orders AS (SELECT 7 AS id) SELECT id FROM orders":                                              {"7"},
		"WITH x AS (FROM orders) SELECT count(*), (SELECT max(price) FROM Orders) FROM x":                    {"2|20.0"},
		"SELECT a.id FROM orders a, orders b WHERE a.id = b.id AND b.price > 15":                             {"2"},
		"SELECT 18446744073709551615, 'tidemark_table_0_', 1e300, count(*) FROM range(3)":                    {"18446744073709551615|tidemark_table_0_|1e+300|3"},
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT sum(n) FROM r": {"10"},
		"SELECT list_transform([1, 2], lambda x: x + 1), [y * 2 FOR y IN [1]]":                               {"[2, 3]|[2]"},
		"FROM (VALUES (1, 'a'), (2, 'b')) v(n, s) WHERE n = 2":                                               {"2|b"},
		"SELECT * EXCLUDE (price) FROM orders QUALIFY row_number() OVER (ORDER BY id DESC) = 1":              {"2"},
		"SELECT unnest([3, 4]) UNION ALL SELECT id FROM orders ORDER BY 1":                                   {"1", "2", "3", "4"},
	} {
		s, err := e.ParseSelect(ctx, sql)
		require.NoError(t, err, sql)
		text, err := s.SQL(ctx, e, func(i int) string { return relations[strings.ToLower(s.Tables()[i].Table)] })
		require.NoError(t, err, sql)
		require.Equal(t, want, ask(t, e, text), sql)
	}
	s, err := e.ParseSelect(ctx, "SELECT * FROM a JOIN shop.b USING (x) WHERE EXISTS (FROM a) ")
	require.NoError(t, err)
	require.ElementsMatch(t, []TableName{{Table: "a"}, {Database: "shop", Table: "b"}}, s.Tables())
}

func TestDuckDBDialectRefuses(t *testing.T) {
	e := open(t)
	for sql, what := range map[string]string{
		"":                                "statements",
		"SELECT 1; SELECT 2":              "2 statements",
		"INSERT INTO t VALUES (1)":        "not a SELECT",
		"COPY (SELECT 1) TO 'x'":          "not a SELECT",
		"ATTACH 'x'":                      "not a SELECT",
		"PRAGMA version":                  "not a SELECT",
		"SET threads = 1":                 "not a SELECT",
		"INSTALL httpfs":                  "not a SELECT",
		"CREATE VIEW v AS SELECT 1":       "not a SELECT",
		"EXPLAIN SELECT 1":                "not a SELECT",
		"DESCRIBE t":                      "DESCRIBE",
		"SELECT * FROM (SUMMARIZE t)":     "SUMMARY",
		"SELECT * FROM read_parquet('x')": "table function read_parquet",
		"SELECT * FROM READ_CSV('x')":     "table function read_csv",
		"SELECT * FROM glob('*')":         "table function glob",
		"SELECT * FROM query('SELECT 1')": "table function query",
		"SELECT * FROM duckdb_settings()": "table function duckdb_settings",
		"SELECT (SELECT max(a) FROM tidemark_segments(1::UBIGINT))": "tidemark_segments",
		"SELECT tidemark_alive(1, 2, 3)":                            "function tidemark_alive",
		"SELECT current_setting('threads')":                         "function current_setting",
		"SELECT * FROM a.b.c":                                       "three parts",
		"WITH x AS (SELECT * FROM sniff_csv('x')) SELECT 1":         "sniff_csv",
		"SELECT 1 ORDER BY (SELECT count(*) FROM read_text('x'))":   "read_text",
	} {
		_, err := e.ParseSelect(context.Background(), sql)
		require.ErrorContains(t, err, what, sql)
		var typed *Error
		require.ErrorAs(t, err, &typed, sql)
		require.Equal(t, KindAccess, typed.Kind, sql)
	}
	_, err := e.ParseSelect(context.Background(), "SELEC 1")
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, KindSyntax, typed.Kind)
	// A file name is a table that nobody has.
	s, err := e.ParseSelect(context.Background(), "SELECT * FROM 'x.parquet'")
	require.NoError(t, err)
	require.Equal(t, "[{ x.parquet}]", fmt.Sprint(s.Tables()))
}
