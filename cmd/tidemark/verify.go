package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkdb/tidemark/storage"
)

func newVerify() *cobra.Command {
	var c connection
	var store bool
	var data string
	cmd := &cobra.Command{
		Use: "verify [DATABASE]", Short: "Compare a database with its source, or check the store",
		Long: `Compares every row of a materialized database with its source at one point in time, in key order,
without a lock: rows that the source changes meanwhile are asked for again. It prints a line a table, and the first
keys that differ.

With --store it checks the store itself instead: every file, the key index in both directions, checksums.
A store that no server has open is checked with --data.

Exit codes: 0 equal (sound); 1 different (damaged); 2 undecided, failures included.`,
		Example: `  tidemark verify shop
  tidemark verify --store
  tidemark verify --store --data /var/lib/tidemark`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch out := cmd.OutOrStdout(); {
			case store == (len(args) == 1):
				return errors.New("verify wants a database, or --store")
			case data != "" && !store:
				return errors.New("--data goes with --store")
			case data != "":
				return undecided(verifyOffline(cmd.Context(), data, out))
			case store:
				return undecided(c.with(cmd.Context(), func(db *sql.DB) error { return verifyStore(cmd.Context(), db, out) }))
			default:
				return undecided(c.with(cmd.Context(), func(db *sql.DB) error { return verifyDatabase(cmd.Context(), db, args[0], out) }))
			}
		},
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&store, "store", false, "check the store instead of a database")
	cmd.Flags().StringVar(&data, "data", "", "with --store: data directory of a store that no server has open")
	return cmd
}

// undecided gives any failure the exit code that says so: 1 would mean that rows differ.
func undecided(err error) error {
	var e *exitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.code == exitFailed:
		return err
	}
	return &exitError{exitUndecided, err}
}

// with runs fn on a connection.
func (c *connection) with(ctx context.Context, fn func(*sql.DB) error) error {
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return fn(db)
}

// The outcomes of a table, as the server names them.
const (
	outcomeEqual     = "equal"
	outcomeDifferent = "different"
)

func verifyDatabase(ctx context.Context, db *sql.DB, name string, out io.Writer) error {
	rows, err := db.QueryContext(ctx, "SYSTEM VERIFY MATERIALIZEDMYSQL "+quoteName(name))
	if err != nil {
		return plain(err)
	}
	defer rows.Close()
	code := exitOK
	for rows.Next() {
		var table, outcome, keys, note string
		var count int64
		if err := rows.Scan(&table, &outcome, &count, &keys, &note); err != nil {
			return err
		}
		printTableResult(out, table, outcome, count, keys, note)
		switch {
		case outcome == outcomeDifferent:
			code = exitFailed
		case outcome != outcomeEqual && code == exitOK:
			code = exitUndecided
		}
	}
	if err := rows.Err(); err != nil {
		return plain(err)
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

func printTableResult(out io.Writer, table, outcome string, rows int64, keys, note string) {
	fmt.Fprintf(out, "%-32s %-10s %d rows", table, outcome, rows)
	if note != "" {
		fmt.Fprintf(out, "  (%s)", note)
	}
	fmt.Fprintln(out)
	if keys != "" {
		for _, k := range strings.Split(keys, "\n") {
			fmt.Fprintf(out, "    differs at key %s\n", k)
		}
	}
}

func verifyStore(ctx context.Context, db *sql.DB, out io.Writer) error {
	rows, err := db.QueryContext(ctx, "SYSTEM VERIFY STORE")
	if err != nil {
		return plain(err)
	}
	defer rows.Close()
	var problems []string
	for rows.Next() {
		var p string
		if err := rows.Scan(&p); err != nil {
			return err
		}
		problems = append(problems, p)
	}
	if err := rows.Err(); err != nil {
		return plain(err)
	}
	return reportProblems(out, problems)
}

func verifyOffline(ctx context.Context, dir string, out io.Writer) error {
	if _, err := os.Stat(dir); err != nil { // it would be created
		return fmt.Errorf("data directory: %w", err)
	}
	store, err := storage.Open(dir, storage.Options{NoMaintenance: true})
	if err != nil {
		return explainStore(dir, err)
	}
	defer store.Close()
	report, err := store.Verify(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, report.String())
	return reportProblems(out, report.Problems)
}

func reportProblems(out io.Writer, problems []string) error {
	for _, p := range problems {
		fmt.Fprintln(out, p)
	}
	if len(problems) > 0 {
		return &exitError{exitFailed, fmt.Errorf("the store has %d problems", len(problems))}
	}
	fmt.Fprintln(out, "the store is sound")
	return nil
}

// explainStore says what to do about a store that cannot be opened.
func explainStore(dir string, err error) error {
	switch {
	case errors.Is(err, storage.ErrInUse):
		return fmt.Errorf("data directory %s is in use by another process; stop that one, or choose another directory with --data", dir)
	case errors.Is(err, storage.ErrNewerFormat):
		return fmt.Errorf("data directory %s was written by a newer version of tidemark; run that version, or a newer one", dir)
	case errors.Is(err, storage.ErrDiskFull):
		return fmt.Errorf("data directory %s: the disk is full; free some space and start again, nothing is lost", dir)
	}
	return fmt.Errorf("data directory %s: %w", dir, err)
}
