package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// secret gives the password for one login. Its errors are *setupError and have nothing of what a file or a command gave,
// but for what the command complained of.
func (c Config) secret(ctx context.Context) (string, error) {
	switch {
	case len(c.PasswordCommand) > 0:
		return c.runPasswordCommand(ctx)
	case c.PasswordFile != "":
		b, err := c.read(c.PasswordFile, "the password file", "password_file")
		return firstLine(b), err
	}
	return c.Password, nil
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r")))
}

const (
	maxSecret    = 64 << 10
	maxComplaint = 1 << 10
	killDelay    = 500 * time.Millisecond
)

func (c Config) runPasswordCommand(ctx context.Context) (string, error) {
	program, err := c.File(c.PasswordCommand[0])
	if err != nil {
		return "", &setupError{fmt.Errorf("the password command: %w", err), "check password_command"}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, c.PasswordCommand[1:]...)
	cmd.Env = append(cmd.Environ(), "TIDEMARK_SOURCE_HOST="+c.Host, "TIDEMARK_SOURCE_PORT="+strconv.Itoa(c.Port), "TIDEMARK_SOURCE_USER="+c.User)
	// A script's children go with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	out, complaint := &limited{limit: maxSecret}, &limited{limit: maxComplaint}
	cmd.Stdout, cmd.Stderr = out, complaint
	err = cmd.Run()
	secret := firstLine(out.b)
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("it did not end within %s", c.Timeout)
	case err == nil && secret == "":
		err = errors.New("it printed nothing")
	}
	if err == nil {
		return secret, nil
	}
	return "", &setupError{fmt.Errorf("the password command %s: %w%s", c.PasswordCommand[0], err, quoteComplaint(string(complaint.b), secret)), "run it by hand as the server's user"}
}

// quoteComplaint gives what a command wrote to its error output, the password taken out where it is in there.
func quoteComplaint(text, secret string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "...")
	}
	return fmt.Sprintf(" (it says: %s)", text)
}

// limited keeps the beginning of what is written to it.
type limited struct {
	b     []byte
	limit int
}

func (l *limited) Write(b []byte) (int, error) {
	l.b = append(l.b, b[:min(len(b), l.limit-len(l.b))]...)
	return len(b), nil
}
