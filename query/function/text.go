package function

import (
	"bytes"
	"hash/crc32"
)

// SubstringIndex gives what stands before the n-th delimiter of a text, or, for a negative n, behind the n-th from the
// end: SUBSTRING_INDEX, which compares bytewise under every collation.
func SubstringIndex(text, delimiter []byte, n int64) []byte {
	if n == 0 || len(delimiter) == 0 {
		return nil
	}
	if n > 0 {
		return before(text, delimiter, n)
	}
	rest := text
	for ; n < 0; n++ {
		i := bytes.LastIndex(rest, delimiter)
		if i < 0 {
			return text
		}
		rest = rest[:i]
	}
	return text[len(rest)+len(delimiter):]
}

func before(text, delimiter []byte, n int64) []byte {
	end := 0
	for ; n > 0; n-- {
		i := bytes.Index(text[end:], delimiter)
		if i < 0 {
			return text
		}
		end += i + len(delimiter)
	}
	return text[:end-len(delimiter)]
}

// Grouped appends a number in digits with a comma between thousands: FORMAT in the locale en_US.
func Grouped(dst, digits []byte) []byte {
	if len(digits) > 0 && digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	whole, fraction, found := bytes.Cut(digits, []byte{'.'})
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, c)
	}
	if found {
		dst = append(append(dst, '.'), fraction...)
	}
	return dst
}

// CRC32 is the checksum that MySQL's function of that name gives.
func CRC32(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

// DecimalPrefix gives the decimal number that a text starts with, rounded half away from zero to scale digits and
// limited to the largest number of the precision, in digits: CAST(text AS DECIMAL(precision, scale)).
func DecimalPrefix(text []byte, precision, scale int) []byte {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	negative := len(text) > 0 && text[0] == '-'
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	whole, rest := leadingDigits(text)
	var fraction []byte
	if len(rest) > 0 && rest[0] == '.' {
		fraction, rest = leadingDigits(rest[1:])
	}
	digits := append(append([]byte{'0'}, whole...), fraction...)
	point := 1 + len(whole) + exponent(rest, len(whole)+len(fraction) > 0)
	return roundedDigits(digits, point, negative, precision, scale)
}

func leadingDigits(s []byte) (digits, rest []byte) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}

// exponentLimit bounds an exponent: all larger ones overflow or vanish alike.
const exponentLimit = 200

func exponent(s []byte, number bool) int {
	if !number || len(s) < 2 || s[0] != 'e' && s[0] != 'E' {
		return 0
	}
	sign, s := 1, s[1:]
	if s[0] == '-' || s[0] == '+' {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	digits, _ := leadingDigits(s)
	n := 0
	for _, c := range digits {
		n = min(n*10+int(c-'0'), exponentLimit)
	}
	return sign * n
}

// roundedDigits writes 0.digits * 10^point with scale digits behind the point.
func roundedDigits(digits []byte, point int, negative bool, precision, scale int) []byte {
	for point < 1 {
		digits, point = append([]byte{'0'}, digits...), point+1
	}
	for len(digits) < point+scale+1 {
		digits = append(digits, '0')
	}
	up := digits[point+scale] >= '5'
	digits = append([]byte{'0'}, digits[:point+scale]...)
	for i := len(digits) - 1; up; i-- {
		if digits[i]++; digits[i] <= '9' {
			break
		}
		digits[i] = '0'
	}
	whole, fraction := bytes.TrimLeft(digits[:point+1], "0"), digits[point+1:]
	if len(whole) > precision-scale {
		whole, fraction = bytes.Repeat([]byte{'9'}, precision-scale), bytes.Repeat([]byte{'9'}, scale)
	}
	return signed(whole, fraction, negative)
}

func signed(whole, fraction []byte, negative bool) []byte {
	var out []byte
	if negative {
		out = append(out, '-')
	}
	if len(whole) == 0 {
		whole = []byte{'0'}
	}
	out = append(out, whole...)
	if len(fraction) > 0 {
		out = append(append(out, '.'), fraction...)
	}
	return out
}
