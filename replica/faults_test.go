package replica

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/storage"
)

// own starts a fixture on a server of its own with a small database that is copied and streams.
func own(t *testing.T, args ...string) *fixture {
	source := mysqltest.Start(t, mysqltest.Options{Args: args, Own: true})
	db := source.FreshDatabase(t)
	f := newFixture(t, source, db)
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO a VALUES (1, 'one'), (2, 'two')", "CREATE TABLE b (id INT PRIMARY KEY, v INT)")
	f.create()
	f.streaming()
	return f
}

func shared(t *testing.T) *fixture {
	source, db := mysqltest.FreshDatabase(t)
	f := newFixture(t, source, db)
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO a VALUES (1, 'one'), (2, 'two')", "CREATE TABLE b (id INT PRIMARY KEY, v INT)")
	f.create()
	f.streaming()
	return f
}

func (f *fixture) streaming() {
	f.t.Helper()
	f.wait("the copy", func(st Status) bool { return st.State == StateStreaming && st.File != "" && st.Error == nil })
}

// failed waits for the state error and gives its text.
func (f *fixture) failed() string {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if st := f.status(); st.State == StateError {
			return *st.Error
		}
	}
	require.Fail(f.t, "no error", "the status is %+v", f.status())
	return ""
}

func (f *fixture) table(name string) TableStatus {
	f.t.Helper()
	for _, t := range f.status().Tables {
		if t.Name == name {
			return t
		}
	}
	require.Fail(f.t, "no such table", name)
	return TableStatus{}
}

func TestCreateRefused(t *testing.T) {
	source, db := mysqltest.FreshDatabase(t)
	f := newFixture(t, source, db)
	f.exec("CREATE TABLE other (a INT) ENGINE=MyISAM", "CREATE TABLE odd (id INT PRIMARY KEY, e ENUM('a?') CHARACTER SET utf8mb4)")
	for name, c := range map[string]struct {
		edit func(*Spec)
		says []string
	}{
		"wrong password":     {func(s *Spec) { s.Password = "S3cret-not-it" }, []string{"refuses user", "check the user's name and password"}},
		"nobody listens":     {func(s *Spec) { s.Port = 1 }, []string{"can't connect to MySQL at", "check the host and the port"}},
		"no such database":   {func(s *Spec) { s.SourceDatabase = "nonesuch" }, []string{"no database nonesuch"}},
		"all table faults":   {func(*Spec) {}, []string{"other has engine MyISAM", "label with '?'"}},
		"all faults of ours": {func(s *Spec) { s.Port = 0; s.Settings.ExcludeTables = "(" }, []string{"port 0", "exclude_tables"}},
	} {
		spec := f.spec()
		c.edit(&spec)
		err := f.manager.Create(t.Context(), spec, false)
		for _, text := range c.says {
			require.ErrorContains(t, err, text, name)
		}
		require.NotContains(t, err.Error(), "S3cret", name) // OPS-13
		require.Empty(t, f.manager.Status(), name)
	}
	spec := f.spec()
	spec.Settings.ExcludeTables = "other|odd"
	require.NoError(t, f.manager.Create(t.Context(), spec, false))
	require.ErrorIs(t, f.manager.Create(t.Context(), spec, false), storage.ErrExists)
	require.NoError(t, f.manager.Create(t.Context(), spec, true))
	f.streaming()
	require.NoError(t, f.manager.Drop(t.Context(), "shop", false))
	require.ErrorIs(t, f.manager.Drop(t.Context(), "shop", false), storage.ErrNotFound)
	require.NoError(t, f.manager.Drop(t.Context(), "shop", true))
	require.ErrorIs(t, f.manager.Stop(t.Context(), "shop"), storage.ErrNotFound)
}

// PROTO-10, EXACT-16: a lost source is shown, and found again; meanwhile the database answers.
func TestSourceLostAndBack(t *testing.T) {
	f := own(t)
	require.NoError(t, f.source.Stop(t.Context()))
	st := f.wait("the loss", func(st Status) bool { return st.Error != nil })
	require.Equal(t, StateStreaming, st.State)
	require.Contains(t, f.rows("a"), "1|one")
	f.restart()
	st = f.wait("the loss", func(st Status) bool { return st.Error != nil })
	require.Contains(t, *st.Error, "can't connect to MySQL at")
	require.NoError(t, f.source.Restart(t.Context()))
	f.exec("INSERT INTO a VALUES (3, 'three')")
	f.wait("the source", func(st Status) bool { return st.Error == nil })
	f.caughtUp()
	f.equal("a", "b")
}

