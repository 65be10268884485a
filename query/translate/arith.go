package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// modOp is the operator of MOD().
const modOp = opcode.Mod

// divPrecisionIncrement is MySQL's default of the variable: the digits that a division adds to the dividend's scale.
const divPrecisionIncrement = 4

// arithmetic translates + - * / DIV %.
func (t *translator) arithmetic(op opcode.Op, x, y expr) (expr, error) {
	if (fractionalTemporal(x) || fractionalTemporal(y)) && op != opcode.Plus && op != opcode.Minus {
		return x, unsupported("arithmetic other than + and - over times with decimals")
	}
	x, err := t.numeric(x)
	if err != nil {
		return x, err
	}
	if y, err = t.numeric(y); err != nil {
		return y, err
	}
	if x.phys.k == physDecimalText || y.phys.k == physDecimalText {
		return x, unsupported("arithmetic over DECIMAL values of more than %d digits", maxDuckDecimal)
	}
	x, y = x.number(), y.number()
	doubles := x.typ.Kind == KindDouble || y.typ.Kind == KindDouble
	var r expr
	switch {
	case op == opcode.IntDiv:
		r, err = t.intDiv(x, y)
	case doubles:
		r, err = t.doubleArithmetic(op, x, y)
	case op == opcode.Div:
		r, err = divide(x, y)
	case x.typ.Kind == KindDecimal || y.typ.Kind == KindDecimal:
		r, err = t.decimalArithmetic(op, x, y)
	default:
		r = t.intArithmetic(op, x, y)
	}
	r.typ.Nullable = x.typ.Nullable || y.typ.Nullable || op == opcode.Div || op == opcode.IntDiv || op == opcode.Mod
	return r, err
}

func fractionalTemporal(x expr) bool { return x.typ.temporal() && x.typ.Scale > 0 }

func (t *translator) doubleArithmetic(op opcode.Op, x, y expr) (expr, error) {
	l, err := t.double(x)
	if err != nil {
		return x, err
	}
	r, err := t.double(y)
	if err != nil {
		return y, err
	}
	out := expr{typ: doubleType(), phys: phys{k: physDouble}, overflows: true}
	switch op {
	case opcode.Div:
		out.sql = fmt.Sprintf("(%s / nullif(%s, 0))", l, r)
	case opcode.Mod:
		out.sql = fmt.Sprintf("(%s %% nullif(%s, 0))", l, r)
		out.typ.Unsigned = x.typ.Unsigned
	default:
		out.sql = fmt.Sprintf("(%s %s %s)", l, arithmeticSigns[op], r)
	}
	return out, nil
}

var arithmeticSigns = map[opcode.Op]string{opcode.Plus: "+", opcode.Minus: "-", opcode.Mul: "*"}

// intArithmetic computes in BIGINT, with UNSIGNED in it in HUGEINT and back, so that overflow is an error as in MySQL.
func (t *translator) intArithmetic(op opcode.Op, x, y expr) expr {
	out := expr{typ: intType(21), phys: phys{k: physInt64}}
	out.typ.Precision = 19
	unsigned := x.typ.Unsigned || y.typ.Unsigned
	if op == opcode.Mod {
		unsigned = x.typ.Unsigned
	}
	if op == opcode.Minus && t.session.SQLMode.NoUnsignedSubtraction {
		unsigned = false
	}
	sign := arithmeticSigns[op]
	if op == opcode.Mod {
		sign = "%"
	}
	if !x.typ.Unsigned && !y.typ.Unsigned {
		out.sql = fmt.Sprintf("(%s %s %s)", x.bigint(), sign, y.bigint())
		return out
	}
	target := "BIGINT"
	if unsigned {
		target, out.phys.k, out.typ.Unsigned, out.typ.Precision = "UBIGINT", physUint64, true, 20
	}
	out.sql = fmt.Sprintf("CAST((CAST(%s AS HUGEINT) %s %s) AS %s)", x.sql, sign, y.sql, target)
	return out
}

