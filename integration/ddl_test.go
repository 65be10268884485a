package integration

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// ddlStory is a change of tables while they are followed. Every story has tables of its own.
type ddlStory struct {
	name string
	// before stands before the snapshot, after comes by the stream.
	before, after string
	// same are tables that equal the source's afterwards, definition included; gone those that are not there any more.
	same, gone []string
	// quarantined are tables that keep the rows they had, which frozen gives, with what their error has to say.
	quarantined map[string]string
	frozen      map[string]string // table -> rows as SELECT * prints them
}

var followedDDL = []ddlStory{
	{name: "ADD COLUMN at the end, first and in between", same: []string{"o"},
		before: "CREATE TABLE o (a INT, id INT PRIMARY KEY, b VARCHAR(9)); INSERT INTO o VALUES (1,1,'b1'),(2,2,NULL);",
		after: `INSERT INTO o VALUES (3,3,'b3'); ALTER TABLE o ADD x INT FIRST, ADD y INT AFTER id; INSERT INTO o VALUES (10,4,4,11,'b4');
			ALTER TABLE o ADD COLUMN (p INT, q INT); INSERT INTO o VALUES (1,2,5,3,'b5',4,5); UPDATE o SET p=9, x=id WHERE id IN (1,4); DELETE FROM o WHERE id=2;`}, // DDL-13, DDL-14
	{name: "defaults of added columns", same: []string{"t"},
		before: "CREATE TABLE t (id INT PRIMARY KEY, note TEXT); INSERT INTO t VALUES (1,'n'),(2,'m');",
		after: `SET sql_mode=''; ALTER TABLE t ADD area VARCHAR(30) NOT NULL DEFAULT 'none', ADD n INT NOT NULL, ADD dz DATE NOT NULL, ADD e ENUM('x','y') NOT NULL, ADD d DECIMAL(10,2) DEFAULT 1.5, ADD b BIT(5) DEFAULT b'101', ADD h VARBINARY(4) DEFAULT 0x41FF;
			INSERT INTO t (id,n,dz,e) VALUES (3,1,'2024-01-01','y'); ALTER TABLE t DROP COLUMN note; INSERT INTO t (id,n,dz,e) VALUES (4,1,'2024-01-01','y'); UPDATE t SET n=7 WHERE id=1;`}, // DDL-20
	{name: "every type added with a default and without", same: []string{"many"},
		before: "CREATE TABLE many (id INT PRIMARY KEY); INSERT INTO many VALUES (1),(2);",
		after: `SET sql_mode=''; ALTER TABLE many ADD a1 TINYINT DEFAULT -5, ADD a2 BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615, ADD a3 INT(6) ZEROFILL NOT NULL DEFAULT 7, ADD a4 FLOAT DEFAULT 0.1, ADD a5 DOUBLE NOT NULL DEFAULT -1e10,
			ADD a6 DATETIME(3) NOT NULL DEFAULT '2024-02-29 01:02:03.456', ADD a7 TIME(2) NOT NULL DEFAULT '-12:00:00.5', ADD a8 YEAR NOT NULL DEFAULT 2024, ADD a9 SET('p','q') NOT NULL DEFAULT 'p,q', ADD a10 CHAR(3) NOT NULL, ADD a11 BINARY(3) NOT NULL,
			ADD a12 TEXT NOT NULL, ADD a13 JSON, ADD a14 TIMESTAMP NULL, ADD a15 VARCHAR(10) CHARACTER SET latin1 NOT NULL DEFAULT 'é', ADD a16 TIME NOT NULL, ADD a17 YEAR NOT NULL, ADD a18 BIT(9) NOT NULL, ADD a19 DECIMAL(40,5) NOT NULL, ADD a20 BLOB NOT NULL, ADD a21 BOOL DEFAULT TRUE;
			INSERT INTO many (id,a10,a11,a12,a20,a16,a17,a18,a19) VALUES (3,'','','','',0,0,0,0); UPDATE many SET a13='{}' WHERE id=1;`},
	{name: "CURRENT_TIMESTAMP has the statement's own time", same: []string{"now"},
		before: "CREATE TABLE now (id INT PRIMARY KEY); INSERT INTO now VALUES (1);",
		after: `SET timestamp=1700000000.123456; ALTER TABLE now ADD t TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, ADD u DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6); SET timestamp=DEFAULT;
			SET time_zone='-08:00'; ALTER TABLE now ADD v DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP; INSERT INTO now (id) VALUES (2); SET time_zone=DEFAULT;`},
	{name: "DROP COLUMN, and the name again", same: []string{"da"},
		before: "CREATE TABLE da (id INT PRIMARY KEY, c INT NOT NULL, z INT); INSERT INTO da VALUES (1,5,6);",
		after: `ALTER TABLE da DROP c, ADD c VARCHAR(9) NOT NULL DEFAULT 'new'; INSERT INTO da VALUES (2,7,'x'); ALTER TABLE da DROP COLUMN c; INSERT INTO da VALUES (3,8);
			ALTER TABLE da ADD c INT NULL; INSERT INTO da VALUES (4,9,10);`}, // DDL-28
	{name: "TRUNCATE in its spellings", same: []string{"tr1", "tr2", "tr3", "tr4"},
		before: "CREATE TABLE tr1 (id INT PRIMARY KEY); CREATE TABLE tr2 LIKE tr1; CREATE TABLE tr3 LIKE tr1; CREATE TABLE tr4 LIKE tr1; INSERT INTO tr1 VALUES (1),(2); INSERT INTO tr2 SELECT * FROM tr1; INSERT INTO tr3 SELECT * FROM tr1; INSERT INTO tr4 SELECT * FROM tr1;",
		after:  "INSERT INTO tr1 VALUES (5); TRUNCATE tr1; INSERT INTO tr1 VALUES (7); truncate table DATABASE_NAME . `tr2`; /* c */ TRUNCATE TABLE `tr3`; INSERT INTO tr3 VALUES (1); USE mysql; /* app=x */ truncate /* y */ DATABASE_NAME.tr4; USE DATABASE_NAME;"}, // DDL-08
	{name: "DROP and CREATE under the same name", same: []string{"again"},
		before: "CREATE TABLE again (id INT PRIMARY KEY, v INT); INSERT INTO again VALUES (1,1);",
		after:  "INSERT INTO again VALUES (2,2); DROP TABLE again; CREATE TABLE again (k VARCHAR(9) PRIMARY KEY, w DECIMAL(9,2)); INSERT INTO again VALUES ('x',1.25); UPDATE again SET w=2;"},
	{name: "CREATE, change and DROP at once", same: []string{"kept"}, gone: []string{"shortlived", "twice1", "twice2"},
		before: "CREATE TABLE twice1 (id INT PRIMARY KEY); CREATE TABLE twice2 (id INT PRIMARY KEY); INSERT INTO twice1 VALUES (1);",
		after: `CREATE TABLE shortlived (id INT PRIMARY KEY); INSERT INTO shortlived VALUES (1); DROP TABLE shortlived; CREATE TABLE kept (id INT PRIMARY KEY, v TIMESTAMP DEFAULT CURRENT_TIMESTAMP); INSERT INTO kept (id) VALUES (1);
			CREATE TABLE IF NOT EXISTS kept (other INT PRIMARY KEY); DROP TABLE IF EXISTS twice1, nowhere, twice2;`},
	{name: "index-only changes", same: []string{"ix"},
		before: "CREATE TABLE ix (id INT PRIMARY KEY, a INT, b VARCHAR(20), UNIQUE ub (b)); INSERT INTO ix VALUES (1,1,'x');",
		after: `ALTER TABLE ix ADD INDEX ia (a), ADD UNIQUE KEY uab (a, b(5)); CREATE INDEX ib2 ON ix (b DESC); DROP INDEX ia ON ix; ALTER TABLE ix RENAME INDEX ib2 TO ib3; ALTER TABLE ix ALTER INDEX ib3 INVISIBLE; ALTER TABLE ix DROP KEY ub, ALGORITHM=INPLACE, LOCK=NONE;
			INSERT INTO ix VALUES (2,2,'y'); ANALYZE TABLE ix; OPTIMIZE TABLE ix;`}, // DDL-15, DDL-16
	{name: "changes that change nothing", same: []string{"noop"},
		before: "CREATE TABLE noop (id INT PRIMARY KEY, v INT); INSERT INTO noop VALUES (1,1);",
		after:  "ALTER TABLE noop ENGINE=InnoDB; ALTER TABLE noop FORCE; ALTER TABLE noop AUTO_INCREMENT=1000; INSERT INTO noop VALUES (2,2); ALTER TABLE noop COMMENT='it''s -- x';"}, // DDL-25
	{name: "comments and hints", same: []string{"cm"},
		before: "CREATE TABLE cm (id INT PRIMARY KEY); INSERT INTO cm VALUES (1);",
		after: `/* app=x */ ALTER /* a.b */ TABLE cm ADD k INT COMMENT 'it''s a.b; drop table t'; -- x
			ALTER TABLE cm ADD l INT /*!80023 INVISIBLE */; /*!40000 ALTER TABLE cm DISABLE KEYS */; INSERT INTO cm (id,k,l) VALUES (2,3,4); ALTER TABLE cm ADD e VARCHAR(255), ALGORITHM=INSTANT; ALTER TABLE cm ALGORITHM=INSTANT, DROP COLUMN k; INSERT INTO cm (id,l,e) VALUES (3,4,'e');
			CREATE TABLE cm2 (id INT PRIMARY KEY) /*!50100 ROW_FORMAT=DYNAMIC */ ENGINE=InnoDB; INSERT INTO cm2 VALUES (1);`}, // DDL-17
	{name: "CREATE TABLE LIKE and SELECT", same: []string{"like1", "cts", "c2", "liked"},
		before: "CREATE TABLE liked (id INT PRIMARY KEY, amount DECIMAL(9,2) DEFAULT 3, KEY (amount)); INSERT INTO liked VALUES (1,1.5),(2,2.5);",
		after: `CREATE TABLE like1 LIKE liked; INSERT INTO like1 SELECT * FROM liked; INSERT INTO like1 (id) VALUES (9); CREATE TABLE cts (PRIMARY KEY (id)) AS SELECT id, amount FROM liked; INSERT INTO cts VALUES (7,7);
			SET SESSION sql_mode='ANSI_QUOTES'; CREATE TABLE "c2" (PRIMARY KEY ("1")) AS SELECT 1 AS "1"; ALTER TABLE "c2" ADD "d e" INT DEFAULT 4; SET SESSION sql_mode=DEFAULT;`}, // DDL-06, DDL-07
	{name: "less usual type names", same: []string{"s1"},
		after: "CREATE TABLE s1 (id SERIAL PRIMARY KEY, c NATIONAL VARCHAR(9), d DEC, e FIXED(5,1), k CHAR BYTE, m MIDDLEINT, n NUMERIC(4,2), r DOUBLE PRECISION, l LONG VARBINARY, b BOOLEAN, g VARCHAR(5) COLLATE utf8mb4_bin); INSERT INTO s1 VALUES (1,'é',2,3.5,'x',4,5.25,6.5,'y',1,'z');"}, // DDL-14
	{name: "rows right behind each of many changes", same: []string{"w"},
		before: "CREATE TABLE w (id INT PRIMARY KEY); INSERT INTO w VALUES (0);", after: manyColumns(25)}, // DDL-01
	{name: "default expressions", same: []string{"df"},
		before: "CREATE TABLE df (id INT PRIMARY KEY, d DATE DEFAULT (CURDATE()), j JSON DEFAULT (JSON_ARRAY()), n INT DEFAULT (1+2), t TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), q VARCHAR(20) DEFAULT 'it''s; -- x', r INT NULL DEFAULT 1234); INSERT INTO df (id) VALUES (1);",
		after:  "INSERT INTO df (id,d,r,q) VALUES (2,NULL,NULL,NULL); INSERT INTO df (id) VALUES (3); UPDATE df SET n=n+1;"}, // TYPE-29
	{name: "partial row images", same: []string{"q8"}, before: "CREATE TABLE q8 (id INT PRIMARY KEY, a INT, t TEXT); INSERT INTO q8 VALUES (1,4,'keep');",
		after: "SET SESSION binlog_row_image='MINIMAL'; UPDATE q8 SET a=5; SET SESSION binlog_row_image='FULL'; UPDATE q8 SET a=6;"}, // TYPE-18
	{name: "partial JSON", same: []string{"q9"}, before: "CREATE TABLE q9 (id INT PRIMARY KEY, doc JSON); INSERT INTO q9 VALUES (1, JSON_OBJECT('a', REPEAT('x', 500), 'n', 1));",
		after: "SET SESSION binlog_row_value_options='PARTIAL_JSON'; UPDATE q9 SET doc=JSON_SET(doc,'$.n',2); SET SESSION binlog_row_value_options='';"}, // TYPE-15
}