// A copy whose source is lost begins anew.
func TestSourceLostWhileCopying(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))", "INSERT INTO a (v) VALUES (REPEAT('x', 200))")
	for range 17 {
		f.exec("INSERT INTO a (v) SELECT v FROM a")
	}
	f.create()
	f.wait("the first rows", func(st Status) bool { return st.Copy != nil && st.Copy.Rows > 0 || st.State == StateStreaming })
	require.NoError(t, source.Kill(t.Context()))
	f.wait("the loss", func(st Status) bool { return st.Error != nil })
	require.NoError(t, source.Restart(t.Context()))
	f.streaming()
	f.caughtUp()
	require.EqualValues(t, 1<<17, f.table("a").Rows)
}

// PROTO-05
func TestPurgedLogs(t *testing.T) {
	f := own(t)
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	require.Equal(t, StateStopped, f.status().State)
	f.exec("INSERT INTO a VALUES (3, 'three')", "FLUSH BINARY LOGS", "INSERT INTO a VALUES (4, 'four')", "FLUSH BINARY LOGS")
	var file string
	db := f.source.DB(t, "")
	require.NoError(t, db.QueryRow("SELECT log_name FROM performance_schema.log_status, JSON_TABLE(local, '$' COLUMNS (log_name VARCHAR(100) PATH '$.binary_log_file')) j").Scan(&file))
	f.exec("PURGE BINARY LOGS TO '" + file + "'")
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	text := f.failed()
	require.Contains(t, text, "binary logs purged")
	require.Contains(t, text, "auto_resync = 1")
	require.Contains(t, f.rows("a"), "2|two") // still readable
	f.restart()
	require.Contains(t, f.failed(), "binary logs purged")
}

// PROTO-08, CLOUD-20: a source that lost what was read from it.
func TestRewound(t *testing.T) {
	f := own(t)
	f.exec("INSERT INTO a VALUES (3, 'three')")
	f.caughtUp()
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	f.exec("RESET BINARY LOGS AND GTIDS", "INSERT INTO a VALUES (4, 'four')", "INSERT INTO a VALUES (5, 'five')")
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	text := f.failed()
	require.Contains(t, text, "source was rewound or replaced")
	require.Contains(t, text, "a new copy is needed")
}

// The same before anything was read behind the copy, when the GTIDs that came since look like those of the copy.
func TestRewoundDirectlyBehindTheCopy(t *testing.T) {
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := own(t, args...)
			require.NoError(t, f.manager.Stop(t.Context(), "shop"))
			f.exec("RESET BINARY LOGS AND GTIDS")
			for i := range 40 {
				f.exec(fmt.Sprintf("INSERT INTO a VALUES (%d, 'x')", 10+i))
			}
			require.NoError(t, f.manager.Start(t.Context(), "shop"))
			require.Contains(t, f.failed(), "source was rewound or replaced")
		})
	}
}

// A password that was changed needs people, who then start it again.
func TestPasswordChanged(t *testing.T) {
	f := own(t)
	f.exec("CREATE USER tm@'%' IDENTIFIED BY 'S3cret-1'", "GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT, PROCESS, XA_RECOVER_ADMIN, BACKUP_ADMIN ON *.* TO tm@'%'")
	require.NoError(t, f.manager.Drop(t.Context(), "shop", false))
	spec := f.spec()
	spec.User, spec.Password = "tm", "S3cret-1"
	require.NoError(t, f.manager.Create(t.Context(), spec, false))
	f.streaming()
	f.exec("ALTER USER tm@'%' IDENTIFIED BY 'S3cret-2'")
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	text := f.failed()
	require.Contains(t, text, "check the user's name and password")
	f.exec("ALTER USER tm@'%' IDENTIFIED BY 'S3cret-1'")
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	f.streaming()
	for _, e := range f.manager.Log(100) { // OPS-13
		require.NotContains(t, e.Message, "S3cret")
	}
	st := f.status()
	require.NotContains(t, fmt.Sprint(st), "S3cret")
	require.NotContains(t, st.CreateStatement(), "S3cret")
}

