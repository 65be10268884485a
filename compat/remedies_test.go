package compat

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/clouds"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
)

func keyless() []*schema.Table {
	return []*schema.Table{{Database: "shop", Name: "log", Columns: []schema.Column{{ID: 1, Name: "v", Type: schema.Int, ColumnType: "int"}}}}
}

// Each privilege is taken away in turn. What the check then says is carried out to the letter, and must be enough. CLOUD-09
func TestEachPrivilege(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	full := []string{"SELECT", "RELOAD", "LOCK TABLES", "PROCESS", "REPLICATION SLAVE", "REPLICATION CLIENT", "XA_RECOVER_ADMIN"}
	for _, tc := range []struct {
		without []string
		code    string // of the problem or warning
		lock    LockPlan
	}{
		{nil, "", LockGlobal},
		{[]string{"SELECT"}, "privileges", ""},
		{[]string{"REPLICATION SLAVE"}, "privileges", LockGlobal},
		{[]string{"REPLICATION CLIENT"}, "privileges", LockGlobal},
		{[]string{"RELOAD"}, "", LockTables},
		{[]string{"LOCK TABLES"}, "", LockGlobal},
		{[]string{"RELOAD", "LOCK TABLES"}, "", LockNone},
		{[]string{"PROCESS"}, "process", LockGlobal},
		{[]string{"XA_RECOVER_ADMIN"}, "xa_recover", LockGlobal},
		{full[1:], "privileges", LockNone},
	} {
		t.Run(strings.Join(tc.without, ","), func(t *testing.T) {
			granted := slices.DeleteFunc(slices.Clone(full), func(p string) bool { return slices.Contains(tc.without, p) })
			l := clouds.Account(t, s, strings.Join(granted, ", "))
			look := func() (*Report, []string) {
				r := examine(t, l, Wishes{Database: db})
				said := slices.Concat(r.Problems, r.Plan.Warnings)
				said = slices.DeleteFunc(said, func(p Problem) bool { return p.Code == "sync_binlog" }) // of the test server
				return r, codes(said)
			}
			r, said := look()
			if tc.lock != "" && r.Plan.Lock != tc.lock {
				t.Errorf("%+v", r.Plan)
			}
			if tc.code != "" && !slices.Contains(said, tc.code) || tc.code == "" && len(said) > 0 {
				t.Errorf("%v: %v", said, r.Problems)
			}
			if slices.Contains(said, "dump") {
				t.Error("one cause is named twice")
			}
			for _, p := range slices.Concat(r.Problems, r.Plan.Warnings) {
				s.Exec(t, "", p.Statements...)
			}
			if r, said = look(); len(said) > 0 {
				t.Errorf("after the remedies: %v %v", said, r.Problems)
			}
		})
	}
}

// Each setting is wrong in turn, and all at once. What the check says is carried out to the letter, and must be enough.
func TestEachSetting(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true})
	db := s.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	wrong := map[string]string{
		"binlog_format": "SET GLOBAL binlog_format = 'STATEMENT'", "binlog_retention": "SET GLOBAL binlog_expire_logs_seconds = 120",
	}
	look := func() (r *Report, said []string) {
		r = examine(t, s.Login, Wishes{Database: db})
		said = codes(slices.Concat(r.Problems, r.Plan.Warnings))
		slices.Sort(said)
		return r, said
	}
	repaired := func(r *Report) {
		t.Helper()
		for _, p := range slices.Concat(r.Problems, r.Plan.Warnings) {
			s.Exec(t, "", p.Statements...)
		}
		if _, said := look(); len(said) > 0 {
			t.Fatalf("after the remedies: %v", said)
		}
	}
	if _, said := look(); len(said) > 0 {
		t.Fatalf("a server with MySQL's defaults: %v", said)
	}
	var all []string
	for code, set := range wrong {
		all = append(all, code)
		s.Exec(t, "", set)
		r, said := look()
		if !slices.Equal(said, []string{code}) {
			t.Errorf("%s: %v", set, said)
		}
		repaired(r)
	}
	for _, set := range wrong {
		s.Exec(t, "", set)
	}
	slices.Sort(all)
	r, said := look()
	if !slices.Equal(said, all) {
		t.Errorf("all at once: %v", said)
	}
	repaired(r)
}

// GTIDs are switched on, and the log made safe, by the statements that the check gives.
func TestWarningsAreMended(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--sync-binlog=0"}})
	db := s.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE m (id INT PRIMARY KEY) ENGINE = MyISAM")
	r := examine(t, s.Login, Wishes{Database: db})
	all := slices.Concat(r.Problems, r.Plan.Warnings)
	if got := codes(all); !slices.Equal(got, []string{"table", "sync_binlog", "gtid_mode"}) {
		t.Error(got)
	}
	for _, p := range all {
		s.Exec(t, "", p.Statements...)
	}
	r = examine(t, s.Login, Wishes{Database: db})
	if all = slices.Concat(r.Problems, r.Plan.Warnings); len(all) > 0 || !r.Plan.GTIDs {
		t.Error(all)
	}
}

// Privileges of roles count: default ones, mandatory ones, and those that are granted and not active.
func TestRoles(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := s.FreshDatabase(t)
	l := clouds.Account(t, s, "PROCESS")
	as := "'" + l.User + "'@'%'"
	s.Exec(t, "", "CREATE ROLE reader, writer, everyone", "GRANT SELECT ON *.* TO reader", "GRANT REPLICATION SLAVE ON *.* TO writer", "GRANT REPLICATION CLIENT ON *.* TO everyone",
		"GRANT reader, writer TO "+as, "SET DEFAULT ROLE reader TO "+as)
	wantAll(t, found(t, examine(t, l, Wishes{Database: db}).Problems, "privileges").What, "lacks REPLICATION CLIENT (to read its position)")
	s.Exec(t, "", "SET GLOBAL mandatory_roles = 'everyone'")
	r := examine(t, l, Wishes{Database: db})
	noProblems(t, r)
	if r.Plan.Lock != LockNone {
		t.Errorf("%+v", r.Plan)
	}
	s.Exec(t, "", "REVOKE reader FROM "+as)
	p := found(t, examine(t, l, Wishes{Database: db}).Problems, "privileges")
	wantAll(t, p.String(), "lacks SELECT on all tables of database "+db, "GRANT SELECT ON `"+db+"`.* TO "+as)
	s.Exec(t, "", p.Statements...)
	noProblems(t, examine(t, l, Wishes{Database: db}))
}
