package binlogtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/schema"
)

func appendValue(b []byte, c *schema.Column, v any) []byte {
	switch c.Type {
	case schema.TinyInt:
		return appendLittle(b, integer(v), 1)
	case schema.SmallInt:
		return appendLittle(b, integer(v), 2)
	case schema.MediumInt:
		return appendLittle(b, integer(v), 3)
	case schema.Int:
		return appendLittle(b, integer(v), 4)
	case schema.BigInt:
		return appendLittle(b, integer(v), 8)
	case schema.Decimal:
		return appendDecimal(b, c.Precision, c.Scale, v.(string))
	case schema.Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.(float64))))
	case schema.Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.(float64)))
	case schema.Bit:
		return appendBig(b, integer(v), (c.Length+7)/8)
	case schema.Date:
		y, m, d := date(v.(string))
		return appendLittle(b, uint64(y<<9|m<<5|d), 3)
	case schema.DateTime:
		return appendDateTime(b, v.(string), c.FSP)
	case schema.Timestamp:
		return appendTimestamp(b, v.(string), c.FSP)
	case schema.Time:
		return appendTime(b, v.(string), c.FSP)
	case schema.Year:
		return append(b, byte(max(integer(v), 1900)-1900))
	case schema.Enum:
		return appendLittle(b, integer(v), enumBytes(c))
	case schema.Set:
		return appendLittle(b, integer(v), setBytes(c))
	case schema.JSON:
		return appendJSON(b, v)
	}
	return appendBytes(b, c, v.(string))
}

func integer(v any) uint64 {
	switch v := v.(type) {
	case int:
		return uint64(v)
	case int64:
		return uint64(v)
	case uint64:
		return v
	}
	panic(fmt.Sprintf("binlogtest: %T is not an integer", v))
}

func appendLittle(b []byte, v uint64, n int) []byte {
	for i := range n {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

func appendBig(b []byte, v uint64, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

func appendBytes(b []byte, c *schema.Column, s string) []byte {
	switch c.Type {
	case schema.Binary:
		s = strings.TrimRight(s, "\x00") // as the source does
		fallthrough
	case schema.Char, schema.VarChar, schema.VarBinary:
		if c.Length*schema.CharBytes(c.Charset) > 255 {
			return append(appendLittle(b, uint64(len(s)), 2), s...)
		}
		return append(append(b, byte(len(s))), s...)
	}
	return append(appendLittle(b, uint64(len(s)), blobBytes(c.Type)), s...)
}

// appendDecimal packs digits as mysql-server's decimal2bin does.
func appendDecimal(b []byte, precision, scale int, text string) []byte {
	digits, negative := strings.CutPrefix(text, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	whole = strings.Repeat("0", precision-scale-len(strings.TrimLeft(whole, "0"))) + strings.TrimLeft(whole, "0")
	frac += strings.Repeat("0", scale-len(frac))
	first := len(whole) % 9
	at := len(b)
	b = appendDigits(b, whole[:first])
	for i := first; i < len(whole); i += 9 {
		b = appendDigits(b, whole[i:i+9])
	}
	for len(frac) > 0 {
		n := min(9, len(frac))
		b = appendDigits(b, frac[:n])
		frac = frac[n:]
	}
	if negative {
		for i := range b[at:] {
			b[at+i] = ^b[at+i]
		}
	}
	b[at] ^= 0x80
	return b
}

func appendDigits(b []byte, digits string) []byte {
	var v uint64
	for _, d := range digits {
		v = v*10 + uint64(d-'0')
	}
	return appendBig(b, v, [...]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}[len(digits)])
}

func date(text string) (y, m, d int) {
	if _, err := fmt.Sscanf(text, "%d-%d-%d", &y, &m, &d); err != nil {
		panic(fmt.Sprintf("binlogtest: %q is not a date: %v", text, err))
	}
	return y, m, d
}

// clock reads h:m:s[.fraction] and gives the fraction as the source stores it with fsp digits.
func clock(text string, fsp int) (h, m, s int, frac uint64) {
	whole, digits, _ := strings.Cut(text, ".")
	if _, err := fmt.Sscanf(whole, "%d:%d:%d", &h, &m, &s); err != nil {
		panic(fmt.Sprintf("binlogtest: %q is not a time: %v", text, err))
	}
	digits = (digits + "000000")[:(fsp+1)/2*2]
	for _, d := range digits {
		frac = frac*10 + uint64(d-'0')
	}
	return h, m, s, frac
}

func appendDateTime(b []byte, text string, fsp int) []byte {
	day, at, _ := strings.Cut(text, " ")
	y, mo, d := date(day)
	h, mi, s, frac := clock(at, fsp)
	packed := uint64(y*13+mo)<<22 | uint64(d)<<17 | uint64(h)<<12 | uint64(mi)<<6 | uint64(s)
	return appendBig(appendBig(b, packed|1<<39, 5), frac, (fsp+1)/2)
}

func appendTimestamp(b []byte, text string, fsp int) []byte {
	day, at, _ := strings.Cut(text, " ")
	y, mo, d := date(day)
	h, mi, s, frac := clock(at, fsp)
	var sec uint64 // the zero timestamp has year 0
	if y > 0 {
		sec = uint64(time.Date(y, time.Month(mo), d, h, mi, s, 0, time.UTC).Unix())
	}
	return appendBig(appendBig(b, sec, 4), frac, (fsp+1)/2)
}

func appendTime(b []byte, text string, fsp int) []byte {
	amount, negative := strings.CutPrefix(text, "-")
	h, m, s, frac := clock(amount, fsp)
	n := (fsp + 1) / 2
	v := int64(h<<12|m<<6|s)<<(8*n) | int64(frac)
	if negative {
		v = -v
	}
	return appendBig(b, uint64(v+0x800000<<(8*n)), 3+n)
}

func appendJSON(b []byte, v any) []byte {
	var doc []byte
	switch v := v.(type) {
	case string:
		doc = append(binary.AppendUvarint([]byte{0x0c}, uint64(len(v))), v...)
	default:
		doc = appendLittle([]byte{0x09}, integer(v), 8)
	}
	return append(appendLittle(b, uint64(len(doc)), 4), doc...)
}