// Sources without GTIDs are followed by file and position, with the same atomicity.
func TestWithoutGTIDs(t *testing.T) {
	f := own(t, "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
	require.Empty(t, f.status().GTIDSet)
	f.exec("INSERT INTO a VALUES (3, 'three')", "UPDATE a SET v = 'x' WHERE id = 1", "FLUSH BINARY LOGS", "DELETE FROM a WHERE id = 2")
	f.caughtUp()
	f.equal("a")
	f.restart()
	f.exec("INSERT INTO a VALUES (5, 'five')", "CREATE TABLE c (id INT PRIMARY KEY)", "INSERT INTO c VALUES (1)")
	f.caughtUp()
	f.equal("a", "c")
	require.NoError(t, f.source.Kill(t.Context()))
	require.NoError(t, f.source.Restart(t.Context()))
	f.exec("INSERT INTO a VALUES (6, 'six')")
	f.caughtUp()
	f.equal("a", "c")
}

// PROTO-15: XA transactions, decided at once, later, after restarts of either side, or never.
func TestXA(t *testing.T) {
	f := own(t)
	xa := func(statements ...string) {
		db, err := f.source.Open(f.db)
		require.NoError(t, err)
		defer db.Close()
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		for _, s := range statements {
			_, err := conn.ExecContext(t.Context(), s)
			require.NoError(t, err, s)
		}
	}
	xa("XA START 'x1'", "INSERT INTO a VALUES (10, 'x1')", "INSERT INTO b VALUES (10, 1)", "XA END 'x1'", "XA PREPARE 'x1'", "XA COMMIT 'x1'")
	xa("XA START 'x2'", "INSERT INTO a VALUES (20, 'x2')", "XA END 'x2'", "XA PREPARE 'x2'")
	xa("XA START 'x3'", "UPDATE a SET v = 'x3' WHERE id = 1", "XA END 'x3'", "XA PREPARE 'x3'")
	xa("XA START 'x4'", "INSERT INTO a VALUES (40, 'x4')", "XA END 'x4'", "XA COMMIT 'x4' ONE PHASE")
	f.caughtUp()
	f.equal("a", "b")
	require.NotContains(t, f.rows("a"), "20|")
	f.restart()
	require.NoError(t, f.source.Restart(t.Context()))
	xa("XA ROLLBACK 'x2'")
	xa("XA COMMIT 'x3'")
	f.caughtUp()
	f.equal("a", "b")
	require.Contains(t, f.rows("a"), "1|x3")
	pending, err := f.store.PendingXAs(f.manager.all()[0].id)
	require.NoError(t, err)
	require.Empty(t, pending)
}

// PROTO-01, RES-01: compressed transactions, and one that does not fit into memory bounds.
func TestCompressedAndLarge(t *testing.T) {
	f := shared(t)
	db := f.source.DB(t, f.db)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	exec := func(statement string) {
		_, err := conn.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	exec("SET binlog_transaction_compression = ON")
	exec("INSERT INTO a WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, REPEAT('y', 100) FROM n")
	exec("UPDATE a SET v = CONCAT(v, 'z') WHERE id % 3 = 0")
	exec("SET cte_max_recursion_depth = 1000000")
	exec("SET binlog_transaction_compression = OFF")
	exec("BEGIN")
	exec("INSERT INTO a WITH RECURSIVE n (i) AS (SELECT 10000 UNION ALL SELECT i + 1 FROM n WHERE i < 260000) SELECT i, REPEAT('w', 180) FROM n")
	exec("DELETE FROM a WHERE id BETWEEN 20000 AND 30000")
	exec("UPDATE a SET id = id + 1000000 WHERE id BETWEEN 100000 AND 110000")
	exec("COMMIT")
	f.caughtUp()
	f.equal("a")
}

// PROTO-19, OPS-03: what can't be followed sets its table aside; the others go on.
func TestQuarantine(t *testing.T) {
	f := shared(t)
	f.exec("INSERT INTO b VALUES (1, 1)")
	db := f.source.DB(t, f.db)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	for _, s := range []string{"SET SESSION binlog_format = 'STATEMENT'", "UPDATE a SET v = 'S3cret' WHERE id = 1", "SET SESSION binlog_format = 'ROW'", "INSERT INTO b VALUES (2, 2)", "INSERT INTO a VALUES (9, 'later')"} {
		_, err := conn.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	f.caughtUp()
	f.equal("b")
	require.Equal(t, "1|one\n2|two", f.rows("a"))
	a := f.table("a")
	require.Equal(t, "quarantined", a.State)
	require.Contains(t, *a.Error, "logged as a statement")
	require.Contains(t, *a.Error, "binlog.0")
	require.Contains(t, *a.Error, "SYSTEM RESYNC")
	require.NotContains(t, *a.Error, "S3cret")
	require.Nil(t, f.table("b").Error)
	f.exec("ALTER TABLE b MODIFY v BIGINT", "CREATE TABLE c (id INT PRIMARY KEY)", "INSERT INTO c VALUES (1)", "RENAME TABLE c TO d", "CREATE TABLE e (a INT) ENGINE=MyISAM")
	f.caughtUp()
	require.Contains(t, *f.table("b").Error, "ALTER TABLE b MODIFY v BIGINT")
	require.Contains(t, *f.table("d").Error, "RENAME TABLE c TO d")
	require.Contains(t, *f.table("e").Error, "engine MyISAM")
	f.restart()
	f.exec("DROP TABLE IF EXISTS b, c2", "DROP TABLE d, e, a")
}

// OPS-12: transactions that touch nothing followed move the point, durably.
func TestForeignTransactionsMoveThePoint(t *testing.T) {
	f := shared(t)
	before := f.status().GTIDSet
	other := f.source.FreshDatabase(t)
	f.source.Exec(t, other, "CREATE TABLE x (id INT)", "INSERT INTO x VALUES (1)")
	f.caughtUp()
	after := f.status().GTIDSet
	require.NotEqual(t, before, after)
	f.restart()
	require.Equal(t, after, f.status().GTIDSet)
}

// DDL-22, EXACT-09: restarts without changes change nothing.
func TestRestartsWithoutChanges(t *testing.T) {
	f := shared(t)
	f.exec("ALTER TABLE a ADD n INT NOT NULL DEFAULT 3")
	f.caughtUp()
	for range 3 {
		f.restart()
		f.streaming()
	}
	f.exec("INSERT INTO a VALUES (3, 'three', 4)")
	f.caughtUp()
	f.equal("a", "b")
}

// SNAP-03: definitions that change while the copy runs.
func TestDefinitionsChangeWhileCopying(t *testing.T) {
	source, db := mysqltest.FreshDatabase(t)
	f := newFixture(t, source, db)
	f.exec("CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200))", "CREATE TABLE b (id INT PRIMARY KEY)", "INSERT INTO a (v) VALUES (REPEAT('x', 200))")
	for range 16 {
		f.exec("INSERT INTO a (v) SELECT v FROM a")
	}
	f.create()
	f.wait("the first rows", func(st Status) bool { return st.Copy != nil && st.Copy.Rows > 0 || st.State == StateStreaming })
	f.exec("ALTER TABLE b ADD n INT", "INSERT INTO b VALUES (1, 2)", "CREATE TABLE c (id INT PRIMARY KEY)", "INSERT INTO c VALUES (1)")
	f.streaming()
	f.caughtUp()
	f.equal("b", "c")
	require.EqualValues(t, 1<<16, f.table("a").Rows)
}

func TestModifySettings(t *testing.T) {
	f := shared(t)
	require.NoError(t, f.manager.ModifySettings(t.Context(), "shop", map[string]string{"max_flush_data_time": "10"}))
	require.ErrorContains(t, f.manager.ModifySettings(t.Context(), "shop", map[string]string{"include_tables": "a", "max_rows_in_buffer": "x"}), "is not a number above 0")
	require.Empty(t, f.status().Settings.IncludeTables) // all of them or none
	f.restart()
	require.Equal(t, 10*time.Millisecond, f.status().Settings.MaxFlushDataTime)
	f.exec("INSERT INTO a VALUES (3, 'three')")
	f.caughtUp()
	f.equal("a")
}

// The log tells what happened, newest first.
func TestLog(t *testing.T) {
	f := shared(t)
	f.exec("CREATE TABLE c (id INT PRIMARY KEY)", "ALTER TABLE c ADD n INT", "DROP TABLE c")
	f.caughtUp()
	var kinds []string
	for _, e := range f.manager.Log(100) {
		if e.Kind != "warning" { // what the plan says of the server
			kinds = append(kinds, e.Kind)
		}
	}
	require.Equal(t, "drop alter create copied copy create", strings.Join(kinds, " "))
}

// PROTO-11: another reader with our server id.
func TestDuplicateServerID(t *testing.T) {
	f := own(t)
	d := f.manager.all()[0]
	second := newFixture(t, f.source, f.db)
	second.create()
	second.streaming()
	other := second.manager.all()[0]
	require.NoError(t, second.manager.Stop(t.Context(), "shop"))
	require.NoError(t, other.update(t.Context(), func(c *config) error { c.ServerID = d.serverID(); return nil }))
	require.NoError(t, second.manager.Start(t.Context(), "shop"))
	deadline := time.Now().Add(time.Minute)
	for f.status().State != StateError && second.status().State != StateError {
		require.True(t, time.Now().Before(deadline), "neither of the two gave up")
		time.Sleep(10 * time.Millisecond)
	}
}

// CLOUD-16: a source that from now on lets nobody in without encryption.
func TestSecureTransport(t *testing.T) {
	f := own(t)
	conn, err := f.source.DB(t, f.db).Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	exec := func(statement string) {
		_, err := conn.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	exec("SET GLOBAL require_secure_transport = ON")
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	exec("INSERT INTO a VALUES (3, 'three')")
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	f.wait("the row", func(Status) bool { return f.table("a").Rows == 3 })
	exec("SET GLOBAL require_secure_transport = OFF")
	f.caughtUp()
	f.equal("a")
}

// DDL-02: old events are read with the definition of their time, however many there were since.
func TestOldEventsAfterManyDefinitions(t *testing.T) {
	f := shared(t)
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	f.exec("INSERT INTO a VALUES (3, 'a')", "ALTER TABLE a ADD m VARCHAR(9) AFTER id", "INSERT INTO a VALUES (4, 'm', 'a')", "ALTER TABLE a DROP v", "INSERT INTO a VALUES (5, 'm5')",
		"ALTER TABLE a ADD v DECIMAL(5,1) NOT NULL DEFAULT 2.5 FIRST", "UPDATE a SET m = 'old' WHERE id < 3", "INSERT INTO a VALUES (7.5, 6, NULL)", "DELETE FROM a WHERE id = 4")
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	f.caughtUp()
	f.equal("a")
}

// DDL-01: rows directly behind a change of the definition, over and over, from several sessions.
func TestRowsDirectlyBehindDefinitions(t *testing.T) {
	f := shared(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for k := range 25 {
			f.exec(fmt.Sprintf("ALTER TABLE b ADD c%d INT NOT NULL DEFAULT 0", k), fmt.Sprintf("INSERT INTO b (id, c%d) VALUES (%d, %d)", k, 1000+k, k+1),
				fmt.Sprintf("CREATE TABLE n%d (id INT PRIMARY KEY)", k), fmt.Sprintf("INSERT INTO n%d VALUES (1)", k))
		}
	}()
	for k := range 200 {
		f.exec(fmt.Sprintf("INSERT INTO b (id, v) VALUES (%d, %d)", 10000+k, k), fmt.Sprintf("UPDATE b SET v = v + 1 WHERE id > %d", 9000+k))
	}
	<-done
	f.caughtUp()
	f.equal("b", "n0", "n24")
}

// A database that was copied without GTIDs is followed by file and position for ever: which GTIDs the copy holds is not
// known, so a set that begins later would ask the source for what is applied already.
func TestGTIDsTurnedOn(t *testing.T) {
	f := own(t, "--gtid-mode=OFF", "--enforce-gtid-consistency=ON")
	f.exec("INSERT INTO a VALUES (3, 'three')")
	f.caughtUp()
	f.exec("SET GLOBAL gtid_mode = OFF_PERMISSIVE", "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON", "INSERT INTO a VALUES (4, 'four')")
	f.caughtUp()
	f.restart()
	f.exec("INSERT INTO a VALUES (5, 'five')", "UPDATE a SET v = 'x' WHERE id = 4")
	f.caughtUp()
	f.equal("a")
	require.Empty(t, f.status().GTIDSet)
	require.Equal(t, "live", f.table("a").State)
}

// The other way round there is no telling any more what a set of GTIDs leaves out.
func TestGTIDsTurnedOff(t *testing.T) {
	f := own(t)
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	f.exec("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE", "SET GLOBAL gtid_mode = OFF", "INSERT INTO a VALUES (4, 'four')")
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	require.Contains(t, strings.ToLower(f.failed()), "gtid_mode")
}
