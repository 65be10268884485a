package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/clouds"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func from(l mysqltest.Login, database string) string {
	return fmt.Sprintf("mysql://%s:%s@%s/%s", l.User, l.Password, l.Addr(), database)
}

// checkJSON runs the command and reads its answer.
func checkJSON(t *testing.T, code int, args ...string) (c checked) {
	t.Helper()
	got, out, errs := tidemark(t, "", append([]string{"check", "--json"}, args...)...)
	require.Equal(t, code, got, out+errs)
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&c), out)
	require.NotContains(t, out, "Secret")
	return c
}

func codesOf(problems []compat.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Code)
	}
	slices.Sort(out)
	return out
}

func TestCheck(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, "CREATE TABLE good (id INT PRIMARY KEY)", "CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM")

	c := checkJSON(t, exitFailed, "--from", from(clouds.Login(t, s, clouds.RDSLike), db))
	require.Equal(t, []string{"table"}, codesOf(c.Problems))
	require.Equal(t, "old", c.Problems[0].Table)
	require.Equal(t, []string{"ALTER TABLE `" + db + "`.`old` ENGINE = InnoDB"}, c.Problems[0].Statements)
	require.Equal(t, compat.LockTables, c.Plan.Lock)
	require.Equal(t, []compat.LockPlan{compat.LockNone}, c.Plan.Weaker)
	require.Equal(t, "gtid", c.Plan.FollowBy)
	require.Equal(t, 2, c.Plan.Tables)
	require.Equal(t, "Amazon RDS for MySQL", c.Source.Flavour)
	require.Equal(t, map[string]outcome{"global_lock": "refused", "binlog_dump": "ok"}, c.Source.Tried)

	least := clouds.Login(t, s, clouds.Least)
	c = checkJSON(t, exitOK, "--from", from(least, db), "--setting", "exclude_tables=old")
	require.True(t, c.OK)
	require.Empty(t, c.Problems)
	require.Equal(t, compat.LockNone, c.Plan.Lock)
	require.Equal(t, 1, c.Plan.Tables)

	// Everything that is wrong is said at once, and in words.
	poor := clouds.Account(t, s, "PROCESS")
	code, out, errs := tidemark(t, "", "check", "--from", from(poor, db), "--setting", "snapshot_lock=global")
	require.Equal(t, exitFailed, code, errs)
	require.Empty(t, errs)
	for _, part := range []string{"The database can't be copied, for 3 reasons; ", "account   '" + poor.User + "'@'%'",
		"error     the source has no database " + db, "GRANT SELECT ON `" + db + "`.* TO '" + poor.User + "'@'%'",
		"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO", "snapshot_lock = global was asked for, and can't be had", "GRANT RELOAD ON *.* TO"} {
		require.Contains(t, out, part)
	}
	require.NotContains(t, out, poor.Password)

	// What does not answer is a problem like others.
	wrong := least
	wrong.Password = "not-the-Secret"
	c = checkJSON(t, exitFailed, "--from", from(wrong, db))
	require.Equal(t, []string{"connect"}, codesOf(c.Problems))
	require.Nil(t, c.Source)
	require.Nil(t, c.Plan)
	wrong.Port = 1
	c = checkJSON(t, exitFailed, "--from", from(wrong, db))
	require.Contains(t, c.Problems[0].What, "check the host and the port")

	for _, args := range [][]string{{}, {"--from", "mysql://u:Secret@h"}, {"--from", from(s.Login, db), "--setting", "snapshot_lock=never"}, {"--from", from(s.Login, db), "--setting", "x"}} {
		code, _, errs := tidemark(t, "", append([]string{"check"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errs)
		require.NotContains(t, errs, "Secret")
	}
}

func TestCheckLookAlike(t *testing.T) {
	s, db := mysqltest.FreshDatabase(t)
	proxy := clouds.NewProxy(t, s.Login, "8.0.11-TiDB-v8.5.0", clouds.Variables(map[string]string{"version": "8.0.11-TiDB-v8.5.0", "tidb_version": "x"}))
	c := checkJSON(t, exitFailed, "--from", from(proxy.Login, db))
	require.Equal(t, []string{"product"}, codesOf(c.Problems))
	require.Nil(t, c.Plan)
	require.Equal(t, "TiDB", c.Source.Flavour)
}

func TestPrintCheck(t *testing.T) {
	c := &checked{
		Source: &checkedSource{Address: "db.example:3306", Flavour: "Amazon RDS for MySQL", Version: "8.4.7", Account: "'tm'@'%'"},
		Plan:   &checkedPlan{Database: "shop", Tables: 3, Lock: "tables", FollowBy: "gtid", Reasons: []string{"not global: it is refused", "tables: LOCK TABLES is allowed"}},
		Problems: []compat.Problem{{Code: "binlog_format", What: "binlog_format is MIXED on the source, and has to be ROW", Do: "set it in the DB parameter group",
			Statements: []string{"aws rds modify-db-parameter-group"}, Manual: `Amazon RDS, "A page"`}},
		Warnings: []compat.Problem{{Code: "process", What: "PROCESS is missing", Statements: []string{"GRANT PROCESS ON *.* TO 'tm'@'%'"}}},
	}
	var b bytes.Buffer
	require.NoError(t, printCheck(&b, c))
	require.Equal(t, `source    Amazon RDS for MySQL, version 8.4.7, at db.example:3306
account   'tm'@'%'
plan      copy 3 tables of shop with snapshot_lock = tables, then follow by gtid
          not global: it is refused
          tables: LOCK TABLES is allowed
error     binlog_format is MIXED on the source, and has to be ROW
          -> set it in the DB parameter group
             aws rds modify-db-parameter-group
             (Amazon RDS, "A page")
warning   PROCESS is missing
             GRANT PROCESS ON *.* TO 'tm'@'%'
The database can't be copied, for 1 reason; 1 warning.
`, b.String())
}
