package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
)

// showRows answers SHOW. LIKE looks at the first column, or at the one that MySQL looks at.
func (s *session) showRows(ctx context.Context, n *ast.ShowStmt) (outcome, error) {
	t, err := s.shown(ctx, n)
	if err != nil {
		return outcome{}, err
	}
	if n.Pattern != nil {
		pattern, err := s.settingValue(ctx, n.Pattern.Pattern)
		if err != nil {
			return outcome{}, err
		}
		match := likeMatcher(valueText(pattern))
		t.Filter(func(row []result.Cell) bool { return match(row[0].Text) })
	}
	if n.Where == nil {
		return outcome{rows: t}, nil
	}
	r, err := s.server.queries.Filter(ctx, t, n.Where, s.translation())
	if err != nil {
		return outcome{}, err
	}
	return outcome{rows: renamed{r.Rows, t.Fields()}}, nil
}

// renamed are rows with the columns' definitions of the table they came from.
type renamed struct {
	result.Rows
	fields []field.Field
}

func (r renamed) Fields() []field.Field { return r.fields }

// likeMatcher compares without regard to case, as the collation of names in SHOW does.
func likeMatcher(pattern string) func(string) bool {
	p := []rune(strings.ToLower(pattern))
	return func(s string) bool { return like(p, []rune(strings.ToLower(s))) }
}

func like(p, s []rune) bool {
	for len(p) > 0 {
		switch p[0] {
		case '%':
			for i := range len(s) + 1 {
				if like(p[1:], s[i:]) {
					return true
				}
			}
			return false
		case '\\':
			if len(p) > 1 {
				p = p[1:]
			}
			fallthrough
		default:
			if len(s) == 0 || p[0] != s[0] {
				return false
			}
		case '_':
			if len(s) == 0 {
				return false
			}
		}
		p, s = p[1:], s[1:]
	}
	return len(s) == 0
}

func (s *session) shown(ctx context.Context, n *ast.ShowStmt) (*result.Table, error) {
	switch n.Tp {
	case ast.ShowDatabases:
		return s.showDatabases(n), nil
	case ast.ShowTables:
		return s.showTables(n)
	case ast.ShowTableStatus:
		return s.showTableStatus(n)
	case ast.ShowColumns:
		return s.showColumns(n)
	case ast.ShowIndex:
		return s.showIndex(n)
	case ast.ShowCreateTable:
		return s.showCreateTable(n)
	case ast.ShowCreateDatabase:
		return s.showCreateDatabase(n)
	case ast.ShowVariables:
		return s.variables(n.GlobalScope), nil
	case ast.ShowStatus:
		return s.server.showStatus(s.conn), nil
	case ast.ShowWarnings, ast.ShowErrors:
		return s.showWarnings(n)
	case ast.ShowProcessList:
		return s.server.processList(n.Full), nil
	}
	return s.shownFixed(n)
}

// shownFixed answers what does not depend on the databases.
func (s *session) shownFixed(n *ast.ShowStmt) (*result.Table, error) {
	switch n.Tp {
	case ast.ShowEngines:
		return renameColumns(query.Engines(), "Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"), nil
	case ast.ShowCharset:
		return showCharsets(), nil
	case ast.ShowCollation:
		return showCollations(), nil
	case ast.ShowGrants:
		return s.showGrants(), nil
	case ast.ShowReplicaStatus:
		return s.server.replicaStatus(!strings.Contains(strings.ToUpper(n.Text()), "SLAVE"), n.DBName), nil
	case ast.ShowBinlogStatus, ast.ShowMasterStatus:
		return s.server.binlogStatus(), nil
	case ast.ShowCreateView:
		return s.showCreateView(n)
	case ast.ShowCreateProcedure:
		return nil, errNoRoutine("PROCEDURE", n.Procedure.Name.O)
	case ast.ShowPrivileges:
		return emptyTable("Privilege", "Context", "Comment"), nil
	}
	if names, ok := emptyShows[n.Tp]; ok {
		return emptyTable(strings.Split(names, ",")...), nil
	}
	return nil, sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support '%s'", strings.ToUpper(firstWords(n.Text(), 3)))
}

