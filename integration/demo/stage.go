package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/shop"
)

const (
	database = "shop"
	account  = "tidemark"
	password = "only-for-the-demo"
)

// grants are all that Tidemark needs on a source.
var grants = []string{
	"GRANT RELOAD, PROCESS, REPLICATION SLAVE, REPLICATION CLIENT, XA_RECOVER_ADMIN ON *.* TO " + account,
	"GRANT SELECT ON " + database + ".* TO " + account,
}

// stage holds what the scenes of the demo share. Each scene is a method; they are called in order.
type stage struct {
	options
	*printer
	log *slog.Logger

	source   *mysqltest.Server
	sourceDB *sql.DB // of the shop on the source
	size     shop.Size

	tide   *tidemark
	tideDB *sql.DB // of the shop on Tidemark, once it is readable
}

func (s *stage) close() error {
	var errs []error
	for _, db := range []*sql.DB{s.sourceDB, s.tideDB} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.tide != nil {
		errs = append(errs, s.tide.close())
	}
	if s.source != nil {
		errs = append(errs, s.leaveExternal(), s.source.Close())
	}
	return errors.Join(errs...)
}

// leaveExternal takes what the demo created away from a server that is not its own.
func (s *stage) leaveExternal() error {
	if s.source.Kind() != mysqltest.External || s.size == (shop.Size{}) {
		return nil
	}
	db, err := s.source.Open("")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range []string{"DROP DATABASE " + database, "DROP USER IF EXISTS " + account} {
		if _, err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (s *stage) startSource(ctx context.Context) error {
	s.title("A MySQL server")
	var err error
	s.source, err = mysqltest.StartServer(ctx, mysqltest.Options{Detached: s.keep, Logger: s.log})
	return err
}

func (s *stage) fillShop(ctx context.Context) error {
	s.title("A shop on it")
	if err := s.createDatabase(ctx); err != nil {
		return err
	}
	var err error
	if s.sourceDB, err = s.source.Open(database); err != nil {
		return err
	}
	if err := shop.Create(ctx, s.sourceDB); err != nil {
		return err
	}
	begun := time.Now()
	err = shop.Fill(ctx, s.sourceDB, s.size, 1, func(table string, rows int) {
		s.progress("%-12s %9s rows", table, thousands(rows))
	})
	if err != nil {
		return err
	}
	s.line("%s customers, %s products, %s orders, %s order_items in %s", thousands(s.size.Customers), thousands(s.size.Products),
		thousands(s.size.Orders), thousands(s.size.Items), seconds(time.Since(begun)))
	return nil
}

// createDatabase makes the shop's database and an account with just the privileges that are needed.
func (s *stage) createDatabase(ctx context.Context) error {
	db, err := s.source.Open("")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+database); err != nil {
		return fmt.Errorf("the demo makes a database of its own on the server: %w", err)
	}
	s.size = shop.SizeOf(s.rows)
	create := fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", account, password)
	for _, statement := range append([]string{create}, grants...) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("an account for Tidemark: %w", err)
		}
	}
	return nil
}

func (s *stage) startTidemark(ctx context.Context) error {
	s.title("Tidemark")
	tide, err := startTidemark(ctx, s.binary, s.keep)
	s.tide = tide
	if err != nil {
		return err
	}
	s.line("$ %s", tide.commandLine())
	return nil
}

func (s *stage) materialize(ctx context.Context) error {
	db, err := s.tide.open("")
	if err != nil {
		return err
	}
	defer db.Close()
	statement := "CREATE DATABASE %s ENGINE = MaterializedMySQL('%s', '%s', '%s', '%s')"
	s.line("mysql> "+statement+";", database, s.source.Addr(), database, account, "***")
	_, err = db.ExecContext(ctx, fmt.Sprintf(statement, database, s.source.Addr(), database, account, password))
	return err
}

// watchSnapshot shows how far the copy is, until queries are answered.
func (s *stage) watchSnapshot(ctx context.Context) error {
	s.title("The snapshot")
	begun := time.Now()
	for {
		status, err := s.tide.status(ctx, database)
		if err != nil {
			return err
		}
		switch status.State {
		case "streaming":
			s.line("%s rows in %s, all tables at one point:", thousands(status.rows()), seconds(time.Since(begun)))
			s.line("  %s", status.point())
			s.tideDB, err = s.tide.open(database)
			return err
		case "error":
			return fmt.Errorf("the copy stopped: %s", status.problem())
		}
		s.progress("%s", status.copied())
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *stage) verify(ctx context.Context) error {
	s.title("Is every row equal?")
	s.line("$ %s verify %s", s.binary, database)
	return s.tide.run(ctx, s.out, "verify", database)
}

// endScript ends what was kept, when somebody runs it.
const endScript = `#!/bin/sh
%s
kill %d
while kill -0 %d 2>/dev/null; do sleep 0.1; done
rm -r '%s'
`

func (s *stage) printKept(ctx context.Context) error {
	pid, script := s.tide.cmd.Process.Pid, filepath.Join(s.tide.dir, "end.sh")
	text := fmt.Sprintf(endScript, s.source.EndCommand(), pid, pid, s.tide.dir)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		return err
	}
	s.title("Both servers stay up")
	client, err := mysqltest.Program(ctx, "mysql")
	if err != nil {
		client = "mysql"
	}
	s.line("source:    %s --protocol=tcp -h %s -P %d -u %s %s", client, s.source.Host, s.source.Port, s.source.User, database)
	s.line("Tidemark:  %s --protocol=tcp -h %s -P %d -u root %s", client, s.tide.login.Host, s.tide.login.Port, database)
	s.line("           %s sql --addr %s", s.binary, s.tide.login.Addr())
	s.line("end them:  %s", script)
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// fileTail is the end of a log, to be shown with an error.
func fileTail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