func (t *translator) decimalArithmetic(op opcode.Op, x, y expr) (expr, error) {
	x, y = x.decimal(), y.decimal()
	a, b := x.typ, y.typ
	ai, bi := a.integerDigits(), b.integerDigits()
	var ty Type
	sign := arithmeticSigns[op]
	switch op {
	case opcode.Plus, opcode.Minus:
		s := max(a.Scale, b.Scale)
		ty = decimalType(max(ai, bi)+1+s, s)
	case opcode.Mul:
		ty = decimalType(a.Precision+b.Precision, a.Scale+b.Scale)
		if a.Scale+b.Scale > maxDecimalScale || x.phys.s+y.phys.s > maxDuckDecimal {
			return x, unsupported("a product of more than %d decimals", maxDecimalScale)
		}
	default:
		s := max(a.Scale, b.Scale)
		ty = decimalType(max(ai, bi)+s, s)
		sign = "%"
		y.sql = "nullif(" + y.sql + ", 0)"
	}
	ty.Unsigned = a.Unsigned && (b.Unsigned || op == opcode.Mod)
	if t.session.WideDecimals && exactDigits(op, x.phys, y.phys) > shortDecimal {
		x = x.wide(shortDecimal + 1)
	}
	return expr{sql: fmt.Sprintf("(%s %s %s)", x.sql, sign, y.sql), typ: ty, phys: decimalResult(op, x.phys, y.phys)}, nil
}

// shortDecimal is the number of digits that DuckDB keeps in 64 bits. An operation over two such numbers gives one again,
// with an error where it overflows, unless a side is wider.
const shortDecimal = 18

// wide gives a DECIMAL at least p digits.
func (x expr) wide(p int) expr {
	if x.phys.k == physDecimal && x.phys.p < p {
		x.phys.p = min(p, maxDuckDecimal)
		x.sql, x.lit = fmt.Sprintf("CAST(%s AS %s)", x.sql, x.phys), nil
	}
	return x
}

// exactDigits is the number of digits that any result of the operation fits in.
func exactDigits(op opcode.Op, x, y phys) int {
	if op == opcode.Mul {
		return x.p + y.p
	}
	s := max(x.s, y.s)
	return max(x.p-x.s, y.p-y.s) + s + 1
}

// decimalResult is the type that DuckDB gives to the operation.
func decimalResult(op opcode.Op, x, y phys) phys {
	out := phys{k: physDecimal, p: exactDigits(op, x, y), s: max(x.s, y.s)}
	switch op {
	case opcode.Mul:
		out.s = x.s + y.s
	case opcode.Mod:
		out.p--
		return phys{k: physDecimal, p: min(out.p, maxDuckDecimal), s: out.s}
	}
	limit := maxDuckDecimal
	if x.p <= shortDecimal && y.p <= shortDecimal {
		limit = max(shortDecimal, out.s)
	}
	out.p = min(out.p, limit)
	return out
}

// decimal makes an integer a DECIMAL of scale 0.
func (x expr) decimal() expr {
	if x.phys.k == physDecimal {
		return x
	}
	p := phys{k: physDecimal, p: map[physKind]int{physInt32: 10, physInt64: 19, physUint64: 20}[x.phys.k]}
	if x.lit != nil {
		p.p = max(x.typ.Precision, 1)
	}
	x.sql, x.phys = fmt.Sprintf("CAST(%s AS %s)", x.sql, p), p
	return x
}

// fractionDigits is the number of digits MySQL's decimal division computes before it rounds to the result's scale: whole
// words of nine digits.
func fractionDigits(s1, s2, increment int) int {
	f1, f2 := words(s1)*9, words(s2)*9
	increment = max(increment-(f1-s1)-(f2-s2), 0)
	return words(f1+f2+increment) * 9
}

func words(digits int) int { return (digits + 8) / 9 }

// divide translates / over integers and decimals: the quotient has the dividend's scale and four digits more. MySQL
// computes whole words of digits, cuts the rest off and rounds half away from zero to the scale; where the words end
// at the scale it only cuts off.
func divide(x, y expr) (expr, error) {
	scale := min(x.typ.Scale+divPrecisionIncrement, maxDecimalScale)
	ty := decimalType(x.typ.Precision+y.typ.Scale+divPrecisionIncrement, scale)
	if x.typ.Scale+divPrecisionIncrement > maxDecimalScale {
		return x, unsupported("a quotient of more than %d decimals", maxDecimalScale)
	}
	round := fractionDigits(x.phys.scale(), y.phys.scale(), divPrecisionIncrement) > scale
	q := quotient(x, y, scale, round)
	ty.Unsigned = x.typ.Unsigned && y.typ.Unsigned
	q.typ = ty
	return q, nil
}

func (p phys) scale() int {
	if p.k == physDecimal {
		return p.s
	}
	return 0
}

