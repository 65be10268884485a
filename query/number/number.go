// Package number reads numbers from text as MySQL does: from the longest prefix that is one, and 0 where there is none.
package number

import (
	"errors"
	"math"
	"strconv"
)

// Double gives the value of a text in a context of DOUBLE: CAST('12.5e1x' AS DOUBLE) is 125. Values beyond the range
// give the largest one.
func Double(text []byte) float64 {
	s := text[spaces(text, isSpace):]
	v, err := strconv.ParseFloat(string(s[:prefix(s)]), 64)
	if errors.Is(err, strconv.ErrRange) && math.IsInf(v, 0) {
		return math.Copysign(math.MaxFloat64, v)
	}
	return v // 0 for an empty prefix
}

// prefix measures the longest start of s that is a decimal number with or without an exponent.
func prefix(s []byte) int {
	at := 0
	if at < len(s) && (s[at] == '-' || s[at] == '+') {
		at++
	}
	whole := digits(s[at:])
	at += whole
	fraction := 0
	if at < len(s) && s[at] == '.' {
		fraction = digits(s[at+1:])
		if whole+fraction > 0 {
			at += 1 + fraction
		}
	}
	if whole+fraction == 0 {
		return 0
	}
	return at + exponent(s[at:])
}

func exponent(s []byte) int {
	if len(s) == 0 || s[0] != 'e' && s[0] != 'E' {
		return 0
	}
	at := 1
	if at < len(s) && (s[at] == '-' || s[at] == '+') {
		at++
	}
	n := digits(s[at:])
	if n == 0 {
		return 0
	}
	return at + n
}

func digits(s []byte) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func spaces(s []byte, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// Integers are read by another function of MySQL's, which skips fewer kinds of space.
func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// Int gives the value of CAST(text AS SIGNED): fractions and exponents are not read, numbers from 2^63 to 2^64-1 turn
// into their complements, larger ones count as 2^64-1, and smaller ones than -2^63 as that.
func Int(text []byte) int64 {
	negative, n, fits := integer(text)
	switch {
	case negative && (!fits || n > 1<<63):
		return math.MinInt64
	case negative:
		return -int64(n)
	case !fits:
		return -1
	default:
		return int64(n)
	}
}

// Uint gives the value of CAST(text AS UNSIGNED): as Int, and as an unsigned number.
func Uint(text []byte) uint64 { return uint64(Int(text)) }

func integer(text []byte) (negative bool, n uint64, fits bool) {
	s := text[spaces(text, isBlank):]
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	count := digits(s)
	if count == 0 {
		return negative, 0, true
	}
	n, err := strconv.ParseUint(string(s[:count]), 10, 64)
	return negative, n, err == nil
}
