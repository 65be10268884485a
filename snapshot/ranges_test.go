package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// digits gives n rows numbered from 0 as a derived table.
func numbers(n int) string {
	return fmt.Sprintf("(WITH RECURSIVE s AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM s WHERE i + 1 < %d) SELECT i FROM s) AS s", n)
}

// rangeCases have a key and an expression for its value in row i.
var rangeCases = []struct {
	name, columns, values string
}{
	{"ints", "id INT PRIMARY KEY", "i - 4000"},
	{"bigs", "id BIGINT UNSIGNED PRIMARY KEY", "IF(i = 0, 18446744073709551615, i * 1000003)"},
	{"gaps", "id BIGINT PRIMARY KEY", "IF(i < 20, -9223372036854775808 + i, 9223372036854775807 - i)"},
	{"words", "id VARCHAR(40) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY", "CONCAT(LEFT(SHA2(i, 256), 32), 'É''\\\\', i)"},
	{"latin", "id VARCHAR(40) CHARACTER SET latin1 PRIMARY KEY", "CONCAT('é', LEFT(SHA2(i, 256), 32))"},
	{"bytes", "id BINARY(16) PRIMARY KEY", "UNHEX(LEFT(SHA2(i, 256), 32))"},
	{"days", "id DATETIME(3) PRIMARY KEY", "TIMESTAMPADD(MICROSECOND, i * 1000, '2020-01-01')"},
	{"stamps", "id TIMESTAMP(3) PRIMARY KEY", "TIMESTAMPADD(MICROSECOND, i * 1000, '2020-03-29')"},
	{"times", "id TIME(2) PRIMARY KEY", "SEC_TO_TIME((i - 4000) / 100)"},
	{"money", "id DECIMAL(40,3) PRIMARY KEY", "(i - 4000) / 8"},
	{"pair", "a INT NOT NULL, b VARCHAR(9) NOT NULL, c ENUM('x','y') NOT NULL, PRIMARY KEY (b, a, c)", "i DIV 3, CONCAT('t', i % 3), 'y'"},
	{"desc_", "a SMALLINT NOT NULL, b BIGINT NOT NULL, PRIMARY KEY (a DESC, b)", "i % 5, i"},
	{"second", "a INT NULL, b INT NOT NULL, UNIQUE u1 (a), UNIQUE u2 (b)", "NULL, i"},
	{"floats", "id DOUBLE PRIMARY KEY", "i / 7"},
	{"enums", "e ENUM('x','y') NOT NULL, i INT NOT NULL, PRIMARY KEY (e, i)", "1 + i % 2, i"},
	{"floats4", "id FLOAT PRIMARY KEY", "i / 7 - 100"},
	{"bits", "id BIT(40) PRIMARY KEY", "i * 1000"},
	{"sets", "s SET('a','b','c') NOT NULL, i INT NOT NULL, PRIMARY KEY (s, i)", "i % 8, i"},
	{"years", "y YEAR NOT NULL, i INT NOT NULL, PRIMARY KEY (y, i)", "IF(i % 3, 1970 + i % 100, 0), i"},
	{"dates", "d DATE NOT NULL, i INT NOT NULL, PRIMARY KEY (d DESC, i DESC)", "IF(i % 9, '2020-01-31' + INTERVAL i % 400 DAY, '0000-00-00'), i"},
	{"uuids", "id CHAR(36) CHARACTER SET ascii PRIMARY KEY", "INSERT(INSERT(LEFT(SHA2(i, 256), 34), 9, 0, '-'), 14, 0, '-')"},
	{"cyrillic", "id VARCHAR(40) PRIMARY KEY", "CONCAT('улица ', CHAR(0xD0B0 + i % 32 USING utf8mb4), CHAR(0xD0B0 + i DIV 32 % 16 USING utf8mb4), i)"},
	{"numbered", "id VARCHAR(40) COLLATE utf8mb4_general_ci PRIMARY KEY", "CONCAT('Order-', LPAD(i, 12, '0'))"},
	{"tenant", "a INT NOT NULL, b BIGINT NOT NULL, PRIMARY KEY (a, b)", "IF(i < 30, i, 1000), i"},
	{"top", "id BIGINT UNSIGNED PRIMARY KEY", "IF(i < 20, i, 18446744073709551615 - i)"},
	{"clumps", "id BIGINT PRIMARY KEY", "(i % 4) * 1000000000000 + i"},
	{"var", "id VARBINARY(30) PRIMARY KEY", "CONCAT('\\0prefix', CHAR(i % 256), i)"},
	{"enumlast", "e ENUM('x','y','z') NOT NULL, i INT NOT NULL, PRIMARY KEY (e, i)", "IF(i < 50, 1, 3), i"},
	{"parts", "id INT NOT NULL, k INT NOT NULL, PRIMARY KEY (id, k)", "i, i"},
}

const rangeTestRows = 8000

