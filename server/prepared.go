package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser/ast"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
)

// maxPrepared bounds the prepared statements of one connection, as MySQL's max_prepared_stmt_count bounds a server's.
const maxPrepared = 16382

const maxPlaceholders = 65535

// statement is a prepared statement of either protocol.
type statement struct {
	parsed
	params int
	types  []paramType
	long   map[int][]byte // parameters sent ahead
	cursor *cursor
}

type paramType struct {
	kind     field.Type
	unsigned bool
}

// prepare parses a statement and numbers its parameters.
func (s *session) prepare(text string) (*statement, error) {
	p, err := s.parse(text)
	if err != nil {
		return nil, err
	}
	st := &statement{parsed: p}
	if p.node == nil {
		return st, nil
	}
	switch p.node.(type) {
	case *ast.PrepareStmt, *ast.ExecuteStmt, *ast.DeallocateStmt:
		return nil, sqlerr.New(1295, "This command is not supported in the prepared statement protocol yet")
	}
	var found markers
	p.node.Accept(&found)
	slices.SortFunc(found, func(a, b *driver.ParamMarkerExpr) int { return a.Offset - b.Offset })
	for i, m := range found {
		m.SetOrder(i)
	}
	if st.params = len(found); st.params > maxPlaceholders {
		return nil, sqlerr.New(sqlerr.TooManyPlaceholders, "Prepared statement contains too many placeholders")
	}
	return st, nil
}

// markers collects the parameter markers of a statement.
type markers []*driver.ParamMarkerExpr

func (m *markers) Enter(n ast.Node) (ast.Node, bool) {
	if p, ok := n.(*driver.ParamMarkerExpr); ok {
		*m = append(*m, p)
	}
	return n, false
}

func (m *markers) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// describe gives the columns of a prepared statement as far as they can be told before its parameters are known.
func (s *session) describe(ctx context.Context, st *statement) ([]field.Field, error) {
	switch st.node.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
	default:
		return nil, nil
	}
	snapshot, err := s.pin(ctx)
	if err != nil {
		return nil, err
	}
	fields, err := s.server.queries.Describe(st.node, s.translation(), nil, snapshot)
	var unsupported *translate.Unsupported
	if st.params > 0 && errors.As(err, &unsupported) {
		return placeholderFields(st.node), nil // with values it may well be supported
	}
	return fields, err
}

// placeholderFields has at least the right number of columns, which some drivers allocate by.
func placeholderFields(n ast.StmtNode) []field.Field {
	sel, ok := n.(*ast.SelectStmt)
	if !ok || sel.Fields == nil {
		return nil
	}
	var fields []field.Field
	for _, f := range sel.Fields.Fields {
		if f.WildCard != nil {
			return nil
		}
		column := result.Text(f.AsName.O)
		if column.Name == "" {
			column.Name = strings.TrimSpace(f.Text())
		}
		fields = append(fields, column)
	}
	return fields
}

// The SQL form: PREPARE, EXECUTE, DEALLOCATE PREPARE.

func (s *session) prepareNamed(_ context.Context, n *ast.PrepareStmt) error {
	text := n.SQLText
	if n.SQLVar != nil {
		text = valueText(s.users[strings.ToLower(n.SQLVar.Name)])
	}
	delete(s.prepared, strings.ToLower(n.Name))
	st, err := s.prepare(text)
	if err != nil {
		return err
	}
	s.prepared[strings.ToLower(n.Name)] = st
	return nil
}

func errUnknownStatement(name, call string) error {
	return sqlerr.New(sqlerr.UnknownStatement, "Unknown prepared statement handler (%s) given to %s", name, call)
}

func (s *session) executeNamed(ctx context.Context, n *ast.ExecuteStmt) (outcome, error) {
	st := s.prepared[strings.ToLower(n.Name)]
	if st == nil {
		return outcome{}, errUnknownStatement(n.Name, "EXECUTE")
	}
	var params []translate.Value
	for _, e := range n.UsingVars {
		v, ok := e.(*ast.VariableExpr)
		if !ok {
			return outcome{}, sqlerr.New(sqlerr.WrongArguments, "Incorrect arguments to EXECUTE")
		}
		params = append(params, s.users[strings.ToLower(v.Name)])
	}
	if len(params) != st.params {
		return outcome{}, sqlerr.New(sqlerr.WrongArguments, "Incorrect arguments to EXECUTE")
	}
	return s.dispatch(ctx, st.parsed, params)
}

