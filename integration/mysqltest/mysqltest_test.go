package mysqltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// TestServer runs on whatever way this machine offers.
func TestServer(t *testing.T) {
	s := Start(t, Options{Own: true})
	checkServer(t, s)
}

// TestTestcontainers runs the containers for real wherever a Docker engine answers and an image can be had,
// whichever way the other tests take; see the package comment.
func TestTestcontainers(t *testing.T) {
	w := &containers{}
	if err := w.probe(t.Context(), testLogger(t)); err != nil {
		if os.Getenv("TIDEMARK_TEST_CONTAINERS") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s, err := startBy(t.Context(), w, Options{Durable: true, Logger: testLogger(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	checkServer(t, s)

	path, err := findInImage(t.Context(), "mysql")
	require.NoError(t, err)
	client := exec.CommandContext(t.Context(), path, append(s.args(), "-N", "-e", "SELECT 'grün'")...)
	out, err := client.Output()
	require.NoError(t, err)
	require.Equal(t, "grün\n", string(out))
}

// checkServer puts a server through everything that the package promises of one.
func checkServer(t *testing.T, s *Server) {
	ctx := t.Context()
	db := s.DB(t, "")
	scan := func(query string) string {
		t.Helper()
		var text string
		require.NoError(t, db.QueryRowContext(ctx, query).Scan(&text))
		return text
	}
	require.Equal(t, "ROW FULL ON 1", scan("SELECT CONCAT_WS(' ', @@binlog_format, @@binlog_row_image, @@gtid_mode, @@log_bin)"))
	require.NotEqual(t, "1", scan("SELECT @@server_id"))
	require.NotContains(t, s.Version(), "MariaDB")

	name := s.FreshDatabase(t)
	s.Exec(t, name, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO t VALUES (1, 'grün'), (2, NULL)")
	text, err := s.Client(ctx, strings.NewReader("SELECT * FROM t"), name)
	require.NoError(t, err)
	require.Equal(t, "id\tv\n1\tgrün\n2\tNULL\n", string(text))
	xml, err := s.Client(ctx, nil, "--xml", "-e", "SELECT v FROM t WHERE id = 2", name)
	require.NoError(t, err)
	require.Contains(t, string(xml), `<field name="v" xsi:nil="true" />`)
	_, err = s.Client(ctx, nil, "-e", "SELECT nonsense", name)
	require.ErrorContains(t, err, "Unknown column")

	dump, err := s.Command(ctx, "mysqldump", name)
	require.NoError(t, err)
	out, err := dump.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "(1,'grün'),(2,NULL)")

	for _, end := range []func(context.Context) error{s.Stop, s.Kill} {
		addr, uuid := s.Addr(), scan("SELECT @@server_uuid")
		require.NoError(t, end(ctx))
		require.Error(t, db.PingContext(ctx))
		require.NoError(t, s.Restart(ctx))
		require.Equal(t, addr, s.Addr())
		require.Equal(t, uuid, scan("SELECT @@server_uuid"))
		require.Equal(t, "2", scan("SELECT COUNT(*) FROM "+name+".t"))
	}

	require.NoError(t, s.Pause(ctx))
	frozen, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	require.Error(t, db.QueryRowContext(frozen, "SELECT 1").Scan(new(string)))
	require.NoError(t, s.Resume(ctx))
	require.Equal(t, "1", scan("SELECT 1"))
}

func TestArgsWin(t *testing.T) {
	s := Start(t, Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--default-time-zone=+05:30", "--lower-case-table-names=1"}})
	var got string
	require.NoError(t, s.DB(t, "").QueryRow("SELECT CONCAT_WS(' ', @@gtid_mode, @@time_zone, @@lower_case_table_names)").Scan(&got))
	require.Equal(t, "OFF +05:30 1", got)
}

func TestBadArgTellsWhy(t *testing.T) {
	if os.Getenv(envServer) != "" {
		t.Skip("needs a server of its own")
	}
	_, err := StartServer(t.Context(), Options{Args: []string{"--no-such-option"}})
	require.ErrorContains(t, err, "no-such-option")
}

func TestShared(t *testing.T) {
	s, one := FreshDatabase(t)
	again, two := FreshDatabase(t)
	require.Same(t, s, again)
	require.NotEqual(t, one, two)
	t.Run("Ünusual näme/with quotes'`", func(t *testing.T) {
		_, name := FreshDatabase(t)
		s.Exec(t, name, "CREATE TABLE t (id INT PRIMARY KEY)")
	})
}

// child runs one of these tests in a process of its own, with servers from the Debian packages, and returns what it
// printed after the marker. In that process inChild is true.
func child(t *testing.T, marker string) string {
	t.Helper()
	if err := (&packages{}).probe(t.Context(), slog.New(slog.DiscardHandler)); errors.Is(err, errAbsent) {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "MYSQLTEST_CHILD=1", envWay+"="+string(Debian), envServer+"=")
	out, _ := cmd.Output() // one of them kills itself
	_, rest, found := strings.Cut(string(out), marker)
	require.True(t, found, "%s", out)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func inChild() bool { return os.Getenv("MYSQLTEST_CHILD") != "" }

// TestEndsWithTheProcess: a test process that is killed leaves no server behind.
func TestEndsWithTheProcess(t *testing.T) {
	if inChild() {
		s := Start(t, Options{Own: true})
		fmt.Println("server's pid:", s.instance.(*process).cmd.Process.Pid)
		require.NoError(t, exec.Command("kill", "-9", strconv.Itoa(os.Getpid())).Run())
		select {}
	}
	pid, err := strconv.Atoi(child(t, "server's pid: "))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return startTime(pid) == "gone" || zombie(pid) }, 10*time.Second, 10*time.Millisecond)
}

// TestDetached: a server that may outlive its process keeps its data when that ends, until it ends itself.
func TestDetached(t *testing.T) {
	if inChild() {
		s, err := StartServer(t.Context(), Options{Own: true, Detached: true})
		require.NoError(t, err)
		fmt.Printf("left behind: %s|%s|%s\n", s.Addr(), s.DataDir(), s.EndCommand())
		return
	}
	words := strings.Split(child(t, "left behind: "), "|")

	login, err := parseLogin("root@" + words[0])
	require.NoError(t, err)
	base, err := cacheDir("run")
	require.NoError(t, err)
	require.NoError(t, sweepRunDirs(base), "a sweep of another process")
	require.DirExists(t, words[1])
	text, err := login.Client(t.Context(), nil, "-N", "-e", "SELECT 1")
	require.NoError(t, err)
	require.Equal(t, "1\n", string(text))

	require.NoError(t, exec.Command("sh", "-c", words[2]).Run())
	require.Eventually(t, func() bool {
		return sweepRunDirs(base) == nil && !exists(words[1])
	}, time.Minute, 50*time.Millisecond)
}

// zombie: the server has ended and only waits for the machine's init to collect it, which some containers never do.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestExternalIsLeftAlone(t *testing.T) {
	t.Setenv(envServer, "root:a:b@c@db.example:3307")
	w := &external{}
	require.NoError(t, w.probe(t.Context(), slog.Default()))
	in, err := w.launch(t.Context(), Options{})
	require.NoError(t, err)
	require.Equal(t, Login{Host: "db.example", Port: 3307, User: "root", Password: "a:b@c"}, in.login())
	require.ErrorIs(t, in.stop(t.Context()), ErrNotOwn)
	for _, o := range []Options{{Own: true}, {Args: []string{"--gtid-mode=OFF"}}} {
		_, err = w.launch(t.Context(), o)
		require.ErrorIs(t, err, ErrNotOwn)
	}
}

func TestParseLoginBad(t *testing.T) {
	for _, text := range []string{"", "localhost:3306", "root@localhost", "root@localhost:port", "root@localhost:99999"} {
		_, err := parseLogin(text)
		require.ErrorContains(t, err, "user:password@host:port", text)
	}
}

// fakeWay is a way that works or not.
type fakeWay struct {
	way  Kind
	err  error
	seen *[]Kind
}

func (f fakeWay) kind() Kind { return f.way }
func (f fakeWay) probe(context.Context, *slog.Logger) error {
	*f.seen = append(*f.seen, f.way)
	return f.err
}
func (fakeWay) launch(context.Context, Options) (instance, error) { return nil, errors.New("unused") }

func TestChoose(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		external, containers, path error
		only                       Kind
		want                       Kind
		wantErr                    string
	}{
		"an address comes first":           {want: External},
		"a broken address is an error":     {external: broken, wantErr: envServer},
		"containers next":                  {external: errAbsent, want: Testcontainers},
		"a missing image is passed over":   {external: errAbsent, containers: broken, want: Path},
		"nothing works":                    {external: errAbsent, containers: errAbsent, path: broken, wantErr: "no MySQL server can be had"},
		"one way only":                     {only: Path, want: Path},
		"one way only, and it is not here": {only: Testcontainers, containers: errAbsent, wantErr: "testcontainers: not here"},
		"no such way":                      {only: "podman", wantErr: "want external, testcontainers"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []Kind
			ways := []way{fakeWay{External, test.external, &seen}, fakeWay{Testcontainers, test.containers, &seen}, fakeWay{Path, test.path, &seen}}
			w, err := choose(t.Context(), slog.New(slog.DiscardHandler), test.only, ways)
			if test.wantErr != "" {
				require.ErrorContains(t, err, test.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, w.kind())
		})
	}
}

func TestIsMySQL(t *testing.T) {
	require.True(t, isMySQL("/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))"))
	require.True(t, isMySQL("mysql  Ver 8.4.7 for Linux on x86_64 (MySQL Community Server - GPL)"))
	require.False(t, isMySQL("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"))
	require.False(t, isMySQL("mysql from 11.8.3-MariaDB, client 15.2 for debian-linux-gnu (x86_64)"))
}

func TestFindMirror(t *testing.T) {
	suites := []string{"bookworm", "stable"}
	for name, test := range map[string]struct {
		ext, text string
		want      mirror
	}{
		"stanza": {".sources", "Types: deb\n# a note\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/k.gpg\n\n" +
			"Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\n",
			mirror{"http://mirror.example/debian", "/usr/share/keyrings/k.gpg"}},
		"the key itself": {".sources", "Types: deb deb-src\nURIs: http://m.example\nSuites: stable\nSigned-By:\n -----BEGIN\n .\n abc\n",
			mirror{"http://m.example", "\n -----BEGIN\n .\n abc"}},
		"others first": {".sources", "Enabled: no\nTypes: deb\nURIs: http://off.example\nSuites: bookworm\n\nTypes: deb\nURIs: http://node.example\nSuites: nodistro\n\n\nTypes: deb\nURIs: http://m.example\nSuites: bookworm\n",
			mirror{"http://m.example", ""}},
		"line":          {".list", "# deb http://off.example bookworm main\ndeb-src http://src.example bookworm main\ndeb http://m.example/debian bookworm main contrib\n", mirror{"http://m.example/debian", ""}},
		"line, options": {".list", "deb [arch=amd64 signed-by=/k.gpg] http://m.example/debian stable main\n", mirror{"http://m.example/debian", "/k.gpg"}},
		"none":          {".list", "deb http://m.example/debian trixie main\n", mirror{}},
		"other file":    {".disabled", "deb http://m.example/debian bookworm main\n", mirror{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := findMirror(test.ext, test.text, suites)
			require.Equal(t, test.want, got)
			require.Equal(t, test.want != mirror{}, ok)
		})
	}
	require.Equal(t, "Types: deb\nURIs: http://m.example\nSuites: sid\nComponents: main\nSigned-By: /k.gpg\n", mirror{"http://m.example", "/k.gpg"}.stanza("sid"))
}

// TestOnce: of many that want a folder one makes it; one that fails leaves its work to the next.
func TestOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	broken := errors.New("broken off")
	err := once(t.Context(), dir, func(unfinished string) error {
		require.NoError(t, os.WriteFile(filepath.Join(unfinished, "part"), nil, 0o600))
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.NoDirExists(t, dir)

	var filled atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := once(context.Background(), dir, func(unfinished string) error {
				filled.Add(1)
				_, err := os.Stat(filepath.Join(unfinished, "part"))
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 1, filled.Load())
	require.FileExists(t, filepath.Join(dir, "part"))
}

// TestSweep: folders of the living stay, folders of the dead go.
func TestSweep(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"living", "dead"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o700))
	}
	l, err := tryLock(filepath.Join(base, "living", "owner"))
	require.NoError(t, err)
	defer l.unlock()
	require.NoError(t, sweepRunDirs(base))
	require.DirExists(t, filepath.Join(base, "living"))
	require.NoDirExists(t, filepath.Join(base, "dead"))
}

func TestOwner(t *testing.T) {
	require.False(t, ownerIsGone(owner()), "this process lives")
	host, err := os.Hostname()
	require.NoError(t, err)
	require.True(t, ownerIsGone(host+" 1 0"), "another process has the id now")
	require.True(t, ownerIsGone(host+" 999999999 5"))
	require.False(t, ownerIsGone("elsewhere 1 1"), "nothing is known of other machines")
	require.False(t, ownerIsGone("something else"))
}
