package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
)

// sumDigits is the number of digits that SUM adds to its argument's.
const sumDigits = 22

// aggregate translates an aggregate function.
func (t *translator) aggregate(e *env, n *ast.AggregateFuncExpr) (expr, error) {
	if e.aggs != aggAllowed {
		return expr{}, errInvalidGroupFunc()
	}
	in := e.with(func(c *env) { c.aggs, c.windows = aggInside, false })
	args, err := t.exprs(in, n.Args)
	if err != nil {
		return expr{}, err
	}
	if onlyOuter(e, n) {
		return expr{}, unsupported("an aggregate of an outer query's columns in a subquery")
	}
	return t.aggregateCall(in, n, args)
}

// onlyOuter tells an aggregate whose columns all belong to a block around, which MySQL computes there.
func onlyOuter(e *env, n *ast.AggregateFuncExpr) bool {
	columns, own := 0, 0
	for _, a := range n.Args {
		contains(a, func(n ast.Node) bool {
			if c, ok := n.(*ast.ColumnNameExpr); ok {
				columns++
				if e.scope != nil {
					found, _ := e.scope.find(c.Name.Schema.O, c.Name.Table.O, c.Name.Name.O)
					own += len(found)
				}
			}
			return false
		})
	}
	return columns > 0 && own == 0
}

func (t *translator) aggregateCall(in *env, n *ast.AggregateFuncExpr, args []expr) (expr, error) {
	name := strings.ToLower(n.F)
	switch name {
	case "count":
		return t.countAggregate(n, args)
	case "min", "max":
		return t.extreme(name, args[0])
	case "sum":
		return t.sum(n.Distinct, args[0])
	case "avg":
		return t.avg(n.Distinct, args[0])
	case "group_concat":
		return t.groupConcat(in, n, args)
	case "bit_and", "bit_or", "bit_xor":
		return t.bitAggregate(name, args[0])
	case "std", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance":
		return t.variance(name, args[0])
	case "any_value":
		return args[0], nil
	}
	return expr{}, unsupported("function %s", strings.ToUpper(name))
}

func (t *translator) countAggregate(n *ast.AggregateFuncExpr, args []expr) (expr, error) {
	out := expr{typ: bigintType(), phys: phys{k: physInt64}}
	if !n.Distinct {
		out.sql = "count(" + args[0].sql + ")"
		if args[0].lit != nil && args[0].lit.Kind != NullValue {
			out.sql = "count(*)"
		}
		return out, nil
	}
	keys := make([]string, len(args))
	for i, x := range args {
		k, _, err := x.finish().groupSQL()
		if err != nil {
			return out, err
		}
		keys[i] = k
	}
	if len(keys) == 1 {
		out.sql = "count(DISTINCT " + keys[0] + ")"
		return out, nil
	}
	notNull := strings.Join(keys, " IS NOT NULL AND ") + " IS NOT NULL"
	out.sql = fmt.Sprintf("count(DISTINCT CASE WHEN %s THEN (%s) END)", notNull, strings.Join(keys, ", "))
	return out, nil
}

// extreme translates MIN and MAX; text is compared by collation, ENUM and SET as text.
func (t *translator) extreme(name string, x expr) (expr, error) {
	x = x.finish()
	out := expr{typ: x.typ, phys: x.phys, ascii: x.ascii}
	out.typ.Nullable, out.typ.Zerofill = true, 0
	switch {
	case x.typ.Kind == KindJSON:
		return x, unsupported("%s over JSON values", strings.ToUpper(name))
	case x.phys.k == physDecimalText:
		return x, unsupported("%s over DECIMAL values of more than %d digits", strings.ToUpper(name), maxDuckDecimal)
	case x.typ.isText():
		key, err := collationKey(x.sql, x.typ.Collation, true)
		if err != nil {
			return x, err
		}
		if out.typ.isEnum() || out.typ.isSet() {
			out.typ.Field, out.typ.Elements = mysql.TypeString, nil
		}
		if key != x.sql {
			out.sql = fmt.Sprintf("arg_%s(%s, %s)", name, x.sql, key)
			return out, nil
		}
	}
	out.sql = name + "(" + x.sql + ")"
	return out, nil
}

