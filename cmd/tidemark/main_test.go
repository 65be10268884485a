package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tidemark runs the program.
func tidemark(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

// Nobody listens on port 1.
const noServer = "127.0.0.1:1"

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		errs string
	}{
		{"version", exitOK, ""},
		{"--help", exitOK, ""},
		{"nope", exitUsage, "unknown command"},
		{"verify", exitUsage, "verify wants a database, or --store"},
		{"verify shop --store", exitUsage, "verify wants a database, or --store"},
		{"verify shop --data x", exitUsage, "--data goes with --store"},
		{"verify shop --addr " + noServer, exitUndecided, "no server answers"},
		{"verify --store --data /nonexistent/x", exitUndecided, "no such file"},
		{"sql --addr " + noServer + " SELECT", exitNoServer, "no server answers"},
		{"sql --format x SELECT", exitUsage, "there are table, tsv and json"},
		{"sync status --addr " + noServer, exitNoServer, "no server answers"},
		{"sync start shop --setting a=1", exitUsage, "--setting goes with --from"},
		{"sync start", exitUsage, "accepts 1 arg"},
	} {
		code, _, errs := tidemark(t, "", strings.Fields(c.args)...)
		require.Equal(t, c.code, code, "%s: %s", c.args, errs)
		require.Contains(t, errs, c.errs, c.args)
	}
}

func TestParseSource(t *testing.T) {
	s, err := parseSource("mysql://re%40pl:p%3Aw%2F@db.example:3307/sh%20op")
	require.NoError(t, err)
	require.Equal(t, source{address: "db.example:3307", database: "sh op", user: "re@pl", password: "p:w/"}, s)
	s, err = parseSource("mysql://u:p@[::1]/d")
	require.NoError(t, err)
	require.Equal(t, "[::1]", s.address)
	t.Setenv(sourcePasswordVariable, "from the environment")
	s, err = parseSource("mysql://u:p@h1:3306,h2/d?ssl-mode=verify-ca&ssl-ca=a%20b.pem")
	require.NoError(t, err)
	require.Equal(t, source{address: "h1:3306,h2", database: "d", user: "u", password: "p", settings: []string{"ssl_ca=a b.pem", "ssl_mode=verify-ca"}}, s)
	s, err = parseSource("mysql://u@localhost/d?socket=/run/my.sock")
	require.NoError(t, err)
	require.Equal(t, []string{"socket=/run/my.sock"}, s.settings)
	s, err = parseSource("mysql://u@h/d")
	require.NoError(t, err)
	require.Equal(t, "from the environment", s.password)
	for _, bad := range []string{"", "mysql://u:S3cret@h", "mysql://u:S3cret@h/", "http://u:S3cret@h/d", "mysql://u:S3cret@h:0/d", "mysql://u:S3cret@h/d?password=S3cret", "mysql://u:S3cret@h/d?a=1&a=2", "mysql://u:S3cret@h/a/b", "mysql://%zz:S3cret@h/d"} {
		_, err := parseSource(bad)
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "S3cret") // OPS-13
	}
}

func TestSplitTable(t *testing.T) {
	for text, want := range map[string][2]string{
		"shop.orders": {"shop", "orders"}, "`my.shop`.`or``ders`": {"my.shop", "or`ders"}, "a b.c d": {"a b", "c d"}, "shop.`x.y`": {"shop", "x.y"},
	} {
		database, table, err := splitTable(text)
		require.NoError(t, err, text)
		require.Equal(t, want, [2]string{database, table}, text)
	}
	for _, bad := range []string{"", "shop", "shop.", ".orders", "a.b.c", "`a`b.c", "`a.b", "a.`b"} {
		_, _, err := splitTable(bad)
		require.Error(t, err, bad)
	}
}

func TestCreateStatement(t *testing.T) {
	text, err := createStatement("my shop", "mysql://u:it's@h:3307/app", []string{"exclude_tables=tmp_.*"})
	require.NoError(t, err)
	require.Equal(t, "CREATE DATABASE IF NOT EXISTS `my shop` ENGINE = MaterializedMySQL('h:3307', 'app', 'u', 'it''s') SETTINGS `exclude_tables` = 'tmp_.*'", text)
	_, err = createStatement("x", "mysql://u:p@h/d", []string{"nothing"})
	require.ErrorContains(t, err, "name=value")
}
