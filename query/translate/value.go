package translate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/tidemarkdb/tidemark/schema"
)

// ValueKind is the type of a constant.
type ValueKind uint8

// The kinds of constants. Decimal, text, bytes and temporal constants stand in Value.Text as MySQL prints them.
const (
	NullValue ValueKind = iota
	IntValue
	UintValue
	DecimalValue
	DoubleValue
	TextValue
	BytesValue
	DateValue
	DateTimeValue
	TimeValue
	// HexValue is a literal 0x41 or b'1': a byte string, or an unsigned integer where a number is wanted.
	HexValue
)

// Value is a constant: a literal, a parameter of a prepared statement, a variable.
type Value struct {
	Kind  ValueKind
	Int   int64
	Uint  uint64
	Float float64
	Text  string
}

// literalExpr makes the expression of a constant with the type that MySQL gives to a literal of the kind.
func (t *translator) literalExpr(v Value) (expr, error) {
	switch v.Kind {
	case NullValue:
		return nullExpr(), nil
	case IntValue:
		return intLiteral(v.Int), nil
	case UintValue:
		return uintLiteral(v.Uint), nil
	case DecimalValue:
		return decimalLiteral(v.Text)
	case DoubleValue:
		return doubleLiteral(v.Float), nil
	case TextValue:
		return t.textLiteral(v.Text), nil
	case BytesValue, HexValue:
		return bytesLiteral(v), nil
	default:
		return temporalLiteral(v)
	}
}

func nullExpr() expr {
	t := Type{Kind: KindNull, Field: mysql.TypeNull, Nullable: true, Collation: collationBinary, Coercibility: Ignorable}
	return expr{sql: "NULL", typ: t, lit: &Value{Kind: NullValue}}
}

func intLiteral(i int64) expr {
	digits := strconv.FormatInt(i, 10)
	n := len(strings.TrimPrefix(digits, "-"))
	ty := intType(n + 1)
	ty.Precision = n
	e := expr{sql: digits, typ: ty, phys: phys{k: physInt64}, lit: &Value{Kind: IntValue, Int: i}}
	if i == math.MinInt64 {
		e.sql = "(-9223372036854775807::BIGINT - 1)"
	} else if i < 0 {
		e.sql = "(" + digits + ")"
	}
	if i >= math.MinInt32 && i <= math.MaxInt32 {
		e.phys.k = physInt32
	}
	return e
}

func uintLiteral(u uint64) expr {
	if u <= math.MaxInt64 {
		return intLiteral(int64(u))
	}
	ty := unsignedType()
	ty.Length = 20
	return expr{sql: strconv.FormatUint(u, 10) + "::UBIGINT", typ: ty, phys: phys{k: physUint64}, lit: &Value{Kind: UintValue, Uint: u}}
}

// decimalLiteral makes DECIMAL(p,s) of a literal such as -12.50: its scale is the digits written.
func decimalLiteral(text string) (expr, error) {
	neg := strings.HasPrefix(text, "-")
	digits := strings.TrimLeft(text, "+-")
	intg, frac, _ := strings.Cut(digits, ".")
	intg = strings.TrimLeft(intg, "0")
	p, s := max(len(intg)+len(frac), 1), len(frac)
	if s > maxDecimalScale || p > maxDuckDecimal {
		return expr{}, unsupported("the DECIMAL literal %s of more than %d digits", text, maxDuckDecimal)
	}
	norm := intg
	if norm == "" {
		norm = "0"
	}
	if s > 0 {
		norm += "." + frac
	}
	if neg {
		norm = "-" + norm
	}
	ty := decimalType(p, s)
	return expr{
		sql: fmt.Sprintf("CAST('%s' AS DECIMAL(%d,%d))", norm, p, s),
		typ: ty, phys: phys{k: physDecimal, p: p, s: s}, lit: &Value{Kind: DecimalValue, Text: norm},
	}, nil
}

func doubleLiteral(f float64) expr {
	ty := doubleType()
	return expr{sql: doubleSQL(f), typ: ty, phys: phys{k: physDouble}, lit: &Value{Kind: DoubleValue, Float: f}}
}

func doubleSQL(f float64) string {
	return "CAST('" + strconv.FormatFloat(f, 'e', -1, 64) + "' AS DOUBLE)"
}

func (t *translator) textLiteral(s string) expr {
	c := collationByName(t.session.Collation)
	ty := textType(utf8.RuneCountInString(s), c, Coercible)
	return expr{sql: quoteText(s), typ: ty, phys: phys{k: physText}, lit: &Value{Kind: TextValue, Text: s}, ascii: isASCII(s)}
}

func bytesLiteral(v Value) expr {
	ty := textType(len(v.Text), collationBinary, Coercible)
	lit := v
	return expr{sql: quoteBytes(v.Text), typ: ty, phys: phys{k: physBlob}, lit: &lit}
}

// temporalLiteral makes the expression of a constant DATE, DATETIME or TIME given in MySQL's text form.
func temporalLiteral(v Value) (expr, error) {
	lit := v
	if v.Kind == TimeValue {
		us, fsp, ok := parseTime(v.Text)
		if !ok {
			return expr{}, errWrongValue("TIME", v.Text)
		}
		return expr{sql: strconv.FormatInt(us, 10) + "::BIGINT", typ: timeType(fsp), phys: phys{k: physMicros}, lit: &lit}, nil
	}
	d, ok := parseDateTime(v.Text)
	if !ok {
		return expr{}, errWrongValue(map[ValueKind]string{DateValue: "DATE", DateTimeValue: "DATETIME"}[v.Kind], v.Text)
	}
	if v.Kind == DateValue {
		return expr{sql: d.dateSQL(), typ: dateType(), phys: phys{k: physDate}, lit: &lit}, nil
	}
	return expr{sql: d.timestampSQL(), typ: datetimeType(d.fsp), phys: phys{k: physTimestamp}, lit: &lit}, nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// quoteText gives a DuckDB string literal. NUL cannot stand in a statement's text, so it is joined in.
func quoteText(s string) string {
	if !strings.ContainsRune(s, 0) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	parts := strings.Split(s, "\x00")
	for i, p := range parts {
		parts[i] = "'" + strings.ReplaceAll(p, "'", "''") + "'"
	}
	return "(" + strings.Join(parts, " || chr(0) || ") + ")"
}

func quoteBytes(s string) string { return fmt.Sprintf("unhex('%X')", s) }

// fitsCharset gives the test whether a constant text can be converted to a character set without loss.
func fitsCharset(s string) func(string) bool {
	return func(charset string) bool {
		if !schema.SupportedCharset(charset) {
			return false
		}
		_, ok := schema.FromUTF8(charset, []byte(s))
		return ok
	}
}

// integerText reads a string that is nothing but an integer.
func integerText(s string) (i int64, ok bool) {
	i, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return i, err == nil
}
