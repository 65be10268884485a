package mysqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
)

// programs remembers where each client program was found.
var programs struct {
	sync.Mutex
	paths map[string]string
}

// Program returns the path of one of MySQL's client programs: mysql, mysqldump, mysqlbinlog, mysqladmin. It is the one
// on the PATH if that is MySQL's, else the one of the Debian packages, which are fetched if need be.
func Program(ctx context.Context, name string) (string, error) {
	programs.Lock()
	defer programs.Unlock()
	if path := programs.paths[name]; path != "" {
		return path, nil
	}
	path, err := findMySQL(ctx, name)
	if err != nil {
		u, unpackErr := unpackedPackages(ctx, slog.New(slog.DiscardHandler))
		if unpackErr != nil {
			return "", fmt.Errorf("MySQL's %s: %w", name, errors.Join(err, unpackErr))
		}
		path = u.wrapper(name)
	}
	if programs.paths == nil {
		programs.paths = map[string]string{}
	}
	programs.paths[name] = path
	return path, nil
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