// quotient gives x / y with the given scale, by integer division: exact, cut off or rounded half away from zero.
func quotient(x, y expr, scale int, round bool) expr {
	shift := scale + y.phys.scale() - x.phys.scale()
	digits := max(x.digits()+max(shift, 0), y.digits()+max(-shift, 0)) + 1
	num, den := x.unscaled(digits), y.unscaled(digits)
	if shift > 0 {
		num = fmt.Sprintf("(%s * %s)", num, pow10(shift, digits))
	} else if shift < 0 {
		den = fmt.Sprintf("(%s * %s)", den, pow10(-shift, digits))
	}
	q := fmt.Sprintf("(%s // nullif(%s, 0))", num, den)
	if round {
		q = rounded(num, den, digits)
	}
	return scaled(q, x.digits()+max(shift, 0)+1, scale)
}

// rounded divides integers and rounds half away from zero.
func rounded(num, den string, digits int) string {
	if digits > shortDecimal {
		return fmt.Sprintf("tm_div(%s, %s)", num, den)
	}
	return fmt.Sprintf("(%[1]s // nullif(%[2]s, 0) + CASE WHEN 2 * abs(%[1]s %% nullif(%[2]s, 0)) >= abs(%[2]s) THEN sign(%[1]s) * sign(%[2]s) ELSE 0 END)", num, den)
}

// digits is the number of digits a number may have.
func (x expr) digits() int {
	switch x.phys.k {
	case physDecimal:
		return x.phys.p
	case physInt32:
		return 10
	case physUint64:
		return 20
	}
	return 19
}

// unscaled gives a number's digits as an integer: a DECIMAL(p,s) times 10^s. Up to 18 digits it is a BIGINT.
func (x expr) unscaled(digits int) string {
	target := "HUGEINT"
	if digits <= shortDecimal {
		target = "BIGINT"
	}
	sql := x.sql
	if s := x.phys.scale(); s > 0 {
		if x.phys.p+s+1 > shortDecimal {
			sql = x.wide(shortDecimal + 1).sql
		}
		sql = fmt.Sprintf("(%s * CAST(1%s AS DECIMAL(%d,0)))", sql, strings.Repeat("0", s), s+1)
	}
	return fmt.Sprintf("CAST(%s AS %s)", sql, target)
}

func pow10(n, digits int) string {
	target := "HUGEINT"
	if digits <= shortDecimal {
		target = "BIGINT"
	}
	return "CAST(1" + strings.Repeat("0", n) + " AS " + target + ")"
}

// scaled makes a DECIMAL of scale s from an integer of at most the given number of digits.
func scaled(sql string, digits, s int) expr {
	p := phys{k: physDecimal, p: min(max(digits, s)+s, maxDuckDecimal), s: s}
	if s == 0 {
		return expr{sql: fmt.Sprintf("CAST(%s AS %s)", sql, p), phys: p}
	}
	if p.p > shortDecimal && p.p-s <= shortDecimal {
		p.p = max(p.p, shortDecimal+1+s)
	}
	unit := fmt.Sprintf("CAST(0.%s1 AS DECIMAL(%d,%d))", strings.Repeat("0", s-1), s, s)
	return expr{sql: fmt.Sprintf("CAST(CAST(%s AS DECIMAL(%d,0)) * %s AS %s)", sql, p.p-s, unit, p), phys: p}
}

// intDiv translates DIV: the integer part of the quotient.
func (t *translator) intDiv(x, y expr) (expr, error) {
	out := expr{typ: intType(21), phys: phys{k: physInt64}}
	target := "BIGINT"
	if x.typ.Unsigned || y.typ.Unsigned {
		target, out.phys.k, out.typ.Unsigned = "UBIGINT", physUint64, true
	}
	if x.typ.Kind == KindDouble || y.typ.Kind == KindDouble {
		return x, unsupported("DIV over floating-point numbers or text")
	}
	if x.typ.Kind == KindInt && y.typ.Kind == KindInt && target == "BIGINT" {
		out.sql = fmt.Sprintf("(%s // nullif(%s, 0))", x.bigint(), y.bigint())
		return out, nil
	}
	shift := max(x.phys.scale(), y.phys.scale())
	out.sql = fmt.Sprintf("CAST((%s // nullif(%s, 0)) AS %s)", x.times10(shift-x.phys.scale()), y.times10(shift-y.phys.scale()), target)
	return out, nil
}

func (x expr) times10(n int) string {
	sql := x.unscaled(maxDuckDecimal)
	if n == 0 {
		return sql
	}
	return "(" + sql + " * " + pow10(n, maxDuckDecimal) + ")"
}

