package ddl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

// follower reads a real server's binlog and keeps the definitions.
type follower struct {
	t      *testing.T
	server *mysqltest.Server
	conn   *wire.Conn
	stream *binlog.Stream
	w      *world
	source Server
}

func newFollower(t *testing.T) *follower {
	server, db := mysqltest.FreshDatabase(t)
	conn, source, err := compat.Dial(t.Context(), wire.Config{Host: server.Host, Port: server.Port, User: server.User, Password: server.Password})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.Exec(t.Context(), "USE "+wire.Identifier(db)))
	stream, err := binlog.Open(t.Context(), binlog.Config{Source: wire.Config{Host: server.Host, Port: server.Port, User: server.User, Password: server.Password},
		ServerID: 4_000_000_000 + uint32(time.Now().UnixNano()%1000), AutoPosition: true, Start: pointOf(source)})
	require.NoError(t, err)
	t.Cleanup(func() { stream.Close() })
	w := newWorld()
	w.name = db
	return &follower{t: t, server: server, conn: conn, stream: stream, w: w,
		source: Server{Version: source.Major*10000 + source.Minor*100 + source.Patch, FoldNames: source.LowerCaseTableNames > 0, LowerNames: source.LowerCaseTableNames == 1, Location: time.UTC}}
}

// exec runs a statement on the source and everything that it logged through Apply.
func (f *follower) exec(sql string) {
	f.t.Helper()
	require.NoError(f.t, f.conn.Exec(f.t.Context(), sql), sql)
	f.drain()
}

// drain takes transactions until a marker that is logged now has come.
func (f *follower) drain() {
	marker := fmt.Sprintf("marker%d", time.Now().UnixNano())
	require.NoError(f.t, f.conn.Exec(f.t.Context(), "CREATE VIEW "+marker+" AS SELECT 1", "DROP VIEW "+marker))
	for {
		tx, err := f.stream.Next(f.t.Context())
		require.NoError(f.t, err)
		for e, err := range tx.Events() {
			require.NoError(f.t, err)
			st, ok := e.(*binlog.Statement)
			if !ok || st.Kind != binlog.StatementOther {
				continue
			}
			if strings.Contains(st.SQL, "DROP VIEW") && strings.Contains(st.SQL, marker) {
				return
			}
			effects, err := Apply(statementOf(st), f.source, f.w)
			require.NoError(f.t, err, st.SQL)
			f.w.apply(effects)
		}
	}
}

func pointOf(s *compat.Source) gtid.Point { return gtid.Point{Set: s.Executed} }

func statementOf(st *binlog.Statement) Statement {
	return Statement{SQL: st.SQL, Database: st.Database, SQLMode: st.SQLMode, Client: st.CharsetClient, ServerCollation: st.CollationServer,
		UTF8MB4Collation: st.DefaultCollationUTF8MB4, Time: st.Time, TimeZone: st.TimeZone, ExplicitDefaults: st.ExplicitDefaults, ErrorCode: st.ErrorCode}
}

var ids = regexp.MustCompile(`(?m)^  \d+ |, version \d+, next \d+| initial (NULL|"(\\"|[^"])*")`)

// check compares every definition with information_schema.
func (f *follower) check() {
	f.t.Helper()
	tables, err := compat.ReadTables(f.t.Context(), f.conn, f.w.name, nil)
	require.NoError(f.t, err)
	var want, got strings.Builder
	for _, t := range tables {
		if w := f.w.tables[t.Name]; w != nil && w.live {
			fmt.Fprintf(&want, "%s\n%s", t.Name, printTable(t))
			fmt.Fprintf(&got, "%s\n%s", t.Name, printTable(w.def))
		} else if w == nil {
			f.t.Errorf("table %s is not known", t.Name)
		}
	}
	require.Equal(f.t, ids.ReplaceAllString(want.String(), ""), ids.ReplaceAllString(got.String(), ""))
	for name := range f.w.tables {
		if !slices.ContainsFunc(tables, func(t *schema.Table) bool { return t.Name == name }) {
			f.t.Errorf("table %s is known, but gone on the source", name)
		}
	}
}

