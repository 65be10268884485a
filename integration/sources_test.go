package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

const pair = "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200)); CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(200)); INSERT INTO a VALUES (1,'one'),(2,'two'); INSERT INTO b VALUES (1,'x');"

// inError waits for a database that needs people and wants its error to say something.
func inError(t *testing.T, tm *tidemarktest.Server, db string, says ...string) tidemarktest.Status {
	t.Helper()
	st := tm.Await(db, "it is in state error", func(st tidemarktest.Status) bool { return st.State == "error" })
	for _, part := range says {
		if !strings.Contains(strings.ToLower(st.Problem()), strings.ToLower(part)) {
			t.Errorf("the error does not say %q: %s", part, st.Problem())
		}
	}
	return st
}

func TestFollowsByFileAndPosition(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--default-time-zone=+05:30"}})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	same := func() {
		t.Helper()
		allLive(t, tm.CatchUp(source, db))
		tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	}
	same()
	script(t, source.Login, db, "BEGIN; INSERT INTO a VALUES (3,'three'); UPDATE b SET id=7; COMMIT; FLUSH BINARY LOGS; DELETE FROM a WHERE id=1; SET binlog_transaction_compression=ON; INSERT INTO b SELECT * FROM a; FLUSH BINARY LOGS;")
	same()
	if st := tm.Status(db); st.GTIDSet != "" || !strings.HasPrefix(st.File, "binlog.") {
		t.Errorf("the point of a source without GTIDs is %s", st)
	}
	tm.Kill()
	script(t, source.Login, db, "ALTER TABLE a ADD c INT DEFAULT 5; INSERT INTO a VALUES (10,'ten',1); XA START 'f'; INSERT INTO b VALUES (99,'xa'); XA END 'f'; XA PREPARE 'f'; XA COMMIT 'f';")
	tm.Start()
	same()
	if err := source.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	script(t, source.Login, db, "INSERT INTO a VALUES (11,'eleven',2); TRUNCATE b;")
	same()
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

func TestCompressedTransactions(t *testing.T) { // PROTO-01, PROTO-02
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, `SET SESSION binlog_transaction_compression=ON, binlog_transaction_compression_level_zstd=22, cte_max_recursion_depth=100000;
		INSERT INTO a WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i < 5000) SELECT i, REPEAT(i, 20) FROM n;
		BEGIN; UPDATE a SET v=CONCAT(v,'!') WHERE id<1000; DELETE FROM a WHERE id BETWEEN 200 AND 300; INSERT INTO b SELECT id+10000, v FROM a WHERE id<500; UPDATE a SET id=id+100000 WHERE id<400; COMMIT;
		ALTER TABLE b ADD w INT DEFAULT 3; INSERT INTO b VALUES (5,'five',6); SET SESSION binlog_transaction_compression=OFF; INSERT INTO b VALUES (6,'six',7);`)
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	verifyEqual(t, tm, db)
}

// TestRowsBeyondAPacket: rows of 16 MiB and more, exact multiples of a packet among them (PROTO-12), before the snapshot and behind it.
func TestRowsBeyondAPacket(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Args: []string{"--max-allowed-packet=1073741824", "--innodb-redo-log-capacity=536870912"}})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, "CREATE TABLE big (id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT CHARACTER SET latin1); INSERT INTO big VALUES (1, REPEAT('x', 20000000), 'a'), (2, NULL, REPEAT('y', 17000000));")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, fmt.Sprintf("INSERT INTO big VALUES (3, REPEAT('z', 40000000), ''); INSERT INTO big VALUES (4, REPEAT('y', %d), NULL), (5, REPEAT('y', %d), NULL); UPDATE big SET t='changed' WHERE id=1; DELETE FROM big WHERE id=4;", 1<<24-1-100, 1<<24-1))
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.Same(t, source.Login, tm.Login, db, tidemarktest.Query{Name: "lengths", Text: "SELECT id, LENGTH(b), LENGTH(t), RIGHT(t, 3) FROM big"})
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "big")
	verifyEqual(t, tm, db)
}

