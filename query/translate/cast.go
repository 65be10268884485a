package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
)

// castExpr translates CAST(x AS type), CONVERT(x, type), BINARY x and CONVERT(x USING charset).
func (t *translator) castExpr(e *env, n *ast.FuncCastExpr) (expr, error) {
	x, err := t.expr(e, n.Expr)
	if err != nil {
		return x, err
	}
	if n.Tp.IsArray() {
		return x, unsupported("CAST(... AS ... ARRAY)")
	}
	out, err := t.castTo(x, n)
	out.typ.Nullable = out.typ.Nullable || x.typ.Nullable
	return out, err
}

func (t *translator) castTo(x expr, n *ast.FuncCastExpr) (expr, error) {
	switch n.Tp.GetType() {
	case mysql.TypeLonglong:
		if n.Tp.GetFlag()&mysql.UnsignedFlag != 0 {
			return t.castUnsigned(x)
		}
		return t.castSigned(x)
	case mysql.TypeNewDecimal:
		return t.castDecimal(x, n.Tp.GetFlen(), n.Tp.GetDecimal())
	case mysql.TypeDouble:
		d, err := t.double(x)
		return expr{sql: d, typ: doubleType(), phys: phys{k: physDouble}}, err
	case mysql.TypeVarString, mysql.TypeString, mysql.TypeVarchar:
		return t.castString(x, n)
	case mysql.TypeDate:
		return t.castDate(x)
	case mysql.TypeDatetime:
		return t.castDateTime(x, max(n.Tp.GetDecimal(), 0))
	}
	return x, unsupported("CAST(... AS %s)", strings.ToUpper(n.Tp.CompactStr()))
}

func (t *translator) castSigned(x expr) (expr, error) {
	i, err := t.integer(x)
	if err != nil {
		return i, err
	}
	i = i.number()
	out := expr{sql: i.bigint(), typ: bigintType(), phys: phys{k: physInt64}}
	if i.typ.Unsigned { // the bits are kept
		out.sql = fmt.Sprintf("CAST(CASE WHEN %[1]s > 9223372036854775807 THEN CAST(%[1]s AS HUGEINT) - 18446744073709551616 ELSE %[1]s END AS BIGINT)", i.sql)
	}
	if x.lit == nil && x.typ.Kind == KindString {
		out.typ.Nullable = true
	}
	return out, nil
}

func (t *translator) castUnsigned(x expr) (expr, error) {
	switch {
	case x.typ.Kind == KindDecimal && x.phys.k == physDecimal:
		return castDecimalUnsigned(x.number()), nil
	case x.typ.Kind == KindDecimal || x.typ.Kind == KindDouble:
		return x, unsupported("CAST(... AS UNSIGNED) of a value that is no integer")
	}
	if x.typ.isText() && !x.typ.isEnum() && !x.typ.isSet() {
		return expr{sql: "tm_str_to_uint(" + x.sql + ")", typ: unsignedType(), phys: phys{k: physUint64}}, nil
	}
	b, err := t.bits(x)
	return expr{sql: b, typ: unsignedType(), phys: phys{k: physUint64}}, err
}

// castDecimalUnsigned rounds half away from zero; of negative numbers the bits are kept, and what does not fit is the
// nearest that does.
func castDecimalUnsigned(x expr) expr {
	rounded := "CAST(round(" + x.sql + ", 0) AS HUGEINT)"
	sql := fmt.Sprintf("CAST(CASE WHEN %[1]s < 0 THEN greatest(%[1]s, -9223372036854775808) + 18446744073709551616 "+
		"ELSE least(%[1]s, 18446744073709551615) END AS UBIGINT)", rounded)
	ty := unsignedType()
	ty.Nullable = x.typ.Nullable
	return expr{sql: sql, typ: ty, phys: phys{k: physUint64}}
}

// castDecimal rounds half away from zero; what does not fit is MySQL's largest value, which is refused here by an error
// of the engine.
func (t *translator) castDecimal(x expr, precision, scale int) (expr, error) {
	if precision <= 0 {
		precision = 10
	}
	scale = max(scale, 0)
	if precision > maxDuckDecimal {
		return x, unsupported("CAST(... AS DECIMAL) of more than %d digits", maxDuckDecimal)
	}
	p := phys{k: physDecimal, p: precision, s: scale}
	if x.typ.isText() && !x.typ.isEnum() && !x.typ.isSet() && !x.mixed {
		return expr{sql: fmt.Sprintf("CAST(tm_decimal_text(%s, %d, %d) AS %s)", x.sql, precision, scale, p), typ: decimalType(precision, scale), phys: p}, nil
	}
	n, err := t.numeric(x)
	if err != nil {
		return n, err
	}
	n = n.number()
	if n.typ.Kind == KindDouble {
		text := "tm_double_to_str"
		if n.phys.k == physFloat {
			return x, unsupported("CAST of a FLOAT AS DECIMAL")
		}
		return expr{sql: fmt.Sprintf("CAST(tm_decimal_text(%s(%s), %d, %d) AS %s)", text, finite(n), precision, scale, p), typ: decimalType(precision, scale), phys: p}, nil
	}
	return expr{sql: fmt.Sprintf("CAST(%s AS %s)", n.sql, p), typ: decimalType(precision, scale), phys: p}, nil
}

