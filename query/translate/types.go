package translate

import (
	"fmt"

	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/schema"
)

// Kind is the class of a MySQL expression: how its values compare and compute.
type Kind uint8

// The kinds. A YEAR is an integer, ENUM and SET are strings, BIT is an unsigned integer; Type.Field tells them apart.
const (
	KindNull Kind = iota
	KindInt
	KindDecimal
	KindDouble
	KindString
	KindDate
	KindDateTime
	KindTime
	KindJSON
)

// NotFixed is the Scale of a floating point value that has no fixed number of decimals.
const NotFixed = mysql.NotFixedDec

// Limits of MySQL's DECIMAL.
const (
	maxDecimalPrecision = 65
	maxDecimalScale     = 30
	maxDuckDecimal      = schema.MaxDecimal128
)

// Type is the MySQL type of an expression, as resolution of the statement finds it.
type Type struct {
	Kind Kind
	// Field is the type byte of the protocol, such as mysql.TypeLonglong.
	Field    byte
	Unsigned bool
	// Zerofill is the width to which a ZEROFILL column is padded; 0: none.
	Zerofill int
	// Precision and Scale are the digits of a DECIMAL; Scale is also the fsp of a temporal value and NotFixed for a
	// floating point value of no fixed scale. Precision is the number of digits an integer may have.
	Precision int
	Scale     int
	// Length is the display length in characters, bytes for binary strings.
	Length   int
	Nullable bool
	// Collation and Coercibility matter for strings only. The collation "binary" marks byte strings.
	Collation    *Collation
	Coercibility Coercibility
	// Elements are the labels of an ENUM or SET.
	Elements []string
}

// temporal tells DATE, DATETIME, TIMESTAMP and TIME.
func (t *Type) temporal() bool {
	return t.Kind == KindDate || t.Kind == KindDateTime || t.Kind == KindTime
}

func (t *Type) isYear() bool { return t.Field == mysql.TypeYear }
func (t *Type) isBit() bool  { return t.Field == mysql.TypeBit }
func (t *Type) isEnum() bool { return t.Field == mysql.TypeEnum }
func (t *Type) isSet() bool  { return t.Field == mysql.TypeSet }

// isBytes tells a byte string: BINARY, VARBINARY, BLOB and expressions made of them.
func (t *Type) isBytes() bool { return t.Kind == KindString && t.Collation == collationBinary }

// isText tells a character string, ENUM and SET included.
func (t *Type) isText() bool { return t.Kind == KindString && t.Collation != collationBinary }

// physKind is the DuckDB type of an expression's SQL text.
type physKind uint8

const (
	physNull physKind = iota
	physBool
	physInt32
	physInt64
	physUint64
	physDecimal
	physDecimalText // DECIMAL of more than 38 digits as exact text
	physFloat
	physDouble
	physText
	physBlob
	physDate
	physTimestamp
	physMicros // TIME as signed microseconds in a BIGINT
)

// phys is the DuckDB type; p and s are those of a DECIMAL. The s of a DECIMAL may be larger than the MySQL scale:
// AVG keeps digits that MySQL also keeps inside a query block and drops when it shows the value.
type phys struct {
	k    physKind
	p, s int
}

func (p phys) String() string {
	switch p.k {
	case physBool:
		return "BOOLEAN"
	case physInt32:
		return "INTEGER"
	case physInt64, physMicros:
		return "BIGINT"
	case physUint64:
		return "UBIGINT"
	case physDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", p.p, p.s)
	case physFloat:
		return "FLOAT"
	case physDouble:
		return "DOUBLE"
	case physBlob:
		return "BLOB"
	case physDate:
		return "DATE"
	case physTimestamp:
		return "TIMESTAMP"
	case physNull:
		return "NULL"
	default:
		return "VARCHAR"
	}
}

// Types of results that many functions share.

func intType(length int) Type {
	return Type{Kind: KindInt, Field: mysql.TypeLonglong, Length: length, Precision: min(length, 19)}
}

func boolType() Type { return intType(1) }

func bigintType() Type { return intType(21) }

func unsignedType() Type {
	t := intType(21)
	t.Unsigned = true
	t.Precision = 20
	return t
}

func doubleType() Type {
	return Type{Kind: KindDouble, Field: mysql.TypeDouble, Length: 23, Scale: NotFixed}
}

