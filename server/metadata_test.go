package server

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

// mirrored makes the tables on a MySQL server, and the same, empty, on a server of ours.
func mirrored(t *testing.T, statements ...string) (source *mysqltest.Server, database string, f *fixture) {
	t.Helper()
	ctx := context.Background()
	source, database = mysqltest.FreshDatabase(t)
	source.Exec(t, database, statements...)
	conn, err := wire.Dial(ctx, wire.Config{Host: source.Host, Port: source.Port, User: source.User, Password: source.Password})
	require.NoError(t, err)
	defer conn.Close()
	tables, err := compat.ReadTables(ctx, conn, database, nil)
	require.NoError(t, err)
	f = newFixture(t)
	id, err := f.store.CreateDatabase(ctx, database, []byte("{}"))
	require.NoError(t, err)
	x := f.store.Begin(id)
	for _, def := range tables {
		_, err := x.CreateTable(def)
		require.NoError(t, err)
	}
	x.SetPoint([]byte("point"))
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	return source, database, f
}

// same asks both servers and compares the answers; masks are replaced by nothing in both.
func (f *fixture) same(source *mysqltest.Server, database, query string, masks ...string) {
	f.t.Helper()
	args := []string{"--batch", database}
	if len(masks) > 0 {
		args = []string{"--xml", database}
	}
	want, err := source.Client(context.Background(), strings.NewReader(query), args...)
	require.NoError(f.t, err, "%s: %s", query, want)
	got := f.client(query, args...)
	w := string(want)
	for _, m := range masks {
		re := regexp.MustCompile(m)
		w, got = re.ReplaceAllString(w, ""), re.ReplaceAllString(got, "")
	}
	for i, line := range strings.Split(w, "\n") {
		other := strings.Split(got+strings.Repeat("\n", i+1), "\n")[i]
		if line != other {
			f.t.Errorf("%s\nline %d, MySQL: %s\n      Tidemark: %s", query, i+1, line, other)
		}
	}
	require.Len(f.t, got, len(w), query)
}

// Every type, with the attributes that are shown.
const everyType = `CREATE TABLE everything (
	id INT UNSIGNED NOT NULL AUTO_INCREMENT, ti TINYINT, tu TINYINT UNSIGNED, tz TINYINT(3) UNSIGNED ZEROFILL, t1 TINYINT(1) DEFAULT 1, si SMALLINT NOT NULL DEFAULT 7,
	mi MEDIUMINT, mu MEDIUMINT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED, bz BIGINT ZEROFILL, de DECIMAL(10,2), d0 DECIMAL(5) UNSIGNED, dw DECIMAL(65,30), f FLOAT, f2 FLOAT(7,3),
	d DOUBLE, d2 DOUBLE(10,3) DEFAULT 1.5, b1 BIT, b3 BIT(3) DEFAULT b'101', b64 BIT(64), da DATE DEFAULT '2024-02-29', dt DATETIME, d6 DATETIME(6),
	dc DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), ts TIMESTAMP NULL, tc TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tn TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, to_ TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, t TIME, t2 TIME(2), y YEAR,
	c CHAR(10), cn CHAR(5) NOT NULL DEFAULT '', vc VARCHAR(20) DEFAULT 'it''s \\ "x"' COMMENT 'a ''comment''', vl VARCHAR(300) CHARACTER SET latin1, vb VARCHAR(10) COLLATE utf8mb4_bin,
	va VARCHAR(10) CHARACTER SET ascii, tt TINYTEXT, tx TEXT, tm MEDIUMTEXT, tl LONGTEXT CHARACTER SET latin1, bn BINARY(3), bd BINARY(3) DEFAULT 'a', be VARBINARY(5) NOT NULL DEFAULT '', bf VARBINARY(5) DEFAULT 'x''y', bv VARBINARY(10), bt TINYBLOB, bb BLOB, bm MEDIUMBLOB, bl LONGBLOB,
	e ENUM('a','bcd','é') DEFAULT 'a', el ENUM('x') CHARACTER SET latin1 NOT NULL, s SET('x','yy','zzz'), j JSON,
	PRIMARY KEY (id), UNIQUE KEY u (si), UNIQUE KEY un (ti), KEY k (vc(5), de DESC), KEY k2 (de), UNIQUE KEY two (si, mi), KEY inv (f) INVISIBLE COMMENT 'hidden', FULLTEXT KEY ft (tx)
) COMMENT = 'every type'`

