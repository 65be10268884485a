package snapshot

import (
	"context"
	"errors"
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
	several               bool // whether many ranges are due
}{
	{"ints", "id INT PRIMARY KEY", "i - 10000", true},
	{"bigs", "id BIGINT UNSIGNED PRIMARY KEY", "IF(i = 0, 18446744073709551615, i * 1000003)", true},
	{"gaps", "id BIGINT PRIMARY KEY", "IF(i < 20, -9223372036854775808 + i, 9223372036854775807 - i)", true},
	{"words", "id VARCHAR(40) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY", "CONCAT(LEFT(SHA2(i, 256), 32), 'É''\\\\', i)", true},
	{"latin", "id VARCHAR(40) CHARACTER SET latin1 PRIMARY KEY", "CONCAT('é', LEFT(SHA2(i, 256), 32))", true},
	{"bytes", "id BINARY(16) PRIMARY KEY", "UNHEX(LEFT(SHA2(i, 256), 32))", true},
	{"days", "id DATETIME(3) PRIMARY KEY", "TIMESTAMPADD(MICROSECOND, i * 1000, '2020-01-01')", true},
	{"stamps", "id TIMESTAMP(3) PRIMARY KEY", "TIMESTAMPADD(MICROSECOND, i * 1000, '2020-03-29')", true},
	{"times", "id TIME(2) PRIMARY KEY", "SEC_TO_TIME((i - 10000) / 100)", true},
	{"money", "id DECIMAL(40,3) PRIMARY KEY", "(i - 10000) / 8", true},
	{"pair", "a INT NOT NULL, b VARCHAR(9) NOT NULL, c ENUM('x','y') NOT NULL, PRIMARY KEY (b, a, c)", "i DIV 3, CONCAT('t', i % 3), 'y'", true},
	{"desc_", "a SMALLINT NOT NULL, b BIGINT NOT NULL, PRIMARY KEY (a DESC, b)", "i % 5, i", true},
	{"second", "a INT NULL, b INT NOT NULL, UNIQUE u1 (a), UNIQUE u2 (b)", "NULL, i", true},
	{"floats", "id DOUBLE PRIMARY KEY", "i / 7", false},
	{"enums", "e ENUM('x','y') NOT NULL, i INT NOT NULL, PRIMARY KEY (e, i)", "1 + i % 2, i", false},
	{"parts", "id INT NOT NULL, k INT NOT NULL, PRIMARY KEY (id, k)", "i, i", true},
}

const rangeTestRows = 20000

// TestRanges copies tables in many small ranges, for each type of key: each row comes once, and each range is read by
// the key, without sorting.
func TestRanges(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
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
	cfg := config(t, s, db)
	cfg.ChunkRows, cfg.BatchRows = 1000, 700
	m := newKeeper()
	mustRun(t, cfg, m)
	for _, c := range rangeCases {
		t.Run(c.name, func(t *testing.T) {
			if got := len(m.rows(t, c.name, time.UTC)); got != rangeTestRows {
				t.Errorf("%d rows", got)
			}
			ranges := cutTable(t, s, cfg, m.cut.Tables, c.name)
			if c.several && (len(ranges) < 10 || len(ranges) > 200) || !c.several && len(ranges) != 1 {
				t.Errorf("%d ranges", len(ranges))
			}
			explainRanges(t, s, tableNamed(m.cut.Tables, c.name), ranges)
		})
	}
}

func tableNamed(tables []*schema.Table, name string) *schema.Table {
	return (&compat.Catalog{Tables: tables}).Table(name)
}

func cutTable(t *testing.T, s *mysqltest.Server, cfg Config, tables []*schema.Table, name string) []keyRange {
	t.Helper()
	conn, err := wire.Dial(t.Context(), sourceConfig(s.Login))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sizes, err := tableSizes(t.Context(), conn, cfg.Plan)
	if err != nil {
		t.Fatal(err)
	}
	var ranges []keyRange
	k := cutter{conn: conn, t: tableNamed(tables, name), rows: 1000, emit: func(r keyRange) { ranges = append(ranges, r) }}
	if err := k.run(t.Context(), sizes[name]); err != nil {
		t.Fatal(err)
	}
	return ranges
}