func distinctWord(distinct bool) string {
	if distinct {
		return "DISTINCT "
	}
	return ""
}

// sum: integers and decimals add up exactly, in 38 digits or an error; everything else as DOUBLE.
func (t *translator) sum(distinct bool, x expr) (expr, error) {
	x, err := t.numeric(x)
	if err != nil {
		return x, err
	}
	x = x.number()
	if x.phys.k == physDecimalText {
		return x, unsupported("SUM over DECIMAL values of more than %d digits", maxDuckDecimal)
	}
	word := distinctWord(distinct)
	if x.typ.Kind == KindDouble {
		d, err := t.double(x)
		ty := doubleType()
		ty.Nullable = true
		return expr{sql: fmt.Sprintf("sum(%s%s)", word, d), typ: ty, phys: phys{k: physDouble}, overflows: true}, err
	}
	ty := decimalType(x.typ.integerDigits()+x.typ.Scale+sumDigits, x.typ.Scale)
	ty.Nullable = true
	out := expr{typ: ty, phys: phys{k: physDecimal, p: maxDuckDecimal, s: x.phys.scale()}}
	out.sql = fmt.Sprintf("sum(%s%s)", word, x.sql)
	if x.phys.k != physDecimal {
		out.sql = "CAST(" + out.sql + " AS DECIMAL(38,0))"
	}
	return out, nil
}

// avg: SUM / COUNT with four digits more than the argument's; inside the query block MySQL keeps whole words of digits.
func (t *translator) avg(distinct bool, x expr) (expr, error) {
	x, err := t.numeric(x)
	if err != nil {
		return x, err
	}
	x = x.number()
	word := distinctWord(distinct)
	if x.typ.Kind == KindDouble {
		d, err := t.double(x)
		ty := doubleType()
		ty.Nullable = true
		return expr{sql: fmt.Sprintf("(sum(%[1]s%[2]s) / nullif(count(%[1]s%[2]s), 0))", word, d), typ: ty, phys: phys{k: physDouble}, overflows: true}, err
	}
	sum, err := t.sum(distinct, x)
	if err != nil {
		return x, err
	}
	return average(x, sum, expr{sql: fmt.Sprintf("count(%s%s)", word, x.sql), phys: phys{k: physInt64}}), nil
}

// average is the quotient of a sum of x and a count.
func average(x, sum, count expr) expr {
	sum.phys.p = maxDuckDecimal
	digits := fractionDigits(x.phys.scale(), 0, divPrecisionIncrement)
	out := quotient(sum, count, digits, false)
	out.typ = decimalType(x.typ.integerDigits()+x.typ.Scale+divPrecisionIncrement, min(x.typ.Scale+divPrecisionIncrement, maxDecimalScale))
	out.typ.Nullable = true
	return out
}

// groupConcat joins texts. Without ORDER BY the order is open.
func (t *translator) groupConcat(in *env, n *ast.AggregateFuncExpr, args []expr) (expr, error) {
	last := len(args) - 1
	sep := args[last]
	if sep.lit == nil {
		return sep, unsupported("GROUP_CONCAT with a SEPARATOR that is no constant")
	}
	ts, c, err := t.texts("", args[:last]...)
	if err != nil {
		return sep, err
	}
	if c.coll == collationBinary {
		return sep, unsupported("GROUP_CONCAT over byte strings")
	}
	parts := make([]string, len(ts))
	for i := range ts {
		parts[i] = ts[i].sql
	}
	joined, err := t.joinedTexts(in, n, args[:last], parts, c, quoteText(sep.lit.Text))
	if err != nil {
		return sep, err
	}
	out := expr{typ: textType(t.session.GroupConcatMaxLen, c.coll, c.coer), phys: phys{k: physText}, ascii: c.ascii && isASCII(sep.lit.Text)}
	out.typ.Nullable = true
	out.typ.Field = mysql.TypeBlob
	out.sql = fmt.Sprintf("tm_cut(%s, %d)", joined, t.session.GroupConcatMaxLen)
	return out, nil
}

