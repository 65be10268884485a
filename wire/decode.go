package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

var errRowDamaged = errors.New("a row does not fit its description")

// SelectList gives the select list under which a table's rows are read: every column by name, invisible and generated
// ones too, in the order of the definition. ENUM and SET come as their numbers, since a label can't tell index 0 from a
// label ”.
func SelectList(t *schema.Table) string {
	var b strings.Builder
	for i := range t.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		name := Identifier(t.Columns[i].Name)
		switch t.Columns[i].Type {
		case schema.Enum, schema.Set:
			b.WriteString("CAST(" + name + " AS UNSIGNED)")
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// kind is how a value of a column lies in a binary row.
type kind uint8

const (
	kindInt8 kind = iota
	kindUint8
	kindInt16
	kindUint16
	kindInt32
	kindUint32
	kindInt64
	kindUint64
	kindFloat
	kindDouble
	kindDecimal
	kindDate
	kindDateTime
	kindTimestamp
	kindTime
	kindBytes
	kindEnum
	kindSet
	kindBit
	kindJSON
)

// kindOf gives a column's kind and the types under which the server may send it.
func kindOf(c *schema.Column) (k kind, types []byte) {
	u := kind(0)
	if c.Unsigned {
		u = 1
	}
	switch c.Type {
	case schema.TinyInt:
		return kindInt8 + u, []byte{mysql.MYSQL_TYPE_TINY}
	case schema.SmallInt:
		return kindInt16 + u, []byte{mysql.MYSQL_TYPE_SHORT}
	case schema.Year:
		return kindInt16, []byte{mysql.MYSQL_TYPE_YEAR}
	case schema.MediumInt:
		return kindInt32 + u, []byte{mysql.MYSQL_TYPE_INT24}
	case schema.Int:
		return kindInt32 + u, []byte{mysql.MYSQL_TYPE_LONG}
	case schema.BigInt:
		return kindInt64 + u, []byte{mysql.MYSQL_TYPE_LONGLONG}
	case schema.Decimal:
		return kindDecimal, []byte{mysql.MYSQL_TYPE_NEWDECIMAL}
	case schema.Float:
		return kindFloat, []byte{mysql.MYSQL_TYPE_FLOAT}
	case schema.Double:
		return kindDouble, []byte{mysql.MYSQL_TYPE_DOUBLE}
	case schema.Date:
		return kindDate, []byte{mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_NEWDATE}
	case schema.DateTime:
		return kindDateTime, []byte{mysql.MYSQL_TYPE_DATETIME}
	case schema.Timestamp:
		return kindTimestamp, []byte{mysql.MYSQL_TYPE_TIMESTAMP}
	case schema.Time:
		return kindTime, []byte{mysql.MYSQL_TYPE_TIME}
	case schema.Enum:
		return kindEnum, []byte{mysql.MYSQL_TYPE_LONGLONG}
	case schema.Set:
		return kindSet, []byte{mysql.MYSQL_TYPE_LONGLONG}
	case schema.Bit:
		return kindBit, []byte{mysql.MYSQL_TYPE_BIT}
	case schema.JSON:
		return kindJSON, []byte{mysql.MYSQL_TYPE_JSON}
	case schema.Geometry:
		return kindBytes, []byte{mysql.MYSQL_TYPE_GEOMETRY}
	case schema.Vector:
		return kindBytes, []byte{mysql.MYSQL_TYPE_VECTOR}
	}
	return kindBytes, []byte{mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_BLOB,
		mysql.MYSQL_TYPE_TINY_BLOB, mysql.MYSQL_TYPE_MEDIUM_BLOB, mysql.MYSQL_TYPE_LONG_BLOB}
}

// MismatchError says that the server describes a column otherwise than the definition we hold: the table was altered.
type MismatchError struct{ Table, Column string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("table %s: column %s is not what its definition says; the table was altered", e.Table, e.Column)
}

// Decoder turns binary rows of SelectList into the columns of a builder.
type Decoder struct {
	table   *schema.Table
	kinds   []kind
	columns []column.Appender
	builder *column.Builder
}

// NewDecoder gives a decoder of t's rows that appends to b. The fields are those of the stream; a *MismatchError says
// that they are not t's columns.
func NewDecoder(t *schema.Table, fields []Field, b *column.Builder) (*Decoder, error) {
	d := &Decoder{table: t, builder: b, kinds: make([]kind, len(t.Columns)), columns: make([]column.Appender, len(t.Columns))}
	if len(fields) != len(t.Columns) {
		return nil, fmt.Errorf("table %s: %d columns came, %d are known", t.FullName(), len(fields), len(t.Columns))
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		k, types := kindOf(c)
		if !bytes.Contains(types, []byte{fields[i].Type}) || c.Type.IsInteger() && c.Unsigned != fields[i].Unsigned {
			return nil, &MismatchError{Table: t.FullName(), Column: c.Name}
		}
		d.kinds[i], d.columns[i] = k, b.Column(i)
	}
	return d, nil
}

// Row appends one row to the builder.
func (d *Decoder) Row(row []byte) error {
	if err := d.Values(row, d.columns); err != nil {
		return err
	}
	d.builder.EndRow()
	return nil
}

// Values gives the values of one row to other appenders than the builder's, one a column.
func (d *Decoder) Values(row []byte, columns []column.Appender) error {
	const bitOffset = 2 // of the NULL bitmap in the binary protocol
	nulls := row[1:]
	values := 1 + (len(d.kinds)+7+bitOffset)/8
	if len(row) < values {
		return d.damaged(0)
	}
	r := rowReader{b: row[values:]}
	for i, k := range d.kinds {
		bit := i + bitOffset
		if nulls[bit/8]&(1<<(bit%8)) != 0 {
			columns[i].Null()
			continue
		}
		r.value(k, columns[i])
		if r.failed {
			return d.damaged(i)
		}
	}
	if len(r.b) != 0 {
		return d.damaged(len(d.kinds) - 1)
	}
	return nil
}

func (d *Decoder) damaged(i int) error {
	return fmt.Errorf("table %s, column %s: %w", d.table.FullName(), d.table.Columns[i].Name, errRowDamaged)
}

// rowReader takes values off the front of a row. Once failed, it gives zero values.
type rowReader struct {
	b      []byte
	failed bool
}

var zeros [8]byte

func (r *rowReader) take(n int) []byte {
	if len(r.b) < n {
		r.failed = true
		r.b = nil
		if n <= len(zeros) {
			return zeros[:n]
		}
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// bytes reads a length-encoded string.
func (r *rowReader) bytes() []byte {
	first := r.take(1)[0]
	switch first {
	case 0xFB, 0xFF:
		r.failed = true
		return nil
	case 0xFC:
		return r.take(int(binary.LittleEndian.Uint16(r.take(2))))
	case 0xFD:
		l := r.take(3)
		return r.take(int(l[0]) | int(l[1])<<8 | int(l[2])<<16)
	case 0xFE:
		n := binary.LittleEndian.Uint64(r.take(8))
		if n > uint64(len(r.b)) {
			r.failed = true
			return nil
		}
		return r.take(int(n))
	}
	return r.take(int(first))
}

func (r *rowReader) value(k kind, a column.Appender) {
	switch k {
	case kindInt8:
		a.Int(int64(int8(r.take(1)[0])))
	case kindUint8:
		a.Uint(uint64(r.take(1)[0]))
	case kindInt16:
		a.Int(int64(int16(binary.LittleEndian.Uint16(r.take(2)))))
	case kindUint16:
		a.Uint(uint64(binary.LittleEndian.Uint16(r.take(2))))
	case kindInt32:
		a.Int(int64(int32(binary.LittleEndian.Uint32(r.take(4)))))
	case kindUint32:
		a.Uint(uint64(binary.LittleEndian.Uint32(r.take(4))))
	case kindInt64:
		a.Int(int64(binary.LittleEndian.Uint64(r.take(8))))
	case kindUint64:
		a.Uint(binary.LittleEndian.Uint64(r.take(8)))
	case kindFloat:
		a.Float(math.Float32frombits(binary.LittleEndian.Uint32(r.take(4))))
	case kindDouble:
		a.Double(math.Float64frombits(binary.LittleEndian.Uint64(r.take(8))))
	case kindDecimal:
		a.DecimalText(r.bytes())
	case kindDate:
		t := r.dateTime()
		a.Date(t.year, t.month, t.day)
	case kindDateTime:
		t := r.dateTime()
		a.DateTime(t.year, t.month, t.day, t.hour, t.minute, t.second, t.us)
	case kindTimestamp:
		t := r.dateTime()
		a.Timestamp(t.unix(), t.us)
	case kindTime:
		a.Time(r.time())
	case kindBytes:
		a.Bytes(r.bytes())
	case kindEnum:
		a.Enum(int(binary.LittleEndian.Uint64(r.take(8))))
	case kindSet:
		a.Set(binary.LittleEndian.Uint64(r.take(8)))
	case kindBit:
		a.Bit(r.bits())
	case kindJSON:
		a.JSON(r.bytes())
	}
}

func (r *rowReader) bits() uint64 {
	b := r.bytes()
	if len(b) > 8 {
		r.failed = true
		return 0
	}
	v := uint64(0)
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// moment is a date and time as the protocol has it.
type moment struct{ year, month, day, hour, minute, second, us int }

// dateTime reads the packed form, in which trailing zero parts are left out: 0, 4, 7 or 11 bytes.
func (r *rowReader) dateTime() (m moment) {
	size := int(r.take(1)[0])
	if size != 0 && size != 4 && size != 7 && size != 11 {
		r.failed = true
		return m
	}
	b := r.take(size)
	if r.failed || size == 0 {
		return m
	}
	m.year, m.month, m.day = int(binary.LittleEndian.Uint16(b)), int(b[2]), int(b[3])
	if m.month > 12 {
		r.failed = true
		return moment{}
	}
	if size >= 7 {
		m.hour, m.minute, m.second = int(b[4]), int(b[5]), int(b[6])
	}
	if size == 11 {
		m.us = int(binary.LittleEndian.Uint32(b[7:]))
	}
	return m
}

// unix gives the seconds since 1970 of a moment in UTC; 0 for MySQL's zero date.
func (m moment) unix() int64 {
	if m.year == 0 {
		return 0
	}
	return int64(column.DaysFromCivil(m.year, m.month, m.day))*86400 + int64(m.hour*3600+m.minute*60+m.second)
}

// time reads a TIME: 0, 8 or 12 bytes.
func (r *rowReader) time() int64 {
	size := int(r.take(1)[0])
	if size == 0 {
		return 0
	}
	if size != 8 && size != 12 {
		r.failed = true
		return 0
	}
	b := r.take(size)
	if r.failed {
		return 0
	}
	hours := int64(binary.LittleEndian.Uint32(b[1:]))*24 + int64(b[5])
	us := ((hours*60+int64(b[6]))*60 + int64(b[7])) * 1_000_000
	if size == 12 {
		us += int64(binary.LittleEndian.Uint32(b[8:]))
	}
	if b[0] != 0 {
		us = -us
	}
	return us
}