func manyColumns(n int) string {
	var b strings.Builder
	for k := 1; k <= n; k++ {
		c := "c" + string(rune('a'+k-1))
		b.WriteString("ALTER TABLE w ADD COLUMN " + c + " INT NOT NULL DEFAULT 0; INSERT INTO w (id," + c + ") SELECT MAX(id)+1, 7 FROM w; UPDATE w SET " + c + "=" + c + "+1 WHERE id=0;")
	}
	return b.String()
}

// unfollowedDDL is what this version can't follow: the table stops, says why, and the others go on.
var unfollowedDDL = []ddlStory{
	{name: "MODIFY COLUMN", before: "CREATE TABLE q1 (id INT PRIMARY KEY, v INT); INSERT INTO q1 VALUES (1,1);",
		after:       "INSERT INTO q1 VALUES (2,2); ALTER TABLE q1 MODIFY v BIGINT; INSERT INTO q1 VALUES (3,3);",
		quarantined: map[string]string{"q1": "ALTER TABLE q1 MODIFY v BIGINT"}, frozen: map[string]string{"q1": "1\t1\n2\t2"}},
	{name: "RENAME COLUMN", before: "CREATE TABLE q2 (id INT PRIMARY KEY, v INT); INSERT INTO q2 VALUES (1,1);",
		after:       "ALTER TABLE q2 RENAME COLUMN v TO w; INSERT INTO q2 VALUES (3,3);",
		quarantined: map[string]string{"q2": "RENAME COLUMN v TO w"}, frozen: map[string]string{"q2": "1\t1"}},
	{name: "RENAME TABLE", before: "CREATE TABLE q3 (id INT PRIMARY KEY, v INT); INSERT INTO q3 VALUES (1,1);",
		after:       "RENAME TABLE q3 TO q3b; INSERT INTO q3b VALUES (2,2);",
		quarantined: map[string]string{"q3": "RENAME TABLE q3 TO q3b"}, frozen: map[string]string{"q3": "1\t1"}},
	{name: "another primary key", before: "CREATE TABLE q4 (a INT, b INT, PRIMARY KEY (a)); INSERT INTO q4 VALUES (1,1);",
		after:       "ALTER TABLE q4 DROP PRIMARY KEY, ADD PRIMARY KEY (a,b); INSERT INTO q4 VALUES (1,2);",
		quarantined: map[string]string{"q4": "primary key"}, frozen: map[string]string{"q4": "1\t1"}}, // KEY-09
	{name: "numbers given to rows that are there", before: "CREATE TABLE q5 (id INT PRIMARY KEY); INSERT INTO q5 VALUES (1),(2);",
		after:       "ALTER TABLE q5 ADD n INT AUTO_INCREMENT UNIQUE; INSERT INTO q5 (id) VALUES (3);",
		quarantined: map[string]string{"q5": "AUTO_INCREMENT"}, frozen: map[string]string{"q5": "1\n2"}},
	{name: "CONVERT TO CHARACTER SET", before: "CREATE TABLE q6 (id INT PRIMARY KEY, s VARCHAR(9)) CHARSET latin1; INSERT INTO q6 VALUES (1,'é');",
		after:       "ALTER TABLE q6 CONVERT TO CHARACTER SET utf8mb4; INSERT INTO q6 VALUES (2,'日');",
		quarantined: map[string]string{"q6": "CONVERT TO CHARACTER SET"}, frozen: map[string]string{"q6": "1\té"}},
	{name: "statement-format changes", before: "CREATE TABLE q7 (id INT PRIMARY KEY, v INT); INSERT INTO q7 VALUES (1,1);",
		after:       "SET SESSION binlog_format='STATEMENT'; UPDATE q7 SET v=v+1 WHERE id<100; SET SESSION binlog_format='ROW'; INSERT INTO q7 VALUES (2,2);",
		quarantined: map[string]string{"q7": ""}, frozen: map[string]string{"q7": "1\t1"}}, // PROTO-19
	{name: "writes that were not logged", before: "CREATE TABLE q10 (id INT PRIMARY KEY, v VARCHAR(9)); INSERT INTO q10 VALUES (1,'a');",
		after:       "SET SESSION sql_log_bin=0; INSERT INTO q10 VALUES (77,'unlogged'); SET SESSION sql_log_bin=1; UPDATE q10 SET v='later' WHERE id=77;",
		quarantined: map[string]string{"q10": "key hash"}, frozen: map[string]string{"q10": "1\ta"}}, // PROTO-23
	{name: "partitions dropped", before: "CREATE TABLE q13 (id INT, d INT, PRIMARY KEY (id,d)) PARTITION BY RANGE (d) (PARTITION p0 VALUES LESS THAN (10), PARTITION px VALUES LESS THAN MAXVALUE); INSERT INTO q13 VALUES (1,5),(2,15);",
		after:       "INSERT INTO q13 VALUES (3,6); ALTER TABLE q13 DROP PARTITION p0;",
		quarantined: map[string]string{"q13": "DROP PARTITION p0"}, frozen: map[string]string{"q13": "1\t5\n2\t15\n3\t6"}}, // DDL-09
	{name: "new table without InnoDB", after: "CREATE TABLE q14 (id INT PRIMARY KEY) ENGINE=MyISAM; INSERT INTO q14 VALUES (1);",
		quarantined: map[string]string{"q14": "MyISAM"}},
	{name: "a quarantined table that is dropped and made anew is followed again", same: []string{"q15"}, before: "CREATE TABLE q15 (id INT PRIMARY KEY, v INT); INSERT INTO q15 VALUES (1,1);",
		after: "ALTER TABLE q15 MODIFY v BIGINT; INSERT INTO q15 VALUES (2,2); DROP TABLE q15; CREATE TABLE q15 (id INT PRIMARY KEY, w TEXT); INSERT INTO q15 VALUES (1,'x');"},
}

