package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// imageModes are the ways in which a session may log less than whole rows, and one in which it does not.
var imageModes = []string{
	"SET SESSION binlog_row_image='MINIMAL', binlog_row_value_options='';\n",
	"SET SESSION binlog_row_image='NOBLOB', binlog_row_value_options='';\n",
	"SET SESSION binlog_row_image='FULL', binlog_row_value_options='PARTIAL_JSON';\n",
	"SET SESSION binlog_row_image='MINIMAL', binlog_row_value_options='PARTIAL_JSON';\n",
	"SET SESSION binlog_row_image='NOBLOB', binlog_row_value_options='PARTIAL_JSON';\n",
	"SET SESSION binlog_row_image='FULL', binlog_row_value_options='';\n",
}

const partialTables = `CREATE TABLE ri (id INT PRIMARY KEY, a INT NULL, t TEXT NULL, UNIQUE(a)); INSERT INTO ri VALUES (1,4,'keep');
	CREATE TABLE j (id INT PRIMARY KEY, doc JSON, n INT, other JSON); INSERT INTO j VALUES (1, '{"a": {"b": [1, 2, 3]}, "x": "` + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" + `", "n": 1.50}', 1, NULL);
	CREATE TABLE d (id INT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(20) DEFAULT 'dé', ts TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), e INT NOT NULL, t TEXT,
		v INT AS (a * 2) VIRTUAL, s VARCHAR(40) AS (CONCAT(b, '!')) STORED, en ENUM('x','y') NOT NULL, dt DATE DEFAULT '2024-02-30', bt BIT(9) DEFAULT b'101', de DECIMAL(5,2) DEFAULT 1, bl BLOB, x VARCHAR(9) INVISIBLE DEFAULT 'inv');
	CREATE TABLE pk2 (a INT, b VARCHAR(20) CHARACTER SET latin1, v INT, t LONGTEXT, PRIMARY KEY (b, a)); INSERT INTO pk2 VALUES (1,'é',1,REPEAT('t',100)),(2,'x',2,NULL);
	CREATE TABLE uq (a INT NOT NULL, b TEXT, c INT, UNIQUE (a), UNIQUE (c)); INSERT INTO uq VALUES (1,'b',3),(2,'c',4);
	CREATE TABLE px (name TEXT NOT NULL, v INT, w BLOB, PRIMARY KEY (name(4))); INSERT INTO px VALUES ('abcdX',1,'w'),('bbbbb',2,NULL);
	CREATE TABLE np (a INT, b TEXT, c INT DEFAULT 4, j JSON); INSERT INTO np (a, j) VALUES (1,'{"k": 1}'),(1,'{"k": 1}'),(2,NULL);
`

// partialChanges are what TYPE-18 and TYPE-15 report, and more, in each mode.
const partialChanges = `UPDATE ri SET a=a+1; UPDATE ri SET a=NULL; UPDATE ri SET id=id+1; INSERT INTO ri (id) VALUES (100); UPDATE ri SET t='x' WHERE id=100; DELETE FROM ri WHERE id=100;
	UPDATE j SET doc=JSON_SET(doc,'$.a.b[1]',JSON_OBJECT('k',1.50)), n=n+1 WHERE id=1; UPDATE j SET doc=JSON_REMOVE(doc,'$.a.b[0]') WHERE id=1; UPDATE j SET doc=JSON_SET(doc,'$.a.b',JSON_ARRAY(1,2,3)), other=doc; UPDATE j SET other=JSON_SET(other,'$.new','é"'), n=n+1; UPDATE j SET id=id+1; UPDATE j SET n=n+1;
	BEGIN; UPDATE j SET doc=JSON_SET(doc,'$.a.b[0]',7); UPDATE j SET doc=JSON_SET(doc,'$.a.b[1]','y'); UPDATE j SET id=id+1; UPDATE j SET doc=JSON_REMOVE(doc,'$.a.b[2]'); COMMIT;
	INSERT INTO d () VALUES (), (); INSERT INTO d (t, a) VALUES ('t', NULL); UPDATE d SET a=a+1; UPDATE d SET t=CONCAT(IFNULL(t,''),'z') WHERE id%2=0; UPDATE d SET b='q', bl=REPEAT(X'00ff', 200) WHERE id%3=0; UPDATE d SET x='seen' WHERE id%4=1; DELETE FROM d WHERE id%7=6;
	UPDATE pk2 SET v=v+1; UPDATE pk2 SET b=CONCAT(b,'é') WHERE a=1; UPDATE pk2 SET a=a+10 ORDER BY a DESC; UPDATE pk2 SET t=REPEAT('u',200) WHERE v%2=0; INSERT INTO pk2 (a,b) VALUES (0,''); UPDATE pk2 SET t='' WHERE a=0; DELETE FROM pk2 WHERE a=0;
	BEGIN; UPDATE uq SET a=99 WHERE a=1; UPDATE uq SET a=1 WHERE a=2; UPDATE uq SET a=2 WHERE a=99; COMMIT; UPDATE uq SET b=CONCAT(b,'q'); REPLACE INTO uq VALUES (7,'new',3); DELETE FROM uq WHERE a=7; INSERT INTO uq VALUES (2,'back',3) ON DUPLICATE KEY UPDATE b='dup'; INSERT IGNORE INTO uq VALUES (1,'one',8),(2,'two',9);
	UPDATE px SET v=v+1; UPDATE px SET name=CONCAT(name,'Y') WHERE v%2=0; UPDATE px SET w='ww' WHERE w IS NULL;
	INSERT INTO np (a) VALUES (1),(1),(3); UPDATE np SET a=2 WHERE a=1 LIMIT 1; UPDATE np SET b='x' WHERE a=2 LIMIT 2; UPDATE np SET j=JSON_SET(j,'$.k',2) WHERE j IS NOT NULL LIMIT 1; DELETE FROM np WHERE a=2 LIMIT 1; UPDATE np SET c=c+1;
	XA START 'p'; UPDATE j SET n=n+1; UPDATE pk2 SET v=v+100; UPDATE d SET e=e+1; XA END 'p'; XA PREPARE 'p'; XA COMMIT 'p';
	BEGIN; UPDATE pk2 SET v=0; SAVEPOINT s; UPDATE pk2 SET v=1; ROLLBACK TO s; COMMIT;
