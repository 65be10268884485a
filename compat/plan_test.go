package compat

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

func check(t *testing.T, l mysqltest.Login, w Wishes) (*Source, *Plan, string) {
	t.Helper()
	s, p, err := Check(t.Context(), config(l), w)
	if err == nil {
		return s, p, ""
	}
	if p != nil {
		t.Error("a plan in spite of problems")
	}
	return s, p, err.Error()
}

func wantAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func codes(problems []Problem) []string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.Code
	}
	return out
}

func TestGoodSource(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (x INT) ENGINE=MyISAM")
	source, plan, problems := check(t, s.Login, Wishes{Database: db, Filter: func(n string) bool { return n == "a" }, ServerID: 77})
	if problems != "" {
		t.Fatal(problems)
	}
	if plan.Lock != LockGlobal || !plan.GTIDs || !plan.AskXA || len(plan.Catalog.Tables) != 1 || plan.Status == "" {
		t.Errorf("%+v", plan)
	}
	if source.Flavour != MySQL || !source.AtLeast(8, 0) || source.UUID.IsZero() || source.Position.IsZero() || source.ServerID == 0 {
		t.Errorf("%+v", source)
	}
	_, _, problems = check(t, s.Login, Wishes{Database: db, ServerID: source.ServerID})
	wantAll(t, problems, "for 2 reasons", "table "+db+".b has engine MyISAM", "in use by the source itself")
	_, _, problems = check(t, s.Login, Wishes{Database: "nowhere"})
	wantAll(t, problems, "has no database nowhere")
}

// Everything that is wrong with a server is said at once.
func TestMisconfigured(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--binlog-format=STATEMENT", "--binlog-row-image=MINIMAL", "--binlog-row-value-options=PARTIAL_JSON",
		"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--binlog-ignore-db=shop", "--default-time-zone=-03:30"}})
	s.Exec(t, "", "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
	source, _, problems := check(t, s.Login, Wishes{Database: "shop"})
	wantAll(t, problems, "binlog_format is STATEMENT", "does not log database shop", "SET PERSIST binlog_format = ROW")
	if source.GTIDs() || source.UTCOffset.Hours() != -3.5 {
		t.Error(source.GTIDMode, source.UTCOffset)
	}
}

func TestNoBinlog(t *testing.T) { // CLOUD-04
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--skip-log-bin", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}})
	s.Exec(t, "", "CREATE DATABASE shop")
	_, _, problems := check(t, s.Login, Wishes{Database: "shop"})
	wantAll(t, problems, "writes no binlog")
}

func TestPrivileges(t *testing.T) { // CLOUD-09
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE USER tm@'%' IDENTIFIED BY 'S3cr''et'", "CREATE ROLE reader")
	defer s.Exec(t, "", "DROP USER tm@'%'", "DROP ROLE reader")
	l := s.Login
	l.User, l.Password = "tm", "S3cr'et"
	_, _, problems := check(t, l, Wishes{Database: db})
	wantAll(t, problems, "lacks REPLICATION SLAVE", "REPLICATION CLIENT", "SELECT on all tables of database "+db, "has no database",
		"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'tm'@'%'", "GRANT SELECT ON `"+db+"`.* TO 'tm'@'%'")

	s.Exec(t, "", "GRANT REPLICATION SLAVE, REPLICATION CLIENT, FLUSH_TABLES ON *.* TO tm@'%'", "GRANT SELECT ON `"+db+"`.* TO reader", "GRANT reader TO tm@'%'")
	// a role counts though it is not active by default
	_, plan, problems := check(t, l, Wishes{Database: db})
	if problems != "" || plan.AskXA || plan.Process || !slices.Equal(codes(plan.Warnings), []string{"process", "xa_recover", "sync_binlog"}) {
		t.Fatal(problems, plan)
	}
	s.Exec(t, "", "GRANT PROCESS, XA_RECOVER_ADMIN ON *.* TO tm@'%'")
	if _, plan, problems = check(t, l, Wishes{Database: db}); problems != "" || !plan.AskXA || !plan.Process || !slices.Equal(codes(plan.Warnings), []string{"sync_binlog"}) {
		t.Fatal(problems, plan)
	}
	l.Password = "wrong S3cr'et"
	_, _, err := Check(t.Context(), config(l), Wishes{Database: db})
	var refused *wire.ConnectError
	if !errors.As(err, &refused) || !refused.Denied || strings.Contains(err.Error(), "S3cr") { // OPS-13
		t.Error(err)
	}
}

func TestUnreachable(t *testing.T) {
	_, _, err := Check(t.Context(), wire.Config{Host: "127.0.0.1", Port: 1, User: "u", Password: "S3cret"}, Wishes{Database: "d"})
	var refused *wire.ConnectError
	if !errors.As(err, &refused) || refused.Denied || strings.Contains(err.Error(), "S3cret") {
		t.Error(err)
	}
	wantAll(t, err.Error(), "can't connect to MySQL at 127.0.0.1:1", "check the host and the port")
}