// foreign are statements on what is not followed; none of them may stop anything. DDL-04, DDL-05, DDL-23
const foreign = `
CREATE DATABASE IF NOT EXISTS DATABASE_NAME_2; CREATE TABLE DATABASE_NAME_2.y (a GEOMETRY); CREATE TABLE DATABASE_NAME_2.x LIKE DATABASE_NAME_2.y;
ALTER TABLE DATABASE_NAME_2.x ADD COLUMN b INT, RENAME COLUMN a TO c, ENGINE=MyISAM; SET SESSION binlog_format='STATEMENT'; INSERT INTO DATABASE_NAME_2.x (b) VALUES (1); SET SESSION binlog_format='ROW';
CREATE VIEW v AS SELECT 1 AS one UNION SELECT 2; CREATE OR REPLACE VIEW v AS SELECT * FROM standing; DROP VIEW v; CREATE TEMPORARY TABLE tmp (a INT); DROP TEMPORARY TABLE tmp;
CREATE USER IF NOT EXISTS 'ddl_user'@'%' IDENTIFIED BY 'S3cret-in-stream'; ALTER USER 'ddl_user'@'%' IDENTIFIED BY 'S3cret-in-stream-2' RETAIN CURRENT PASSWORD; GRANT SELECT ON DATABASE_NAME.* TO 'ddl_user'@'%'; DROP USER 'ddl_user'@'%';
CREATE TRIGGER trg BEFORE INSERT ON standing FOR EACH ROW SET NEW.v = NEW.v + 1; INSERT INTO standing VALUES (5, 5); DROP TRIGGER trg;
CREATE EVENT ev ON SCHEDULE EVERY 1 DAY DO SELECT 1; DROP EVENT ev; CREATE FUNCTION fn () RETURNS INT DETERMINISTIC RETURN 1; DROP FUNCTION fn;
ANALYZE TABLE standing; FLUSH TABLES; FLUSH BINARY LOGS; CREATE RESOURCE GROUP rg TYPE = USER; DROP RESOURCE GROUP rg;
CREATE SPATIAL REFERENCE SYSTEM 990001 NAME 'n' DEFINITION 'GEOGCS["n",DATUM["d",SPHEROID["s",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.017453292519943278],AXIS["Lat",NORTH],AXIS["Lon",EAST]]'; DROP SPATIAL REFERENCE SYSTEM 990001;
DROP DATABASE DATABASE_NAME_2; BEGIN; INSERT INTO standing VALUES (6, 6); SAVEPOINT s; INSERT INTO standing VALUES (7, 7); ROLLBACK TO SAVEPOINT s; COMMIT;
`

