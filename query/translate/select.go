package translate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// queryPlace says where a query stands.
type queryPlace uint8

const (
	queryTop    queryPlace = iota // its rows go to the client
	queryNested                   // a derived table, a subquery, a part of a set operation
)

// query is a translated query expression. Its DuckDB columns are named c1, c2, ...
type query struct {
	sql     string
	columns []outColumn
}

// outColumn is a column of a query's result.
type outColumn struct {
	name string
	e    expr
	// exact is the place of the hidden column that overrides the value; 0: none.
	exact int
}

// query translates any query expression; outer is the place of a subquery, or an empty environment.
func (t *translator) query(node ast.ResultSetNode, outer *env, place queryPlace) (*query, error) {
	switch n := node.(type) {
	case *ast.SelectStmt:
		return t.selectStmt(n, outer, place)
	case *ast.SetOprStmt:
		return t.setOperation(n, outer)
	case *ast.SubqueryExpr:
		return t.query(n.Query, outer, place)
	default:
		return nil, unsupported("this form of query")
	}
}

// block is one SELECT in the course of its translation.
type block struct {
	t      *translator
	n      *ast.SelectStmt
	env    *env
	place  queryPlace
	from   string
	fields []*selectItem
	where  []string
	having string
	group  *grouping
	out    []outColumn
	order  []orderItem
}

func (t *translator) selectStmt(n *ast.SelectStmt, outer *env, place queryPlace) (*query, error) {
	if err := refuseSelectExtras(n); err != nil {
		return nil, err
	}
	e := &env{outer: outer.outer, ctes: outer.ctes}
	with, err := t.with(n.With, e)
	if err != nil {
		return nil, err
	}
	b := &block{t: t, n: n, env: e, place: place}
	for _, step := range []func() error{b.readFrom, b.readFields, b.readWhere, b.readGroup, b.readHaving, b.readOrder, b.readOutput} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	sql, err := b.assemble()
	if err != nil {
		return nil, err
	}
	return &query{sql: with + sql, columns: b.out}, nil
}

func refuseSelectExtras(n *ast.SelectStmt) error {
	switch {
	case n.SelectIntoOpt != nil:
		return unsupported("SELECT ... INTO")
	case n.Kind == ast.SelectStmtKindValues:
		return unsupported("VALUES ROW(...)")
	case n.LockInfo != nil && n.LockInfo.LockType != ast.SelectLockNone:
		return unsupported("%s", strings.ToUpper(n.LockInfo.LockType.String()))
	case n.SelectStmtOpts != nil && n.CalcFoundRows:
		return unsupported("SQL_CALC_FOUND_ROWS")
	}
	return nil
}

func (b *block) readFrom() error {
	b.env.clause = "from clause"
	b.env.scope = &scope{}
	if b.n.From == nil {
		return nil
	}
	r, err := b.t.from(b.env, b.n.From)
	if err != nil {
		return err
	}
	b.from, b.env.scope = r.sql, &r.scope
	return nil
}

// selectItem is an item of the select list, with * written out.
type selectItem struct {
	name string
	node ast.ExprNode // nil for a column of *
	col  *column      // of *, or of a node that is nothing but a column
	text string
}

func (f *selectItem) named(name string) bool { return strings.EqualFold(f.name, name) }

func (f *selectItem) same(g *selectItem) bool {
	return f.col != nil && f.col == g.col || f.col == nil && g.col == nil && f.text == g.text
}

func (b *block) readFields() error {
	for _, f := range b.n.Fields.Fields {
		if f.WildCard != nil {
			if err := b.star(f.WildCard); err != nil {
				return err
			}
			continue
		}
		text := trimComments(f.Text())
		item := &selectItem{node: f.Expr, text: text, name: fieldName(f, text)}
		if c, ok := unwrapParens(f.Expr).(*ast.ColumnNameExpr); ok {
			if cols, _ := b.env.scope.find(c.Name.Schema.O, c.Name.Table.O, c.Name.Name.O); len(cols) == 1 {
				item.col = cols[0]
			}
		}
		b.fields = append(b.fields, item)
	}
	return nil
}

func (b *block) star(w *ast.WildCardField) error {
	s := b.env.scope
	if w.Table.O == "" {
		if len(s.sources) == 0 {
			return errorf(1096, "HY000", "No tables used")
		}
		for _, v := range s.visible {
			b.fields = append(b.fields, &selectItem{name: v.name, col: v.col})
		}
		return nil
	}
	for _, src := range s.sources {
		if !src.matches(w.Schema.O, w.Table.O) {
			continue
		}
		for _, c := range src.columns {
			if c.def == nil || !c.def.Invisible {
				b.fields = append(b.fields, &selectItem{name: c.name, col: c})
			}
		}
		return nil
	}
	return errBadTable(w.Table.O)
}