func (s *session) deallocate(name string) error {
	if s.prepared[strings.ToLower(name)] == nil {
		return errUnknownStatement(name, "DEALLOCATE PREPARE")
	}
	delete(s.prepared, strings.ToLower(name))
	return nil
}

// The binary protocol.

func (c *conn) preparedCommand(ctx context.Context, command byte, body []byte) error {
	switch command {
	case comStmtPrepare:
		return c.stmtPrepare(ctx, decodeText(c.session.clientCharset, body))
	case comStmtExecute:
		return c.stmtExecute(ctx, body)
	case comStmtFetch:
		return c.stmtFetch(ctx, body)
	case comStmtSendLong:
		c.stmtSendLong(body)
		return nil
	case comStmtClose:
		d := decoder{b: body}
		c.closeStatement(uint32(d.uint(4)))
		return nil
	case comStmtReset:
		return c.stmtReset(body)
	}
	return c.writeError(sqlerr.New(sqlerr.UnknownCommand, "Unknown command"))
}

func (c *conn) closeStatement(id uint32) {
	if st := c.statements[id]; st != nil {
		st.closeCursor()
		delete(c.statements, id)
	}
}

func (c *conn) resetStatements() {
	for id := range c.statements {
		c.closeStatement(id)
	}
}

func (c *conn) stmtPrepare(ctx context.Context, text string) error {
	c.setState("Prepare", text)
	c.session.warnings, c.session.now = nil, time.Now()
	if len(c.statements) >= maxPrepared {
		return c.writeError(sqlerr.New(1461, "Can't create more than max_prepared_stmt_count statements (current value: %d)", maxPrepared))
	}
	st, err := c.session.prepare(text)
	var fields []field.Field
	if err == nil {
		fields, err = c.session.describe(ctx, st)
	}
	if err != nil {
		_, err := c.session.failed(err)
		return c.writeError(err)
	}
	c.lastID++
	c.statements[c.lastID] = st
	return c.writePrepared(c.lastID, st.params, fields)
}

func (c *conn) writePrepared(id uint32, params int, fields []field.Field) error {
	b := appendUint32([]byte{headerOK}, id)
	b = appendUint16(b, uint16(len(fields)))
	b = appendUint16(b, uint16(params))
	b = append(b, 0)
	b = appendUint16(b, c.session.warningCount())
	if err := c.out.write(b); err != nil {
		return err
	}
	if params > 0 {
		marker := field.Field{Name: "?", Type: field.VarString, Charset: field.Binary, Flags: field.BinaryFlag}
		if err := c.writeFields(slices.Repeat([]field.Field{marker}, params)); err != nil {
			return err
		}
		if err := c.endFields(); err != nil {
			return err
		}
	}
	if len(fields) == 0 {
		return nil
	}
	if err := c.writeFields(fields); err != nil {
		return err
	}
	return c.endFields()
}

func (c *conn) stmtReset(body []byte) error {
	d := decoder{b: body}
	st := c.statements[uint32(d.uint(4))]
	if st == nil {
		return c.writeError(errUnknownStatement("?", "mysqld_stmt_reset"))
	}
	st.closeCursor()
	st.long = nil
	return c.writeOK(okResult{})
}

func (c *conn) stmtSendLong(body []byte) {
	d := decoder{b: body}
	st, i := c.statements[uint32(d.uint(4))], int(d.uint(2))
	if d.bad || st == nil || i >= st.params {
		return // the protocol has no answer to this command
	}
	if st.long == nil {
		st.long = map[int][]byte{}
	}
	st.long[i] = append(st.long[i], d.rest()...)
}

const cursorReadOnly = 1