func (t *translator) castString(x expr, n *ast.FuncCastExpr) (expr, error) {
	if x.typ.isBit() {
		return x, unsupported("BIT as text")
	}
	if x.lit != nil && x.lit.Kind == HexValue && validText(x.lit.Text) {
		x = t.textLiteral(x.lit.Text)
	}
	s := t.text(x)
	charset := n.Tp.GetCharset()
	if charset == "binary" {
		return s.castBinary(n.Tp.GetFlen())
	}
	if s.typ.isBytes() && x.typ.Kind != KindNull {
		return x, unsupported("CAST of a byte string AS CHAR")
	}
	c := collationByName(t.session.Collation)
	if n.ExplicitCharSet {
		def, ok := defaultCollations[charset]
		if !ok || !isUnicode(charset) {
			return x, unsupported("conversion to character set %s", charset)
		}
		c = collationByName(def)
	}
	s.typ.Collation, s.typ.Coercibility, s.typ.Field, s.typ.Elements = t.effective(c), Implicit, mysql.TypeVarString, nil
	s.col, s.key, s.lit = nil, "", nil
	if l := n.Tp.GetFlen(); l >= 0 {
		s.sql, s.typ.Length = fmt.Sprintf("left(%s, %d)", s.sql, l), l
	}
	return s, nil
}

func (s expr) castBinary(length int) (expr, error) {
	if length >= 0 {
		return s, unsupported("CAST(... AS BINARY(n))")
	}
	b, err := s.bytes()
	ty := textType(s.typ.Length*4, collationBinary, Implicit)
	return expr{sql: b, typ: ty, phys: phys{k: physBlob}}, err
}

func (t *translator) castDate(x expr) (expr, error) {
	x, err := t.temporal(x)
	if err != nil {
		return x, err
	}
	out := expr{sql: x.sql, typ: dateType(), phys: phys{k: physDate}}
	out.typ.Nullable = x.typ.Nullable
	switch x.typ.Kind {
	case KindDate:
	case KindDateTime:
		out.sql = "CAST(" + x.sql + " AS DATE)"
	default:
		return x, unsupported("CAST of TIME AS DATE")
	}
	return out, nil
}

// castDateTime gives a DATETIME(fsp), rounded to fsp digits.
func (t *translator) castDateTime(x expr, fsp int) (expr, error) {
	x, err := t.temporal(x)
	if err != nil {
		return x, err
	}
	out := expr{sql: x.sql, typ: datetimeType(fsp), phys: phys{k: physTimestamp}}
	out.typ.Nullable = x.typ.Nullable
	switch {
	case x.typ.Kind == KindTime:
		return x, unsupported("CAST of TIME AS DATETIME")
	case x.typ.Kind == KindDate:
		out.sql = "CAST(" + x.sql + " AS TIMESTAMP)"
	case x.typ.Scale > fsp:
		return x, unsupported("CAST to a DATETIME of fewer decimals")
	}
	return out, nil
}

// temporal gives a DATE, DATETIME or TIME: a temporal value as it is, a constant string read as one, other strings read
// by the engine as dates with time.
func (t *translator) temporal(x expr) (expr, error) {
	switch {
	case x.typ.temporal():
		return x, nil
	case x.typ.Kind == KindNull:
		ty := datetimeType(0)
		ty.Nullable = true
		return expr{sql: "CAST(NULL AS TIMESTAMP)", typ: ty, phys: phys{k: physTimestamp}}, nil
	case x.lit != nil && x.lit.Kind == TextValue:
		d, ok := parseDateTime(x.lit.Text)
		if !ok {
			return x, unsupported("the date constant '%s'", x.lit.Text)
		}
		v := Value{Kind: DateTimeValue, Text: x.lit.Text}
		if d.isDate {
			v.Kind = DateValue
		}
		return temporalLiteral(v)
	}
	if x.lit == nil && x.typ.isText() && !x.mixed && !x.typ.isEnum() && !x.typ.isSet() {
		ty := datetimeType(6)
		ty.Nullable = true
		return expr{sql: "tm_moment(" + x.sql + ")", typ: ty, phys: phys{k: physTimestamp}}, nil
	}
	return x, unsupported("a number or a byte string as a date")
}

// convertUsing translates CONVERT(x USING charset).
func (t *translator) convertUsing(e *env, n *ast.FuncCallExpr) (expr, error) {
	if len(n.Args) != 2 {
		return expr{}, errWrongParamCount("CONVERT")
	}
	v, ok, err := t.constant(n.Args[1])
	if err != nil || !ok {
		return expr{}, unsupported("this form of CONVERT")
	}
	x, err := t.expr(e, n.Args[0])
	if err != nil {
		return x, err
	}
	def, ok := defaultCollations[strings.ToLower(v.Text)]
	if !ok || !isUnicode(v.Text) || x.typ.isBytes() {
		return x, unsupported("conversion to character set %s", v.Text)
	}
	s := t.text(x)
	s.typ.Collation, s.typ.Coercibility, s.typ.Field, s.typ.Elements = t.effective(collationByName(def)), Implicit, mysql.TypeVarString, nil
	s.col, s.key, s.lit = nil, "", nil
	return s, nil
}