func TestCascades(t *testing.T) { // DDL-24
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE p (id INT PRIMARY KEY)",
		"CREATE TABLE c (id INT PRIMARY KEY, pid INT, CONSTRAINT up FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL)",
		"CREATE TABLE r (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id))")
	catalog, err := ReadCatalog(t.Context(), dial(t, s.Login), db, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	old := &Source{Version: "8.4.7", NativeForeignKeys: true}
	problems := old.cascadeProblems(catalog)
	if len(problems) != 2 {
		t.Fatal(problems)
	}
	wantAll(t, problems[0].String()+problems[1].String(), "table "+db+".c: foreign key up has ON UPDATE SET NULL, and MySQL 8.4.7 does not log", "ON DELETE CASCADE")
	if p := (&Source{Version: "9.7.4"}).cascadeProblems(catalog); len(p) != 0 {
		t.Error(p)
	}
}

func TestFlavours(t *testing.T) {
	for _, tc := range []struct {
		vars map[string]string
		want Flavour
		says string
	}{
		{map[string]string{"version": "10.11.6-MariaDB-1:10.11.6+maria~ubu2204-log"}, MariaDB, "the source is MariaDB"}, // CLOUD-15
		{map[string]string{"version": "8.0.30-Vitess"}, Vitess, "gives no binlog"},                                      // CLOUD-13
		{map[string]string{"version": "8.0.11-TiDB-v7.5.0", "tidb_version": "x"}, TiDB, "is TiDB"},
		{map[string]string{"version": "5.7.44-log", "version_comment": "MySQL Community Server (GPL)"}, MySQL, "log_bin is OFF"},
		{map[string]string{"version": "8.0.39", "aurora_version": "3.08.0", "innodb_read_only": "ON"}, Aurora, "writer endpoint"}, // CLOUD-06
		{map[string]string{"version": "8.4.3", "basedir": "/rdsdbbin/mysql-8.4.3/"}, RDS, "automated backups"},
		{map[string]string{"version": "8.0.41-google", "version_comment": "(Google)"}, CloudSQL, "point-in-time recovery"},
		{map[string]string{"version": "8.4.7-7", "version_comment": "Percona Server (GPL)"}, Percona, "log_bin is OFF"},
	} {
		var s Source
		s.identify(tc.vars)
		s.Reader = on(tc.vars["innodb_read_only"])
		if s.Flavour != tc.want {
			t.Errorf("%v: %s", tc.vars, s.Flavour)
		}
		_, problems := NewPlan(&s, &Catalog{}, Wishes{})
		wantAll(t, (&ProblemsError{Problems: problems}).Error(), tc.says)
	}
}

func TestGrants(t *testing.T) {
	g := ParseGrants([]string{
		"GRANT SELECT, REPLICATION SLAVE ON *.* TO `u`@`%`",
		"GRANT APPLICATION_PASSWORD_ADMIN,XA_RECOVER_ADMIN ON *.* TO `u`@`%` WITH GRANT OPTION",
		"REVOKE SELECT ON `mysql`.* FROM `u`@`%`",
		"GRANT ALL PRIVILEGES ON `sh\\_op`.* TO `u`@`%`",
		"GRANT INSERT, DELETE ON `log%`.* TO `u`@`%`",
		"GRANT UPDATE (`a`, `b ON c`), TRIGGER ON `x``y`.`t.t` TO `u`@`%`",
		"GRANT EXECUTE ON PROCEDURE `p`.`q` TO `u`@`%`",
		"GRANT `r ON x`@`%`,`s`@`h` TO `u`@`%`",
		"GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION",
	})
	for _, tc := range []struct {
		got, want bool
		what      string
	}{
		{g.HasGlobal("REPLICATION SLAVE"), true, "global"},
		{g.HasGlobal("XA_RECOVER_ADMIN"), true, "dynamic"},
		{g.HasGlobal("RELOAD"), false, "not granted"},
		{g.HasOnDatabase("SELECT", "any"), true, "by *.*"},
		{g.HasOnDatabase("SELECT", "mysql"), false, "revoked"},
		{g.HasOnDatabase("INSERT", "sh_op"), true, "ALL on an escaped name"},
		{g.HasOnDatabase("INSERT", "shxop"), false, "an escaped _ is no wildcard"},
		{g.HasOnDatabase("DELETE", "logs2"), true, "wildcard"},
		{g.HasOnDatabase("TRIGGER", "x`y"), false, "a grant on one table"},
		{len(g.Roles) == 2, true, "roles"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v", tc.what, tc.got)
		}
	}
}

func FuzzGrants(f *testing.F) {
	for _, s := range []string{"GRANT SELECT ON *.* TO `u`@`%`", "GRANT `r`@`%` TO `u`", "GRANT SELECT (`a`) ON `d`.`t` TO u", "REVOKE", "GRANT SELECT ON `", "GRANT (,) ON ``.`` TO"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, line string) {
		g := ParseGrants([]string{line, "GRANT " + line, "REVOKE " + line})
		g.HasOnDatabase("SELECT", "d")
	})
}
