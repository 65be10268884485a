package ddl

import (
	"fmt"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// clientCharsets are the character sets a statement can be written in, by collation id, where they are not UTF-8. UCS-2
// and its like are not allowed for clients.
var clientCharsets = map[uint16]encoding.Encoding{
	1: traditionalchinese.Big5, 84: traditionalchinese.Big5,
	13: japanese.ShiftJIS, 88: japanese.ShiftJIS, 95: japanese.ShiftJIS, 96: japanese.ShiftJIS,
	12: japanese.EUCJP, 91: japanese.EUCJP, 97: japanese.EUCJP, 98: japanese.EUCJP,
	19: korean.EUCKR, 85: korean.EUCKR,
	24: simplifiedchinese.GBK, 86: simplifiedchinese.GBK, 28: simplifiedchinese.GBK, 87: simplifiedchinese.GBK,
	248: simplifiedchinese.GB18030, 249: simplifiedchinese.GB18030, 250: simplifiedchinese.GB18030,
	5: charmap.Windows1252, 8: charmap.Windows1252, 15: charmap.Windows1252, 31: charmap.Windows1252,
	47: charmap.Windows1252, 48: charmap.Windows1252, 49: charmap.Windows1252, 94: charmap.Windows1252,
	14: charmap.Windows1251, 23: charmap.Windows1251, 50: charmap.Windows1251, 51: charmap.Windows1251, 52: charmap.Windows1251,
	26: charmap.Windows1250, 34: charmap.Windows1250, 44: charmap.Windows1250, 66: charmap.Windows1250, 99: charmap.Windows1250,
	2: charmap.ISO8859_2, 9: charmap.ISO8859_2, 21: charmap.ISO8859_2, 27: charmap.ISO8859_2, 77: charmap.ISO8859_2,
	7: charmap.KOI8R, 74: charmap.KOI8R, 22: charmap.KOI8U, 75: charmap.KOI8U,
	25: charmap.ISO8859_7, 70: charmap.ISO8859_7, 16: charmap.ISO8859_8, 71: charmap.ISO8859_8,
	30: charmap.ISO8859_9, 78: charmap.ISO8859_9, 57: charmap.Windows1256, 67: charmap.Windows1256,
	29: charmap.Windows1257, 58: charmap.Windows1257, 59: charmap.Windows1257,
	4: charmap.CodePage850, 80: charmap.CodePage850, 40: charmap.CodePage852, 81: charmap.CodePage852,
	36: charmap.CodePage866, 68: charmap.CodePage866, 39: charmap.Macintosh, 53: charmap.Macintosh,
	18: charmap.Windows874, 89: charmap.Windows874,
}

// isUTF8 tells the collation ids of utf8mb4, utf8mb3, ascii and binary (the last two leave the bytes as they are).
func isUTF8(id uint16) bool {
	switch {
	case id == 0, id == 11, id == 63, id == 65:
		return true
	case id == 33, id == 83, id == 76, id >= 192 && id <= 223:
		return true
	case id == 45, id == 46, id >= 224 && id <= 247, id >= 255:
		return true
	}
	return false
}

// decode gives the statement's text as UTF-8. Multi-byte character sets have bytes that look like quotes and
// backslashes, so this comes before everything else.
func decode(sql string, client uint16) (string, error) {
	if isUTF8(client) || isASCII(sql) {
		return sql, nil
	}
	enc, ok := clientCharsets[client]
	if !ok {
		return "", fmt.Errorf("it is written in a character set (collation id %d) that is not known", client)
	}
	text, err := enc.NewDecoder().String(sql)
	if err != nil {
		return "", fmt.Errorf("its text is not valid in its character set (collation id %d): %w", client, err)
	}
	return text, nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// bytesPerChar is the greatest number of bytes of a character in a character set.
func bytesPerChar(charset string) int {
	switch charset {
	case "utf8mb4", "utf16", "utf16le", "utf32", "gb18030":
		return 4
	case "utf8mb3", "utf8", "ujis", "eucjpms":
		return 3
	case "big5", "sjis", "cp932", "gbk", "gb2312", "euckr", "ucs2":
		return 2
	default:
		return 1
	}
}

// specialDefaults are the default collations that are not <charset>_general_ci.
var specialDefaults = map[string]string{
	"latin1": "latin1_swedish_ci", "dec8": "dec8_swedish_ci", "swe7": "swe7_swedish_ci", "hp8": "hp8_english_ci",
	"big5": "big5_chinese_ci", "gbk": "gbk_chinese_ci", "gb2312": "gb2312_chinese_ci", "gb18030": "gb18030_chinese_ci",
	"sjis": "sjis_japanese_ci", "ujis": "ujis_japanese_ci", "cp932": "cp932_japanese_ci", "eucjpms": "eucjpms_japanese_ci",
	"euckr": "euckr_korean_ci", "tis620": "tis620_thai_ci", "latin5": "latin5_turkish_ci", "binary": "binary",
}

// Versions from which servers spell the old three-byte UTF-8 as utf8mb3, in character sets and in collations.
const (
	versionUTF8MB3Charset   = 80028
	versionUTF8MB3Collation = 80030
	versionUTF8MB4AICI      = 80001
)

// collationGeneralUTF8MB4 is the id of utf8mb4_general_ci, the only other default collation of utf8mb4 a session can have.
const collationGeneralUTF8MB4 = 45

// charsetName gives a character set's name as the server prints it.
func (s *statement) charsetName(name string) string {
	name = strings.ToLower(name)
	if name == "utf8" || name == "utf8mb3" {
		if s.server.Version < versionUTF8MB3Charset {
			return "utf8"
		}
		return "utf8mb3"
	}
	return name
}

// collationName gives a collation's name as the server prints it.
func (s *statement) collationName(name string) string {
	name = strings.ToLower(name)
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok && s.server.Version >= versionUTF8MB3Collation {
		return "utf8mb3_" + rest
	}
	return name
}

// charsetOf gives the character set that a collation belongs to.
func (s *statement) charsetOf(collation string) string {
	charset, _, _ := strings.Cut(collation, "_")
	return s.charsetName(charset)
}

// defaultCollation gives the collation that a character set named alone stands for.
func (s *statement) defaultCollation(charset string) string {
	if charset == "utf8mb4" {
		if s.server.Version < versionUTF8MB4AICI || s.st.UTF8MB4Collation == collationGeneralUTF8MB4 {
			return "utf8mb4_general_ci"
		}
		return "utf8mb4_0900_ai_ci"
	}
	if c, ok := specialDefaults[charset]; ok {
		return c
	}
	return s.collationName(charset + "_general_ci")
}

// binaryCollation gives the collation that the attribute BINARY stands for.
func (s *statement) binaryCollation(charset string) string {
	if charset == "binary" {
		return "binary"
	}
	return s.collationName(charset + "_bin")
}

// serverCollations are the defaults that servers are configured with, by collation id.
var serverCollations = map[uint16]string{
	8: "latin1_swedish_ci", 33: "utf8mb3_general_ci", 45: "utf8mb4_general_ci", 46: "utf8mb4_bin", 63: "binary",
	224: "utf8mb4_unicode_ci", 246: "utf8mb4_unicode_520_ci", 255: "utf8mb4_0900_ai_ci", 278: "utf8mb4_0900_as_cs", 305: "utf8mb4_0900_as_ci", 309: "utf8mb4_0900_bin",
}

// serverCollation is collation_server of the statement's session, "" if it is not known.
func (s *statement) serverCollation() string { return serverCollations[s.st.ServerCollation] }
