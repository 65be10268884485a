package translate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/tidemarkdb/tidemark/query/collate"
	"github.com/tidemarkdb/tidemark/schema"
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
	return collationKey(x.sql, c, order)
}

// compareTemporal compares dates and times. A constant string or number is read as the other side's type.
func (t *translator) compareTemporal(op string, x, y expr) (expr, error) {
	if !x.typ.temporal() {
		x, y, op = y, x, mirrored[op]
	}
	if !y.typ.temporal() {
		c, err := temporalConstant(x, y)
		if err != nil {
			return x, err
		}
		y = c
	}
	a, b := x.typ.Kind, y.typ.Kind
	if (a == KindTime) != (b == KindTime) {
		return x, unsupported("comparing TIME with DATE or DATETIME")
	}
	if x.utc != "" || y.utc != "" {
		return t.compareUTC(op, x, y)
	}
	if a != b {
		return compareDateWithTime(op, x, y), nil
	}
	return comparison(op, x.sql, y.sql, x, y), nil
}

// compareDateWithTime compares DATE with DATETIME: the date is its midnight. A constant at midnight is made a DATE so
// that the column stays as it is.
func compareDateWithTime(op string, x, y expr) expr {
	for _, p := range []*expr{&x, &y} {
		if p.typ.Kind == KindDateTime {
			continue
		}
		p.sql, p.phys = "CAST("+p.sql+" AS TIMESTAMP)", phys{k: physTimestamp}
	}
	if x.lit == nil {
		if d, ok := y.civilConstant(); ok && d.midnight() && strings.HasPrefix(x.sql, "CAST(") {
			x.sql = strings.TrimSuffix(strings.TrimPrefix(x.sql, "CAST("), " AS TIMESTAMP)")
			return comparison(op, x.sql, d.dateSQL(), x, y)
		}
	}
	return comparison(op, x.sql, y.sql, x, y)
}

func (x expr) civilConstant() (civil, bool) {
	if x.lit == nil || x.lit.Kind != DateValue && x.lit.Kind != DateTimeValue {
		return civil{}, false
	}
	return parseDateTime(x.lit.Text)
}

// compareUTC compares TIMESTAMP columns: with each other as they are, with a constant by moving the constant to UTC.
func (t *translator) compareUTC(op string, x, y expr) (expr, error) {
	if x.utc == "" {
		x, y, op = y, x, mirrored[op]
	}
	if y.utc != "" {
		if _, fixed := fixedOffset(t.session.Location); fixed || !isOrder(op) {
			return comparison(op, x.utc, y.utc, x, y), nil
		}
		return comparison(op, x.sql, y.sql, x, y), nil
	}
	if d, ok := y.civilConstant(); ok {
		if utc, ok := toUTC(d.t, t.session.Location); ok {
			return comparison(op, x.utc, "TIMESTAMPTZ '"+utc.Format("2006-01-02 15:04:05.000000")+"+00'", x, y), nil
		}
	}
	if y.typ.Kind == KindDate {
		return compareDateWithTime(op, x, y), nil
	}
	return comparison(op, x.sql, y.sql, x, y), nil
}

// toUTC gives the moment of a wall clock time; ok is false near a change of the zone's offset, where a wall clock time
// may name two moments or none.
func toUTC(wall time.Time, loc *time.Location) (time.Time, bool) {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), loc)
	_, before := at.Add(-3 * time.Hour).Zone()
	_, after := at.Add(3 * time.Hour).Zone()
	return at.UTC(), before == after
}

// temporalConstant reads constant y as the type of x.
func temporalConstant(x, y expr) (expr, error) {
	kind := map[Kind]string{KindDate: "DATE", KindDateTime: "DATETIME", KindTime: "TIME"}[x.typ.Kind]
	if y.lit == nil {
		return y, unsupported("comparing %s with a value of another type that is no constant", kind)
	}
	s := y.lit.Text
	if y.lit.Kind == IntValue {
		s = strconv.FormatInt(y.lit.Int, 10)
	} else if y.lit.Kind != TextValue {
		return y, unsupported("comparing %s with this constant", kind)
	}
	if x.typ.Kind == KindTime {
		return timeConstant(x, y, s)
	}
	d, ok := parseDateTime(s)
	if !ok {
		return y, unsupported("the constant '%s' compared with %s", s, kind)
	}
	v := Value{Kind: DateTimeValue, Text: s}
	if d.isDate {
		v.Kind = DateValue
	}
	return temporalLiteral(v)
}

// timeConstant reads a constant to compare with a TIME. MySQL rounds one with more decimals than the column has.
func timeConstant(x, y expr, s string) (expr, error) {
	if y.lit.Kind == IntValue && y.lit.Int >= 0 && y.lit.Int%100 < 60 && y.lit.Int/100%100 < 60 {
		s = fmt.Sprintf("%d:%02d:%02d", y.lit.Int/10000, y.lit.Int/100%100, y.lit.Int%100)
	}
	c, err := temporalLiteral(Value{Kind: TimeValue, Text: s})
	if err != nil || c.typ.Scale > x.typ.Scale {
		return y, unsupported("the constant '%s' compared with TIME", s)
	}
	return c, nil
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
	if strs && nums && (xs[0].typ.Kind == KindString || xs[1].lit == nil || xs[2].lit == nil) {
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

// isTimestamp tells a column of type TIMESTAMP.
func (c *column) isTimestamp() bool { return c.def != nil && c.def.Type == schema.Timestamp }
