package server

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/server/admin"
)

// outcome is what a statement gives: rows, or else a plain OK.
type outcome struct {
	rows result.Rows
	ok   okResult
}

var done = outcome{}

// execute runs one statement.
func (s *session) execute(ctx context.Context, text string) (outcome, error) {
	parsed, err := s.parse(text)
	if err != nil {
		s.now, s.warnings = time.Now(), nil
		return s.failed(err)
	}
	return s.run(ctx, parsed, nil)
}

// parsed is a statement in one of its two languages.
type parsed struct {
	text  string
	admin admin.Statement
	node  ast.StmtNode
	plain []string // the columns of a list that is always empty
	void  bool     // nothing but comments
}

// parse reads a statement: first as one of ours, then as MySQL's.
func (s *session) parse(text string) (parsed, error) {
	ours, err := admin.Parse(text)
	if err != nil {
		return parsed{}, adminError(err)
	}
	if ours != nil {
		return parsed{text: text, admin: ours}, nil
	}
	written := strings.Trim(text, "; \t\r\n")
	text = uncomment(text)
	mode := translationMode(s.text("sql_mode"))
	nodes, err := s.parser.Parse(text, mode)
	if other, ok := respelled[strings.ToUpper(strings.Join(strings.Fields(strings.TrimRight(text, "; \t\n")), " "))]; ok && err != nil {
		nodes, err = s.parser.Parse(other, mode)
	}
	switch {
	case err != nil:
		if m := channelStatus.FindStringSubmatch(text); m != nil {
			return s.parseChannelStatus(m[1], m[2])
		}
		return parseOther(text, err)
	case len(nodes) == 0 && written != "":
		return parsed{text: text, void: true}, nil
	case len(nodes) == 0:
		return parsed{}, sqlerr.New(sqlerr.EmptyQuery, "Query was empty")
	case len(nodes) > 1:
		return parsed{}, sqlerr.New(sqlerr.Parse, "You have an error in your SQL syntax: one statement was expected, there are %d", len(nodes))
	}
	return parsed{text: text, node: nodes[0]}, nil
}

// respelled has statements that the parser does not know in a form that it knows.
var respelled = map[string]string{
	"SHOW ALL SLAVES STATUS": "SHOW SLAVE STATUS",
	"BEGIN WORK":             "BEGIN",
	"SHOW STORAGE ENGINES":   "SHOW ENGINES",
	"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
	"START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
}

// channelStatus is SHOW REPLICA STATUS for one database, whose name is the channel's.
var channelStatus = regexp.MustCompile(`(?is)^\s*(SHOW\s+(?:REPLICA|SLAVE)\s+STATUS)\s+FOR\s+CHANNEL\s+['"]([^'"]*)['"]\s*;?\s*$`)

func (s *session) parseChannelStatus(text, channel string) (parsed, error) {
	p, err := s.parse(text)
	if n, ok := p.node.(*ast.ShowStmt); ok {
		n.DBName = channel
	}
	return p, err
}

// adminError gives the error of one of our own statements its number.
func adminError(err error) error {
	var u *admin.Unsupported
	if errors.As(err, &u) {
		return err
	}
	return sqlerr.New(sqlerr.Parse, "%s", err.Error())
}

// parseOther looks at a statement that the parser does not know by its first word: one that writes is refused as such.
func parseOther(text string, cause error) (parsed, error) {
	if slices.Contains(writingWords, admin.FirstWord(text)) {
		return parsed{}, errReadOnly()
	}
	columns, err := plainAnswer(text)
	if err != nil || columns != nil {
		return parsed{text: text, plain: columns}, err
	}
	return parsed{}, cause
}

// writingWords begin the statements that write.
var writingWords = []string{"CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "RENAME", "TRUNCATE", "INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD",
	"OPTIMIZE", "REPAIR", "ANALYZE", "INSTALL", "UNINSTALL", "IMPORT", "CALL"}

func errReadOnly() error {
	return sqlerr.New(sqlerr.ReadOnlyOption, "The MySQL server is running with the --read-only option so it cannot execute this statement")
}

// run carries out a parsed statement.
func (s *session) run(ctx context.Context, p parsed, params []translate.Value) (outcome, error) {
	s.now = s.statementTime()
	if !keepsWarnings(p.node) {
		s.warnings = nil
	}
	o, err := s.dispatch(ctx, p, params)
	if err != nil {
		return s.failed(err)
	}
	return o, nil
}

