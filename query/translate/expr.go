package translate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// expr is a translated expression: its DuckDB text, whose operators are always within parentheses, and its types.
type expr struct {
	sql  string
	typ  Type
	phys phys
	// lit is the value of a constant that is known now.
	lit *Value
	// col is set for an expression that is nothing but a column.
	col *column
	// utc is the text of a TIMESTAMP column itself, a TIMESTAMPTZ, where sql has the session's wall clock.
	utc string
	// key is the sort key of a group's text where it is grouped by it.
	key string
	// overflows tells a DOUBLE that may be infinite, where MySQL has an error.
	overflows bool
	// ragged is the text of a number that MySQL prints with the digits of the branch it comes from, not with those of its
	// type: the outcome of IF and CASE. Empty: the number prints as its type says.
	ragged string
	// mixed tells a text that is a choice between values of different types; as a number MySQL takes the value chosen,
	// not its text.
	mixed bool
	// left and right are the sides of a plain comparison, in the forms that are compared.
	left, right string
	// ascii tells a text that certainly has only ASCII characters.
	ascii bool
}

// expr translates an expression at a place. In a grouped block an expression that is a key of GROUP BY is that key.
func (t *translator) expr(e *env, node ast.ExprNode) (expr, error) {
	if e.group != nil && e.aggs != aggInside && e.group.hasExpressions() && mayBeKey(node) {
		raw, err := t.expr(e.with(func(c *env) { c.group, c.aggs, c.windows = nil, aggForbidden, false }), node)
		if err == nil {
			if x, ok := e.group.match(raw); ok {
				return x, nil
			}
		}
	}
	x, err := t.node(e.without(node), node)
	return x, placed(err, node)
}

// placed tells a refusal where in the text its expression stands.
func placed(err error, node ast.ExprNode) error {
	var u *Unsupported
	if errors.As(err, &u) && u.Position < 0 && node.OriginTextPosition() > 0 {
		u.Position = node.OriginTextPosition()
	}
	return err
}

// without ends a projection: a part of an expression is no plain column.
func (e *env) without(node ast.ExprNode) *env {
	switch node.(type) {
	case *ast.ColumnNameExpr, *ast.ParenthesesExpr:
		return e
	}
	if !e.projection {
		return e
	}
	return e.with(func(c *env) { c.projection = false })
}

func mayBeKey(node ast.ExprNode) bool {
	switch node.(type) {
	case *ast.ColumnNameExpr, ast.ValueExpr, *ast.AggregateFuncExpr, *ast.WindowFuncExpr, *ast.ParenthesesExpr:
		return false
	}
	return !hasAggregate(node) && !hasWindow(node)
}

func (t *translator) node(e *env, node ast.ExprNode) (expr, error) {
	switch n := node.(type) {
	case *driver.ValueExpr:
		return t.value(n)
	case *driver.ParamMarkerExpr:
		return t.param(n)
	case *ast.ColumnNameExpr:
		return t.column(e, n.Name)
	case *ast.ParenthesesExpr:
		return t.expr(e, n.Expr)
	case *ast.BinaryOperationExpr:
		return t.binary(e, n)
	case *ast.UnaryOperationExpr:
		return t.unary(e, n)
	case *ast.BetweenExpr:
		return t.between(e, n)
	case *ast.PatternInExpr:
		return t.in(e, n)
	case *ast.PatternLikeOrIlikeExpr:
		return t.like(e, n)
	case *ast.IsNullExpr:
		return t.isNull(e, n)
	case *ast.IsTruthExpr:
		return t.isTruth(e, n)
	case *ast.CaseExpr:
		return t.caseWhen(e, n)
	default:
		return t.otherNode(e, node)
	}
}

func (t *translator) otherNode(e *env, node ast.ExprNode) (expr, error) {
	switch n := node.(type) {
	case *ast.FuncCallExpr:
		return t.call(e, n)
	case *ast.FuncCastExpr:
		return t.castExpr(e, n)
	case *ast.AggregateFuncExpr:
		return t.aggregate(e, n)
	case *ast.WindowFuncExpr:
		return t.window(e, n)
	case *ast.SubqueryExpr:
		return t.scalarSubquery(e, n)
	case *ast.ExistsSubqueryExpr:
		return t.exists(e, n)
	case *ast.CompareSubqueryExpr:
		return t.quantified(e, n)
	case *ast.SetCollationExpr:
		return t.collate(e, n)
	case *ast.VariableExpr:
		return t.variable(n)
	case *ast.RowExpr:
		return expr{}, errOperandColumns(1)
	case *ast.DefaultExpr:
		return expr{}, unsupported("DEFAULT(...)")
	case *ast.PatternRegexpExpr:
		return expr{}, unsupported("REGEXP")
	case *ast.MatchAgainst:
		return expr{}, unsupported("MATCH ... AGAINST")
	default:
		return expr{}, unsupported("this expression (%T)", node)
	}
}

