package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// keyTypes are the types whose values make keys here, by the table of their typeCase.
var keyTypes = []string{
	"i8", "i8u", "i16", "i16u", "i24", "i24u", "i32", "i32u", "i64", "i64u", "i32z", "year4",
	"dec1", "dec10", "dec5_5", "dec13_4", "dec18_9", "dec38_10", "dec38_38", "dec39_1", "dec65_30", "dec_z",
	"d", "dt0", "dt3", "dt6", "ts0", "ts6", "t0", "t3", "t6",
	"c10", "c5bin", "c255l", "v60", "vci", "b5", "b16", "vb20",
}

// keyScripts make a table k_<type> whose key is the type alone and one kk_<type> where it stands between two integers.
// INSERT IGNORE lets the server judge which values are the same key.
func keyScripts(c typeCase, r *rand.Rand) (before, after string) {
	plain, composite := "k_"+c.table, "kk_"+c.table
	before = fmt.Sprintf("CREATE TABLE %s (v %s NOT NULL PRIMARY KEY, n INT);\n", plain, c.column) +
		fmt.Sprintf("CREATE TABLE %s (a TINYINT NOT NULL, v %s NOT NULL, b INT NOT NULL, n INT, PRIMARY KEY (b, v, a));\n", composite, c.column)
	insert := func(ids int, values []string) string {
		var b strings.Builder
		for i, v := range values {
			fmt.Fprintf(&b, "INSERT IGNORE INTO %s VALUES (%s, %d);\nINSERT IGNORE INTO %s VALUES (%d, %s, %d, %d);\n", plain, v, ids+i, composite, i%3, v, i%2, ids+i)
		}
		return b.String()
	}
	values := c.literals(r)[1:]
	half := len(values) / 2
	before += insert(0, values[:half])
	after = insert(1000, values[half:])
	for _, table := range []string{plain, composite} {
		after += fmt.Sprintf("UPDATE %s SET n = n + 1;\n", table)
		// moves keys on to values that are free, and leaves what is not
		for i, v := range values {
			after += fmt.Sprintf("UPDATE IGNORE %s SET v = %s, n = n + 10 WHERE n %% 7 = %d;\n", table, values[(i+3)%len(values)], i%7)
			if i%4 == 0 {
				after += fmt.Sprintf("DELETE FROM %s WHERE v = %s;\n", table, v)
			}
		}
		after += fmt.Sprintf("REPLACE INTO %s (%s) SELECT * FROM (SELECT * FROM %s ORDER BY n LIMIT 3) AS x;\n", table, strings.Join(columnsOf(table, plain), ", "), table)
	}
	return before, after
}

func columnsOf(table, plain string) []string {
	if table == plain {
		return []string{"v", "n"}
	}
	return []string{"a", "v", "b", "n"}
}

// TestEveryTypeOfKey: rows are found again under keys of every type, alone and in the middle of composite ones.
func TestEveryTypeOfKey(t *testing.T) {
	t.Parallel()
	source, r := sharedSource(t, abroad...), newRandom(t)
	db := source.FreshDatabase(t)
	byTable := map[string]typeCase{}
	for _, c := range allTypeCases() {
		byTable[c.table] = c
	}
	before, after := lenient, lenient
	var names []string
	for _, table := range keyTypes {
		b, a := keyScripts(byTable[table], r)
		before, after = before+b, after+a
		names = append(names, "k_"+table, "kk_"+table)
	}
	script(t, source.Login, db, before)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, after)
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// keyStory is a table, what is there before it is copied, and what comes through the stream.
type keyStory struct {
	name, table   string
	before, after string
}

