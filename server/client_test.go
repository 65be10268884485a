package server

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
)

// The real client, as text, as a table, as XML, and what it prints of types.
func TestClient(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 2, "things")
	require.Equal(t, "id\tname\tprice\tat\tweight\n1\tthing 0 é\t0.25\t2024-02-29 12:30:00.123\t16777200\n2\tthing 1 é\t1.25\t2024-02-29 12:30:01.123\t16777200\n",
		f.client("SELECT * FROM things ORDER BY id", "shop"))
	require.Contains(t, f.client("SELECT id, NULL n FROM things WHERE id = 1", "--xml", "shop"), `<field name="n" xsi:nil="true" />`)
	require.Equal(t, "information_schema\nshop\nsystem\n", f.client("SHOW DATABASES", "-N"))
	require.Equal(t, "Tables_in_shop\tTable_type\nthings\tBASE TABLE\n", f.client("SHOW FULL TABLES", "shop"))
	require.Equal(t, "Tables_in_shop (%)\nthings\n", f.client("SHOW TABLES LIKE '%'", "shop"))
	require.Equal(t, "8.4.0-Tidemark\n", f.client("SELECT VERSION()", "-N"))
}

// QUERY-05: what tools ask for when they connect and list tables.
func TestMetadataQueries(t *testing.T) {
	f := newFixture(t)
	f.fill("app", 2, "t")
	for _, q := range []string{
		"SHOW FULL TABLES FROM `app` LIKE '%'", "SHOW FULL COLUMNS FROM `t` FROM `app` LIKE '%'", "SHOW KEYS FROM `t` FROM `app`", "SHOW INDEX FROM app.t",
		"SHOW CREATE TABLE t", "SHOW TABLE STATUS", "SELECT * FROM information_schema.STATISTICS WHERE TABLE_SCHEMA='app'",
		"SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA", "SHOW ENGINES", "SHOW PLUGINS", "SHOW CHARSET", "SHOW WARNINGS",
		"SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_NAME = 't'", "SHOW COLLATION WHERE Charset = 'utf8mb4' AND `Default` = 'Yes'",
		"SHOW VARIABLES LIKE 'lower_case_%'", "SHOW SESSION VARIABLES WHERE Variable_name IN ('sql_mode','version')", "SHOW GLOBAL STATUS", "SHOW PROCESSLIST",
		"SELECT TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY 1",
		"SELECT c.COLUMN_NAME, t.TABLE_TYPE FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME) WHERE t.TABLE_SCHEMA = 'app'",
		"SHOW GRANTS", "SHOW CREATE DATABASE app", "DESCRIBE t", "DESC t name", "SHOW TRIGGERS", "SHOW EVENTS", "SHOW PROCEDURE STATUS", "SHOW FUNCTION STATUS WHERE Db = 'app'",
		"SELECT * FROM system.materialized_mysql", "SELECT * FROM system.materialized_mysql_tables", "SELECT * FROM system.materialized_mysql_log",
		"SELECT ID, USER, INFO FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query'", "DESCRIBE information_schema.TABLES", "SHOW TABLES FROM information_schema", "SHOW TABLES FROM system",
	} {
		out, err := f.tryClient(q, "--xml", "app")
		require.NoError(t, err, "%s: %s", q, out)
		require.Contains(t, string(out), "<resultset", q)
	}
	require.Contains(t, f.client("SHOW COLUMNS FROM t WHERE Field = 'price'", "app"), "price\tdecimal(10,2)\tYES\t\tNULL\t\n")
}

// QUERY-06
func TestSessionVariables(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 1, "things")
	for _, q := range []string{
		`/* mysql-connector-j */SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client,
		 @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server,
		 @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect,
		 @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names,
		 @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema,
		 @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation,
		 @@wait_timeout AS wait_timeout`,
		"SET SESSION TRANSACTION READ ONLY", "SET autocommit=1, sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES')",
		"SET @@sql_select_limit=DEFAULT", "SET SQL_AUTO_IS_NULL=0", "SET NAMES utf8mb4", "SET NAMES latin1 COLLATE latin1_bin", "SET CHARACTER SET utf8",
		"/*!40101 SET NAMES utf8 */", "/* ApplicationName=DBeaver */ SET time_zone = '+02:00'", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"SET sql_mode='NO_ENGINE_SUBSTITUTION,NO_AUTO_CREATE_USER'", "SET @a = 1, @b := 'x'", "SELECT @a + 1, @b, @unset", "SET character_set_results = NULL",
		"PREPARE s FROM 'SELECT @@version_comment, @@collation_server'; EXECUTE s; DEALLOCATE PREPARE s",
		"SET @x = 2; PREPARE s FROM 'SELECT name FROM things WHERE id < ?'; EXECUTE s USING @x", "BEGIN; SELECT 1; COMMIT", "START TRANSACTION READ ONLY; ROLLBACK",
		"SELECT @@gtid_executed, @@server_uuid, @@read_only, @@global.super_read_only", "SET foreign_key_checks = 0, unique_checks = OFF", "DO 1",
	} {
		out, err := f.tryClient(q, "shop")
		require.NoError(t, err, "%s: %s", q, out)
	}
	for q, code := range map[string]int{
		"SET no_such = 1": 1193, "SELECT @@no_such": 1193, "SET version = 'x'": 1238, "SET GLOBAL timestamp = 1": 1228, "SET max_connections = 5": 1229,
		"SET time_zone = 'Mars/Base'": 1298, "SET NAMES klingon": 1115, "SET NAMES utf8mb4 COLLATE latin1_bin": 1253, "SET sql_mode = 'NO_SUCH'": 1231,
		"SET autocommit = 7": 1231, "SET wait_timeout = 'x'": 1232, "USE nowhere": 1049, "SELECT * FROM missing": 1146, "SELEC 1": 1064, "EXECUTE nope": 1243,
		"SELECT * FROM nowhere.t": 1049, "SHOW COLUMNS FROM missing": 1146, "KILL 4000000": 1094,
	} {
		out, err := f.tryClient(q, "shop")
		require.Error(t, err, q)
		require.Contains(t, string(out)+err.Error(), fmt.Sprintf("ERROR %d ", code), q)
	}
}

