package integration

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// TestVerify: what differs is named by its key, what only moves on meanwhile is not. OPS-08, PROTO-23
func TestVerify(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, `SET cte_max_recursion_depth=100000;
		CREATE TABLE num (id INT PRIMARY KEY, v VARCHAR(100), n INT); INSERT INTO num WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 30000) SELECT i, SHA2(i, 256), 0 FROM n;
		CREATE TABLE txt (k VARCHAR(20), d DATE, v INT, PRIMARY KEY (k, d)); INSERT INTO txt VALUES ('Anna','2024-01-01',1), ('berta','2024-01-02',2), ('Cäsar','2024-01-03',3), ('dora','2024-01-04',4);
		CREATE TABLE busy (id INT PRIMARY KEY, n INT); INSERT INTO busy SELECT id, 0 FROM num WHERE id <= 500; CREATE TABLE quiet LIKE busy;`)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	stop := busyWriters(t, source, db)
	verify := func() tidemarktest.Result { return tm.Run("verify", db) }
	for range 3 {
		if r := verify(); r.Code != 0 || strings.Count(r.Out, " equal ") != 4 {
			t.Errorf("verify of equal tables under writers: code %d\n%s%s", r.Code, r.Out, r.Err)
		}
	}
	script(t, source.Login, db, "SET sql_log_bin=0; UPDATE num SET v='tampered' WHERE id=17; DELETE FROM num WHERE id=20000; INSERT INTO num VALUES (30001,'unlogged',0); UPDATE txt SET v=9 WHERE k='Cäsar'; UPDATE txt SET k='BERTA' WHERE k='berta';")
	r := verify()
	if r.Code != 1 {
		t.Errorf("verify of different tables: code %d, want 1", r.Code)
	}
	for table, keys := range map[string][]string{"num": {"17", "20000", "30001"}, "txt": {"Cäsar", "BERTA", "berta"}} {
		section := verifySection(r.Out, table)
		if !strings.Contains(section, "different") {
			t.Errorf("verify does not call %s different:\n%s%s", table, r.Out, r.Err)
		}
		for _, k := range keys {
			if !strings.Contains(section, k) {
				t.Errorf("verify does not name key %s of %s:\n%s", k, table, section)
			}
		}
		if got := strings.Count(section, "differs at key"); got != len(keys) {
			t.Errorf("verify names %d keys of %s, want %d:\n%s", got, table, len(keys), section)
		}
	}
	for _, table := range []string{"busy", "quiet"} {
		if !strings.Contains(verifySection(r.Out, table), "equal") {
			t.Errorf("verify does not call %s equal:\n%s", table, r.Out)
		}
	}
	stop()
	script(t, source.Login, db, "SET sql_log_bin=0; UPDATE num SET v=SHA2(17, 256) WHERE id=17; INSERT INTO num VALUES (20000, SHA2(20000, 256), (SELECT x.n FROM (SELECT n FROM num WHERE id=19999) AS x)); DELETE FROM num WHERE id=30001; UPDATE txt SET v=3 WHERE k='Cäsar'; UPDATE txt SET k='berta' WHERE k='BERTA';")
	if r := verify(); r.Code != 0 {
		t.Errorf("verify after the repair: code %d\n%s%s", r.Code, r.Out, r.Err)
	}
	must(t, tm.Exec("SYSTEM STOP MATERIALIZEDMYSQL `"+db+"`"))
	script(t, source.Login, db, "INSERT INTO quiet VALUES (1,1);")
	if r := verify(); r.Code != 2 {
		t.Errorf("verify of a stopped database: code %d, want 2 (undecided)\n%s%s", r.Code, r.Out, r.Err)
	}
	if r := tm.Run("verify", "nowhere"); r.Code != 2 || !strings.Contains(r.Err, "nowhere") {
		t.Errorf("verify of an unknown database: code %d\n%s%s", r.Code, r.Out, r.Err)
	}
	tm.VerifyStore()
	tm.Stop()
	tm.VerifyStoreOffline()
}

// verifySection is what verify prints of one table.
func verifySection(out, table string) string {
	var section []string
	in := false
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, " ") {
			in = strings.HasPrefix(line, table+" ")
		}
		if in {
			section = append(section, line)
		}
	}
	return strings.Join(section, "\n")
}

// busyWriters change rows of busy and num until stop is called.
func busyWriters(t *testing.T, source *mysqltest.Server, db string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pool := source.DB(t, db)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n += 3 {
				tx, err := pool.BeginTx(ctx, nil)
				for _, statement := range []string{
					"UPDATE busy SET n = n + 1 WHERE id = ?", "DELETE FROM busy WHERE id = 1000 + ?", "INSERT INTO busy VALUES (1000 + ?, 1)",
					"UPDATE num SET n = n + 1 WHERE id = 40 + ?",
				} {
					if err == nil {
						_, err = tx.ExecContext(ctx, statement, n%400)
					}
				}
				if err == nil {
					err = tx.Commit()
				} else if tx != nil {
					_ = tx.Rollback()
				}
				if err != nil && ctx.Err() == nil && !isDeadlock(err) {
					t.Errorf("writer: %v", err)
					return
				}
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); wg.Wait() }) }
	t.Cleanup(stop)
	return stop
}

func isDeadlock(err error) bool {
	const deadlock = 1213
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && e.Number == deadlock
}
