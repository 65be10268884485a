package column

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/schema/charset"
)

type int32Column struct {
	base
	b *array.Int32Builder
}

func (c *int32Column) Null()         { c.b.AppendNull() }
func (c *int32Column) Int(v int64)   { c.b.Append(int32(v)) }
func (c *int32Column) Uint(v uint64) { c.b.Append(int32(v)) }

type int64Column struct {
	base
	b *array.Int64Builder
}

func (c *int64Column) Null()         { c.b.AppendNull() }
func (c *int64Column) Int(v int64)   { c.b.Append(v) }
func (c *int64Column) Uint(v uint64) { c.b.Append(int64(v)) }
func (c *int64Column) Bit(v uint64)  { c.b.Append(int64(v)) }

type uint64Column struct {
	base
	b *array.Uint64Builder
}

func (c *uint64Column) Null()         { c.b.AppendNull() }
func (c *uint64Column) Uint(v uint64) { c.b.Append(v) }
func (c *uint64Column) Bit(v uint64)  { c.b.Append(v) }

type floatColumn struct {
	base
	b *array.Float32Builder
}

func (c *floatColumn) Null()           { c.b.AppendNull() }
func (c *floatColumn) Float(v float32) { c.b.Append(v) }

type doubleColumn struct {
	base
	b *array.Float64Builder
}

func (c *doubleColumn) Null()            { c.b.AppendNull() }
func (c *doubleColumn) Double(v float64) { c.b.Append(v) }

type decimalColumn struct {
	base
	b *array.Decimal128Builder
}

func (c *decimalColumn) Null()                    { c.b.AppendNull() }
func (c *decimalColumn) Decimal(v decimal128.Num) { c.b.Append(v) }

func (c *decimalColumn) DecimalText(v []byte) {
	if n, ok := shortUnscaled(v, c.col.Scale); ok {
		c.b.Append(decimal128.FromI64(n))
		return
	}
	n, err := unscaled(v, c.col.Scale)
	if err != nil {
		c.fail("%v", err)
		c.b.AppendNull()
		return
	}
	c.b.Append(decimal128.FromBigInt(n))
}

// wideDecimalColumn holds a DECIMAL beyond 38 digits as canonical text: no leading zeros, all digits of the scale.
type wideDecimalColumn struct {
	base
	b *array.StringBuilder
}

func (c *wideDecimalColumn) Null() { c.b.AppendNull() }

func (c *wideDecimalColumn) DecimalText(v []byte) {
	n, err := unscaled(v, c.col.Scale)
	if err != nil {
		c.fail("%v", err)
		c.b.AppendNull()
		return
	}
	text := appendScaled(nil, n, c.col.Scale)
	c.host.bytes += len(text)
	c.b.Append(string(text))
}

type dateColumn struct {
	base
	b *array.Date32Builder
}

func (c *dateColumn) Null() { c.b.AppendNull() }

func (c *dateColumn) Date(y, m, d int) {
	if !validDate(y, m, d) {
		c.setExact(schema.AppendDate(nil, y, m, d))
		c.b.AppendNull()
		return
	}
	c.b.Append(arrow.Date32(DaysFromCivil(y, m, d)))
}

type dateTimeColumn struct {
	base
	b *array.TimestampBuilder
}

func (c *dateTimeColumn) Null() { c.b.AppendNull() }

func (c *dateTimeColumn) DateTime(y, mo, d, h, mi, s, us int) {
	if !validDate(y, mo, d) {
		c.setExact(schema.AppendDateTime(nil, y, mo, d, h, mi, s, us, c.col.FSP))
		c.b.AppendNull()
		return
	}
	sec := int64(DaysFromCivil(y, mo, d))*86400 + int64(h)*3600 + int64(mi)*60 + int64(s)
	c.b.Append(arrow.Timestamp(sec*1_000_000 + int64(us)))
}

type timestampColumn struct {
	base
	b *array.TimestampBuilder
}

func (c *timestampColumn) Null() { c.b.AppendNull() }

func (c *timestampColumn) Timestamp(sec int64, us int) {
	if sec == 0 && us == 0 {
		c.setExact(schema.AppendDateTime(nil, 0, 0, 0, 0, 0, 0, 0, c.col.FSP))
		c.b.AppendNull()
		return
	}
	c.b.Append(arrow.Timestamp(sec*1_000_000 + int64(us)))
}

type timeColumn struct {
	base
	b *array.Int64Builder
}

func (c *timeColumn) Null()         { c.b.AppendNull() }
func (c *timeColumn) Time(us int64) { c.b.Append(us) }

type textColumn struct {
	base
	b       *array.StringBuilder
	charset *charset.Charset
}

func (c *textColumn) Null() { c.b.AppendNull() }

func (c *textColumn) Bytes(b []byte) {
	text, ok := c.charset.ToUTF8(b)
	if !ok || !c.charset.Reversible(b, text) {
		c.setExact(b)
	}
	c.host.bytes += len(text)
	c.b.BinaryBuilder.Append(text)
}

type binaryColumn struct {
	base
	b *array.BinaryBuilder
}

func (c *binaryColumn) Null() { c.b.AppendNull() }

