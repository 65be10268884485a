package translate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemarkdb/tidemark/query/number"
)

// numeric gives the number that MySQL makes of a value in a numeric context: strings their numeric prefix as a
// DOUBLE, an ENUM its index, temporal values their digits.
func (t *translator) numeric(x expr) (expr, error) {
	if x.mixed {
		return x, unsupported("a choice between values of different types as a number")
	}
	switch x.typ.Kind {
	case KindInt:
		if x.phys.k == physBool {
			x = x.finish()
		}
		return x, nil
	case KindDecimal, KindDouble:
		return x, nil
	case KindNull:
		ty := doubleType()
		ty.Nullable = true
		return expr{sql: "CAST(NULL AS DOUBLE)", typ: ty, phys: phys{k: physDouble}}, nil
	case KindString:
		return t.stringNumber(x)
	case KindJSON:
		return x, unsupported("JSON as a number")
	}
	return temporalNumber(x)
}

func (t *translator) stringNumber(x expr) (expr, error) {
	switch {
	case x.lit != nil && x.lit.Kind == HexValue:
		return hexNumber(x)
	case x.lit != nil:
		return doubleLiteral(number.Double([]byte(x.lit.Text))), nil
	case x.typ.isEnum() || x.typ.isSet():
		i := x.memberNumber()
		return expr{sql: "CAST(" + i.sql + " AS DOUBLE)", typ: doubleOf(i.typ), phys: phys{k: physDouble}}, nil
	case x.typ.isBytes():
		return x, unsupported("a byte string as a number")
	}
	ty := doubleType()
	ty.Nullable = x.typ.Nullable
	return expr{sql: "tm_str_to_double(" + x.sql + ")", typ: ty, phys: phys{k: physDouble}}, nil
}

// memberNumber gives the index of an ENUM or the bits of a SET.
func (x expr) memberNumber() expr {
	ty := unsignedType()
	ty.Nullable = x.typ.Nullable
	if x.typ.isSet() {
		return expr{sql: "(" + x.setBits() + ")", typ: ty, phys: phys{k: physUint64}}
	}
	return expr{sql: "CAST(" + x.enumIndex() + " AS BIGINT)", typ: ty, phys: phys{k: physInt64}}
}

func doubleOf(t Type) Type {
	ty := doubleType()
	ty.Nullable = t.Nullable
	return ty
}

func hexNumber(h expr) (expr, error) {
	s := strings.TrimLeft(h.lit.Text, "\x00")
	if len(s) > 8 {
		return expr{}, unsupported("a hexadecimal literal of more than 8 bytes as a number")
	}
	var u uint64
	for i := range len(s) {
		u = u<<8 | uint64(s[i])
	}
	x := uintLiteral(u)
	x.typ.Unsigned = x.typ.Unsigned || h.typ.Unsigned // 0x41 is unsigned, b'1' is not
	return x, nil
}

// temporalNumber gives YYYYMMDD, YYYYMMDDhhmmss or hhmmss, with a fraction where the value has one.
func temporalNumber(x expr) (expr, error) {
	nullable := x.typ.Nullable
	var digits string
	length := 8
	switch x.typ.Kind {
	case KindDate:
		digits = fmt.Sprintf("(CAST(year(%[1]s) AS BIGINT) * 10000 + month(%[1]s) * 100 + day(%[1]s))", x.sql)
	case KindDateTime:
		length = 14
		if x.typ.Scale > 0 {
			return fractionalNumber(fmt.Sprintf("strftime(%s, '%%Y%%m%%d%%H%%M%%S.%%f')", x.sql), length, x.typ), nil
		}
		digits = fmt.Sprintf("CAST(strftime(%s, '%%Y%%m%%d%%H%%M%%S') AS BIGINT)", x.sql)
	default:
		length = 7
		if x.typ.Scale > 0 {
			return fractionalNumber("replace("+timeText(x.sql, 6)+", ':', '')", length, x.typ), nil
		}
		digits = "CAST(replace(" + timeText(x.sql, 0) + ", ':', '') AS BIGINT)"
	}
	ty := intType(length)
	ty.Nullable = nullable
	return expr{sql: digits, typ: ty, phys: phys{k: physInt64}}, nil
}

func fractionalNumber(text string, digits int, from Type) expr {
	ty := decimalType(digits+from.Scale, from.Scale)
	ty.Nullable = from.Nullable
	p := phys{k: physDecimal, p: digits + from.Scale, s: from.Scale}
	return expr{sql: fmt.Sprintf("CAST(%s AS %s)", text, p), typ: ty, phys: p}
}

