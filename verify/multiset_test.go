package verify

import (
	"fmt"
	"testing"

	"github.com/tidemarkdb/tidemark/gtid"
)

const logTable = "CREATE TABLE log (a INT, b VARCHAR(200), d DATETIME(3))"

// KEY-03: tables without a key are compared as multisets: a row once too often, once too seldom, or changed is found and
// named, among equal rows and NULLs too.
func TestMultiset(t *testing.T) {
	s, db, ours, cfg := setUp(t, logTable, "CREATE TABLE nothing (a INT)", "CREATE TABLE same (a INT, b TEXT)",
		"INSERT INTO log SELECT NULLIF(i % 50, 0), IF(i % 3 = 0, NULL, CONCAT('v', i % 7)), IF(i % 5 = 0, '0000-00-00', '2024-05-05') FROM "+numbers(20000),
		"INSERT INTO same SELECT 1, 'x' FROM "+numbers(3000))
	all := results(t, cfg, ours)
	want(t, all["log"], Equal)
	want(t, all["nothing"], Equal)
	want(t, all["same"], Equal)
	if all["log"].Rows != 20000 || all["same"].Rows != 3000 {
		t.Errorf("%+v", all)
	}
	// The copy numbers its rows, as storage does.
	frozen, err := ours.Pin(t.Context(), gtid.Position{})
	if err != nil {
		t.Fatal(err)
	}
	c, first := frozen.(*aCopy), int64(1)
	for name, batches := range c.rows {
		for i, b := range batches {
			c.rows[name][i] = b.Numbered(first)
			first += int64(b.Rows())
		}
	}
	for _, r := range results(t, cfg, pinned{frozen}) {
		want(t, r, Equal)
	}
	s.Exec(t, db, "SET sql_log_bin = 0", "SET sql_mode = ''", "INSERT INTO nothing VALUES (NULL)", "DELETE FROM same LIMIT 2", "INSERT INTO same VALUES (1, REPEAT('y', 100))",
		"DELETE FROM log WHERE a IS NULL AND b = 'v1' AND d = 0 LIMIT 1", "INSERT INTO log VALUES (7, 'new', NULL)")
	all = results(t, cfg, pinned{frozen})
	want(t, all["nothing"], Different, "a=NULL: missing here")
	want(t, all["same"], Different, "a=1, b=x: 3000 times here, 2998 times on the source", fmt.Sprintf("b=%s...: missing here", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"))
	want(t, all["log"], Different, "a=NULL, b=v1, d=0000-00-00 00:00:00.000: ", "a=7, b=new, d=NULL: missing here")
	if n := len(all["log"].Keys); n != 2 {
		t.Errorf("%d rows are named: %q", n, all["log"].Keys)
	}
}

// No false alarm while equal rows come and go, and a lost one is found.
func TestMultisetUnderLoad(t *testing.T) {
	s, db, ours, cfg := setUp(t, logTable, "INSERT INTO log SELECT i % 2500, 'x', NULL FROM "+numbers(5000))
	stop := load(t, s, db, 3, func(i int) string {
		switch i % 3 {
		case 0:
			return fmt.Sprintf("UPDATE log SET b = IF(b = 'x', NULL, 'x') WHERE a = %d LIMIT 2", i*7919%2000)
		case 1:
			return fmt.Sprintf("DELETE FROM log WHERE a = %d LIMIT 1", i*7919%2000)
		}
		return fmt.Sprintf("INSERT INTO log VALUES (%d, 'x', NULL)", i*7919%2000)
	})
	defer stop()
	if r := results(t, cfg, ours)["log"]; r.Outcome == Different {
		t.Errorf("%+v", r)
	}
	ours.tamper = func(c *aCopy) {
		for n, b := range c.rows["log"] {
			for i := range b.Rows() {
				if keyNames(b, i) == "a=2077, b=x, d=NULL" {
					c.rows["log"][0], c.rows["log"][n] = c.rows["log"][n], c.rows["log"][0]
					c.drop("log", i)
					return
				}
			}
		}
		t.Error("no such row")
	}
	want(t, results(t, cfg, ours)["log"], Different, "a=2077, b=x, d=NULL: 1 times here, 2 times on the source")
}
