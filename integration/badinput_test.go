package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// secret is the password of every source in the tests of bad input; it must appear nowhere.
const secret = "S3cret'pass\"word"

// refused wants one error that says all the parts, and no password.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("it was accepted, want an error with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(part)) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "S3cret") {
		t.Errorf("the error has the password: %v", err)
	}
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// createText is CREATE DATABASE of an account with any password.
func createText(l mysqltest.Login, sourceDatabase, name string) string {
	l.Password = strings.ReplaceAll(l.Password, "'", "''")
	return tidemarktest.CreateStatement(l, sourceDatabase, name)
}

// TestCreateRefused: each thing that is wrong with a source or a statement is one clear error, and leaves nothing behind.
func TestCreateRefused(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair+`
		CREATE USER good@'%' IDENTIFIED BY `+quote(secret)+`; GRANT SELECT, RELOAD, PROCESS, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO good@'%';
		CREATE USER weak@'%' IDENTIFIED BY `+quote(secret)+`; GRANT SELECT ON `+db+`.a TO weak@'%';
		CREATE DATABASE `+db+`_bad; USE `+db+`_bad; CREATE TABLE g (id INT PRIMARY KEY, e ENUM('😀')); CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM;
		CREATE TABLE k (s VARCHAR(20) CHARACTER SET utf16 PRIMARY KEY); CREATE TABLE fine (id INT PRIMARY KEY); CREATE TABLE px (name TEXT NOT NULL, PRIMARY KEY (name(4)));`)
	good := source.Login
	good.User, good.Password = "good", secret
	as := func(change func(l *mysqltest.Login)) mysqltest.Login {
		l := good
		change(&l)
		return l
	}
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	closed := closedPort(t)
	for _, tc := range []struct {
		name  string
		from  mysqltest.Login
		db    string
		parts []string
	}{
		{"nobody listens there", as(func(l *mysqltest.Login) { l.Port = closed }), db, []string{fmt.Sprint(closed), "refused", "check the host and the port"}},
		{"no such host", as(func(l *mysqltest.Login) { l.Host = "no-such-host.invalid" }), db, []string{"no-such-host.invalid", "check the host"}},
		{"wrong password", as(func(l *mysqltest.Login) { l.Password = "S3cret-wrong" }), db, []string{"good", "password", source.Addr()}},
		{"no such account", as(func(l *mysqltest.Login) { l.User = "nobody" }), db, []string{"nobody", "password"}},
		{"no such database", good, "nowhere", []string{"nowhere", source.Addr()}},
		{"privileges missing, all named", as(func(l *mysqltest.Login) { l.User = "weak" }), db, []string{"REPLICATION SLAVE", "REPLICATION CLIENT", "SELECT", "GRANT"}}, // CLOUD-09
		{"tables that can't be, all named", good, db + "_bad", []string{".g", "label", ".m ", "MyISAM", "exclude_tables"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			refused(t, tm.Exec(createText(tc.from, tc.db, "here")), tc.parts...)
			if r := tm.Run("sync", "status", "--json"); strings.TrimSpace(r.Out) != "[]" {
				t.Errorf("something was left: %s", r.Out)
			}
		})
	}
	t.Run("the rest of them is taken when asked for", func(t *testing.T) {
		must(t, tm.Exec(createText(good, db+"_bad", "rest")+" SETTINGS include_tables = 'fine'"))
		tm.Await("rest", "it streams", func(st tidemarktest.Status) bool { return st.State == "streaming" })
		must(t, tm.Exec("DROP DATABASE rest"))
	})
	t.Run("a name in use", func(t *testing.T) {
		must(t, tm.Exec(createText(good, db, "taken")))
		refused(t, tm.Exec(createText(good, db, "taken")), "taken", "exists")
		must(t, tm.Exec(strings.Replace(createText(good, db, "taken"), "DATABASE", "DATABASE IF NOT EXISTS", 1)))
		refused(t, tm.Exec("CREATE DATABASE information_schema ENGINE = MaterializedMySQL('h:1','d','u','p')"), "information_schema")
	})
	tm.CatchUp(source, "taken")
	t.Run("statements", func(t *testing.T) {
		for statement, parts := range map[string][]string{
			"CREATE DATABASE x ENGINE = Memory":                             {"Memory"},
			"CREATE DATABASE x ENGINE = MaterializedMySQL('h:3306', 'd')":   {"MaterializedMySQL"},
			createText(good, db, "x") + " SETTINGS no_such_setting = 1":     {"no_such_setting"},
			createText(good, db, "x") + " SETTINGS max_rows_in_buffer = -1": {"max_rows_in_buffer"},
			createText(good, db, "x") + " SETTINGS skip_ddl_patterns = 'x'": {"skip_ddl_patterns", "guarantee 3"},
			createText(good, db, "x") + " SETTINGS include_tables = '('":    {"include_tables"},
			createText(good, db, "x") + " TABLE OVERRIDE a (ORDER BY id)":   {"TABLE OVERRIDE"},
			"SYSTEM RESYNC MATERIALIZEDMYSQL TABLE taken.nothing":           {"nothing"},
			"SYSTEM STOP MATERIALIZEDMYSQL nowhere":                         {"nowhere"},
			"DROP DATABASE nowhere":                                         {"nowhere"},
			"INSERT INTO taken.a VALUES (1, 'x')":                           {"read-only"},
			"CREATE TABLE taken.z (id INT)":                                 {"read-only"},
		} {
			refused(t, tm.Exec(statement), parts...)
		}
	})
	noSecret(t, tm, secret)
	noSecret(t, tm, "S3cret")
	for _, show := range []string{"SHOW CREATE DATABASE taken", "SELECT * FROM information_schema.SCHEMATA"} {
		if text := value(t, tm.Login, "%s", show); strings.Contains(text, "S3cret") {
			t.Errorf("%s shows the password: %s", show, text)
		}
	}
}

