package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemarkdb/tidemark/replica"
)

func newSync() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sync", Short: "Set up, watch and end the copies of databases",
		Long: `Manages materialized databases on a running server. The same can be done in SQL:
  CREATE DATABASE shop ENGINE = MaterializedMySQL('host:port', 'database', 'user', 'password');
  SYSTEM STOP MATERIALIZEDMYSQL shop;  SYSTEM START MATERIALIZEDMYSQL shop;
  SELECT * FROM system.materialized_mysql;  DROP DATABASE shop;`,
	}
	cmd.AddCommand(newSyncStart(), newSyncStop(), newSyncStatus(), newSyncDrop())
	return cmd
}

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

func readDatabases(ctx context.Context, tx *sql.Tx, name string) ([]replica.Status, error) {
	query := "SELECT name, source, state, gtid_set, file, position, lag_seconds, rows_applied, error, copied_rows, copy_rows, copied_tables, copy_tables, " +
		"binlog_keeps, binlog_keep_hours, binlog_hours_left, binlog_older_files, binlog_bytes_ahead, binlog_warning " +
		"FROM system.materialized_mysql"
	if name != "" {
		query += " WHERE name = " + quoteText(name)
	}
	rows, err := tx.QueryContext(ctx, query+" ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []replica.Status{}
	for rows.Next() {
		st := replica.Status{Tables: []replica.TableStatus{}}
		var copied, total, tables, allTables sql.NullInt64
		var keeps sql.NullString
		var ahead sql.NullInt64
		var kept replica.Retention
		err := rows.Scan(&st.Name, &st.Source, &st.State, &st.GTIDSet, &st.File, &st.Position, &st.LagSeconds, &st.RowsApplied, &st.Error,
			&copied, &total, &tables, &allTables, &keeps, &kept.Hours, &kept.HoursLeft, &kept.OlderFiles, &ahead, &kept.Warning)
		if err != nil {
			return nil, err
		}
		if copied.Valid {
			st.Copy = &replica.CopyProgress{
				Rows: uint64(copied.Int64), TotalRows: uint64(total.Int64), Tables: int(tables.Int64), TotalTables: int(allTables.Int64),
			}
		}
		if keeps.Valid {
			kept.Setting, kept.BytesAhead = keeps.String, uint64(ahead.Int64)
			kept.Forever = kept.Setting != "" && kept.Hours == nil
			st.Retention = &kept
		}
		list = append(list, st)
	}
	return list, rows.Err()
}

func readTables(ctx context.Context, tx *sql.Tx, list []replica.Status) error {
	rows, err := tx.QueryContext(ctx, "SELECT `database`, name, state, `rows`, error FROM system.materialized_mysql_tables ORDER BY 1, 2")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var database string
		var t replica.TableStatus
		if err := rows.Scan(&database, &t.Name, &t.State, &t.Rows, &t.Error); err != nil {
			return err
		}
		for i := range list {
			if list[i].Name == database {
				list[i].Tables = append(list[i].Tables, t)
			}
		}
	}
	return rows.Err()
}

// exec runs one statement for its effect.
func exec(ctx context.Context, c *connection, statement string) error {
	return failed(c.with(ctx, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return plain(err)
	}))
}

var errInterrupted = errors.New("interrupted; the copy goes on in the server")
