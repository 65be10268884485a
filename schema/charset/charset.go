// Package charset converts between MySQL's character sets and UTF-8 as the server does.
//
// The tables are the server's own (tables/, made and checked by this package's test against a real MySQL). General libraries
// have other ones under the same names: their gbk, big5, sjis and euckr are supersets, their ujis lacks characters, and none
// has armscii8, cp852's relatives keybcs2, dec8, geostd8, hp8 or swe7.
//
// Three kinds of character sets are told apart: those whose ASCII bytes are ASCII characters, nearly all; swe7, of one byte
// a character with letters in the place of some ASCII signs; and ucs2, utf16, utf16le and utf32, whose characters are
// units of two or four bytes.
package charset

import (
	"bytes"
	"unicode/utf8"
)

// Charset is one character set. A nil *Charset stands for one that is not known.
type Charset struct {
	name  string
	bytes int // of the longest character
	// ascii tells that bytes below 0x80 stand for themselves and are never part of another character's encoding unless behind
	// a byte from 0x80 on.
	ascii bool
	codec codec
}

// codec converts single characters.
type codec interface {
	// decode reads the first character of b, which is not empty. n is the length of its code; unmapped characters are '?', as
	// the server shows them. n is 0 for bytes that no character begins with.
	decode(b []byte) (r rune, n int)
	// encode appends the code of a character. ok is false when it has none.
	encode(dst []byte, r rune) (out []byte, ok bool)
}

// unmapped stands for a character that has a code and no equal in Unicode.
const unmapped = '?'

// ByName gives a character set of MySQL 9.7, all but binary; nil for other names.
func ByName(name string) *Charset { return byName[name] }

// Name is MySQL's name of the character set.
func (c *Charset) Name() string { return c.name }

// Bytes is the most bytes that a character takes.
func (c *Charset) Bytes() int { return c.bytes }

// ASCII tells that the bytes of ASCII text are the text itself.
func (c *Charset) ASCII() bool { return c.ascii }

// ToUTF8 converts stored bytes. The result may be b itself. ok is false when b has bytes that are not valid in the
// character set; the result then has U+FFFD for each. Characters that Unicode does not have become '?', as the server
// sends them to a client whose character set is utf8mb4.
func (c *Charset) ToUTF8(b []byte) (out []byte, ok bool) {
	if c.ascii && isASCII(b) {
		return b, true
	}
	if u, same := c.codec.(utf8Codec); same && u.valid(b) {
		return b, true
	}
	ok = true
	out = make([]byte, 0, len(b)+len(b)/2)
	for len(b) > 0 {
		r, n := c.codec.decode(b)
		if n == 0 {
			r, n, ok = utf8.RuneError, 1, false
		}
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	return out, ok
}

// Reversible tells that stored bytes that became text can be made of it again. Several codes of the large character sets stand
// for one character, and characters that Unicode does not have all look the same.
func (c *Charset) Reversible(stored, text []byte) bool {
	t, ok := c.codec.(*tableCodec)
	if !ok || c.ascii && isASCII(stored) || t.table().injective {
		return true
	}
	again, ok := c.FromUTF8(text)
	return ok && bytes.Equal(again, stored)
}

// FromUTF8 converts UTF-8 to stored bytes; they may be b itself. ok is false when a character has no code, or b is not valid.
func (c *Charset) FromUTF8(b []byte) (out []byte, ok bool) {
	if c.ascii && isASCII(b) {
		return b, true
	}
	out = make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n <= 1 {
			return nil, false
		}
		if out, ok = c.codec.encode(out, r); !ok {
			return nil, false
		}
		b = b[n:]
	}
	return out, true
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

var byName = func() map[string]*Charset {
	m := map[string]*Charset{}
	add := func(name string, bytes int, ascii bool, c codec) {
		m[name] = &Charset{name: name, bytes: bytes, ascii: ascii, codec: c}
	}
	for _, name := range []string{"utf8mb3", "utf8"} {
		add(name, 3, true, utf8Codec{max: 0xFFFF})
	}
	add("utf8mb4", 4, true, utf8Codec{max: utf8.MaxRune})
	add("ascii", 1, true, asciiCodec{})
	add("ucs2", 2, false, unitCodec{kind: ucs2})
	add("utf16", 4, false, unitCodec{kind: utf16BE})
	add("utf16le", 4, false, unitCodec{kind: utf16LE})
	add("utf32", 4, false, unitCodec{kind: utf32})
	for name, bytes := range tableCharsets {
		add(name, bytes, name != "swe7", &tableCodec{name: name})
	}
	return m
}()
