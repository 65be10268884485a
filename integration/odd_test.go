package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// TestLogsOfManyKinds: what a server may write into its log besides plain transactions.
func TestLogsOfManyKinds(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair+"CREATE USER tagger@'%'; GRANT ALL ON *.* TO tagger@'%'; GRANT TRANSACTION_GTID_TAG ON *.* TO tagger@'%', root@'%';")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	next := 100
	same := func(what string) {
		t.Helper()
		next++
		script(t, source.Login, db, fmt.Sprintf("INSERT INTO a VALUES (%d, '%s');", next, what))
		allLive(t, tm.CatchUp(source, db))
		tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	}
	script(t, source.Login, db, "SET gtid_next='AUTOMATIC:app1'; INSERT INTO a VALUES (3,'tagged'); SET gtid_next='AUTOMATIC'; INSERT INTO a VALUES (4,'not'); SET gtid_next='AUTOMATIC:app2'; INSERT INTO a VALUES (5,'tagged');") // PROTO-07
	same("tags")
	if st := tm.Status(db); !strings.Contains(st.GTIDSet, ":app1:") || !strings.Contains(st.GTIDSet, ":app2:") {
		t.Errorf("the GTID set has no tags: %s", st.GTIDSet)
	}
	tm.Restart()
	same("tags after a restart")
	script(t, source.Login, db, "SET binlog_rows_query_log_events=ON; INSERT INTO a VALUES (6,'with its query'); UPDATE a SET v=CONCAT(v,'!');") // PROTO-20
	same("queries")
	script(t, source.Login, db, "SET GLOBAL binlog_checksum=NONE; INSERT INTO a VALUES (7,'no checksum'); SET GLOBAL binlog_checksum=CRC32; INSERT INTO a VALUES (8,'checksum');") // PROTO-18
	same("checksums")
	script(t, source.Login, db, "SET GLOBAL binlog_row_metadata=FULL;")
	script(t, source.Login, db, "CREATE TABLE full (id INT PRIMARY KEY, y YEAR, u INT UNSIGNED, s SET('p','q') CHARACTER SET latin1, e ENUM('é'), j JSON, c CHAR(3) CHARACTER SET latin1); INSERT INTO full VALUES (1,2024,4000000000,'p,q','é','{}','ü');")
	same("metadata")
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "full")
	script(t, source.Login, db, "FLUSH BINARY LOGS; FLUSH TABLES; UPDATE a JOIN b USING (id) SET a.v='x', b.v='y'; FLUSH BINARY LOGS;")
	same("rotations")
	script(t, source.Login, db, "SET GLOBAL max_binlog_size=4096;"+strings.Repeat("UPDATE a SET v=REVERSE(v); UPDATE b SET v=REPEAT('z', 150);", 20))
	same("many files")
	script(t, source.Login, db, "SET gtid_next='3e11fa47-71ca-11e1-9e33-c80aa9429562:5'; INSERT INTO a VALUES (9,'of another server'); SET gtid_next='3e11fa47-71ca-11e1-9e33-c80aa9429562:2'; BEGIN; COMMIT; SET gtid_next='AUTOMATIC';") // PROTO-21
	same("gaps")
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestStatementsInOtherCharacterSets: definitions are read in the character set of the session that sent them. DDL-19
func TestStatementsInOtherCharacterSets(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, "CREATE TABLE c (id INT PRIMARY KEY); INSERT INTO c VALUES (1);")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, "SET NAMES latin1; ALTER TABLE c ADD `\xe9` VARCHAR(9) DEFAULT '\xfc' COMMENT '\xe4', ADD e ENUM('\xe9','z') DEFAULT '\xe9';\n"+
		"INSERT INTO c (id) VALUES (2); CREATE TABLE `\xf6` (id INT PRIMARY KEY, s SET('\xe9') CHARACTER SET latin1) COMMENT='\xe4'; INSERT INTO `\xf6` VALUES (1,'\xe9');")
	script(t, source.Login, db, fmt.Sprintf("ALTER DATABASE `%s` CHARACTER SET latin1; CREATE TABLE l (id INT PRIMARY KEY, s VARCHAR(9), t VARCHAR(9) CHARACTER SET utf8mb4); INSERT INTO l VALUES (1,'é','é'); ALTER TABLE l DEFAULT CHARSET=utf8mb4, ADD u VARCHAR(9) DEFAULT '日'; INSERT INTO l VALUES (2,'ü','ü','本');", db))
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "c", "ö", "l")
	sameDefinitions(t, source.Login, tm.Login, db, "c", "ö", "l")
	verifyEqual(t, tm, db)
}

