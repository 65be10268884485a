// Package function has MySQL functions over text and dates that SQL of another dialect cannot express, one value at a
// time. It is pure; query/engine makes scalar functions of them.
package function

import "unicode/utf8"

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
