package schema

import (
	"bytes"
	"math"
	"strconv"
)

// floatDigits is the number of digits MySQL prints of a FLOAT (FLT_DIG); more digits of the value are not shown.
const floatDigits = 6

// maxPlainExponent bounds the decimal point position up to which MySQL prints a floating-point number without an
// exponent (DBL_DIG).
const maxPlainExponent = 15

// AppendDouble appends a DOUBLE as MySQL prints it: the shortest digits that read back as the same value.
func AppendDouble(dst []byte, v float64) []byte {
	return appendShortest(dst, v, -1)
}

// AppendFixed appends a number with a fixed number of fractional digits as MySQL does: the shortest digits that read
// back as the same double, filled up with zeros; rounded only where there are more of them.
func AppendFixed(dst []byte, v float64, scale int) []byte {
	text := strconv.AppendFloat(dst, v, 'f', -1, 64)
	fraction := 0
	if point := bytes.IndexByte(text[len(dst):], '.'); point >= 0 {
		fraction = len(text) - len(dst) - point - 1
	}
	if fraction > scale {
		return strconv.AppendFloat(dst, v, 'f', scale, 64)
	}
	if fraction == 0 && scale > 0 {
		text = append(text, '.')
	}
	for range scale - fraction {
		text = append(text, '0')
	}
	return text
}

// AppendFloat appends a FLOAT as MySQL prints it: at most six digits.
func AppendFloat(dst []byte, v float32) []byte {
	return appendShortest(dst, float64(v), floatDigits-1)
}

// appendShortest formats by the rule of MySQL's my_gcvt: plain where the decimal point stands within -14..15 of the
// first digit or between two digits (1234567890123456.5), else d.ddde[-]x.
func appendShortest(dst []byte, v float64, precision int) []byte {
	if v == 0 {
		if math.Signbit(v) {
			dst = append(dst, '-')
		}
		return append(dst, '0')
	}
	var buf [32]byte
	sci := strconv.AppendFloat(buf[:0], v, 'e', precision, 64)
	if sci[0] == '-' {
		dst, sci = append(dst, '-'), sci[1:]
	}
	digits, exponent := splitScientific(sci)
	point := exponent + 1
	if point < -maxPlainExponent+1 || point > maxPlainExponent && point >= len(digits) {
		return appendExponent(dst, digits, exponent)
	}
	return appendPlain(dst, digits, point)
}

// splitScientific cuts d.ddde±xx into its digits, without trailing zeros, and its exponent.
func splitScientific(sci []byte) (digits []byte, exponent int) {
	e := len(sci) - 1
	for sci[e] != 'e' {
		e--
	}
	exponent, _ = strconv.Atoi(string(sci[e+1:]))
	digits = append(digits, sci[0])
	if e > 2 {
		digits = append(digits, sci[2:e]...)
	}
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, exponent
}

func appendExponent(dst, digits []byte, exponent int) []byte {
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(exponent), 10)
}

func appendPlain(dst, digits []byte, point int) []byte {
	if point <= 0 {
		dst = append(dst, '0', '.')
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	if point >= len(digits) {
		dst = append(dst, digits...)
		for range point - len(digits) {
			dst = append(dst, '0')
		}
		return dst
	}
	dst = append(dst, digits[:point]...)
	dst = append(dst, '.')
	return append(dst, digits[point:]...)
}

// Microseconds of a day, and of the units below it.
const (
	usPerSecond = 1_000_000
	usPerMinute = 60 * usPerSecond
	usPerHour   = 60 * usPerMinute
)

// AppendDate appends YYYY-MM-DD.
func AppendDate(dst []byte, y, m, d int) []byte {
	dst = appendPadded(dst, y, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, m, 2)
	dst = append(dst, '-')
	return appendPadded(dst, d, 2)
}

// AppendDateTime appends YYYY-MM-DD hh:mm:ss with fsp fractional digits.
func AppendDateTime(dst []byte, y, mo, d, h, mi, s, us, fsp int) []byte {
	dst = AppendDate(dst, y, mo, d)
	dst = append(dst, ' ')
	dst = appendPadded(dst, h, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, mi, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, s, 2)
	return appendFraction(dst, us, fsp)
}

// AppendTime appends a TIME given in microseconds as [-]hh:mm:ss with fsp fractional digits; hours have two or three digits.
func AppendTime(dst []byte, us int64, fsp int) []byte {
	if us < 0 {
		dst = append(dst, '-')
		us = -us
	}
	dst = appendPadded(dst, int(us/usPerHour), 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, int(us/usPerMinute%60), 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, int(us/usPerSecond%60), 2)
	return appendFraction(dst, int(us%usPerSecond), fsp)
}

func appendFraction(dst []byte, us, fsp int) []byte {
	if fsp == 0 {
		return dst
	}
	dst = append(dst, '.')
	at := len(dst)
	dst = appendPadded(dst, us, 6)
	return dst[:at+fsp]
}

func appendPadded(dst []byte, v, width int) []byte {
	for limit := pow10(width - 1); limit > v && limit > 1; limit /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(v), 10)
}

func pow10(n int) int {
	p := 1
	for range n {
		p *= 10
	}
	return p
}