// TestCascades: what foreign keys change by themselves is followed where the log has it, and refused where it does not. DDL-24
func TestCascades(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, `CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
		CREATE TABLE g (id INT PRIMARY KEY, cid INT, FOREIGN KEY (cid) REFERENCES c (id) ON DELETE SET NULL); INSERT INTO p VALUES (1),(2),(3); INSERT INTO c VALUES (10,1),(20,2),(21,2); INSERT INTO g VALUES (100,10),(200,20),(201,21);`)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	if err := tm.Exec(tidemarktest.CreateStatement(source.Login, db, db)); err != nil {
		refused(t, err, "does not log", ".c", ".g", "exclude_tables")
		return
	}
	tm.Await(db, "it streams", func(st tidemarktest.Status) bool { return st.State == "streaming" })
	script(t, source.Login, db, "UPDATE p SET id=100 WHERE id=1; DELETE FROM p WHERE id=2;")
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "p", "c", "g")
	verifyEqual(t, tm, db)
}

// TestSourceDatabaseDropped: the database goes with all its tables, and comes back. DDL-23
func TestSourceDatabaseDropped(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db) // without any table
	script(t, source.Login, db, pair)
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	script(t, source.Login, "mysql", fmt.Sprintf("DROP DATABASE `%s`;", db))
	if st := tm.CatchUp(source, db); len(st.Tables) != 0 || st.Problem() != "" {
		t.Errorf("after DROP DATABASE on the source: %s", st)
	}
	script(t, source.Login, "mysql", fmt.Sprintf("CREATE DATABASE `%s` CHARACTER SET latin1; USE `%s`; %s", db, db, pair))
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	verifyEqual(t, tm, db)
}

// TestTwoDatabases: databases have streams of their own, so a query that reads both would mix points.
func TestTwoDatabases(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	one, two := source.FreshDatabase(t), source.FreshDatabase(t)
	script(t, source.Login, one, pair)
	script(t, source.Login, two, pair)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, one)
	tm.Create(source.Login, two)
	script(t, source.Login, "", fmt.Sprintf("BEGIN; INSERT INTO `%s`.a VALUES (3,'both'); INSERT INTO `%s`.a VALUES (3,'both'); COMMIT;", one, two))
	tm.CatchUp(source, one)
	tm.CatchUp(source, two)
	for _, db := range []string{one, two} {
		tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	}
	join := fmt.Sprintf("SELECT COUNT(*) FROM `%s`.a JOIN `%s`.a AS other USING (id)", one, two)
	refused(t, tm.Exec(join), "point")
	if got := value(t, tm.Login, "SET tidemark_mixed_points = 1; %s", join); got != "3" {
		t.Errorf("with tidemark_mixed_points it gives %q", got)
	}
	must(t, tm.Exec("SYSTEM STOP MATERIALIZEDMYSQL `"+one+"`"))
	script(t, source.Login, "", fmt.Sprintf("DELETE FROM `%s`.a; DELETE FROM `%s`.a;", one, two))
	tm.CatchUp(source, two)
	if got := value(t, tm.Login, "SELECT COUNT(*) FROM `%s`.a", one); got != "3" {
		t.Errorf("a stopped database has %s rows, want the 3 that it had", got)
	}
	must(t, tm.Exec("SYSTEM START MATERIALIZEDMYSQL `"+one+"`"))
	tm.CatchUp(source, one)
	must(t, tm.Exec("DROP DATABASE `"+two+"`"))
	tidemarktest.SameTables(t, source.Login, tm.Login, one, "a", "b")
	tm.Restart()
	tidemarktest.SameTables(t, source.Login, tm.Login, one, "a", "b")
	tm.VerifyStore()
}

