package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// TestCopyUnderLoad: a copy of a database that changes all the time, its definitions too, ends at one point, and the
// stream takes over there. SNAP-01, SNAP-03, SNAP-04, SNAP-19
func TestCopyUnderLoad(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, `SET cte_max_recursion_depth=1000000;
		CREATE TABLE num (id INT PRIMARY KEY, v VARCHAR(100), n INT); INSERT INTO num WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 150000) SELECT i, SHA2(i, 256), 0 FROM n;
		CREATE TABLE busy (id INT PRIMARY KEY, n INT); INSERT INTO busy SELECT id, 0 FROM num WHERE id <= 2000; CREATE TABLE late (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO late VALUES (1,'x');`)
	stop := busyWriters(t, source, db)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	must(t, tm.Exec(tidemarktest.CreateStatement(source.Login, db, db)))
	var changed []string
	for k := range 8 {
		script(t, source.Login, db, fmt.Sprintf("CREATE TABLE n%d (id INT PRIMARY KEY); INSERT INTO n%d VALUES (1); ALTER TABLE late ADD COLUMN c%d INT NOT NULL DEFAULT 7 FIRST; INSERT INTO late (id, v) VALUES (%d, 'x');", k, k, k, 100+k))
		changed = append(changed, fmt.Sprintf("n%d", k))
	}
	tm.Await(db, "it streams", func(st tidemarktest.Status) bool { return st.State == "streaming" })
	stop()
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, append(changed, "busy", "late")...)
	tidemarktest.Same(t, source.Login, tm.Login, db, tidemarktest.Query{Name: "sums of num", Text: "SELECT COUNT(*), SUM(n), MIN(v), MAX(v) FROM num"})
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestKilledWhileCopying: a copy that a kill interrupts leaves nothing readable by half, and is done again.
func TestKilledWhileCopying(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, `SET cte_max_recursion_depth=1000000;
		CREATE TABLE num (id INT PRIMARY KEY, v VARCHAR(100)); INSERT INTO num WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 200000) SELECT i, SHA2(i, 256) FROM n; CREATE TABLE small LIKE num; INSERT INTO small VALUES (1,'x');`)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	must(t, tm.Exec(tidemarktest.CreateStatement(source.Login, db, db)))
	for range 3 {
		err := tm.Exec("SELECT COUNT(*) FROM `" + db + "`.small")
		if err == nil && tm.Status(db).State != "streaming" {
			t.Error("a database answers before it is copied")
		} else if err != nil && !strings.Contains(err.Error(), db) {
			t.Errorf("the refusal does not name the database: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
		tm.Kill()
		tm.VerifyStoreOffline()
		tm.Start()
	}
	tm.Await(db, "it streams", func(st tidemarktest.Status) bool { return st.State == "streaming" })
	script(t, source.Login, db, "INSERT INTO small VALUES (2,'y'); DELETE FROM num WHERE id % 2 = 0;")
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "small")
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestCopyCutOff: a copy whose connections break goes on with the chunks that it has not read to their end. SNAP-11, SNAP-16
func TestCopyCutOff(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair+`SET cte_max_recursion_depth=1000000; CREATE TABLE num (id INT PRIMARY KEY, v VARCHAR(100));
		INSERT INTO num WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100000) SELECT i, SHA2(i, 256) FROM n;`)
	proxy := tidemarktest.NewProxy(t, source.Login)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	proxy.CutAfter(1 << 20) // enough to connect, not for the rows
	must(t, tm.Exec(tidemarktest.CreateStatement(proxy.Login, db, db, "max_wait_time_when_mysql_unavailable = 300")))
	tm.Await(db, "its connections have been cut", func(st tidemarktest.Status) bool {
		return st.State == "streaming" || strings.Contains(tm.Log(), "a chunk is read again")
	})
	proxy.CutAfter(0)
	tm.Await(db, "it streams", func(st tidemarktest.Status) bool { return st.State == "streaming" && st.Problem() == "" })
	script(t, source.Login, db, "INSERT INTO a VALUES (3,'x'); DELETE FROM num WHERE id % 3 = 0;")
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}

// TestLongQueryInTheWay: the global lock is not asked for behind a long statement, which would freeze everybody; the
// status says what it waits for. SNAP-02
func TestLongQueryInTheWay(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	long := source.DB(t, db)
	conn, err := long.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	var id int
	must(t, conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
	done := make(chan error, 1)
	go func() {
		_, err := conn.ExecContext(t.Context(), "SELECT id, SLEEP(300) FROM a LIMIT 1")
		done <- err
	}()
	for value(t, source.Login, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID=%d AND TIME>=2 AND INFO LIKE '%%SLEEP%%'", id) != "1" {
		time.Sleep(50 * time.Millisecond)
	}
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	must(t, tm.Exec(tidemarktest.CreateStatement(source.Login, db, db)))
	st := tm.Await(db, "it says what it waits for", func(st tidemarktest.Status) bool { return st.Problem() != "" })
	if !strings.Contains(st.Problem(), fmt.Sprint(id)) {
		t.Errorf("the status does not name session %d: %s", id, st.Problem())
	}
	// nobody stands behind a lock
	if got := value(t, source.Login, "SELECT COUNT(*) FROM `%s`.a", db); got != "2" {
		t.Errorf("a query on the source gives %q", got)
	}
	source.Exec(t, "", fmt.Sprintf("KILL QUERY %d", id))
	<-done
	tm.Await(db, "it streams", func(st tidemarktest.Status) bool { return st.State == "streaming" && st.Problem() == "" })
	script(t, source.Login, db, "INSERT INTO a VALUES (3,'x');")
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, "a", "b")
}
