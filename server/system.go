package server

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/replica"
)

const timeForm = "2006-01-02 15:04:05"

// SystemTables gives the tables of the database named system, for [query.Options].
func SystemTables(m Manager) map[string]func() *result.Table {
	return map[string]func() *result.Table{
		"materialized_mysql":        func() *result.Table { return databasesTable(m) },
		"materialized_mysql_tables": func() *result.Table { return tablesTable(m) },
		"materialized_mysql_log":    func() *result.Table { return logTable(m) },
	}
}

// systemColumn is a column of a system table with one row a T. The value is nil where the row has none.
type systemColumn[T any] struct {
	field field.Field
	value func(T) any
}

func fillTable[T any](columns []systemColumn[T], rows []T) *result.Table {
	fields := make([]field.Field, len(columns))
	for i, c := range columns {
		fields[i] = c.field
	}
	t := result.NewTable(fields...)
	for _, row := range rows {
		values := make([]any, len(columns))
		for i, c := range columns {
			values[i] = c.value(row)
		}
		t.Add(values...)
	}
	return t
}

// of gives a value of a part of a status that may be missing.
func of[T, P any](part func(T) *P, value func(*P) any) func(T) any {
	return func(row T) any {
		if p := part(row); p != nil {
			return value(p)
		}
		return nil
	}
}

func copyOf(st *replica.Status) *replica.CopyProgress       { return st.Copy }
func snapshotOf(st *replica.Status) *replica.SnapshotStatus { return st.Snapshot }
func relayOf(st *replica.Status) *replica.RelayStatus       { return st.Relay }
func retentionOf(st *replica.Status) *replica.Retention     { return st.Retention }

var databaseColumns = []systemColumn[*replica.Status]{
	{result.Object("name"), func(st *replica.Status) any { return st.Name }},
	{result.Text("source"), func(st *replica.Status) any { return st.Source }},
	{result.Name("state"), func(st *replica.Status) any { return string(st.State) }},
	{result.LongText("gtid_set"), func(st *replica.Status) any { return st.GTIDSet }},
	{result.Text("file"), func(st *replica.Status) any { return st.File }},
	{result.Uint("position"), func(st *replica.Status) any { return st.Position }},
	{result.Double("lag_seconds"), func(st *replica.Status) any { return st.LagSeconds }},
	{result.Uint("rows_applied"), func(st *replica.Status) any { return st.RowsApplied }},
	{result.LongText("error"), func(st *replica.Status) any { return st.Error }},
	// the first copy while it is under way
	{result.Uint("copied_rows"), of(copyOf, func(c *replica.CopyProgress) any { return c.Rows })},
	{result.Uint("copy_rows"), of(copyOf, func(c *replica.CopyProgress) any { return c.TotalRows })},
	{result.Uint("copied_tables"), of(copyOf, func(c *replica.CopyProgress) any { return c.Tables })},
	{result.Uint("copy_tables"), of(copyOf, func(c *replica.CopyProgress) any { return c.TotalTables })},
	{result.Uint("copied_bytes"), of(copyOf, func(c *replica.CopyProgress) any { return c.Bytes })},
	{result.Uint("copied_chunks"), of(copyOf, func(c *replica.CopyProgress) any { return c.Chunks })},
	{result.Uint("copy_chunks"), of(copyOf, func(c *replica.CopyProgress) any { return c.TotalChunks })},
	{result.Double("copy_rows_per_second"), of(copyOf, func(c *replica.CopyProgress) any { return c.RowsPerSecond })},
	{result.Double("copy_left_seconds"), of(copyOf, func(c *replica.CopyProgress) any { return c.LeftSeconds })},
	{result.Uint("copy_resumed"), of(copyOf, func(c *replica.CopyProgress) any { return flag(c.Resumed) })},
	{result.Uint("copy_rows_taken_over"), of(copyOf, func(c *replica.CopyProgress) any { return c.RowsTakenOver })},
	{result.Uint("copy_rows_read_again"), of(copyOf, func(c *replica.CopyProgress) any { return c.RowsReadAgain })},
	{result.LongText("copy_slowed"), of(copyOf, func(c *replica.CopyProgress) any { return c.Slowed })},
	{result.Uint("copy_converging"), of(copyOf, func(c *replica.CopyProgress) any { return flag(c.Converging) })},
	{result.Text("copy_position"), of(copyOf, func(c *replica.CopyProgress) any { return c.Position })},
	{result.Text("copy_until"), of(copyOf, func(c *replica.CopyProgress) any { return c.Until })},
	{result.LongText("copy_again"), of(copyOf, func(c *replica.CopyProgress) any { return names(c.Again) })},
	// how it was made, for good
	{result.Text("snapshot_lock"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return s.Lock })},
	{result.Uint("snapshot_exact"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return flag(s.Exact) })},
	{result.LongText("snapshot_guarantee"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return s.Guarantee })},
	{result.LongText("snapshot_point"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return s.Point })},
	{result.DateTime("snapshot_begun"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return s.Begun.UTC().Format(timeForm) })},
	{result.Double("snapshot_lock_seconds"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return s.LockSeconds })},
	{result.Uint("snapshot_breaks"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return s.Breaks })},
	{result.Uint("snapshot_restarts"), of(snapshotOf, func(s *replica.SnapshotStatus) any { return s.Restarts })},
	// how much of the source's log is spooled here
	{result.Uint("relay_bytes"), of(relayOf, func(r *replica.RelayStatus) any { return r.Bytes })},
	{result.LongText("relay_gtid_set"), of(relayOf, func(r *replica.RelayStatus) any { return r.GTIDSet })},
	{result.Text("relay_file"), of(relayOf, func(r *replica.RelayStatus) any { return r.File })},
	{result.Uint("relay_position"), of(relayOf, func(r *replica.RelayStatus) any { return r.Position })},
	{result.Uint("relay_full"), of(relayOf, func(r *replica.RelayStatus) any { return flag(r.Full) })},
	// how long the source keeps what is needed
	{result.Text("binlog_keeps"), of(retentionOf, func(r *replica.Retention) any { return r.Setting })},
	{result.Double("binlog_keep_hours"), of(retentionOf, func(r *replica.Retention) any { return r.Hours })},
	{result.Double("binlog_hours_left"), of(retentionOf, func(r *replica.Retention) any { return r.HoursLeft })},
	{result.Uint("binlog_older_files"), of(retentionOf, func(r *replica.Retention) any { return orNil(r.OlderFiles) })},
	{result.Uint("binlog_bytes_ahead"), of(retentionOf, func(r *replica.Retention) any { return r.BytesAhead })},
	{result.LongText("binlog_warning"), of(retentionOf, func(r *replica.Retention) any { return r.Warning })},
}

