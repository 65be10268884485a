package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkdb/tidemark/replica"
)

func newSyncStart() *cobra.Command {
	var c connection
	var from, dir, database string
	var settings []string
	var wait bool
	cmd := &cobra.Command{
		Use: "start DATABASE", Short: "Copy a database and follow it, or go on following it",
		Long: `Sets up a copy of a MySQL database under the given name, or, where there is one of that name, goes on
following its source.

The source is checked first, and everything that has to be changed is listed at once. The account needs
SELECT, RELOAD, REPLICATION SLAVE and REPLICATION CLIENT; PROCESS and XA_RECOVER_ADMIN are of use. The command returns when the database is registered;
the copy runs in the server. With --wait it returns when the copy is complete, and shows how far it is.

The password may be left out of --from, which others on this machine can see, and stand in the variable
` + sourcePasswordVariable + `, or the server takes it from a file (password-file) or a program (password-command), from its
--credentials-dir. Special characters in the address are written as in any URL: @ is %40.

With --binlog-dir there is no source: the binlog files in that directory of the server's machine, of a MySQL server from
its first one on, are applied to an empty database. Tables come by their CREATE statements. Behind the last file the state
is "ended"; the same command again looks for more files.

Behind ? stand settings: ssl-mode, ssl-ca, ssl-cert, ssl-key, password-file, password-command, socket, connect-timeout and all
others of docs/sql.md. Further servers of the same history, which are tried when the first is lost, stand behind commas.`,
		Example: `  tidemark sync start shop --from mysql://repl:secret@db.example:3306/shop --wait
  tidemark sync start shop --from mysql://repl@db.example/shop --setting exclude_tables='tmp_.*'
  tidemark sync start shop --from 'mysql://repl@db1.example,db2.example/shop?ssl-mode=verify-identity&ssl-ca=ca.pem&password-file=repl'
  tidemark sync start shop --from 'mysql://repl@localhost/shop?socket=/run/mysqld/mysqld.sock'
  tidemark sync start shop --binlog-dir /backup/binlogs --wait
  tidemark sync start shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			create, err := createStatement(args[0], from, settings)
			if dir != "" {
				if dir, err = filepath.Abs(dir); err == nil {
					create, err = replayStatement(args[0], from, dir, database, settings)
				}
			}
			if err != nil {
				return err
			}
			return failed(c.with(cmd.Context(), func(db *sql.DB) error {
				if err := startSync(cmd.Context(), db, args[0], create); err != nil {
					return err
				}
				if !wait {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is set up; tidemark sync status %s shows how far it is\n", args[0], args[0])
					return nil
				}
				return waitForCopy(cmd.Context(), db, args[0], cmd.OutOrStdout())
			}))
		},
	}
	c.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the source: "+fromForm)
	f.StringVar(&dir, "binlog-dir", "", "in place of a source: a directory of binlog files on the server's machine")
	f.StringVar(&database, "source-database", "", "with --binlog-dir: the database's name in the files; the same name where it is left out")
	f.StringArrayVar(&settings, "setting", nil, "a setting of the database, name=value; may be repeated")
	f.BoolVar(&wait, "wait", false, "wait until the copy is complete")
	return cmd
}

// createStatement makes the statement that sets the database up; empty when no source is given.
func createStatement(name, from string, settings []string) (string, error) {
	if from == "" {
		if len(settings) > 0 {
			return "", errors.New("--setting goes with --from; ALTER DATABASE x MODIFY SETTING changes one that is set up")
		}
		return "", nil
	}
	s, err := parseSource(from)
	if err != nil {
		return "", err
	}
	s.settings = append(s.settings, settings...)
	return s.createStatement(name)
}

// replayStatement makes the statement that sets up a database of binlog files.
func replayStatement(name, from, dir, database string, settings []string) (string, error) {
	if from != "" {
		return "", errors.New("--from and --binlog-dir exclude each other")
	}
	if database == "" {
		database = name
	}
	s := source{address: "files", database: database, user: "-", settings: append([]string{"binlog_dir=" + dir}, settings...)}
	return s.createStatement(name)
}

func (s *source) createStatement(name string) (string, error) {
	text := fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %s ENGINE = MaterializedMySQL(%s, %s, %s, %s)",
		quoteName(name), quoteText(s.address), quoteText(s.database), quoteText(s.user), quoteText(s.password))
	var list []string
	for _, set := range s.settings {
		key, value, ok := strings.Cut(set, "=")
		if !ok {
			return "", fmt.Errorf("--setting %s: name=value is wanted", set)
		}
		list = append(list, quoteName(key)+" = "+quoteText(value))
	}
	if len(list) > 0 {
		text += " SETTINGS " + strings.Join(list, ", ")
	}
	return text, nil
}

// startSync creates the database, or resumes it where it is there.
func startSync(ctx context.Context, db *sql.DB, name, create string) error {
	if create != "" {
		if _, err := db.ExecContext(ctx, create); err != nil {
			return plain(err)
		}
	}
	_, err := db.ExecContext(ctx, "SYSTEM START MATERIALIZEDMYSQL "+quoteName(name))
	if err != nil && create == "" {
		return fmt.Errorf("%w; --from sets up a new one", plain(err))
	}
	return plain(err)
}

const pollEvery = 250 * time.Millisecond

// waitForCopy shows the progress until the database is readable. It ends with an error when the copy cannot go on.
func waitForCopy(ctx context.Context, db *sql.DB, name string, out io.Writer) error {
	p := newProgress(out)
	defer p.end()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		list, err := readStatus(ctx, db, name)
		if err != nil {
			return err
		}
		st := &list[0]
		p.show(st)
		switch {
		case st.State == replica.StateError && st.Error != nil:
			return fmt.Errorf("%s: %s", name, *st.Error)
		case st.State == replica.StateStreaming && !replaysFiles(st), st.State == replica.StateEnded:
			p.end()
			fmt.Fprintf(out, "%s is complete: %d tables, %d rows, at %s\n", name, len(st.Tables), totalRows(st), point(st))
			return nil
		case st.State == replica.StateStopped:
			return fmt.Errorf("%s is stopped", name)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

// replaysFiles tells a database that is made of binlog files.
func replaysFiles(st *replica.Status) bool { return strings.HasPrefix(st.Source, "files/") }

func totalRows(st *replica.Status) int64 {
	var n int64
	for _, t := range st.Tables {
		n += t.Rows
	}
	return n
}

// point names the point of a database in few words.
func point(st *replica.Status) string {
	if st.File == "" {
		return "no point yet"
	}
	return fmt.Sprintf("%s:%d", st.File, st.Position)
}