// TestRandomChangesOfEveryType: many small transactions of inserts, updates, deletes and key changes over tables of all
// types, through flushes, merges and kills.
func TestRandomChangesOfEveryType(t *testing.T) {
	t.Parallel()
	source, r := sharedSource(t, abroad...), newRandom(t)
	db := source.FreshDatabase(t)
	var cases []typeCase
	for _, c := range allTypeCases() {
		if !strings.Contains(c.column, "MEDIUM") && c.table != "vl" && c.table != "v16000" && c.table != "txt" && c.table != "bl" { // the large ones take too long
			cases = append(cases, c)
		}
	}
	columns, values := make([]string, len(cases)), make([][]string, len(cases))
	for i, c := range cases {
		columns[i] = fmt.Sprintf("v%d %s NULL", i, c.column)
		values[i] = c.literals(r)
	}
	// few columns a table, as rows are limited to 64 KiB
	const width = 6
	before := lenient
	var names []string
	for at := 0; at < len(cases); at += width {
		name := fmt.Sprintf("w%d", at)
		names = append(names, name)
		before += fmt.Sprintf("CREATE TABLE %s (id INT PRIMARY KEY, %s);\n", name, strings.Join(columns[at:min(at+width, len(cases))], ", "))
	}
	script(t, source.Login, db, before)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db, "max_rows_in_buffer = 1", "max_flush_data_time = 1") // many small commits
	// enough rows that what the stream brings becomes parts
	script(t, source.Login, db, lenient+randomChanges(r, cases, values, width, 250)+`SET cte_max_recursion_depth=1000000;
		INSERT INTO w0 (id) WITH RECURSIVE n (i) AS (SELECT 60 UNION ALL SELECT i+1 FROM n WHERE i < 89) SELECT i FROM n;
		INSERT IGNORE INTO w0 SELECT w0.id + 100 * i, v0, v1, v2, v3, v4, v5 FROM w0 JOIN (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1500) SELECT i FROM n) AS n;`)
	for range 3 {
		script(t, source.Login, db, lenient+randomChanges(r, cases, values, width, 250))
		tm.Kill()
		tm.Start()
	}
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	// How many changes share a commit depends on the machine's speed; one by one they fill a flush everywhere.
	for round := 0; len(partFiles(t, tm.DataDir)) == 0 && round < 200; round++ {
		script(t, source.Login, db, fmt.Sprintf("REPLACE INTO w0 (id) VALUES (%d);", 60+round%30))
		tm.CatchUp(source, db)
	}
	if len(partFiles(t, tm.DataDir)) == 0 {
		t.Error("no segments were flushed into parts")
	}
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// randomChanges are transactions of one to four statements on the tables w0, w6, ...; keys are 0..59.
func randomChanges(r *rand.Rand, cases []typeCase, values [][]string, width, transactions int) string {
	var b strings.Builder
	for range transactions {
		b.WriteString("BEGIN;\n")
		for range 1 + r.IntN(4) {
			at := r.IntN((len(cases)+width-1)/width) * width
			id, end := r.IntN(60), min(at+width, len(cases))
			switch r.IntN(6) {
			case 0:
				fmt.Fprintf(&b, "DELETE FROM w%d WHERE id = %d;\n", at, id)
			case 1:
				fmt.Fprintf(&b, "UPDATE IGNORE w%d SET id = %d WHERE id = %d;\n", at, r.IntN(60), id)
			case 2, 3:
				i := at + r.IntN(end-at)
				fmt.Fprintf(&b, "UPDATE w%d SET v%d = %s WHERE id %% 700 = %d;\n", at, i, values[i][r.IntN(len(values[i]))], id)
			default:
				row := []string{fmt.Sprint(id)}
				for i := at; i < end; i++ {
					row = append(row, values[i][r.IntN(len(values[i]))])
				}
				fmt.Fprintf(&b, "REPLACE INTO w%d VALUES (%s);\n", at, strings.Join(row, ", "))
			}
		}
		if r.IntN(8) == 0 {
			b.WriteString("ROLLBACK;\n")
		} else {
			b.WriteString("COMMIT;\nDO SLEEP(0.006);\n") // not so fast that commits are put together
		}
	}
	return b.String()
}

