package replica

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// unlogged runs statements that leave no trace in the binlog: afterwards the copy differs from the source.
func (f *fixture) unlogged(statements ...string) {
	f.t.Helper()
	conn, err := f.source.DB(f.t, f.db).Conn(f.t.Context())
	require.NoError(f.t, err)
	defer conn.Close()
	for _, s := range append([]string{"SET sql_log_bin = 0"}, statements...) {
		_, err := conn.ExecContext(f.t.Context(), s)
		require.NoError(f.t, err)
	}
	_, err = conn.ExecContext(f.t.Context(), "SET sql_log_bin = 1")
	require.NoError(f.t, err)
}

// settled waits until no new copy of a table is made or due.
func (f *fixture) settled() Status {
	f.t.Helper()
	return f.wait("the new copies", func(st Status) bool {
		for _, t := range st.Tables {
			if t.Resync != nil || t.State != "live" {
				return false
			}
		}
		return true
	})
}

// OPS-04: one statement repairs one table; its old copy is served meanwhile, and the others are not touched.
func TestResync(t *testing.T) {
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := own(t, args...)
			f.exec("FLUSH BINARY LOGS") // by position older changes in the same file are made again
			f.unlogged("UPDATE a SET v = 'unseen' WHERE id = 1", "DELETE FROM a WHERE id = 2")
			f.exec("INSERT INTO a VALUES (3, 'three')", "INSERT INTO b VALUES (1, 1)")
			f.caughtUp()
			require.NotEqual(t, f.sourceRows("a"), f.rows("a"))
			require.NoError(t, f.manager.Resync(t.Context(), "shop", "a"))
			require.Error(t, f.manager.Resync(t.Context(), "shop", "nonesuch"))
			f.settled()
			f.equal("a", "b")
			f.exec("INSERT INTO a VALUES (4, 'four')", "UPDATE a SET v = 'seen' WHERE id = 1", "ALTER TABLE a ADD n INT NOT NULL DEFAULT 7", "INSERT INTO b VALUES (2, 2)")
			f.caughtUp()
			f.equal("a", "b")
			f.restart()
			f.exec("DELETE FROM a WHERE id = 3")
			f.caughtUp()
			f.equal("a", "b")
		})
	}
}

// automatic is shared, with auto_resync.
func automatic(t *testing.T, args ...string) *fixture {
	source := mysqltest.Start(t, mysqltest.Options{Args: args, Own: true})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.auto = true
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO a VALUES (1, 'one'), (2, 'two')", "CREATE TABLE b (id INT PRIMARY KEY, v INT)")
	f.create()
	f.streaming()
	return f
}

// kinds counts the entries of the log about a table.
func (f *fixture) kinds(table, kind string) int {
	n := 0
	for _, e := range f.manager.Log(10_000) {
		if e.Table == table && e.Kind == kind {
			n++
		}
	}
	return n
}

// OPS-03, OPS-04: what can't be followed leaves quarantine by itself, again and again.
func TestAutoResync(t *testing.T) {
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := automatic(t, args...)
			f.exec("INSERT INTO b VALUES (1, 1), (2, 2)", "ALTER TABLE b MODIFY v BIGINT", "INSERT INTO b VALUES (3, 3000000000)", "RENAME TABLE a TO c", "INSERT INTO c VALUES (3, 'three')")
			f.caughtUp()
			f.settled()
			f.equal("b", "c")
			names := []string{}
			for _, t := range f.status().Tables { // a is not on the source any more
				names = append(names, t.Name)
			}
			require.Equal(t, []string{"b", "c"}, names)
			f.exec("ALTER TABLE b MODIFY v VARCHAR(40)", "UPDATE b SET v = 'text' WHERE id = 1", "DELETE FROM c WHERE id = 1")
			f.caughtUp()
			f.settled()
			f.equal("b", "c")
			require.NotZero(t, f.kinds("b", "resync"))
			f.restart()
			f.exec("INSERT INTO b VALUES (4, 'four')")
			f.caughtUp()
			f.equal("b", "c")
		})
	}
}

// OPS-07: a table that can't be copied is tried with growing pauses, says why, and holds nobody up.
func TestResyncThatFails(t *testing.T) {
	f := automatic(t)
	f.exec("CREATE TABLE g (id INT PRIMARY KEY) ENGINE = MyISAM", "INSERT INTO g VALUES (1)", "INSERT INTO b VALUES (1, 1)")
	f.caughtUp()
	st := f.wait("two failures", func(Status) bool { r := f.table("g").Resync; return r != nil && r.Tries >= 2 && r.NextTry != nil })
	require.Equal(t, StateStreaming, st.State)
	g := f.table("g")
	require.Equal(t, "quarantined", g.State)
	require.Contains(t, *g.Resync.Error, "MyISAM")
	require.Equal(t, ResyncWaiting, g.Resync.State)
	f.equal("b")
	f.restart()
	require.GreaterOrEqual(t, f.table("g").Resync.Tries, 2)
	f.exec("DROP TABLE g", "CREATE TABLE g (id INT PRIMARY KEY)", "INSERT INTO g VALUES (7)")
	f.caughtUp()
	f.settled()
	f.equal("g")
}

