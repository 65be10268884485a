package charset

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// utf8Codec is UTF-8 up to a highest character.
type utf8Codec struct{ max rune }

func (c utf8Codec) decode(b []byte) (rune, int) {
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n <= 1 || r > c.max {
		return 0, 0
	}
	return r, n
}

func (c utf8Codec) encode(dst []byte, r rune) ([]byte, bool) {
	if r > c.max {
		return nil, false
	}
	return utf8.AppendRune(dst, r), true
}

// valid tells that text is all within the character set.
func (c utf8Codec) valid(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	if c.max == utf8.MaxRune {
		return true
	}
	for _, one := range b {
		if one >= 0xF0 { // begins a character beyond the basic plane
			return false
		}
	}
	return true
}

type asciiCodec struct{}

func (asciiCodec) decode(b []byte) (rune, int) {
	if b[0] >= utf8.RuneSelf {
		return 0, 0
	}
	return rune(b[0]), 1
}

func (asciiCodec) encode(dst []byte, r rune) ([]byte, bool) {
	if r >= utf8.RuneSelf {
		return nil, false
	}
	return append(dst, byte(r)), true
}

// unitKind is an encoding in units of more than one byte.
type unitKind uint8

const (
	ucs2 unitKind = iota
	utf16BE
	utf16LE
	utf32
)

type unitCodec struct{ kind unitKind }

func (k unitKind) size() int {
	if k == utf32 {
		return 4
	}
	return 2
}

func (k unitKind) unit(b []byte) rune {
	switch k {
	case utf16LE:
		return rune(binary.LittleEndian.Uint16(b))
	case utf32:
		return rune(binary.BigEndian.Uint32(b))
	}
	return rune(binary.BigEndian.Uint16(b))
}

func (k unitKind) append(dst []byte, u rune) []byte {
	switch k {
	case utf16LE:
		return binary.LittleEndian.AppendUint16(dst, uint16(u))
	case utf32:
		return binary.BigEndian.AppendUint32(dst, uint32(u))
	}
	return binary.BigEndian.AppendUint16(dst, uint16(u))
}

func (c unitCodec) decode(b []byte) (rune, int) {
	size := c.kind.size()
	if len(b) < size {
		return 0, 0
	}
	u := c.kind.unit(b)
	switch {
	case u < 0 || u > utf8.MaxRune:
		return 0, 0
	case !utf16.IsSurrogate(u):
		return u, size
	case c.kind == ucs2 || c.kind == utf32 || len(b) < 2*size:
		return 0, 0
	}
	if r := utf16.DecodeRune(u, c.kind.unit(b[size:])); r != utf8.RuneError {
		return r, 2 * size
	}
	return 0, 0
}

func (c unitCodec) encode(dst []byte, r rune) ([]byte, bool) {
	if r <= 0xFFFF || c.kind == utf32 {
		return c.kind.append(dst, r), true
	}
	if c.kind == ucs2 {
		return nil, false
	}
	high, low := utf16.EncodeRune(r)
	return c.kind.append(c.kind.append(dst, high), low), true
}
