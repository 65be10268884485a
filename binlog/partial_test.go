package binlog

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
)

// textCopy keeps the rows of a table as their printed values, by key, and follows partial images.
type textCopy struct {
	t     testing.TB
	table *schema.Table
	rows  map[string][]string
	whole bool // the images that the last event had were whole
	// partial counts the events with differences.
	partial int
}

// followAll takes all that the source has executed by now.
func (c *textCopy) followAll(s *mysqltest.Server, stream *Stream) {
	c.t.Helper()
	for end := here(c.t, s).Position; ; {
		tx := next(c.t, stream)
		c.follow(tx)
		if tx.End.Compare(end) >= 0 {
			return
		}
	}
}

func (c *textCopy) follow(tx *Transaction) {
	c.t.Helper()
	for e, err := range tx.Events() {
		if err != nil {
			c.t.Fatal(err)
		}
		c.event(e.(*RowsEvent))
	}
}

func (c *textCopy) event(e *RowsEvent) {
	c.t.Helper()
	if e.Action == PartialUpdate {
		c.partial++
	}
	d, err := NewDecoder(e.Table, c.table)
	if err != nil {
		c.t.Fatal(err)
	}
	rows, keys := column.NewBuilder(memory.DefaultAllocator, c.table), column.NewKeyBuilder(c.table)
	err = d.Decode(e, column.NewKeyBuilder(c.table), column.NewBuilder(memory.DefaultAllocator, c.table), nil)
	c.whole = err == nil
	if err != nil && !errors.Is(err, ErrPartialImage) {
		c.t.Fatal(err)
	}
	var gaps []Gap
	err = d.DecodePartial(e, keys, rows, func(g *Gap) error {
		if g == nil {
			g = &Gap{}
		}
		kept := Gap{Columns: g.Columns}
		for _, diff := range g.Diffs {
			kept.Diffs = append(kept.Diffs, JSONDiff{diff.Column, slices.Clone(diff.Diffs)})
		}
		gaps = append(gaps, kept)
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	before, beforeErr := keys.Finish()
	batch, err := rows.Finish()
	if err := errors.Join(beforeErr, err); err != nil {
		c.t.Fatal(err)
	}
	if c.whole && slices.ContainsFunc(gaps, func(g Gap) bool { return len(g.Columns)+len(g.Diffs) > 0 }) {
		c.t.Error("whole images leave something out")
	}
	c.apply(before, batch, gaps)
}

func (c *textCopy) apply(before column.Keys, batch *column.Batch, gaps []Gap) {
	c.t.Helper()
	for i, g := range gaps {
		var old []string
		if before.Len() > 0 {
			key := string(before.At(i))
			if old = c.rows[key]; old == nil {
				c.t.Fatalf("row %d: its key %x is not there", i, key)
			}
			delete(c.rows, key)
		}
		if batch.Rows() == 0 {
			continue
		}
		row := printed(batch.Slice(i, i+1))[0]
		for _, col := range g.Columns {
			row[col] = old[col]
		}
		for _, diff := range g.Diffs {
			out, err := AppendJSONDiff(nil, []byte(old[diff.Column]), diff.Diffs)
			if err != nil {
				c.t.Fatalf("row %d: %v: %q of %s", i, err, diff.Diffs, old[diff.Column])
			}
			row[diff.Column] = string(out)
		}
		c.rows[string(batch.Keys.At(i))] = row
	}
}

func (c *textCopy) want(s *mysqltest.Server) {
	c.t.Helper()
	got := slices.Collect(maps.Values(c.rows))
	want := selected(c.t, s, "SELECT "+asText(c.table)+" FROM "+c.table.Name)
	order := func(a, b []string) int { return slices.Compare(a, b) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	wantRows(c.t, c.table, got, want)
}

// imageModes are the ways to log less than whole rows.
var imageModes = []string{"binlog_row_image = 'MINIMAL'", "binlog_row_image = 'NOBLOB'", "binlog_row_value_options = 'PARTIAL_JSON'",
	"binlog_row_image = 'MINIMAL', binlog_row_value_options = 'PARTIAL_JSON'", "binlog_row_image = 'NOBLOB', binlog_row_value_options = 'PARTIAL_JSON'"}

// TYPE-18, TYPE-15: what columns are left out is taken from the row as it was, or for inserted rows from the defaults.
func TestMergedImages(t *testing.T) {
	s := shared(t)
	s.Exec(t, "t", `CREATE TABLE ri (id INT PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(20) DEFAULT 'dé', ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
		d INT DEFAULT (1 + 1), e INT NOT NULL, txt TEXT, gv INT AS (a * 2) VIRTUAL, gs INT AS (a * 3) STORED, gb VARCHAR(30) AS (CONCAT(txt, '!')) VIRTUAL,
		j JSON, en ENUM('x','y') NOT NULL, bl BLOB, dt DATE NOT NULL, bt BIT(9) DEFAULT b'101', bn BINARY(2) DEFAULT 'ab', se SET('a','b') DEFAULT 'b,a',
		de DECIMAL(5,2) DEFAULT 1, ti TIME(2) DEFAULT '1:2:3', y YEAR NOT NULL, j2 JSON, UNIQUE (b, id))`)
	table := withDefaults(t, s, tableOf(t, s, "ri"))
	doc := `'{"a": 1, "b": [1, 2, 3], "ccc": "` + strings.Repeat("x", 100) + `"}'`
	for _, mode := range imageModes {
		s.Exec(t, "t", "TRUNCATE ri")
		stream := open(t, config(t, s))
		statements := []string{"SET sql_mode = ''", "SET " + mode, "INSERT INTO ri (id) VALUES (1), (2)", "INSERT INTO ri (id, txt, j, bl, a) VALUES (3, 'keep', " + doc + ", 'bb', NULL)",
			"UPDATE ri SET a = 8 WHERE id = 3", "UPDATE ri SET txt = 'bye', e = e + 1", "UPDATE ri SET id = 4 WHERE id = 3", "UPDATE ri SET txt = NULL, j = NULL WHERE id = 2",
			"UPDATE ri SET j = JSON_SET(j, '$.a', 2) WHERE id = 4", "UPDATE ri SET j = JSON_REPLACE(j, '$.b[1]', 'zzz'), j2 = " + doc + " WHERE id = 4",
			"UPDATE ri SET j2 = JSON_REMOVE(j2, '$.b[0]'), j = JSON_SET(JSON_REMOVE(j, '$.a'), '$.\"k k\"', 1.50), a = 9 WHERE id = 4",
			"UPDATE ri SET e = 1 WHERE id = 4", "DELETE FROM ri WHERE id = 1", "REPLACE INTO ri (id, txt) VALUES (4, 'new')", "INSERT INTO ri (id, txt) VALUES (4, 'x') ON DUPLICATE KEY UPDATE txt = 'y'",
			"INSERT INTO ri (id, txt, bn, en, dt) VALUES (7, 'a', 'zz', 'y', '2024-02-30'), (8, '', '', '', '0000-00-00')", "UPDATE ri SET bn = DEFAULT, b = DEFAULT, a = a + 1"}
		s.Exec(t, "t", statements...)
		c := &textCopy{t: t, table: table, rows: map[string][]string{}}
		c.followAll(s, stream)
		c.want(s)
		if c.whole {
			t.Errorf("%s: the last event is whole", mode)
		}
	}
}

// withDefaults adds what tableOf leaves out.
func withDefaults(t *testing.T, s *mysqltest.Server, table *schema.Table) *schema.Table {
	rows := selected(t, s, "SELECT column_default, extra, generation_expression FROM information_schema.columns WHERE table_schema = 't' AND table_name = '"+table.Name+"' ORDER BY ordinal_position")
	for i, row := range rows {
		c := &table.Columns[i]
		if row[0] != null {
			c.Default = &row[0]
		}
		c.DefaultExpr, c.Generated = strings.Contains(row[1], "DEFAULT_GENERATED"), row[2]
	}
	return table
}

// Every type, in the images of all modes.
func TestMergedImagesOfEveryType(t *testing.T) {
	s := shared(t)
	cases := columnCases()
	rnd := rand.New(rand.NewPCG(4, 4))
	var columns []string
	for i, c := range cases {
		columns = append(columns, fmt.Sprintf("c%d %s NULL", i, c.definition))
	}
	s.Exec(t, "t", "SET sql_mode = ''", "CREATE TABLE vp (id INT PRIMARY KEY, "+strings.Join(columns, ", ")+") ROW_FORMAT=DYNAMIC")
	table := tableOf(t, s, "vp")
	for _, mode := range imageModes {
		s.Exec(t, "t", "TRUNCATE vp")
		stream := open(t, config(t, s))
		statements := []string{"SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'", "SET " + mode}
		for id := range 20 {
			sets := []string{fmt.Sprintf("id = %d", id)}
			for i, c := range cases {
				if rnd.IntN(3) > 0 {
					sets = append(sets, fmt.Sprintf("c%d = %s", i, c.values[rnd.IntN(len(c.values))]))
				}
			}
			statements = append(statements, "INSERT INTO vp SET "+strings.Join(sets, ", "))
		}
		for range 60 {
			sets := []string{"c0 = NULL"}
			for i, c := range cases {
				if rnd.IntN(10) == 0 {
					sets = append(sets, fmt.Sprintf("c%d = %s", i, append(c.values, "NULL")[rnd.IntN(len(c.values)+1)]))
				}
			}
			statements = append(statements, fmt.Sprintf("UPDATE vp SET %s WHERE id = %d", strings.Join(sets[rnd.IntN(2):], ", "), rnd.IntN(20)))
		}
		statements = append(statements, "UPDATE vp SET c1 = NULL", "UPDATE vp SET c1 = 7")
		s.Exec(t, "t", slices.DeleteFunc(statements, func(s string) bool { return strings.Contains(s, "SET  WHERE") })...)
		c := &textCopy{t: t, table: table, rows: map[string][]string{}}
		c.followAll(s, stream)
		c.want(s)
	}
}

// TYPE-15: differences of JSON documents give the text that the server prints.
func TestJSONDiffsAgainstServer(t *testing.T) {
	s := shared(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	s.Exec(t, "t", "CREATE TABLE jd (id INT PRIMARY KEY AUTO_INCREMENT, d JSON, e JSON)")
	table := tableOf(t, s, "jd")
	for _, mode := range imageModes[2:] {
		s.Exec(t, "t", "TRUNCATE jd")
		stream := open(t, config(t, s))
		statements := []string{"SET " + mode}
		quote := func(text string) string {
			return "'" + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "'", "''") + "'"
		}
		document := func() string {
			return quote(fmt.Sprintf(`{"pad": %q, "k1": %s, "k2": {"a b": %s, "é\"\\": 1}, "k10": [%s, %s, [1, 2, {"x": %s}]], "n": null}`,
				strings.Repeat("p", 300), randomJSON(rnd, 3), randomJSON(rnd, 2), randomJSON(rnd, 2), randomJSON(rnd, 1), randomJSON(rnd, 1)))
		}
		for range 20 {
			statements = append(statements, "INSERT INTO jd (d, e) VALUES ("+document()+", "+document()+")")
		}
		paths := []string{"$.k1", "$.k2", "$.k2.\"a b\"", "$.k10[0]", "$.k10[1]", "$.k10[2][2].x", "$.k10[2][9]", "$.new", "$.k2.zz", "$.k2.\"k\\\"q\"", "$.k10[last]", "$.k1[0]", "$.k1.y", "$.n", "$.k2.\"é\\\"\\\\\\\\\"", "$.k10[2][last-1]", "$.\"\""}
		value := func() string {
			return []string{"1", "-70000", "1.50", "1e3", "'short'", "NULL", "true", quote(strings.Repeat("v", 200)), "CAST(" + quote(randomJSON(rnd, 2)) + " AS JSON)", "DATE '2024-02-29'", "X'00ff'", "18446744073709551615"}[rnd.IntN(12)]
		}
		change := func(col string) string {
			var args []string
			function := []string{"JSON_SET", "JSON_REPLACE", "JSON_REMOVE", "JSON_SET"}[rnd.IntN(4)]
			for range 1 + rnd.IntN(3) {
				args = append(args, quote(paths[rnd.IntN(len(paths))]))
				if function != "JSON_REMOVE" {
					args = append(args, value())
				}
			}
			return fmt.Sprintf("%s = %s(%s, %s)", col, function, col, strings.Join(args, ", "))
		}
		for range 300 {
			set := change("d")
			if rnd.IntN(2) == 0 {
				set += ", " + change("e")
			}
			statements = append(statements, fmt.Sprintf("UPDATE jd SET %s WHERE id = %d", set, 1+rnd.IntN(20)))
		}
		s.Exec(t, "t", statements...)
		c := &textCopy{t: t, table: table, rows: map[string][]string{}}
		c.followAll(s, stream)
		c.want(s)
		if c.partial < 100 {
			t.Errorf("%s: only %d partial updates", mode, c.partial)
		}
	}
}
