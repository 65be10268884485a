package differential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/wire"
)

// both is a MySQL server and a store with the same rows.
type both struct {
	t        testing.TB
	database string
	source   *client.Conn
	parser   *translate.Parser
	replica  *query.Processor
	session  query.Session
}

// open fills both sides with the tables of testdata.
func open(t testing.TB) *both {
	server, database := mysqltest.FreshDatabase(t)
	conn, err := client.Connect(server.Addr(), server.User, server.Password, database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	b := &both{t: t, database: database, source: conn, parser: translate.NewParser()}
	b.setTime(t)
	for _, file := range []string{"testdata/schema.sql", "testdata/rows.sql"} {
		for _, s := range statements(t, file) {
			_, err := conn.Execute(s)
			require.NoError(t, err, s)
		}
	}
	b.replica = b.copyInto(server.Login)
	b.session.Session = translate.Session{
		Database: database, SQLMode: translate.SQLMode{OnlyFullGroupBy: true}, Location: time.UTC, Now: fixedNow,
		Function: func(name string) (translate.Value, bool) {
			v, ok := map[string]string{"DATABASE": database, "SCHEMA": database}[name]
			return translate.Value{Kind: translate.TextValue, Text: v}, ok
		},
	}
	return b
}

// fixedNow is the time of all statements on both sides.
var fixedNow = time.Unix(1718456789, 0)

// inZone gives both sides a time zone with a fixed offset.
func (b *both) inZone(name string, seconds int) {
	_, err := b.source.Execute("SET time_zone = '" + name + "'")
	require.NoError(b.t, err)
	b.session.Location = time.FixedZone(name, seconds)
}

func (b *both) setTime(t testing.TB) {
	for _, s := range []string{"SET time_zone = '+00:00'", fmt.Sprintf("SET timestamp = %d", fixedNow.Unix()), "SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci"} {
		_, err := b.source.Execute(s)
		require.NoError(t, err)
	}
}

// statements reads a file of statements, each ended by a semicolon at the end of a line; lines of -- are comments.
func statements(t testing.TB, file string) []string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []string
	var now strings.Builder
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "--") {
			continue
		}
		if now.Len() > 0 {
			now.WriteByte('\n')
		}
		now.WriteString(line)
		if s, ok := strings.CutSuffix(now.String(), ";"); ok {
			out = append(out, strings.TrimSpace(s))
			now.Reset()
		}
	}
	require.Empty(t, strings.TrimSpace(now.String()), "%s: the last statement has no semicolon", file)
	return out
}

// copyInto copies the source's tables into a store.
func (b *both) copyInto(login mysqltest.Login) *query.Processor {
	ctx := b.t.Context()
	conn, err := wire.Dial(ctx, wire.Config{Host: login.Host, Port: login.Port, User: login.User, Password: login.Password})
	require.NoError(b.t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(b.t, conn.Exec(ctx, "SET NAMES utf8mb4", "SET character_set_results = NULL", "SET time_zone = '+00:00'"))
	tables, err := compat.ReadTables(ctx, conn, b.database, nil)
	require.NoError(b.t, err)
	dir := b.t.TempDir()
	store, err := storage.Open(dir, storage.Options{NoMaintenance: true})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, store.Close()) })
	id, err := store.CreateDatabase(ctx, b.database, nil)
	require.NoError(b.t, err)
	txn := store.Begin(id)
	for _, def := range tables {
		tid, err := txn.CreateTable(def)
		require.NoError(b.t, err)
		rows := b.read(conn, def)
		require.NoError(b.t, txn.Apply(ctx, tid, &storage.Changes{Puts: rows}))
		require.NoError(b.t, txn.SetState(tid, storage.Live))
	}
	txn.SetPoint([]byte("point"))
	_, err = txn.Commit(ctx)
	require.NoError(b.t, err)
	e, err := engine.Open(engine.Options{PartDirs: []string{dir}, TempDir: b.t.TempDir()})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, e.Close()) })
	return query.New(query.Options{Store: store, Engine: e})
}

func (b *both) read(conn *wire.Conn, def *schema.Table) *column.Batch {
	rows := column.NewBuilder(memory.DefaultAllocator, def)
	from := wire.Identifier(def.Database) + "." + wire.Identifier(def.Name)
	stream, err := conn.Stream(b.t.Context(), "SELECT "+wire.SelectList(def)+" FROM "+from)
	require.NoError(b.t, err)
	decoder, err := wire.NewDecoder(def, stream.Fields, rows)
	require.NoError(b.t, err)
	for {
		row, err := stream.Next()
		require.NoError(b.t, err)
		if row == nil {
			break
		}
		require.NoError(b.t, decoder.Row(row))
	}
	batch, err := rows.Finish()
	require.NoError(b.t, err)
	return batch
}

// answer is what one side says to a statement.
type answer struct {
	fields []field.Field
	rows   []string
	code   uint16
	text   string
}

const null = "\x00NULL"

// ask gives the source's answer.
func (b *both) ask(sql string) answer {
	r, err := b.source.Execute(sql)
	if err != nil {
		var e *mysql.MyError
		require.ErrorAs(b.t, err, &e, sql)
		return answer{code: e.Code, text: e.Message}
	}
	defer r.Close()
	var a answer
	for _, f := range r.Fields {
		a.fields = append(a.fields, field.Field{
			Name: string(f.Name), OrgTable: string(f.OrgTable), Type: field.Type(f.Type), Charset: f.Charset, Length: f.ColumnLength,
			Flags: field.Flags(f.Flag), Decimals: f.Decimal,
		})
	}
	for _, raw := range r.RowDatas {
		a.rows = append(a.rows, textRow(b.t, raw, len(r.Fields)))
	}
	return a
}