// checkInitial compares what the first row of a table got for its added columns.
func (f *follower) checkInitial(table string) {
	f.t.Helper()
	def := f.w.tables[table].def
	require.True(f.t, f.w.tables[table].live, "table %s is quarantined", table)
	require.NoError(f.t, f.conn.Exec(f.t.Context(), "SET time_zone = '+00:00'"))
	for i := range def.Columns {
		c := &def.Columns[i]
		if !c.Added {
			continue
		}
		value := wire.Identifier(c.Name)
		if c.Type == schema.Year || c.Zerofill { // the client library makes a number of it
			value = "CAST(" + value + " AS CHAR)"
		}
		if c.Type.IsText() {
			value = "CONVERT(" + value + " USING utf8mb4)"
		}
		r, err := f.conn.Query(f.t.Context(), "SELECT "+value+" FROM "+wire.Identifier(table))
		require.NoError(f.t, err)
		require.Equal(f.t, shown(r.Cell(0, 0)), shown(printInitial(f.t, def, c)), "column %s %s", c.Name, c.ColumnType)
	}
}

func shown(s *string) string {
	if s == nil {
		return "NULL"
	}
	return fmt.Sprintf("%q", *s)
}

func printInitial(t *testing.T, def *schema.Table, c *schema.Column) *string {
	a, exact, err := column.Initial(def, c)
	require.NoError(t, err)
	if text, ok := column.FindExact(exact, c.ID); ok {
		return new(string(text))
	}
	if a.IsNull(0) {
		return nil
	}
	return new(string(column.Print(nil, c, a, 0, time.UTC)))
}

