package ddl

import (
	"fmt"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/schema/charset"
)

// decode gives the statement's text as UTF-8. Multi-byte character sets have bytes that look like quotes and
// backslashes, so this comes before everything else. UTF-8 is taken as it is, and so is what is written in binary.
func decode(sql string, client uint16) (string, error) {
	const unknown, binary = 0, 63
	if client == unknown || client == binary {
		return sql, nil
	}
	cs := charset.ByCollation(client)
	switch {
	case cs == nil:
		return "", fmt.Errorf("it is written in a character set (collation id %d) that is not known", client)
	case strings.HasPrefix(cs.Name(), "utf8"), cs.Name() == "ascii", cs.ASCII() && isASCII(sql):
		return sql, nil
	}
	text, ok := cs.ToUTF8([]byte(sql))
	if !ok {
		return "", fmt.Errorf("its text is not valid in its character set %s", cs.Name())
	}
	return string(text), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
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
	return s.collationName(schema.DefaultCollation(charset))
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
