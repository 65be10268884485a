package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/replica"
)

// CLOUD-17, OPS-13: a password that a command prints at each connect, over TLS whose authority is checked; the password changes,
// and no password shows anywhere.
func TestConnectionParameters(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	if source.DataDir() == "" {
		t.Skip("the server's certificates are not here")
	}
	database := source.FreshDatabase(t)
	source.Exec(t, database, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", "CREATE USER repl@'%' IDENTIFIED BY 'S3cret-1' REQUIRE SSL",
		"GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO repl@'%'")
	credentials, dir := t.TempDir(), t.TempDir()
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(credentials, name), []byte(text), 0o700))
	}
	ca, err := os.ReadFile(filepath.Join(source.DataDir(), "ca.pem"))
	require.NoError(t, err)
	put("ca.pem", string(ca))
	put("token", "#!/bin/sh\necho using the token S3cret >&2\ncat "+filepath.Join(credentials, "current")+"\n")
	put("current", "S3cret-1\n")
	from := func(more string) string {
		return fmt.Sprintf("mysql://repl@%s/%s?ssl-mode=verify-ca&ssl-ca=ca.pem&heartbeat-period=1%s", source.Addr(), database, more)
	}

	address, _, stop := startServer(t, dir)
	code, _, errs := tidemark(t, "", "sync", "start", "shop", "--from", from("&password-command=token"), "--addr", address)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "--credentials-dir")
	require.Equal(t, exitOK, stop())

	address, output, stop := startServer(t, dir, "--credentials-dir", credentials)
	for more, want := range map[string]string{
		"&password-command=nowhere": "nowhere", "&password-file=../passwd": "is not in the folder", "&ssl-cert=ca.pem": "go together", "&no-such=1": "unknown setting",
		"&password-file=ca.pem": "refuses user repl",
	} {
		code, _, errs := tidemark(t, "", "sync", "start", "shop", "--from", from(more), "--addr", address)
		require.Equal(t, exitFailed, code, more)
		require.Contains(t, errs, want, more)
	}
	code, _, errs = tidemark(t, "", "sync", "start", "shop", "--from", from("&password-command=token"), "--wait", "--addr", address)
	require.Equal(t, exitOK, code, errs)

	source.Exec(t, database, "ALTER USER repl@'%' IDENTIFIED BY 'S3cret-2'", "FLUSH PRIVILEGES")
	kill(t, source, "repl")
	require.Eventually(t, func() bool {
		st := status(t, address)
		return st.Error != nil && strings.Contains(*st.Error, "refuses user repl")
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, replica.StateStreaming, status(t, address).State) // the next password may be the right one
	put("current", "S3cret-2\n")
	source.Exec(t, database, "INSERT INTO a VALUES (2)")
	require.Eventually(t, func() bool { st := status(t, address); return st.Error == nil && st.Tables[0].Rows == 2 }, time.Minute, 20*time.Millisecond)

	// CLOUD-16: a certificate that is no good any more is a matter of the configuration, which can be changed.
	put("ca.pem", "none")
	kill(t, source, "repl")
	require.Eventually(t, func() bool { st := status(t, address); return st.Error != nil && strings.Contains(*st.Error, "ssl_ca") }, time.Minute, 20*time.Millisecond)
	code, _, errs = tidemark(t, "", "sql", "--addr", address, "ALTER DATABASE shop MODIFY SETTING ssl_mode = 'required', ssl_ca = '', password = 'S3cret-2', password_command = ''")
	require.Equal(t, exitOK, code, errs)
	source.Exec(t, database, "INSERT INTO a VALUES (3)")
	require.Eventually(t, func() bool { st := status(t, address); return st.Error == nil && st.Tables[0].Rows == 3 }, time.Minute, 20*time.Millisecond)

	seen := output.String()
	for _, statement := range []string{"SHOW CREATE DATABASE shop", "SELECT * FROM system.materialized_mysql", "SELECT * FROM system.materialized_mysql_log", "SHOW FULL PROCESSLIST"} {
		code, out, errs := tidemark(t, "", "sql", "--addr", address, statement)
		require.Equal(t, exitOK, code, errs)
		seen += out
	}
	require.NotContains(t, seen, "S3cret-")
	require.Equal(t, exitOK, stop())
}

// kill ends the connections of a user.
func kill(t *testing.T, s *mysqltest.Server, user string) {
	t.Helper()
	rows, err := s.DB(t, "").Query("SELECT id FROM performance_schema.processlist WHERE user = ?", user)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id int
		require.NoError(t, rows.Scan(&id))
		_, _ = s.DB(t, "").Exec(fmt.Sprintf("KILL %d", id)) // it may be gone
	}
	require.NoError(t, rows.Err())
}

// A source on the same machine is reached by its socket.
func TestSocket(t *testing.T) {
	source, database := mysqltest.FreshDatabase(t)
	if source.DataDir() == "" {
		t.Skip("the server's socket is not here")
	}
	source.Exec(t, database, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
	short, err := os.MkdirTemp("", "tm")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket := filepath.Join(short, "s") // a long path would not fit a socket's address
	require.NoError(t, os.Symlink(filepath.Join(source.DataDir(), "mysql.sock"), socket))
	address, _, _ := startServer(t, t.TempDir())
	code, _, errs := tidemark(t, "", "sync", "start", "shop", "--from", fmt.Sprintf("mysql://%s:%s@localhost/%s?socket=%s", source.User, source.Password, database, socket), "--wait", "--addr", address)
	require.Equal(t, exitOK, code, errs)
	source.Exec(t, database, "INSERT INTO a VALUES (2)")
	require.Eventually(t, func() bool { return status(t, address).Tables[0].Rows == 2 }, time.Minute, 20*time.Millisecond)
}