func (t *translator) joinedTexts(in *env, n *ast.AggregateFuncExpr, args []expr, parts []string, c collated, sep string) (string, error) {
	if n.Distinct && len(args) == 1 {
		return t.distinctConcat(in, n, args[0], c, sep)
	}
	if n.Distinct {
		return "", unsupported("GROUP_CONCAT(DISTINCT ...) over several values")
	}
	order, err := t.concatOrder(in, n)
	return fmt.Sprintf("string_agg(%s, %s%s)", strings.Join(parts, " || "), sep, orderSQL(order)), err
}

// distinctConcat joins the distinct values of one argument, in their own order where they are ordered by themselves.
// Without ORDER BY the order is open; it is that of the values.
func (t *translator) distinctConcat(in *env, n *ast.AggregateFuncExpr, x expr, c collated, sep string) (string, error) {
	key, plain, err := x.finish().groupSQL()
	if err != nil {
		return "", err
	}
	order := direction(false)
	if n.Order != nil {
		items, err := t.concatOrder(in, n)
		if err != nil {
			return "", err
		}
		if len(items) != 1 || items[0].sql != key {
			return "", unsupported("GROUP_CONCAT(DISTINCT ...) ordered by something else")
		}
		order = direction(items[0].desc)
	}
	if !plain {
		return distinctTexts(x.sql, key, order, sep), nil
	}
	v := x.finish()
	v.sql, v.col, v.utc, v.key, v.ragged = "v", nil, "", "", ""
	return fmt.Sprintf("array_to_string(list_transform(list(DISTINCT %[1]s ORDER BY %[1]s%[2]s) FILTER (WHERE %[1]s IS NOT NULL), lambda v: %[3]s), %[4]s)",
		key, order, t.text(v).sql, sep), nil
}

// distinctTexts joins the first of each run of texts with equal keys.
func distinctTexts(text, key, order, sep string) string {
	list := fmt.Sprintf("list({'k': %[1]s, 'v': %[2]s} ORDER BY %[1]s%[3]s) FILTER (WHERE %[2]s IS NOT NULL)", key, text, order)
	return fmt.Sprintf("array_to_string(list_transform(list_filter(%[1]s, lambda x, i: i = 1 OR x.k <> (%[1]s)[i - 1].k), lambda x: x.v), %[2]s)", list, sep)
}

func (t *translator) concatOrder(in *env, n *ast.AggregateFuncExpr) ([]orderItem, error) {
	var items []orderItem
	if n.Order == nil {
		return nil, nil
	}
	for _, item := range n.Order.Items {
		if _, ok := item.Expr.(*ast.PositionExpr); ok {
			return nil, unsupported("a position in ORDER BY of GROUP_CONCAT")
		}
		x, err := t.expr(in, item.Expr)
		if err != nil {
			return nil, err
		}
		key, err := x.finish().sortSQL()
		if err != nil {
			return nil, err
		}
		items = append(items, orderItem{sql: key, desc: item.Desc})
	}
	return items, nil
}

// bitAggregate: over no rows the neutral element.
func (t *translator) bitAggregate(name string, x expr) (expr, error) {
	b, err := t.bits(x)
	if err != nil {
		return x, err
	}
	neutral := "0::UBIGINT"
	if name == "bit_and" {
		neutral = "18446744073709551615::UBIGINT"
	}
	out := bitResult(fmt.Sprintf("coalesce(%s(%s), %s)", name, b, neutral), false)
	return out, nil
}

func (t *translator) variance(name string, x expr) (expr, error) {
	d, err := t.double(x)
	if err != nil {
		return x, err
	}
	fn := map[string]string{"std": "stddev_pop", "stddev": "stddev_pop", "variance": "var_pop"}[name]
	if fn == "" {
		fn = name
	}
	ty := doubleType()
	ty.Nullable = true
	return expr{sql: fmt.Sprintf("%s(%s)", fn, d), typ: ty, phys: phys{k: physDouble}}, nil
}