func TestWritesAreRefused(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 1, "things")
	db := f.db("shop")
	for _, q := range []string{
		"INSERT INTO things (id) VALUES (9)", "UPDATE things SET price = 1", "DELETE FROM things", "DROP TABLE things", "TRUNCATE things", "CREATE TABLE x (a INT)",
		"ALTER TABLE things ADD x INT", "CREATE USER u IDENTIFIED BY 'S3cret'", "GRANT ALL ON *.* TO u", "CREATE INDEX i ON things (name)", "LOCK TABLES things WRITE",
		"CREATE PROCEDURE p() BEGIN END", "RENAME TABLE things TO t2", "REPLACE INTO things (id) VALUES (1)", "CREATE DATABASE x", "LOAD DATA INFILE 'x' INTO TABLE things",
	} {
		_, err := db.Exec(q)
		requireCode(t, err, 1290)
	}
}

// QUERY-08
func TestPreparedStatements(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 100, "things")
	db := f.db("shop")
	count := func(q string, args ...any) (n int) {
		t.Helper()
		require.NoError(t, db.QueryRow(q, args...).Scan(&n), q)
		return n
	}
	require.Equal(t, 100, count("SELECT COUNT(*) FROM things WHERE at > ? AND at <= ?", "2024-02-29 12:29:59", time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, 1, count("SELECT COUNT(*) FROM things WHERE price = ?", "7.25"))
	require.Equal(t, 2, count("SELECT COUNT(*) FROM things WHERE id IN (?, ?)", 1, uint64(2)))
	require.Equal(t, 0, count("SELECT COUNT(*) FROM things WHERE id = ?", uint64(18446744073709551615)))
	require.Equal(t, 0, count("SELECT COUNT(*) FROM things WHERE name = ?", nil))
	require.Equal(t, 1, count("SELECT COUNT(*) FROM things WHERE name = ?", []byte("thing 5 é")))
	require.Equal(t, 1, count("SELECT COUNT(*) FROM things WHERE id = ?", true))

	st, err := db.Prepare("SELECT id FROM things WHERE id > ? ORDER BY id LIMIT ?")
	require.NoError(t, err)
	for _, first := range []any{int64(3), "3", 3.0} { // executed again with other types
		rows, err := st.Query(first, 2)
		require.NoError(t, err)
		var ids []int
		for rows.Next() {
			var id int
			require.NoError(t, rows.Scan(&id))
			ids = append(ids, id)
		}
		require.NoError(t, rows.Err())
		require.Equal(t, []int{4, 5}, ids)
	}
	// bytes that are no text, as a parameter and written into the statement
	var hex string
	require.NoError(t, db.QueryRow("SELECT HEX(?)", []byte{0xff, 0, 0x27}).Scan(&hex))
	require.Equal(t, "FF0027", hex)
	interpolating := f.db("shop", func(c *driver.Config) { c.InterpolateParams = true })
	require.NoError(t, interpolating.QueryRow("SELECT HEX(?)", []byte{0xff, 0, 0x27, 0xc3}).Scan(&hex))
	require.Equal(t, "FF0027C3", hex)

	var text sql.NullString
	require.NoError(t, db.QueryRow("SELECT ?", "12.50").Scan(&text))
	require.Equal(t, "12.50", text.String)

	many := make([]any, 65535)
	for i := range many {
		many[i] = i
	}
	_ = many
	_, err = db.Prepare("SELECT id FROM missing WHERE id = ?")
	requireCode(t, err, 1146)
	long := strings.Repeat("x", 1<<20) // sent by COM_STMT_SEND_LONG_DATA
	var n int
	db2 := f.db("shop", func(c *driver.Config) { c.MaxAllowedPacket = 64 << 10 })
	require.NoError(t, db2.QueryRow("SELECT LENGTH(?)", long).Scan(&n))
	require.Equal(t, len(long), n)
}

