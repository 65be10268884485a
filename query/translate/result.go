package translate

import (
	"strconv"

	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/tidemarkdb/tidemark/query/field"
)

// Format says how a DuckDB value is printed as MySQL prints the column.
type Format uint8

// The formats, with the DuckDB types they print.
const (
	FormatNull        Format = iota // VARCHAR that is always NULL
	FormatInt                       // INTEGER, BIGINT
	FormatUint                      // UBIGINT
	FormatDecimal                   // DECIMAL(p,s), s = Decimals
	FormatDecimalText               // VARCHAR that has the digits
	FormatFloat                     // FLOAT
	FormatDouble                    // DOUBLE; an infinite one is MySQL's error 1690
	FormatText                      // VARCHAR
	FormatBytes                     // BLOB
	FormatDate                      // DATE
	FormatDateTime                  // TIMESTAMP with Decimals digits of the second's fraction
	FormatTime                      // BIGINT microseconds with Decimals digits of the second's fraction
	FormatYear                      // INTEGER, four digits
	FormatBit                       // BIGINT or UBIGINT as (Length+7)/8 bytes, the highest first
)

// ResultColumn is a column of a result.
type ResultColumn struct {
	field.Field
	Format Format
	// Zerofill is the width to which an integer or decimal is padded with zeros; 0: not at all.
	Zerofill int
	// Exact is the index in the DuckDB result of a hidden BLOB column with this column's exact values under ColumnID;
	// 0: there is none. A value it has for a row stands for the column's own.
	Exact    int
	ColumnID uint32
	// StoredCharset is the character set of exact values of text, which are stored bytes; "" for other types.
	StoredCharset string
}

// result describes a column of the outermost query.
func (o *outColumn) result() ResultColumn {
	x := &o.e
	r := ResultColumn{Format: x.format(), Zerofill: x.typ.Zerofill}
	c := x.col
	if c != nil && c.def != nil {
		table := c.src.read.info.Table
		r.Field = field.Of(table, table.ColumnByID(c.def.ID), field.UTF8MB4)
		r.Table, r.Database = c.src.name, c.src.db
		if x.typ.Nullable {
			r.Flags &^= field.NotNull
		}
		if o.exact > 0 {
			r.Exact, r.ColumnID, r.StoredCharset = o.exact-1, c.def.ID, c.def.Charset
		}
	} else {
		r.Field = x.typ.field()
		if c != nil {
			r.Table, r.OrgName = c.src.name, c.name
		}
	}
	r.Name = o.name
	return r
}

func (x *expr) format() Format {
	switch {
	case x.typ.Kind == KindNull:
		return FormatNull
	case x.typ.isBit():
		return FormatBit
	case x.typ.isYear() && x.typ.Zerofill > 0:
		return FormatYear
	}
	switch x.phys.k {
	case physUint64:
		return FormatUint
	case physDecimal:
		return FormatDecimal
	case physDecimalText:
		return FormatDecimalText
	case physFloat:
		return FormatFloat
	case physDouble:
		return FormatDouble
	case physBlob:
		return FormatBytes
	case physDate:
		return FormatDate
	case physTimestamp:
		return FormatDateTime
	case physMicros:
		return FormatTime
	case physText:
		return FormatText
	}
	return FormatInt
}

const maxBytesPerChar = 4

// field gives the column definition of an expression.
func (t *Type) field() field.Field {
	f := field.Field{Type: field.Type(t.protocolType()), Charset: field.Binary, Length: uint32(t.Length), Decimals: t.decimals()}
	if !t.Nullable {
		f.Flags |= field.NotNull
	}
	if t.Unsigned {
		f.Flags |= field.Unsigned
	}
	if t.isText() || t.Kind == KindJSON {
		f.Charset = field.UTF8MB4
		f.Length = uint32(min(t.Length*maxBytesPerChar, 1<<32-1))
	} else {
		f.Flags |= field.BinaryFlag
	}
	switch {
	case t.isEnum():
		f.Flags |= field.EnumFlag
	case t.isSet():
		f.Flags |= field.SetFlag
	case t.Field == mysql.TypeBlob || t.Field == mysql.TypeJSON:
		f.Flags |= field.BlobFlag
	}
	if t.Zerofill > 0 {
		f.Flags |= field.Zerofill
	}
	return f
}

func (t *Type) protocolType() byte {
	switch {
	case t.isEnum() || t.isSet():
		return mysql.TypeString
	default:
		return t.Field
	}
}

func (t *Type) decimals() uint8 {
	if t.Kind == KindString && t.Coercibility == Implicit {
		return 0
	}
	return uint8(t.Scale)
}

func itoa(n int) string { return strconv.Itoa(n) }
