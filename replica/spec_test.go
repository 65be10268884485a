package replica

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/wire"
)

func TestSettings(t *testing.T) {
	s := DefaultSettings()
	require.NoError(t, s.Validate())
	require.Empty(t, s.Changed())
	require.NoError(t, s.Set("max_flush_data_time", "50"))
	require.NoError(t, s.Set("ALLOWS_QUERY_WHEN_MYSQL_LOST", "false"))
	require.NoError(t, s.Set("include_tables", "a|b'"))
	require.NoError(t, s.Set("materialized_mysql_tables_list", " a, b ,"))
	require.Equal(t, 50*time.Millisecond, s.MaxFlushDataTime)
	require.Equal(t, []string{"allows_query_when_mysql_lost = 0", "include_tables = 'a|b'''", "materialized_mysql_tables_list = 'a,b'", "max_flush_data_time = 50"}, s.Changed())
	require.NoError(t, s.Validate())
}

func TestSettingsRefused(t *testing.T) {
	for name, value := range map[string]string{
		"no_such": "1", "max_rows_in_buffer": "0", "max_bytes_in_buffer": "x", "max_flush_data_time": "-1", "include_tables": "(", "allows_query_when_mysql_lost": "7",
	} {
		s := DefaultSettings()
		require.ErrorContains(t, s.Set(name, value), name)
		require.Equal(t, DefaultSettings(), s)
	}
	s := DefaultSettings()
	require.ErrorContains(t, s.Set("skip_ddl_patterns", "x"), "guarantee 3")
	s.MaxRowsInBuffer, s.ExcludeTables = 0, "("
	err := s.Validate()
	require.ErrorContains(t, err, "max_rows_in_buffer")
	require.ErrorContains(t, err, "exclude_tables")
}

func TestGentle(t *testing.T) {
	s := DefaultSettings()
	var cfg snapshot.Config
	s.Gentle.apply(&cfg)
	require.Equal(t, snapshot.Config{Readers: 4, Limits: snapshot.Limits{ThreadsRunning: 64, ReplicaLag: time.Minute, HistoryLength: 1_000_000}}, cfg)
	require.NoError(t, s.Set("snapshot_max_threads", "2"))
	require.NoError(t, s.Set("snapshot_max_rows_per_second", "1000"))
	require.NoError(t, s.Set("snapshot_max_replica_lag", "0"))
	require.Error(t, s.Set("snapshot_max_threads", "0"))
	require.Error(t, s.Set("snapshot_max_history_length", "-1"))
	cfg = snapshot.Config{}
	s.Gentle.apply(&cfg)
	require.Equal(t, snapshot.Config{Readers: 2, RowsPerSecond: 1000, Limits: snapshot.Limits{ThreadsRunning: 64, ReplicaLag: -time.Second, HistoryLength: 1_000_000}}, cfg)
}

// OPS-11
func TestWanted(t *testing.T) {
	s := DefaultSettings()
	require.True(t, s.Wanted("orders"))
	s.ExcludeTables = "tmp_.*"
	require.False(t, s.Wanted("tmp_1"))
	require.True(t, s.Wanted("not_tmp_1"))
	s.IncludeTables = "orders|items"
	require.True(t, s.Wanted("orders"))
	require.False(t, s.Wanted("orders_old"))
	s.TablesList = []string{"items"}
	require.False(t, s.Wanted("orders"))
}