// emptyShows are the lists of things that are never here, with the names of their columns.
var emptyShows = map[ast.ShowStmtType]string{
	ast.ShowTriggers:        "Trigger,Event,Table,Statement,Timing,Created:time,sql_mode,Definer,character_set_client,collation_connection,Database Collation",
	ast.ShowEvents:          "Db,Name,Definer,Time zone,Type,Execute at:time,Interval value,Interval field,Starts:time,Ends:time,Status,Originator:int,character_set_client,collation_connection,Database Collation",
	ast.ShowProcedureStatus: "Db,Name,Type,Language,Definer,Modified:time,Created:time,Security_type,Comment,character_set_client,collation_connection,Database Collation",
	ast.ShowFunctionStatus:  "Db,Name,Type,Language,Definer,Modified:time,Created:time,Security_type,Comment,character_set_client,collation_connection,Database Collation",
	ast.ShowPlugins:         "Name,Status,Type,Library,License",
	ast.ShowOpenTables:      "Database,Table,In_use:int,Name_locked:int",
	ast.ShowProfiles:        "Query_ID:int,Duration,Query",
	ast.ShowProfile:         "Status,Duration",
}

// emptyTable makes a table of text columns; names that end in :int or :time are of integers and of times.
func emptyTable(names ...string) *result.Table {
	var fields []field.Field
	for _, name := range names {
		name, kind, _ := strings.Cut(name, ":")
		switch kind {
		case "int":
			fields = append(fields, result.Int(name))
		case "time":
			fields = append(fields, result.DateTime(name))
		default:
			fields = append(fields, result.Text(name))
		}
	}
	return result.NewTable(fields...)
}

func firstWords(text string, n int) string {
	words := strings.Fields(text)
	return strings.TrimSuffix(strings.Join(words[:min(n, len(words))], " "), ";")
}

func renameColumns(t *result.Table, names ...string) *result.Table {
	for i := range t.Fields() {
		t.Fields()[i].Name = names[i]
	}
	return t
}

// databaseOf gives the database that a SHOW names, or the default one.
func (s *session) databaseOf(name string) (string, error) {
	if name == "" {
		name = s.database
	}
	if name == "" {
		return "", sqlerr.New(sqlerr.NoDatabase, "No database selected")
	}
	return s.server.queries.CheckDatabase(name)
}

func (s *session) tableOf(n *ast.ShowStmt) (query.Table, error) {
	name := n.Table.Schema.O
	if name == "" {
		name = n.DBName
	}
	db, err := s.databaseOf(name)
	if err != nil {
		return query.Table{}, err
	}
	return s.server.queries.Table(db, n.Table.Name.O)
}

func patternSuffix(n *ast.ShowStmt, s *session) string {
	if n.Pattern == nil {
		return ""
	}
	if v, ok := literal(n.Pattern.Pattern); ok {
		return " (" + valueText(v) + ")"
	}
	return ""
}

func (s *session) showDatabases(n *ast.ShowStmt) *result.Table {
	t := result.NewTable(result.Object("Database" + patternSuffix(n, s)))
	for _, name := range s.server.queries.Databases() {
		t.Add(name)
	}
	return t
}

func (s *session) showTables(n *ast.ShowStmt) (*result.Table, error) {
	db, err := s.databaseOf(n.DBName)
	if err != nil {
		return nil, err
	}
	tables, err := s.server.queries.Tables(db)
	if err != nil {
		return nil, err
	}
	fields := []field.Field{result.Object("Tables_in_" + db + patternSuffix(n, s))}
	if n.Full {
		fields = append(fields, result.Enum("Table_type"))
	}
	t := result.NewTable(fields...)
	for _, x := range tables {
		t.Add(x.Def.Name, x.Type())
	}
	return t, nil
}

func (s *session) showTableStatus(n *ast.ShowStmt) (*result.Table, error) {
	db, err := s.databaseOf(n.DBName)
	if err != nil {
		return nil, err
	}
	tables, err := s.server.queries.Tables(db)
	if err != nil {
		return nil, err
	}
	t := result.NewTable(result.Object("Name"), result.Name("Engine"), result.Int("Version"), result.Enum("Row_format"), result.Uint("Rows"),
		result.Uint("Avg_row_length"), result.Uint("Data_length"), result.Uint("Max_data_length"), result.Uint("Index_length"), result.Uint("Data_free"),
		result.Uint("Auto_increment"), result.DateTime("Create_time"), result.DateTime("Update_time"), result.DateTime("Check_time"),
		result.Name("Collation"), result.Int("Checksum"), result.Name("Create_options"), result.LongText("Comment"))
	for _, x := range tables {
		var average int64
		if x.Rows > 0 {
			average = x.Bytes / x.Rows
		}
		t.Add(x.Def.Name, x.Def.Engine, 10, "Dynamic", x.Rows, average, x.Bytes, 0, 0, 0, nil, nil, nil, nil, x.Def.Collation, nil, "", x.Def.Comment)
	}
	return t, nil
}

