package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/spf13/cobra"
)

func newSync() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sync", Short: "Set up, watch and end the copies of databases",
		Long: `Manages materialized databases on a running server. The same can be done in SQL:
  CREATE DATABASE shop ENGINE = MaterializedMySQL('host:port', 'database', 'user', 'password');
  SYSTEM STOP MATERIALIZEDMYSQL shop;  SYSTEM START MATERIALIZEDMYSQL shop;
  SYSTEM RESYNC MATERIALIZEDMYSQL TABLE shop.orders;
  SELECT * FROM system.materialized_mysql;  DROP DATABASE shop;`,
	}
	cmd.AddCommand(newSyncStart(), newSyncStop(), newSyncStatus(), newSyncResync(), newSyncDrop())
	return cmd
}

// exec runs one statement for its effect.
func exec(ctx context.Context, c *connection, statement string) error {
	return failed(c.with(ctx, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return plain(err)
	}))
}

var errInterrupted = errors.New("interrupted; the copy goes on in the server")
