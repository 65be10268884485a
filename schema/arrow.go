package schema

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

// ExactFieldID is the Parquet field id of the hidden column `exact`. Column ids stay below it.
const ExactFieldID = 1 << 30

// ExactName is the Parquet and Arrow name of the hidden column.
const ExactName = "exact"

// NumberFieldID is the Parquet field id of the hidden column of numbers that tell the equal rows of a table without a key
// apart, NumberName its name.
const (
	NumberFieldID = ExactFieldID + 1
	NumberName    = "row_number"
)

const fieldIDKey = "PARQUET:field_id"

// UTC is the Arrow type of TIMESTAMP columns; WallClock that of DATETIME columns.
var (
	UTC       = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	WallClock = &arrow.TimestampType{Unit: arrow.Microsecond}
)

// ArrowType gives the type in which the column's values stand in memory. BIGINT UNSIGNED and BIT(64) are uint64 in
// memory; a part stores them as int64 or decimal(20,0).
func (c *Column) ArrowType() arrow.DataType {
	switch c.Type {
	case TinyInt, SmallInt, MediumInt, Year:
		return arrow.PrimitiveTypes.Int32
	case Int:
		if c.Unsigned {
			return arrow.PrimitiveTypes.Int64
		}
		return arrow.PrimitiveTypes.Int32
	case BigInt, Bit:
		if c.Wide() {
			return arrow.PrimitiveTypes.Uint64
		}
		return arrow.PrimitiveTypes.Int64
	case Decimal:
		if c.Precision > MaxDecimal128 {
			return arrow.BinaryTypes.String
		}
		return &arrow.Decimal128Type{Precision: int32(c.Precision), Scale: int32(c.Scale)}
	case Float:
		return arrow.PrimitiveTypes.Float32
	case Double:
		return arrow.PrimitiveTypes.Float64
	case Date:
		return arrow.FixedWidthTypes.Date32
	case DateTime:
		return WallClock
	case Timestamp:
		return UTC
	case Time:
		return arrow.PrimitiveTypes.Int64
	case Binary, VarBinary, TinyBlob, Blob, MediumBlob, LongBlob, Geometry, Vector:
		return arrow.BinaryTypes.Binary
	default:
		return arrow.BinaryTypes.String
	}
}

// ArrowField gives the column's Arrow field. Every field is nullable (NOT NULL lives in the catalog) and carries the
// column id as its Parquet field id.
func (c *Column) ArrowField() arrow.Field {
	return arrow.Field{Name: c.Name, Type: c.ArrowType(), Nullable: true, Metadata: fieldID(c.ID)}
}

// ExactField gives the field of the hidden column.
func ExactField() arrow.Field {
	return arrow.Field{Name: ExactName, Type: arrow.BinaryTypes.Binary, Nullable: true, Metadata: fieldID(ExactFieldID)}
}

// NumberField gives the field of the hidden column of numbers.
func NumberField() arrow.Field {
	return arrow.Field{Name: NumberName, Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: fieldID(NumberFieldID)}
}

func fieldID(id uint32) arrow.Metadata {
	return arrow.NewMetadata([]string{fieldIDKey}, []string{strconv.FormatUint(uint64(id), 10)})
}

// FieldID reads the Parquet field id of a field made by this package.
func FieldID(f arrow.Field) (uint32, bool) {
	v, ok := f.Metadata.GetValue(fieldIDKey)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(v, 10, 32)
	return uint32(id), err == nil
}

// ArrowSchema gives the in-memory schema of the table's rows, one field a column, in column order.
func (t *Table) ArrowSchema() *arrow.Schema {
	fields := make([]arrow.Field, len(t.Columns))
	for i := range t.Columns {
		fields[i] = t.Columns[i].ArrowField()
	}
	return arrow.NewSchema(fields, nil)
}
