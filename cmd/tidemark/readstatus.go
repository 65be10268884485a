package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/replica"
)

// readStatus asks the server for its databases; name restricts it to one.
func readStatus(ctx context.Context, db *sql.DB, name string) ([]replica.Status, error) {
	// one point for both tables
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = tx.Rollback() }()
	list, err := readDatabases(ctx, tx, name)
	if err != nil {
		return nil, plain(err)
	}
	if name != "" && len(list) == 0 {
		return nil, fmt.Errorf("the server has no database %s; tidemark sync status lists those it has", name)
	}
	return list, plain(readTables(ctx, tx, list))
}

// columns are columns of a system table, and where their values go.
type columns []struct {
	name string
	into any
}

// query gives SELECT .. FROM a table of the database system.
func (c columns) query(table, rest string) string {
	names := make([]string, len(c))
	for i := range c {
		names[i] = quoteName(c[i].name)
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM system." + table + " " + rest
}

func (c columns) scan(rows *sql.Rows) error {
	into := make([]any, len(c))
	for i := range c {
		into[i] = c[i].into
	}
	return rows.Scan(into...)
}

// optional takes a value; NULL leaves it as it is.
type optional[T any] struct {
	into  *T
	there *bool // told when there is one; may be nil
}

// Scan implements sql.Scanner.
func (o optional[T]) Scan(value any) error {
	var n sql.Null[T]
	if err := n.Scan(value); err != nil || !n.Valid {
		return err
	}
	*o.into = n.V
	if o.there != nil {
		*o.there = true
	}
	return nil
}

func some[T any](into *T) sql.Scanner { return optional[T]{into: into} }

// first is for the column that tells whether there is a whole part of the status.
func first[T any](into *T, there *bool) sql.Scanner { return optional[T]{into: into, there: there} }

// nameList takes a JSON array of names, moment a time as text; NULL leaves them as they are.
type (
	nameList struct{ into *[]string }
	moment   struct{ into *time.Time }
)

// Scan implements sql.Scanner.
func (l nameList) Scan(value any) error {
	var text sql.Null[string]
	if err := text.Scan(value); err != nil || !text.Valid {
		return err
	}
	return json.Unmarshal([]byte(text.V), l.into)
}

// Scan implements sql.Scanner.
func (m moment) Scan(value any) error {
	var text sql.Null[string]
	err := text.Scan(value)
	if err == nil && text.Valid {
		*m.into, err = time.Parse(time.DateTime, text.V)
	}
	return err
}

// databaseRow is a row of system.materialized_mysql.
type databaseRow struct {
	replica.Status
	copy                             replica.CopyProgress
	made                             replica.SnapshotStatus
	spooled                          replica.RelayStatus
	kept                             replica.Retention
	copying, isMade, isOpen, isKnown bool // whether there are these four
}

func (r *databaseRow) columns() columns {
	c, m, s, k := &r.copy, &r.made, &r.spooled, &r.kept
	return columns{
		{"name", &r.Name}, {"source", &r.Source}, {"state", &r.State}, {"gtid_set", &r.GTIDSet}, {"file", &r.File}, {"position", &r.Position},
		{"lag_seconds", &r.LagSeconds}, {"rows_applied", &r.RowsApplied}, {"error", &r.Error},
		{"copied_rows", first(&c.Rows, &r.copying)}, {"copy_rows", some(&c.TotalRows)}, {"copied_tables", some(&c.Tables)}, {"copy_tables", some(&c.TotalTables)},
		{"copied_bytes", some(&c.Bytes)}, {"copied_chunks", some(&c.Chunks)}, {"copy_chunks", some(&c.TotalChunks)}, {"copy_rows_per_second", some(&c.RowsPerSecond)},
		{"copy_left_seconds", &c.LeftSeconds}, {"copy_rows_read_again", some(&c.RowsReadAgain)}, {"copy_resumed", some(&c.Resumed)}, {"copy_rows_taken_over", some(&c.RowsTakenOver)}, {"copy_slowed", some(&c.Slowed)},
		{"copy_converging", some(&c.Converging)}, {"copy_position", some(&c.Position)}, {"copy_until", some(&c.Until)}, {"copy_again", nameList{&c.Again}},
		{"snapshot_lock", first(&m.Lock, &r.isMade)}, {"snapshot_exact", some(&m.Exact)}, {"snapshot_guarantee", some(&m.Guarantee)}, {"snapshot_point", some(&m.Point)},
		{"snapshot_begun", moment{&m.Begun}}, {"snapshot_lock_seconds", some(&m.LockSeconds)}, {"snapshot_breaks", some(&m.Breaks)}, {"snapshot_restarts", some(&m.Restarts)},
		{"relay_bytes", first(&s.Bytes, &r.isOpen)}, {"relay_gtid_set", some(&s.GTIDSet)}, {"relay_file", some(&s.File)}, {"relay_position", some(&s.Position)}, {"relay_full", some(&s.Full)},
		{"binlog_keeps", first(&k.Setting, &r.isKnown)}, {"binlog_keep_hours", &k.Hours}, {"binlog_hours_left", &k.HoursLeft}, {"binlog_older_files", &k.OlderFiles},
		{"binlog_bytes_ahead", some(&k.BytesAhead)}, {"binlog_warning", &k.Warning},
	}
}

// status puts the parts together.
func (r *databaseRow) status() replica.Status {
	st := r.Status
	st.Tables = []replica.TableStatus{}
	if r.copying {
		st.Copy = &r.copy
	}
	if r.isMade {
		st.Snapshot = &r.made
	}
	if r.isOpen {
		st.Relay = &r.spooled
	}
	if r.isKnown {
		r.kept.Forever = r.kept.Setting != "" && r.kept.Hours == nil
		st.Retention = &r.kept
	}
	return st
}

func readDatabases(ctx context.Context, tx *sql.Tx, name string) ([]replica.Status, error) {
	where := ""
	if name != "" {
		where = "WHERE name = " + quoteText(name) + " "
	}
	rows, err := tx.QueryContext(ctx, new(databaseRow).columns().query("materialized_mysql", where+"ORDER BY name"))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []replica.Status{}
	for rows.Next() {
		row := new(databaseRow)
		if err := row.columns().scan(rows); err != nil {
			return nil, err
		}
		out = append(out, row.status())
	}
	return out, rows.Err()
}

// tableRow is a row of system.materialized_mysql_tables.
type tableRow struct {
	database string
	replica.TableStatus
	copy    replica.TableCopy
	copying bool
	resync  replica.ResyncStatus
	again   bool // there is a resync
	next    time.Time
}

func (r *tableRow) columns() columns {
	c := &r.copy
	return columns{
		{"database", &r.database}, {"name", &r.Name}, {"state", &r.State}, {"rows", &r.Rows}, {"error", &r.Error},
		{"copied_rows", first(&c.Rows, &r.copying)}, {"copy_rows", some(&c.TotalRows)}, {"copied_bytes", some(&c.Bytes)}, {"copied_chunks", some(&c.Chunks)},
		{"copy_chunks", some(&c.TotalChunks)}, {"copy_rows_per_second", some(&c.RowsPerSecond)}, {"copy_left_seconds", &c.LeftSeconds},
		{"copy_rows_taken_over", some(&c.RowsTakenOver)}, {"copy_rows_read_again", some(&c.RowsReadAgain)},
		{"resync", first(&r.resync.State, &r.again)}, {"resync_rows", some(&r.resync.Rows)}, {"resync_total_rows", some(&r.resync.TotalRows)},
		{"resync_tries", some(&r.resync.Tries)}, {"resync_next_try", moment{&r.next}}, {"resync_error", &r.resync.Error},
	}
}

// status puts the parts together.
func (r *tableRow) status() replica.TableStatus {
	st := r.TableStatus
	if r.copying {
		st.Copy = &r.copy
	}
	if r.again {
		st.Resync = &r.resync
		if !r.next.IsZero() {
			st.Resync.NextTry = &r.next
		}
	}
	return st
}

func readTables(ctx context.Context, tx *sql.Tx, list []replica.Status) error {
	rows, err := tx.QueryContext(ctx, new(tableRow).columns().query("materialized_mysql_tables", "ORDER BY `database`, name"))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row := new(tableRow)
		if err := row.columns().scan(rows); err != nil {
			return err
		}
		for i := range list {
			if list[i].Name == row.database {
				list[i].Tables = append(list[i].Tables, row.status())
			}
		}
	}
	return rows.Err()
}