func TestDDL(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	named := func(text string) string { return strings.ReplaceAll(text, "DATABASE_NAME", db) }
	script(t, source.Login, db, "CREATE TABLE standing (id INT PRIMARY KEY, v INT); INSERT INTO standing VALUES (1,1);")
	stories := append(append([]ddlStory{}, followedDDL...), unfollowedDDL...)
	for _, s := range stories {
		script(t, source.Login, db, named(s.before))
	}
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db, "auto_resync = 0")
	for _, s := range stories {
		script(t, source.Login, db, named(s.after)+"INSERT INTO standing SELECT MAX(id)+10, 1 FROM standing;")
	}
	script(t, source.Login, db, named(foreign))
	st := tm.CatchUp(source, db)
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { checkStory(t, source.Login, tm, db, st, s) })
	}
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "standing")
	if p := st.Problem(); p != "" {
		t.Errorf("the database has an error: %s", p)
	}
	for _, secret := range []string{"S3cret-in-stream"} { // OPS-13
		if strings.Contains(tm.Log(), secret) || strings.Contains(st.String(), secret) {
			t.Errorf("a password of the stream is printed: %s", secret)
		}
	}
	tm.VerifyStore()
	tm.Restart()
	st = tm.CatchUp(source, db)
	var same []string
	for _, s := range stories {
		same = append(same, s.same...)
		for table, why := range s.quarantined {
			checkQuarantine(t, tm, db, st.Table(table), table, why)
		}
	}
	tidemarktest.SameTables(t, source.Login, tm.Login, db, same...)
	verifyDecided(t, tm, db, same)
}

