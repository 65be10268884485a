package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// OPS-01: what there is to watch, as Prometheus reads it; and docs/metrics.md has all of it, and nothing else.
func TestMetrics(t *testing.T) {
	source, database := mysqltest.FreshDatabase(t)
	source.Exec(t, database, "CREATE TABLE a (id INT PRIMARY KEY, v INT)", "INSERT INTO a VALUES (1, 1), (2, 2)", "CREATE TABLE b (id INT PRIMARY KEY, v INT)")
	metrics := freeAddress(t)
	address, _, _ := startServer(t, t.TempDir(), "--metrics-addr", metrics)
	from := fmt.Sprintf("mysql://%s:%s@%s/%s", source.User, source.Password, source.Addr(), database)
	code, _, errs := tidemark(t, "", "sync", "start", "shop", "--from", from, "--wait", "--addr", address, "--setting", "auto_resync=0")
	require.Equal(t, exitOK, code, errs)
	source.Exec(t, database, "INSERT INTO a VALUES (3, 3)", "UPDATE a SET v = 4 WHERE id = 3", "ALTER TABLE b MODIFY v VARCHAR(10)", "INSERT INTO b VALUES (1, 'x')")

	var text string
	has := func(lines ...string) {
		t.Helper()
		ok := require.Eventually
		ok(t, func() bool {
			text = get(t, metrics, "/metrics")
			return !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(text, "\n"+line+"\n") })
		}, time.Minute, 20*time.Millisecond, "%s", lines)
	}
	has(`tidemark_database_state{database="shop",state="streaming"} 1`, `tidemark_database_state{database="shop",state="error"} 0`, `tidemark_database_failing{database="shop"} 0`,
		`tidemark_lag_seconds{database="shop"} 0`, `tidemark_rows{database="shop"} 3`, `tidemark_tables{database="shop",state="live"} 1`,
		`tidemark_tables{database="shop",state="quarantined"} 1`, `tidemark_table_quarantined{database="shop",table="b"} 1`, `tidemark_resyncs{database="shop"} 0`,
		`tidemark_relay_full{database="shop"} 0`, `tidemark_store_failed 0`, `tidemark_store_damaged_tables 0`)
	for _, name := range []string{"tidemark_rows_applied_total", "tidemark_transactions_applied_total", "tidemark_position_timestamp_seconds", "tidemark_relay_bytes"} {
		require.Regexp(t, `(?m)^`+name+`\{database="shop"\} [1-9]`, text)
	}
	for _, name := range []string{"tidemark_store_part_bytes", "tidemark_store_meta_bytes", "tidemark_statements_total"} {
		require.Regexp(t, `(?m)^`+name+` [1-9]`, text)
	}
	require.NotContains(t, text, `table="a"`) // no series for each table

	docs, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	names := regexp.MustCompile(`tidemark_[a-z_]+`)
	documented := names.FindAllString(string(docs), -1)
	for _, name := range names.FindAllString(text, -1) {
		require.True(t, slices.Contains(documented, name), "%s is not documented", name)
	}
	known, err := os.ReadFile("metrics.go")
	require.NoError(t, err)
	for _, name := range documented {
		require.True(t, strings.Contains(string(known), `"`+strings.TrimPrefix(name, "tidemark_")+`"`), "%s is no metric", name)
	}
}