// peak is the most memory the process ever had, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Skipf("this system does not tell a process's memory: %v", err)
	}
	kib, err := strconv.Atoi(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// TestLargeTransaction: one transaction much larger than the buffers goes through in bounded memory, all of it or nothing. RES-01
func TestLargeTransaction(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Args: []string{"--innodb-redo-log-capacity=1073741824", "--binlog-cache-size=16777216"}})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, "CREATE TABLE wide (id INT PRIMARY KEY, t TEXT, n INT);")
	tm := tidemarktest.Start(t, tidemarktest.Options{Args: []string{"--memory", "512MiB"}})
	tm.Create(source.Login, db)
	before := peak(t, tm.PID())
	fill := func(from, to int) string {
		return fmt.Sprintf(`SET SESSION cte_max_recursion_depth=1000000;
			BEGIN; INSERT INTO wide WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i+1 FROM n WHERE i < %d) SELECT i, REPEAT(SHA2(i, 256), 12), i FROM n;
			UPDATE wide SET n=n+1 WHERE id %% 2 = 0 AND id >= %d; DELETE FROM wide WHERE id %% 5 = 0 AND id >= %d; COMMIT;`, from, to, from, from)
	}
	script(t, source.Login, db, fill(1, 100_000))
	tm.CatchUp(source, db)
	script(t, source.Login, db, "SET SESSION binlog_transaction_compression=ON; "+fill(200_001, 300_000))
	tm.CatchUp(source, db)
	after := peak(t, tm.PID())
	t.Logf("peak memory %d MiB before, %d MiB after two transactions of some 160 MB", before, after)
	if after > 1024 {
		t.Errorf("the peak memory is %d MiB", after)
	}
	script(t, source.Login, db, fill(400_001, 500_000))
	for range 3 { // in the middle of it, or close to that
		time.Sleep(400 * time.Millisecond)
		tm.Kill()
		tm.Start()
		if n := value(t, tm.Login, "SELECT COUNT(*) FROM `%s`.wide WHERE id > 400000", db); n != "0" && n != "80000" {
			t.Errorf("a query sees %s rows of a transaction of 80000", n)
		}
	}
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.Same(t, source.Login, tm.Login, db, tidemarktest.Query{Name: "sums", Text: "SELECT COUNT(*), SUM(n), MIN(t), MAX(t) FROM wide"})
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestXA: what is prepared stays invisible and survives a kill; only its end decides. PROTO-15
func TestXA(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true})
	const db = "xa" // left to the end of the server: dropping it would wait for what is prepared
	source.Exec(t, "", "CREATE DATABASE "+db)
	script(t, source.Login, db, pair)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	xa := func(id string, statements string) string {
		return "XA START " + id + "; " + statements + " XA END " + id + "; XA PREPARE " + id + ";"
	}
	script(t, source.Login, db, xa("'kept'", "INSERT INTO a VALUES (10,'xa'); UPDATE b SET v='xa';")+"\n")
	script(t, source.Login, db, xa("'gone'", "INSERT INTO a VALUES (11,'never');")+"\n")
	script(t, source.Login, db, xa("X'00FF27','branch',7", "DELETE FROM a WHERE id=1;")+"\n")
	script(t, source.Login, db, "INSERT INTO a VALUES (20,'plain'); XA START 'one'; INSERT INTO a VALUES (12,'one phase'); XA END 'one'; XA COMMIT 'one' ONE PHASE;")
	same := func() {
		t.Helper()
		allLive(t, tm.CatchUp(source, db))
		tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	}
	same()
	tm.Kill()
	tm.VerifyStoreOffline()
	tm.Start()
	same()
	script(t, source.Login, db, "XA COMMIT 'kept'; XA ROLLBACK 'gone';")
	same()
	must(t, source.Restart(t.Context())) // of several prepared transactions MySQL 9.7 itself forgets some then
	same()
	tm.Restart()
	script(t, source.Login, db, "XA COMMIT X'00FF27','branch',7; INSERT INTO a VALUES (11,'later');")
	same()
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestXAAtTheCut: what was prepared before a copy can't be seen by it, so the copy refuses.
func TestXAAtTheCut(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	const db = "xa" // left to the end of the server: dropping it would wait for what is prepared
	source.Exec(t, "", "CREATE DATABASE "+db)
	script(t, source.Login, db, pair+"XA START 'open-one'; INSERT INTO a VALUES (10,'xa'); XA END 'open-one'; XA PREPARE 'open-one';")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	must(t, tm.Exec(tidemarktest.CreateStatement(source.Login, db, db)))
	st := tm.Await(db, "it names the transaction", func(st tidemarktest.Status) bool { return strings.Contains(st.Problem(), "XA") })
	if err := tm.Exec("SELECT * FROM `" + db + "`.a"); err == nil {
		t.Errorf("a database that is not copied answers; its status is %s", st)
	}
	script(t, source.Login, db, "XA COMMIT 'open-one';")
	if st = tm.Status(db); st.State == "error" {
		must(t, tm.Exec("SYSTEM START MATERIALIZEDMYSQL `"+db+"`"))
	}
	tm.Await(db, "it streams", func(st tidemarktest.Status) bool { return st.State == "streaming" })
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
}

