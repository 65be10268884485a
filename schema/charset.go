package schema

import (
	"github.com/tidemarkdb/tidemark/schema/charset"
)

// SupportedCharset tells whether stored bytes of this MySQL character set can be converted.
func SupportedCharset(name string) bool { return name == "binary" || charset.ByName(name) != nil }

// specialDefaults are the default collations that are not <charset>_general_ci.
var specialDefaults = map[string]string{
	"latin1": "latin1_swedish_ci", "dec8": "dec8_swedish_ci", "swe7": "swe7_swedish_ci", "hp8": "hp8_english_ci",
	"big5": "big5_chinese_ci", "gbk": "gbk_chinese_ci", "gb2312": "gb2312_chinese_ci", "gb18030": "gb18030_chinese_ci",
	"sjis": "sjis_japanese_ci", "ujis": "ujis_japanese_ci", "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci",
	"euckr": "euckr_korean_ci", "tis620": "tis620_thai_ci", "latin5": "latin5_turkish_ci", "utf8mb4": "utf8mb4_0900_ai_ci", "binary": "binary",
}

// DefaultCollation is the collation that a character set named alone stands for, from MySQL 8.0 on.
func DefaultCollation(charset string) string {
	if c, ok := specialDefaults[charset]; ok {
		return c
	}
	return charset + "_general_ci"
}

// CharBytes is the most bytes that a character of the character set takes.
func CharBytes(name string) int {
	if c := charset.ByName(name); c != nil {
		return c.Bytes()
	}
	return 1
}

// ToUTF8 converts stored bytes of a character set to UTF-8. The result may be b itself. ok is false when b has
// bytes that are not valid in the character set; the result then has U+FFFD in their place. The bytes of binary stand for
// ASCII.
func ToUTF8(name string, b []byte) (out []byte, ok bool) { return TextCharset(name).ToUTF8(b) }

// FromUTF8 converts valid UTF-8 to the stored bytes of a character set. ok is false when a character has no form there. For
// binary it gives the text itself.
func FromUTF8(name string, b []byte) (out []byte, ok bool) {
	if name == "binary" {
		return b, true
	}
	return TextCharset(name).FromUTF8(b)
}

// ShowStored gives stored bytes that are no valid text, or not the only ones of their text, as the server sends them to a client
// whose character set is utf8mb4: unchanged when no conversion is needed.
func ShowStored(name string, stored []byte) []byte {
	switch name {
	case "", "utf8mb4", "utf8mb3", "utf8", "ascii", "binary":
		return stored
	}
	text, _ := ToUTF8(name, stored)
	return text
}

// TextCharset gives the character set of text columns by its name, for those who convert many values. Other names, binary and ""
// among them, give ascii.
func TextCharset(name string) *charset.Charset {
	if c := charset.ByName(name); c != nil {
		return c
	}
	return charset.ByName("ascii")
}
