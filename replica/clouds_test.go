package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/clouds"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// createBy makes the database with another account, or through a proxy.
func (f *fixture) createBy(l mysqltest.Login, lock compat.LockPlan) error {
	f.t.Helper()
	spec := f.spec()
	spec.Host, spec.Port, spec.User, spec.Password = l.Host, l.Port, l.User, l.Password
	if lock != "" {
		spec.Settings.SnapshotLock = lock
	}
	return f.manager.Create(f.t.Context(), spec, false)
}

// Each kind of account gets the best plan that it is allowed, copies and follows. CLOUD-01, CLOUD-02, CLOUD-09, SNAP-20
func TestEachAccount(t *testing.T) {
	for kind, lock := range map[clouds.Kind]compat.LockPlan{clouds.All: compat.LockGlobal, clouds.RDSLike: compat.LockTables, clouds.CloudSQLLike: compat.LockTables, clouds.Least: compat.LockNone} {
		t.Run(string(kind), func(t *testing.T) {
			source, db := mysqltest.FreshDatabase(t)
			f := newFixture(t, source, db)
			f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO a VALUES (1, 'one'), (2, 'two')")
			l := clouds.Login(t, source, kind)
			for _, stronger := range []compat.LockPlan{compat.LockGlobal, compat.LockTables} {
				if stronger == lock {
					break
				}
				var refused *compat.ProblemsError
				require.ErrorAs(t, f.createBy(l, stronger), &refused)
				require.Equal(t, "snapshot_lock", refused.Problems[0].Code)
			}
			require.NoError(t, f.createBy(l, ""))
			f.streaming()
			require.Equal(t, string(lock), f.status().Snapshot.Lock)
			f.exec("INSERT INTO a VALUES (3, 'three')", "ALTER TABLE a ADD COLUMN w INT DEFAULT 7", "DELETE FROM a WHERE id = 1", "UPDATE a SET v = 'zwei' WHERE id = 2")
			f.caughtUp()
			require.Equal(t, "2|zwei|7\n3|three|7", f.rows("a"))
		})
	}
}

// What a 5.7 server answers is enough for a copy, and to follow it. Its binlog is not imitated. CLOUD-08
func TestLike57(t *testing.T) {
	source, db := mysqltest.FreshDatabase(t)
	f := newFixture(t, source, db)
	f.exec("CREATE TABLE a (id INT UNSIGNED PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf8mb3, at DATETIME DEFAULT CURRENT_TIMESTAMP, KEY (v))", "INSERT INTO a VALUES (1, 'änne', '2020-01-02 03:04:05')")
	require.NoError(t, f.createBy(clouds.NewProxy(t, source.Login, "5.7.44-log", clouds.MySQL57()...).Login, ""))
	f.streaming()
	f.exec("INSERT INTO a VALUES (4294967295, 'zoë', '2021-01-02 03:04:05')")
	f.caughtUp()
	require.Equal(t, "1|änne|2020-01-02 03:04:05\n4294967295|zoë|2021-01-02 03:04:05", f.rows("a"))
	require.Equal(t, "live", f.table("a").State)
}

// A database on a server like Amazon RDS: no global lock, a heartbeat that nobody wants, and binlogs that are not kept until
// somebody says so, which is warned of. CLOUD-01, CLOUD-03, CLOUD-11
func TestLikeRDS(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
	l := clouds.Login(t, source, clouds.RDSLike)
	spec := f.spec()
	spec.Host, spec.Port, spec.User, spec.Password = l.Host, l.Port, l.User, l.Password
	require.NoError(t, f.manager.Create(t.Context(), spec, false))
	f.streaming()
	f.wait("a warning", func(st Status) bool { return st.Retention != nil && st.Retention.Warning != nil })
	require.Contains(t, *f.status().Retention.Warning, "binlog retention hours = NULL")
	require.Contains(t, logged(f, "warning"), "CALL mysql.rds_set_configuration('binlog retention hours', 24)")
	f.exec("CALL mysql.rds_set_configuration('binlog retention hours', 24)", "INSERT INTO a VALUES (3)")
	f.wait("a day", func(st Status) bool {
		r := st.Retention
		return r.Warning == nil && r.HoursLeft != nil && *r.HoursLeft > 23
	})
	require.Contains(t, logged(f, "retention"), "keeps no binlog")
	require.Contains(t, logged(f, "retention"), "keeps enough binlog again (binlog retention hours = 24)")
	f.caughtUp()
	require.Equal(t, "1\n2\n3", f.rows("a"))
}