// Every definition that a real server accepts is read as that server reads it.
func TestDefinitionsAgainstMySQL(t *testing.T) {
	f := newFollower(t)
	f.exec("SET sql_mode = ''")
	for _, sql := range []string{
		// DDL-14, TYPE-29
		"CREATE TABLE types (id int primary key, a varchar(70000), b text(100), c text(300), d text(20000), e text(70000), f blob(10), g blob(256), h text(63), i text(64), j varbinary(70000), k char(3) byte, l national char(4), m nchar varchar(4), n real, o double(10,2), q binary(0), r int(5), s tinyint(1), t tinyint(1) unsigned, u tinyint(1) zerofill, v dec, w float(24), x float(25), y serial, z long, aa long varbinary, ab character varying(5), ac year, ad varchar(5) ascii, af varchar(5) binary, ag char(5) charset latin1 binary, ah enum('a ','b''c','d\\\\e','f\\ng',',') charset latin1, ai text charset binary, aj enum('a') charset binary, ak varchar(5) charset binary, al nvarchar(6), am national varchar(6), an double precision, ao int4, ap middleint, aq int8 unsigned, ar float4, asx float8, at int1, au bool, av fixed(4,1), aw char(0), ax text(16383), ay long varchar charset latin1, az numeric(3), ba set('x') charset binary, bb tinytext charset binary, bc char charset binary, bd text byte, be longtext binary, bf bit, bg bit(64), bh datetime(6), bi timestamp(3) null, bj time(1), bk json, bl set('p','q r'), bm float unsigned zerofill, bn float(7,3) zerofill, bo double zerofill, bp decimal(7,3) zerofill, bq mediumint unsigned zerofill, br varchar(9) collate utf8mb4_unicode_ci, bs varchar(9) charset utf8mb4, bt char(3) collate ascii_bin, bu bigint zerofill, bv blob, bw mediumblob, bx tinyblob, bz smallint(3) unsigned)",
		"CREATE TABLE defaults (id int primary key, a int default '05', b decimal(10,2) default 1, c float default 1.50, c2 float(7,3) default 1.5, d date default '2024-1-2', e datetime(3) default '2024-01-02', f bit(9) default b'101', g bool default true, h enum('x','y ') default 'y', i binary(3) default 'a', j varbinary(5) default 'a', k time default '1:2:3', l year default 24, n date default 0, o char(5) default 'a  ', p varchar(5) default 'a  ', q set('a','b','c') default 'c,a', r json default ('[1, 2]'), s text default ('abc'), t double default 1e10, w int unsigned zerofill default 5, x bigint default -0, y int default 1.7, z datetime default current_timestamp on update current_timestamp, aa datetime(3) default localtime(3) on update now(3), ab time(2) default 0, ac bit default 1, ad enum('1','2') default '2', ae int default null, af varchar(9) not null default '', ag blob default (x'00ff'), ah decimal(5,2) default '1.999', ai datetime default '2024-01-02 03:04:05.6', aj date default '2024-01-02 10:11:12', ak year default '0', al int default (5), am float default 1e-5, an char(3) charset latin1 default 'é', ao int default 0x41, ar double default 123456789012345678, asx time default '101112', at datetime default '20240102030405', au smallint default false, av year default 0, aw year default 69, ax year default '70', ay varchar(9) default 5, az varchar(9) default 1.50, ba varchar(9) default x'4142', bb varbinary(3) default x'0102', bc decimal(40,3) default 1, bd datetime default '24/1/2 3:4', be date default 240102, bf time default '-1 2:3:4', bg bit(8) default 'A', bh char(9) default _latin1'abc', bi int default +3, bj tinyint default -1, bk double default -1.50, bl varchar(9) default 'a' comment 'x', bm varchar(20) default 'it''s \\\\ \"q\"', bn int invisible default 3)",
		"CREATE TABLE `a``b c` (`x y` int, `primary` int not null comment 'it''s', `é` varchar(3), unique key `k 1` (`primary`), key (`é`), key (`é`, `x y`)) comment 'a\\nb' charset latin1",
		// The key, and the order of indexes.
		"CREATE TABLE parent (id int primary key)",
		"CREATE TABLE k (a int not null, b int, c varchar(20) not null, p int, q int, unique(b), key(a), unique u2(c), unique(a), foreign key (p) references parent(id), key x(c(3) desc), fulltext(c), unique key b_2(c,a), constraint fkq foreign key fki (q) references parent(id), check (a>0), key full (c(20)))",
		"CREATE TABLE nullable_pk (a int, b int, primary key using btree (b, a))",
		"CREATE TABLE fk2 (a int primary key, b int, c int, index own (b, c), constraint foreign key (b) references parent (id), foreign key named (c) references parent (id))",
		"CREATE TABLE inline_fk (a int primary key, b int references parent (id))",
		"CREATE TABLE IF NOT EXISTS opts (id int primary key) engine=innodb, row_format=dynamic key_block_size=0 default charset latin1 collate latin1_bin comment='c' stats_persistent=1 max_rows=5 auto_increment 7",
		"CREATE TABLE part (a int, b int, primary key (a, b)) partition by range (b) (partition p0 values less than (10), partition p1 values less than maxvalue)",
		"CREATE TABLE lk LIKE k", "CREATE TABLE lk2 (LIKE defaults)",
		"CREATE TABLE cts (primary key (id)) AS SELECT id, a, d, p, h FROM defaults",
		"CREATE TABLE gone (id int primary key)", "DROP TABLE IF EXISTS gone, nothing", "TRUNCATE TABLE lk",
		"CREATE TABLE collated (id int primary key, a varchar(9)) collate utf8mb4_bin", "ALTER TABLE collated ADD b varchar(9), ADD c varchar(9) charset latin1, ADD d varchar(9) binary charset latin1",
		"ALTER TABLE k ADD x int first, ADD y int after a, DROP q, DROP foreign key fkq, DROP INDEX x, ADD INDEX x (y), RENAME INDEX u2 TO u3, ALTER INDEX b INVISIBLE, ALGORITHM=COPY, LOCK=SHARED",
		"ALTER TABLE k DROP COLUMN b, COMMENT 'new', AUTO_INCREMENT 9", "ALTER TABLE k ALTER y SET DEFAULT 5, ALTER COLUMN c DROP DEFAULT",
		"CREATE INDEX i1 ON k (y DESC, a) COMMENT 'c'", "DROP INDEX i1 ON k", "ALTER TABLE k ADD UNIQUE (y), ADD FULLTEXT ft (c) WITH PARSER ngram",
		"ALTER TABLE collated DEFAULT CHARSET latin1, ADD e varchar(3)", "ALTER TABLE collated COLLATE utf8mb4_unicode_ci, ADD f varchar(3) AFTER a",
		"ALTER TABLE opts ENGINE=InnoDB, FORCE", "OPTIMIZE TABLE opts", "ANALYZE TABLE opts", "ALTER TABLE part ANALYZE PARTITION p0",
		"CREATE TEMPORARY TABLE tmp (id int)", "DROP TEMPORARY TABLE tmp", "RENAME TABLE nothing TO nothing2",
	} {
		if sql == "RENAME TABLE nothing TO nothing2" {
			continue
		}
		f.exec(sql)
		f.check()
	}
	for name, w := range f.w.tables {
		require.True(t, w.live, name)
	}
	// Generated invisible primary keys, sql_mode and character sets of the session (CLOUD-12, DDL-07, DDL-17).
	f.exec("SET sql_generate_invisible_primary_key = 1")
	f.exec("CREATE TABLE gipk (a int)")
	f.exec("SET sql_generate_invisible_primary_key = 0")
	f.exec("SET sql_mode = 'ANSI_QUOTES'")
	f.exec(`CREATE TABLE "an""si" ("id" int PRIMARY KEY, "s" varchar(3) DEFAULT 'x')`)
	f.exec("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
	f.exec(`CREATE TABLE nb (id int PRIMARY KEY, s varchar(3) DEFAULT 'x\', t varchar(3) COMMENT '\')`)
	f.exec("SET sql_mode = ''")
	f.exec("SET NAMES gbk")
	f.exec("CREATE TABLE `gbk\xd6\xd0` (id int primary key, s enum('\x95\x5c', 'b') comment '\x95\x5c')")
	f.exec("SET NAMES latin1")
	f.exec("CREATE TABLE `\xe9` (id int primary key, s varchar(3) default '\xe9')")
	f.exec("SET NAMES utf8mb4")
	f.exec("SET default_collation_for_utf8mb4 = utf8mb4_general_ci")
	f.exec("CREATE TABLE dc (id int primary key, s varchar(3), t varchar(3) charset utf8mb4, u varchar(3) charset latin1) charset utf8mb4")
	f.exec("SET default_collation_for_utf8mb4 = default")
	f.exec("ALTER DATABASE " + wire.Identifier(f.w.name) + " CHARACTER SET latin1")
	f.exec("CREATE TABLE l1 (id int primary key, s varchar(3))")
	f.exec("SET explicit_defaults_for_timestamp = 0")
	f.exec("CREATE TABLE ts (id int primary key, a timestamp(2), b timestamp(3) null, c timestamp, d timestamp default now())")
	f.check()
}

// What the rows have that were there before ADD COLUMN (DDL-20, DDL-28), with the session's own time zone.
func TestInitialValuesAgainstMySQL(t *testing.T) {
	f := newFollower(t)
	f.exec("SET sql_mode = ''")
	f.exec("CREATE TABLE t (id int primary key, old varchar(9))")
	f.exec("INSERT INTO t VALUES (1, 'x')")
	for i, column := range []string{
		"int", "int not null", "tinyint unsigned not null default 7", "decimal(10,3) not null", "decimal(40,3) not null default 1.5", "float not null", "double default 1.25e3", "bit(9) not null", "bit(9) default b'101'",
		"date not null", "date default '2024-02-29'", "datetime not null", "datetime(3) not null default current_timestamp(3)", "datetime default now()", "timestamp not null", "timestamp(6) not null default current_timestamp(6)",
		"timestamp null default '2024-01-01 00:00:00'", "timestamp null", "time not null", "time(2) default '-1:2:3.456'", "year not null", "year default 24",
		"char(3) not null", "char(3) default 'a '", "varchar(9) not null default 'none'", "text not null", "text default ('abc')", "varchar(9) charset latin1 default 'é'",
		"binary(3) not null", "binary(3) default 'a'", "varbinary(4) default x'00ff'", "blob not null", "enum('p','q') not null", "enum('p','q') default 'q'", "set('a','b') not null", "set('a','b') default 'b,a'",
		"json", "json not null", "json default ('[]')", "int default (5)", "int default null", "bigint unsigned default 18446744073709551615",
		"int unsigned zerofill not null default 5",
	} {
		if i%2 == 1 {
			f.exec("SET time_zone = '+05:30'")
		} else {
			f.exec("SET time_zone = '-08:00'")
		}
		f.exec(fmt.Sprintf("ALTER TABLE t ADD c%d %s", i, column))
	}
	f.checkInitial("t")
	f.exec("SET time_zone = '+00:00'")
	f.check()
}

// A random walk over definitions: after each statement ours is the server's, and so are the values of older rows (DDL-13).
func TestRandomAltersAgainstMySQL(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	f := newFollower(t)
	f.exec("CREATE TABLE t (id int primary key, c0 int)")
	f.exec("INSERT INTO t VALUES (1, 5)")
	next, done := 1, 0
	pick := func() string {
		def := f.w.tables["t"].def
		return wire.Identifier(def.Columns[r.IntN(len(def.Columns))].Name)
	}
	for range 60 {
		var parts []string
		dropped, renamed := "", false
		for range 1 + r.IntN(3) {
			switch r.IntN(8) {
			case 0, 1, 2:
				kind := []string{"int", "int not null default 7", "varchar(9) not null", "decimal(6,2) default 1.5", "datetime(2) default now(2)", "enum('a','b') not null", "blob", "char(3) charset latin1 default 'é'"}[r.IntN(8)]
				place := []string{"", " FIRST", " AFTER id"}[r.IntN(3)]
				parts = append(parts, fmt.Sprintf("ADD COLUMN `C %d` %s%s", next, kind, place))
				next++
			case 3:
				if c := pick(); c != "`id`" && dropped == "" {
					dropped = c
					parts = append(parts, "DROP COLUMN "+c)
				}
			case 4:
				if c := pick(); c != dropped {
					parts = append(parts, fmt.Sprintf("ADD %s i%d (%s%s)", []string{"INDEX", "UNIQUE"}[r.IntN(2)], next, c, f.prefix(c)))
					next++
				}
			case 5:
				def := f.w.tables["t"].def
				if ix := def.Indexes[r.IntN(len(def.Indexes))]; ix.Name != "PRIMARY" && dropped == "" && !renamed {
					renamed = true
					parts = append(parts, []string{"DROP INDEX " + ix.Name, fmt.Sprintf("RENAME INDEX %s TO r%d", ix.Name, next), "ALTER INDEX " + ix.Name + " INVISIBLE"}[r.IntN(3)])
					next++
				}
			case 6:
				parts = append(parts, fmt.Sprintf("COMMENT 'c%d'", next))
			case 7:
				parts = append(parts, []string{"FORCE", "ENGINE=InnoDB", "ROW_FORMAT=DYNAMIC", "AUTO_INCREMENT=9", "DEFAULT CHARSET latin1", "COLLATE utf8mb4_bin"}[r.IntN(6)])
			}
		}
		if len(parts) == 0 {
			continue
		}
		sql := "ALTER TABLE t " + strings.Join(parts, ", ")
		if err := f.conn.Exec(t.Context(), sql); err != nil {
			continue // the server refuses it, and logs nothing
		}
		done++
		f.drain()
		f.check()
		f.checkInitial("t")
	}
	require.Greater(t, done, 20)
}

// prefix gives what an index over a column needs behind its name.
func (f *follower) prefix(name string) string {
	def := f.w.tables["t"].def
	if i := def.Column(strings.Trim(name, "`")); i >= 0 && def.Columns[i].Type == schema.Blob {
		return "(5)"
	}
	return ""
}
