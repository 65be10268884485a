package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// keylessStories are tables without a key that identifies their rows, and what happens to them.
var keylessStories = []keyStory{
	{"KEY-03 one of several equal rows", "np",
		"CREATE TABLE np (a INT NULL, b VARCHAR(9) NULL); INSERT INTO np VALUES (1,'x'),(1,'x'),(NULL,NULL),(NULL,NULL),(2,NULL);",
		`DELETE FROM np WHERE a=1 LIMIT 1; UPDATE np SET b='q' WHERE a IS NULL LIMIT 1; INSERT INTO np VALUES (1,'x'),(2,NULL),(2,NULL);
		DELETE FROM np WHERE a=2 LIMIT 2; UPDATE np SET a=a+1; UPDATE np SET a=a, b=CONCAT(b,'!') LIMIT 2;`},
	{"KEY-07 unique expression", "fx",
		"CREATE TABLE fx (j JSON NOT NULL, v INT, UNIQUE ((CAST(j->>'$.id' AS UNSIGNED)))); INSERT INTO fx VALUES ('{\"id\": 1}',1),('{\"id\": 2, \"x\": [1.50, null]}',2);",
		`UPDATE fx SET v=v+1; UPDATE fx SET j=JSON_SET(j,'$.id',7) WHERE v=3; INSERT INTO fx VALUES ('{}',1),('{}',1); DELETE FROM fx WHERE v=1 LIMIT 1;`},
	{"KEY-07 primary key over the beginning of values", "px",
		"CREATE TABLE px (name TEXT NOT NULL, v INT, PRIMARY KEY (name(4))); INSERT INTO px VALUES ('abcdX',1),('bbbbb',2),('c',3);",
		"UPDATE px SET name='abcdY' WHERE v=1; REPLACE INTO px VALUES ('bbbbZ',9); UPDATE px SET name=CONCAT(name,name), v=v+1; DELETE FROM px WHERE v=4;"},
	{"KEY-07 unique key over the beginning of values", "pu",
		"CREATE TABLE pu (name VARCHAR(20) NOT NULL, v INT, UNIQUE (name(4))); INSERT INTO pu VALUES ('abcdX',1),('bbbbb',2),('c',3);",
		"UPDATE pu SET name='abcdY' WHERE v=1; REPLACE INTO pu VALUES ('bbbbZ',9); UPDATE pu SET name=CONCAT(name,name), v=v+1; DELETE FROM pu WHERE v=4;"},
	{"nullable unique key", "nu",
		"CREATE TABLE nu (a INT NULL UNIQUE, b INT); INSERT INTO nu VALUES (1,1),(NULL,2),(NULL,2),(3,3);",
		"REPLACE INTO nu VALUES (1,5); INSERT INTO nu VALUES (3,1) ON DUPLICATE KEY UPDATE b=9; INSERT IGNORE INTO nu VALUES (3,7),(NULL,2); DELETE FROM nu WHERE b=2 LIMIT 1; UPDATE nu SET a=a+10 ORDER BY a DESC;"},
	{"KEY-14 -0, 0 and other floating point", "fl",
		"CREATE TABLE fl (d DOUBLE, f FLOAT); INSERT INTO fl VALUES (0e0,0e0),(-0e0,-0e0),(0e0,-0e0),(0.1,0.1),(0.1,0.1),(1e300,1e-30);",
		"INSERT INTO fl VALUES (-0e0,0e0),(-0e0,-0e0); UPDATE fl SET f=1 WHERE d=0 LIMIT 3; DELETE FROM fl WHERE d=0.1 LIMIT 1; DELETE FROM fl WHERE d=0 AND f=0 LIMIT 1; UPDATE fl SET d=-0e0 WHERE d=0;"},
	{"INSERT .. SELECT from itself", "db2",
		"CREATE TABLE db2 (a INT, s VARCHAR(100)); INSERT INTO db2 VALUES (1,'x'),(NULL,NULL),(2,REPEAT('y',100));",
		strings.Repeat("INSERT INTO db2 SELECT * FROM db2; ", 13) + "DELETE FROM db2 WHERE a=1 LIMIT 5000; UPDATE db2 SET s='z' WHERE a=2 LIMIT 7000; DELETE FROM db2 WHERE a IS NULL;"},
	{"TRUNCATE", "tr",
		"CREATE TABLE tr (a INT); INSERT INTO tr VALUES (1),(1),(2);",
		"DELETE FROM tr LIMIT 1; TRUNCATE tr; INSERT INTO tr VALUES (1),(1),(1); DELETE FROM tr LIMIT 1;"},
	{"savepoints", "sp",
		"CREATE TABLE sp (a INT, b INT); INSERT INTO sp VALUES (1,1),(1,1);",
		"BEGIN; INSERT INTO sp VALUES (2,2); SAVEPOINT s; DELETE FROM sp WHERE a=1 LIMIT 1; INSERT INTO sp VALUES (3,3),(3,3); ROLLBACK TO s; INSERT INTO sp VALUES (2,2); DELETE FROM sp WHERE a=2 LIMIT 1; COMMIT; BEGIN; DELETE FROM sp; ROLLBACK;"},
	{"XA", "xa",
		"CREATE TABLE xa (a INT, b INT); INSERT INTO xa VALUES (1,1),(1,1),(2,2);",
		`XA START 'k'; DELETE FROM xa WHERE a=1 LIMIT 1; INSERT INTO xa VALUES (4,4),(4,4); XA END 'k'; XA PREPARE 'k'; XA COMMIT 'k';
		XA START 'l'; DELETE FROM xa; XA END 'l'; XA PREPARE 'l'; XA ROLLBACK 'l'; XA START 'm'; UPDATE xa SET b=7 WHERE a=4 LIMIT 1; XA END 'm'; XA COMMIT 'm' ONE PHASE;`},
	{"ADD COLUMN keeps old rows, and makes new ones their equals", "ac",
		"CREATE TABLE ac (a INT, b VARCHAR(9)); INSERT INTO ac VALUES (1,'x'),(1,'x'),(2,'y'),(NULL,NULL);",
		`ALTER TABLE ac ADD c INT DEFAULT 7; INSERT INTO ac VALUES (1,'x',7),(1,'x',8),(1,'x',NULL); DELETE FROM ac WHERE a=1 AND c=7 LIMIT 2; ALTER TABLE ac ADD d DATETIME DEFAULT '2024-02-30' FIRST, ADD e VARCHAR(9) CHARACTER SET latin1 NOT NULL;
		UPDATE ac SET b='z' WHERE c=7 LIMIT 1; INSERT INTO ac (a,b) VALUES (2,'y'); DELETE FROM ac WHERE a=2 LIMIT 1; DELETE FROM ac WHERE a IS NULL; ALTER TABLE ac ADD INDEX (a), ADD UNIQUE (c, d, e, b, a);`},
	{"a table that comes later", "ct",
		"",
		"CREATE TABLE ct (a INT, j JSON); INSERT INTO ct VALUES (1,'[1, 2]'),(1,'[1, 2]'); CREATE TABLE ct2 LIKE ct; INSERT INTO ct2 SELECT * FROM ct; DELETE FROM ct LIMIT 1; DROP TABLE ct2;"},
	{"generated columns and invisible ones", "ge",
		"CREATE TABLE ge (a INT, v INT AS (a*2) VIRTUAL, s VARCHAR(20) AS (CONCAT('k',a)) STORED, i INT INVISIBLE DEFAULT 3); INSERT INTO ge (a) VALUES (1),(1),(NULL);",
		"INSERT INTO ge (a,i) VALUES (1,3),(1,4); DELETE FROM ge WHERE a=1 AND i=3 LIMIT 2; UPDATE ge SET a=a+1;"},
	{"large values", "lv",
		"CREATE TABLE lv (t LONGTEXT, b LONGBLOB); INSERT INTO lv VALUES (REPEAT('é', 500000), REPEAT(X'00ff', 500000)), (REPEAT('é', 500000), REPEAT(X'00ff', 500000)), (REPEAT('x',63), REPEAT('x',64));",
		"INSERT INTO lv VALUES (REPEAT('é', 500001), NULL), (REPEAT('x',64), REPEAT('x',63)); DELETE FROM lv WHERE LENGTH(b)=1000000 LIMIT 1; UPDATE lv SET b='short' WHERE b IS NULL;"},
}

