package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// tidemark is a running `tidemark serve`.
type tidemark struct {
	binary string
	dir    string // its data and its log
	login  mysqltest.Login
	cmd    *exec.Cmd
	exited chan error // gets what the process ended with
}

// startTidemark starts the program on a free port and waits until it answers. With stay it outlives this process.
func startTidemark(ctx context.Context, binary string, stay bool) (*tidemark, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tidemark-demo-")
	if err != nil {
		return nil, err
	}
	t := &tidemark{binary: binary, dir: dir, login: mysqltest.Login{Host: "127.0.0.1", User: "root"}, exited: make(chan error, 1)}
	if t.login.Port, err = freePort(); err != nil {
		return t, err
	}
	if err := t.start(stay); err != nil {
		return t, err
	}
	return t, t.awaitReady(ctx)
}

func (t *tidemark) args() []string {
	return []string{"serve", "--data", filepath.Join(t.dir, "data"), "--mysql-addr", t.login.Addr()}
}

func (t *tidemark) commandLine() string { return t.binary + " " + strings.Join(t.args(), " ") }
func (t *tidemark) logFile() string     { return filepath.Join(t.dir, "log") }

func (t *tidemark) start(stay bool) error {
	log, err := os.Create(t.logFile())
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(t.binary, t.args()...)
	cmd.Stdout, cmd.Stderr = log, log
	start := mysqltest.StartTied
	if stay {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		start = (*exec.Cmd).Start
	}
	if err := start(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", t.binary, err)
	}
	t.cmd = cmd
	go func() { t.exited <- cmd.Wait() }()
	return nil
}

func (t *tidemark) awaitReady(ctx context.Context) error {
	db, err := t.open("")
	if err != nil {
		return err
	}
	defer db.Close()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case ended := <-t.exited:
			t.cmd = nil
			return fmt.Errorf("tidemark serve ended: %w: %s", errors.Join(ended), fileTail(t.logFile()))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("tidemark serve does not answer at %s: %w: %s", t.login.Addr(), err, fileTail(t.logFile()))
		}
	}
}

func (t *tidemark) open(database string) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", t.login.Addr(), t.login.User, database
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// run runs a subcommand against the server.
func (t *tidemark) run(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, t.binary, append(args, "--addr", t.login.Addr())...)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("tidemark %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

// close ends the server in good order and deletes its data.
func (t *tidemark) close() error {
	var err error
	if t.cmd != nil {
		_ = t.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended; exited tells how
		select {
		case ended := <-t.exited:
			if ended != nil {
				err = fmt.Errorf("tidemark serve: %w: %s", ended, fileTail(t.logFile()))
			}
		case <-time.After(30 * time.Second):
			err = errors.Join(errors.New("tidemark serve did not end within 30 s"), t.cmd.Process.Kill())
		}
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}

// status is one element of `tidemark sync status --json`, as far as the demo shows it.
type status struct {
	State      string        `json:"state"`
	GTIDSet    string        `json:"gtid_set"`
	File       string        `json:"file"`
	Position   uint64        `json:"position"`
	LagSeconds *float64      `json:"lag_seconds"`
	Error      *string       `json:"error"`
	Tables     []tableStatus `json:"tables"`
	Copy       *copyProgress `json:"copy"` // while there is one
}

type copyProgress struct {
	Rows        int `json:"rows"`
	TotalRows   int `json:"total_rows"` // as the source estimates them
	Tables      int `json:"tables"`
	TotalTables int `json:"total_tables"`
}

type tableStatus struct {
	Name  string  `json:"name"`
	State string  `json:"state"`
	Rows  int     `json:"rows"`
	Error *string `json:"error"`
}

func (t *tidemark) status(ctx context.Context, database string) (status, error) {
	var out bytes.Buffer
	if err := t.run(ctx, &out, "sync", "status", database, "--json"); err != nil {
		return status{}, err
	}
	var all []status
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return status{}, fmt.Errorf("sync status --json: %w in %s", err, out.Bytes())
	}
	if len(all) != 1 {
		return status{}, fmt.Errorf("sync status --json: %d databases instead of one", len(all))
	}
	return all[0], all[0].quarantine()
}

// quarantine is an error if a table is in it.
func (s status) quarantine() error {
	for _, t := range s.Tables {
		if t.Error != nil {
			return fmt.Errorf("table %s is in quarantine: %s", t.Name, *t.Error)
		}
	}
	return nil
}

func (s status) problem() string {
	if s.Error == nil {
		return "no reason given"
	}
	return *s.Error
}

func (s status) rows() int {
	n := 0
	for _, t := range s.Tables {
		n += t.Rows
	}
	return n
}

// point is the source position that a query sees.
func (s status) point() string {
	if s.GTIDSet != "" {
		return s.GTIDSet
	}
	return fmt.Sprintf("%s:%d", s.File, s.Position)
}

// copied tells how far the copy is.
func (s status) copied() string {
	if s.Copy == nil {
		return s.State
	}
	return fmt.Sprintf("%s of about %s rows, %d of %d tables", thousands(s.Copy.Rows), thousands(s.Copy.TotalRows), s.Copy.Tables, s.Copy.TotalTables)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
