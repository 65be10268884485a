package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// subquery translates a subquery that stands in e.
func (t *translator) subquery(e *env, n ast.ExprNode) (*query, error) {
	s, ok := unwrapParens(n).(*ast.SubqueryExpr)
	if !ok {
		return nil, unsupported("this form of subquery")
	}
	return t.query(s.Query, e.inner(), queryNested)
}

// scalarSubquery translates (SELECT ...) as a value: NULL when it has no row, an error when it has several.
func (t *translator) scalarSubquery(e *env, n *ast.SubqueryExpr) (expr, error) {
	q, err := t.subquery(e, n)
	if err != nil {
		return expr{}, err
	}
	if len(q.columns) != 1 {
		return expr{}, errOperandColumns(1)
	}
	x := q.columns[0].e
	ty := x.typ
	ty.Nullable = true
	return expr{sql: "(" + q.sql + ")", typ: ty, phys: x.phys, ragged: x.ragged}, nil
}

func (t *translator) exists(e *env, n *ast.ExistsSubqueryExpr) (expr, error) {
	q, err := t.subquery(e, n.Sel)
	if err != nil {
		return expr{}, err
	}
	sql := "EXISTS (" + q.sql + ")"
	if n.Not {
		sql = "NOT " + sql
	}
	return truth("("+sql+")", false), nil
}

// inSubquery translates x IN (SELECT ...). Both sides are brought to the form in which they compare.
func (t *translator) inSubquery(e *env, n *ast.PatternInExpr) (expr, error) {
	return t.compareQuery(e, n.Expr, "=", n.Sel, "IN", n.Not)
}

// quantified translates x op ANY (SELECT ...) and x op ALL (SELECT ...).
func (t *translator) quantified(e *env, n *ast.CompareSubqueryExpr) (expr, error) {
	op, ok := compareOps[n.Op]
	if !ok || n.Op == opcode.NullEQ {
		return expr{}, unsupported("this operator with ANY or ALL")
	}
	word := op + " ANY"
	if n.All {
		word = op + " ALL"
	}
	return t.compareQuery(e, n.L, op, n.R, word, false)
}

func (t *translator) compareQuery(e *env, left ast.ExprNode, op string, right ast.ExprNode, word string, not bool) (expr, error) {
	if hasLimit(right) {
		return expr{}, errorf(1235, "42000", "This version of MySQL doesn't yet support 'LIMIT & IN/ALL/ANY/SOME subquery'")
	}
	lefts := []ast.ExprNode{left}
	if r, ok := unwrapParens(left).(*ast.RowExpr); ok {
		lefts = r.Values
	}
	xs, err := t.exprs(e, lefts)
	if err != nil {
		return expr{}, err
	}
	q, err := t.subquery(e, right)
	if err != nil {
		return expr{}, err
	}
	if len(q.columns) != len(xs) {
		return expr{}, errOperandColumns(len(xs))
	}
	if len(xs) > 1 {
		return t.rowInQuery(xs, q, word, not)
	}
	alias := t.alias("q")
	y := q.columns[0].e
	y.sql, y.key, y.utc, y.lit, y.col = alias+".c1", "", "", nil, nil
	l, r, err := t.sides(op, xs[0], y)
	if err != nil {
		return expr{}, err
	}
	sql := fmt.Sprintf("(%s %s (SELECT %s FROM (%s) AS %s))", l, word, r, q.sql, alias)
	if not {
		sql = "(NOT " + sql + ")"
	}
	return truth(sql, true), nil
}

func hasLimit(n ast.ExprNode) bool {
	s, ok := unwrapParens(n).(*ast.SubqueryExpr)
	if !ok {
		return false
	}
	switch q := s.Query.(type) {
	case *ast.SelectStmt:
		return q.Limit != nil
	case *ast.SetOprStmt:
		return q.Limit != nil
	}
	return false
}

// sides gives the texts of two values in the forms that a comparison brings them to.
func (t *translator) sides(op string, x, y expr) (l, r string, err error) {
	if x.typ.Kind == KindNull {
		return "NULL", y.sql, nil
	}
	if x.typ.Kind == KindString && y.typ.Kind == KindString {
		xs, c, err := t.texts(op, x, y)
		if err != nil {
			return "", "", err
		}
		return textSides(c.coll, op, xs[0], xs[1])
	}
	c, err := t.compare(op, x, y)
	if err != nil {
		return "", "", err
	}
	if c.left == "" {
		return "", "", unsupported("this comparison with a subquery")
	}
	return c.left, c.right, nil
}

// rowInQuery translates (a, b) IN (SELECT ...) as EXISTS, which tells false from NULL only where no value can be NULL.
func (t *translator) rowInQuery(xs []expr, q *query, word string, not bool) (expr, error) {
	if word != "IN" {
		return expr{}, unsupported("a row with ANY or ALL")
	}
	alias := t.alias("q")
	parts := make([]string, len(xs))
	nullable := false
	for i := range xs {
		y := q.columns[i].e
		y.sql, y.key, y.utc, y.lit, y.col = fmt.Sprintf("%s.c%d", alias, i+1), "", "", nil, nil
		c, err := t.compare("=", xs[i], y)
		if err != nil {
			return c, err
		}
		parts[i], nullable = c.sql, nullable || c.typ.Nullable
	}
	if nullable {
		return expr{}, unsupported("a row IN a subquery where a column may be NULL")
	}
	sql := fmt.Sprintf("EXISTS (SELECT 1 FROM (%s) AS %s WHERE %s)", q.sql, alias, strings.Join(parts, " AND "))
	if not {
		sql = "NOT " + sql
	}
	return truth("("+sql+")", false), nil
}
