package query

import (
	"strings"

	"github.com/tidemarkdb/tidemark/query/result"
)

// Charset is a character set that a client may name: those whose text is converted.
type Charset struct {
	Name, Description string
	Collation         string // the default one
	MaxBytes          int    // of a character
}

// Collation is a collation of one of them.
type Collation struct {
	Name, Charset string
	ID            int
	Default       bool
	Pad           string
	SortLength    int
}

// Charsets lists the character sets by name.
var Charsets = []Charset{
	{"ascii", "US ASCII", "ascii_general_ci", 1},
	{"binary", "Binary pseudo charset", "binary", 1},
	{"latin1", "cp1252 West European", "latin1_swedish_ci", 1},
	{"utf8mb3", "UTF-8 Unicode", "utf8mb3_general_ci", 3},
	{"utf8mb4", "UTF-8 Unicode", "utf8mb4_0900_ai_ci", 4},
}

// Collations lists their collations, those of single languages left out, by name.
var Collations = []Collation{
	{"ascii_bin", "ascii", 65, false, "PAD SPACE", 1},
	{"ascii_general_ci", "ascii", 11, true, "PAD SPACE", 1},
	{"binary", "binary", 63, true, "NO PAD", 1},
	{"latin1_bin", "latin1", 47, false, "PAD SPACE", 1},
	{"latin1_danish_ci", "latin1", 15, false, "PAD SPACE", 1},
	{"latin1_general_ci", "latin1", 48, false, "PAD SPACE", 1},
	{"latin1_general_cs", "latin1", 49, false, "PAD SPACE", 1},
	{"latin1_german1_ci", "latin1", 5, false, "PAD SPACE", 1},
	{"latin1_german2_ci", "latin1", 31, false, "PAD SPACE", 2},
	{"latin1_spanish_ci", "latin1", 94, false, "PAD SPACE", 1},
	{"latin1_swedish_ci", "latin1", 8, true, "PAD SPACE", 1},
	{"utf8mb3_bin", "utf8mb3", 83, false, "PAD SPACE", 1},
	{"utf8mb3_general_ci", "utf8mb3", 33, true, "PAD SPACE", 1},
	{"utf8mb3_unicode_ci", "utf8mb3", 192, false, "PAD SPACE", 8},
	{"utf8mb4_0900_ai_ci", "utf8mb4", 255, true, "NO PAD", 0},
	{"utf8mb4_0900_as_ci", "utf8mb4", 305, false, "NO PAD", 0},
	{"utf8mb4_0900_as_cs", "utf8mb4", 278, false, "NO PAD", 0},
	{"utf8mb4_0900_bin", "utf8mb4", 309, false, "NO PAD", 1},
	{"utf8mb4_bin", "utf8mb4", 46, false, "PAD SPACE", 1},
	{"utf8mb4_general_ci", "utf8mb4", 45, false, "PAD SPACE", 1},
	{"utf8mb4_unicode_520_ci", "utf8mb4", 246, false, "PAD SPACE", 8},
	{"utf8mb4_unicode_ci", "utf8mb4", 224, false, "PAD SPACE", 8},
}

// CharsetByName finds a character set in any case; nil when there is none.
func CharsetByName(name string) *Charset {
	for i := range Charsets {
		if strings.EqualFold(Charsets[i].Name, name) {
			return &Charsets[i]
		}
	}
	return nil
}

// CollationByName finds a collation in any case, utf8_ standing for utf8mb3_; nil when there is none.
func CollationByName(name string) *Collation {
	name = strings.ToLower(name)
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok {
		name = "utf8mb3_" + rest
	}
	for i := range Collations {
		if Collations[i].Name == name {
			return &Collations[i]
		}
	}
	return nil
}

// CollationByID finds a collation by MySQL's number; nil when there is none.
func CollationByID(id int) *Collation {
	for i := range Collations {
		if Collations[i].ID == id {
			return &Collations[i]
		}
	}
	return nil
}

func characterSets() *result.Table {
	t := informationTable("CHARACTER_SETS")
	for _, c := range Charsets {
		t.Add(c.Name, c.Collation, c.Description, c.MaxBytes)
	}
	return t
}

func collationsTable() *result.Table {
	t := informationTable("COLLATIONS")
	for _, c := range Collations {
		t.Add(c.Name, c.Charset, c.ID, c.defaultMark(), "Yes", c.SortLength, c.Pad)
	}
	return t
}

func (c *Collation) defaultMark() string {
	if c.Default {
		return "Yes"
	}
	return ""
}

func applicability() *result.Table {
	t := informationTable("COLLATION_CHARACTER_SET_APPLICABILITY")
	for _, c := range Collations {
		t.Add(c.Name, c.Charset)
	}
	return t
}
