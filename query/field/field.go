// Package field describes columns of results as MySQL's protocol does: type byte, length, character set, flags, decimals.
package field

import (
	"unicode/utf8"

	"github.com/tidemarkdb/tidemark/schema"
)

// Field is a column definition of the protocol.
type Field struct {
	Database, Table, OrgTable string
	Name, OrgName             string
	Charset                   uint16 // collation id; Binary for numbers, dates and bytes
	Length                    uint32 // bytes of the longest value, or display width
	Type                      Type
	Flags                     Flags
	Decimals                  uint8 // 31: a floating-point number of any number of digits
}

// Type is a type byte of the protocol.
type Type uint8

// The types that a server sends.
const (
	Tiny       Type = 1
	Short      Type = 2
	Long       Type = 3
	Float      Type = 4
	Double     Type = 5
	Null       Type = 6
	Timestamp  Type = 7
	LongLong   Type = 8
	Int24      Type = 9
	Date       Type = 10
	Time       Type = 11
	DateTime   Type = 12
	Year       Type = 13
	Bit        Type = 16
	JSON       Type = 245
	NewDecimal Type = 246
	TinyBlob   Type = 249
	MediumBlob Type = 250
	LongBlob   Type = 251
	Blob       Type = 252
	VarString  Type = 253
	String     Type = 254
	Geometry   Type = 255
	Vector     Type = 242
)

// Flags are the flags of a column definition.
type Flags uint16

// The flags, by MySQL's names.
const (
	NotNull        Flags = 1
	PrimaryKey     Flags = 2
	UniqueKey      Flags = 4
	MultipleKey    Flags = 8
	BlobFlag       Flags = 16
	Unsigned       Flags = 32
	Zerofill       Flags = 64
	BinaryFlag     Flags = 128
	EnumFlag       Flags = 256
	AutoIncrement  Flags = 512
	TimestampFlag  Flags = 1024
	SetFlag        Flags = 2048
	NoDefaultValue Flags = 4096
	OnUpdateNow    Flags = 8192
	PartOfKey      Flags = 16384
)

// Collation ids that matter here.
const (
	Binary     uint16 = 63
	UTF8MB4    uint16 = 255 // utf8mb4_0900_ai_ci
	UTF8MB3    uint16 = 33  // utf8mb3_general_ci
	UTF8MB3Bin uint16 = 83  // utf8mb3_bin
)

// AnyDecimals is the Decimals of floating-point values.
const AnyDecimals = 31

const maxLength = 1<<32 - 1

// widths of the integer types, signed and unsigned, when none is declared
var intWidth = map[schema.Type][2]uint32{
	schema.TinyInt: {4, 3}, schema.SmallInt: {6, 5}, schema.MediumInt: {9, 8}, schema.Int: {11, 10}, schema.BigInt: {20, 20},
}

var types = map[schema.Type]Type{
	schema.TinyInt: Tiny, schema.SmallInt: Short, schema.MediumInt: Int24, schema.Int: Long, schema.BigInt: LongLong,
	schema.Decimal: NewDecimal, schema.Float: Float, schema.Double: Double, schema.Bit: Bit,
	schema.Date: Date, schema.DateTime: DateTime, schema.Timestamp: Timestamp, schema.Time: Time, schema.Year: Year,
	schema.Char: String, schema.VarChar: VarString, schema.Binary: String, schema.VarBinary: VarString,
	schema.TinyText: Blob, schema.Text: Blob, schema.MediumText: Blob, schema.LongText: Blob,
	schema.TinyBlob: Blob, schema.Blob: Blob, schema.MediumBlob: Blob, schema.LongBlob: Blob,
	schema.Enum: String, schema.Set: String, schema.JSON: JSON, schema.Geometry: Geometry, schema.Vector: Vector,
}

var blobLength = map[schema.Type]uint32{
	schema.TinyText: 255, schema.Text: 65535, schema.MediumText: 1<<24 - 1, schema.LongText: maxLength,
	schema.TinyBlob: 255, schema.Blob: 65535, schema.MediumBlob: 1<<24 - 1, schema.LongBlob: maxLength,
	schema.JSON: maxLength, schema.Geometry: maxLength,
}

// Of gives the definition that MySQL sends for column i of a table when results are sent in utf8mb4 with the collation
// of that id (see [Field.Charset]).
func Of(t *schema.Table, i int, results uint16) Field {
	c := &t.Columns[i]
	f := Field{
		Database: t.Database, Table: t.Name, OrgTable: t.Name, Name: c.Name, OrgName: c.Name,
		Charset: Binary, Type: types[c.Type], Length: length(c), Flags: flags(t, i), Decimals: decimals(c),
	}
	if HasText(c.Type) {
		f.Charset = results
	}
	return f
}

// HasText tells the types whose values are sent in the results' character set.
func HasText(t schema.Type) bool { return t.IsText() || t == schema.Enum || t == schema.Set }

