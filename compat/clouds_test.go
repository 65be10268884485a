package compat

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/clouds"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

// examine looks at a source of which nothing keeps it from being looked at.
func examine(t *testing.T, l mysqltest.Login, w Wishes) *Report {
	t.Helper()
	r, err := Examine(t.Context(), config(l), w)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found gives the problem of a code; it fails the test when there is none.
func found(t *testing.T, problems []Problem, code string) Problem {
	t.Helper()
	i := slices.IndexFunc(problems, func(p Problem) bool { return p.Code == code })
	if i < 0 {
		t.Fatalf("nothing is said of %s: %v", code, problems)
	}
	return problems[i]
}

func noProblems(t *testing.T, r *Report) {
	t.Helper()
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestPlansByAccount(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	for _, tc := range []struct {
		kind    clouds.Kind
		flavour Flavour
		lock    LockPlan
		weaker  []LockPlan
		locking string // part of what the trial's error says; "" where there was none
		reasons []string
	}{
		{clouds.All, MySQL, LockGlobal, []LockPlan{LockTables, LockNone}, "", []string{"global: FLUSH TABLES WITH READ LOCK is allowed"}},
		{clouds.RDSLike, RDS, LockTables, []LockPlan{LockNone}, "1045", // CLOUD-01
			[]string{"not global: Amazon RDS for MySQL refuses FLUSH TABLES WITH READ LOCK although RELOAD is granted", "the password is not the matter", "tables: LOCK TABLES is allowed"}},
		{clouds.Least, MySQL, LockNone, nil, "", []string{"not global: the account has neither RELOAD nor FLUSH_TABLES", "not tables: the account lacks LOCK TABLES", "none: no lock is taken"}},
		{clouds.CloudSQLLike, CloudSQL, LockTables, []LockPlan{LockNone}, "1227", []string{"not global: Cloud SQL for MySQL refuses", "tables:"}},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			r := examine(t, clouds.Login(t, s, tc.kind), Wishes{Database: db})
			noProblems(t, r)
			p := r.Plan
			if r.Source.Flavour != tc.flavour || p.Lock != tc.lock || !slices.Equal(p.Weaker, tc.weaker) || p.MayLockTables != (tc.kind != clouds.Least) {
				t.Errorf("%s: %+v", r.Source.Flavour, p)
			}
			if err := r.Source.Locking.Err; (err != nil) != (tc.locking != "") || err != nil && !strings.Contains(err.Error(), tc.locking) {
				t.Errorf("%+v", r.Source.Locking)
			}
			if !r.Source.Dumping.Tried || r.Source.Dumping.Err != nil { // CLOUD-09
				t.Errorf("%+v", r.Source.Dumping)
			}
			wantAll(t, strings.Join(p.Reasons, "\n"), tc.reasons...)
		})
	}
}

// A plan that is asked for is taken, or refused with the reason; never another one. SNAP-20
func TestForcedPlans(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	least, rds := clouds.Login(t, s, clouds.Least), clouds.Login(t, s, clouds.RDSLike)
	for _, lock := range []LockPlan{LockGlobal, LockTables, LockNone} {
		r := examine(t, s.Login, Wishes{Database: db, Lock: lock})
		noProblems(t, r)
		if r.Plan.Lock != lock || r.Plan.Weaker != nil {
			t.Errorf("%+v", r.Plan)
		}
	}
	p := found(t, examine(t, least, Wishes{Database: db, Lock: LockGlobal}).Problems, "snapshot_lock")
	wantAll(t, p.String(), "snapshot_lock = global was asked for, and can't be had", "GRANT RELOAD ON *.* TO '"+least.User+"'@'%'")
	p = found(t, examine(t, least, Wishes{Database: db, Lock: LockTables}).Problems, "snapshot_lock")
	wantAll(t, p.String(), "lacks LOCK TABLES", "GRANT LOCK TABLES ON `"+db+"`.* TO '"+least.User+"'@'%'")
	p = found(t, examine(t, rds, Wishes{Database: db, Lock: LockGlobal}).Problems, "snapshot_lock")
	wantAll(t, p.String(), "Amazon RDS for MySQL refuses FLUSH TABLES WITH READ LOCK", "1045", "nothing to grant")
}

