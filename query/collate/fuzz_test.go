package collate

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// likeOracle is LIKE by its definition: slow, and without any state to get wrong.
func likeOracle(c *Collation, text, pattern []rune, escape rune) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	p, rest := pattern[0], pattern[1:]
	switch {
	case p == escape && len(rest) > 0:
		p, rest = rest[0], rest[1:]
	case p == '%':
		for i := range len(text) + 1 {
			if likeOracle(c, text[i:], rest, escape) {
				return true
			}
		}
		return false
	case p == '_':
		return len(text) > 0 && likeOracle(c, text[1:], rest, escape)
	}
	return len(text) > 0 && c.classOf(text[0]) == c.classOf(p) && likeOracle(c, text[1:], rest, escape)
}

func FuzzCollations(f *testing.F) {
	for i, w := range words {
		f.Add(w, words[(i*7+1)%len(words)], patterns[i%len(patterns)], uint8(i))
	}
	f.Fuzz(func(t *testing.T, a, b, pattern string, which uint8) {
		c := all[int(which)%len(all)]
		if len(a) > 40 || len(pattern) > 20 || strings.Count(pattern, "%") > 4 { // the oracle takes exponential time
			return
		}
		key := func(s string) []byte { return c.SortKey(nil, []byte(s)) }
		spaced := bytes.Equal(key(a), key(a+"  "))
		if c.pad && !spaced {
			t.Errorf("%s: trailing spaces count: %q", c.name, a)
		}
		if order := bytes.Compare(key(a), key(b)); order != -bytes.Compare(key(b), key(a)) || (a == b) && order != 0 {
			t.Errorf("%s: %q and %q have no order", c.name, a, b)
		}
		_, _ = c.Upper(nil, []byte(a)), c.Lower(nil, []byte(b))
		got := c.Like([]byte(a), []byte(pattern), '\\')
		if c.charset == "binary" || !utf8.ValidString(a) || !utf8.ValidString(pattern) {
			return
		}
		if want := likeOracle(c, []rune(a), []rune(pattern), '\\'); got != want {
			t.Errorf("%s: %q LIKE %q is %v", c.name, a, pattern, got)
		}
	})
}