func (c *conn) stmtExecute(ctx context.Context, body []byte) error {
	d := decoder{b: body}
	st := c.statements[uint32(d.uint(4))]
	flags := d.uint(1)
	d.uint(4) // the number of iterations, always 1
	if st == nil || d.bad {
		return c.writeError(errUnknownStatement("?", "mysqld_stmt_execute"))
	}
	st.closeCursor()
	params, err := st.bind(&d, c.session.clientCharset)
	st.long = nil
	if err != nil {
		return c.writeError(err)
	}
	if flags&cursorReadOnly != 0 {
		return c.openCursor(ctx, st, params)
	}
	_, err = c.runStatement(ctx, st.text, binaryRow, func(ctx context.Context) (outcome, error) {
		return c.session.run(ctx, st.parsed, params)
	})
	return err
}

// bind reads the parameters of an execution. Types are kept: a client sends them with the first one only.
func (st *statement) bind(d *decoder, charset string) ([]translate.Value, error) {
	if st.params == 0 {
		return nil, nil
	}
	nulls := d.bytes(uint64(st.params+7) / 8)
	if d.uint(1) == 1 {
		types := make([]paramType, st.params)
		for i := range types {
			types[i] = paramType{kind: field.Type(d.uint(1))}
			types[i].unsigned = d.uint(1)&0x80 != 0
		}
		st.types = types
	}
	if d.bad || st.types == nil {
		return nil, errMalformed()
	}
	params := make([]translate.Value, st.params)
	for i := range params {
		long, sent := st.long[i]
		switch {
		case sent:
			params[i] = bytesParam(st.types[i].kind, long, charset)
		case nulls[i/8]>>(i%8)&1 == 0:
			params[i] = readParam(d, st.types[i], charset)
		}
	}
	if d.bad {
		return nil, errMalformed()
	}
	return params, nil
}

func readParam(d *decoder, t paramType, charset string) translate.Value {
	switch t.kind {
	case field.Null:
		return translate.Value{}
	case field.Tiny:
		return intParam(d.uint(1), 8, t.unsigned)
	case field.Short, field.Year:
		return intParam(d.uint(2), 16, t.unsigned)
	case field.Int24, field.Long:
		return intParam(d.uint(4), 32, t.unsigned)
	case field.LongLong:
		return intParam(d.uint(8), 64, t.unsigned)
	case field.Float:
		return translate.Value{Kind: translate.DoubleValue, Float: float64(math.Float32frombits(uint32(d.uint(4))))}
	case field.Double:
		return translate.Value{Kind: translate.DoubleValue, Float: math.Float64frombits(d.uint(8))}
	case field.Date, field.DateTime, field.Timestamp:
		return dateParam(d, t.kind)
	case field.Time:
		return timeParam(d)
	}
	return bytesParam(t.kind, d.lenBytes(), charset)
}

func intParam(v uint64, bits int, unsigned bool) translate.Value {
	if unsigned {
		return translate.Value{Kind: translate.UintValue, Uint: v}
	}
	shift := 64 - bits
	return translate.Value{Kind: translate.IntValue, Int: int64(v<<shift) >> shift}
}

func bytesParam(kind field.Type, b []byte, charset string) translate.Value {
	switch kind {
	case 0, field.NewDecimal: // 0: the DECIMAL of old
		return translate.Value{Kind: translate.DecimalValue, Text: string(b)}
	case field.TinyBlob, field.MediumBlob, field.LongBlob, field.Blob, field.Bit, field.Geometry:
		return translate.Value{Kind: translate.BytesValue, Text: string(b)}
	}
	text := decodeText(charset, b)
	if !utf8.ValidString(text) {
		// drivers send bytes of any kind as text
		return translate.Value{Kind: translate.BytesValue, Text: text}
	}
	return translate.Value{Kind: translate.TextValue, Text: text}
}

func dateParam(d *decoder, kind field.Type) translate.Value {
	p := decoder{b: d.bytes(d.uint(1))}
	var y, mo, day, h, mi, s, us int
	whole := len(p.b)
	if whole >= 4 {
		y, mo, day = int(p.uint(2)), int(p.uint(1)), int(p.uint(1))
	}
	if whole >= 7 {
		h, mi, s = int(p.uint(1)), int(p.uint(1)), int(p.uint(1))
	}
	if whole >= 11 {
		us = int(p.uint(4))
	}
	d.bad = d.bad || p.bad || us > 999_999
	if kind == field.Date {
		return translate.Value{Kind: translate.DateValue, Text: string(schema.AppendDate(nil, y, mo, day))}
	}
	return translate.Value{Kind: translate.DateTimeValue, Text: string(schema.AppendDateTime(nil, y, mo, day, h, mi, s, us, digits(us)))}
}

