package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of both servers

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// tidemark is a running `tidemark serve`.
type tidemark struct {
	binary, dir, addr string
	process           *exec.Cmd
	db                *sql.DB
}

func startTidemark(ctx context.Context, binary string) (*tidemark, error) {
	dir, err := os.MkdirTemp("", "tidemark-bench-")
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	t := &tidemark{binary: binary, dir: dir, addr: addr}
	t.process = exec.Command(binary, "serve", "--data", dir, "--mysql-addr", addr)
	t.process.Stderr = os.Stderr
	t.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := t.process.Start(); err != nil {
		return nil, err
	}
	if t.db, err = sql.Open("mysql", "root@tcp("+addr+")/"); err != nil {
		return nil, errors.Join(err, t.close())
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err = t.db.PingContext(ctx); err == nil {
			return t, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, errors.Join(err, t.close())
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func (t *tidemark) close() error {
	if t.db != nil {
		_ = t.db.Close()
	}
	err := t.process.Process.Signal(syscall.SIGTERM)
	_ = t.process.Wait()
	return errors.Join(err, os.RemoveAll(t.dir))
}

// create materializes a database of the source and waits until it can be read.
func (t *tidemark) create(ctx context.Context, source *mysqltest.Server, database string, settings ...string) error {
	statement := fmt.Sprintf("CREATE DATABASE %s ENGINE = MaterializedMySQL('%s', '%s', '%s', '%s')", database, source.Addr(), database, source.User, source.Password)
	if len(settings) > 0 {
		statement += " SETTINGS " + strings.Join(settings, ", ")
	}
	if _, err := t.db.ExecContext(ctx, statement); err != nil {
		return err
	}
	return t.until(ctx, database, func(set string) bool { return set != "" })
}

// until waits until the point at which the database can be read is such a one. It asks by SQL: a new process each time
// would take more of the machine than what is measured.
func (t *tidemark) until(ctx context.Context, database string, done func(gtidSet string) bool) error {
	for ; ; time.Sleep(10 * time.Millisecond) {
		var state, set string
		var fault sql.NullString
		err := t.db.QueryRowContext(ctx, "SELECT state, gtid_set, error FROM system.materialized_mysql WHERE name = ?", database).Scan(&state, &set, &fault)
		if err != nil {
			return fmt.Errorf("state of database %s: %w", database, err)
		}
		if state == "error" {
			return fmt.Errorf("database %s stands in error: %s", database, fault.String)
		}
		if done(set) {
			return nil
		}
	}
}

// caughtUp waits until the database shows everything that the source had executed when asked.
func (t *tidemark) caughtUp(ctx context.Context, source *sql.DB, database string) error {
	var text string
	if err := source.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
		return err
	}
	goal, err := gtid.ParseSet(text)
	if err != nil {
		return err
	}
	return t.until(ctx, database, func(set string) bool {
		have, err := gtid.ParseSet(set)
		return err == nil && have.Contains(goal)
	})
}

func (t *tidemark) exec(ctx context.Context, statement string) error {
	_, err := t.db.ExecContext(ctx, statement)
	return err
}

// processorTime reads how long the process has been running on any core so far: what other programs on the machine can't
// blur.
func (t *tidemark) processorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name, which may hold anything, ends with the last parenthesis; user and system time are the fields 14 and 15 of proc(5),
	// in ticks of 10 ms.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("/proc/PID/stat is too short")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

// settle waits until merges and the like are over: until the process hardly runs for half a second, at most half a minute.
func (t *tidemark) settle() error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		before, err := t.processorTime()
		if err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		after, err := t.processorTime()
		if err != nil {
			return err
		}
		if after-before <= 20*time.Millisecond {
			return nil
		}
	}
	return nil
}

// peakMemory reads the largest resident set of the process so far, in bytes.
func (t *tidemark) peakMemory() (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", t.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmHWM")
}

// size is the number of bytes of all files below a directory.
func size(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
