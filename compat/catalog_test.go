package compat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// everyType has each type with the attributes that change how its values look.
const everyType = "CREATE TABLE every_type (" +
	"a TINYINT NOT NULL DEFAULT -5, a1 TINYINT(1), a2 TINYINT UNSIGNED, b SMALLINT UNSIGNED ZEROFILL, c MEDIUMINT, d INT UNSIGNED, e BIGINT UNSIGNED NOT NULL," +
	" f DECIMAL(10,3) UNSIGNED ZEROFILL DEFAULT 1.5, f1 DECIMAL(65,30), f2 DECIMAL, g FLOAT, g1 FLOAT(7,2) UNSIGNED ZEROFILL, g2 FLOAT UNSIGNED ZEROFILL, h DOUBLE, h1 DOUBLE(20,4), h2 REAL UNSIGNED ZEROFILL," +
	" i BIT(1) DEFAULT b'1', i1 BIT(64), j DATE DEFAULT '2020-02-29', k DATETIME, k1 DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), l TIMESTAMP NULL," +
	" l1 TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), m TIME, m1 TIME(2) DEFAULT '-12:00:00.50', n YEAR DEFAULT 2001," +
	" o CHAR(3) DEFAULT '', o1 CHAR(3) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL, p VARCHAR(20) DEFAULT 'it''s; -- x', p1 VARCHAR(300) CHARACTER SET utf8mb3," +
	" q TINYTEXT, q1 TEXT, q2 MEDIUMTEXT CHARACTER SET latin1, q3 LONGTEXT, r BINARY(4) NOT NULL, r1 VARBINARY(255), s TINYBLOB, s1 BLOB, s2 MEDIUMBLOB, s3 LONGBLOB," +
	" t ENUM('a','it''s','x,y','b\\\\s','n\\nl','(',')',''), t1 ENUM('é') CHARACTER SET latin1, u SET('q','w e') DEFAULT 'q,w e', v JSON DEFAULT (JSON_ARRAY(1,'x\\'y'))," +
	" w INT INVISIBLE, x VARCHAR(20) DEFAULT (CONCAT('a','\\\\')) COMMENT 'it''s \"x\"', y INT GENERATED ALWAYS AS (a * 2) VIRTUAL," +
	" z VARCHAR(40) GENERATED ALWAYS AS (CONCAT('k''', p)) STORED," +
	" PRIMARY KEY (e, o1), UNIQUE KEY by_z (z), KEY by_k (k DESC, j), KEY prefix (q1(5), r1(3)), KEY hidden (d) INVISIBLE COMMENT 'why'," +
	" FULLTEXT KEY words (q1)) COMMENT='all of them'"

// TestEveryDefinition compares what was read with SHOW CREATE TABLE, written again from what was read.
func TestEveryDefinition(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, everyType,
		"CREATE TABLE `x.y-z ``q` (id INT PRIMARY KEY AUTO_INCREMENT, `select` INT, `x``y` INT, `_version` INT, `is_deleted` INT, `a.b` INT, `é %s` INT)",
		"CREATE TABLE no_pk (a INT NOT NULL, b INT, c INT NOT NULL, UNIQUE KEY u1 (b), UNIQUE KEY zz (a), UNIQUE KEY aa (c, a), KEY k (b))",
		"CREATE TABLE "+wire.Identifier(strings.Repeat("n", 64))+" (id INT PRIMARY KEY)",
	)
	c := dial(t, s.Login)
	tables, err := ReadTables(t.Context(), c, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) != 4 {
		t.Fatalf("%d tables", len(tables))
	}
	for _, table := range tables {
		r, err := c.Query(t.Context(), "SHOW CREATE TABLE "+wire.Identifier(db)+"."+wire.Identifier(table.Name))
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := strings.Cut(r.Text(0, 1), "\n) ENGINE")
		if got := create(table); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		for i := range table.Columns {
			if table.Columns[i].ID != uint32(i+1) {
				t.Errorf("%s: column %d has id %d", table.Name, i, table.Columns[i].ID)
			}
		}
	}
}

// create writes a definition as SHOW CREATE TABLE does.
func create(t *schema.Table) string {
	var lines []string
	for i := range t.Columns {
		lines = append(lines, "  "+columnLine(t, &t.Columns[i]))
	}
	for _, ix := range t.Indexes {
		lines = append(lines, "  "+indexLine(t, &ix))
	}
	return "CREATE TABLE " + wire.Identifier(t.Name) + " (\n" + strings.Join(lines, ",\n")
}

