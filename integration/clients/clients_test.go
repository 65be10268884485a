// Package clients runs drivers of other languages against Tidemark and the source, and compares what they print.
package clients

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

func TestMain(m *testing.M) {
	code := mysqltest.Run(m)
	tidemarktest.CleanUp()
	os.Exit(code)
}

// tables have the types that drivers read in different ways; without foreign keys and AUTO_INCREMENT, which are not shown.
var tables = []string{
	`CREATE TABLE every (
		id BIGINT UNSIGNED NOT NULL PRIMARY KEY, ti TINYINT, one TINYINT(1), su SMALLINT UNSIGNED, mi MEDIUMINT, iu INT UNSIGNED, bi BIGINT, price DECIMAL(12,4) NOT NULL,
		wide DECIMAL(60,20), f FLOAT, d DOUBLE, da DATE, dt DATETIME(6), ts TIMESTAMP(3) NULL, t TIME(2), y YEAR, c CHAR(5), v VARCHAR(30) NOT NULL DEFAULT 'x',
		l VARCHAR(20) CHARACTER SET latin1, tt TINYTEXT, tx TEXT, lt LONGTEXT, b BINARY(3), vb VARBINARY(9), bl BLOB, e ENUM('a','é'), s SET('x','y'), bit1 BIT(1), bit9 BIT(9), j JSON)`,
	`INSERT INTO every VALUES (1, -128, 1, 65535, -8388608, 4294967295, -9223372036854775808, -12.5, 12345678901234567890.12345678901234567890, 1.5, -2.5e100, '2024-02-29',
		'2024-02-29 12:34:56.123456', '2024-07-01 10:00:00.5', '-838:59:59', 1901, 'ab', 'héllo 日本 🎉', 'café', 'tt', 'text', 'long', x'00ff', x'0001', x'deadbeef', 'é', 'x,y', 1, b'100000001',
		'{"a": [1, 2.5, null]}')`,
	`INSERT INTO every (id, price) VALUES (18446744073709551615, 0), (2, 1)`,
}

// client is a driver of another language.
type client struct {
	program string
	// install fetches the driver into a directory; its error is a reason to skip.
	install [][]string
	// command runs testdata's program in that directory, with the arguments that every program takes.
	command func(dir, testdata string) []string
}

var drivers = map[string]client{
	"PyMySQL": {
		program: "python3",
		install: [][]string{{"python3", "-m", "venv", "env"}, {"env/bin/pip", "install", "--quiet", "pymysql==1.1.2", "cryptography"}},
		command: func(dir, testdata string) []string {
			return []string{filepath.Join(dir, "env/bin/python"), filepath.Join(testdata, "client.py")}
		},
	},
	"mysql2": {
		program: "npm",
		install: [][]string{{"npm", "install", "--silent", "--no-audit", "--no-fund", "mysql2@3"}},
		command: func(_, testdata string) []string { return []string{"node", filepath.Join(testdata, "client.mjs")} },
	},
	"Connector/J": {
		program: "mvn",
		install: [][]string{{"mvn", "-q", "-B", "dependency:copy", "-Dartifact=com.mysql:mysql-connector-j:9.3.0", "-DoutputDirectory=."}},
		command: func(dir, testdata string) []string {
			return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(dir, "mysql-connector-j-9.3.0.jar"), filepath.Join(testdata, "Client.java")}
		},
	},
}

// fetchTime is how long a driver may take to be fetched.
const fetchTime = 40 * time.Second

// fetch installs a driver once for all runs, in the user's cache.
func fetch(t *testing.T, name string, c client) (dir string) {
	t.Helper()
	if _, err := exec.LookPath(c.program); err != nil {
		t.Skipf("%s is not tested: %v", name, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("%s is not tested: %v", name, err)
	}
	dir = filepath.Join(cache, "tidemark", "clients", strings.ReplaceAll(name, "/", ""))
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return dir
	}
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), fetchTime)
	defer cancel()
	for _, step := range c.install {
		program := step[0]
		if strings.Contains(program, "/") {
			program = filepath.Join(dir, program)
		}
		cmd := exec.CommandContext(ctx, program, step[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%s is not tested: it cannot be fetched: %s: %v\n%.300s", name, strings.Join(step, " "), err, out)
		}
	}
	require.NoError(t, os.WriteFile(complete, nil, 0o644))
	return dir
}

// run gives what a driver's program prints of a server.
func run(t *testing.T, c client, dir string, s mysqltest.Login, database string) string {
	t.Helper()
	testdata, err := filepath.Abs("testdata")
	require.NoError(t, err)
	args := append(c.command(dir, testdata), s.Host, fmt.Sprint(s.Port), database, filepath.Join(testdata, "statements.sql"))
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s\n%s", &out, &errs)
	return out.String()
}

// QUERY-05, QUERY-06, QUERY-08, QUERY-15: drivers see the same columns, types, values and errors on both servers.
func TestDrivers(t *testing.T) {
	source, database := mysqltest.FreshDatabase(t)
	if source.Password != "" {
		t.Skip("the programs log in without a password")
	}
	source.Exec(t, database, tables...)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, database)
	tm.CatchUp(source, database)
	for name, c := range drivers {
		t.Run(name, func(t *testing.T) {
			dir := fetch(t, name, c)
			want := strings.Split(run(t, c, dir, source.Login, database), "\n")
			got := strings.Split(run(t, c, dir, tm.Login, database), "\n")
			for i := range min(len(want), len(got)) {
				require.Equal(t, want[i], got[i], "line %d, after:\n%s", i+1, strings.Join(want[max(0, i-5):i], "\n"))
			}
			require.Len(t, got, len(want))
		})
	}
}