// TestSourceComesAndGoes: a source that is stopped, killed or cut off is waited for; queries go on.
func TestSourceComesAndGoes(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	proxy := tidemarktest.NewProxy(t, source.Login)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(proxy.Login, db, "max_wait_time_when_mysql_unavailable = 500")
	same := func() {
		t.Helper()
		allLive(t, tm.CatchUp(source, db))
		tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	}
	lost := func(why string) {
		t.Helper()
		st := tm.Await(db, "it says that the source is lost: "+why, func(st tidemarktest.Status) bool { return st.Problem() != "" })
		if st.State != "streaming" || st.GTIDSet == "" {
			t.Errorf("%s: a lost source is waited for, but the status is %s", why, st)
		}
		if got := value(t, tm.Login, "SELECT COUNT(*) FROM `%s`.a", db); got == "" {
			t.Errorf("%s: no answer while the source is lost", why)
		}
	}
	must(t, source.Stop(t.Context()))
	lost("stopped")
	tm.Restart() // EXACT-16: local state is enough to answer
	lost("stopped, and we were restarted")
	must(t, source.Restart(t.Context()))
	script(t, source.Login, db, "INSERT INTO a VALUES (3,'after the stop');")
	same()
	script(t, source.Login, db, "INSERT INTO a VALUES (4,'before the kill');")
	must(t, source.Kill(t.Context()))
	lost("killed")
	must(t, source.Restart(t.Context()))
	script(t, source.Login, db, "INSERT INTO a VALUES (5,'after the kill'); DELETE FROM b;")
	same()
	proxy.Refuse(true)
	proxy.Cut()
	lost("cut off")
	script(t, source.Login, db, "INSERT INTO a SELECT id+100, REPEAT('r', 150) FROM a;")
	proxy.Refuse(false)
	same()
	if p := tm.Status(db).Problem(); p != "" {
		t.Errorf("the source is back and the error is still: %s", p)
	}
	verifyEqual(t, tm, db)
}

