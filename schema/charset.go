package schema

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// SupportedCharset tells whether stored bytes of this MySQL character set can be converted.
func SupportedCharset(name string) bool {
	switch name {
	case "utf8mb4", "utf8mb3", "utf8", "ascii", "latin1", "binary":
		return true
	}
	return false
}

// CharBytes is the most bytes that a character of the character set takes.
func CharBytes(charset string) int {
	switch charset {
	case "utf8mb4":
		return 4
	case "utf8mb3", "utf8":
		return 3
	}
	return 1
}

// ToUTF8 converts stored bytes of a character set to UTF-8. The result may be b itself. ok is false when b has
// bytes that are not valid in the character set; the result then has U+FFFD in their place.
func ToUTF8(charset string, b []byte) (out []byte, ok bool) {
	if isASCII(b) {
		return b, true
	}
	switch charset {
	case "latin1":
		return fromLatin1(b), true
	case "utf8mb4", "utf8mb3", "utf8":
		if utf8.Valid(b) && (charset == "utf8mb4" || !hasSupplementary(b)) {
			return b, true
		}
		return []byte(toValid(b)), false
	default:
		return []byte(toValid(b)), false
	}
}

// FromUTF8 converts valid UTF-8 to the stored bytes of a character set. ok is false when a character has no form there.
func FromUTF8(charset string, b []byte) (out []byte, ok bool) {
	if isASCII(b) {
		return b, true
	}
	switch charset {
	case "latin1":
		return toLatin1(b)
	case "ascii":
		return nil, false
	default:
		return b, true
	}
}

// MySQL's latin1 is Windows-1252 with the five undefined bytes as the C1 controls of the same number, as WHATWG has it.
func fromLatin1(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/2)
	for _, c := range b {
		out = utf8.AppendRune(out, latin1Rune(c))
	}
	return out
}

func latin1Rune(c byte) rune {
	if r := charmap.Windows1252.DecodeByte(c); r != utf8.RuneError {
		return r
	}
	return rune(c)
}

func latin1Byte(r rune) (byte, bool) {
	if c, ok := charmap.Windows1252.EncodeRune(r); ok {
		return c, true
	}
	return byte(r), r >= 0x80 && r <= 0x9F && latin1Rune(byte(r)) == r
}

func toLatin1(b []byte) ([]byte, bool) {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		c, ok := latin1Byte(r)
		if !ok {
			return nil, false
		}
		out = append(out, c)
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

// A 4-byte sequence is not valid in utf8mb3.
func hasSupplementary(b []byte) bool {
	for _, c := range b {
		if c >= 0xF0 {
			return true
		}
	}
	return false
}

func toValid(b []byte) string {
	out := make([]byte, 0, len(b)+8)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	return string(out)
}