// TestServerWithOddDefaults: our sessions do not depend on what the server's defaults are. SNAP-16, SNAP-18, TYPE-10
func TestServerWithOddDefaults(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Args: []string{
		"--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE",
		"--character-set-server=latin1", "--explicit-defaults-for-timestamp=OFF", "--max-execution-time=1", "--wait-timeout=3", "--interactive-timeout=3",
		"--net-write-timeout=2", "--net-read-timeout=2", "--max-connections=12", "--transaction-isolation=READ-UNCOMMITTED", "--autocommit=0", "--completion-type=CHAIN",
		"--group-concat-max-len=4", "--default-week-format=3", "--sql-generate-invisible-primary-key=ON", "--show-gipk-in-create-table-and-information-schema=OFF",
		"--max-sort-length=4", "--div-precision-increment=0", "--default-time-zone=-03:00", "--log-bin-trust-function-creators=ON", "--init-connect=SET NAMES latin1", "--max-allowed-packet=1048576",
	}})
	db := source.FreshDatabase(t)
	const session = "SET NAMES utf8mb4; SET sql_mode='', autocommit=1, completion_type=NO_CHAIN, max_execution_time=0, cte_max_recursion_depth=1000000;\n"
	script(t, source.Login, db, session+`CREATE TABLE c (id INT PRIMARY KEY, s CHAR(5), t CHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, r REAL, ts TIMESTAMP);
		INSERT INTO c WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i+1 FROM n WHERE i < 60000) SELECT i, REPEAT('é', i % 5), 'ja', i / 3, NULL FROM n; CREATE TABLE nopk (w INT); INSERT INTO nopk VALUES (3),(3);`)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, session+"UPDATE c SET s='x ', t='y' WHERE id % 1000 = 0; ALTER TABLE c ADD u TIMESTAMP NULL, ADD v VARCHAR(5) DEFAULT 'é'; INSERT INTO c (id, s) VALUES (1, 'é'); INSERT INTO nopk VALUES (4); DELETE FROM nopk LIMIT 1;"+
		"CREATE TABLE d (id INT PRIMARY KEY, first TIMESTAMP, second TIMESTAMP, s VARCHAR(3) DEFAULT 'ü'); INSERT INTO d (id) VALUES (1); CREATE TABLE nopk2 (w INT); INSERT INTO nopk2 VALUES (1);")
	script(t, source.Login, db, `ALTER TABLE d ADD COLUMN "a""b" VARCHAR(9) DEFAULT 'it\'; INSERT INTO d (id) VALUES (2); COMMIT;`) // in the server's own mode
	allLive(t, tm.CatchUp(source, db))
	script(t, source.Login, db, "SET GLOBAL max_execution_time=0; SET GLOBAL sql_mode='';") // for the client's sake
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "c", "d", "nopk", "nopk2")
	script(t, source.Login, db, "SET GLOBAL max_execution_time=1;")
	verifyEqual(t, tm, db)
	// connections that the server closed meanwhile are opened again
	time.Sleep(4 * time.Second)
	script(t, source.Login, db, session+"INSERT INTO c (id) VALUES (2);")
	allLive(t, tm.CatchUp(source, db))
	verifyEqual(t, tm, db)
}

