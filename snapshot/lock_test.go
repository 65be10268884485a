package snapshot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
)

// TestLockTables is CLOUD-02: an account with nothing but SELECT and LOCK TABLES on the database gets an exact cut; views,
// other databases' tables and those that are not wanted are not touched.
func TestLockTables(t *testing.T) {
	s := shared(t, "acc", "other")
	s.Exec(t, "", "CREATE TABLE other.o (id INT PRIMARY KEY)",
		"CREATE TABLE acc.parent (id INT PRIMARY KEY)", "CREATE TABLE acc.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id))",
		"CREATE TABLE acc.`odd ``name` (id INT PRIMARY KEY)", "CREATE VIEW acc.v AS SELECT * FROM other.o", "CREATE TABLE acc.unwanted (id INT PRIMARY KEY)",
		"INSERT INTO acc.parent VALUES (1)", "INSERT INTO acc.child VALUES (1, 1)",
		"CREATE USER rds@'%' IDENTIFIED BY 'x'", "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO rds@'%'", "GRANT SELECT, LOCK TABLES ON acc.* TO rds@'%'")
	defer s.Exec(t, "", "DROP USER rds@'%'")
	cfg := config(t, s, "acc")
	cfg.Plan.Lock, cfg.Plan.Weaker, cfg.Plan.Process, cfg.Plan.AskXA = compat.LockTables, nil, false, false
	cfg.Plan.Filter = func(table string) bool { return table != "unwanted" }
	cfg.Source.User, cfg.Source.Password = "rds", "x"
	elsewhere := s.DB(t, "acc")
	tx, err := elsewhere.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{"INSERT INTO other.o VALUES (1)", "INSERT INTO unwanted VALUES (1)"} { // are in nobody's way
		_, err = tx.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	r := mustRun(t, cfg, newKeeper())
	require.True(t, r.Exact && r.Lock == compat.LockTables && len(r.Tables) == 3 && r.Rows == 2, "%+v", r)
	s.Exec(t, "acc", "INSERT INTO parent VALUES (2)") // nothing is locked

	s.Exec(t, "", "REVOKE LOCK TABLES ON acc.* FROM rds@'%'")
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Denied, "does not allow LOCK TABLES", "GRANT SELECT, LOCK TABLES ON `acc`.*")
}

// TestLockTablesBusy is SNAP-02 and PROTO-15 for the tables plan: we don't queue behind a transaction that holds a table,
// and one that is prepared by XA is named.
func TestLockTablesBusy(t *testing.T) {
	s := shared(t, "acc")
	s.Exec(t, "", "CREATE TABLE acc.t (id INT PRIMARY KEY)")
	cfg := config(t, s, "acc")
	cfg.Plan.Lock, cfg.Plan.Weaker, cfg.LockPatience = compat.LockTables, nil, time.Millisecond
	tx, err := s.DB(t, "acc").BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
	require.NoError(t, err)
	waitFor(t, s, "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_started < NOW() - INTERVAL 1 SECOND")
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Busy, "a transaction of user root", "has written to table t")
	s.Exec(t, "acc", "INSERT INTO t VALUES (2)") // nobody waits for us

	// Where it could not be seen in time, the wait ends soon.
	cfg.LongStatement, cfg.LockWait = time.Hour, time.Second
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Busy, "has written to table t")
	cfg.Plan.Process = false
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Busy, "XA PREPARE", "LOCK TABLES of another session")
	require.NoError(t, tx.Commit())

	s.Exec(t, "acc", "XA START 'x1'", "INSERT INTO t VALUES (10)", "XA END 'x1'", "XA PREPARE 'x1'")
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, PreparedXA, "1 XA transactions are prepared")
	cfg.Plan.AskXA = false
	_, err = run(t, cfg, newKeeper())
	lockError(t, err, Busy, "one that was prepared by XA PREPARE")
	cfg.Plan.AskXA, cfg.LockPatience = true, time.Minute
	time.AfterFunc(400*time.Millisecond, func() { s.Exec(t, "acc", "XA ROLLBACK 'x1'") })
	r := mustRun(t, cfg, newKeeper())
	require.EqualValues(t, 2, r.Rows)
}

// TestPreparedXAWithoutLock: the copy without a lock waits, too, until there was a moment with no prepared transaction.
func TestPreparedXAWithoutLock(t *testing.T) { // PROTO-15
	s := shared(t, "acc")
	s.Exec(t, "", "CREATE TABLE acc.t (id INT PRIMARY KEY)")
	cfg := config(t, s, "acc")
	s.Exec(t, "acc", "XA START 'x1'", "INSERT INTO t VALUES (10)", "XA END 'x1'", "XA PREPARE 'x1'")
	cfg.Plan.Lock, cfg.LockPatience = compat.LockNone, time.Millisecond
	_, err := run(t, cfg, newKeeper())
	lockError(t, err, PreparedXA, "1 XA transactions are prepared")
	cfg.LockPatience = time.Minute
	cfg.Waiting = func(reason string) {
		if reason != "" {
			s.Exec(t, "acc", "XA COMMIT 'x1'")
		}
	}
	require.EqualValues(t, 1, mustRun(t, cfg, newKeeper()).Rows)
}