// statementTime is the time of the statement, or the one that SET timestamp fixed.
func (s *session) statementTime() time.Time {
	if fixed, ok := s.values["timestamp"]; ok {
		if f, err := strconv.ParseFloat(fixed, 64); err == nil && f > 0 {
			return time.UnixMicro(int64(f * 1e6))
		}
	}
	return time.Now()
}

// failed records the error for SHOW ERRORS.
func (s *session) failed(err error) (outcome, error) {
	e := clientError(err)
	s.warn("Error", e.Code, "%s", e.Message)
	return outcome{}, e
}

// clientError gives any error its MySQL number.
func clientError(err error) *sqlerr.Error {
	var construct *translate.Unsupported
	var advice *admin.Unsupported
	if errors.As(err, &construct) || errors.As(err, &advice) {
		return sqlerr.New(sqlerr.NotSupportedYet, "%s", err.Error())
	}
	return sqlerr.From(err)
}

// keepsWarnings tells the statements that look at the warnings of the one before.
func keepsWarnings(node ast.StmtNode) bool {
	show, ok := node.(*ast.ShowStmt)
	return ok && (show.Tp == ast.ShowWarnings || show.Tp == ast.ShowErrors)
}

func (s *session) dispatch(ctx context.Context, p parsed, params []translate.Value) (outcome, error) {
	switch {
	case p.admin != nil:
		return s.manage(ctx, p.admin)
	case p.plain != nil:
		return outcome{rows: emptyTable(p.plain...)}, nil
	case p.void:
		return done, nil
	}
	switch n := p.node.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
		return s.selectRows(ctx, n, params)
	case *ast.ShowStmt:
		return s.showRows(ctx, n)
	case *ast.ExplainStmt:
		return s.explain(ctx, n)
	case *ast.UseStmt:
		return done, s.use(n.DBName)
	case *ast.SetStmt:
		return done, s.set(ctx, n)
	case *ast.DoStmt:
		return done, s.do(ctx, n)
	case *ast.KillStmt:
		return done, s.server.kill(uint32(n.ConnectionID), n.Query, s)
	case *ast.PrepareStmt:
		return done, s.prepareNamed(ctx, n)
	case *ast.ExecuteStmt:
		return s.executeNamed(ctx, n)
	case *ast.DeallocateStmt:
		return done, s.deallocate(n.Name)
	}
	return s.dispatchTransaction(ctx, p.node)
}

func (s *session) dispatchTransaction(ctx context.Context, node ast.StmtNode) (outcome, error) {
	switch n := node.(type) {
	case *ast.BeginStmt:
		return done, s.begin(ctx, n.Mode == "" && strings.Contains(strings.ToUpper(n.Text()), "SNAPSHOT"))
	case *ast.RollbackStmt:
		if n.SavepointName == "" {
			s.endTransaction()
		}
		return done, nil
	case *ast.CommitStmt, *ast.UnlockTablesStmt:
		s.endTransaction()
		return done, nil
	case *ast.LockTablesStmt:
		return done, s.lockTables(ctx, n)
	case *ast.FlushStmt:
		if n.ReadLock {
			break // it would promise other sessions a point in time
		}
		return done, nil
	case *ast.SavepointStmt, *ast.ReleaseSavepointStmt, *ast.SetRoleStmt:
		return done, nil // nothing is written that one could go back from
	}
	return outcome{}, refuse(node)
}

// lockTables gives what LOCK TABLES ... READ is asked for: until UNLOCK TABLES the session sees one point in time.
func (s *session) lockTables(ctx context.Context, n *ast.LockTablesStmt) error {
	for _, l := range n.TableLocks {
		if l.Type != ast.TableLockRead && l.Type != ast.TableLockReadLocal {
			return errReadOnly()
		}
	}
	return s.begin(ctx, true)
}

// refuse says why a statement is not carried out: it writes, or is not known here.
func refuse(node ast.StmtNode) error {
	word := admin.FirstWord(node.Text())
	if _, password := node.(*ast.SetPwdStmt); password || slices.Contains(writingWords, word) {
		return errReadOnly()
	}
	return sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support '%s'", word)
}

func (s *session) selectRows(ctx context.Context, n ast.StmtNode, params []translate.Value) (outcome, error) {
	snapshot := s.snapshot
	// as in MySQL, a statement that reads no table does not yet fix the transaction's point
	if readsTables(n) {
		var err error
		if snapshot, err = s.pin(ctx); err != nil {
			return outcome{}, err
		}
	}
	r, err := s.server.queries.Select(ctx, n, s.translation(), params, snapshot)
	if err != nil {
		return outcome{}, err
	}
	s.warnings = append(s.warnings, r.Warnings...)
	return outcome{rows: s.limited(n, r.Rows)}, nil
}

