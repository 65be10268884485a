package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/mysql"
)

func mathFunctions() map[string]builtin {
	return map[string]builtin{
		"abs": {1, 1, fnAbs}, "sign": {1, 1, fnSign},
		"ceil": {1, 1, fnCeil("ceil")}, "ceiling": {1, 1, fnCeil("ceil")}, "floor": {1, 1, fnCeil("floor")},
		"round": {1, 2, fnRound}, "truncate": {2, 2, fnTruncate}, "mod": {2, 2, fnMod},
		"sqrt": {1, 1, fnSqrt}, "pow": {2, 2, fnPow}, "power": {2, 2, fnPow},
		"bit_count": {1, 1, fnBitCount}, "pi": {0, 0, fnPi},
	}
}

// oneNumber makes a number of an argument; wide decimals are refused.
func (t *translator) oneNumber(name string, x expr) (expr, error) {
	if x.typ.temporal() || x.lit != nil && x.lit.Kind == HexValue {
		return x, unsupported("%s over dates, times and hexadecimal literals", name)
	}
	x, err := t.numeric(x)
	if err == nil && x.phys.k == physDecimalText {
		err = unsupported("%s over DECIMAL values of more than %d digits", name, maxDuckDecimal)
	}
	x = x.number()
	x.typ.Zerofill = 0
	if x.typ.Kind == KindInt {
		x.typ.Field = mysql.TypeLonglong
	}
	return x, err
}

func fnAbs(t *translator, e *env, args []expr) (expr, error) {
	x, err := t.oneNumber("ABS", args[0])
	if err != nil {
		return x, err
	}
	out := expr{typ: x.typ, phys: x.phys, overflows: x.overflows}
	switch {
	case x.typ.Kind == KindInt && !x.typ.Unsigned:
		out.typ, out.phys = bigintType(), phys{k: physInt64}
		out.typ.Nullable = x.typ.Nullable
		out.sql = "abs(" + x.bigint() + ")"
	case x.typ.Kind == KindDouble:
		d, err := t.double(x)
		out.typ, out.phys = doubleType(), phys{k: physDouble}
		out.typ.Nullable, out.typ.Unsigned = x.typ.Nullable, x.typ.Unsigned
		out.sql = "abs(" + d + ")"
		return out, err
	default:
		out.sql = "abs(" + x.sql + ")"
	}
	return out, nil
}

func fnSign(t *translator, e *env, args []expr) (expr, error) {
	x, err := t.oneNumber("SIGN", args[0])
	return bigintResult("CAST(sign("+x.sql+") AS BIGINT)", 21, args...), err
}

// fnCeil: integers stay; a DECIMAL becomes a BIGINT while its digits fit, else a DECIMAL of scale 0; a DOUBLE stays one.
func fnCeil(name string) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		x, err := t.oneNumber(strings.ToUpper(name), args[0])
		if err != nil {
			return x, err
		}
		switch x.typ.Kind {
		case KindInt:
			out := expr{sql: x.sql, typ: x.typ, phys: x.phys}
			return out, nil
		case KindDecimal:
			x = x.finish()
			sql := fmt.Sprintf("%s(%s)", name, x.sql)
			if x.typ.integerDigits() < 18 {
				return bigintResult("CAST("+sql+" AS BIGINT)", 21, args...), nil
			}
			p := phys{k: physDecimal, p: min(x.phys.p-x.phys.s+1, maxDuckDecimal)}
			return nullableBy(expr{sql: fmt.Sprintf("CAST(%s AS %s)", sql, p), typ: decimalType(x.typ.integerDigits()+1, 0), phys: p}, args), nil
		}
		d, err := t.double(x)
		ty := doubleType()
		ty.Scale = NotFixed
		return nullableBy(expr{sql: fmt.Sprintf("%s(%s)", name, d), typ: ty, phys: phys{k: physDouble}}, args), err
	}
}

// fnRound rounds half away from zero, a DOUBLE half to even, to a constant number of digits.
func fnRound(t *translator, e *env, args []expr) (expr, error) {
	return t.roundTo("ROUND", args, func(x expr, p phys) string {
		return fmt.Sprintf("CAST(%s AS %s)", x.sql, p)
	})
}

func fnTruncate(t *translator, e *env, args []expr) (expr, error) {
	return t.roundTo("TRUNCATE", args, func(x expr, p phys) string {
		unit := pow10(x.phys.s-p.s, maxDuckDecimal)
		q := fmt.Sprintf("(%s // %s)", x.unscaled(maxDuckDecimal), unit)
		return scaled(q, p.p-p.s, p.s).sql
	})
}

func (t *translator) roundTo(name string, args []expr, cut func(x expr, p phys) string) (expr, error) {
	digits := int64(0)
	if len(args) == 2 {
		l := args[1].lit
		if l == nil || l.Kind != IntValue {
			return expr{}, unsupported("%s to a number of digits that is no constant", name)
		}
		digits = l.Int
	}
	x, err := t.oneNumber(name, args[0])
	if err != nil {
		return x, err
	}
	switch {
	case x.typ.Kind == KindDouble:
		d, err := t.double(x)
		fn := map[string]string{"ROUND": "tm_round", "TRUNCATE": "tm_truncate"}[name]
		return nullableBy(expr{sql: fmt.Sprintf("%s(%s, %d)", fn, d, max(min(digits, 400), -400)), typ: doubleType(), phys: phys{k: physDouble}}, args), err
	case x.typ.Kind == KindInt && digits >= 0:
		return nullableBy(expr{sql: x.sql, typ: x.typ, phys: x.phys}, args), nil
	case digits < 0:
		return x, unsupported("%s to a negative number of digits", name)
	}
	scale := int(min(digits, int64(x.typ.Scale)))
	ty := decimalType(x.typ.integerDigits()+1+scale, scale)
	out := expr{typ: ty, phys: phys{k: physDecimal, p: min(x.phys.p-x.phys.s+1+scale, maxDuckDecimal), s: scale}}
	if x.phys.s == scale {
		out.sql, out.phys = x.sql, x.phys
	} else {
		out.sql = cut(x, out.phys)
	}
	return nullableBy(out, args), nil
}

func fnMod(t *translator, e *env, args []expr) (expr, error) {
	return t.arithmetic(modOp, args[0], args[1])
}

func fnSqrt(t *translator, e *env, args []expr) (expr, error) {
	d, err := t.double(args[0])
	ty := doubleType()
	ty.Nullable = true
	return expr{sql: fmt.Sprintf("sqrt(CASE WHEN %[1]s >= 0 THEN %[1]s END)", d), typ: ty, phys: phys{k: physDouble}}, err
}

func fnPow(t *translator, e *env, args []expr) (expr, error) {
	a, err := t.double(args[0])
	if err != nil {
		return expr{}, err
	}
	b, err := t.double(args[1])
	return nullableBy(expr{sql: fmt.Sprintf("pow(%s, %s)", a, b), typ: doubleType(), phys: phys{k: physDouble}, overflows: true}, args), err
}

func fnBitCount(t *translator, e *env, args []expr) (expr, error) {
	b, err := t.bits(args[0])
	return bigintResult("CAST(bit_count(CAST("+b+" AS HUGEINT)) AS BIGINT)", 2, args...), err
}

func fnPi(t *translator, e *env, args []expr) (expr, error) {
	x := doubleLiteral(3.141592653589793)
	x.typ.Scale, x.typ.Length, x.lit = 6, 8, nil
	return x, nil
}