// TestServersThatCannotBeFollowed: what is wrong with the server itself, all of it in one message.
func TestServersThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	try := func(t *testing.T, args []string, settings string, parts ...string) {
		source := mysqltest.Start(t, mysqltest.Options{Own: true, Args: args})
		source.Exec(t, "", "CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY)")
		if settings != "" {
			source.Exec(t, "", settings)
		}
		refused(t, tm.Exec(tidemarktest.CreateStatement(source.Login, "shop", "shop")), parts...)
	}
	t.Run("no binlog", func(t *testing.T) { try(t, []string{"--skip-log-bin"}, "", "log_bin", "binlog") }) // CLOUD-04
	t.Run("format", func(t *testing.T) {
		try(t, []string{"--binlog-format=MIXED"}, "", "binlog_format", "MIXED", "ROW", "SET PERSIST")
	})
	t.Run("database not logged", func(t *testing.T) { try(t, []string{"--binlog-ignore-db=shop"}, "", "binlog_ignore_db", "shop") }) // PROTO-23
}

// TestSettingsChangedUnderTheStream: a source that stops logging rows is noticed at the first statement, not by missing rows. OPS-07
func TestSettingsChangedUnderTheStream(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, pair)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db, "auto_resync = 0")
	script(t, source.Login, db, "SET GLOBAL binlog_format='STATEMENT'; SET GLOBAL binlog_row_image='MINIMAL';")
	script(t, source.Login, db, "UPDATE a SET v='by statement' WHERE id=1; INSERT INTO b VALUES (2,'by statement');")
	st := tm.CatchUp(source, db)
	for _, table := range []string{"a", "b"} {
		if got := st.Table(table); got.State != "quarantined" {
			t.Errorf("table %s is %s after a statement that was not logged as rows", table, got.State)
		}
	}
	if got := value(t, tm.Login, "SELECT v FROM `%s`.a WHERE id=1", db); got != "one" {
		t.Errorf("the quarantined table has %q, want what it had", got)
	}
}

func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestServeRefuses: what keeps the server from starting.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	running := tidemarktest.Start(t, tidemarktest.Options{})
	start := func(t *testing.T, args ...string) (code int, text string) {
		t.Helper()
		r := tidemarktest.Run(t, append([]string{"serve"}, args...)...)
		return r.Code, r.Out + r.Err
	}
	says := func(t *testing.T, code int, text string, parts ...string) {
		t.Helper()
		if code == 0 {
			t.Errorf("exit code 0: %s", text)
		}
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("it does not say %q: %s", part, text)
			}
		}
		if strings.Contains(text, "goroutine ") {
			t.Errorf("it ended with a stack trace: %s", text)
		}
	}
	t.Run("data directory in use", func(t *testing.T) {
		code, text := start(t, "--data", running.DataDir, "--mysql-addr", "127.0.0.1:0")
		says(t, code, text, running.DataDir, "in use")
	})
	t.Run("port in use", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		code, text := start(t, "--data", dir, "--mysql-addr", running.Addr())
		says(t, code, text, running.Addr(), "in use", "--mysql-addr")
		if _, err := os.Stat(dir); err == nil {
			t.Error("the data directory was touched")
		}
	})
	t.Run("not a directory", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(file, nil, 0o600))
		code, text := start(t, "--data", file, "--mysql-addr", "127.0.0.1:0")
		says(t, code, text, file)
	})
	t.Run("somebody else's directory", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, "meta"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "meta", "CURRENT"), []byte("other"), 0o600))
		code, text := start(t, "--data", dir, "--mysql-addr", "127.0.0.1:0")
		says(t, code, text, dir)
	})
	t.Run("a newer version's directory", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.CopyFS(dir, os.DirFS(running.DataDir)))
		must(t, os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("tidemark store format 999\n"), 0o600))
		code, text := start(t, "--data", dir, "--mysql-addr", "127.0.0.1:0")
		says(t, code, text, dir, "newer version")
	})
	t.Run("open to the network without a password", func(t *testing.T) {
		code, text := start(t, "--data", filepath.Join(t.TempDir(), "data"), "--mysql-addr", "0.0.0.0:0")
		says(t, code, text, "password")
	})
	t.Run("no server", func(t *testing.T) {
		r := tidemarktest.Run(t, "sync", "status", "--addr", fmt.Sprintf("127.0.0.1:%d", closedPort(t)))
		says(t, r.Code, r.Out+r.Err, "no server answers")
		if r.Code != 4 {
			t.Errorf("exit code %d, want 4", r.Code)
		}
	})
}