// double gives the text of the value as a DOUBLE.
func (t *translator) double(x expr) (string, error) {
	x, err := t.numeric(x)
	if err != nil {
		return "", err
	}
	switch {
	case x.lit != nil:
		return doubleSQL(x.lit.float()), nil
	case x.phys.k == physDouble:
		return finite(x), nil
	case x.phys.k == physDecimal && x.phys.p > 15:
		// DuckDB divides two rounded numbers here; its reading of text rounds once, as MySQL does.
		return "CAST(CAST(" + x.sql + " AS VARCHAR) AS DOUBLE)", nil
	}
	return "CAST(" + x.sql + " AS DOUBLE)", nil
}

// float gives a numeric constant as a float64.
func (v *Value) float() float64 {
	switch v.Kind {
	case IntValue:
		return float64(v.Int)
	case UintValue:
		return float64(v.Uint)
	case DoubleValue:
		return v.Float
	default:
		f, _ := strconv.ParseFloat(v.Text, 64)
		return f
	}
}

// integer gives the value as MySQL's int context has it: decimals rounded half away from zero, doubles half to even,
// strings their integer prefix. The result is BIGINT, or UBIGINT when the type is unsigned.
func (t *translator) integer(x expr) (expr, error) {
	if x.typ.Kind == KindString && !x.typ.isEnum() && !x.typ.isSet() && (x.lit == nil || x.lit.Kind != HexValue) {
		if x.mixed {
			return x, unsupported("a choice between values of different types as a number")
		}
		if x.typ.isBytes() {
			return x, unsupported("a byte string as an integer")
		}
		ty := bigintType()
		ty.Nullable = x.typ.Nullable
		return expr{sql: "tm_str_to_int(" + x.sql + ")", typ: ty, phys: phys{k: physInt64}}, nil
	}
	if x.typ.isEnum() || x.typ.isSet() {
		return x.memberNumber(), nil
	}
	if x.typ.temporal() && x.typ.Scale > 0 {
		return x, unsupported("a temporal value with decimals as an integer")
	}
	x, err := t.numeric(x)
	if err != nil || x.typ.Kind == KindInt {
		return x, err
	}
	if x.phys.k == physDecimalText {
		return x, unsupported("a DECIMAL of more than %d digits as an integer", maxDuckDecimal)
	}
	ty := bigintType()
	ty.Nullable = x.typ.Nullable
	return expr{sql: clamped(x), typ: ty, phys: phys{k: physInt64}}, nil
}

// clamped rounds a DECIMAL or DOUBLE to a BIGINT; MySQL takes the nearest BIGINT for what is too large.
func clamped(x expr) string {
	switch {
	case x.phys.k == physDecimal && x.phys.p-x.phys.s < 19:
		return "CAST(" + x.sql + " AS BIGINT)"
	case x.phys.k == physFloat: // MySQL gives the smallest BIGINT for both ends
		return fmt.Sprintf("(CASE WHEN abs(%[1]s) >= 9223372036854775807 THEN (-9223372036854775807 - 1) ELSE CAST(%[1]s AS BIGINT) END)", x.sql)
	}
	return fmt.Sprintf("(CASE WHEN %[1]s >= 9223372036854775807 THEN 9223372036854775807 WHEN %[1]s <= -9223372036854775808 THEN (-9223372036854775807 - 1) ELSE CAST(%[1]s AS BIGINT) END)", x.sql)
}

// bigint gives the text of an integer expression as a BIGINT.
func (x expr) bigint() string {
	if x.phys.k == physInt64 {
		return x.sql
	}
	return "CAST(" + x.sql + " AS BIGINT)"
}

// text gives the value as a string, as MySQL prints it.
func (t *translator) text(x expr) expr {
	if x.typ.Kind == KindString {
		return x
	}
	out := textType(x.typ.Length, t.effective(collationByName(t.session.Collation)), Numeric)
	out.Nullable = x.typ.Nullable
	r := expr{typ: out, phys: phys{k: physText}, ascii: true}
	switch x.typ.Kind {
	case KindNull:
		r.typ.Collation, r.typ.Coercibility, r.sql, r.ascii = collationBinary, Ignorable, "CAST(NULL AS VARCHAR)", true
	case KindInt:
		r.sql = intText(x)
	case KindDecimal:
		r.sql = decimalText(x)
	case KindDouble:
		r.sql = doubleText(x)
	case KindDate:
		r.sql = "CAST(" + x.sql + " AS VARCHAR)"
	case KindDateTime:
		r.sql = datetimeText(x.sql, x.typ.Scale)
	case KindTime:
		r.sql = timeText(x.sql, x.typ.Scale)
	default: // JSON
		r.sql, r.ascii, r.typ.Coercibility = x.sql, false, Implicit
		r.typ.Collation = t.effective(collationByName("utf8mb4_bin"))
	}
	return r
}

