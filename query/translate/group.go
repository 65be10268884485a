package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// grouping is what a grouped query block groups by.
//
// Text of a collation that is not bytewise is grouped by its sort key; the value shown is that of the group's first
// row, as MySQL shows one of the equal values.
type grouping struct {
	keys []groupKey
	// implicit: aggregates without GROUP BY.
	implicit bool
	full     bool // ONLY_FULL_GROUP_BY
	// rollup: WITH ROLLUP; the rows above the groups have NULL for the keys they do not keep.
	rollup bool
	// determined are the columns that the keys determine.
	determined map[*column]bool
	fields     []*selectItem
}

type groupKey struct {
	e expr
	// sql is what DuckDB groups by; plain tells that it is the value itself.
	sql   string
	plain bool
}

func (g *grouping) sql() string {
	parts := make([]string, len(g.keys))
	for i, k := range g.keys {
		parts[i] = k.sql
	}
	if g.rollup {
		return "ROLLUP (" + strings.Join(parts, ", ") + ")"
	}
	return strings.Join(parts, ", ")
}

// rolled gives the value of a key under ROLLUP.
func (g *grouping) rolled(k *groupKey) expr {
	x := k.value()
	if !g.rollup {
		return x
	}
	x.typ.Nullable, x.lit, x.col = true, nil, nil
	if !k.plain {
		x.sql = fmt.Sprintf("CASE WHEN grouping(%s) = 0 THEN %s END", k.sql, x.sql)
	}
	return x
}

// rollupOrder is the order in which MySQL gives the rows of ROLLUP: each one above its groups behind them.
func (g *grouping) rollupOrder() ([]orderItem, error) {
	var items []orderItem
	for i := range g.keys {
		x := g.rolled(&g.keys[i])
		key, err := x.sortSQL()
		if err != nil {
			return nil, err
		}
		items = append(items, orderItem{sql: "grouping(" + g.keys[i].sql + ")"}, orderItem{sql: key})
	}
	return items, nil
}

// value gives the key's value within its group.
func (k *groupKey) value() expr {
	x := k.e
	x.ragged = ""
	if !k.plain {
		x.sql = "first(" + x.sql + ")"
		x.key = k.sql
		x.utc = ""
	}
	return x
}

// match finds the key that an expression of the block is, by its text before grouping.
func (g *grouping) match(raw expr) (expr, bool) {
	for i := range g.keys {
		if g.keys[i].e.sql == raw.sql {
			return g.rolled(&g.keys[i]), true
		}
	}
	return expr{}, false
}

// hasExpressions tells whether a key is more than a column.
func (g *grouping) hasExpressions() bool {
	for i := range g.keys {
		if g.keys[i].e.col == nil {
			return true
		}
	}
	return false
}

// column gives the value of a column outside of aggregates: of a key, or of any row of the group where the keys
// determine it or the sql_mode leaves the choice to the server.
func (g *grouping) column(e *env, x expr) (expr, error) {
	if v, ok := g.match(x); ok {
		return v, nil
	}
	if e.clause == "having clause" && !g.selected(x.col) {
		return expr{}, errBadField(x.col.name, e.clause)
	}
	if g.rollup {
		return expr{}, unsupported("a column that is no key of GROUP BY beside WITH ROLLUP")
	}
	if g.full && !g.determined[x.col] && !(g.implicit && e.clause == "order clause") {
		return expr{}, g.notGrouped(e, x.col)
	}
	x.sql, x.utc = "first("+x.sql+")", ""
	return x, nil
}

func (g *grouping) selected(c *column) bool {
	for _, f := range g.fields {
		if f.col == c {
			return true
		}
	}
	return false
}

func (g *grouping) notGrouped(e *env, c *column) error {
	clause := map[string]string{"field list": "SELECT list", "order clause": "ORDER BY", "having clause": "HAVING clause"}[e.clause]
	name := c.src.name + "." + c.name
	if c.src.db != "" {
		name = c.src.db + "." + name
	}
	if g.implicit {
		return errMixOfGroupFields(e.position, clause, name)
	}
	return errWrongFieldWithGroup(e.position, clause, name)
}

