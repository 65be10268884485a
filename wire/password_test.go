package wire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// CLOUD-17: the password is had anew at each connect, so that it may change at any time.
func TestPasswordSources(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE USER tm@'%' IDENTIFIED BY 'S3cret-1'")
	file := filepath.Join(t.TempDir(), "password")
	cfg := config(s.Login)
	cfg.User, cfg.Password, cfg.PasswordFile = "tm", "not this one", file
	for _, word := range []string{"S3cret-1", "S3cret-2"} {
		s.Exec(t, "", "ALTER USER tm@'%' IDENTIFIED BY '"+word+"'")
		for _, text := range []string{word, word + "\n", word + "\r\nmore\n"} {
			write(t, file, text)
			dial(t, cfg)
		}
	}
	program := script(t, `echo "$1-$TIDEMARK_SOURCE_USER-$TIDEMARK_SOURCE_HOST:$TIDEMARK_SOURCE_PORT" >> `+file+`.calls; echo S3cret-2`)
	cfg.PasswordFile, cfg.PasswordCommand = "", []string{program, "given"}
	dial(t, cfg)
	dial(t, cfg)
	calls, err := os.ReadFile(file + ".calls")
	if want := strings.Repeat("given-tm-"+s.Addr()+"\n", 2); err != nil || string(calls) != want {
		t.Errorf("%q, %v, want %q", calls, err, want)
	}
	cfg.PasswordCommand, cfg.PasswordFile = nil, file+".none"
	_, err = Dial(t.Context(), cfg)
	wantSetup(t, err, "no such file", "password_file")
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "command")
	write(t, path, "#!/bin/sh\n"+text+"\n")
	return path
}

// OPS-13: what a command prints is in no error, what it complains of is.
func TestPasswordCommandFails(t *testing.T) {
	cfg := Config{Host: "127.0.0.1", Port: 1, User: "u", Timeout: 5 * time.Second}
	for text, words := range map[string][]string{
		"echo S3cret; echo no credentials >&2; exit 3":                {"exit status 3", "no credentials"},
		"echo S3cret; echo the token is S3cret >&2; exit 1":           {"the token is ...", "exit status 1"},
		"echo nothing to say >&2":                                     {"printed nothing", "nothing to say"},
		"head -c 100000 /dev/zero | tr '\\0' x >&2; echo end; exit 1": {"xxxx"},
	} {
		cfg.PasswordCommand = []string{script(t, text)}
		_, err := Login(t.Context(), cfg)
		wantSetup(t, err, append(words, "password_command", "as the server's user")[:len(words)]...)
		if len(err.Error()) > 2*maxComplaint {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
	}
	cfg.PasswordCommand = []string{"/nowhere/at-all"}
	_, err := Login(t.Context(), cfg)
	wantSetup(t, err, "/nowhere/at-all")
}

// A command that hangs is ended with all that it started.
func TestPasswordCommandHangs(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	cfg := Config{Host: "127.0.0.1", Port: 1, User: "u", Timeout: 300 * time.Millisecond, PasswordCommand: []string{script(t, "sleep 1000 & echo $! > "+pid+"; wait")}}
	_, err := Login(t.Context(), cfg)
	wantSetup(t, err, "did not end within 300ms")
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("its child lives on")
}
