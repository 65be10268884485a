package engine

/*
#include "duckdb_abi.h"
*/
import "C"

import (
	"fmt"
	"math/big"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// TypeID is the kind of a DuckDB type.
type TypeID uint8

// The types that scans, functions and results use. Others are Unknown: they can be computed with inside DuckDB, but
// their values cannot be read.
const (
	Unknown TypeID = iota
	Boolean
	TinyInt
	SmallInt
	Integer
	BigInt
	UTinyInt
	USmallInt
	UInteger
	UBigInt
	HugeInt
	Float
	Double
	Decimal
	Date
	Time        // microseconds of a day
	Timestamp   // microseconds, no zone
	TimestampTZ // microseconds since 1970 UTC
	Interval
	Varchar
	Blob
	List
	Null // the type of a bare NULL; all values are NULL
)

var typeNames = [...]string{
	Unknown: "UNKNOWN", Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT", Integer: "INTEGER", BigInt: "BIGINT",
	UTinyInt: "UTINYINT", USmallInt: "USMALLINT", UInteger: "UINTEGER", UBigInt: "UBIGINT", HugeInt: "HUGEINT",
	Float: "FLOAT", Double: "DOUBLE", Decimal: "DECIMAL", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP",
	TimestampTZ: "TIMESTAMP WITH TIME ZONE", Interval: "INTERVAL", Varchar: "VARCHAR", Blob: "BLOB", List: "LIST", Null: "\"NULL\"",
}

// Type is a DuckDB type.
type Type struct {
	ID    TypeID
	Width uint8 // digits of a Decimal, at most 38
	Scale uint8
	Child *Type // element type of a List
}

// String gives the type as SQL spells it.
func (t Type) String() string {
	switch t.ID {
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Width, t.Scale)
	case List:
		return t.Child.String() + "[]"
	default:
		return typeNames[t.ID]
	}
}

var typeIDs = map[duckdb.Type]TypeID{
	duckdb.TypeBoolean: Boolean, duckdb.TypeTinyInt: TinyInt, duckdb.TypeSmallInt: SmallInt, duckdb.TypeInteger: Integer,
	duckdb.TypeBigInt: BigInt, duckdb.TypeUTinyInt: UTinyInt, duckdb.TypeUSmallInt: USmallInt, duckdb.TypeUInteger: UInteger,
	duckdb.TypeUBigInt: UBigInt, duckdb.TypeHugeInt: HugeInt, duckdb.TypeFloat: Float, duckdb.TypeDouble: Double,
	duckdb.TypeDecimal: Decimal, duckdb.TypeDate: Date, duckdb.TypeTime: Time, duckdb.TypeTimestamp: Timestamp,
	duckdb.TypeTimestampTZ: TimestampTZ, duckdb.TypeInterval: Interval, duckdb.TypeVarchar: Varchar, duckdb.TypeBlob: Blob,
	duckdb.TypeList: List, duckdb.TypeSQLNull: Null,
}

func typeOf(t duckdb.LogicalType) Type {
	out := Type{ID: typeIDs[duckdb.GetTypeId(t)]}
	switch out.ID {
	case Decimal:
		out.Width, out.Scale = duckdb.DecimalWidth(t), duckdb.DecimalScale(t)
	case List:
		child := duckdb.ListTypeChildType(t)
		c := typeOf(child)
		duckdb.DestroyLogicalType(&child)
		out.Child = &c
	}
	return out
}

// logical makes DuckDB's form of the type. It must be destroyed.
func (t Type) logical() duckdb.LogicalType {
	switch t.ID {
	case Decimal:
		return duckdb.CreateDecimalType(t.Width, t.Scale)
	case List:
		child := t.Child.logical()
		defer duckdb.DestroyLogicalType(&child)
		return duckdb.CreateListType(child)
	}
	for d, id := range typeIDs {
		if id == t.ID {
			return duckdb.CreateLogicalType(d)
		}
	}
	return duckdb.CreateLogicalType(duckdb.TypeInvalid)
}

// Vector is one column of a chunk. The slices that its methods give alias DuckDB's memory: they are valid as long as the
// chunk and must not be written, except by the function that computes the vector. Asking for a form that the type
// does not have panics. The value of a row that is NULL is unspecified.
type Vector struct {
	Type     Type
	raw      unsafe.Pointer
	data     unsafe.Pointer
	validity unsafe.Pointer
	rows     int
}

func (v *Vector) set(raw, data, validity unsafe.Pointer, rows int) {
	v.raw, v.data, v.validity, v.rows = raw, data, validity, rows
}

// Len is the number of rows.
func (v *Vector) Len() int { return v.rows }

// Valid tells whether the value of a row is not NULL.
func (v *Vector) Valid(row int) bool {
	if v.validity == nil {
		return true
	}
	words := unsafe.Slice((*uint64)(v.validity), row>>6+1)
	return words[row>>6]>>(row&63)&1 == 1
}

// HasNulls tells whether some value may be NULL.
func (v *Vector) HasNulls() bool { return v.validity != nil }

func values[T any](v *Vector, ok bool) []T {
	if !ok {
		panic(fmt.Sprintf("engine: a vector of type %s has no %T values", v.Type, *new(T)))
	}
	return unsafe.Slice((*T)(v.data), v.rows)
}

// Bools gives the values of BOOLEAN.
func (v *Vector) Bools() []bool { return values[bool](v, v.Type.ID == Boolean) }