// TestConnectionsCutInTransactions: connections that break again and again inside transactions. PROTO-03
func TestConnectionsCutInTransactions(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	proxy := tidemarktest.NewProxy(t, source.Login)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(proxy.Login, db, "max_wait_time_when_mysql_unavailable = 100")
	fill := "INSERT INTO a WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i+1 FROM n WHERE i < %d) SELECT i, REPEAT(SHA2(i, 256), 2) FROM n; UPDATE a SET v=REPEAT('u',180) WHERE id %% 3 = 1 AND id>%d;"
	for round := range 6 {
		proxy.CutAfter(int64(100_000 * (round + 1)))
		proxy.Cut()
		low := 1000 * (round + 1)
		script(t, source.Login, db, "SET cte_max_recursion_depth=10000; BEGIN; "+fmt.Sprintf(fill, low, low+900, low)+" COMMIT;")
	}
	proxy.CutAfter(0)
	proxy.Cut()
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestSourceRewound: a source that has another history than the one followed stops the database, whatever its numbers say.
func TestSourceRewound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"GTIDs", nil},
		{"file and position", []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}},
	} {
		t.Run("logs reset, "+tc.name, func(t *testing.T) {
			t.Parallel()
			source := mysqltest.Start(t, mysqltest.Options{Own: true, Args: tc.args})
			db := source.FreshDatabase(t)
			script(t, source.Login, db, pair)
			tm := tidemarktest.Start(t, tidemarktest.Options{})
			tm.Create(source.Login, db)
			script(t, source.Login, db, "INSERT INTO a VALUES (3,'seen');")
			tm.CatchUp(source, db)
			tm.Stop()
			// as many transactions as before, so that all numbers are those that are known
			script(t, source.Login, db, "RESET BINARY LOGS AND GTIDS; DELETE FROM a;"+strings.Repeat("INSERT INTO b SELECT MAX(id)+1,'other' FROM b;", 40))
			tm.Start()
			inError(t, tm, db, "rewound")
			if got := value(t, tm.Login, "SELECT COUNT(*) FROM `%s`.a", db); got != "3" {
				t.Errorf("%s rows are readable of the 3 that there were", got)
			}
			tm.Restart()
			inError(t, tm, db, "rewound")
		})
		t.Run("older data restored, "+tc.name, func(t *testing.T) {
			t.Parallel()
			source := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true, Args: tc.args})
			if source.DataDir() == "" {
				t.Skip("the server's data directory is out of reach")
			}
			db := source.FreshDatabase(t)
			script(t, source.Login, db, pair)
			account := tidemarktest.Account(t, source.Login) // also in the backup
			must(t, source.Stop(t.Context()))
			backup := filepath.Join(t.TempDir(), "backup")
			copyDir(t, source.DataDir(), backup)
			must(t, source.Restart(t.Context()))
			tm := tidemarktest.Start(t, tidemarktest.Options{})
			tm.Create(account, db)
			script(t, source.Login, db, "INSERT INTO a VALUES (3,'lost by the restore');")
			tm.CatchUp(source, db)
			must(t, source.Stop(t.Context()))
			must(t, os.RemoveAll(source.DataDir()))
			copyDir(t, backup, source.DataDir())
			must(t, source.Restart(t.Context()))
			script(t, source.Login, db, "INSERT INTO a VALUES (3,'another transactio!'); INSERT INTO a VALUES (4,'and more'); INSERT INTO a VALUES (5,'and more');")
			inError(t, tm, db, "rewound")
		})
	}
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.CopyFS(to, os.DirFS(from)))
	// CopyFS does not keep who may read what, which the server is particular about
	must(t, filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		return os.Chmod(filepath.Join(to, rel), info.Mode().Perm())
	}))
}

// TestLogsPurged: what the source has thrown away is missing for good. The tables are copied anew beside the stream; without
// auto_resync the database says what to do. The old rows stay readable. PROTO-05
func TestLogsPurged(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"GTIDs", nil},
		{"file and position", []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			source := mysqltest.Start(t, mysqltest.Options{Own: true, Args: tc.args})
			db := source.FreshDatabase(t)
			script(t, source.Login, db, pair)
			tm := tidemarktest.Start(t, tidemarktest.Options{})
			tm.Create(source.Login, db, "auto_resync = 0")
			tm.CatchUp(source, db)
			tm.Stop()
			script(t, source.Login, db, "INSERT INTO a VALUES (3,'missed'); FLUSH BINARY LOGS; INSERT INTO a VALUES (4,'there'); FLUSH BINARY LOGS;")
			last := strings.Fields(value(t, source.Login, "SHOW BINARY LOG STATUS"))[0]
			script(t, source.Login, db, "PURGE BINARY LOGS TO '"+last+"';")
			tm.Start()
			inError(t, tm, db, "purged", "auto_resync")
			if got := value(t, tm.Login, "SELECT COUNT(*) FROM `%s`.a", db); got != "2" {
				t.Errorf("%s rows are readable of the 2 that there were", got)
			}
			// the way out
			must(t, tm.Exec("ALTER DATABASE `"+db+"` MODIFY SETTING auto_resync = 1"))
			must(t, tm.Exec("SYSTEM START MATERIALIZEDMYSQL `"+db+"`"))
			tm.Await(db, "both tables are copied anew", func(st tidemarktest.Status) bool {
				return st.State == "streaming" && st.Table("a").State == "live" && st.Table("a").Rows == 4 && st.Table("b").State == "live"
			})
			script(t, source.Login, db, "INSERT INTO a VALUES (5,'goes on');")
			tm.CatchUp(source, db)
			tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
			verifyEqual(t, tm, db)
		})
	}
}

