package replica

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// slow makes a database whose copy without a lock takes a while.
func slow(t *testing.T, args ...string) *fixture {
	source := mysqltest.Start(t, mysqltest.Options{Own: true, Args: args})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO a VALUES (1, 'one'), (2, 'two')", "CREATE TABLE b (id INT PRIMARY KEY, v INT)",
		"SET cte_max_recursion_depth = 100000", "INSERT INTO b WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 50000) SELECT i, i FROM s")
	spec := f.spec()
	spec.Settings.SnapshotLock = compat.LockNone
	spec.Settings.Gentle.MaxRowsPerSecond = 10_000
	require.NoError(t, f.manager.Create(t.Context(), spec, false))
	f.wait("the first chunk", func(st Status) bool { return st.Copy != nil && st.Copy.Chunks > 0 })
	return f
}

// hurry lets the copy go on as fast as it can.
func (f *fixture) hurry() {
	f.t.Helper()
	require.NoError(f.t, f.manager.ModifySettings(f.t.Context(), "shop", map[string]string{"snapshot_max_rows_per_second": "0"}))
	require.NoError(f.t, f.manager.Stop(f.t.Context(), "shop"))
	require.NoError(f.t, f.manager.Start(f.t.Context(), "shop"))
}

// SNAP-11: a copy that is interrupted goes on behind its finished chunks, and says so; how it was made is kept.
func TestCopyGoesOn(t *testing.T) {
	f := slow(t)
	f.exec("UPDATE b SET v = 0 WHERE id % 7 = 0", "DELETE FROM b WHERE id % 5 = 0", "INSERT INTO b VALUES (-1, 1)")
	f.restart()
	st := f.wait("the copy to go on", func(st Status) bool { return st.Copy != nil && st.Copy.Resumed && st.Copy.RowsTakenOver > 0 })
	require.Equal(t, StateSnapshot, st.State)
	require.Empty(t, st.File, "nothing is readable yet")
	require.Contains(t, f.manager.Brief()[0].Unreadable, "of about")
	f.exec("UPDATE b SET id = id + 1000000 WHERE id % 11 = 0")
	f.hurry()
	f.streaming()
	f.caughtUp()
	f.equal("a", "b")
	made := f.status().Snapshot
	require.Equal(t, "none", made.Lock)
	require.False(t, made.Exact)
	require.Contains(t, made.Guarantee, "converged")
	require.GreaterOrEqual(t, made.Breaks, 2)
	require.Zero(t, made.Restarts)
	require.Empty(t, f.manager.Brief()[0].Unreadable)
	f.restart()
	require.Equal(t, made, f.status().Snapshot)
	require.Equal(t, 1, f.entries("converged"))
}

// entries counts the entries of the log of a kind.
func (f *fixture) entries(kind string) int {
	n := 0
	for _, e := range f.manager.Log(10_000) {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// A source that has lost the history in which the copy began: the copy begins anew by itself, since nothing of it was
// readable.
func TestCopyBeginsAnew(t *testing.T) {
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := slow(t, args...)
			require.NoError(t, f.manager.Stop(t.Context(), "shop"))
			f.exec("RESET BINARY LOGS AND GTIDS", "UPDATE a SET v = 'three' WHERE id = 2")
			f.hurry()
			f.streaming()
			f.caughtUp()
			f.equal("a", "b")
			require.Equal(t, 1, f.status().Snapshot.Restarts)
			require.Equal(t, 1, f.entries("restart"))
		})
	}
}

// PROTO-15: an XA transaction that is prepared when the copy is to begin: it waits, and takes the decision that comes in
// its window for what it is, one of rows that the copy has read.
func TestXADecidedInTheWindow(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "CREATE TABLE b (id INT PRIMARY KEY, v INT)")
	ctx := context.Background()
	for _, id := range []string{"x1", "x2"} { // a session that has prepared one does nothing else before it ends it
		conn, err := source.DB(t, f.db).Conn(ctx)
		require.NoError(t, err)
		defer conn.Close()
		for _, s := range []string{"XA START '%'", "INSERT INTO a VALUES (1%, '%')", "XA END '%'", "XA PREPARE '%'"} {
			s = strings.ReplaceAll(strings.ReplaceAll(s, "1%", id[1:]), "%", id)
			exec(t, conn, s)
		}
		defer func() { exec(t, conn, "DO 0") }()
	}
	spec := f.spec()
	spec.Settings.SnapshotLock = compat.LockNone
	require.NoError(t, f.manager.Create(t.Context(), spec, false))
	f.wait("the copy to wait", func(st Status) bool { return st.Error != nil && strings.Contains(*st.Error, "prepared") })
	f.exec("XA COMMIT 'x1'", "XA ROLLBACK 'x2'")
	f.streaming()
	f.exec("INSERT INTO a VALUES (5, 'five')")
	f.caughtUp()
	f.equal("a", "b")
}

func exec(t *testing.T, conn *sql.Conn, statement string) {
	t.Helper()
	_, err := conn.ExecContext(context.Background(), statement)
	require.NoError(t, err, statement)
}