func (s *session) showColumns(n *ast.ShowStmt) (*result.Table, error) {
	x, err := s.tableOf(n)
	if err != nil {
		return nil, err
	}
	t := result.NewTable(result.Name("Field"), result.BlobText("Type", 1<<24-1), result.Name("Null"), result.Enum("Key"), result.BlobText("Default", 1<<16-1), result.Text("Extra"))
	if n.Full {
		t = result.NewTable(result.Name("Field"), result.BlobText("Type", 1<<24-1), result.Name("Collation"), result.Name("Null"), result.Enum("Key"),
			result.BlobText("Default", 1<<16-1), result.Text("Extra"), result.Text("Privileges"), result.LongText("Comment"))
	}
	for i := range x.Def.Columns {
		c := &x.Def.Columns[i]
		switch {
		case n.Column != nil && !strings.EqualFold(n.Column.Name.O, c.Name):
		case n.Full:
			var collation any
			if c.Collation != "" && c.Collation != "binary" {
				collation = c.Collation
			}
			t.Add(c.Name, c.ColumnType, collation, query.YesNo(c.Nullable), x.ColumnKey(c), c.Default, query.Extra(c), query.Privileges, c.Comment)
		default:
			t.Add(c.Name, c.ColumnType, query.YesNo(c.Nullable), x.ColumnKey(c), c.Default, query.Extra(c))
		}
	}
	return t, nil
}

func (s *session) showIndex(n *ast.ShowStmt) (*result.Table, error) {
	x, err := s.tableOf(n)
	if err != nil {
		return nil, err
	}
	t := result.NewTable(result.Object("Table"), result.Int("Non_unique"), result.Name("Key_name"), result.Uint("Seq_in_index"), result.Name("Column_name"),
		result.Name("Collation"), result.Int("Cardinality"), result.Int("Sub_part"), result.Name("Packed"), result.Name("Null"), result.Name("Index_type"),
		result.Name("Comment"), result.Text("Index_comment"), result.Name("Visible"), result.LongText("Expression"))
	for _, p := range x.IndexRows() {
		t.Add(x.Def.Name, p.NonUnique, p.Index.Name, p.Seq, p.Column, p.Collation, p.Cardinality, p.SubPart, nil, p.Nullable, p.Index.Kind,
			"", p.Index.Comment, query.YesNo(!p.Index.Invisible), p.Expression)
	}
	return t, nil
}

func (s *session) showCreateTable(n *ast.ShowStmt) (*result.Table, error) {
	x, err := s.tableOf(n)
	if err != nil {
		return nil, err
	}
	t := result.NewTable(result.Object("Table"), result.LongText("Create Table"))
	t.Add(x.Def.Name, x.CreateTable())
	return t, nil
}

// showCreateView refuses: there are no views.
func (s *session) showCreateView(n *ast.ShowStmt) (*result.Table, error) {
	x, err := s.tableOf(n)
	if err != nil {
		return nil, err
	}
	return nil, sqlerr.New(1347, "'%s.%s' is not VIEW", x.Database, x.Def.Name)
}

func errNoRoutine(kind, name string) error {
	return sqlerr.New(1305, "%s %s does not exist", kind, name)
}

// showCreateDatabase gives the statement that makes the database again, with '...' in place of the password.
func (s *session) showCreateDatabase(n *ast.ShowStmt) (*result.Table, error) {
	db, err := s.databaseOf(n.DBName)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("CREATE DATABASE `%s` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */", db)
	for _, st := range s.server.manager.Status() {
		if st.Name == db {
			text = st.CreateStatement()
		}
	}
	t := result.NewTable(result.Object("Database"), result.LongText("Create Database"))
	t.Add(db, text)
	return t, nil
}

// tableFields gives the columns of a table for COM_FIELD_LIST.
func (s *session) tableFields(name, pattern string) ([]field.Field, error) {
	db, err := s.databaseOf("")
	if err != nil {
		return nil, err
	}
	x, err := s.server.queries.Table(db, name)
	if err != nil {
		return nil, err
	}
	if pattern == "" {
		pattern = "%"
	}
	match := likeMatcher(pattern)
	var out []field.Field
	for i := range x.Def.Columns {
		f := field.Of(x.Def, i, field.UTF8MB4)
		if f.Database = db; match(f.Name) {
			out = append(out, f)
		}
	}
	return out, nil
}