func intText(x expr) string {
	switch {
	case x.ragged != "":
		return x.ragged
	case x.lit != nil && x.lit.Kind == IntValue:
		return quoteText(strconv.FormatInt(x.lit.Int, 10))
	case x.phys.k == physBool:
		return "CASE " + x.sql + " WHEN true THEN '1' WHEN false THEN '0' END"
	case x.typ.Zerofill > 0:
		s := "CAST(" + x.sql + " AS VARCHAR)"
		return fmt.Sprintf("lpad(%s, CAST(greatest(length(%s), %d) AS INTEGER), '0')", s, s, x.typ.Zerofill)
	}
	return "CAST(" + x.sql + " AS VARCHAR)"
}

func decimalText(x expr) string {
	if x.ragged != "" {
		return x.ragged
	}
	x = x.finish()
	if x.phys.k == physDecimalText {
		return x.sql
	}
	if x.phys.p == x.phys.s && x.phys.p < maxDuckDecimal { // DuckDB would print .5
		return fmt.Sprintf("CAST(CAST(%s AS DECIMAL(%d,%d)) AS VARCHAR)", x.sql, x.phys.p+1, x.phys.s)
	}
	return "CAST(" + x.sql + " AS VARCHAR)"
}

func doubleText(x expr) string {
	switch {
	case x.ragged != "":
		return x.ragged
	case x.phys.k == physFloat:
		return "tm_float_to_str(" + x.sql + ")"
	case x.lit != nil || x.col != nil:
		return "tm_double_to_str(" + x.sql + ")"
	}
	return "tm_double_text(" + finite(x) + ")"
}

// finite gives a DOUBLE that ends the query where MySQL would: when it is infinite.
func finite(x expr) string {
	if !x.overflows {
		return x.sql
	}
	return fmt.Sprintf("CASE WHEN isfinite(%[1]s) IS NOT FALSE THEN %[1]s ELSE error('DOUBLE value is out of range') END", x.sql)
}

func datetimeText(sql string, fsp int) string {
	if fsp == 0 {
		return "strftime(" + sql + ", '%Y-%m-%d %H:%M:%S')"
	}
	return fmt.Sprintf("left(strftime(%s, '%%Y-%%m-%%d %%H:%%M:%%S.%%f'), %d)", sql, 20+fsp)
}

// timeText prints microseconds as TIME.
func timeText(sql string, fsp int) string {
	s := fmt.Sprintf("format('{}{:02d}:{:02d}:{:02d}', CASE WHEN %[1]s < 0 THEN '-' ELSE '' END, abs(%[1]s) // 3600000000, abs(%[1]s) // 60000000 %% 60, abs(%[1]s) // 1000000 %% 60)", sql)
	if fsp > 0 {
		s = fmt.Sprintf("%s || left(format('.{:06d}', abs(%s) %% 1000000), %d)", s, sql, fsp+1)
	}
	return "(CASE WHEN " + sql + " IS NOT NULL THEN " + s + " END)"
}

// texts converts values to strings and finds the collation in which they meet. op is the comparison they are for; empty
// where they are only joined, so that a conflict matters to what is done with the result.
func (t *translator) texts(op string, xs ...expr) ([]expr, collated, error) {
	out := make([]expr, len(xs))
	var c collated
	for i, x := range xs {
		if x.typ.isBit() {
			return nil, c, unsupported("BIT as text")
		}
		out[i] = t.text(x)
		next := out[i].collated()
		if i == 0 {
			c = next
			continue
		}
		if c.coer == None || next.coer == None {
			return nil, c, unsupported("text in which collations conflict together with other text")
		}
		mixed, ok := mixCollations(c, next)
		if !ok || mixed.coer == None && op != "" {
			return nil, c, errMixCollations(out[0], out[i], op)
		}
		mixed.ascii = c.ascii && next.ascii
		c = mixed
	}
	return out, c, nil
}

func (x expr) collated() collated {
	c := collated{coll: x.typ.Collation, coer: x.typ.Coercibility, ascii: x.ascii}
	if x.lit != nil && x.lit.Kind == TextValue {
		c.fits = fitsCharset(x.lit.Text)
	}
	return c
}

// bytes gives the text of a string as a BLOB of its bytes in its character set.
func (x expr) bytes() (string, error) {
	switch {
	case x.phys.k == physBlob:
		return x.sql, nil
	case x.ascii || isUnicode(x.typ.Collation.Charset) || x.typ.Kind == KindNull:
		return "encode(" + x.sql + ")", nil
	}
	return "", unsupported("the bytes of text in character set %s", x.typ.Collation.Charset)
}

// asCollation converts a string to where it is joined with others: bytes when the result is a byte string.
func (x expr) asCollation(c *Collation) (string, error) {
	if c == collationBinary && x.typ.Collation != collationBinary {
		return x.bytes()
	}
	if c != collationBinary && x.phys.k == physBlob {
		return "", unsupported("a byte string joined with text")
	}
	return x.sql, nil
}

func validText(s string) bool { return utf8.ValidString(s) }