// Bytes restores the trailing zero bytes of BINARY(n), which row images leave out.
func (c *binaryColumn) Bytes(b []byte) {
	if c.col.Type == schema.Binary && len(b) < c.col.Length {
		padded := make([]byte, c.col.Length)
		copy(padded, b)
		b = padded
	}
	c.host.bytes += len(b)
	c.b.Append(b)
}

type enumColumn struct {
	base
	b *array.StringBuilder
}

func (c *enumColumn) Null() { c.b.AppendNull() }

func (c *enumColumn) Enum(index int) {
	switch {
	case index == 0:
		c.setExact(nil)
		c.b.Append("")
	case index < 0 || index > len(c.col.Elements):
		c.fail("ENUM index %d is not within the %d labels", index, len(c.col.Elements))
		c.b.AppendNull()
	default:
		c.b.Append(c.col.Elements[index-1])
	}
}

type setColumn struct {
	base
	b       *array.StringBuilder
	scratch []byte
}

func (c *setColumn) Null() { c.b.AppendNull() }

func (c *setColumn) Set(mask uint64) {
	if n := len(c.col.Elements); n < 64 && mask>>n != 0 {
		c.fail("SET mask %#x has bits beyond the %d labels", mask, n)
		c.b.AppendNull()
		return
	}
	c.scratch = c.scratch[:0]
	for i, label := range c.col.Elements {
		if mask>>i&1 == 0 {
			continue
		}
		if len(c.scratch) > 0 {
			c.scratch = append(c.scratch, ',')
		}
		c.scratch = append(c.scratch, label...)
	}
	c.host.bytes += len(c.scratch)
	c.b.BinaryBuilder.Append(c.scratch)
}

type jsonColumn struct {
	base
	b *array.StringBuilder
}

func (c *jsonColumn) Null() { c.b.AppendNull() }

func (c *jsonColumn) JSON(b []byte) {
	c.host.bytes += len(b)
	c.b.BinaryBuilder.Append(b)
}

// maxShortDigits is the number of decimal digits that always fit an int64.
const maxShortDigits = 18

// shortUnscaled is unscaled for numbers of few digits, without allocation. ok is false for all others.
func shortUnscaled(text []byte, scale int) (v int64, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text)+scale > maxShortDigits {
		return 0, false
	}
	fraction := -1
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			v = v*10 + int64(c-'0')
			if fraction >= 0 {
				fraction++
			}
		case c == '.' && fraction < 0:
			fraction = 0
		default:
			return 0, false
		}
	}
	if fraction > scale {
		return 0, false
	}
	for range scale - max(fraction, 0) {
		v *= 10
	}
	if negative {
		v = -v
	}
	return v, true
}

// unscaled reads [-]digits[.digits] as an integer at the given scale.
func unscaled(text []byte, scale int) (*big.Int, error) {
	digits := make([]byte, 0, len(text)+scale)
	fraction, seenPoint := 0, false
	for i, c := range text {
		switch {
		case c == '-' && i == 0, c >= '0' && c <= '9':
			digits = append(digits, c)
			if seenPoint {
				fraction++
			}
		case c == '.' && !seenPoint:
			seenPoint = true
		default:
			return nil, errNotDecimal
		}
	}
	if fraction > scale {
		return nil, errTooManyDecimals
	}
	for ; fraction < scale; fraction++ {
		digits = append(digits, '0')
	}
	n, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return nil, errNotDecimal
	}
	return n, nil
}

// appendScaled prints an unscaled integer with its point.
func appendScaled(dst []byte, n *big.Int, scale int) []byte {
	digits := new(big.Int).Abs(n).Append(nil, 10)
	if n.Sign() < 0 {
		dst = append(dst, '-')
	}
	return appendPointed(dst, digits, scale)
}

func appendPointed(dst, digits []byte, scale int) []byte {
	if scale == 0 {
		return append(dst, digits...)
	}
	whole := len(digits) - scale
	if whole <= 0 {
		dst = append(dst, '0', '.')
		for range -whole {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:whole]...)
	dst = append(dst, '.')
	return append(dst, digits[whole:]...)
}

// validDate tells the dates that an Arrow date holds and prints alike: those of the proleptic Gregorian calendar from
// year 1 on. Year 0 is left to exact, since MySQL's calendar differs there.
func validDate(y, m, d int) bool {
	if y < 1 || y > 9999 || m < 1 || m > 12 || d < 1 {
		return false
	}
	return d <= daysIn(y, m)
}

func daysIn(y, m int) int {
	switch m {
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysBeforeMonth counts the days of a year that starts in March, so that a leap day is its last.
var daysBeforeMonth = [...]int{1: 306, 2: 337, 3: 0, 4: 31, 5: 61, 6: 92, 7: 122, 8: 153, 9: 184, 10: 214, 11: 245, 12: 275}

// DaysFromCivil counts days since 1970-01-01, for years from 1 on and months 1 to 12. It stands for time.Date, which
// took a tenth of the time of decoding a row.
func DaysFromCivil(y, m, d int) int {
	const before1970 = 719468 // days from 0000-03-01
	if m < 3 {
		y--
	}
	return y*365 + y/4 - y/100 + y/400 + daysBeforeMonth[m] + d - 1 - before1970
}