// TestTablesWithoutKey: KEY-03, KEY-07, KEY-14. They are multisets.
func TestTablesWithoutKey(t *testing.T) {
	t.Parallel()
	tellKeyStories(t, keylessStories)
}

// TestEveryTypeWithoutKey: rows of every type are found by all their values, whichever way they arrived.
func TestEveryTypeWithoutKey(t *testing.T) {
	t.Parallel()
	source, r := sharedSource(t, abroad...), newRandom(t)
	db := source.FreshDatabase(t)
	before, after := lenient, lenient
	var names []string
	for _, c := range allTypeCases() {
		name := "m_" + c.table
		names = append(names, name)
		before += fmt.Sprintf("CREATE TABLE %s (v %s NULL, n INT);\n", name, c.column)
		for i, v := range c.literals(r) {
			insert := fmt.Sprintf("INSERT INTO %s VALUES (%s, %d), (%s, %d);\n", name, v, i%3, v, i%3)
			if i%2 == 0 {
				before += insert
			} else {
				after += insert
			}
		}
		after += fmt.Sprintf("DELETE FROM %s WHERE n=0 LIMIT 3; UPDATE %s SET n=n+1 LIMIT 4; DELETE FROM %s LIMIT 1; UPDATE %s SET v=NULL LIMIT 2;\n", name, name, name, name)
	}
	script(t, source.Login, db, before)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, after)
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	// all that came by the copy is found by the stream's images
	after = lenient
	for _, name := range names {
		after += fmt.Sprintf("UPDATE %s SET n=n+100; DELETE FROM %s WHERE v IS NOT NULL;\n", name, name)
	}
	script(t, source.Login, db, after)
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// bagChange is a random change of a table bag (a INT, b VARCHAR, c JSON) with few different rows.
func bagChange(r *rand.Rand) string {
	row := func() string {
		return fmt.Sprintf("(%s, %s, %s)", []string{"1", "2", "NULL"}[r.IntN(3)], []string{"'x'", "'y '", "NULL", "REPEAT('z', 70)"}[r.IntN(4)], []string{"NULL", "'[1.5, null]'", "'{}'"}[r.IntN(3)])
	}
	where := []string{"a=1", "a IS NULL", "b='x'", "b IS NULL", "c IS NULL", "a=2 AND c IS NOT NULL"}[r.IntN(6)]
	switch r.IntN(8) {
	case 0, 1:
		return "INSERT INTO bag VALUES " + row() + ", " + row() + ", " + row()
	case 2:
		return fmt.Sprintf("INSERT INTO bag SELECT * FROM bag LIMIT %d", 1+r.IntN(200))
	case 3, 4:
		return fmt.Sprintf("DELETE FROM bag WHERE %s LIMIT %d", where, 1+r.IntN(40))
	case 5:
		return fmt.Sprintf("UPDATE bag SET a=%d WHERE %s LIMIT %d", 1+r.IntN(2), where, 1+r.IntN(40))
	case 6:
		return fmt.Sprintf("UPDATE bag SET b='x', c=JSON_ARRAY(a) WHERE %s LIMIT %d", where, 1+r.IntN(10))
	}
	return fmt.Sprintf("DELETE FROM bag WHERE %s LIMIT %d", where, 1+r.IntN(300))
}