// readsTables tells whether a statement names a table: only then does it begin a transaction.
func readsTables(n ast.StmtNode) bool {
	var v tableVisitor
	n.Accept(&v)
	return v.found
}

type tableVisitor struct{ found bool }

func (v *tableVisitor) Enter(n ast.Node) (ast.Node, bool) {
	if _, ok := n.(*ast.TableName); ok {
		v.found = true
	}
	return n, v.found
}

func (v *tableVisitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// limited cuts a SELECT without a LIMIT of its own at sql_select_limit.
func (s *session) limited(n ast.StmtNode, rows result.Rows) result.Rows {
	limit, err := strconv.ParseInt(s.text("sql_select_limit"), 10, 64)
	if err != nil { // the default, which is beyond an int64
		return rows
	}
	switch n := n.(type) {
	case *ast.SelectStmt:
		if n.Limit != nil {
			return rows
		}
	case *ast.SetOprStmt:
		if n.Limit != nil {
			return rows
		}
	}
	return &limitedRows{Rows: rows, left: limit}
}

// limitedRows ends after a number of rows.
type limitedRows struct {
	result.Rows
	left int64
}

func (l *limitedRows) Next() (result.Cells, error) {
	if l.left <= 0 {
		return nil, io.EOF
	}
	cells, err := l.Rows.Next()
	if err != nil {
		return nil, err
	}
	if int64(cells.Len()) > l.left {
		cells = firstCells{cells, int(l.left)}
	}
	l.left -= int64(cells.Len())
	return cells, nil
}

type firstCells struct {
	result.Cells
	n int
}

func (f firstCells) Len() int { return f.n }

// evaluate gives the value of an expression without tables.
func (s *session) evaluate(ctx context.Context, expr ast.ExprNode) (translate.Value, error) {
	sel := &ast.SelectStmt{
		SelectStmtOpts: &ast.SelectStmtOpts{SQLCache: true}, Kind: ast.SelectStmtKindSelect,
		Fields: &ast.FieldList{Fields: []*ast.SelectField{{Expr: expr}}},
	}
	r, err := s.server.queries.Select(ctx, sel, s.translation(), nil, s.snapshot)
	if err != nil {
		return translate.Value{}, err
	}
	defer r.Rows.Close()
	cells, err := r.Rows.Next()
	if errors.Is(err, io.EOF) {
		return translate.Value{}, nil
	}
	if err != nil {
		return translate.Value{}, err
	}
	text, null := cells.Text(nil, 0, 0)
	if null {
		return translate.Value{}, nil
	}
	return constant(&r.Rows.Fields()[0], string(text), func() float64 { return cells.Float(0, 0) })
}

// constant makes a constant of a value in a result.
func constant(f *field.Field, text string, float func() float64) (translate.Value, error) {
	switch f.Type {
	case field.Tiny, field.Short, field.Int24, field.Long, field.LongLong, field.Year:
		if f.Flags&field.Unsigned != 0 {
			u, err := strconv.ParseUint(text, 10, 64)
			return translate.Value{Kind: translate.UintValue, Uint: u}, err
		}
		i, err := strconv.ParseInt(text, 10, 64)
		return translate.Value{Kind: translate.IntValue, Int: i}, err
	case field.NewDecimal:
		return translate.Value{Kind: translate.DecimalValue, Text: text}, nil
	case field.Float, field.Double:
		return translate.Value{Kind: translate.DoubleValue, Float: float()}, nil
	case field.Blob, field.VarString, field.String, field.Bit:
		if f.Charset == field.Binary {
			return translate.Value{Kind: translate.BytesValue, Text: text}, nil
		}
	}
	return translate.Value{Kind: translate.TextValue, Text: text}, nil
}

// do evaluates for errors only.
func (s *session) do(ctx context.Context, n *ast.DoStmt) error {
	for _, e := range n.Exprs {
		if _, err := s.evaluate(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// explain answers DESCRIBE; plans are not shown.
func (s *session) explain(ctx context.Context, n *ast.ExplainStmt) (outcome, error) {
	if show, ok := n.Stmt.(*ast.ShowStmt); ok {
		return s.showRows(ctx, show)
	}
	return outcome{}, sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support 'EXPLAIN'")
}