func TestStatusJSON(t *testing.T) {
	b, err := json.Marshal(Status{Name: "shop", Source: "h:3306/app", State: StateStreaming, Tables: []TableStatus{{Name: "t", State: "live", Rows: 1}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"shop","source":"h:3306/app","state":"streaming","gtid_set":"","file":"","position":0,"lag_seconds":null,
		"rows_applied":0,"error":null,"snapshot":null,"relay":null,"retention":null,"tables":[{"name":"t","state":"live","rows":1,"error":null}]}`, string(b))
}

// OPS-13
func TestCreateStatementHasNoPassword(t *testing.T) {
	s := Status{Name: "shop", Source: "h:3306/app", User: "o'neil", Settings: DefaultSettings()}
	require.NoError(t, s.Settings.Set("max_flush_data_time", "50"))
	require.Equal(t, "CREATE DATABASE `shop` ENGINE = MaterializedMySQL('h:3306', 'app', 'o''neil', '...') SETTINGS max_flush_data_time = 50", s.CreateStatement())
}

func TestConnectionSettings(t *testing.T) {
	spec := Spec{Host: "h", Port: 3306, User: "u", Password: "p", Settings: DefaultSettings()}
	set := func(values ...string) {
		t.Helper()
		for i := 0; i < len(values); i += 2 {
			require.NoError(t, spec.Settings.Set(values[i], values[i+1]))
		}
	}
	require.Equal(t, wire.TLSPreferred, spec.wire(spec.addresses()[0]).TLS.Mode)
	set("ssl_ca", "ca.pem")
	require.Equal(t, wire.TLSVerifyCA, spec.wire(spec.addresses()[0]).TLS.Mode) // as MySQL's clients have it
	set("ssl_mode", "VERIFY_IDENTITY", "ssl_cert", "c.pem", "ssl_key", "k.pem", "password_command", "token --region  eu", "connect_timeout", "3",
		"read_timeout", "4", "write_timeout", "5", "socket", "/run/s", "get_server_public_key", "1", "server_public_key_path", "s.pem", "heartbeat_period", "7")
	require.NoError(t, spec.Settings.Validate())
	require.Equal(t, wire.Config{
		Host: "h", Port: 3306, Socket: "/run/s", User: "u", Password: "p", PasswordCommand: []string{"token", "--region", "eu"},
		TLS:     wire.TLS{Mode: wire.TLSVerifyIdentity, CA: "ca.pem", Cert: "c.pem", Key: "k.pem", ServerKey: "s.pem", AskServerKey: true},
		Timeout: 3 * time.Second, ReadTimeout: 4 * time.Second, WriteTimeout: 5 * time.Second,
	}, spec.wire(spec.addresses()[0]))
	require.Contains(t, spec.Settings.Changed(), "ssl_mode = 'verify-identity'")
	require.Contains(t, spec.Settings.Changed(), "heartbeat_period = 7")
	set("password_file", "f", "ssl_key", "")
	err := spec.Settings.Validate()
	require.ErrorContains(t, err, "password_file and password_command")
	require.ErrorContains(t, err, "ssl_cert and ssl_key")
	for name, value := range map[string]string{"ssl_mode": "yes", "connect_timeout": "0", "read_timeout": "86401", "heartbeat_period": "x", "get_server_public_key": "2", "ssl_ca": "a\x00b"} {
		require.ErrorContains(t, spec.Settings.Set(name, value), name)
	}
}

func TestModify(t *testing.T) {
	spec := Spec{Host: "h", Port: 3306, User: "u", Password: "p", Settings: DefaultSettings()}
	same := spec
	require.True(t, spec.sameWay(&same))
	require.NoError(t, spec.modify("max_rows_in_buffer", "7"))
	require.True(t, spec.sameWay(&same))
	for name, value := range map[string]string{"HOST": "a, b:33", "user": "v", "password": "q", "ssl_mode": "required"} {
		before := spec
		require.NoError(t, spec.modify(name, value))
		require.False(t, spec.sameWay(&before), name)
	}
	require.Equal(t, "a:3306,b:33/", spec.Source())
	require.NoError(t, spec.modify("host", "::1"))
	require.Equal(t, "[::1]:3306/", spec.Source())
	require.Equal(t, "v", spec.User)
	require.Equal(t, "q", spec.Password)
	require.Error(t, spec.modify("host", ""))
	require.Error(t, spec.modify("user", ""))
}

// A setting names files of one folder only, and none where there is no such folder.
func TestCredentialsDir(t *testing.T) {
	o := Options{CredentialsDir: "/etc/tidemark"}
	for name, want := range map[string]string{"ca.pem": "/etc/tidemark/ca.pem", "a/b": "/etc/tidemark/a/b", "/etc/tidemark/x": "/etc/tidemark/x"} {
		got, err := o.file(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"../passwd", "/etc/passwd", "a/../../b", "/etc/tidemarks/x", "/etc/tidemark/../x"} {
		_, err := o.file(name)
		require.ErrorContains(t, err, "--credentials-dir", name)
	}
	c := Connection{SSLCA: "/a", SSLCert: "/b", SSLKey: "/c", ServerPublicKeyPath: "/d", PasswordFile: "/e", PasswordCommand: " /f -x"}
	for _, o := range []*Options{{}, {CredentialsDir: "/etc/tidemark"}} {
		err := o.checkFiles(&c)
		for _, name := range []string{"ssl_ca", "ssl_cert", "ssl_key", "server_public_key_path", "password_file", "password_command"} {
			require.ErrorContains(t, err, name)
		}
	}
	require.NoError(t, o.checkFiles(&Connection{Socket: "/run/mysqld.sock", PasswordCommand: "token /etc/x"}))
}

// Every setting is in the documentation.
func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/sql.md")
	require.NoError(t, err)
	for name := range settings {
		require.True(t, strings.Contains(string(text), "`"+name+"`"), name)
	}
}