func typeText(c *schema.Column) string {
	switch {
	case c.Type == schema.Enum || c.Type == schema.Set:
		labels := make([]string, len(c.Elements))
		for i, e := range c.Elements {
			labels[i] = "'" + strings.NewReplacer(`\`, `\\`, "'", "''", "\n", `\n`).Replace(e) + "'"
		}
		return c.Type.String() + "(" + strings.Join(labels, ",") + ")"
	case c.Type == schema.Decimal:
		return attributes(c, fmt.Sprintf("decimal(%d,%d)", c.Precision, c.Scale))
	case (c.Type == schema.Float || c.Type == schema.Double) && c.Scale != schema.FloatUnscaled:
		return attributes(c, fmt.Sprintf("%s(%d,%d)", c.Type, c.Precision, c.Scale))
	case c.Type == schema.Float || c.Type == schema.Double:
		return attributes(c, c.Type.String())
	case c.FSP > 0:
		return fmt.Sprintf("%s(%d)", c.Type, c.FSP)
	case c.Length > 0:
		return attributes(c, fmt.Sprintf("%s(%d)", c.Type, c.Length))
	}
	return attributes(c, c.Type.String())
}

func attributes(c *schema.Column, s string) string {
	if c.Unsigned {
		s += " unsigned"
	}
	if c.Zerofill {
		s += " zerofill"
	}
	return s
}

func columnLine(t *schema.Table, c *schema.Column) string {
	line := wire.Identifier(c.Name) + " " + typeText(c)
	if c.Collation != "" && c.Collation != t.Collation {
		line += " CHARACTER SET " + c.Charset + " COLLATE " + c.Collation
	}
	if c.Generated != "" {
		kind := " VIRTUAL"
		if c.Stored {
			kind = " STORED"
		}
		return line + " GENERATED ALWAYS AS (" + c.Generated + ")" + kind
	}
	switch {
	case !c.Nullable:
		line += " NOT NULL"
	case c.Type == schema.Timestamp:
		line += " NULL"
	}
	line += defaultClause(c)
	if c.OnUpdate != "" {
		line += " ON UPDATE " + c.OnUpdate
	}
	if c.AutoIncrement {
		line += " AUTO_INCREMENT"
	}
	if c.Comment != "" {
		line += " COMMENT '" + strings.ReplaceAll(c.Comment, "'", "''") + "'"
	}
	if c.Invisible {
		line += " /*!80023 INVISIBLE */"
	}
	return line
}

func defaultClause(c *schema.Column) string {
	blob := c.Type == schema.JSON || c.Type >= schema.TinyText && c.Type <= schema.LongText || c.Type >= schema.TinyBlob && c.Type <= schema.LongBlob
	switch {
	case c.Default == nil && c.Nullable && !blob:
		return " DEFAULT NULL"
	case c.Default == nil:
		return ""
	case c.DefaultExpr && strings.HasPrefix(*c.Default, "CURRENT_TIMESTAMP"), c.Type == schema.Bit:
		return " DEFAULT " + *c.Default
	case c.DefaultExpr:
		return " DEFAULT (" + *c.Default + ")"
	}
	return " DEFAULT '" + strings.ReplaceAll(*c.Default, "'", "''") + "'"
}

func indexLine(t *schema.Table, ix *schema.Index) string {
	var parts []string
	for _, p := range ix.Parts {
		part := wire.Identifier(t.Columns[t.ColumnByID(p.Column)].Name)
		if p.Prefix > 0 {
			part += fmt.Sprintf("(%d)", p.Prefix)
		}
		if p.Desc {
			part += " DESC"
		}
		parts = append(parts, part)
	}
	head := "KEY " + wire.Identifier(ix.Name)
	switch {
	case ix.Name == "PRIMARY":
		head = "PRIMARY KEY"
	case ix.Unique:
		head = "UNIQUE " + head
	case ix.Kind == "FULLTEXT":
		head = "FULLTEXT " + head
	}
	line := head + " (" + strings.Join(parts, ",") + ")"
	if ix.Comment != "" {
		line += " COMMENT '" + ix.Comment + "'"
	}
	if ix.Invisible {
		line += " /*!80000 INVISIBLE */"
	}
	return line
}

func TestKeyChoice(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db,
		"CREATE TABLE pk (a INT NOT NULL UNIQUE, b INT, PRIMARY KEY (b))",
		"CREATE TABLE second (a INT, b INT NOT NULL, c INT NOT NULL, UNIQUE (a), UNIQUE zz (b, c))",
		"CREATE TABLE prefix (name TEXT NOT NULL, v INT, PRIMARY KEY (name(4)))",                                 // KEY-07
		"CREATE TABLE prefix2 (name TEXT NOT NULL, v INT, UNIQUE (name(4)))",                                     // KEY-07
		"CREATE TABLE expr (j JSON NOT NULL, v INT, UNIQUE ((CAST(j->>'$.id' AS UNSIGNED))))",                    // KEY-07
		"CREATE TABLE none (a INT NULL, b VARCHAR(9) NULL)",                                                      // KEY-03
		"CREATE TABLE mv (id INT PRIMARY KEY, f JSON, INDEX k ((CAST(f->'$.tags' AS UNSIGNED ARRAY))))",          // TYPE-20
		"CREATE TABLE gk (id INT, s VARCHAR(20) AS (CONCAT('k',id)) STORED NOT NULL, PRIMARY KEY (s))",           // TYPE-26
		"CREATE TABLE shape (id INT PRIMARY KEY, g GEOMETRY NOT NULL, c CHAR(2) CHARACTER SET gbk, v VECTOR(3))", // other types
		"CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM",                                                      // SNAP-09
		"CREATE TABLE emoji (id INT PRIMARY KEY, e ENUM('😀') CHARACTER SET utf8mb4)",
		"SET sql_generate_invisible_primary_key = ON", "SET show_gipk_in_create_table_and_information_schema = OFF",
		"CREATE TABLE gipk (w INT)", // CLOUD-12
		"CREATE VIEW seen AS SELECT 1",
	)
	catalog, err := ReadCatalog(t.Context(), dial(t, s.Login), db, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		table string
		key   []int
		name  string
		says  string
	}{
		{"pk", []int{1}, "PRIMARY", ""},
		{"second", []int{1, 2}, "zz", ""},
		{"prefix", []int{0}, "PRIMARY", ""},
		{"prefix2", nil, "", ""},
		{"expr", nil, "", ""},
		{"none", nil, "", ""},
		{"mv", []int{0}, "PRIMARY", ""},
		{"gk", []int{1}, "PRIMARY", ""},
		{"shape", []int{0}, "PRIMARY", ""},
		{"m", []int{0}, "PRIMARY", "engine MyISAM"},
		{"emoji", []int{0}, "PRIMARY", "label with '?'"},
		{"gipk", []int{0}, "PRIMARY", ""},
	} {
		table := catalog.Table(tc.table)
		if table == nil {
			t.Errorf("no table %s", tc.table)
			continue
		}
		if !slices.Equal(table.Key, tc.key) || table.KeyName != tc.name {
			t.Errorf("%s: key %v of index %q", tc.table, table.Key, table.KeyName)
		}
		problems := strings.Join(OneTableProblems(table), "\n")
		if tc.says == "" && problems != "" || !strings.Contains(problems, tc.says) {
			t.Errorf("%s: %q", tc.table, problems)
		}
	}
	if catalog.Table("seen") != nil {
		t.Error("a view is taken for a table")
	}
}

func TestFingerprints(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)", "CREATE TABLE c (id INT PRIMARY KEY, v INT)")
	c := dial(t, s.Login)
	wanted := func(name string) bool { return name != "b" }
	first, err := ReadCatalog(t.Context(), c, db, wanted, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(t, db, "ALTER TABLE c ADD COLUMN w INT FIRST, ALGORITHM=INSTANT", "CREATE TABLE d (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
	second, err := ReadCatalog(t.Context(), c, db, wanted, first)
	if err != nil {
		t.Fatal(err)
	}
	if second.Table("a") != first.Table("a") || second.Fingerprint("a") != first.Fingerprint("a") {
		t.Error("an unchanged table is another")
	}
	if second.Fingerprint("c") == first.Fingerprint("c") || len(second.Table("c").Columns) != 3 {
		t.Error("an altered table is the same")
	}
	if second.Table("b") != nil || second.Table("d") == nil {
		t.Error("wrong list of tables")
	}
}

func TestDatabaseName(t *testing.T) {
	s := mysqltest.Shared(t)
	c := dial(t, s.Login)
	var missing *NoDatabaseError
	if _, err := ReadTables(t.Context(), c, "no_such_database", nil); !errors.As(err, &missing) {
		t.Error(err)
	}
	if _, err := ReadTables(t.Context(), c, "MySQL", nil); !errors.As(err, &missing) || missing.Similar != "mysql" {
		t.Error(err)
	}
	s.Exec(t, "", "CREATE DATABASE `a.b``c é`", "CREATE TABLE `a.b``c é`.`x.y` (id INT PRIMARY KEY)", "CREATE TABLE `a.b``c é`.t1 (id INT PRIMARY KEY)",
		"CREATE TABLE `a.b``c é`.T1 (id INT PRIMARY KEY)")
	defer s.Exec(t, "", "DROP DATABASE `a.b``c é`")
	catalog, err := ReadCatalog(t.Context(), c, "a.b`c é", nil, nil)
	if err != nil || len(catalog.Tables) != 3 {
		t.Fatal(catalog, err)
	}
	if problems := TableProblems(catalog); len(problems) != 1 || !strings.Contains(problems[0].What, "letter case") {
		t.Error(problems)
	}
}

func TestTableIDs(t *testing.T) {
	s := mysqltest.Shared(t)
	s.Exec(t, "", "CREATE DATABASE `i.d-s`")
	defer s.Exec(t, "", "DROP DATABASE `i.d-s`")
	s.Exec(t, "i.d-s", "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE `b#p#é` (id INT PRIMARY KEY)", "CREATE TABLE `c-#p#x y` (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2")
	c := dial(t, s.Login)
	read := func() map[string]string {
		tables, err := ReadTables(t.Context(), c, "i.d-s", nil)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := TableIDs(t.Context(), c, tables)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	first := read()
	if len(first) != 2 || first["a"] == "" || strings.Count(first["c-#p#x y"], " ") != 2 {
		t.Fatal(first)
	}
	s.Exec(t, "i.d-s", "TRUNCATE TABLE a", "RENAME TABLE `c-#p#x y` TO d")
	second := read()
	if second["a"] == first["a"] || second["d"] != first["c-#p#x y"] {
		t.Fatal(first, second)
	}
}