func (t *translator) exprs(e *env, nodes []ast.ExprNode) ([]expr, error) {
	out := make([]expr, len(nodes))
	for i, n := range nodes {
		x, err := t.expr(e, n)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// value translates a literal.
func (t *translator) value(n *driver.ValueExpr) (expr, error) {
	v, err := literalValue(n)
	if err != nil {
		return expr{}, err
	}
	x, err := t.literalExpr(v)
	if err != nil {
		return expr{}, err
	}
	if v.Kind == HexValue {
		x.typ.Unsigned = n.Type.GetFlag()&mysql.UnsignedFlag != 0
	}
	if v.Kind == IntValue && n.Type.GetFlag()&mysql.IsBooleanFlag != 0 {
		x.typ.Length = 1
	}
	if cs := n.Type.GetCharset(); v.Kind == TextValue && cs != "" && cs != mysql.DefaultCharset {
		return t.introduced(x, cs)
	}
	return x, nil
}

// introduced gives a literal with a character set introducer such as _latin1'x'.
func (t *translator) introduced(x expr, charset string) (expr, error) {
	switch {
	case charset == "binary":
		return bytesLiteral(Value{Kind: BytesValue, Text: x.lit.Text}), nil
	case !x.ascii:
		return expr{}, unsupported("the introducer _%s before text beyond ASCII", charset)
	}
	def, ok := defaultCollations[charset]
	if !ok {
		return expr{}, unsupported("the introducer _%s", charset)
	}
	x.typ.Collation = collationByName(def)
	return x, nil
}

var defaultCollations = map[string]string{
	"utf8mb4": "utf8mb4_0900_ai_ci", "utf8mb3": "utf8mb3_general_ci", "utf8": "utf8mb3_general_ci",
	"latin1": "latin1_swedish_ci", "ascii": "ascii_general_ci", "binary": "binary",
}

// literalValue reads the parser's literal.
func literalValue(n *driver.ValueExpr) (Value, error) {
	switch n.Kind() {
	case driver.KindNull:
		return Value{Kind: NullValue}, nil
	case driver.KindInt64:
		return Value{Kind: IntValue, Int: n.GetInt64()}, nil
	case driver.KindUint64:
		return Value{Kind: UintValue, Uint: n.GetUint64()}, nil
	case driver.KindFloat32, driver.KindFloat64:
		return Value{Kind: DoubleValue, Float: n.GetFloat64()}, nil
	case driver.KindMysqlDecimal:
		return Value{Kind: DecimalValue, Text: n.GetMysqlDecimal().String()}, nil
	case driver.KindString:
		switch charset := n.Type.GetCharset(); charset { // of an introducer such as _binary, as drivers write bytes
		case "binary":
			return Value{Kind: BytesValue, Text: n.GetString()}, nil
		case "", "utf8mb4", "utf8mb3", "utf8":
			return textValue(n.GetString())
		default:
			return Value{}, unsupported("the introducer _%s", charset)
		}
	case driver.KindBytes, driver.KindBinaryLiteral:
		return Value{Kind: HexValue, Text: string(n.GetBytes())}, nil
	default:
		return Value{}, unsupported("this literal")
	}
}

func textValue(s string) (Value, error) {
	if !validText(s) {
		return Value{}, unsupported("a text literal with bytes that are no UTF-8")
	}
	return Value{Kind: TextValue, Text: s}, nil
}

// literalName is the name of a result column that is nothing but a literal: a string names itself.
func literalName(n *driver.ValueExpr, text string) string {
	switch n.Kind() {
	case driver.KindNull:
		return "NULL"
	case driver.KindString:
		return strings.TrimLeft(firstString(text, n.GetString()), " ")
	}
	return text
}

// firstString gives the name of 'a' 'b', which is its first part.
func firstString(text, value string) string {
	if len(text) < 2 || (text[0] != '\'' && text[0] != '"') {
		return value
	}
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] != quote:
		case i+1 < len(text) && text[i+1] == quote:
			i++
		case i == len(text)-1:
			return value
		default:
			return text[1:i]
		}
	}
	return value
}

func (t *translator) param(n *driver.ParamMarkerExpr) (expr, error) {
	if i, ok := t.markers[n]; ok && i < len(t.params) {
		return t.literalExpr(t.params[i])
	}
	if t.params != nil {
		return expr{}, errorf(1210, "HY000", "Incorrect arguments to EXECUTE")
	}
	return nullExpr(), nil // a statement that is only prepared
}

// constant gives the value of a literal or parameter; ok is false for other nodes.
func (t *translator) constant(n ast.ExprNode) (v Value, ok bool, err error) {
	switch n := unwrapParens(n).(type) {
	case *driver.ParamMarkerExpr:
		x, err := t.param(n)
		if err != nil || x.lit == nil {
			return Value{}, false, err
		}
		if x.lit.Kind == NullValue && t.params == nil {
			return Value{Kind: IntValue}, true, nil
		}
		return *x.lit, true, nil
	case *driver.ValueExpr:
		v, err := literalValue(n)
		return v, err == nil, err
	}
	return Value{}, false, nil
}

