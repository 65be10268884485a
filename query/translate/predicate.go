package translate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// condition translates an expression that is wanted as true, false or NULL.
func (t *translator) condition(e *env, n ast.ExprNode) (string, error) {
	x, err := t.expr(e, n)
	if err != nil {
		return "", err
	}
	return t.boolean(x)
}

// boolean gives the text of a value as a BOOLEAN: MySQL takes any number but zero for true.
func (t *translator) boolean(x expr) (string, error) {
	switch {
	case x.phys.k == physBool:
		return x.sql, nil
	case x.typ.Kind == KindNull:
		return "CAST(NULL AS BOOLEAN)", nil
	case x.typ.Kind == KindJSON:
		return "", unsupported("JSON as a condition")
	case x.typ.Kind == KindTime:
		return "(" + x.sql + " <> 0)", nil
	case x.phys.k == physDecimalText:
		return "", unsupported("a DECIMAL of more than %d digits as a condition", maxDuckDecimal)
	}
	n, err := t.numeric(x)
	if err != nil {
		return "", err
	}
	if n.lit != nil && n.lit.Kind == IntValue {
		return strconv.FormatBool(n.lit.Int != 0), nil
	}
	return "(" + n.sql + " <> 0)", nil
}

func (t *translator) not(x expr) (expr, error) {
	b, err := t.boolean(x)
	return truth("(NOT "+b+")", x.typ.Nullable), err
}

func (t *translator) logic(op opcode.Op, x, y expr) (expr, error) {
	l, err := t.boolean(x)
	if err != nil {
		return x, err
	}
	r, err := t.boolean(y)
	if err != nil {
		return y, err
	}
	nullable := x.typ.Nullable || y.typ.Nullable
	switch op {
	case opcode.LogicAnd:
		return truth("("+l+" AND "+r+")", nullable), nil
	case opcode.LogicOr:
		return truth("("+l+" OR "+r+")", nullable), nil
	}
	return truth("("+l+" <> "+r+")", nullable), nil
}

func (t *translator) isNull(e *env, n *ast.IsNullExpr) (expr, error) {
	x, err := t.expr(e, n.Expr)
	if err != nil {
		return x, err
	}
	word := " IS NULL)"
	if n.Not {
		word = " IS NOT NULL)"
	}
	sql := x.sql
	if x.utc != "" {
		sql = x.utc
	}
	return truth("("+sql+word, false), nil
}

func (t *translator) isTruth(e *env, n *ast.IsTruthExpr) (expr, error) {
	b, err := t.condition(e, n.Expr)
	if err != nil {
		return expr{}, err
	}
	words := map[bool]string{true: "TRUE", false: "FALSE"}
	not := ""
	if n.Not {
		not = "NOT "
	}
	return truth(fmt.Sprintf("(%s IS %s%s)", b, not, words[n.True != 0]), false), nil
}

func (t *translator) between(e *env, n *ast.BetweenExpr) (expr, error) {
	xs, err := t.exprs(e, []ast.ExprNode{n.Expr, n.Left, n.Right})
	if err != nil {
		return expr{}, err
	}
	if err := oneClass(xs); err != nil {
		return expr{}, err
	}
	compare, err := t.comparer("between", xs, compareBy)
	if err != nil {
		return expr{}, err
	}
	low, err := compare(">=", xs[0], xs[1])
	if err != nil {
		return low, err
	}
	high, err := compare("<=", xs[0], xs[2])
	if err != nil {
		return high, err
	}
	sql := "(" + low.sql + " AND " + high.sql + ")"
	if n.Not {
		sql = "(NOT " + sql + ")"
	}
	return truth(sql, low.typ.Nullable || high.typ.Nullable), nil
}

// comparer gives the comparison for values of one predicate: strings all compare by the one collation in which they meet.
func (t *translator) comparer(op string, xs []expr, by func(c *Collation, op string, x, y expr) (expr, error)) (func(op string, x, y expr) (expr, error), error) {
	for i := range xs {
		if xs[i].typ.Kind != KindString {
			return t.compare, nil
		}
	}
	_, c, err := t.texts(op, xs...)
	return func(op string, x, y expr) (expr, error) { return by(c.coll, op, x, y) }, err
}

// oneClass refuses BETWEEN over mixed classes, for which MySQL picks one way of comparing for all three values.
func oneClass(xs []expr) error {
	if xs[0].typ.temporal() {
		return nil // constants are read as the first value's type
	}
	strs, nums := false, false
	for i := range xs {
		switch k := xs[i].typ.Kind; {
		case k == KindNull:
		case k == KindString:
			strs = true
		case numericKind(k):
			nums = true
		default:
			return unsupported("BETWEEN over values of different types")
		}
	}
	texts := xs[1].typ.Kind == KindString && xs[2].typ.Kind == KindString && xs[1].lit != nil && xs[2].lit != nil
	if strs && nums && (xs[0].typ.Kind == KindString || !texts) {
		return unsupported("BETWEEN over text and numbers")
	}
	return nil
}