// verifyDecided wants `tidemark verify` to call the tables equal; those in quarantine can't be.
func verifyDecided(t *testing.T, tm *tidemarktest.Server, db string, tables []string) {
	t.Helper()
	r := tm.Run("verify", db)
	if r.Code != 2 {
		t.Errorf("verify of a database with quarantined tables: code %d, want 2 (undecided)", r.Code)
	}
	for _, table := range tables {
		if !regexp.MustCompile(`(?m)^` + table + ` +equal `).MatchString(r.Out) {
			t.Errorf("verify does not call %s equal:\n%s%s", table, r.Out, r.Err)
		}
	}
}

// TestTablesHeal: with auto_resync, a table that could not be followed is copied anew beside the stream and is the source's
// again. OPS-03, OPS-04
func TestTablesHeal(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	var names []string
	for _, s := range unfollowedDDL {
		script(t, source.Login, db, s.before)
	}
	script(t, source.Login, db, "CREATE TABLE standing (id INT PRIMARY KEY, v INT); INSERT INTO standing VALUES (1,1);")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	for _, s := range unfollowedDDL {
		script(t, source.Login, db, s.after+"INSERT INTO standing SELECT MAX(id)+10, 1 FROM standing;")
	}
	for table := range strings.FieldsSeq(value(t, source.Login, "SELECT table_name FROM information_schema.tables WHERE table_schema = '%s' AND table_name <> 'q14'", db)) {
		names = append(names, table)
	}
	tm.Await(db, "all tables are live again", func(st tidemarktest.Status) bool {
		for _, table := range names {
			if st.Table(table).State != "live" {
				return false
			}
		}
		return true
	})
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	for _, table := range names {
		if table != "q13" { // partitions are not shown
			sameDefinitions(t, source.Login, tm.Login, db, table)
		}
	}
	tm.Restart()
	script(t, source.Login, db, "INSERT INTO standing VALUES (0, 0); UPDATE q1 SET v = v + 1; DELETE FROM q3b WHERE id = 1;")
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	tm.VerifyStore()
}