func textRow(t testing.TB, raw mysql.RowData, n int) string {
	var cells []string
	for range n {
		v, isNull, size, err := mysql.LengthEncodedString(raw)
		require.NoError(t, err)
		raw = raw[size:]
		if isNull {
			cells = append(cells, null)
		} else {
			cells = append(cells, string(v))
		}
	}
	return strings.Join(cells, "|")
}

// askReplica gives the replica's answer; refused is the construct of a refusal.
func (b *both) askReplica(sql string) (a answer, refused string) {
	stmts, err := b.parser.Parse(sql, b.session.SQLMode)
	if err == nil {
		a, err = b.run(stmts[0])
	}
	if err != nil && !b.session.WideDecimals && strings.Contains(err.Error(), "38 digits") {
		b.session.WideDecimals = true
		defer func() { b.session.WideDecimals = false }()
		return b.askReplica(sql)
	}
	var u *translate.Unsupported
	var e *sqlerr.Error
	switch {
	case errors.As(err, &u):
		return answer{}, u.Construct
	case errors.As(err, &e) && (e.Code == sqlerr.NotSupportedYet || strings.Contains(e.Message, "not supported yet")):
		return answer{}, e.Message
	case errors.As(err, &e):
		return answer{code: e.Code, text: e.Message}, ""
	case err != nil:
		return answer{code: 1, text: err.Error()}, ""
	}
	return a, ""
}

func (b *both) run(stmt ast.StmtNode) (answer, error) {
	var a answer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := b.replica.Select(ctx, stmt, &b.session, []translate.Value{}, nil)
	if err != nil {
		return a, err
	}
	defer r.Rows.Close()
	a.fields = r.Rows.Fields()
	for {
		cells, err := r.Rows.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return answer{}, err
		}
		for i := range cells.Len() {
			var row []string
			for c := range a.fields {
				text, isNull := cells.Text(nil, i, c)
				if isNull {
					text = []byte(null)
				}
				row = append(row, string(text))
			}
			a.rows = append(a.rows, strings.Join(row, "|"))
		}
	}
}

// difference says what differs between two answers; empty: nothing that matters.
func difference(sql string, source, replica answer) string {
	if source.code != 0 || replica.code != 0 {
		if errorClass(source.code) != errorClass(replica.code) {
			return fmt.Sprintf("error %d %q, not %d %q", replica.code, replica.text, source.code, source.text)
		}
		return ""
	}
	if d := differentFields(source, replica); d != "" {
		return d
	}
	s, r := source.rows, replica.rows
	if !ordered(sql) {
		s, r = slices.Sorted(slices.Values(s)), slices.Sorted(slices.Values(r))
	}
	if slices.Equal(s, r) {
		return ""
	}
	for i := range min(len(s), len(r)) {
		if s[i] != r[i] {
			return fmt.Sprintf("row %d of %d is\n   %q, not\n   %q", i+1, len(r), r[i], s[i])
		}
	}
	return fmt.Sprintf("%d rows, not %d", len(r), len(s))
}

// errorClass makes one of the errors that tell an illegal mix of two, three or more collations.
func errorClass(code uint16) uint16 {
	if code == 1270 || code == 1271 {
		return 1267
	}
	return code
}

// ordered tells a statement that ends with an ORDER BY of its own.
func ordered(sql string) bool {
	i := strings.LastIndex(strings.ToUpper(sql), "ORDER BY")
	return i >= 0 && !strings.Contains(sql[i:], ")")
}

// signedness and kinds that clients turn values by
const typeFlags = field.Unsigned | field.EnumFlag | field.SetFlag | field.Zerofill

// onlyNulls tells a column without any value, for whose type nobody cares. It needs a row.
func (a answer) onlyNulls(column int) bool {
	for _, row := range a.rows {
		if strings.Split(row, "|")[column] != null {
			return false
		}
	}
	return len(a.rows) > 0
}

// typeClass makes types one that only tell how a temporary table of MySQL's kept the value.
func typeClass(f field.Field) field.Type {
	switch f.Type {
	case field.Year:
		if f.OrgTable != "" {
			return field.Year
		}
		return field.LongLong
	case field.Tiny, field.Short, field.Int24, field.Long:
		return field.LongLong
	case field.VarString, field.Blob, field.MediumBlob, field.LongBlob, field.TinyBlob:
		return field.String
	}
	return f.Type
}

func differentFields(source, replica answer) string {
	if len(source.fields) != len(replica.fields) {
		return fmt.Sprintf("%d columns, not %d", len(replica.fields), len(source.fields))
	}
	for i := range source.fields {
		s, r := source.fields[i], replica.fields[i]
		switch {
		case s.Name != r.Name:
			return fmt.Sprintf("column %d is named %q, not %q", i+1, r.Name, s.Name)
		case source.onlyNulls(i):
		case typeClass(s) != typeClass(r):
			return fmt.Sprintf("column %s has type %d, not %d", s.Name, r.Type, s.Type)
		case s.Decimals != r.Decimals && s.Type != field.Double && typeClass(s) != field.String:
			return fmt.Sprintf("column %s has %d decimals, not %d", s.Name, r.Decimals, s.Decimals)
		case (s.Flags^r.Flags)&typeFlags != 0 && (s.OrgTable != "" || (s.Flags^r.Flags)&field.Unsigned != 0):
			return fmt.Sprintf("column %s has flags %#x, not %#x", s.Name, r.Flags, s.Flags)
		case s.Charset != r.Charset:
			return fmt.Sprintf("column %s has character set %d, not %d", s.Name, r.Charset, s.Charset)
		}
	}
	return ""
}