// Int8s gives the values of TINYINT.
func (v *Vector) Int8s() []int8 { return values[int8](v, v.Type.ID == TinyInt) }

// Uint8s gives the values of UTINYINT.
func (v *Vector) Uint8s() []uint8 { return values[uint8](v, v.Type.ID == UTinyInt) }

// Int16s gives the values of SMALLINT and the unscaled ones of DECIMAL(1..4).
func (v *Vector) Int16s() []int16 { return values[int16](v, v.Type.ID == SmallInt || v.decimal(1, 4)) }

// Uint16s gives the values of USMALLINT.
func (v *Vector) Uint16s() []uint16 { return values[uint16](v, v.Type.ID == USmallInt) }

// Int32s gives the values of INTEGER, the days since 1970-01-01 of DATE and the unscaled values of DECIMAL(5..9).
func (v *Vector) Int32s() []int32 {
	return values[int32](v, v.Type.ID == Integer || v.Type.ID == Date || v.decimal(5, 9))
}

// Uint32s gives the values of UINTEGER.
func (v *Vector) Uint32s() []uint32 { return values[uint32](v, v.Type.ID == UInteger) }

// Int64s gives the values of BIGINT, the microseconds of TIME and the TIMESTAMPs, the unscaled values of DECIMAL(10..18).
func (v *Vector) Int64s() []int64 {
	id := v.Type.ID
	return values[int64](v, id == BigInt || id == Time || id == Timestamp || id == TimestampTZ || v.decimal(10, 18))
}

// Uint64s gives the values of UBIGINT.
func (v *Vector) Uint64s() []uint64 { return values[uint64](v, v.Type.ID == UBigInt) }

// Float32s gives the values of FLOAT.
func (v *Vector) Float32s() []float32 { return values[float32](v, v.Type.ID == Float) }

// Float64s gives the values of DOUBLE.
func (v *Vector) Float64s() []float64 { return values[float64](v, v.Type.ID == Double) }

// Int128 is a 128-bit signed integer in two's complement.
type Int128 struct {
	Low  uint64
	High int64
}

// Big gives the number as a big integer.
func (n Int128) Big() *big.Int {
	b := new(big.Int).Lsh(big.NewInt(n.High), 64)
	return b.Add(b, new(big.Int).SetUint64(n.Low))
}

// IsInt64 tells whether the number fits an int64, which is then int64(n.Low).
func (n Int128) IsInt64() bool { return n.High == int64(n.Low)>>63 }

// Int128s gives the values of HUGEINT and the unscaled ones of DECIMAL(19..38).
func (v *Vector) Int128s() []Int128 {
	return values[Int128](v, v.Type.ID == HugeInt || v.decimal(19, 38))
}

func (v *Vector) decimal(from, to uint8) bool {
	return v.Type.ID == Decimal && v.Type.Width >= from && v.Type.Width <= to
}

// Unscaled gives one DECIMAL value, whatever its width, as an integer: 1.50 as DECIMAL(9,2) is 150.
func (v *Vector) Unscaled(row int) Int128 {
	switch {
	case v.decimal(1, 4):
		return extend(int64(v.Int16s()[row]))
	case v.decimal(5, 9):
		return extend(int64(v.Int32s()[row]))
	case v.decimal(10, 18):
		return extend(v.Int64s()[row])
	default:
		return v.Int128s()[row]
	}
}

func extend(n int64) Int128 { return Int128{Low: uint64(n), High: n >> 63} }

// IntervalValue is DuckDB's interval: three parts that are not converted into each other.
type IntervalValue struct {
	Months, Days int32
	Micros       int64
}

// Intervals gives the values of INTERVAL.
func (v *Vector) Intervals() []IntervalValue { return values[IntervalValue](v, v.Type.ID == Interval) }

// Bytes gives one VARCHAR (UTF-8) or BLOB value.
func (v *Vector) Bytes(row int) []byte {
	t := &values[C.duckdb_text](v, v.Type.ID == Varchar || v.Type.ID == Blob)[row]
	length := *(*uint32)(unsafe.Pointer(t))
	if length == 0 {
		return []byte{}
	}
	return unsafe.Slice(textBytes(t, length), length)
}

// Where text stands in a duckdb_text, as text_bytes of duckdb_abi.h has it. A call into C for each value would cost more
// than most values.
const (
	maxInlined    = 12
	inlinedOffset = unsafe.Sizeof(uint32(0))
	pointerOffset = 2 * unsafe.Sizeof(uint32(0))
)

func textBytes(t *C.duckdb_text, length uint32) *byte {
	if length <= maxInlined {
		return (*byte)(unsafe.Add(unsafe.Pointer(t), inlinedOffset))
	}
	return *(**byte)(unsafe.Add(unsafe.Pointer(t), pointerOffset))
}

// Text gives one VARCHAR or BLOB value as a string that shares the vector's memory.
func (v *Vector) Text(row int) string {
	b := v.Bytes(row)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Floats gives one value of FLOAT[]. Its elements are never NULL in stored vectors.
func (v *Vector) Floats(row int) []float32 {
	entry := values[[2]uint64](v, v.Type.ID == List && v.Type.Child.ID == Float)[row]
	if entry[1] == 0 {
		return []float32{}
	}
	child := C.duckdb_list_vector_get_child(v.raw)
	data := (*float32)(C.duckdb_vector_get_data(child))
	return unsafe.Slice(data, entry[0]+entry[1])[entry[0]:]
}
