package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/spf13/cobra"
)

// passwordVariable holds the password for the server, so that it need not stand in a command line.
const passwordVariable = "TIDEMARK_PASSWORD"

// connection is how commands reach a running server.
type connection struct{ addr, user, passwordFile string }

func (c *connection) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.addr, "addr", defaultAddress, "address of the server")
	f.StringVar(&c.user, "user", "root", "user to log in as")
	f.StringVar(&c.passwordFile, "password-file", "", "file with the password (default: the variable "+passwordVariable+", else none)")
}

// open connects to the server.
func (c *connection) open(ctx context.Context) (*sql.DB, error) {
	password := os.Getenv(passwordVariable)
	if c.passwordFile != "" {
		var err error
		if password, err = readPassword(c.passwordFile); err != nil {
			return nil, &exitError{exitUsage, err}
		}
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = c.user, password, "tcp", c.addr
	config.TLSConfig = "preferred"
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1) // statements see what the ones before them set
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, c.explain(err)
	}
	return db, nil
}

// explain says what a failed connection is about.
func (c *connection) explain(err error) error {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &exitError{exitNoServer, fmt.Errorf("no server answers at %s: %w. Start one with: tidemark serve --data DIR", c.addr, err)}
	}
	return &exitError{exitNoServer, fmt.Errorf("cannot log in at %s: %w", c.addr, plain(err))}
}

// readPassword takes the first line of a file.
func readPassword(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("password file: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// plain gives the server's own words of an error.
func plain(err error) error {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return errors.New(e.Message)
	}
	return err
}

func quoteName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''", "\x00", `\0`).Replace(s) + "'"
}
