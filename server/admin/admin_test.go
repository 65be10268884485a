package admin

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/wire"
)

func TestParse(t *testing.T) {
	shop := CreateDatabase{Name: "shop", Host: "db.example", Port: 3307, SourceDatabase: "app", User: "repl", Password: "it's; --x"}
	again := shop
	again.IfNotExists = true
	again.Settings = []Setting{{"max_rows_in_buffer", "65505"}, {"include_tables", "^a$|b"}, {"x", "-1"}, {"allows_query_when_mysql_lost", "true"}}
	for text, want := range map[string]Statement{
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('db.example:3307', 'app', 'repl', 'it''s; --x')`: &shop,
		"create schema `shop` engine=MaterializeMySQL(\"db.example:3307\",'app','repl','it\\'s; --x') ; ": &shop,
		`/* c */ CREATE DATABASE IF NOT EXISTS shop -- here
			ENGINE = CnchMaterializedMySQL('db.example:3307', 'app', 'repl', 'it''s; --x')
			SETTINGS max_rows_in_buffer = 65505, include_tables = '^a$|b', x=-1, allows_query_when_mysql_lost = true`: &again,
		`system resync MaterializedMySQL table shop.orders;`:            &Resync{"shop", "orders"},
		"SYSTEM RESYNC MATERIALIZEDMYSQL TABLE `sh.op` . `or``ders`":    &Resync{"sh.op", "or`ders"},
		`ALTER DATABASE shop MODIFY SETTING max_flush_data_time = 200;`: &AlterDatabase{"shop", []Setting{{"max_flush_data_time", "200"}}},
		`DROP DATABASE shop`:                     &DropDatabase{Name: "shop"},
		"DROP SCHEMA IF EXISTS `a b`":            &DropDatabase{Name: "a b", IfExists: true},
		`SYSTEM START MATERIALIZEDMYSQL shop`:    &Start{"shop"},
		`system stop materializedmysql shop`:     &Stop{"shop"},
		`SYSTEM VERIFY MATERIALIZEDMYSQL shop`:   &Verify{"shop"},
		`SYSTEM VERIFY STORE`:                    &VerifyStore{},
		`SELECT 1`:                               nil,
		`CREATE DATABASE shop`:                   nil,
		`CREATE TABLE t (a INT) ENGINE = InnoDB`: nil,
		`ALTER DATABASE shop CHARACTER SET utf8`: nil,
		`DROP TABLE t`:                           nil,
		``:                                       nil,
	} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		if want == nil {
			require.Nil(t, got, text)
			continue
		}
		require.Equal(t, want, got, text)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		`CREATE DATABASE shop ENGINE = InnoDB('h', 'd', 'u', 'S3cret')`:                                     "unknown database engine InnoDB",
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'S3cret')`:                               ", was expected where ')' stands",
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'u', S3cret)`:                            "the password was expected",
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'u', 'S3cret' 'S3cret')`:                 ") was expected where a string stands",
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('h:x', 'd', 'u', 'S3cret')`:                        "no valid port",
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'u', 'S3cret') SETTINGS a`:               "= was expected",
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'u', 'S3cret`:                            "the password was expected",
		`CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'u', 'S3cret') TABLE OVERRIDE t (a INT)`: "doesn't yet support 'TABLE OVERRIDE'",
		`SYSTEM RESYNC MATERIALIZEDMYSQL TABLE orders`:                                                      ". was expected where the end",
		`SYSTEM RESYNC MATERIALIZEDMYSQL shop.orders`:                                                       "TABLE was expected where 'shop'",
		`SYSTEM RELOAD CONFIG`:           "SYSTEM is followed by START, STOP, RESYNC or VERIFY",
		`DROP DATABASE`:                  "a name was expected where the end of the statement stands",
		`DROP DATABASE a b`:              "the statement should end where 'b' stands",
		`SYSTEM START MATERIALIZEDMYSQL`: "a name was expected",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "S3cret", text) // OPS-13
	}
	_, err := Parse(`CREATE DATABASE shop ENGINE = MaterializedMySQL('h', 'd', 'u', 'p') TABLE OVERRIDE t (a INT)`)
	var u *Unsupported
	require.True(t, errors.As(err, &u))
}

func TestHosts(t *testing.T) {
	st, err := Parse("CREATE DATABASE d ENGINE = MaterializedMySQL('db1, db2:3307,[::1]', 's', 'u', 'p')")
	require.NoError(t, err)
	create := st.(*CreateDatabase)
	require.Equal(t, "db1", create.Host)
	require.Equal(t, 3306, create.Port)
	require.Equal(t, []wire.Address{{Host: "db2", Port: 3307}, {Host: "::1", Port: 3306}}, create.Others)
	for _, bad := range []string{"", ":3306", "db:", "db,", "db,db:3306"} {
		_, err := Parse("CREATE DATABASE d ENGINE = MaterializedMySQL('" + bad + "', 's', 'u', 'p')")
		require.Error(t, err, bad)
	}
}

func TestSplit(t *testing.T) {
	require.Equal(t, []string{"SELECT ';'", "/* ; */ SELECT `;` -- ;\n, 2", "x"}, Split("SELECT ';'; ; /* ; */ SELECT `;` -- ;\n, 2;x"))
	require.Equal(t, []string{"SELECT 5--1"}, Split("SELECT 5--1;"))
	require.Empty(t, Split(" ; -- nothing"))
}

func TestFirstWord(t *testing.T) {
	require.Equal(t, "SELECT", FirstWord("/* ApplicationName=x */ (select 1)"))
	require.Equal(t, "", FirstWord(""))
}

func TestRedact(t *testing.T) {
	require.Equal(t, "CREATE USER '...'@'...' IDENTIFIED BY '...' -- 'x'", Redact(`CREATE USER 'u'@"%" IDENTIFIED BY 'S3cret' -- 'x'`))
	require.Equal(t, "SELECT `a`, '...'", Redact("SELECT `a`, 'open"))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"CREATE DATABASE a ENGINE = MaterializedMySQL('h:1', 'd', 'u', 'p') SETTINGS a = 1", "DROP DATABASE `a`", "SYSTEM VERIFY STORE",
		"-", "--", "#", "/*", "'", "`", "1a", "\xff", "ALTER DATABASE a MODIFY SETTING b = 'c'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = Parse(text)
		for _, s := range Split(text) {
			require.NotEmpty(t, s)
		}
		_ = Redact(text)
		_ = FirstWord(text)
	})
}