// TestRandomBagThroughKills: a random history of a table without a key, in transactions that are rolled back in part, by
// XA, and with kills of tidemark between.
func TestRandomBagThroughKills(t *testing.T) {
	t.Parallel()
	source, r := sharedSource(t, abroad...), newRandom(t)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, "CREATE TABLE bag (a INT, b VARCHAR(100), c JSON); INSERT INTO bag VALUES (1,'x',NULL),(1,'x',NULL),(NULL,NULL,'{}');")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db, "max_rows_in_buffer = 50")
	for round := range 6 {
		var b strings.Builder
		for i := range 150 {
			bagTransaction(&b, r, fmt.Sprintf("x%d-%d", round, i))
		}
		script(t, source.Login, db, b.String())
		if round%2 == 0 {
			tm.Kill()
			tm.VerifyStoreOffline()
			tm.Start()
		}
		allLive(t, tm.CatchUp(source, db))
		tidemarktest.SameTables(t, source.Login, tm.Login, db, "bag")
	}
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

func bagTransaction(b *strings.Builder, r *rand.Rand, xid string) {
	changes := func() {
		for range 1 + r.IntN(3) {
			b.WriteString(bagChange(r) + ";\n")
		}
	}
	switch r.IntN(5) {
	case 0:
		b.WriteString("BEGIN;\n")
		changes()
		b.WriteString("SAVEPOINT s;\n")
		changes()
		b.WriteString("ROLLBACK TO s;\n")
		changes()
		b.WriteString("COMMIT;\n")
	case 1:
		fmt.Fprintf(b, "XA START '%s';\n", xid)
		changes()
		fmt.Fprintf(b, "XA END '%s'; XA PREPARE '%s'; XA %s '%s';\n", xid, xid, []string{"COMMIT", "ROLLBACK"}[r.IntN(2)], xid)
	case 2:
		b.WriteString("BEGIN;\n")
		changes()
		b.WriteString("COMMIT;\n")
	default:
		changes()
	}
}

// TestGeneratedInvisibleKeyHidden: CLOUD-12. The source hides its generated primary keys from those who read definitions.
func TestGeneratedInvisibleKeyHidden(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true, Args: []string{"--sql-generate-invisible-primary-key=ON", "--show-gipk-in-create-table-and-information-schema=OFF"}})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, "CREATE TABLE g (w INT); INSERT INTO g VALUES (3),(3);")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, "INSERT INTO g VALUES (4); DELETE FROM g WHERE w=3 LIMIT 1; UPDATE g SET w=w+1; CREATE TABLE h (w INT); INSERT INTO h VALUES (1),(1); DELETE FROM h LIMIT 1;")
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.Same(t, source.Login, tm.Login, db, tidemarktest.Query{Name: "g", Text: "SELECT my_row_id, w FROM g"}, tidemarktest.Query{Name: "h", Text: "SELECT my_row_id, w FROM h"})
	verifyEqual(t, tm, db)
}