// TestDamagedFiles: damage is found, named and never read as data; queries of other tables go on.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, "SET cte_max_recursion_depth=100000; CREATE TABLE hit (id INT PRIMARY KEY, v VARCHAR(200)); INSERT INTO hit WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000) SELECT i, SHA2(i, 256) FROM n; CREATE TABLE fine LIKE hit; INSERT INTO fine SELECT * FROM hit;")
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	tm.CatchUp(source, db)
	tm.Stop()
	part := damage(t, tm.DataDir)
	if r := tidemarktest.Run(t, "verify", "--store", "--data", tm.DataDir); r.Code != 1 || !strings.Contains(r.Out+r.Err, filepath.Base(part)) {
		t.Errorf("verify --store of a damaged file: code %d, it should be 1 and name %s:\n%s%s", r.Code, filepath.Base(part), r.Out, r.Err)
	}
	tm.Start()
	broken, whole := 0, 0
	for _, table := range []string{"hit", "fine"} {
		out, err := tm.Client(t.Context(), nil, "-N", "-e", "SELECT COUNT(DISTINCT v), COUNT(*) FROM `"+db+"`."+table)
		switch {
		case err == nil && string(out) == "20000\t20000\n":
			whole++
		case err != nil && strings.Contains(err.Error(), filepath.Base(part)):
			broken++
		default:
			t.Errorf("table %s: %q, %v; want its rows or an error that names %s", table, out, err, filepath.Base(part))
		}
	}
	if broken != 1 || whole != 1 {
		t.Errorf("%d tables answer and %d name the damaged file", whole, broken)
	}
	if r := tm.Run("verify", "--store"); r.Code != 1 || !strings.Contains(r.Out+r.Err, filepath.Base(part)) {
		t.Errorf("verify --store on a running server: code %d, it should be 1 and name %s:\n%s%s", r.Code, filepath.Base(part), r.Out, r.Err)
	}
}

// partFiles are the paths of all parts.
func partFiles(t *testing.T, dir string) []string {
	t.Helper()
	var parts []string
	must(t, filepath.WalkDir(filepath.Join(dir, "parts"), func(p string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // merged away meanwhile
		}
		if err == nil && strings.HasSuffix(p, ".parquet") {
			parts = append(parts, p)
		}
		return err
	}))
	return parts
}

// damage flips bytes in the middle of the first part that there is and returns its path.
func damage(t *testing.T, dir string) string {
	t.Helper()
	parts := partFiles(t, dir)
	if len(parts) == 0 {
		t.Fatal("there are no parts")
	}
	part := parts[0]
	b, err := os.ReadFile(part)
	must(t, err)
	for i := range 64 {
		b[len(b)/2+i] ^= 0xFF
	}
	must(t, os.WriteFile(part, b, 0o600))
	return part
}

// TestDiskFull: a full disk stops the writing, not the reading; it goes on by itself when there is room again. RES-08
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 512<<20)
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	db := source.FreshDatabase(t)
	script(t, source.Login, db, "CREATE TABLE noise (id INT AUTO_INCREMENT PRIMARY KEY, v BLOB); INSERT INTO noise (v) VALUES ('first');")
	tm := tidemarktest.Start(t, tidemarktest.Options{DataDir: filepath.Join(dir, "data")})
	tm.Create(source.Login, db, "max_wait_time_when_mysql_unavailable = 500")
	ballast := filepath.Join(dir, "ballast") // leaves less than what is kept in reserve, 256 MiB
	must(t, os.WriteFile(ballast, bytes.Repeat([]byte{1}, 300<<20), 0o600))
	script(t, source.Login, db, strings.Repeat("INSERT INTO noise (v) VALUES (RANDOM_BYTES(1024)),(RANDOM_BYTES(1024)); INSERT INTO noise (v) SELECT RANDOM_BYTES(1024) FROM noise LIMIT 100;", 100))
	tm.Await(db, "it says that the disk is full", func(st tidemarktest.Status) bool { return strings.Contains(st.Problem(), "disk is full") })
	refused(t, tm.Exec(tidemarktest.CreateStatement(source.Login, db, "another")), "disk is full")
	if got := value(t, tm.Login, "SELECT COUNT(*) > 0 FROM `%s`.noise", db); got != "1" {
		t.Errorf("a query on a full disk gives %q", got)
	}
	must(t, os.Remove(ballast))
	tm.CatchUp(source, db)
	tidemarktest.Same(t, source.Login, tm.Login, db, tidemarktest.Query{Name: "sums", Text: "SELECT COUNT(*), MAX(id), SUM(LENGTH(v)) FROM noise"})
	tm.VerifyStore()
	verifyEqual(t, tm, db)
}

// smallDisk mounts a file system in memory, which only root may.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", bytes), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}