// variable translates @@name and @name, which are constants of the statement.
func (t *translator) variable(n *ast.VariableExpr) (expr, error) {
	if n.Value != nil {
		return expr{}, unsupported("assignment of a user variable within a statement")
	}
	if !n.IsSystem {
		if t.session.UserVariable == nil {
			return nullExpr(), nil
		}
		return t.literalExpr(t.session.UserVariable(n.Name))
	}
	scope := ""
	switch {
	case n.IsGlobal:
		scope = "global"
	case n.ExplicitScope:
		scope = "session"
	}
	if t.session.SystemVariable == nil {
		return expr{}, errorf(1193, "HY000", "Unknown system variable '%s'", n.Name)
	}
	v, err := t.session.SystemVariable(scope, n.Name)
	if err != nil {
		return expr{}, err
	}
	x, err := t.literalExpr(v)
	if v.Kind == UintValue { // whatever its value, the type is unsigned
		x.typ.Unsigned, x.typ.Length = true, unsignedVariableLength
	}
	return x, err
}

// unsignedVariableLength is the display width that MySQL gives to system variables of unsigned types.
const unsignedVariableLength = 21

// collate translates x COLLATE name.
func (t *translator) collate(e *env, n *ast.SetCollationExpr) (expr, error) {
	x, err := t.expr(e, n.Expr)
	if err != nil {
		return x, err
	}
	c := collationByName(n.Collate)
	if c.ID == 0 {
		return x, unsupported("collation %s", n.Collate)
	}
	if x.typ.isBytes() && c.Charset != "binary" || x.typ.Kind == KindString && !sameCharset(x, c) {
		return x, errCollationCharset(c.Name, x.typ.Collation.Charset)
	}
	x = t.text(x)
	x.typ.Collation, x.typ.Coercibility, x.col, x.key = t.effective(c), Explicit, nil, ""
	x.typ.Field, x.typ.Elements = mysql.TypeVarString, nil
	return x, nil
}

// sameCharset tells whether collation c can be put on x: the charset is the same, or x is a literal that takes it.
func sameCharset(x expr, c *Collation) bool { return x.typ.Collation.Charset == c.Charset }

// effective gives the collation by which text is compared in this session.
func (t *translator) effective(c *Collation) *Collation {
	if t.session.BinaryCollation && c != collationBinary {
		return bytewise(c)
	}
	return c
}

// finish makes the value that leaves a query block: an integer for a truth value, a DECIMAL of its own scale.
func (x expr) finish() expr {
	switch {
	case x.phys.k == physBool:
		x.sql, x.phys = "CAST("+x.sql+" AS INTEGER)", phys{k: physInt32}
	case x.phys.k == physNull:
		x.sql, x.phys = "CAST(NULL AS VARCHAR)", phys{k: physText}
	case x.phys.k == physDecimal && x.phys.s > x.typ.Scale:
		x = x.rescaled()
	}
	return x
}

// rescaled rounds a DECIMAL that has more digits than MySQL shows, half away from zero.
func (x expr) rescaled() expr {
	p := phys{k: physDecimal, p: min(x.phys.p-(x.phys.s-x.typ.Scale)+1, maxDuckDecimal), s: x.typ.Scale}
	x.sql, x.phys, x.key = fmt.Sprintf("CAST(%s AS %s)", x.sql, p), p, ""
	return x
}

func (t *translator) unary(e *env, n *ast.UnaryOperationExpr) (expr, error) {
	x, err := t.expr(e, n.V)
	if err != nil {
		return x, err
	}
	switch n.Op {
	case opcode.Plus:
		return x, nil
	case opcode.Minus:
		return t.negate(x)
	case opcode.Not, opcode.Not2:
		return t.not(x)
	case opcode.BitNeg:
		b, err := t.bits(x)
		return bitResult("~"+b, x.typ.Nullable), err
	}
	return x, unsupported("operator %s", n.Op)
}

func (t *translator) binary(e *env, n *ast.BinaryOperationExpr) (expr, error) {
	if isRow(n.L) || isRow(n.R) {
		return t.compareRows(e, n)
	}
	x, err := t.expr(e, n.L)
	if err != nil {
		return x, err
	}
	y, err := t.expr(e, n.R)
	if err != nil {
		return y, err
	}
	switch n.Op {
	case opcode.LogicAnd, opcode.LogicOr, opcode.LogicXor:
		return t.logic(n.Op, x, y)
	case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NullEQ:
		return t.compare(compareOps[n.Op], x, y)
	case opcode.Plus, opcode.Minus, opcode.Mul, opcode.Div, opcode.IntDiv, opcode.Mod:
		return t.arithmetic(n.Op, x, y)
	case opcode.And, opcode.Or, opcode.Xor, opcode.LeftShift, opcode.RightShift:
		return t.bitwise(n.Op, x, y)
	}
	return x, unsupported("operator %s", strings.ToUpper(n.Op.String()))
}

func isRow(n ast.ExprNode) bool { _, ok := unwrapParens(n).(*ast.RowExpr); return ok }