func (b *block) readGroup() error {
	if b.n.GroupBy == nil && !b.aggregated() {
		return nil
	}
	g := &grouping{full: b.t.session.SQLMode.OnlyFullGroupBy, implicit: b.n.GroupBy == nil, fields: b.fields}
	if b.n.GroupBy != nil {
		g.rollup = b.n.GroupBy.Rollup
		for _, item := range b.n.GroupBy.Items {
			x, err := b.groupItem(item.Expr)
			if err != nil {
				return err
			}
			if err := g.add(x); err != nil {
				return err
			}
		}
		if g.rollup && len(g.keys) < len(b.n.GroupBy.Items) {
			return unsupported("a constant key WITH ROLLUP")
		}
		g.constantKeys()
	}
	g.determined = b.determined(g)
	b.group = g
	return nil
}

func (g *grouping) add(x expr) error {
	if x.lit != nil {
		return nil
	}
	key, plain, err := x.finish().groupSQL()
	if err != nil {
		return err
	}
	if isNumber(key) { // a position to DuckDB
		key = "CAST(" + key + " AS BIGINT)"
	}
	g.keys = append(g.keys, groupKey{e: x, sql: key, plain: plain && key == x.sql})
	return nil
}

func isNumber(sql string) bool { return allDigits(strings.Trim(sql, "(-)")) }

// constantKeys keeps a GROUP BY of nothing but constants a GROUP BY: no rows, no group.
func (g *grouping) constantKeys() {
	if len(g.keys) == 0 {
		g.keys = append(g.keys, groupKey{e: expr{sql: "\x00"}, sql: "CAST('' AS VARCHAR)", plain: true})
	}
}

// groupItem translates an item of GROUP BY: a position, a column, an alias, an expression.
func (b *block) groupItem(n ast.ExprNode) (expr, error) {
	e := b.env.with(func(e *env) { e.clause, e.fields = "group statement", b.fields })
	f, err := b.positional(n, "group statement")
	if err != nil {
		return expr{}, err
	}
	if f == nil {
		if v, ok, _ := b.t.constant(n); ok && v.Kind == UintValue {
			return expr{}, errBadField(fmt.Sprint(v.Uint), "group statement")
		}
		return b.t.expr(e, n)
	}
	if f.node != nil && (hasAggregate(f.node) || hasWindow(f.node)) {
		return expr{}, errWrongGroupField(f.name)
	}
	return b.t.fieldExpr(e, f)
}

// positional gives the select item that a number names; nil when n is no number.
func (b *block) positional(n ast.ExprNode, clause string) (*selectItem, error) {
	p, ok := n.(*ast.PositionExpr)
	if !ok {
		return nil, nil
	}
	i := p.N
	if p.P != nil {
		v, ok, err := b.t.constant(p.P)
		if err != nil || !ok || v.Kind != IntValue {
			return nil, unsupported("a parameter in GROUP BY or ORDER BY")
		}
		return nil, nil
	}
	if i < 1 || i > len(b.fields) {
		return nil, errBadField(fmt.Sprint(i), clause)
	}
	return b.fields[i-1], nil
}

func (b *block) aggregated() bool {
	for _, f := range b.fields {
		if f.node != nil && hasAggregate(f.node) {
			return true
		}
	}
	if b.n.Having != nil && hasAggregate(b.n.Having.Expr) {
		return true
	}
	if b.n.OrderBy != nil {
		for _, item := range b.n.OrderBy.Items {
			if hasAggregate(item.Expr) {
				return true
			}
		}
	}
	return false
}

// finder looks for a kind of node outside of subqueries.
type finder struct {
	hit   func(ast.Node) bool
	found bool
}

func (f *finder) Enter(n ast.Node) (ast.Node, bool) {
	if f.hit(n) {
		f.found = true
	}
	_, sub := n.(*ast.SubqueryExpr)
	return n, f.found || sub
}