func (t *translator) negate(x expr) (expr, error) {
	if x.lit != nil {
		if n, ok, err := negatedLiteral(*x.lit); ok || err != nil {
			return n, err
		}
	}
	if x.typ.temporal() || x.lit != nil && (x.lit.Kind == IntValue && x.lit.Int < 0 || x.lit.Kind == HexValue) {
		return x, unsupported("a minus sign before a negative or hexadecimal constant, a date or a time")
	}
	x, err := t.numeric(x)
	if err != nil {
		return x, err
	}
	x = x.number()
	if x.phys.k == physDecimalText {
		return x, unsupported("arithmetic over DECIMAL values of more than %d digits", maxDuckDecimal)
	}
	out := expr{typ: x.typ, phys: x.phys, overflows: x.overflows}
	out.typ.Zerofill = 0
	switch x.typ.Kind {
	case KindInt:
		out.typ, out.phys = intType(x.typ.Length+1), phys{k: physInt64}
		out.sql = "CAST(-CAST(" + x.sql + " AS HUGEINT) AS BIGINT)"
		if !x.typ.Unsigned {
			out.sql = "(-" + x.bigint() + ")"
		}
	case KindDecimal:
		out.typ.Unsigned = false
		out.sql = "(-" + x.sql + ")"
	default:
		out.typ, out.phys = doubleType(), phys{k: physDouble}
		d, err := t.double(x)
		if err != nil {
			return x, err
		}
		out.sql = "(-" + d + ")"
	}
	out.typ.Nullable = x.typ.Nullable
	return out, nil
}

// negatedLiteral folds the sign into a numeric literal.
func negatedLiteral(v Value) (x expr, ok bool, err error) {
	switch {
	case v.Kind == IntValue && v.Int > 0:
		return intLiteral(-v.Int), true, nil
	case v.Kind == UintValue && v.Uint == 1<<63:
		return intLiteral(-1 << 63), true, nil
	case v.Kind == DoubleValue:
		return doubleLiteral(-v.Float), true, nil
	case v.Kind == DecimalValue && strings.Trim(v.Text, "0.") != "" && !strings.HasPrefix(v.Text, "-"):
		x, err = decimalLiteral("-" + v.Text)
		return x, true, err
	}
	return expr{}, false, nil
}

// bits gives the text of a value as a UBIGINT of its 64 bits.
func (t *translator) bits(x expr) (string, error) {
	if x.typ.isBytes() && (x.lit == nil || x.lit.Kind != HexValue) {
		return "", unsupported("bit operations over byte strings")
	}
	if x.lit != nil && x.lit.Kind == IntValue && x.lit.Int >= 0 {
		return x.sql + "::UBIGINT", nil
	}
	if x.typ.Kind == KindDouble || x.typ.Kind == KindDecimal && x.typ.integerDigits() > 18 {
		return "", unsupported("bit operations over floating-point numbers or large decimals")
	}
	i, err := t.integer(x)
	if err != nil {
		return "", err
	}
	i = i.number()
	switch {
	case i.phys.k == physUint64:
		return i.sql, nil
	case i.typ.Unsigned:
		return "CAST(" + i.sql + " AS UBIGINT)", nil
	}
	return fmt.Sprintf("CAST(CASE WHEN %[1]s < 0 THEN CAST(%[1]s AS HUGEINT) + 18446744073709551616 ELSE %[1]s END AS UBIGINT)", i.sql), nil
}

func bitResult(sql string, nullable bool) expr {
	ty := unsignedType()
	ty.Nullable = nullable
	return expr{sql: "(" + sql + ")", typ: ty, phys: phys{k: physUint64}}
}

func (t *translator) bitwise(op opcode.Op, x, y expr) (expr, error) {
	a, err := t.bits(x)
	if err != nil {
		return x, err
	}
	b, err := t.bits(y)
	if err != nil {
		return y, err
	}
	nullable := x.typ.Nullable || y.typ.Nullable
	switch op {
	case opcode.And:
		return bitResult(a+" & "+b, nullable), nil
	case opcode.Or:
		return bitResult(a+" | "+b, nullable), nil
	case opcode.Xor:
		return bitResult("xor("+a+", "+b+")", nullable), nil
	case opcode.RightShift:
		return bitResult(fmt.Sprintf("CASE WHEN %[2]s >= 64 THEN 0 * %[1]s ELSE %[1]s >> %[2]s END", a, b), nullable), nil
	}
	// DuckDB refuses to shift a bit out; MySQL drops it.
	masked := fmt.Sprintf("(%s & (18446744073709551615::UBIGINT >> (CASE WHEN %[2]s >= 64 THEN 63::UBIGINT ELSE %[2]s END)))", a, b)
	return bitResult(fmt.Sprintf("CASE WHEN %[2]s >= 64 THEN 0 * %[1]s ELSE %[3]s << %[2]s END", a, b, masked), nullable), nil
}