// TestManyTables: the number of tables costs neither connections nor time. RES-10
func TestManyTables(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	const n = 120
	var create, fill strings.Builder
	var names []string
	for i := range n {
		fmt.Fprintf(&create, "CREATE TABLE t%d (id INT PRIMARY KEY, v INT); INSERT INTO t%d VALUES (1,1);\n", i, i)
		fmt.Fprintf(&fill, "INSERT INTO t%d VALUES (2,%d);\n", i, i)
		names = append(names, fmt.Sprintf("t%d", i))
	}
	script(t, source.Login, db, create.String())
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, fill.String()+"BEGIN; "+strings.ReplaceAll(fill.String(), "(2,", "(3,")+" COMMIT;")
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	tm.Restart()
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names[:20]...)
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestFilters: one filter decides for rows and for definitions. OPS-11, DDL-04
func TestFilters(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair+"CREATE TABLE tmp_1 (a INT); INSERT INTO tmp_1 VALUES (1); CREATE TABLE other (id INT PRIMARY KEY, g GEOMETRY);")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db, "exclude_tables = 'tmp_.*|other'", "max_flush_data_time = 50")
	names := func() string {
		return strings.ReplaceAll(value(t, tm.Login, "SHOW TABLES FROM `%s`", db), "\n", " ")
	}
	if got := names(); got != "a b" {
		t.Errorf("tables %s, want a b", got)
	}
	script(t, source.Login, db, `INSERT INTO tmp_1 VALUES (2); ALTER TABLE tmp_1 ADD x GEOMETRY, ENGINE=MyISAM; DROP TABLE tmp_1, other; CREATE TABLE tmp_2 (id INT) ENGINE=MyISAM; CREATE TABLE c LIKE a; INSERT INTO c SELECT * FROM a;
		CREATE TABLE d (id INT PRIMARY KEY) SELECT id FROM b; TRUNCATE tmp_2; SET SESSION binlog_format='STATEMENT'; INSERT INTO tmp_2 VALUES (3); SET SESSION binlog_format='ROW'; RENAME TABLE tmp_2 TO tmp_3; CREATE TABLE e LIKE tmp_3;`)
	st := tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b", "c", "d")
	if got := st.Table("e"); got.State != "quarantined" { // its definition is that of a table that nobody followed
		t.Errorf("table e is %s", got.State)
	}
	if st.Problem() != "" {
		t.Errorf("the database has an error: %s", st.Problem())
	}
	show := value(t, tm.Login, "SHOW CREATE DATABASE `%s`", db)
	for _, part := range []string{"MaterializedMySQL(", "exclude_tables = ", "max_flush_data_time = 50"} {
		if !strings.Contains(show, part) {
			t.Errorf("SHOW CREATE DATABASE does not say %q: %s", part, show)
		}
	}
	must(t, tm.Exec("ALTER DATABASE `"+db+"` MODIFY SETTING max_flush_data_time = 10, max_rows_in_buffer = 1"))
	script(t, source.Login, db, "INSERT INTO a SELECT id+50, v FROM a;")
	tm.CatchUp(source, db)
	tm.Restart()
	if show := value(t, tm.Login, "SHOW CREATE DATABASE `%s`", db); !strings.Contains(show, "max_rows_in_buffer = 1") {
		t.Errorf("the setting is gone after a restart: %s", show)
	}
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b", "c", "d")
}

// TestSourceWithNewIdentity: the same history under another server_uuid, as after a failover, is followed on. PROTO-08
func TestSourceWithNewIdentity(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true})
	if source.DataDir() == "" {
		t.Skip("the server's data directory is out of reach")
	}
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db, "max_wait_time_when_mysql_unavailable = 500")
	script(t, source.Login, db, "INSERT INTO a VALUES (3,'by the old one');")
	tm.CatchUp(source, db)
	must(t, source.Stop(t.Context()))
	must(t, os.Remove(filepath.Join(source.DataDir(), "auto.cnf")))
	must(t, source.Restart(t.Context()))
	script(t, source.Login, db, "INSERT INTO a VALUES (4,'by the new one'); DELETE FROM b;")
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	verifyEqual(t, tm, db)
}