func TestBackoff(t *testing.T) {
	require.Equal(t, 10*time.Second, backoff(10*time.Second, 1))
	require.Equal(t, 40*time.Second, backoff(10*time.Second, 3))
	require.Equal(t, time.Hour, backoff(10*time.Second, 60))
	var r resync
	r.failed("no", time.Second)
	r.failed("no", time.Second)
	require.WithinDuration(t, time.Now().Add(2*time.Second), r.Next, 900*time.Millisecond)
	r.succeeded(time.Second)
	require.Equal(t, []any{0, 1, ""}, []any{r.Tries, r.Copies, r.Error})
	r.succeeded(time.Second)
	require.Equal(t, 2, r.Copies)
	require.False(t, r.idle())
	r.Done = time.Now().Add(-2 * settled)
	require.True(t, r.idle())
	r.succeeded(time.Second)
	require.Equal(t, 1, r.Copies)
}

// OPS-11: changed table lists take tables in, beside the stream, and out, while writers go on.
func TestChangedTables(t *testing.T) {
	f := shared(t)
	f.exec("CREATE TABLE tmp_x (id INT PRIMARY KEY)", "INSERT INTO tmp_x VALUES (1)")
	f.caughtUp()
	modify := func(values map[string]string) {
		t.Helper()
		require.NoError(t, f.manager.ModifySettings(t.Context(), "shop", values))
	}
	modify(map[string]string{"exclude_tables": "tmp_.*|b"})
	f.exec("INSERT INTO tmp_x VALUES (2)", "INSERT INTO b VALUES (1, 1)", "INSERT INTO a VALUES (3, 'three')", "CREATE TABLE tmp_y (id INT PRIMARY KEY)", "INSERT INTO tmp_y VALUES (5)")
	f.caughtUp()
	f.equal("a")
	require.Len(t, f.status().Tables, 1)
	modify(map[string]string{"exclude_tables": "b"})
	f.exec("INSERT INTO tmp_y VALUES (6)", "INSERT INTO tmp_x VALUES (3)", "INSERT INTO a VALUES (4, 'four')")
	f.caughtUp()
	f.settled()
	f.equal("a", "tmp_x", "tmp_y")
	f.restart()
	modify(map[string]string{"exclude_tables": "", "include_tables": "a|b"})
	f.exec("INSERT INTO b VALUES (2, 2)", "DELETE FROM tmp_x", "INSERT INTO a VALUES (5, 'five')")
	f.caughtUp()
	f.settled()
	f.equal("a", "b")
	require.Len(t, f.status().Tables, 2)
	// All problems of the tables that would come in, and nothing is changed then.
	f.exec("CREATE TABLE g (id INT PRIMARY KEY) ENGINE = MyISAM")
	require.ErrorContains(t, f.manager.ModifySettings(t.Context(), "shop", map[string]string{"include_tables": ""}), "MyISAM")
	require.Equal(t, "a|b", f.status().Settings.IncludeTables)
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	modify(map[string]string{"include_tables": "b"}) // also of one that is stopped
	require.Len(t, f.status().Tables, 1)
}

// PROTO-05, SNAP-07: the source has purged what was not read yet. Everything is served as it was, at one point, and comes
// back table by table.
func TestPurgedLogsAreCopiedAnew(t *testing.T) {
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := automatic(t, args...)
			f.exec("INSERT INTO b VALUES (1, 1)", "CREATE TABLE gone (id INT PRIMARY KEY)")
			f.caughtUp()
			require.NoError(t, f.manager.Stop(t.Context(), "shop"))
			f.exec("INSERT INTO a VALUES (3, 'three')", "DROP TABLE gone", "CREATE TABLE new (id INT PRIMARY KEY)", "INSERT INTO new VALUES (1)", "UPDATE b SET v = 2")
			f.purge()
			// Those of the source that are read after the gap can't be copied yet: writers hold them.
			held, err := f.source.DB(t, f.db).Conn(t.Context())
			require.NoError(t, err)
			defer held.Close()
			_, err = held.ExecContext(t.Context(), "LOCK TABLES a WRITE, b WRITE, new WRITE")
			require.NoError(t, err)
			require.NoError(t, f.manager.Start(t.Context(), "shop"))
			f.wait("the gap", func(st Status) bool { return len(st.Tables) == 3 && st.Tables[0].State == "quarantined" })
			require.Equal(t, "1|one\n2|two", f.rows("a"))
			info, err := f.store.Database("shop")
			require.NoError(t, err)
			a, err := f.store.Table(info.ID, "a")
			require.NoError(t, err)
			b, err := f.store.Table(info.ID, "b")
			require.NoError(t, err)
			require.Equal(t, a.Point, b.Point, "queries over both are answered")
			require.Contains(t, a.Reason, "purged")
			_, err = held.ExecContext(t.Context(), "UNLOCK TABLES")
			require.NoError(t, err)
			f.exec("INSERT INTO a VALUES (4, 'four')", "INSERT INTO new VALUES (2)")
			f.settled()
			f.caughtUp()
			f.equal("a", "b", "new")
			f.restart()
			f.exec("INSERT INTO a VALUES (5, 'five')")
			f.caughtUp()
			f.equal("a", "b", "new")
			require.Contains(t, f.gaps(), "is missing")
		})
	}
}

// purge lets the source forget all binlogs but the newest.
func (f *fixture) purge() {
	f.t.Helper()
	f.exec("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
	var file string
	require.NoError(f.t, f.source.DB(f.t, "").QueryRow("SELECT log_name FROM performance_schema.log_status, JSON_TABLE(local, '$' COLUMNS (log_name VARCHAR(100) PATH '$.binary_log_file')) j").Scan(&file))
	f.exec("PURGE BINARY LOGS TO '" + file + "'")
}

// gaps gives the log's entries of purged binlogs.
func (f *fixture) gaps() string {
	var out []string
	for _, e := range f.manager.Log(1000) {
		if e.Kind == "gap" {
			out = append(out, e.Message)
		}
	}
	return strings.Join(out, "\n")
}
