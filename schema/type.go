package schema

import "fmt"

// Type is a MySQL column type. Length, signedness and the like stand on [Column].
type Type uint8

// The MySQL types. The zero Type is invalid. The numbers are stored in the catalog and never change.
const (
	Invalid Type = iota
	TinyInt
	SmallInt
	MediumInt
	Int
	BigInt
	Decimal
	Float
	Double
	Bit
	Date
	DateTime
	Timestamp
	Time
	Year
	Char
	VarChar
	TinyText
	Text
	MediumText
	LongText
	Binary
	VarBinary
	TinyBlob
	Blob
	MediumBlob
	LongBlob
	Enum
	Set
	JSON
	Geometry
	Vector
)

var typeNames = [...]string{
	Invalid: "invalid", TinyInt: "tinyint", SmallInt: "smallint", MediumInt: "mediumint", Int: "int", BigInt: "bigint",
	Decimal: "decimal", Float: "float", Double: "double", Bit: "bit",
	Date: "date", DateTime: "datetime", Timestamp: "timestamp", Time: "time", Year: "year",
	Char: "char", VarChar: "varchar", TinyText: "tinytext", Text: "text", MediumText: "mediumtext", LongText: "longtext",
	Binary: "binary", VarBinary: "varbinary", TinyBlob: "tinyblob", Blob: "blob", MediumBlob: "mediumblob", LongBlob: "longblob",
	Enum: "enum", Set: "set", JSON: "json", Geometry: "geometry", Vector: "vector",
}

// String gives the type's name as information_schema.COLUMNS.DATA_TYPE spells it.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// ParseType reads a DATA_TYPE of information_schema.COLUMNS. The subtypes of GEOMETRY give Geometry.
func ParseType(dataType string) (Type, error) {
	for t, name := range typeNames {
		if name == dataType && Type(t) != Invalid {
			return Type(t), nil
		}
	}
	switch dataType {
	case "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection", "geometrycollection":
		return Geometry, nil
	}
	return Invalid, fmt.Errorf("unknown column type %q", dataType)
}

// IsInteger tells TINYINT..BIGINT.
func (t Type) IsInteger() bool { return t >= TinyInt && t <= BigInt }

// IsText tells the types whose values are text in the column's character set: CHAR, VARCHAR and the TEXT types.
func (t Type) IsText() bool { return t >= Char && t <= LongText }

// IsBinary tells the types whose values are bytes: BINARY, VARBINARY, the BLOB types, GEOMETRY (SRID and WKB) and VECTOR (floats).
func (t Type) IsBinary() bool { return t >= Binary && t <= LongBlob || t == Geometry || t == Vector }

// IsTemporal tells DATE, DATETIME, TIMESTAMP, TIME and YEAR.
func (t Type) IsTemporal() bool { return t >= Date && t <= Year }

// Supported tells whether columns of this type can be materialized.
func (t Type) Supported() bool { return t >= TinyInt && t <= Vector }

// SupportedKey tells whether columns of this type can be part of a key.
func (t Type) SupportedKey() bool { return t.Supported() && t < JSON }