func (t *translator) in(e *env, n *ast.PatternInExpr) (expr, error) {
	if n.Sel != nil {
		return t.inSubquery(e, n)
	}
	if isRow(n.Expr) {
		return t.inRows(e, n)
	}
	x, err := t.expr(e, n.Expr)
	if err != nil {
		return x, err
	}
	list, err := t.exprs(e, n.List)
	if err != nil {
		return x, err
	}
	if err := inClasses(x, list); err != nil {
		return x, err
	}
	by := compareBy
	if len(list) > 3 {
		by = compareKeys
	}
	compare, err := t.comparer(" IN ", append([]expr{x}, list...), by)
	if err != nil {
		return x, err
	}
	var parts, same []string
	var left string
	nullable := x.typ.Nullable
	for _, y := range list {
		c, err := compare("=", x, y)
		if err != nil {
			return c, err
		}
		nullable = nullable || c.typ.Nullable
		if c.left != "" && y.lit != nil && (left == "" || left == c.left) {
			left, same = c.left, append(same, c.right)
			continue
		}
		parts = append(parts, c.sql)
	}
	if len(same) > 0 {
		parts = append(parts, left+" IN ("+strings.Join(same, ", ")+")")
	}
	sql := "(" + strings.Join(parts, " OR ") + ")"
	if n.Not {
		sql = "(NOT " + sql + ")"
	}
	return truth(sql, nullable), nil
}

// inClasses refuses text among numbers: MySQL then compares each pair by rules of its own.
func inClasses(x expr, list []expr) error {
	texts, numbers := 0, 0
	for _, y := range list {
		switch {
		case y.typ.Kind == KindString:
			texts++
		case numericKind(y.typ.Kind):
			numbers++
		}
	}
	if texts > 0 && numbers > 0 || x.typ.Kind == KindString && !x.typ.isEnum() && numbers > 0 {
		return unsupported("IN over text and numbers")
	}
	return nil
}

func (t *translator) inRows(e *env, n *ast.PatternInExpr) (expr, error) {
	parts := make([]string, len(n.List))
	for i, item := range n.List {
		c, err := t.compareRows(e, &ast.BinaryOperationExpr{Op: opcode.EQ, L: n.Expr, R: item})
		if err != nil {
			return c, err
		}
		parts[i] = c.sql
	}
	sql := "(" + strings.Join(parts, " OR ") + ")"
	if n.Not {
		sql = "(NOT " + sql + ")"
	}
	return truth(sql, true), nil
}

// like translates LIKE. Under bytewise collations DuckDB's own LIKE gives the same answer; elsewhere the engine's
// function compares by weights, one character at a time, as MySQL does.
func (t *translator) like(e *env, n *ast.PatternLikeOrIlikeExpr) (expr, error) {
	if !n.IsLike {
		return expr{}, unsupported("ILIKE")
	}
	x, err := t.expr(e, n.Expr)
	if err != nil {
		return x, err
	}
	y, err := t.expr(e, n.Pattern)
	if err != nil {
		return y, err
	}
	if x.typ.Kind == KindNull || y.typ.Kind == KindNull {
		return truth("CAST(NULL AS BOOLEAN)", true), nil
	}
	if x.typ.Kind == KindJSON {
		return x, unsupported("LIKE over JSON values")
	}
	xs, c, err := t.texts("like", x, y)
	if err != nil {
		return x, err
	}
	sql, err := t.likeSQL(xs[0], xs[1], c.coll, n)
	if err != nil {
		return x, err
	}
	if n.Not {
		sql = "(NOT " + sql + ")"
	}
	return truth(sql, x.typ.Nullable || y.typ.Nullable), nil
}

func (t *translator) likeSQL(x, y expr, c *Collation, n *ast.PatternLikeOrIlikeExpr) (string, error) {
	if !c.known {
		return "", unsupported("LIKE by collation %s", c.Name)
	}
	escape := "\\"
	switch {
	case n.EscapeExplicit && n.Escape == 0:
		escape = ""
	case n.EscapeExplicit:
		escape = string(rune(n.Escape))
	case t.session.SQLMode.NoBackslashEscapes:
		escape = ""
	}
	if c == collationBinary {
		a, err := x.bytes()
		if err != nil {
			return "", err
		}
		b, err := y.bytes()
		return fmt.Sprintf("tm_like_bytes(%s, %s, %s, %d)", a, b, quoteText(escape), c.ID), err
	}
	if c.Binary && y.lit != nil && !strings.Contains(y.lit.Text, escape) {
		return fmt.Sprintf("(%s LIKE %s)", x.sql, y.sql), nil
	}
	return fmt.Sprintf("tm_like(%s, %s, %s, %d)", x.sql, y.sql, quoteText(escape), c.ID), nil
}
