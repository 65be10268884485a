package server

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/replica"
)

func withStatus(statuses ...replica.Status) fixtureOption {
	return func(c *Config) { c.Manager.(*fakeManager).statuses = statuses }
}

// columns reads the first row of a result by column name.
func columns(t *testing.T, db *sql.DB, query string) map[string]string {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err, query)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(t, err)
	require.True(t, rows.Next(), query)
	values := make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	require.NoError(t, rows.Scan(targets...))
	out := map[string]string{}
	for i, n := range names {
		out[n] = values[i].String
		if !values[i].Valid {
			out[n] = "NULL"
		}
	}
	return out
}

// QUERY-18
func TestReplicaStatus(t *testing.T) {
	const set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
	lag, fault := 2.5, "source lost"
	f := newFixture(t, withStatus(
		replica.Status{Name: "shop", Source: "db:3307/app", State: replica.StateStreaming, GTIDSet: set, File: "binlog.000007", Position: 157, LagSeconds: &lag},
		replica.Status{Name: "zoo", Source: "db:3307/zoo", State: replica.StateError, Error: &fault},
	))
	db := f.db("")
	for _, q := range []string{"SHOW SLAVE STATUS", "SHOW ALL SLAVES STATUS"} {
		r := columns(t, db, q)
		require.Equal(t, []string{"db", "3307", "2", "Yes", "Yes", "157", set}, []string{
			r["Master_Host"], r["Master_Port"], r["Seconds_Behind_Master"], r["Slave_IO_Running"], r["Slave_SQL_Running"], r["Exec_Master_Log_Pos"], r["Executed_Gtid_Set"]})
	}
	r := columns(t, db, "SHOW REPLICA STATUS")
	require.Equal(t, []string{"db", "Yes", "shop", "2"}, []string{r["Source_Host"], r["Replica_SQL_Running"], r["Channel_Name"], r["Seconds_Behind_Source"]})
	require.Len(t, r, 60)
	r = columns(t, db, "SHOW REPLICA STATUS FOR CHANNEL 'zoo'")
	require.Equal(t, []string{"NULL", "source lost", "No"}, []string{r["Seconds_Behind_Source"], r["Last_Error"], r["Replica_SQL_Running"]})
	for _, q := range []string{"SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"} {
		r := columns(t, db, q)
		require.Equal(t, []string{"binlog.000007", "157", set}, []string{r["File"], r["Position"], r["Executed_Gtid_Set"]})
	}
	r = columns(t, db, "SELECT @@gtid_executed, @@read_only, @@global.super_read_only")
	require.Equal(t, map[string]string{"@@gtid_executed": set, "@@read_only": "1", "@@global.super_read_only": "1"}, r)
	r = columns(t, db, "SELECT name, lag_seconds, error FROM system.materialized_mysql WHERE state = 'error'")
	require.Equal(t, map[string]string{"name": "zoo", "lag_seconds": "NULL", "error": "source lost"}, r)
}

// TYPE-05: TIMESTAMP is shown as the source shows it, unless the session says otherwise.
func TestTimeZoneIsTheSources(t *testing.T) {
	f := newFixture(t, withStatus(replica.Status{Name: "shop", TimeZone: "+05:30"}, replica.Status{Name: "zoo", TimeZone: "Europe/Berlin"}, replica.Status{Name: "new"}))
	f.fill("shop", 1, "things")
	f.fill("zoo", 1, "things")
	f.fill("new", 1, "things")
	for database, zone := range map[string]string{"shop": "+05:30", "zoo": "Europe/Berlin", "": "SYSTEM"} {
		require.Equal(t, zone, columns(t, f.db(database), "SELECT @@time_zone z")["z"], database)
	}
	list := []replica.Brief{{Name: "a", TimeZone: "+01:00"}, {Name: "b"}, {Name: "c", TimeZone: "+01:00"}}
	require.Equal(t, "+01:00", sourceZone(list, ""))
	require.Equal(t, "+01:00", sourceZone(list, "b"))
	require.Equal(t, "SYSTEM", sourceZone(nil, ""))
	db := f.db("shop", func(c *driver.Config) { c.Params = map[string]string{"time_zone": "'+01:00'"} })
	require.Equal(t, "+01:00", columns(t, db, "SELECT @@time_zone z")["z"])
}

// OPS-13: a statement with a password is seen by nobody.
func TestPasswordsAreNotShown(t *testing.T) {
	f := newFixture(t)
	db := f.db("")
	for _, q := range []string{
		"CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'u', 'S3cret'",
		"CREATE DATABASES shop ENGINE = MaterializedMySQL('h', 'd', 'u', 'S3cret')",
		"CREATE DATABASE shop ENGIN = MaterializedMySQL('h', 'd', 'u', 'S3cret')",
		"SET PASSWORD = 'S3cret' x", "SET PASSWORD 'S3cret'", "ALTER USER u IDENTIFIED BY 'S3cret' x",
	} {
		_, err := db.Exec(q)
		require.Error(t, err, q)
		require.NotContains(t, err.Error(), "S3cret", q)
	}
	require.Equal(t, "CREATE DATABASE x ENGINE = M('...')", showable("CREATE DATABASE x ENGINE = M('S3cret')"))
}

func TestUnreadableSourceRefusesQueries(t *testing.T) {
	lost := "the source does not answer"
	st := replica.Status{Name: "shop", State: replica.StateStreaming, Error: &lost, Settings: replica.DefaultSettings()}
	m := &fakeManager{statuses: []replica.Status{st}}
	require.NoError(t, Readable(m)("shop"))
	require.NoError(t, m.statuses[0].Settings.Set("allows_query_when_mysql_lost", "0"))
	require.ErrorContains(t, Readable(m)("shop"), lost)
	require.NoError(t, Readable(m)("other"))
	require.Contains(t, CopyProgress(m)("shop"), lost)
	m.statuses[0].Error, m.statuses[0].Copy = nil, &replica.CopyProgress{Rows: 5, TotalRows: 10, Tables: 1, TotalTables: 2}
	require.Equal(t, " (5 of about 10 rows, 1 of 2 tables)", CopyProgress(m)("shop"))
}

// Verification sends a row a table as it goes.
func TestVerifyStreams(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 1, "things")
	f.manager.results = []replica.TableResult{
		{Table: "a", Outcome: replica.Equal, Rows: 3}, {Table: "b", Outcome: replica.Different, Keys: []string{"id=1", "id=2"}, Note: "n"},
	}
	out := f.client("SYSTEM VERIFY MATERIALIZEDMYSQL shop")
	require.Equal(t, "table\toutcome\trows\tkeys\tnote\na\tequal\t3\t\t\nb\tdifferent\t0\tid=1\\nid=2\tn\n", out)
	db := f.db("")
	ctx, cancel := context.WithCancel(context.Background())
	rows, err := db.QueryContext(ctx, "SYSTEM VERIFY MATERIALIZEDMYSQL shop")
	require.NoError(t, err)
	require.True(t, rows.Next())
	cancel() // a client that goes away ends it
	_ = rows.Close()
	require.Eventually(t, func() bool { return f.busy() == 0 }, 10*time.Second, time.Millisecond)
	require.True(t, strings.HasPrefix(f.manager.calls[0], "verify"))
}