func checkStory(t *testing.T, source mysqltest.Login, tm *tidemarktest.Server, db string, st tidemarktest.Status, s ddlStory) {
	for _, table := range s.same {
		if p := st.Table(table).Problem(); p != "" {
			t.Errorf("%s is in quarantine: %s", table, p)
			continue
		}
		tidemarktest.SameTables(t, source, tm.Login, db, table)
		sameDefinitions(t, source, tm.Login, db, table)
	}
	for _, table := range s.gone {
		if st.Table(table).Name != "" {
			t.Errorf("%s is still there", table)
		}
	}
	for table, why := range s.quarantined {
		checkQuarantine(t, tm, db, st.Table(table), table, why)
	}
	for table, rows := range s.frozen {
		if got := value(t, tm.Login, "SELECT * FROM `%s`.`%s` ORDER BY 1", db, table); got != rows {
			t.Errorf("%s keeps rows %q, want %q", table, got, rows)
		}
	}
}

// checkQuarantine wants the reason, the place and the way out.
func checkQuarantine(t *testing.T, tm *tidemarktest.Server, db string, got tidemarktest.Table, table, why string) {
	t.Helper()
	if got.State != "quarantined" {
		t.Errorf("%s is %q, want quarantined (%s)", table, got.State, got.Problem())
		return
	}
	for _, part := range []string{why, "binlog.0", "SYSTEM RESYNC MATERIALIZEDMYSQL TABLE"} {
		if !strings.Contains(got.Problem(), part) {
			t.Errorf("the error of %s does not say %q: %s", table, part, got.Problem())
		}
	}
	// A query that mixes it with a live table would mix points in time.
	err := tm.Exec("SELECT (SELECT COUNT(*) FROM `" + db + "`.`" + table + "`), (SELECT COUNT(*) FROM `" + db + "`.standing)")
	if err == nil || !strings.Contains(err.Error(), table) {
		t.Errorf("a query over %s and a live table gave %v, want a refusal", table, err)
	}
}