`

var partialNames = []string{"ri", "j", "d", "pk2", "uq", "px", "np"}

// TestPartialImages: TYPE-15, TYPE-18. Columns that an image leaves out stay as they are, wherever the row is stored.
func TestPartialImages(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, lenient+partialTables)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	for round := range 2 {
		for _, mode := range imageModes {
			script(t, source.Login, db, lenient+mode+partialChanges)
			if round == 1 {
				tm.Kill()
				tm.Start()
			}
		}
		allLive(t, tm.CatchUp(source, db))
		tidemarktest.SameTables(t, source.Login, tm.Login, db, partialNames...)
	}
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestPartialImagesOfEveryType: updates of one column leave those of all other types as they are.
func TestPartialImagesOfEveryType(t *testing.T) {
	t.Parallel()
	source, r := sharedSource(t, abroad...), newRandom(t)
	db := source.FreshDatabase(t)
	cases := slices.DeleteFunc(allTypeCases(), func(c typeCase) bool { return strings.Contains(c.column, "000)") }) // rows have a limit
	const width = 12
	var names []string
	before := lenient
	values := make([][]string, len(cases))
	for i, c := range cases {
		values[i] = c.literals(r)
	}
	for at := 0; at < len(cases); at += width {
		name := fmt.Sprintf("w%d", at)
		names = append(names, name)
		var columns []string
		for i := at; i < min(at+width, len(cases)); i++ {
			columns = append(columns, fmt.Sprintf("c%d %s NULL", i, cases[i].column))
		}
		before += fmt.Sprintf("CREATE TABLE %s (id INT PRIMARY KEY, %s);\n", name, strings.Join(columns, ", "))
	}
	change := func(at, rows int) string {
		var b strings.Builder
		pick := func() string {
			i := at + r.IntN(min(width, len(cases)-at))
			return fmt.Sprintf("c%d = %s", i, values[i][r.IntN(len(values[i]))])
		}
		for id := range rows {
			fmt.Fprintf(&b, "INSERT IGNORE INTO w%d SET id = %d, %s;\n", at, id, pick())
			fmt.Fprintf(&b, "UPDATE w%d SET %s WHERE id = %d;\nUPDATE w%d SET %s WHERE id %% 7 = %d;\n", at, pick(), r.IntN(rows), at, pick(), r.IntN(7))
			if r.IntN(6) == 0 {
				fmt.Fprintf(&b, "UPDATE IGNORE w%d SET id = id + 1 WHERE id = %d;\nDELETE FROM w%d WHERE id = %d;\n", at, r.IntN(rows), at, r.IntN(rows))
			}
		}
		return b.String()
	}
	script(t, source.Login, db, before)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	for _, mode := range imageModes[:5] {
		text := lenient + mode
		for at := 0; at < len(cases); at += width {
			text += change(at, 12)
		}
		script(t, source.Login, db, text)
	}
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestPartialImagesOfParts: the columns that are left out stand in parts, and there are more of them than fit in memory at
// once with the batch.
func TestPartialImagesOfParts(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, `SET cte_max_recursion_depth=1000000; CREATE TABLE big (id INT PRIMARY KEY, v INT, t TEXT, j JSON);
		INSERT INTO big WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 79999) SELECT i, i, CONCAT(REPEAT('text ', 100), i), JSON_OBJECT('i', i, 'pad', REPEAT('p', 60)) FROM n;`)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, imageModes[0]+"UPDATE big SET v=v+1; UPDATE big SET v=v+1 WHERE id%100=0; BEGIN; UPDATE big SET id=id+100000 WHERE id%10=0; UPDATE big SET v=0 WHERE id>100000; COMMIT;")
	script(t, source.Login, db, imageModes[3]+"UPDATE big SET j=JSON_SET(j,'$.i',-1) WHERE id%3=0; UPDATE big SET t='short' WHERE id%1000=1; DELETE FROM big WHERE id%5=1;")
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "big")
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestSourceThatLogsPartialRows: a source whose own setting is to log as little as it can is copied and followed.
func TestSourceThatLogsPartialRows(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true, Args: []string{"--binlog-row-image=MINIMAL", "--binlog-row-value-options=PARTIAL_JSON", "--binlog-row-metadata=FULL"}})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, lenient+partialTables)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, lenient+partialChanges)
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, partialNames...)
	verifyEqual(t, tm, db)
}
