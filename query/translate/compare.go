package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/tidemarkdb/tidemark/query/collate"
)

var compareOps = map[opcode.Op]string{
	opcode.EQ: "=", opcode.NE: "<>", opcode.LT: "<", opcode.LE: "<=", opcode.GT: ">", opcode.GE: ">=", opcode.NullEQ: "<=>",
}

// mirrored gives the operator with its sides exchanged.
var mirrored = map[string]string{"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// isOrder tells operators for which less and greater matter.
func isOrder(op string) bool { return op != "=" && op != "<>" && op != "<=>" }

// truth makes a truth value; it is NULL only when a side is and op is not <=>.
func truth(sql string, nullable bool) expr {
	ty := boolType()
	ty.Nullable = nullable
	return expr{sql: sql, typ: ty, phys: phys{k: physBool}}
}

func comparison(op, l, r string, x, y expr) expr {
	if op == "<=>" {
		return truth("("+l+" IS NOT DISTINCT FROM "+r+")", false)
	}
	c := truth("("+l+" "+op+" "+r+")", x.typ.Nullable || y.typ.Nullable)
	c.left, c.right = l, r
	return c
}

// compare translates a comparison by MySQL's rules: strings by collation, integers and decimals exactly, dates as dates,
// everything else as DOUBLE.
func (t *translator) compare(op string, x, y expr) (expr, error) {
	a, b := x.typ.Kind, y.typ.Kind
	switch {
	case a == KindNull || b == KindNull:
		return compareNull(op, x, y), nil
	case a == KindJSON || b == KindJSON:
		return x, unsupported("comparing JSON values")
	case shortYear(x, y) || shortYear(y, x):
		return x, unsupported("a YEAR compared with a constant that is no number of four digits")
	case x.typ.temporal() || y.typ.temporal():
		return t.compareTemporal(op, x, y)
	case a == KindString && b == KindString:
		return t.compareText(op, x, y)
	case a == KindString || b == KindString:
		return t.compareMixed(op, x, y)
	case a == KindDouble || b == KindDouble:
		return t.compareDoubles(op, x, y)
	}
	return compareExact(op, x, y)
}

func compareNull(op string, x, y expr) expr {
	if op != "<=>" {
		return truth("CAST(NULL AS BOOLEAN)", true)
	}
	if x.typ.Kind == KindNull {
		x = y
	}
	if x.typ.Kind == KindNull {
		return truth("true", false)
	}
	return truth("("+x.sql+" IS NULL)", false)
}

// compareExact compares integers and decimals.
func compareExact(op string, x, y expr) (expr, error) {
	if x.phys.k == physDecimalText || y.phys.k == physDecimalText {
		return x, unsupported("comparing DECIMAL values of more than %d digits", maxDuckDecimal)
	}
	x, y = x.number(), y.number()
	return comparison(op, x.sql, y.sql, x, y), nil
}

// shortYear tells a YEAR compared with a constant that MySQL may take for a year of two digits.
func shortYear(x, y expr) bool {
	if !x.typ.isYear() || x.col == nil || y.lit == nil {
		return false
	}
	if y.lit.Kind == TextValue {
		i, ok := integerText(y.lit.Text)
		return !ok || i < 100
	}
	return y.lit.Kind != IntValue || y.lit.Int < 100
}

// number makes a truth value an integer.
func (x expr) number() expr {
	if x.phys.k == physBool {
		return x.finish()
	}
	return x
}

func (t *translator) compareDoubles(op string, x, y expr) (expr, error) {
	if x.phys.k == physFloat && y.phys.k == physFloat {
		return comparison(op, x.sql, y.sql, x, y), nil
	}
	l, err := t.double(x)
	if err != nil {
		return x, err
	}
	r, err := t.double(y)
	return comparison(op, l, r, x, y), err
}

// compareMixed compares a string with a number: as DOUBLE, but an integer column with a constant that is nothing but
// an integer compares as integers, as MySQL converts such a constant first.
func (t *translator) compareMixed(op string, x, y expr) (expr, error) {
	if x.typ.Kind == KindString {
		x, y, op = y, x, mirrored[op]
	}
	if y.typ.isEnum() || y.typ.isSet() || y.lit != nil && y.lit.Kind == HexValue {
		n, err := t.numeric(y)
		if err != nil {
			return x, err
		}
		return t.compare(op, x, n)
	}
	if x.col != nil && x.typ.Kind == KindInt && y.lit != nil {
		if i, ok := integerText(y.lit.Text); ok {
			return compareExact(op, x, intLiteral(i))
		}
	}
	return t.compareDoubles(op, x, y)
}

func (t *translator) compareText(op string, x, y expr) (expr, error) {
	xs, c, err := t.texts(op, x, y)
	if err != nil {
		return x, err
	}
	if labels, ok := matchingLabels(op, x, y, c.coll); ok {
		return compareLabels(op, x, labels), nil
	}
	if labels, ok := matchingLabels(op, y, x, c.coll); ok {
		return compareLabels(op, y, labels), nil
	}
	return compareBy(c.coll, op, xs[0], xs[1])
}

// matchingLabels gives the labels of an ENUM column that equal a constant; ok is false for other comparisons.
func matchingLabels(op string, x, y expr, c *Collation) (labels []string, ok bool) {
	known := collate.ByID(c.ID)
	if !x.typ.isEnum() || y.lit == nil || y.lit.Kind != TextValue || op != "=" && op != "<>" || known == nil {
		return nil, false
	}
	key := string(known.SortKey(nil, []byte(y.lit.Text)))
	for _, l := range x.typ.Elements {
		if string(known.SortKey(nil, []byte(l))) == key {
			labels = append(labels, l)
		}
	}
	return labels, true
}

func compareLabels(op string, x expr, labels []string) expr {
	sql := "(" + x.sql + " IN (" + quoteAll(labels) + "))"
	if len(labels) == 0 {
		sql = "(CASE WHEN " + x.sql + " IS NOT NULL THEN false END)"
	}
	if op == "<>" {
		sql = "(NOT " + sql + ")"
	}
	return truth(sql, x.typ.Nullable)
}

// compareBy compares two strings by a collation. With a constant the engine's function is faster than keys are.
func compareBy(c *Collation, op string, x, y expr) (expr, error) {
	if !c.Binary && c.known && (op == "=" || op == "<>") && (x.lit != nil || y.lit != nil) && x.phys.k != physBlob && y.phys.k != physBlob {
		equal := truth(fmt.Sprintf("tm_equal(%s, %s, %d)", x.sql, y.sql, c.ID), x.typ.Nullable || y.typ.Nullable)
		if op == "<>" {
			equal.sql = "(NOT " + equal.sql + ")"
		}
		return equal, nil
	}
	return compareKeys(c, op, x, y)
}

// compareKeys compares two strings by what stands for them in a collation.
func compareKeys(c *Collation, op string, x, y expr) (expr, error) {
	l, r, err := textSides(c, op, x, y)
	return comparison(op, l, r, x, y), err
}

func textSides(c *Collation, op string, x, y expr) (l, r string, err error) {
	if c == collationBinary {
		if l, err = x.bytes(); err == nil {
			r, err = y.bytes()
		}
		return l, r, err
	}
	if l, err = x.compareKey(c, isOrder(op)); err == nil {
		r, err = y.compareKey(c, isOrder(op))
	}
	return l, r, err
}

// compareKey gives the text that compares by bytes as x compares by collation c.
func (x expr) compareKey(c *Collation, order bool) (string, error) {
	if x.phys.k == physBlob {
		return "", unsupported("a byte string compared with text by collation %s", c.Name)
	}
	if x.lit != nil && c.Binary && c.PadSpace && !order && c.known {
		return quoteText(strings.TrimRight(x.lit.Text, " ")), nil
	}
	if !order {
		return x.equalKey(c)
	}
	return collationKey(x.sql, c, order)
}

// compareRows translates (a, b) = (c, d) and the like by writing it out.
func (t *translator) compareRows(e *env, n *ast.BinaryOperationExpr) (expr, error) {
	l, lok := unwrapParens(n.L).(*ast.RowExpr)
	r, rok := unwrapParens(n.R).(*ast.RowExpr)
	if !lok || !rok {
		return expr{}, unsupported("a row compared with something else")
	}
	if len(l.Values) != len(r.Values) {
		return expr{}, errOperandColumns(len(l.Values))
	}
	op, ok := compareOps[n.Op]
	if !ok || isOrder(op) {
		return expr{}, unsupported("rows with operator %s", strings.ToUpper(n.Op.String()))
	}
	parts := make([]string, len(l.Values))
	nullable := false
	each := op
	if op == "<>" {
		each = "="
	}
	for i := range l.Values {
		x, err := t.expr(e, l.Values[i])
		if err != nil {
			return x, err
		}
		y, err := t.expr(e, r.Values[i])
		if err != nil {
			return y, err
		}
		c, err := t.compare(each, x, y)
		if err != nil {
			return c, err
		}
		parts[i], nullable = c.sql, nullable || c.typ.Nullable
	}
	sql := "(" + strings.Join(parts, " AND ") + ")"
	if op == "<>" {
		sql = "(NOT " + sql + ")"
	}
	return truth(sql, nullable), nil
}