// TestSameServerIDTwice: a copy of a data directory that runs beside the original has its server_id and its uuid. PROTO-11
func TestSameServerIDTwice(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	first := tidemarktest.Start(t, tidemarktest.Options{})
	first.Create(source.Login, db, "max_wait_time_when_mysql_unavailable = 200")
	first.CatchUp(source, db)
	first.Stop()
	clone := filepath.Join(t.TempDir(), "clone")
	copyDir(t, first.DataDir, clone)
	first.Start()
	second := tidemarktest.Start(t, tidemarktest.Options{DataDir: clone})
	named := func(tm *tidemarktest.Server) bool {
		return strings.Contains(strings.ReplaceAll(tm.Status(db).Problem(), "_", " "), "server id")
	}
	first.Await(db, "one of the two says that its server id is in use", func(st tidemarktest.Status) bool { return named(first) || named(second) })
}

// TestQuietDatabase: the point moves on with transactions that touch nothing followed, and it survives. OPS-12, EXACT-07
func TestQuietDatabase(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db, other := source.FreshDatabase(t), source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, other, pair+"FLUSH BINARY LOGS;")
	st := tm.CatchUp(source, db)
	tm.Kill()
	script(t, source.Login, other, "PURGE BINARY LOGS TO '"+st.File+"';")
	tm.Start()
	if again := tm.Status(db); again.GTIDSet != st.GTIDSet {
		t.Errorf("the point was %s and is %s after a kill", st, again)
	}
	script(t, source.Login, db, "INSERT INTO a VALUES (3,'x');")
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
}

// TestAccountWithdrawn: an account that may not log in any more is a matter for people, and stays one until they act. OPS-07
func TestAccountWithdrawn(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair+"CREATE USER repl@'%' IDENTIFIED BY 'S3cret-of-repl'; GRANT SELECT, RELOAD, PROCESS, REPLICATION CLIENT, REPLICATION SLAVE, XA_RECOVER_ADMIN ON *.* TO repl@'%';")
	account := source.Login
	account.User, account.Password = "repl", "S3cret-of-repl"
	proxy := tidemarktest.NewProxy(t, account)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(proxy.Login, db, "max_wait_time_when_mysql_unavailable = 200")
	tm.CatchUp(source, db)
	script(t, source.Login, db, "ALTER USER repl@'%' IDENTIFIED BY 'another'; FLUSH PRIVILEGES;")
	proxy.Cut()
	inError(t, tm, db, "repl", "password")
	script(t, source.Login, db, "ALTER USER repl@'%' IDENTIFIED BY 'S3cret-of-repl'; INSERT INTO a VALUES (3,'x');")
	must(t, tm.Exec("SYSTEM START MATERIALIZEDMYSQL `"+db+"`"))
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	noSecret(t, tm, "S3cret-of-repl")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noSecret looks for a password wherever it could be printed. OPS-13
func noSecret(t *testing.T, tm *tidemarktest.Server, secret string) {
	t.Helper()
	status, plain := tm.Run("sync", "status", "--json"), tm.Run("sync", "status")
	places := map[string]string{"log": tm.Log(), "sync status --json": status.Out + status.Err, "sync status": plain.Out + plain.Err}
	for _, query := range []string{"SELECT * FROM system.materialized_mysql", "SELECT * FROM system.materialized_mysql_tables", "SELECT * FROM system.materialized_mysql_log", "SHOW PROCESSLIST", "SHOW DATABASES"} {
		places[query] = value(t, tm.Login, "%s", query)
	}
	for where, text := range places {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the password %q", where, secret)
		}
	}
}