func databasesTable(m Manager) *result.Table {
	list := m.Status()
	rows := make([]*replica.Status, len(list))
	for i := range list {
		rows[i] = &list[i]
	}
	return fillTable(databaseColumns, rows)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// names gives names of tables as a JSON array, nil for none.
func names(list []string) any {
	if len(list) == 0 {
		return nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return string(b)
}

// orNil gives what a pointer points to, as a table takes it.
func orNil(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

// CopyProgress describes how far the first copy of a database is, for [query.Options].
func CopyProgress(m Manager) func(database string) string {
	return func(database string) string {
		for _, st := range m.Status() {
			switch {
			case st.Name != database:
			case st.Error != nil:
				return fmt.Sprintf(" (%s)", *st.Error)
			case st.Copy != nil:
				return fmt.Sprintf(" (%s)", st.Copy.Text())
			}
		}
		return ""
	}
}

// Readable says why a database must not be read, for [query.Options]: the tables of its first copy do not stand at one
// point yet, or its source is lost and allows_query_when_mysql_lost is off.
func Readable(m Manager) func(database string) error {
	return func(database string) error {
		for _, db := range m.Brief() {
			if db.Name == database && db.Unreadable != "" {
				return sqlerr.New(sqlerr.NotReadable, "Database '%s' is not readable yet: its first copy is not complete (%s)", database, db.Unreadable)
			}
			if db.Name == database && db.Fault != "" && !db.AllowsQueryWhenMySQLLost {
				return sqlerr.New(sqlerr.NotReadable, "Database '%s' answers no queries while it cannot follow its source "+
					"(allows_query_when_mysql_lost = 0): %s", database, db.Fault)
			}
		}
		return nil
	}
}

// tableRow is a table with its database.
type tableRow struct {
	database string
	replica.TableStatus
}

func tableCopyOf(r *tableRow) *replica.TableCopy { return r.Copy }

var tableColumns = []systemColumn[*tableRow]{
	{result.Object("database"), func(r *tableRow) any { return r.database }},
	{result.Object("name"), func(r *tableRow) any { return r.Name }},
	{result.Name("state"), func(r *tableRow) any { return r.State }},
	{result.Uint("rows"), func(r *tableRow) any { return r.Rows }},
	{result.LongText("error"), func(r *tableRow) any { return r.Error }},
	{result.Uint("copied_rows"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.Rows })},
	{result.Uint("copy_rows"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.TotalRows })},
	{result.Uint("copied_bytes"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.Bytes })},
	{result.Uint("copied_chunks"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.Chunks })},
	{result.Uint("copy_chunks"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.TotalChunks })},
	{result.Double("copy_rows_per_second"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.RowsPerSecond })},
	{result.Double("copy_left_seconds"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.LeftSeconds })},
	{result.Uint("copy_rows_taken_over"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.RowsTakenOver })},
	{result.Uint("copy_rows_read_again"), of(tableCopyOf, func(c *replica.TableCopy) any { return c.RowsReadAgain })},
	{result.Name("resync"), of(resyncOf, func(r *replica.ResyncStatus) any { return string(r.State) })},
	{result.Uint("resync_rows"), of(resyncOf, func(r *replica.ResyncStatus) any { return r.Rows })},
	{result.Uint("resync_total_rows"), of(resyncOf, func(r *replica.ResyncStatus) any { return r.TotalRows })},
	{result.Uint("resync_tries"), of(resyncOf, func(r *replica.ResyncStatus) any { return r.Tries })},
	{result.DateTime("resync_next_try"), of(resyncOf, func(r *replica.ResyncStatus) any { return timeOrNil(r.NextTry) })},
	{result.LongText("resync_error"), of(resyncOf, func(r *replica.ResyncStatus) any { return r.Error })},
}

func resyncOf(r *tableRow) *replica.ResyncStatus { return r.Resync }

func timeOrNil(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.In(time.UTC).Format(timeForm)
}

func tablesTable(m Manager) *result.Table {
	var rows []*tableRow
	for _, st := range m.Status() {
		for _, t := range st.Tables {
			rows = append(rows, &tableRow{st.Name, t})
		}
	}
	return fillTable(tableColumns, rows)
}

// maxLog bounds the rows of system.materialized_mysql_log.
const maxLog = 10_000

func logTable(m Manager) *result.Table {
	t := result.NewTable(result.DateTime("time"), result.Object("database"), result.Object("table"), result.Name("kind"), result.LongText("message"))
	for _, e := range m.Log(maxLog) {
		t.Add(e.Time.In(time.UTC).Format(timeForm), e.Database, e.Table, e.Kind, e.Message)
	}
	return t
}