func decimalType(precision, scale int) Type {
	scale = min(scale, maxDecimalScale)
	precision = max(min(precision, maxDecimalPrecision), scale)
	t := Type{Kind: KindDecimal, Field: mysql.TypeNewDecimal, Precision: precision, Scale: scale}
	t.Length = decimalLength(precision, scale, false)
	return t
}

// decimalLength is my_decimal_precision_to_length: digits, a point and a sign.
func decimalLength(precision, scale int, unsigned bool) int {
	n := precision
	if scale > 0 {
		n++
	}
	if !unsigned && precision > 0 {
		n++
	}
	return n
}

func dateType() Type {
	return Type{Kind: KindDate, Field: mysql.TypeDate, Length: 10}
}

func datetimeType(fsp int) Type {
	return Type{Kind: KindDateTime, Field: mysql.TypeDatetime, Scale: fsp, Length: fspLength(19, fsp)}
}

func timeType(fsp int) Type {
	return Type{Kind: KindTime, Field: mysql.TypeDuration, Scale: fsp, Length: fspLength(10, fsp)}
}

func fspLength(n, fsp int) int {
	if fsp > 0 {
		return n + 1 + fsp
	}
	return n
}

func textType(length int, c *Collation, coercibility Coercibility) Type {
	return Type{Kind: KindString, Field: mysql.TypeVarString, Length: length, Scale: NotFixed, Collation: c, Coercibility: coercibility}
}

// columnType gives the MySQL type and the DuckDB type of a table's column. fits tells that all values of a 64-bit
// unsigned column are below 1<<63 in the version that is read, so that the engine gives a BIGINT.
func columnType(c *schema.Column, fits bool) (Type, phys) {
	t := Type{Unsigned: c.Unsigned, Nullable: c.Nullable, Coercibility: Implicit, Field: fieldByte(c.Type)}
	switch {
	case c.Type.IsInteger() || c.Type == schema.Bit || c.Type == schema.Year:
		return integerColumn(c, t, fits)
	case c.Type == schema.Decimal:
		return decimalColumn(c, t)
	case c.Type == schema.Float:
		t.Kind, t.Length, t.Scale, t.Zerofill = KindDouble, 12, floatScale(c), floatZerofill(c)
		return t, phys{k: physFloat}
	case c.Type == schema.Double:
		t.Kind, t.Length, t.Scale, t.Zerofill = KindDouble, 22, floatScale(c), floatZerofill(c)
		return t, phys{k: physDouble}
	case c.Type == schema.Date:
		t.Kind, t.Length = KindDate, 10
		return t, phys{k: physDate}
	case c.Type == schema.DateTime || c.Type == schema.Timestamp:
		t.Kind, t.Scale, t.Length = KindDateTime, c.FSP, fspLength(19, c.FSP)
		return t, phys{k: physTimestamp}
	case c.Type == schema.Time:
		t.Kind, t.Scale, t.Length = KindTime, c.FSP, fspLength(10, c.FSP)
		return t, phys{k: physMicros}
	case c.Type == schema.JSON:
		t.Kind, t.Length = KindJSON, 1<<32-1
		t.Collation = collationByName("utf8mb4_bin")
		return t, phys{k: physText}
	default:
		return stringColumn(c, t)
	}
}

func integerColumn(c *schema.Column, t Type, fits bool) (Type, phys) {
	t.Kind = KindInt
	t.Precision, t.Length = integerDigits(c)
	if c.Zerofill {
		t.Zerofill = max(c.Length, 1)
		if c.Length == 0 {
			t.Zerofill = t.Length
		}
	}
	switch {
	case c.Type == schema.Bit:
		t.Unsigned = true
		t.Length = c.Length
		if c.Wide() && !fits {
			return t, phys{k: physUint64}
		}
		return t, phys{k: physInt64}
	case c.Wide() && !fits:
		return t, phys{k: physUint64}
	case c.Type == schema.BigInt || c.Type == schema.Int && c.Unsigned:
		return t, phys{k: physInt64}
	}
	if c.Type == schema.Year {
		t.Unsigned, t.Zerofill = true, 4
	}
	return t, phys{k: physInt32}
}