// CLOUD-03: NULL and no row are 0 hours, and come before the server's variables.
func TestRDSRetention(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := s.FreshDatabase(t)
	l := clouds.Login(t, s, clouds.RDSLike)
	read := func() (Retention, []Problem) {
		r := examine(t, l, Wishes{Database: db})
		return r.Source.Retention, r.Plan.Warnings
	}
	none := Retention{Setting: "binlog retention hours = NULL"}
	kept, warnings := read()
	if kept != none {
		t.Errorf("%+v", kept)
	}
	p := found(t, warnings, "binlog_retention")
	if !slices.Equal(p.Statements, []string{"CALL mysql.rds_set_configuration('binlog retention hours', 24)"}) || !strings.Contains(p.Manual, "Amazon RDS") {
		t.Errorf("%+v", p)
	}
	s.Exec(t, "", p.Statements...)
	kept, warnings = read()
	if kept.Keep != 24*time.Hour || slices.Contains(codes(warnings), "binlog_retention") {
		t.Errorf("%+v %v", kept, warnings)
	}
	s.Exec(t, "", "CALL mysql.rds_set_configuration('binlog retention hours', 3)")
	_, warnings = read()
	wantAll(t, found(t, warnings, "binlog_retention").String(), "3h0m0s only")
	s.Exec(t, "", "DELETE FROM mysql.rds_configuration WHERE name LIKE 'binlog%'")
	if kept, _ = read(); kept != none {
		t.Errorf("%+v", kept)
	}
	s.Exec(t, "", "DROP TABLE mysql.rds_configuration")
	kept, warnings = read()
	if kept.Known() {
		t.Errorf("%+v", kept)
	}
	wantAll(t, found(t, warnings, "binlog_retention").String(), "can't be seen", "CALL mysql.rds_set_configuration")
}

func TestAuroraAndAzure(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	through := func(rules ...clouds.Rule) *Report {
		return examine(t, clouds.NewProxy(t, s.Login, "", rules...).Login, Wishes{Database: db})
	}
	writer := through(clouds.Aurora(false)...)
	if writer.Source.Flavour != Aurora || writer.Plan.Lock != LockTables {
		t.Errorf("%+v", writer.Plan)
	}
	reader := through(clouds.Aurora(true)...) // CLOUD-06
	wantAll(t, found(t, reader.Problems, "log_bin").String(), "writer endpoint")
	azure := through(clouds.Azure()...)
	if azure.Source.Flavour != Azure || azure.Source.Retention != (Retention{Setting: "binlog_expire_logs_seconds = 0"}) {
		t.Errorf("%+v", azure.Source.Retention)
	}
	wantAll(t, found(t, azure.Plan.Warnings, "binlog_retention").String(), "as soon as", "az mysql flexible-server parameter set", "binlog_expire_logs_seconds")

	// Enhanced binlog: nothing is known of its commit order, so that no window without a lock is safe.
	enhanced := through(append([]clouds.Rule{clouds.Variables(map[string]string{"aurora_version": "3.10.0", "aurora_enhanced_binlog": "1"})}, clouds.Aurora(false)[1:]...)...)
	if enhanced.Plan.Lock != LockTables || enhanced.Plan.Weaker != nil {
		t.Errorf("%+v", enhanced.Plan)
	}
	l := clouds.Login(t, s, clouds.Least)
	refused := examine(t, clouds.NewProxy(t, l, "", clouds.Variables(map[string]string{"aurora_version": "3.10.0", "aurora_enhanced_binlog": "1"})).Login, Wishes{Database: db})
	wantAll(t, found(t, refused.Problems, "snapshot_lock").String(), "no way to make a consistent copy", "enhanced binlog", "GRANT LOCK TABLES")
}

// CLOUD-04: log_bin shows ON minutes before the first file exists.
func TestBinlogWithoutFiles(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	proxy := clouds.NewProxy(t, s.Login, "", clouds.Variables(map[string]string{"basedir": "/rdsdbbin/mysql-8.4.3/"}),
		clouds.Rule{Statement: regexp.MustCompile("SHOW BINARY LOG STATUS"), Edit: func(_ string, r *clouds.Rows) { r.Cells = nil }})
	r := examine(t, proxy.Login, Wishes{Database: db})
	wantAll(t, found(t, r.Problems, "log_bin").String(), "no binlog file yet", "wait some minutes", "automated backups")
	if r.Source.Dumping.Tried {
		t.Error("a dump from nowhere was tried")
	}
}

// CLOUD-09, CLOUD-13: everything looks well until the binlog is asked for.
func TestDumpRefused(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	proxy := clouds.NewProxy(t, s.Login, "", clouds.RefuseDump(clouds.Error{Code: 1105, State: "HY000", Message: "command handling not implemented: 30"}))
	r := examine(t, proxy.Login, Wishes{Database: db})
	wantAll(t, found(t, r.Problems, "dump").String(), "the binlog can't be read", "command handling not implemented")
	vitess := clouds.NewProxy(t, s.Login, "8.0.30-Vitess", clouds.Variables(map[string]string{"version": "8.0.30-Vitess"}))
	r = examine(t, vitess.Login, Wishes{Database: db})
	wantAll(t, r.Err().Error(), "the source is Vitess (version 8.0.30-Vitess), which gives no binlog")
	if r.Plan != nil {
		t.Errorf("%+v", r.Plan)
	}
}