func explainRanges(t *testing.T, s *mysqltest.Server, table *schema.Table, ranges []keyRange) {
	t.Helper()
	conn, err := wire.Dial(t.Context(), sourceConfig(s.Login))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, rng := range ranges {
		r, err := conn.Query(t.Context(), "EXPLAIN FORMAT=TRADITIONAL "+rangeQuery(table, rng))
		if err != nil {
			t.Fatal(err)
		}
		access := r.Named(0, "type")
		wanted := "range"
		if len(ranges) == 1 {
			wanted = "index"
		}
		if len(ranges) > 1 && i == len(ranges)-1 || strings.Contains(r.Named(0, "Extra"), "no matching row") {
			continue // the range behind the last value is empty, or a table has one range only
		}
		if access != wanted && access != "const" || strings.Contains(r.Named(0, "Extra"), "filesort") {
			t.Errorf("range %d is read by %q, %s: %s", i, access, r.Named(0, "Extra"), rangeQuery(table, rng))
			return
		}
	}
}

func TestCondition(t *testing.T) {
	table := &schema.Table{Columns: []schema.Column{{Name: "a", Type: schema.Int}, {Name: "b`c", Type: schema.VarChar, Charset: "latin1"}}, Key: []int{0, 1}}
	columns := rangeColumns(table)
	r := keyRange{after: boundary{"1", literal(columns[1].Column, "é'")}, upTo: boundary{"2", literal(columns[1].Column, "")}}
	want := " WHERE (`a` > 1 OR `a` = 1 AND `b``c` > _latin1 x'c3a927') AND (`a` < 2 OR `a` = 2 AND `b``c` <= _latin1 x'')"
	if got := r.condition(columns); got != want {
		t.Errorf("%s", got)
	}
	if got := (keyRange{}).condition(columns); got != "" {
		t.Errorf("%s", got)
	}
}

// The queue gives each range once, whoever asks, and keeps each reader on its stretch.
func TestQueue(t *testing.T) {
	tables := []*schema.Table{{Name: "small"}, {Name: "large"}}
	q := newQueue(tables, map[string]size{"large": {rows: 100, rowBytes: 10}, "small": {rows: 5, rowBytes: 1}})
	first, _ := q.next(nil)
	if !first.cut || first.table.table.Name != "large" {
		t.Fatalf("%+v", first)
	}
	for range 10 {
		q.add(first.table, keyRange{})
	}
	q.finishCut(first.table)
	a, _ := q.next(&first) // 0
	b, _ := q.next(nil)    // the middle of 1..9
	if a.index != 0 || b.index != 5 || a.adjacent || b.adjacent {
		t.Fatalf("%+v, %+v", a, b)
	}
	a, _ = q.next(&a)
	b, _ = q.next(&b)
	if a.index != 1 || b.index != 6 || !a.adjacent || !b.adjacent {
		t.Fatalf("%+v, %+v", a, b)
	}
	seen := map[int]bool{0: true, 1: true, 5: true, 6: true}
	for {
		w, ok := q.next(&a)
		if !ok {
			break
		}
		if w.table.table.Name == "small" {
			if w.cut {
				q.add(w.table, keyRange{})
				q.finishCut(w.table)
			}
			a = w
			continue
		}
		if seen[w.index] {
			t.Fatalf("range %d came twice", w.index)
		}
		seen[w.index] = true
		a = w
	}
	if len(seen) != 10 {
		t.Errorf("%d of 10 ranges", len(seen))
	}
}

// A reader that waits for ranges of a table being cut goes home when the copy is stopped.
func TestQueueStop(t *testing.T) {
	q := newQueue([]*schema.Table{{Name: "t"}}, nil)
	q.next(nil)
	ctx, cancel := context.WithCancel(t.Context())
	context.AfterFunc(ctx, q.stop)
	time.AfterFunc(10*time.Millisecond, cancel)
	if w, ok := q.next(nil); ok {
		t.Errorf("%+v", w)
	}
}

// TestCutOffWhileWaiting: a copy whose context ends while its readers wait for work is not taken for a complete one.
func TestCutOffWhileWaiting(t *testing.T) {
	cutter := &tableWork{state: cutting} // its reader never ends the cut
	c := &copier{queue: &queue{tables: []*tableWork{cutter}}, progress: newProgress(nil, nil)}
	c.queue.changed.L = &c.queue.mu
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the server stops")
	time.AfterFunc(10*time.Millisecond, func() { cancel(gone) })
	require.ErrorIs(t, c.copyAll(ctx, make([]*wire.Conn, 3)), gone)
}