func timeParam(d *decoder) translate.Value {
	p := decoder{b: d.bytes(d.uint(1))}
	var total int64
	us := 0
	if whole := len(p.b); whole >= 8 {
		negative := p.uint(1) == 1
		days := int64(p.uint(4))
		seconds := days*86400 + int64(p.uint(1))*3600 + int64(p.uint(1))*60 + int64(p.uint(1))
		if whole >= 12 {
			us = int(p.uint(4))
		}
		total = seconds*1e6 + int64(us)
		if negative {
			total = -total
		}
	}
	d.bad = d.bad || p.bad || us > 999_999
	return translate.Value{Kind: translate.TimeValue, Text: string(schema.AppendTime(nil, total, digits(us)))}
}

// digits is the number of fractional digits that a parameter of so many microseconds is taken to have.
func digits(us int) int {
	if us == 0 {
		return 0
	}
	return 6
}

// cursor is an open result that the client fetches piece by piece.
type cursor struct {
	rows  result.Rows
	cells result.Cells // the block under way; nil: the next is to be read
	at    int
	end   func()
}

func (st *statement) closeCursor() {
	if st.cursor != nil {
		st.cursor.rows.Close()
		st.cursor.end()
		st.cursor = nil
	}
}

// openCursor runs a statement and keeps its rows for COM_STMT_FETCH. The statement goes on under the connection's
// context, and what stops the command under way stops it too.
func (c *conn) openCursor(ctx context.Context, st *statement, params []translate.Value) error {
	rowsCtx, end := context.WithCancel(ctx)
	cmdCtx, finish := c.begin(ctx, st.text)
	defer finish()
	defer context.AfterFunc(cmdCtx, end)()
	o, err := c.session.run(rowsCtx, st.parsed, params)
	if err != nil {
		end()
		return c.writeError(clientError(cmp.Or(context.Cause(cmdCtx), err)))
	}
	if o.rows == nil {
		end()
		return c.writeOK(o.ok)
	}
	st.cursor = &cursor{rows: o.rows, end: end}
	if err := c.out.write(appendLenInt(nil, uint64(len(o.rows.Fields())))); err != nil {
		return err
	}
	if err := c.writeFields(o.rows.Fields()); err != nil {
		return err
	}
	return c.endRows(c.status() | statusCursorExists)
}

func (c *conn) stmtFetch(ctx context.Context, body []byte) error {
	d := decoder{b: body}
	st, n := c.statements[uint32(d.uint(4))], int(d.uint(4))
	if st == nil || d.bad {
		return c.writeError(errUnknownStatement("?", "mysqld_stmt_fetch"))
	}
	if st.cursor == nil {
		return c.writeError(sqlerr.New(1421, "The statement (%d) has no open cursor.", c.lastID))
	}
	ctx, finish := c.begin(ctx, st.text)
	defer finish()
	defer context.AfterFunc(ctx, st.cursor.end)()
	last, err := c.fetchRows(ctx, st.cursor, n)
	if c.out.err != nil {
		return c.out.err
	}
	if err != nil {
		st.closeCursor()
		return c.writeError(clientError(cmp.Or(context.Cause(ctx), err)))
	}
	status := c.status() | statusCursorExists
	if last {
		status = c.status() | statusLastRowSent
		st.closeCursor()
	}
	return c.endRows(status)
}

// fetchRows sends up to n rows. last tells that there are no more.
func (c *conn) fetchRows(ctx context.Context, cur *cursor, n int) (last bool, err error) {
	fields := cur.rows.Fields()
	for n > 0 {
		if cur.cells == nil || cur.at == cur.cells.Len() {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			if cur.cells, err = cur.rows.Next(); errors.Is(err, io.EOF) {
				return true, nil
			}
			if err != nil {
				return false, err
			}
			cur.at = 0
			continue
		}
		if c.row, err = binaryRow(c.session, c.row[:0], fields, cur.cells, cur.at); err != nil {
			return false, err
		}
		if err := c.out.write(c.row); err != nil {
			return false, err
		}
		cur.at, n = cur.at+1, n-1
	}
	return false, nil
}
