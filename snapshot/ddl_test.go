package snapshot

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// TestDefinitionChanges is SNAP-03: a definition change of a table, whether it is still to be read, half read or read,
// is noticed, and nothing goes on with mixed columns.
func TestDefinitionChanges(t *testing.T) {
	for name, ddl := range map[string]string{
		"add first":    "ALTER TABLE late ADD COLUMN c2 INT NOT NULL DEFAULT 7 FIRST",
		"add instant":  "ALTER TABLE late ADD COLUMN c2 INT, ALGORITHM=INSTANT",
		"drop column":  "ALTER TABLE late DROP COLUMN v",
		"modify":       "ALTER TABLE late MODIFY v TEXT",
		"truncate":     "TRUNCATE TABLE late",
		"drop":         "DROP TABLE late",
		"rename":       "RENAME TABLE late TO later",
		"rebuild":      "ALTER TABLE late ENGINE=InnoDB",
		"rename twice": "RENAME TABLE late TO x, big TO late, x TO big",
		"drop key":     "ALTER TABLE late DROP PRIMARY KEY",
		"add index":    "ALTER TABLE late ADD INDEX (v)",
		"half read":    "ALTER TABLE big ADD COLUMN c2 INT",
	} {
		t.Run(name, func(t *testing.T) {
			s, db := mysqltest.FreshDatabase(t)
			s.Exec(t, db, "SET cte_max_recursion_depth = 1000000", "CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO big SELECT i, 'v' FROM "+numbers(10000),
				"CREATE TABLE late (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO late VALUES (1, 'x')", "ANALYZE TABLE big, late")
			cfg := config(t, s, db)
			cfg.Readers, cfg.ChunkRows, cfg.BatchRows = 1, 2000, 400
			m := newKeeper()
			var once sync.Once
			var changed sync.WaitGroup
			added := 0
			m.onAdd = func(string) {
				if added++; added > 5 { // between two ranges
					once.Do(func() { changed.Go(func() { s.Exec(t, db, ddl) }) })
					waitDDL(t, s)
				}
			}
			r, err := run(t, cfg, m)
			if err == nil && !slices.ContainsFunc(r.Tables, func(t TableResult) bool { return t.Changed != "" }) {
				t.Error("it is not noticed")
			}
			changed.Wait()
		})
	}
}

// waitDDL gives the statement the time to get its metadata lock, or to queue for it: it may have to wait for the range
// that is being read.
func waitDDL(t *testing.T, s *mysqltest.Server) {
	t.Helper()
	waitFor(t, s, "SELECT COUNT(*) = 0 OR SUM(STATE = 'Waiting for table metadata lock') > 0 FROM information_schema.PROCESSLIST WHERE INFO LIKE '%late%' AND ID <> CONNECTION_ID() OR INFO LIKE 'ALTER%'")
}

// TestDDLWaitsForARangeOnly is SNAP-05: a definition change of a table that is done does not wait for the copy's end.
func TestDDLWaitsForARangeOnly(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "SET cte_max_recursion_depth = 1000000", "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a SELECT i FROM "+numbers(5000),
		"CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO b SELECT i FROM "+numbers(1000), "ANALYZE TABLE a, b")
	cfg := config(t, s, db)
	cfg.Readers, cfg.BatchRows = 1, 100
	m := newKeeper()
	var once sync.Once
	m.onAdd = func(table string) {
		if table == "b" { // a is done, the transaction is still open
			once.Do(func() {
				s.Exec(t, db, "SET lock_wait_timeout = 5", "ALTER TABLE a ADD COLUMN x INT", "INSERT INTO a VALUES (-1, 1)")
			})
		}
	}
	if r := mustRun(t, cfg, m); r.Tables[0].Changed == "" || r.Tables[1].Changed != "" {
		t.Errorf("%+v", r.Tables)
	}
}

// Index order and other tables do not matter; a table that is not wanted may change.
func TestOtherTablesMayChange(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)", "CREATE TABLE other (id INT PRIMARY KEY)")
	cfg := config(t, s, db)
	cfg.Plan.Filter = func(name string) bool { return name == "a" }
	m := newKeeper()
	m.onAdd = func(string) {
		s.Exec(t, db, "ALTER TABLE other ADD COLUMN x INT", "INSERT INTO a VALUES (3)", "CREATE TABLE later (id INT PRIMARY KEY)")
	}
	if r := mustRun(t, cfg, m); r.Rows != 2 || len(r.Tables) != 1 {
		t.Errorf("%+v", r)
	}
}

// A sink that fails ends the copy with its error.
func TestSinkFails(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
	m := newKeeper()
	m.failAdd = errors.New("disk full")
	if _, err := run(t, config(t, s, db), m); !errors.Is(err, m.failAdd) {
		t.Errorf("%v", err)
	}
}

// TestSessionAfterChange: a session whose table turns out to be another one can still be used, as package verify does for
// the tables that follow.
func TestSessionAfterChange(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1, 'x')", "INSERT INTO b VALUES (7)")
	for name, ddl := range map[string]string{"rebuilt": "ALTER TABLE a MODIFY v INT UNSIGNED", "instant": "ALTER TABLE a ADD COLUMN w INT, ALGORITHM=INSTANT"} {
		t.Run(name, func(t *testing.T) {
			s.Exec(t, db, "DROP TABLE a", "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO a VALUES (1, '1')")
			ctx := t.Context()
			conn, err := wire.Dial(ctx, config(t, s, db).Source)
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			require.NoError(t, OpenView(ctx, conn))
			catalog, err := compat.ReadCatalog(ctx, conn, db, nil, nil)
			require.NoError(t, err)
			require.NoError(t, LetGo(ctx, conn))
			s.Exec(t, db, ddl)
			a := catalog.Table("a").Clone()
			if name == "instant" { // readable as it was, under a definition that does not fit
				a.Columns[1].Type = schema.Int
			}
			require.ErrorIs(t, Scan(ctx, conn, a, func(*column.Batch) error { return nil }), ErrSchemaChanged)
			_, err = Select(ctx, conn, a, "id = 1")
			require.ErrorIs(t, err, ErrSchemaChanged)
			rows, err := Select(ctx, conn, catalog.Table("b"), "TRUE")
			require.NoError(t, err)
			require.Equal(t, 1, rows.Rows())
		})
	}
}