// integerDigits gives the digits that values of the column may have and the length of its printed form.
func integerDigits(c *schema.Column) (digits, length int) {
	sign := 1
	if c.Unsigned {
		sign = 0
	}
	switch c.Type {
	case schema.TinyInt:
		return 3, 3 + sign
	case schema.SmallInt:
		return 5, 5 + sign
	case schema.MediumInt:
		return 8 - sign, 8 + sign - sign
	case schema.Int:
		return 10, 10 + sign
	case schema.Year:
		return 4, 4
	case schema.BigInt:
		return 20 - sign, 20
	default:
		return 20, c.Length
	}
}

func decimalColumn(c *schema.Column, t Type) (Type, phys) {
	t.Kind, t.Precision, t.Scale = KindDecimal, c.Precision, c.Scale
	t.Length = decimalLength(c.Precision, c.Scale, c.Unsigned)
	if c.Zerofill {
		t.Zerofill = t.Length
	}
	if c.Precision > maxDuckDecimal {
		return t, phys{k: physDecimalText}
	}
	return t, phys{k: physDecimal, p: c.Precision, s: c.Scale}
}

func floatScale(c *schema.Column) int {
	if c.Scale == schema.FloatUnscaled {
		return NotFixed
	}
	return c.Scale
}

func floatZerofill(c *schema.Column) int {
	if !c.Zerofill {
		return 0
	}
	return c.Length
}

func stringColumn(c *schema.Column, t Type) (Type, phys) {
	t.Kind, t.Elements, t.Scale = KindString, c.Elements, 0
	t.Length = stringLength(c)
	if c.Type.IsBinary() {
		t.Collation = collationBinary
		return t, phys{k: physBlob}
	}
	t.Collation = collationByName(c.Collation)
	return t, phys{k: physText}
}

func stringLength(c *schema.Column) int {
	switch c.Type {
	case schema.TinyText, schema.TinyBlob:
		return 1<<8 - 1
	case schema.Text, schema.Blob:
		return 1<<16 - 1
	case schema.MediumText, schema.MediumBlob:
		return 1<<24 - 1
	case schema.LongText, schema.LongBlob, schema.Geometry:
		return 1<<32 - 1
	case schema.Enum, schema.Set:
		return labelsLength(c)
	default:
		return c.Length
	}
}

// labelsLength is the longest label of an ENUM, or all labels of a SET joined by commas.
func labelsLength(c *schema.Column) int {
	longest, all := 0, 0
	for _, e := range c.Elements {
		n := len([]rune(e))
		longest = max(longest, n)
		all += n + 1
	}
	if c.Type == schema.Enum {
		return longest
	}
	return max(all-1, 0)
}

var fieldBytes = map[schema.Type]byte{
	schema.TinyInt: mysql.TypeTiny, schema.SmallInt: mysql.TypeShort, schema.MediumInt: mysql.TypeInt24,
	schema.Int: mysql.TypeLong, schema.BigInt: mysql.TypeLonglong, schema.Decimal: mysql.TypeNewDecimal,
	schema.Float: mysql.TypeFloat, schema.Double: mysql.TypeDouble, schema.Bit: mysql.TypeBit,
	schema.Date: mysql.TypeDate, schema.DateTime: mysql.TypeDatetime, schema.Timestamp: mysql.TypeTimestamp,
	schema.Time: mysql.TypeDuration, schema.Year: mysql.TypeYear,
	schema.Char: mysql.TypeString, schema.VarChar: mysql.TypeVarString, schema.Binary: mysql.TypeString, schema.VarBinary: mysql.TypeVarString,
	schema.TinyText: mysql.TypeBlob, schema.Text: mysql.TypeBlob, schema.MediumText: mysql.TypeBlob, schema.LongText: mysql.TypeBlob,
	schema.TinyBlob: mysql.TypeBlob, schema.Blob: mysql.TypeBlob, schema.MediumBlob: mysql.TypeBlob, schema.LongBlob: mysql.TypeBlob,
	schema.Enum: mysql.TypeEnum, schema.Set: mysql.TypeSet, schema.JSON: mysql.TypeJSON, schema.Geometry: mysql.TypeGeometry,
	schema.Vector: byte(field.Vector),
}

func fieldByte(t schema.Type) byte { return fieldBytes[t] }
