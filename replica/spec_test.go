package replica

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
