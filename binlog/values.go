package binlog

import (
	"encoding/binary"
	"math"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// columnDecoder reads the values of one column. A value is either of fixed size or has a length in front.
type columnDecoder struct {
	size   int // bytes of a value of fixed size
	prefix int // bytes of the length in front, 0 for fixed size

	// read hands a value, given as its bytes without the length, to its appender. It reports whether they make sense.
	read func(c *columnDecoder, b []byte, to column.Appender) bool

	frac    int // bytes of the fraction of a second
	decimal decimalLayout
	buf     []byte
}

// span is the number of bytes of the value at the start of b, its length included. It may be more than b has.
func (c *columnDecoder) span(b []byte) int {
	if c.prefix == 0 {
		return c.size
	}
	if len(b) < c.prefix {
		return len(b) + 1
	}
	switch c.prefix {
	case 1:
		return 1 + int(b[0])
	case 2:
		return 2 + int(binary.LittleEndian.Uint16(b))
	case 3:
		return 3 + (int(b[0]) | int(b[1])<<8 | int(b[2])<<16)
	}
	return 4 + int(binary.LittleEndian.Uint32(b))
}

// newColumnDecoder makes the decoder of a column whose description fits its definition.
func newColumnDecoder(m *mapColumn, c *schema.Column) columnDecoder {
	switch c.Type {
	case schema.TinyInt:
		return integer(1, c.Unsigned, readInt8, readUint8)
	case schema.SmallInt:
		return integer(2, c.Unsigned, readInt16, readUint16)
	case schema.MediumInt:
		return integer(3, c.Unsigned, readInt24, readUint24)
	case schema.Int:
		return integer(4, c.Unsigned, readInt32, readUint32)
	case schema.BigInt:
		return integer(8, c.Unsigned, readInt64, readUint64)
	case schema.Decimal:
		layout := newDecimalLayout(m.prec, m.scale)
		d := columnDecoder{size: layout.size, decimal: layout, read: readDecimal}
		if m.prec > schema.MaxDecimal128 {
			d.read = readWideDecimal
		}
		return d
	case schema.Float:
		return columnDecoder{size: 4, read: readFloat}
	case schema.Double:
		return columnDecoder{size: 8, read: readDouble}
	case schema.Bit:
		return columnDecoder{size: m.length, read: readBit}
	case schema.Date:
		return columnDecoder{size: 3, read: readDate}
	case schema.DateTime:
		return columnDecoder{size: 5 + fracBytes(m.fsp), frac: fracBytes(m.fsp), read: readDateTime}
	case schema.Timestamp:
		return columnDecoder{size: 4 + fracBytes(m.fsp), frac: fracBytes(m.fsp), read: readTimestamp}
	case schema.Time:
		return columnDecoder{size: 3 + fracBytes(m.fsp), frac: fracBytes(m.fsp), read: readTime}
	case schema.Year:
		return columnDecoder{size: 1, read: readYear}
	case schema.Enum:
		return columnDecoder{size: m.length, read: readEnum}
	case schema.Set:
		return columnDecoder{size: m.length, read: readSet}
	case schema.JSON:
		return columnDecoder{prefix: m.length, read: readJSON}
	}
	return columnDecoder{prefix: lengthPrefix(m), read: readBytes}
}

type readFunc = func(c *columnDecoder, b []byte, to column.Appender) bool

func integer(size int, unsigned bool, signedRead, unsignedRead readFunc) columnDecoder {
	if unsigned {
		return columnDecoder{size: size, read: unsignedRead}
	}
	return columnDecoder{size: size, read: signedRead}
}

// lengthPrefix is the number of bytes of the length in front of a string.
func lengthPrefix(m *mapColumn) int {
	switch {
	case m.typ == typeBlob, m.typ == typeGeometry, m.typ == typeVector:
		return m.length
	case m.length > 255:
		return 2
	}
	return 1
}

func fracBytes(fsp int) int { return (fsp + 1) / 2 }

func readInt8(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Int(int64(int8(b[0])))
	return true
}

func readUint8(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Uint(uint64(b[0]))
	return true
}

func readInt16(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Int(int64(int16(binary.LittleEndian.Uint16(b))))
	return true
}

func readUint16(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Uint(uint64(binary.LittleEndian.Uint16(b)))
	return true
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

func readInt24(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Int(int64(int32(uint24(b)<<8) >> 8))
	return true
}

func readUint24(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Uint(uint64(uint24(b)))
	return true
}

func readInt32(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Int(int64(int32(binary.LittleEndian.Uint32(b))))
	return true
}

func readUint32(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Uint(uint64(binary.LittleEndian.Uint32(b)))
	return true
}

func readInt64(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Int(int64(binary.LittleEndian.Uint64(b)))
	return true
}

func readUint64(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Uint(binary.LittleEndian.Uint64(b))
	return true
}

func readFloat(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Float(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	return true
}

func readDouble(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Double(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	return true
}

// bigEndian reads up to 8 bytes, the highest first.
func bigEndian(b []byte) uint64 {
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

func littleEndian(b []byte) uint64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

func readBit(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Bit(bigEndian(b))
	return true
}

func readYear(_ *columnDecoder, b []byte, to column.Appender) bool {
	if b[0] == 0 {
		to.Int(0)
		return true
	}
	to.Int(1900 + int64(b[0]))
	return true
}

func readDate(_ *columnDecoder, b []byte, to column.Appender) bool {
	v := int(uint24(b))
	to.Date(v>>9, v>>5&15, v&31)
	return true
}

// micros reads the fraction of a second, highest byte first: hundredths, ten thousandths or millionths by its length.
func micros(b []byte) int {
	v := int(bigEndian(b))
	switch len(b) {
	case 1:
		return v * 10000
	case 2:
		return v * 100
	}
	return v
}

// readDateTime takes 40 bits, highest byte first: a sign that is always set, year*13+month (17 bits), day (5), hour (5),
// minute (6), second (6); then the fraction.
func readDateTime(_ *columnDecoder, b []byte, to column.Appender) bool {
	packed, us := bigEndian(b[:5]), micros(b[5:])
	if packed>>39 == 0 || us >= 1_000_000 {
		return false
	}
	ym := int(packed >> 22 & (1<<17 - 1))
	hour, minute, second := int(packed>>12&31), int(packed>>6&63), int(packed&63)
	if hour > 23 || minute > 59 || second > 59 {
		return false
	}
	to.DateTime(ym/13, ym%13, int(packed>>17&31), hour, minute, second, us)
	return true
}

func readTimestamp(_ *columnDecoder, b []byte, to column.Appender) bool {
	us := micros(b[4:])
	if us >= 1_000_000 {
		return false
	}
	to.Timestamp(int64(binary.BigEndian.Uint32(b)), us)
	return true
}

// readTime takes one number, highest byte first, of 24 bits and the fraction's, offset by its highest bit. Its amount
// is one unused bit, hour (10 bits), minute (6), second (6), fraction; the sign covers the fraction too.
func readTime(c *columnDecoder, b []byte, to column.Appender) bool {
	v := int64(bigEndian(b)) - 0x800000<<(8*c.frac)
	sign := int64(1)
	if v < 0 {
		v, sign = -v, -1
	}
	us, ok := timeMicros(v>>(8*c.frac), fraction(v, c.frac))
	if ok {
		to.Time(sign * us)
	}
	return ok
}

func fraction(v int64, bytes int) int64 {
	f := v & (1<<(8*bytes) - 1)
	switch bytes {
	case 1:
		return f * 10000
	case 2:
		return f * 100
	}
	return f
}

// timeMicros joins hour, minute and second, packed, with a fraction.
func timeMicros(hms, us int64) (int64, bool) {
	hour, minute, second := hms>>12, hms>>6&63, hms&63
	if hour > 838 || minute > 59 || second > 59 || us > 999_999 {
		return 0, false
	}
	return (hour*3600+minute*60+second)*1_000_000 + us, true
}

func readEnum(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Enum(int(littleEndian(b)))
	return true
}

func readSet(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Set(littleEndian(b))
	return true
}

func readBytes(_ *columnDecoder, b []byte, to column.Appender) bool {
	to.Bytes(b)
	return true
}

func readJSON(c *columnDecoder, b []byte, to column.Appender) bool {
	text, err := appendJSON(c.buf[:0], b)
	c.buf = text
	if err == nil {
		to.JSON(text)
	}
	return err == nil
}
