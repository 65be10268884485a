package mysqltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rootEverywhere lets root in without a password from any address, as in the containers.
const rootEverywhere = "CREATE USER root@'%' IDENTIFIED BY '';\nGRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n"

// installed is a mysqld on the PATH.
type installed struct{ software }

func (*installed) kind() Kind { return Path }

func (i *installed) probe(ctx context.Context, _ *slog.Logger) error {
	path, err := findMySQL(ctx, "mysqld")
	if err != nil {
		return err
	}
	i.mysqld = []string{path, "--no-defaults"}
	_, err = i.template(ctx, nil) // a security profile of the system may keep it from other folders than its own
	return err
}

// findMySQL looks for a program of MySQL's on the PATH.
func findMySQL(ctx context.Context, name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no %s on the PATH: %w", name, errAbsent)
	}
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	if version := string(out); !isMySQL(version) {
		return "", fmt.Errorf("%s is no MySQL: %s", path, strings.TrimSpace(version))
	}
	return path, nil
}

func isMySQL(version string) bool {
	return strings.Contains(version, "Ver ") && !strings.Contains(version, "MariaDB")
}

// software is a mysqld that this machine can run.
type software struct {
	mysqld []string // the command and the options that tell it where its files are
}

// template returns an initialized, empty data directory for this software, which servers copy.
func (s software) template(ctx context.Context, initArgs []string) (string, error) {
	version, err := exec.CommandContext(ctx, s.mysqld[0], append(s.mysqld[1:len(s.mysqld):len(s.mysqld)], "--version")...).Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", s.mysqld[0], err)
	}
	name := sha256.Sum256([]byte(string(version) + strings.Join(s.mysqld, "\n") + strings.Join(initArgs, "\n") + rootEverywhere))
	dir, err := cacheDir("templates")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, hex.EncodeToString(name[:8]))
	return dir, once(ctx, dir, func(unfinished string) error { return s.initialize(ctx, unfinished, initArgs) })
}

func (s software) initialize(ctx context.Context, dir string, initArgs []string) error {
	data, sql := filepath.Join(dir, "data"), filepath.Join(dir, "init.sql")
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := os.WriteFile(sql, []byte(rootEverywhere), 0o600); err != nil {
		return err
	}
	args := append(s.commonArgs(), "--initialize-insecure", "--datadir="+data, "--init-file="+sql, "--loose-innodb-redo-log-capacity=8M")
	args = append(args, initArgs...)
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("initializing a data directory: %w: %s", err, tail(out))
	}
	// Every server has an identity of its own, and the redo log it wants.
	return os.Remove(filepath.Join(data, "auto.cnf"))
}

func (s software) commonArgs() []string {
	args := append([]string{s.mysqld[0]}, s.mysqld[1:]...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	return args
}

func (s software) launch(ctx context.Context, o Options) (_ instance, err error) {
	template, err := s.template(ctx, o.initArgs())
	if err != nil {
		return nil, err
	}
	dir, err := newRunDir(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, detached: o.Detached}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.remove(ctx))
		}
	}()
	if err := os.CopyFS(p.dataDir(), os.DirFS(filepath.Join(template, "data"))); err != nil {
		return nil, fmt.Errorf("copying the empty data directory: %w", err)
	}
	if p.port, err = freePort(); err != nil {
		return nil, err
	}
	p.args = append(s.commonArgs(),
		"--datadir="+p.dataDir(),
		"--bind-address=127.0.0.1",
		"--port="+strconv.Itoa(p.port),
		"--socket=mysql.sock", // relative to the data directory: a long path would not fit a socket's address
		"--pid-file="+filepath.Join(dir.path, "pid"),
		"--log-error="+p.errorLog())
	p.args = append(p.args, o.serverArgs()...)
	return p, p.start(ctx)
}

// process is a mysqld on this machine.
type process struct {
	dir      *runDir
	port     int
	args     []string
	detached bool // outlives this process
	cmd      *exec.Cmd
	exited   chan struct{} // closed when cmd ended
}

func (p *process) login() Login       { return Login{Host: "127.0.0.1", Port: p.port, User: "root"} }
func (p *process) dataDir() string    { return filepath.Join(p.dir.path, "data") }
func (p *process) endCommand() string { return fmt.Sprintf("kill %d", p.cmd.Process.Pid) }
func (p *process) errorLog() string   { return filepath.Join(p.dir.path, "error.log") }

func (p *process) start(context.Context) error {
	if p.running() {
		return nil
	}
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Dir = p.dir.path
	start := StartTied
	if p.detached {
		// The server takes the lock over that tells that its folder is in use.
		cmd.ExtraFiles = []*os.File{p.dir.owner.file}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		start = (*exec.Cmd).Start
	}
	if err := start(cmd); err != nil {
		return fmt.Errorf("starting mysqld: %w", err)
	}
	exited := make(chan struct{})
	p.cmd, p.exited = cmd, exited
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	return nil
}

func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) failure() string {
	if p.running() {
		return ""
	}
	out, err := os.ReadFile(p.errorLog())
	if err != nil {
		return "it wrote no log: " + err.Error()
	}
	return tail(out)
}

func (p *process) stop(ctx context.Context) error { return p.end(ctx, syscall.SIGTERM) }
func (p *process) kill(ctx context.Context) error { return p.end(ctx, syscall.SIGKILL) }

// end sends the signal and waits until the process is gone.
func (p *process) end(ctx context.Context, signal os.Signal) error {
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending mysqld: %w", err)
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mysqld does not end: %w", ctx.Err())
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("mysqld did not end within two minutes: %s", p.errorLog())
	}
}

func (p *process) pause(context.Context) error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume(context.Context) error { return p.cmd.Process.Signal(syscall.SIGCONT) }

func (p *process) remove(ctx context.Context) error {
	return errors.Join(p.kill(ctx), p.dir.remove())
}

// freePort finds a port below the range from which the kernel takes ports for outgoing connections, so that none of
// those can take it while the server restarts.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

// tail is the end of a program's output, where the reason stands.
func tail(out []byte) string {
	out = bytes.TrimSpace(out)
	return string(out[max(0, len(out)-2000):])
}