const otherTables = `CREATE TABLE two_keys (b VARCHAR(10) NOT NULL, a INT NOT NULL, c INT INVISIBLE DEFAULT (7 * 2), PRIMARY KEY (a, b)) DEFAULT CHARSET = latin1`

const binTable = `CREATE TABLE bin (a VARCHAR(10) NOT NULL PRIMARY KEY, b CHAR(3) COLLATE utf8mb4_0900_ai_ci, c TEXT) COLLATE = utf8mb4_bin`

const generalTable = "CREATE TABLE `odd ``name` (`a b` INT PRIMARY KEY, `select` INT, g INT GENERATED ALWAYS AS (`a b` + 1) STORED, v INT AS (`select` * 2)) COLLATE = utf8mb4_general_ci"

const noPrimary = `CREATE TABLE no_primary (a INT, b INT NOT NULL, c INT NOT NULL, d VARCHAR(10) NOT NULL,
	UNIQUE KEY p (d(3)), UNIQUE KEY n (a), UNIQUE KEY good (c, b), UNIQUE KEY second (b), KEY x (c))`

func TestShowCreateTable(t *testing.T) {
	source, database, f := mirrored(t, everyType, otherTables, binTable, generalTable, noPrimary)
	f.same(source, database, "SHOW CREATE TABLE everything", "no mask")
	f.same(source, database, "SHOW CREATE TABLE two_keys", "no mask")
	f.same(source, database, "SHOW CREATE TABLE bin", "no mask")
	f.same(source, database, "SHOW CREATE TABLE no_primary", "no mask")
	f.same(source, database, "SHOW CREATE TABLE `odd ``name`", "no mask")
}

func TestShowColumnsAndIndexes(t *testing.T) {
	source, database, f := mirrored(t, everyType, otherTables, binTable, generalTable, noPrimary)
	const privileges = `\s*<field name="(PRIVILEGES|Privileges)">[^<]*</field>`
	for _, table := range []string{"everything", "two_keys", "bin", "no_primary", "`odd ``name`"} {
		f.same(source, database, "SHOW COLUMNS FROM "+table, "no mask")
		f.same(source, database, "DESCRIBE "+table, "no mask")
		f.same(source, database, "SHOW FULL COLUMNS FROM "+table, privileges)
		f.same(source, database, "SHOW INDEX FROM "+table, "no mask")
	}
	f.same(source, database, "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, ORDINAL_POSITION", privileges)
	f.same(source, database, "SELECT * FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX", "no mask")
	f.same(source, database, "SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION", "no mask")
	f.same(source, database, "SELECT * FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, CONSTRAINT_NAME", "no mask")
	f.same(source, database, "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COLLATION, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1", "no mask")
}

// What the client is told of a result's columns: names, types, lengths, character sets, flags, decimals.
func TestColumnDefinitions(t *testing.T) {
	source, database, f := mirrored(t, everyType, otherTables, binTable, generalTable, noPrimary)
	for _, names := range []string{"utf8mb4", "latin1", "utf8mb3"} {
		for _, query := range []string{
			"SELECT * FROM everything", "SELECT * FROM two_keys", "SELECT * FROM bin", "SELECT * FROM no_primary", "SELECT * FROM `odd ``name` AS o",
			"SELECT x.id AS other, x.vc FROM everything AS x",
		} {
			want := definitions(t, source.Addr(), database, names, query)
			got := definitions(t, f.addr.String(), database, names, query)
			require.Len(t, got, len(want), query)
			for i := range want {
				if want[i] != got[i] {
					t.Errorf("%s, %s:\n  MySQL %s\n  here  %s", names, query, want[i], got[i])
				}
			}
		}
	}
}

func definitions(t *testing.T, address, database, names, query string) []string {
	t.Helper()
	conn, err := client.Connect(address, "root", "", database)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Execute("SET NAMES " + names)
	require.NoError(t, err)
	r, err := conn.Execute(query)
	require.NoError(t, err)
	var out []string
	for _, f := range r.Fields {
		out = append(out, fmt.Sprintf("%s.%s(%s).%s(%s) type %d length %d charset %d flags %d decimals %d",
			f.Schema, f.Table, f.OrgTable, f.Name, f.OrgName, f.Type, f.ColumnLength, f.Charset, f.Flag, f.Decimal))
	}
	return out
}
