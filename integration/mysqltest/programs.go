package mysqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// programs remembers where each client program was found.
var programs struct {
	sync.Mutex
	paths map[string]string
}

// Program returns the path of one of MySQL's client programs: mysql, mysqldump, mysqlbinlog, mysqladmin. It is the one
// on the PATH if that is MySQL's, else the one of the Debian packages, which are fetched if need be, else the one in the
// image from which the containers are made.
func Program(ctx context.Context, name string) (string, error) {
	programs.Lock()
	defer programs.Unlock()
	if path := programs.paths[name]; path != "" {
		return path, nil
	}
	path, err := findProgram(ctx, name)
	if err != nil {
		return "", err
	}
	if programs.paths == nil {
		programs.paths = map[string]string{}
	}
	programs.paths[name] = path
	return path, nil
}

func findProgram(ctx context.Context, name string) (string, error) {
	var failed []error
	for _, find := range []func(context.Context, string) (string, error){findMySQL, findInPackages, findInImage} {
		path, err := find(ctx, name)
		if err == nil {
			return path, nil
		}
		failed = append(failed, err)
	}
	return "", fmt.Errorf("MySQL's %s can't be had: %w", name, errors.Join(failed...))
}

func findInPackages(ctx context.Context, name string) (string, error) {
	u, err := unpackedPackages(ctx, slog.New(slog.DiscardHandler))
	return u.wrapper(name), err
}

// findInImage makes a script that runs the program in a container. That shares the machine's network, so that it
// reaches 127.0.0.1.
func findInImage(ctx context.Context, name string) (string, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return "", fmt.Errorf("no docker on the PATH: %w", errAbsent)
	}
	c := &containers{}
	if err := c.probe(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	dir, err := cacheDir("docker-bin")
	if err != nil {
		return "", err
	}
	words := []string{docker, "run", "--rm", "--interactive", "--network=host", "--entrypoint=" + name, c.image}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, fmt.Appendf(nil, wrapperScript, strings.Join(words, " ")), 0o755)
}

// Client runs the mysql client and returns its standard output, byte for byte. Statements come from stdin (nil for
// none) or from args ("-e", "SELECT 1"). The connection's character set is utf8mb4 unless args say otherwise.
func (l Login) Client(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd, err := l.Command(ctx, "mysql", append([]string{"--default-character-set=utf8mb4"}, args...)...)
	if err != nil {
		return nil, err
	}
	cmd.Stdin = stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("mysql at %s: %w: %s", l.Addr(), err, tail(stderr.Bytes()))
	}
	return out, nil
}

// Command prepares a client program that connects to the server: mysqldump, mysqlbinlog, ...
func (l Login) Command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	path, err := Program(ctx, program)
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, path, append(l.args(), args...)...), nil
}
