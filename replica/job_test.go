package replica

import (
	"testing"

	"github.com/stretchr/testify/require"
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
