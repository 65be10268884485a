// Package function has MySQL functions over text and dates that SQL of another dialect cannot express, one value at a
// time. It is pure; query/engine makes scalar functions of them.
package function

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemarkdb/tidemark/schema"
)

// Cut gives the longest prefix of a text of at most n bytes that ends with a whole character: what GROUP_CONCAT keeps
// under group_concat_max_len.
func Cut(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// doubleWidth is the width to which MySQL cuts the text of a computed DOUBLE that becomes a string.
const doubleWidth = 22

// Double appends a DOUBLE as MySQL turns a computed one into a string: as it prints one, with as few digits less as
// make it fit into 22 characters.
func Double(dst []byte, x float64) []byte {
	start := len(dst)
	dst = schema.AppendDouble(dst, x)
	for digits := 16; len(dst)-start > doubleWidth && digits > 0; digits-- {
		short := strconv.FormatFloat(x, 'e', digits-1, 64)
		rounded, err := strconv.ParseFloat(short, 64)
		if err != nil { // rounded beyond the largest DOUBLE
			return append(dst[:start], strings.Replace(short, "e+", "e", 1)...)
		}
		dst = schema.AppendDouble(dst[:start], rounded)
	}
	return dst
}