func unwrapParens(n ast.ExprNode) ast.ExprNode {
	for {
		p, ok := n.(*ast.ParenthesesExpr)
		if !ok {
			return n
		}
		n = p.Expr
	}
}

// fieldName is the name MySQL gives to a result column: the alias, a column's name, the value of a string literal, or
// the text as it was written.
func fieldName(f *ast.SelectField, text string) string {
	if f.AsName.O != "" {
		return f.AsName.O
	}
	switch n := unwrapPlus(f.Expr).(type) {
	case *ast.ColumnNameExpr:
		return n.Name.Name.O
	case *driver.ValueExpr:
		return literalName(n, bareText(text))
	}
	return text
}

// unwrapPlus takes off what makes no item of its own in MySQL: parentheses and a plus sign.
func unwrapPlus(n ast.ExprNode) ast.ExprNode {
	for {
		n = unwrapParens(n)
		u, ok := n.(*ast.UnaryOperationExpr)
		if !ok || u.Op != opcode.Plus {
			return n
		}
		n = u.V
	}
}

func bareText(s string) string {
	for {
		switch {
		case strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")"):
			s = strings.TrimSpace(s[1 : len(s)-1])
		case strings.HasPrefix(s, "+"):
			s = strings.TrimSpace(s[1:])
		default:
			return s
		}
	}
}

// trimComments takes comments and space from the end of an expression's text.
func trimComments(s string) string {
	end := 0
	for i := 0; i < len(s); {
		n, comment := lexeme(s[i:])
		i += n
		if !comment {
			end = i
		}
	}
	return s[:end]
}

// lexeme measures what text starts with: a quoted string, a comment or white space, or a single character.
func lexeme(s string) (n int, comment bool) {
	switch {
	case strings.ContainsRune(" \t\n\r", rune(s[0])):
		return 1, true
	case strings.HasPrefix(s, "/*"):
		return endOf(s, "*/"), true
	case s[0] == '#', s == "--", strings.HasPrefix(s, "--") && s[2] <= ' ':
		return endOf(s, "\n"), true
	case s[0] == '\'' || s[0] == '"' || s[0] == '`':
		return quotedLength(s), false
	}
	return 1, false
}

func endOf(s, mark string) int {
	i := strings.Index(s[1:], mark)
	if i < 0 {
		return len(s)
	}
	return 1 + i + len(mark)
}

func quotedLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && s[0] != '`':
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return len(s)
}

func (b *block) readWhere() error {
	if b.n.Where == nil {
		return nil
	}
	e := b.env.with(func(e *env) { e.clause = "where clause" })
	cond, err := b.t.condition(e, b.n.Where)
	if err != nil {
		return err
	}
	b.where = append(b.where, cond)
	return nil
}

// readHaving translates HAVING. Without groups it filters rows, after the aliases of the select list.
func (b *block) readHaving() error {
	if b.n.Having == nil {
		return nil
	}
	e := b.grouped("having clause")
	e.aliasFirst, e.fields, e.windows = true, b.fields, false
	cond, err := b.t.condition(e, b.n.Having.Expr)
	if err != nil {
		return err
	}
	if b.group != nil {
		b.having = cond
		return nil
	}
	for _, f := range b.fields {
		if f.node != nil && hasWindow(f.node) {
			return unsupported("HAVING without GROUP BY beside a window function")
		}
	}
	b.where = append(b.where, cond)
	return nil
}

// grouped gives the environment of expressions that are computed after grouping.
func (b *block) grouped(clause string) *env {
	return b.env.with(func(e *env) {
		e.clause, e.group, e.windows, e.named = clause, b.group, true, b.n.WindowSpecs
		if b.group != nil {
			e.aggs = aggAllowed
		}
	})
}

func (b *block) readOutput() error {
	for i, f := range b.fields {
		e := b.grouped("field list")
		e.position = i + 1
		plain := b.place == queryTop && f.col != nil && b.group == nil && !b.n.Distinct
		e.projection = plain
		x, err := b.t.fieldExpr(e, f)
		if err != nil {
			return err
		}
		if x, err = b.printed(x.finish()); err != nil {
			return err
		}
		if b.group != nil && b.group.rollup && (x.typ.isEnum() || x.typ.isSet()) {
			x.typ.Field, x.typ.Elements = mysql.TypeVarString, nil
		}
		b.out = append(b.out, outColumn{name: f.name, e: x})
	}
	return nil
}