func (s *session) showWarnings(n *ast.ShowStmt) (*result.Table, error) {
	list := s.warnings
	if n.Tp == ast.ShowErrors {
		list = slices.DeleteFunc(slices.Clone(list), func(w result.Warning) bool { return w.Level != "Error" })
	}
	if n.CountWarningsOrErrors {
		name := "@@session.warning_count"
		if n.Tp == ast.ShowErrors {
			name = "@@session.error_count"
		}
		t := result.NewTable(result.Uint(name))
		t.Add(len(list))
		return t, nil
	}
	t := result.NewTable(result.Name("Level"), result.Int("Code"), result.Text("Message"))
	for _, w := range list {
		t.Add(w.Level, int(w.Code), w.Message)
	}
	return t, nil
}

func showCharsets() *result.Table {
	t := result.NewTable(result.Name("Charset"), result.Text("Description"), result.Name("Default collation"), result.Uint("Maxlen"))
	for _, c := range query.Charsets {
		t.Add(c.Name, c.Description, c.Collation, c.MaxBytes)
	}
	return t
}

func showCollations() *result.Table {
	t := result.NewTable(result.Name("Collation"), result.Name("Charset"), result.Uint("Id"), result.Name("Default"), result.Name("Compiled"),
		result.Uint("Sortlen"), result.Name("Pad_attribute"))
	for _, c := range query.Collations {
		isDefault := ""
		if c.Default {
			isDefault = "Yes"
		}
		t.Add(c.Name, c.Charset, c.ID, isDefault, "Yes", c.SortLength, c.Pad)
	}
	return t
}

func (s *session) showGrants() *result.Table {
	t := result.NewTable(result.Text(fmt.Sprintf("Grants for %s@%%", s.user)))
	t.Add(fmt.Sprintf("GRANT SELECT, PROCESS, SHOW DATABASES ON *.* TO `%s`@`%%`", s.user))
	return t
}

// ProcessList is information_schema.PROCESSLIST, for [query.Options].
func (s *Server) ProcessList() *result.Table {
	t := result.NewTable(query.ProcessListFields()...)
	for _, c := range s.connections() {
		c.addTo(t, true)
	}
	return t
}

// processList is SHOW PROCESSLIST. Strings are left out of statements that may hold a password.
func (s *Server) processList(full bool) *result.Table {
	t := result.NewTable(result.Uint("Id"), result.Name("User"), result.Text("Host"), result.Name("db"), result.Name("Command"), result.Int("Time"),
		result.Name("State"), result.LongText("Info"))
	for _, c := range s.connections() {
		c.addTo(t, full)
	}
	return t
}

// maxInfo is how much of a statement SHOW PROCESSLIST shows without FULL.
const maxInfo = 100

func (c *conn) addTo(t *result.Table, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var db, info, state any = nil, nil, ""
	if c.db != "" {
		db = c.db
	}
	if c.info != "" {
		text := showable(c.info)
		if r := []rune(text); !full && len(r) > maxInfo {
			text = string(r[:maxInfo])
		}
		info, state = text, "executing"
	}
	t.Add(uint64(c.id), c.user, c.remote.String(), db, c.command, int64(time.Since(c.since).Seconds()), state, info)
}

func (s *Server) showStatus(asking *conn) *result.Table {
	t := result.NewTable(result.Name("Variable_name"), result.Text("Value"))
	clients, questions := s.Load()
	running := 0
	for _, c := range s.connections() {
		c.mu.Lock()
		if c.stop != nil {
			running++
		}
		c.mu.Unlock()
	}
	t.Add("Queries", questions)
	t.Add("Questions", questions)
	cipher, version := asking.encryption()
	t.Add("Ssl_cipher", cipher)
	t.Add("Ssl_version", version)
	t.Add("Threads_connected", clients)
	t.Add("Threads_running", running)
	t.Add("Uptime", int64(time.Since(s.started).Seconds()))
	return t
}

// encryption names what a connection is encrypted with; empty when it is not.
func (c *conn) encryption() (cipher, version string) {
	if t, ok := c.net.(*tls.Conn); ok {
		state := t.ConnectionState()
		return tls.CipherSuiteName(state.CipherSuite), strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1)
	}
	return "", ""
}
