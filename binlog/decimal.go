package binlog

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemarkdb/tidemark/column"
)

// decimalLayout is how MySQL packs DECIMAL(precision, scale) (mysql-server, decimal2bin): groups of nine digits in four
// bytes, highest byte first, counted from the point in both directions; what is left of nine at either end in as few
// bytes as hold it. The first bit is inverted; in a negative number all others are, too.
type decimalLayout struct {
	groups    []digitGroup
	size      int
	precision int
	scale     int
}

type digitGroup struct {
	bytes  int
	digits int
	limit  uint32 // 10 to the digits
}

var (
	bytesOfDigits = [...]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}
	powersOfTen   = [...]uint32{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000}
)

// maxDecimal is the largest precision of MySQL.
const maxDecimal = 65

func newDecimalLayout(precision, scale int) decimalLayout {
	l := decimalLayout{precision: precision, scale: scale}
	add := func(digits int) {
		if digits > 0 {
			l.groups = append(l.groups, digitGroup{bytesOfDigits[digits], digits, powersOfTen[digits]})
			l.size += bytesOfDigits[digits]
		}
	}
	whole := precision - scale
	add(whole % 9)
	for range whole / 9 {
		add(9)
	}
	for range scale / 9 {
		add(9)
	}
	add(scale % 9)
	return l
}

// negative tells the sign of a packed number.
func negative(b []byte) bool { return b[0]&0x80 == 0 }

// group reads the i-th group, whose bytes start at b[at].
func (l *decimalLayout) group(b []byte, i, at int, neg bool) (uint32, bool) {
	g := l.groups[i]
	var v uint32
	for _, x := range b[at : at+g.bytes] {
		v = v<<8 | uint32(x)
	}
	if i == 0 {
		v ^= 1 << (8*g.bytes - 1)
	}
	if neg {
		v = ^v & (1<<(8*g.bytes) - 1)
	}
	return v, v < g.limit
}

// maxDigits64 is the number of decimal digits that always fit 64 bits.
const maxDigits64 = 19

func readDecimal(c *columnDecoder, b []byte, to column.Appender) bool {
	l := &c.decimal
	neg, at := negative(b), 0
	var hi, lo uint64
	for i, g := range l.groups {
		v, ok := l.group(b, i, at, neg)
		if !ok {
			return false
		}
		at += g.bytes
		if l.precision <= maxDigits64 {
			lo = lo*uint64(g.limit) + uint64(v)
			continue
		}
		carry, low := bits.Mul64(lo, uint64(g.limit))
		var over uint64
		lo, over = bits.Add64(low, uint64(v), 0)
		hi = hi*uint64(g.limit) + carry + over
	}
	n := decimal128.New(int64(hi), lo)
	if neg {
		n = n.Negate()
	}
	to.Decimal(n)
	return true
}

func readWideDecimal(c *columnDecoder, b []byte, to column.Appender) bool {
	text, ok := c.decimal.appendText(c.buf[:0], b)
	c.buf = text
	if ok {
		to.DecimalText(text)
	}
	return ok
}

// appendText writes [-]digits[.digits] with all digits of the scale and no superfluous leading zeros.
func (l *decimalLayout) appendText(dst, b []byte) ([]byte, bool) {
	neg, at := negative(b), 0
	if neg {
		dst = append(dst, '-')
	}
	whole := l.precision - l.scale
	started := false
	if whole == 0 {
		dst = append(dst, '0')
	}
	seen := 0
	for i, g := range l.groups {
		v, ok := l.group(b, i, at, neg)
		if !ok {
			return dst, false
		}
		at += g.bytes
		for d := g.digits - 1; d >= 0; d-- {
			if seen == whole && l.scale > 0 {
				dst = append(dst, '.')
			}
			digit := byte(v / powersOfTen[d] % 10)
			started = started || digit != 0 || seen >= whole-1
			if started {
				dst = append(dst, '0'+digit)
			}
			seen++
		}
	}
	return dst, true
}