// makeRangeTables makes a table for each case.
func makeRangeTables(t *testing.T, s *mysqltest.Server, db string) {
	t.Helper()
	for _, c := range rangeCases {
		partition := ""
		if c.name == "parts" {
			partition = " PARTITION BY HASH (k) PARTITIONS 4"
		}
		s.Exec(t, db, "SET cte_max_recursion_depth = 100000", "SET time_zone = '+00:00'", "SET sql_mode = ''",
			fmt.Sprintf("CREATE TABLE %s (%s, v VARCHAR(20))%s", c.name, c.columns, partition),
			fmt.Sprintf("INSERT INTO %s SELECT %s, CONCAT('v', i) FROM %s", c.name, c.values, numbers(rangeTestRows)),
			"ANALYZE TABLE "+c.name)
	}
}

// TestChunks copies tables in many small chunks, for each type of key: each row comes once, each chunk is read by the key,
// without sorting, and the table can be split.
func TestChunks(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	makeRangeTables(t, s, db)
	cfg := config(t, s, db)
	cfg.ChunkRows, cfg.BatchRows = 400, 300
	m := newKeeper()
	mustRun(t, cfg, m)
	for _, c := range rangeCases {
		t.Run(c.name, func(t *testing.T) {
			table := tableNamed(m.cut.Tables, c.name)
			require.Len(t, m.rows(t, c.name, time.UTC), rangeTestRows)
			all, err := takeOver(table, m.notes[c.name])
			require.NoError(t, err)
			require.Empty(t, all.gaps)
			require.EqualValues(t, rangeTestRows, all.rows)
			require.True(t, len(all.notes) >= 20 && len(all.notes) < 60, "%d chunks", len(all.notes))
			explainChunks(t, s, table, all.notes)
			middleOf(t, s, table)
		})
	}
}

func tableNamed(tables []*schema.Table, name string) *schema.Table {
	return (&compat.Catalog{Tables: tables}).Table(name)
}

func explainChunks(t *testing.T, s *mysqltest.Server, table *schema.Table, chunks []*note) {
	t.Helper()
	conn, err := wire.Dial(t.Context(), sourceConfig(s.Login))
	require.NoError(t, err)
	defer conn.Close()
	for i, n := range chunks {
		query := rangeQuery(table, keyColumns(table), keyRange{n.After, chunks[len(chunks)-2].UpTo}) + " LIMIT 400"
		r, err := conn.Query(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+query)
		require.NoError(t, err)
		if strings.Contains(r.Named(0, "Extra"), "no matching row") || n.Rows == 0 {
			continue
		}
		access := r.Named(0, "type")
		if i > 0 && access != "range" && access != "const" || strings.Contains(r.Named(0, "Extra"), "filesort") {
			t.Errorf("chunk %d is read by %q, %s: %s", i, access, r.Named(0, "Extra"), query)
		}
	}
}

// middleOf splits a table: both sides have rows enough, and nothing is lost.
func middleOf(t *testing.T, s *mysqltest.Server, table *schema.Table) {
	t.Helper()
	conn, err := wire.Dial(t.Context(), sourceConfig(s.Login))
	require.NoError(t, err)
	defer conn.Close()
	k := &splitter{conn: conn, table: table, columns: keyColumns(table), least: 500}
	first, last, err := k.ends(t.Context(), nil)
	require.NoError(t, err)
	h, err := k.middle(t.Context(), first, last)
	require.NoError(t, err)
	require.NotNil(t, h)
	left, right := countRange(t, conn, table, keyRange{upTo: h.place}), countRange(t, conn, table, keyRange{after: h.place})
	require.EqualValues(t, rangeTestRows, left+right)
	require.True(t, min(left, right) > rangeTestRows/6, "%d and %d rows at %v, estimated %d and %d", left, right, h.place, h.left, h.right)
}

func countRange(t *testing.T, conn *wire.Conn, table *schema.Table, rng keyRange) int64 {
	t.Helper()
	r, err := conn.Query(t.Context(), "SELECT COUNT(*) FROM "+tableName(table)+where(rng.conditions(keyColumns(table))))
	require.NoError(t, err)
	return r.Int(0, 0)
}

func TestCondition(t *testing.T) {
	table := &schema.Table{Columns: []schema.Column{{Name: "a", Type: schema.Int}, {Name: "b`c", Type: schema.VarChar, Charset: "latin1"}}, Key: []int{0, 1}}
	columns := keyColumns(table)
	r := keyRange{after: boundary{"1", bytesLiteral("latin1", []byte("é'"))}, upTo: boundary{"2", bytesLiteral("latin1", nil)}}
	want := " WHERE (`a` > 1 OR `a` = 1 AND `b``c` > _latin1 x'c3a927') AND (`a` < 2 OR `a` = 2 AND `b``c` <= _latin1 x'')"
	if got := where(r.conditions(columns)); got != want {
		t.Errorf("%s", got)
	}
	if got := where((keyRange{}).conditions(columns)); got != "" {
		t.Errorf("%s", got)
	}
}