// keyStories are changes of keys, each on a table of its own; they come through the stream.
var keyStories = []keyStory{
	{"KEY-01 update of a composite key", "k",
		"CREATE TABLE k (a INT, b INT, v INT, PRIMARY KEY (a, b)); INSERT INTO k VALUES (1,1,10),(2,2,20);",
		"UPDATE k SET b=9 WHERE a=1; UPDATE k SET a=a+1 ORDER BY a DESC;"},
	{"KEY-02 swap and shift", "sw",
		"CREATE TABLE sw (id INT PRIMARY KEY, v CHAR(1), UNIQUE (v)); INSERT INTO sw VALUES (1,'a'),(2,'b'),(3,'c');",
		`BEGIN; UPDATE sw SET id=0 WHERE id=1; UPDATE sw SET id=1 WHERE id=2; UPDATE sw SET id=2 WHERE id=0; COMMIT;
		UPDATE sw SET id=id+1 ORDER BY id DESC;
		BEGIN; DELETE FROM sw WHERE id=2; INSERT INTO sw VALUES (2,'z'); DELETE FROM sw WHERE id=2; INSERT INTO sw VALUES (2,'y'); COMMIT;`},
	{"KEY-05 spelling under an insensitive collation", "ci",
		"CREATE TABLE ci (k VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v INT); INSERT INTO ci VALUES ('Müller',1),('a',1),('b',1),('ß',1);",
		`UPDATE ci SET k='MULLER',v=2 WHERE k='Müller'; REPLACE INTO ci VALUES ('muller',3); UPDATE ci SET k='A' WHERE k='a';
		INSERT INTO ci VALUES ('B',5) ON DUPLICATE KEY UPDATE v=v+1; INSERT INTO ci VALUES ('B',5) ON DUPLICATE KEY UPDATE k='B', v=9; DELETE FROM ci WHERE k='SS';`},
	{"KEY-05 latin1", "cl",
		"CREATE TABLE cl (k CHAR(20) CHARACTER SET latin1 PRIMARY KEY, v INT); INSERT INTO cl VALUES ('é',1),('x',1);",
		"UPDATE cl SET k='É' WHERE k='é'; REPLACE INTO cl VALUES ('X',3); DELETE FROM cl WHERE k='É'; INSERT INTO cl VALUES ('e',4);"},
	{"KEY-11 REPLACE hits another unique key", "su",
		"CREATE TABLE su (id INT PRIMARY KEY, email VARCHAR(50) UNIQUE); INSERT INTO su VALUES (10,'mail-1'),(11,'mail-2');",
		"REPLACE INTO su VALUES (70,'mail-1');"},
	{"KEY-13 many changes of one row in one transaction", "hot",
		"CREATE TABLE hot (id INT PRIMARY KEY, v INT); INSERT INTO hot VALUES (1,0);",
		"BEGIN; " + strings.Repeat("UPDATE hot SET v=v+1; ", 500) + "COMMIT;"},
	{"KEY-14 wide key", "fk",
		"CREATE TABLE fk (t DATETIME(6), s VARCHAR(700), b BINARY(8), PRIMARY KEY (t, s, b)); INSERT INTO fk VALUES ('2024-01-01 00:00:00.000001', REPEAT('é',700), X'0100'), ('2024-01-01','',''), ('2024-01-01','',X'01');",
		"UPDATE fk SET s='x' WHERE b=X'0100000000000000' AND s<>''; DELETE FROM fk WHERE s='';"},
	{"KEY-15 further unique keys", "mu",
		"CREATE TABLE mu (id INT PRIMARY KEY, a VARCHAR(20) UNIQUE, b INT, UNIQUE (b)); INSERT INTO mu VALUES (1,'x',1),(2,'y',2);",
		"BEGIN; UPDATE mu SET a='t' WHERE id=1; UPDATE mu SET a='x', b=9 WHERE id=2; UPDATE mu SET a='y', b=2 WHERE id=1; COMMIT;"},
	{"unique key of NOT NULL columns in place of a primary key", "uq",
		"CREATE TABLE uq (a INT NULL, b VARCHAR(9) NOT NULL, c INT NOT NULL, UNIQUE KEY first_null (a), UNIQUE KEY good (c, b)); INSERT INTO uq VALUES (NULL,'x',1),(NULL,'x',2),(5,'y',1);",
		"UPDATE uq SET c=c+1 ORDER BY c DESC; DELETE FROM uq WHERE b='y'; INSERT INTO uq VALUES (NULL,'Y',2);"},
	{"TYPE-09 binary key with zeros at its end", "bz",
		"CREATE TABLE bz (id BINARY(16) PRIMARY KEY, v INT, x BINARY(4)); INSERT INTO bz VALUES (UNHEX('AABBCCDDEEFF00112233445566770000'),1,X'01020000'), (X'00',2,NULL), (X'AA',3,X'00');",
		"UPDATE bz SET v=v+1; DELETE FROM bz WHERE v=2; UPDATE bz SET id=X'AA000001' WHERE id=X'AA000000000000000000000000000000';"},
	{"EXACT-14 insert, delete, insert of one key", "idk",
		"CREATE TABLE idk (id INT PRIMARY KEY, k INT); INSERT INTO idk VALUES (9,9);",
		"BEGIN; INSERT INTO idk VALUES (1,1); DELETE FROM idk WHERE id=1; INSERT INTO idk VALUES (1,1); UPDATE idk SET id=4 WHERE id=1; INSERT INTO idk VALUES (1,2); DELETE FROM idk WHERE id=9; COMMIT;"},
	{"TYPE-26 generated columns, one of them the key", "gc",
		"CREATE TABLE gc (id INT, a INT, v INT AS (a*2) VIRTUAL, s VARCHAR(20) AS (CONCAT('k',id)) STORED NOT NULL, PRIMARY KEY (s)); INSERT INTO gc (id,a) VALUES (1,5),(2,6);",
		"UPDATE gc SET a=6; UPDATE gc SET id=id+10; INSERT INTO gc (id,a) VALUES (5,NULL); DELETE FROM gc WHERE id=11;"},
	{"CLOUD-12 generated invisible primary key", "gipk",
		"SET sql_generate_invisible_primary_key=ON; CREATE TABLE gipk (w INT); INSERT INTO gipk VALUES (3),(3);",
		"INSERT INTO gipk VALUES (4); DELETE FROM gipk LIMIT 1; UPDATE gipk SET w=w+1;"},
	{"OPS-09 odd names", "some-thing.b",
		"CREATE TABLE `some-thing.b` (id INT PRIMARY KEY, `select` INT, `x``y` INT, `_version` INT, exact INT, `c1` INT, `日本` INT, `a.b` INT); INSERT INTO `some-thing.b` VALUES (1,2,3,4,5,6,7,8);",
		"INSERT INTO `some-thing.b` VALUES (2,2,3,4,5,6,7,8); UPDATE `some-thing.b` SET `x``y`=9;"},
	{"PROTO-17 several tables in one statement", "ja",
		"CREATE TABLE ja (id INT PRIMARY KEY, v INT); CREATE TABLE jb (id INT PRIMARY KEY, v INT); INSERT INTO ja VALUES (1,1),(2,2),(3,3); INSERT INTO jb SELECT * FROM ja;",
		"UPDATE ja JOIN jb USING (id) SET ja.v=10, jb.v=20 WHERE id<3; DELETE ja,jb FROM ja JOIN jb USING (id) WHERE ja.id=3; INSERT INTO ja SELECT id+100, v FROM jb;"},
}

func TestKeysThatChange(t *testing.T) {
	t.Parallel()
	tellKeyStories(t, keyStories, "jb")
}

// tellKeyStories wants each story to end with the source's rows, all of them in one database. more are further tables that
// they make.
func tellKeyStories(t *testing.T, stories []keyStory, more ...string) {
	t.Helper()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	var names []string
	for _, s := range stories {
		script(t, source.Login, db, lenient+s.before)
		names = append(names, s.table)
	}
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	for _, s := range stories {
		script(t, source.Login, db, lenient+s.after)
	}
	st := tm.CatchUp(source, db)
	for i, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			if p := st.Table(names[i]).Problem(); p != "" {
				t.Errorf("in quarantine: %s", p)
			}
			tidemarktest.SameTables(t, source.Login, tm.Login, db, names[i])
		})
	}
	sameDefinitions(t, source.Login, tm.Login, db, append(names, more...)...)
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}