func (f *finder) Leave(n ast.Node) (ast.Node, bool) { return n, true }

func contains(n ast.Node, hit func(ast.Node) bool) bool {
	f := &finder{hit: hit}
	n.Accept(f)
	return f.found
}

func hasAggregate(n ast.Node) bool {
	return contains(n, func(n ast.Node) bool { _, ok := n.(*ast.AggregateFuncExpr); return ok })
}

func hasWindow(n ast.Node) bool {
	return contains(n, func(n ast.Node) bool { _, ok := n.(*ast.WindowFuncExpr); return ok })
}

// determined closes the set of key columns under the functional dependencies that MySQL's ONLY_FULL_GROUP_BY knows:
// a unique key of NOT NULL columns determines its table's row, and so do equalities of WHERE and ON.
func (b *block) determined(g *grouping) map[*column]bool {
	set := map[*column]bool{}
	for _, k := range g.keys {
		if k.e.col != nil {
			set[k.e.col] = true
		}
	}
	var eqs []equality
	if b.n.Where != nil {
		eqs = b.equalities(eqs, b.n.Where, true)
	}
	if b.n.From != nil {
		eqs = b.joinEqualities(eqs, b.n.From.TableRefs)
	}
	for before := -1; before != len(set); {
		before = len(set)
		for _, q := range eqs {
			q.close(set)
		}
		for _, s := range b.env.scope.sources {
			s.close(set)
		}
	}
	return set
}

// equality is a = b, or a = constant where b is nil. Without both it only determines b by a.
type equality struct {
	a, b *column
	both bool
}

func (q equality) close(set map[*column]bool) {
	switch {
	case q.b == nil:
		set[q.a] = true
	case set[q.a]:
		set[q.b] = true
	case q.both && set[q.b]:
		set[q.a] = true
	}
}

func (s *source) close(set map[*column]bool) {
	for _, key := range s.uniqueKeys() {
		if !s.has(set, key) {
			continue
		}
		for _, c := range s.columns {
			set[c] = true
		}
	}
}

func (s *source) has(set map[*column]bool, key []uint32) bool {
	n := 0
	for _, c := range s.columns {
		for _, id := range key {
			if c.def.ID == id && set[c] {
				n++
			}
		}
	}
	return n == len(key)
}

func (b *block) equalities(out []equality, n ast.ExprNode, both bool) []equality {
	op, ok := unwrapParens(n).(*ast.BinaryOperationExpr)
	switch {
	case !ok:
		return out
	case op.Op == opcode.LogicAnd:
		return b.equalities(b.equalities(out, op.L, both), op.R, both)
	case op.Op != opcode.EQ:
		return out
	}
	l, r := b.plainColumn(op.L), b.plainColumn(op.R)
	switch {
	case l != nil && r != nil:
		return append(out, equality{l, r, both})
	case l != nil && isConstantNode(op.R) && both:
		return append(out, equality{a: l})
	case r != nil && isConstantNode(op.L) && both:
		return append(out, equality{a: r})
	}
	return out
}

func (b *block) joinEqualities(out []equality, n ast.ResultSetNode) []equality {
	j, ok := n.(*ast.Join)
	if !ok {
		return out
	}
	out = b.joinEqualities(out, j.Left)
	if j.Right != nil {
		out = b.joinEqualities(out, j.Right)
	}
	if j.On != nil && j.Tp == ast.CrossJoin {
		out = b.equalities(out, j.On.Expr, true)
	}
	return out
}

func (b *block) plainColumn(n ast.ExprNode) *column {
	c, ok := unwrapParens(n).(*ast.ColumnNameExpr)
	if !ok {
		return nil
	}
	cols, _ := b.env.scope.find(c.Name.Schema.O, c.Name.Table.O, c.Name.Name.O)
	if len(cols) != 1 {
		return nil
	}
	return cols[0]
}

func isConstantNode(n ast.ExprNode) bool {
	_, ok := unwrapParens(n).(ast.ValueExpr)
	return ok
}