func decimals(c *schema.Column) uint8 {
	switch c.Type {
	case schema.Decimal:
		return uint8(c.Scale)
	case schema.Vector:
		return AnyDecimals
	case schema.Float, schema.Double:
		if c.Scale == schema.FloatUnscaled {
			return AnyDecimals
		}
		return uint8(c.Scale)
	case schema.DateTime, schema.Timestamp, schema.Time:
		return uint8(c.FSP)
	}
	return 0
}

// utf8mb4Max is the number of bytes of the longest character in which results are sent.
const utf8mb4Max = 4

func length(c *schema.Column) uint32 {
	if w, ok := intWidth[c.Type]; ok {
		return intLength(c, w)
	}
	switch c.Type {
	case schema.Decimal:
		return decimalLength(c)
	case schema.Float, schema.Double:
		return floatLength(c)
	case schema.Char, schema.VarChar:
		return uint32(c.Length) * utf8mb4Max
	case schema.Enum, schema.Set:
		return labelsLength(c) * utf8mb4Max
	case schema.TinyText, schema.Text, schema.MediumText, schema.LongText:
		return uint32(min(uint64(blobLength[c.Type])*utf8mb4Max, maxLength))
	case schema.Bit, schema.Binary, schema.VarBinary:
		return uint32(c.Length)
	case schema.Vector:
		const floatBytes = 4
		return uint32(c.Length) * floatBytes
	case schema.Date:
		return 10
	case schema.Year:
		return 4
	case schema.DateTime, schema.Timestamp:
		return 19 + fraction(c.FSP)
	case schema.Time:
		return 10 + fraction(c.FSP)
	}
	return blobLength[c.Type]
}

func fraction(fsp int) uint32 {
	if fsp == 0 {
		return 0
	}
	return uint32(fsp) + 1
}

func intLength(c *schema.Column, w [2]uint32) uint32 {
	if c.Length > 0 {
		return uint32(c.Length)
	}
	if c.Unsigned {
		return w[1]
	}
	return w[0]
}

func decimalLength(c *schema.Column) uint32 {
	n := uint32(c.Precision)
	if c.Scale > 0 {
		n++
	}
	if !c.Unsigned {
		n++
	}
	return n
}

func floatLength(c *schema.Column) uint32 {
	switch {
	case c.Scale != schema.FloatUnscaled:
		return uint32(c.Precision)
	case c.Type == schema.Float:
		return 12
	}
	return 22
}

func labelsLength(c *schema.Column) uint32 {
	longest, sum := 0, 0
	for _, e := range c.Elements {
		n := utf8.RuneCountInString(e)
		longest = max(longest, n)
		sum += n
	}
	if c.Type == schema.Enum {
		return uint32(longest)
	}
	return uint32(sum + max(len(c.Elements)-1, 0))
}

func flags(t *schema.Table, i int) Flags {
	c := &t.Columns[i]
	f := typeFlags(c) | keyFlags(t, c)
	if !c.Nullable {
		f |= NotNull
		if c.Default == nil && !c.AutoIncrement && c.Generated == "" {
			f |= NoDefaultValue
		}
	}
	if c.AutoIncrement {
		f |= AutoIncrement
	}
	if c.OnUpdate != "" && c.Type == schema.Timestamp {
		f |= OnUpdateNow
	}
	return f
}

func typeFlags(c *schema.Column) Flags {
	var f Flags
	if c.Unsigned {
		f |= Unsigned
	}
	if c.Zerofill {
		f |= Zerofill
	}
	switch t := c.Type; {
	case t == schema.Timestamp:
		f |= BinaryFlag
		if c.Default != nil && c.DefaultExpr || c.OnUpdate != "" {
			f |= TimestampFlag
		}
	case t == schema.Date, t == schema.DateTime, t == schema.Time, t.IsBinary():
		f |= BinaryFlag
	case t == schema.Year:
		f |= Unsigned | Zerofill
	case t == schema.Enum:
		f |= EnumFlag
	case t == schema.Set:
		f |= SetFlag
	case t == schema.Bit:
		f |= Unsigned
	}
	if isBinCollation(c.Collation) || c.Type == schema.JSON {
		f |= BinaryFlag
	}
	if _, ok := blobLength[c.Type]; ok || c.Type == schema.Vector {
		f |= BlobFlag
	}
	return f
}

func isBinCollation(name string) bool {
	return len(name) > 4 && name[len(name)-4:] == "_bin"
}

func keyFlags(t *schema.Table, c *schema.Column) Flags {
	var f Flags
	primary := Primary(t)
	for _, ix := range t.Indexes {
		for n, p := range ix.Parts {
			if p.Column != c.ID {
				continue
			}
			f |= PartOfKey
			switch {
			case ix.Name == primary:
				f |= PrimaryKey
			case n > 0:
			case ix.Unique && len(ix.Parts) == 1:
				f |= UniqueKey
			default:
				f |= MultipleKey
			}
		}
	}
	return f
}
