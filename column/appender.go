// Package column turns MySQL values into columns: Arrow arrays, the exact form of what an array can't hold, and the
// bytes of each row's key. It is the only way in for rows: the snapshot and the binlog stream call the same methods of
// [Appender], so that a value arrives identical on both ways.
package column

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemarkdb/tidemark/schema"
)

// Appender takes the values of one column, one a row. Which methods a column takes follows from its type; another
// method, or a value that the type can't have, is a sticky error of the builder it belongs to.
type Appender interface {
	Null()
	// Int takes signed integers and YEAR (0 is the year 0000).
	Int(v int64)
	// Uint takes unsigned integers.
	Uint(v uint64)
	Float(v float32)
	Double(v float64)
	// Decimal takes the value without its point, at the column's scale; only for precisions up to 38.
	Decimal(v decimal128.Num)
	// DecimalText takes [-]digits[.digits] of any precision, with no more fractional digits than the column's scale.
	DecimalText(v []byte)
	// Date and DateTime take the parts as MySQL stores them: zero, partial and invalid dates included. us is
	// microseconds.
	Date(year, month, day int)
	DateTime(year, month, day, hour, minute, second, us int)
	// Timestamp takes Unix seconds and microseconds, UTC; 0, 0 is MySQL's zero timestamp.
	Timestamp(sec int64, us int)
	// Time takes signed microseconds.
	Time(us int64)
	// Bytes takes the stored bytes of text (in the column's character set) and of binary types. b is copied.
	Bytes(b []byte)
	// Enum takes the index of a label, from 1; 0 is MySQL's error value, which prints as ''.
	Enum(index int)
	// Set takes the mask of the labels.
	Set(mask uint64)
	// Bit takes the bits as a number.
	Bit(v uint64)
	// JSON takes MySQL's own text form, UTF-8. b is copied.
	JSON(b []byte)
}

// ValueError says which value could not be taken. It carries no value (values may be personal data).
type ValueError struct {
	Table, Column string
	Reason        string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("table %s, column %s: %s", e.Table, e.Column, e.Reason)
}

// host collects what the columns of one row set share: the first error, the exact values, the byte count.
type host struct {
	table *schema.Table
	err   error
	// exact holds the exact values of the row being built, in the form of AppendExact.
	exact []byte
	bytes int
}

// base refuses every method; each kind of column embeds it and takes what it can.
type base struct {
	host *host
	col  *schema.Column
}

func (b *base) fail(reason string, args ...any) {
	if b.host.err == nil {
		b.host.err = &ValueError{Table: b.host.table.FullName(), Column: b.col.Name, Reason: fmt.Sprintf(reason, args...)}
	}
}

func (b *base) refuse(kind string) {
	b.fail("a value of kind %s can't be stored as %s", kind, b.col.ColumnType)
}

func (b *base) setExact(text []byte) {
	b.host.exact = AppendExact(b.host.exact, b.col.ID, text)
}

func (b *base) Null()                            { b.refuse("NULL") }
func (b *base) Int(int64)                        { b.refuse("signed integer") }
func (b *base) Uint(uint64)                      { b.refuse("unsigned integer") }
func (b *base) Float(float32)                    { b.refuse("FLOAT") }
func (b *base) Double(float64)                   { b.refuse("DOUBLE") }
func (b *base) Decimal(decimal128.Num)           { b.refuse("DECIMAL") }
func (b *base) DecimalText([]byte)               { b.refuse("DECIMAL") }
func (b *base) Date(_, _, _ int)                 { b.refuse("DATE") }
func (b *base) DateTime(_, _, _, _, _, _, _ int) { b.refuse("DATETIME") }
func (b *base) Timestamp(int64, int)             { b.refuse("TIMESTAMP") }
func (b *base) Time(int64)                       { b.refuse("TIME") }
func (b *base) Bytes([]byte)                     { b.refuse("text or binary") }
func (b *base) Enum(int)                         { b.refuse("ENUM") }
func (b *base) Set(uint64)                       { b.refuse("SET") }
func (b *base) Bit(uint64)                       { b.refuse("BIT") }
func (b *base) JSON([]byte)                      { b.refuse("JSON") }