// QUERY-15
func TestLogin(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Users = map[string]string{"root": "S3cret", "old": "pass"} })
	ping := func(user, password string) error {
		db := f.db("", func(c *driver.Config) { c.User, c.Passwd, c.AllowNativePasswords = user, password, true })
		return db.PingContext(context.Background())
	}
	require.NoError(t, ping("root", "S3cret"))
	require.NoError(t, ping("old", "pass"))
	requireCode(t, ping("root", "wrong"), 1045)
	requireCode(t, ping("root", ""), 1045)
	requireCode(t, ping("nobody", "x"), 1045)
}

func TestManagement(t *testing.T) {
	f := newFixture(t)
	db := f.db("")
	_, err := db.Exec("CREATE DATABASE IF NOT EXISTS shop ENGINE = MaterializedMySQL('h:3307', 'app', 'u', 'S3cret') SETTINGS max_flush_data_time = 100")
	require.NoError(t, err)
	require.Equal(t, "create shop true", f.manager.calls[0])
	require.Equal(t, "S3cret", f.manager.specs[0].Password)
	for _, q := range []string{"SYSTEM STOP MATERIALIZEDMYSQL shop", "SYSTEM START MATERIALIZEDMYSQL shop", "ALTER DATABASE shop MODIFY SETTING a = 1", "DROP DATABASE IF EXISTS shop"} {
		_, err := db.Exec(q)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"stop shop", "start shop", "modify shop map[a:1]", "drop shop true"}, f.manager.calls[1:])
	_, err = db.Exec("SYSTEM RESYNC MATERIALIZEDMYSQL TABLE shop.orders")
	require.NoError(t, err)
	require.Equal(t, "resync shop.orders", f.manager.calls[5])
	_, err = db.Exec("CREATE DATABASE information_schema ENGINE = MaterializedMySQL('h:3307', 'app', 'u', 'S3cret')")
	requireCode(t, err, 1007)
	rows, err := db.Query("SYSTEM VERIFY STORE")
	require.NoError(t, err)
	require.False(t, rows.Next())
	require.NoError(t, rows.Close())
}

// A database whose first copy is not complete fails with one clear error, and is never empty.
func TestNotReadable(t *testing.T) {
	f := newFixture(t)
	_, err := f.store.CreateDatabase(context.Background(), "shop", []byte("{}"))
	require.NoError(t, err)
	db := f.db("shop")
	for _, q := range []string{"SELECT * FROM things", "SHOW TABLES", "SHOW CREATE TABLE things", "SELECT 1 FROM shop.x"} {
		_, err := db.Query(q)
		requireCode(t, err, 3168)
	}
}

// Guarantee 1.
func TestMixedPoints(t *testing.T) {
	f := newFixture(t)
	f.fill("a", 1, "things")
	f.fill("b", 1, "things")
	db := f.db("a", func(c *driver.Config) { c.Params = nil })
	db.SetMaxOpenConns(1)
	_, err := db.Query("SELECT * FROM a.things x JOIN b.things y USING (id)")
	require.ErrorContains(t, err, "different points in time")
	_, err = db.Exec("SET tidemark_mixed_points = 1")
	require.NoError(t, err)
	rows, err := db.Query("SELECT * FROM a.things x JOIN b.things y USING (id)")
	require.NoError(t, err)
	require.NoError(t, rows.Close())
}

// A table in quarantine is answered alone, with a warning, and not beside one that went on.
func TestQuarantine(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 2, "good", "bad")
	info, err := f.store.Database("shop")
	require.NoError(t, err)
	bad, err := f.store.Table(info.ID, "bad")
	require.NoError(t, err)
	x := f.store.Begin(info.ID)
	require.NoError(t, x.Quarantine(bad.ID, "an UPDATE of a row that is not here", []byte("point")))
	x.SetPoint([]byte("later"))
	_, err = x.Commit(context.Background())
	require.NoError(t, err)

	require.Equal(t, "n\n2\nLevel\tCode\tMessage\nWarning\t1105\tTable 'shop.bad' is in quarantine and stays as it was before: an UPDATE of a row that is not here\n",
		f.client("SELECT COUNT(*) n FROM bad; SHOW WARNINGS", "shop"))
	for _, q := range []string{
		"SELECT * FROM good JOIN bad USING (id)", "SELECT * FROM good WHERE id IN (SELECT id FROM bad)", "SELECT id FROM good UNION SELECT id FROM bad",
		"WITH b AS (SELECT * FROM bad) SELECT * FROM b, good",
	} {
		out, err := f.tryClient(q, "shop")
		require.ErrorContains(t, err, "table 'shop.bad' is in quarantine", "%s: %s", q, out)
	}
	require.Equal(t, "2\n", f.client("SELECT COUNT(*) FROM bad a JOIN bad b USING (id)", "-N", "shop"))
	require.Contains(t, f.client("SET tidemark_mixed_points = 1; SELECT COUNT(*) FROM good JOIN bad USING (id); SHOW WARNINGS", "shop"), "Points in time are mixed")
}