// The statements of 5.7, and how its information_schema shows a definition. CLOUD-08
func TestMySQL57(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT UNSIGNED NOT NULL, b BIGINT, at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,"+
		" v VARCHAR(9) CHARACTER SET utf8mb3 DEFAULT 'x', lit DATETIME DEFAULT '2020-01-02 03:04:05', PRIMARY KEY (id), KEY (v), UNIQUE KEY u (b, id))")
	proxy := clouds.NewProxy(t, s.Login, "5.7.44-log", clouds.MySQL57()...)
	r := examine(t, proxy.Login, Wishes{Database: db})
	// Its foreign keys are a matter of the storage engine; there is none here.
	noProblems(t, r)
	src := r.Source
	if r.Plan.Status != "SHOW MASTER STATUS" || src.VersionNumber() != 50744 || !src.NativeForeignKeys || !src.LogReplicaUpdates || src.Retention.Setting != "expire_logs_days = 10" {
		t.Errorf("%+v %+v", r.Plan, src)
	}
	old := r.Plan.Catalog.Table("t")
	now := examine(t, s.Login, Wishes{Database: db}).Plan.Catalog.Table("t")
	for i := range old.Columns {
		a, b := old.Columns[i], now.Columns[i]
		if a.Type != b.Type || a.Unsigned != b.Unsigned || a.DefaultExpr != b.DefaultExpr || a.OnUpdate != b.OnUpdate || a.Nullable != b.Nullable || a.FSP != b.FSP {
			t.Errorf("%+v is read as %+v", b, a)
		}
	}
	if old.KeyName != "PRIMARY" || len(old.Indexes) != len(now.Indexes) || old.Columns[0].ColumnType != "int(11) unsigned" || old.Columns[4].Charset != "utf8" {
		t.Errorf("%+v", old)
	}
	c := dial(t, proxy.Login)
	ids, err := TableIDs(t.Context(), c, r.Plan.Catalog.Tables)
	if err != nil || ids["t"] == "" {
		t.Error(ids, err)
	}
	if p := old.Problems(); len(p) > 0 {
		t.Error(p)
	}
}

// Before 8.0.13 there is IS_VISIBLE and no EXPRESSION.
func TestStatisticsOf80(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY k (v) INVISIBLE)")
	proxy := clouds.NewProxy(t, s.Login, "8.0.11", clouds.Refuse(`\bEXPRESSION\b.*STATISTICS`, clouds.Error{Code: 1054, State: "42S22", Message: "Unknown column 'EXPRESSION' in 'field list'"}))
	tables, err := ReadTables(t.Context(), dial(t, proxy.Login), db, nil)
	if err != nil || len(tables) != 1 || len(tables[0].Indexes) != 2 || !tables[0].Indexes[1].Invisible {
		t.Error(tables, err)
	}
}

// A lock that is busy is not one that is refused; and nobody queues behind a long statement. SNAP-02
func TestTriedLockIsGentle(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := s.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	managed := clouds.NewProxy(t, s.Login, "", clouds.Variables(map[string]string{"basedir": "/rdsdbbin/mysql-8.4.3/"})) // that allows it
	r := examine(t, managed.Login, Wishes{Database: db})
	if !r.Source.Locking.Tried || r.Source.Locking.Err != nil || r.Plan.Lock != LockGlobal {
		t.Errorf("%+v", r.Source.Locking)
	}
	s.Exec(t, db, "INSERT INTO t VALUES (1)") // nothing is locked any more

	pool := s.DB(t, db)
	busy, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var id int
	if err := busy.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := busy.ExecContext(t.Context(), "SELECT SLEEP(600) FROM t"); done <- err }()
	c := dial(t, s.Login)
	for {
		long, err := longStatement(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if long {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	r = examine(t, managed.Login, Wishes{Database: db})
	if r.Source.Locking.Tried || !strings.Contains(strings.Join(r.Plan.Reasons, " "), "it was not tried, for a long statement is running") {
		t.Errorf("%+v %q", r.Source.Locking, r.Plan.Reasons)
	}
	s.Exec(t, "", fmt.Sprintf("KILL %d", id))
	<-done
}

// A vendor may forbid the lock in one of three ways.
func TestWaysToRefuseTheLock(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	for _, e := range []clouds.Error{{Code: 1045, State: "28000", Message: "Access denied"}, {Code: 1227, State: "42000", Message: "Access denied; you need SUPER"},
		{Code: 1290, State: "HY000", Message: "The MySQL server is running with an option"}} {
		proxy := clouds.NewProxy(t, s.Login, "", clouds.Variables(map[string]string{"version": "8.0.42-google"}), clouds.Refuse("FLUSH TABLES WITH READ LOCK", e))
		r := examine(t, proxy.Login, Wishes{Database: db})
		if !r.Source.Locking.Refused() || r.Plan.Lock != LockTables || r.Err() != nil {
			t.Errorf("%d: %+v %v", e.Code, r.Source.Locking, r.Plan)
		}
	}
}

func TestConnectErrors(t *testing.T) {
	s := mysqltest.Shared(t)
	l := s.Login
	l.Password = "wrong"
	var refused *wire.ConnectError
	if _, err := Examine(t.Context(), config(l), Wishes{Database: "x"}); !errors.As(err, &refused) || !refused.Denied {
		t.Error(err)
	}
}
