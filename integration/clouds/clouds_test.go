package clouds

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

func open(t *testing.T, l mysqltest.Login) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.AllowNativePasswords = l.User, l.Password, "tcp", l.Addr(), true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func code(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func value(t *testing.T, db *sql.DB, query string, args ...any) (name, value string) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&name, &value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return name, value
}

func TestRDS(t *testing.T) {
	s := mysqltest.Shared(t)
	l := Login(t, s, RDSLike)
	db := open(t, l)
	if _, basedir := value(t, db, "SHOW GLOBAL VARIABLES LIKE 'basedir'"); !strings.HasPrefix(basedir, "/rdsdbbin/") {
		t.Error(basedir)
	}
	if _, err := db.Exec("flush tables  with read lock"); code(err) != 1045 || !strings.Contains(err.Error(), l.User) {
		t.Error(err)
	}
	if _, err := db.Exec("SET GLOBAL max_connections = 10"); code(err) != 1227 {
		t.Error(err)
	}
	if _, err := db.Exec("CALL mysql.rds_set_configuration('binlog retention hours', 169)"); code(err) != 1644 {
		t.Error(err)
	}
	if _, err := db.Exec("CALL mysql.rds_set_configuration('binlog retention hours', 24)"); err != nil {
		t.Error(err)
	}
	defer s.Exec(t, "", "CALL mysql.rds_set_configuration('binlog retention hours', NULL)")
	if _, hours := value(t, db, "SELECT name, value FROM mysql.rds_configuration WHERE name LIKE ?", "binlog%"); hours != "24" {
		t.Error(hours)
	}
	// Long rows, many rows, prepared and not, go through as they are.
	var size int
	if err := db.QueryRow("SELECT LENGTH(REPEAT('x', 20000000))").Scan(&size); err != nil || size != 20_000_000 {
		t.Error(size, err)
	}
	rows, err := db.Query("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, REPEAT('y', i) FROM n WHERE i > ?", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	if n != 1000 || rows.Err() != nil {
		t.Error(n, rows.Err())
	}
}

func TestCloudSQLAndLeast(t *testing.T) {
	s := mysqltest.Shared(t)
	db := open(t, Login(t, s, CloudSQLLike))
	if _, version := value(t, db, "SHOW VARIABLES LIKE 'version'"); version != s.Version()+"-google" {
		t.Error(version)
	}
	if _, err := db.Exec("FLUSH TABLES WITH READ LOCK"); code(err) != 1227 {
		t.Error(err)
	}
	if _, err := db.Query("SHOW BINARY LOG STATUS"); err != nil {
		t.Error(err)
	}
	least := open(t, Login(t, s, Least))
	if _, err := least.Exec("FLUSH TABLES WITH READ LOCK"); code(err) != 1227 {
		t.Error(err)
	}
	if _, err := least.Exec("LOCK TABLES mysql.user READ"); code(err) != 1044 {
		t.Error(err)
	}
	if all := Login(t, s, All); all != s.Login {
		t.Error(all)
	}
}

func TestMySQL57(t *testing.T) {
	s, name := mysqltest.FreshDatabase(t)
	s.Exec(t, name, "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP, v VARCHAR(9) CHARACTER SET utf8mb3)")
	db := open(t, NewProxy(t, s.Login, "5.7.44-log", MySQL57()...).Login)
	if _, err := db.Exec("SHOW BINARY LOG STATUS"); code(err) != 1064 {
		t.Error(err)
	}
	if _, err := db.Exec("SHOW MASTER STATUS"); err != nil {
		t.Error(err)
	}
	columns := "SELECT COLUMN_TYPE, CONCAT(EXTRA, '|', IFNULL(CHARACTER_SET_NAME, '')) AS x FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '" + name + "' AND COLUMN_NAME = "
	if kind, _ := value(t, db, columns+"'id'"); kind != "int(11) unsigned" {
		t.Error(kind)
	}
	shown := func(query string) string { _, v := value(t, db, query); return v }
	if v := shown("SELECT COLUMN_NAME, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '" + name + "' AND COLUMN_NAME = 'at'"); v != "" {
		t.Error(v)
	}
	if v := shown("SELECT COLUMN_NAME, CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '" + name + "' AND COLUMN_NAME = 'v'"); v != "utf8" {
		t.Error(v)
	}
	var any sql.NullString
	if err := db.QueryRow("SHOW VARIABLES LIKE 'binlog_expire_logs_seconds'").Scan(&any, &any); !errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
}

func TestLengths(t *testing.T) {
	for _, n := range []uint64{0, 250, 251, 65535, 65536, 1<<24 - 1, 1 << 24, 1 << 40} {
		got, null, rest, err := lengthEncoded(append(appendLength(nil, n), 7))
		if got != n || null || len(rest) != 1 || err != nil {
			t.Error(n, got, null, rest, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte{1}, []byte{3, 'd', 'e', 'f', 0, 0, 0, 1, 'c', 0}, []byte{2, 'a', 'b'})
	f.Add([]byte{0xfc}, []byte{}, []byte{0xfb})
	f.Fuzz(func(t *testing.T, first, column, row []byte) {
		eof := []byte{eofHeader, 0, 0, 0, 0}
		c := &collector{edit: func(string, *Rows) {}}
		for _, payload := range [][]byte{first, column, eof, row, eof} {
			if c.take(packet{payload: payload}) {
				break
			}
		}
		_, _ = c.answer() // no panic
		_, _ = greeting(packet{payload: first}, "9")
	})
}