// printed settles the form of a value that leaves the block. Numbers whose digits vary print as they are where MySQL
// computes them while it sends the row; a temporary table gives them the digits of their type, and whether it uses
// one is its own choice.
func (b *block) printed(x expr) (expr, error) {
	if x.phys.k != physNull && x.col == nil {
		x.sql = fmt.Sprintf("CAST(%s AS %s)", x.sql, x.phys) // DuckDB forgets the type of a constant NULL
	}
	if x.ragged == "" {
		return x, nil
	}
	if b.place == queryNested {
		x.ragged = unprintable
		return x, nil
	}
	if x.ragged == unprintable || b.group != nil || b.n.Distinct || len(b.env.scope.sources) > 1 {
		return x, unsupported("IF or CASE over numbers of different scales in the select list; CAST the branches to one type")
	}
	x.sql, x.phys = x.ragged, phys{k: physDecimalText}
	return x, nil
}

// fieldExpr translates a select item for the place e.
func (t *translator) fieldExpr(e *env, f *selectItem) (expr, error) {
	if f.col != nil && f.node == nil {
		return t.columnExpr(e, f.col)
	}
	return t.expr(e.with(func(c *env) { c.fields, c.aliasFirst = nil, false }), f.node)
}

// assemble writes the block's text.
func (b *block) assemble() (string, error) {
	limit, err := b.t.limit(b.n.Limit)
	if err != nil {
		return "", err
	}
	items := b.items()
	if b.n.Distinct {
		return b.distinct(items, limit)
	}
	return "SELECT " + strings.Join(items, ", ") + b.tail() + orderSQL(b.order) + limit, nil
}

// items writes the select list, the hidden columns of exact values at its end.
func (b *block) items() []string {
	var items, hidden []string
	places := map[*source]int{}
	for i := range b.out {
		o := &b.out[i]
		items = append(items, fmt.Sprintf("%s AS c%d", o.e.sql, i+1))
		c := o.e.col
		if c == nil || c.def == nil || !c.src.read.info.exact(c.def.ID) {
			continue
		}
		if places[c.src] == 0 {
			c.src.read.exact = true
			hidden = append(hidden, fmt.Sprintf("%s.exact AS x%d", c.src.alias, len(hidden)+1))
			places[c.src] = len(b.out) + len(hidden)
		}
		o.exact = places[c.src]
	}
	return append(items, hidden...)
}

// tail writes FROM to HAVING.
func (b *block) tail() string {
	var s strings.Builder
	if b.from != "" {
		s.WriteString(" FROM " + b.from)
	}
	if len(b.where) > 0 {
		s.WriteString(" WHERE " + strings.Join(b.where, " AND "))
	}
	if b.group != nil && len(b.group.keys) > 0 {
		s.WriteString(" GROUP BY " + b.group.sql())
	}
	if b.having != "" {
		s.WriteString(" HAVING " + b.having)
	}
	return s.String()
}

// limit writes LIMIT and OFFSET. MySQL takes counts up to 2^64-1; DuckDB's end at 2^63-1, which is no limit either.
func (t *translator) limit(l *ast.Limit) (string, error) {
	if l == nil {
		return "", nil
	}
	out := ""
	for _, part := range []struct {
		word string
		node ast.ExprNode
	}{{" LIMIT ", l.Count}, {" OFFSET ", l.Offset}} {
		if part.node == nil {
			continue
		}
		n, err := t.count(part.node)
		if err != nil {
			return "", err
		}
		out += part.word + strconv.FormatUint(min(n, 1<<62), 10)
	}
	return out, nil
}

// count reads the number of LIMIT or OFFSET, a literal or a parameter.
func (t *translator) count(n ast.ExprNode) (uint64, error) {
	v, ok, err := t.constant(n)
	if err != nil {
		return 0, err
	}
	switch {
	case ok && v.Kind == IntValue && v.Int >= 0:
		return uint64(v.Int), nil
	case ok && v.Kind == UintValue:
		return v.Uint, nil
	case ok && v.Kind == DoubleValue && v.Float >= 0 && v.Float < 1<<63 && v.Float == math.Trunc(v.Float):
		return uint64(v.Float), nil // drivers without integers send these
	case ok && (v.Kind == TextValue || v.Kind == DecimalValue) && isParam(n):
		if u, err := strconv.ParseUint(v.Text, 10, 64); err == nil {
			return u, nil
		}
	}
	return 0, errorf(1210, "HY000", "Incorrect arguments to LIMIT")
}

func isParam(n ast.ExprNode) bool {
	_, ok := unwrapParens(n).(*driver.ParamMarkerExpr)
	return ok
}
