package ddl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// typeSpec is a data type as written.
type typeSpec struct {
	// base is the type's name as information_schema has it in DATA_TYPE, before its length is taken into account.
	base               string
	length, scale      int // -1: not given
	unsigned, zerofill bool
	elements           []string
	charset            string
	binary             bool // attribute BINARY: the character set's binary collation
	byteType           bool // CHAR BYTE: the binary type instead of the text type
	serial             bool
}

// plainTypes are types whose names stand alone, by what MySQL calls them.
var plainTypes = map[string]string{
	"TINYINT": "tinyint", "INT1": "tinyint", "SMALLINT": "smallint", "INT2": "smallint", "MEDIUMINT": "mediumint", "INT3": "mediumint",
	"MIDDLEINT": "mediumint", "INT": "int", "INTEGER": "int", "INT4": "int", "BIGINT": "bigint", "INT8": "bigint",
	"FLOAT": "float", "FLOAT4": "float", "FLOAT8": "double", "DECIMAL": "decimal", "DEC": "decimal", "NUMERIC": "decimal", "FIXED": "decimal",
	"BIT": "bit", "DATE": "date", "TIME": "time", "DATETIME": "datetime", "TIMESTAMP": "timestamp", "YEAR": "year",
	"VARCHAR": "varchar", "VARCHARACTER": "varchar", "BINARY": "binary", "VARBINARY": "varbinary",
	"TINYBLOB": "tinyblob", "BLOB": "blob", "MEDIUMBLOB": "mediumblob", "LONGBLOB": "longblob",
	"TINYTEXT": "tinytext", "TEXT": "text", "MEDIUMTEXT": "mediumtext", "LONGTEXT": "longtext", "JSON": "json", "VECTOR": "vector",
	"GEOMETRY": "geometry", "POINT": "point", "LINESTRING": "linestring", "POLYGON": "polygon", "MULTIPOINT": "multipoint",
	"MULTILINESTRING": "multilinestring", "MULTIPOLYGON": "multipolygon", "GEOMETRYCOLLECTION": "geomcollection", "GEOMCOLLECTION": "geomcollection",
}

func (p *parser) dataType() typeSpec {
	t := typeSpec{length: -1, scale: -1}
	if p.peek().kind != tokWord {
		p.unexpected("a data type")
		return t
	}
	if p.err == nil {
		p.typeName(&t)
	}
	switch t.base {
	case "enum", "set":
		p.labels(&t)
	default:
		p.lengths(&t)
	}
	p.typeAttributes(&t)
	return t
}

func (p *parser) typeName(t *typeSpec) {
	switch {
	case p.word("DOUBLE"):
		p.word("PRECISION")
		t.base = "double"
	case p.word("REAL"):
		t.base = "double"
		if p.s.st.SQLMode&modeRealAsFloat != 0 {
			t.base = "float"
		}
	case p.oneOf("BOOL", "BOOLEAN") != "":
		t.base, t.length = "tinyint", 1
	case p.word("SERIAL"):
		t.base, t.unsigned, t.serial = "bigint", true, true
	case p.word("NATIONAL"):
		t.charset = p.s.charsetName("utf8mb3")
		p.charType(t)
	case p.word("NCHAR"):
		t.charset, t.base = p.s.charsetName("utf8mb3"), "char"
		if p.oneOf("VARCHAR", "VARCHARACTER", "VARYING") != "" {
			t.base = "varchar"
		}
	case p.word("NVARCHAR"):
		t.charset, t.base = p.s.charsetName("utf8mb3"), "varchar"
	case p.peek().is("CHAR"), p.peek().is("CHARACTER"):
		p.charType(t)
	case p.word("LONG"):
		p.longType(t)
	case p.word("ENUM"):
		t.base = "enum"
	case p.word("SET"):
		t.base = "set"
	default:
		word := strings.ToUpper(p.peek().text)
		if t.base = plainTypes[word]; t.base == "" {
			p.fail("data type %q is not known", p.peek().text)
			return
		}
		p.take()
	}
}

func (p *parser) charType(t *typeSpec) {
	t.base = "varchar"
	if p.oneOf("VARCHAR", "VARCHARACTER") != "" {
		return
	}
	if p.oneOf("CHAR", "CHARACTER") == "" {
		p.unexpected("CHAR")
	}
	if !p.word("VARYING") {
		t.base = "char"
	}
}

func (p *parser) longType(t *typeSpec) {
	t.base = "mediumtext"
	switch {
	case p.word("VARBINARY"):
		t.base = "mediumblob"
	case p.oneOf("CHAR", "CHARACTER") != "":
		p.wantWord("VARYING")
	default:
		p.oneOf("VARCHAR", "VARCHARACTER")
	}
}

// lengths takes (length[, scale]).
func (p *parser) lengths(t *typeSpec) {
	if !p.punct('(') {
		return
	}
	t.length = p.number()
	if p.punct(',') {
		t.scale = p.number()
	}
	p.wantPunct(')')
}

// labels takes the labels of ENUM and SET. The server cuts spaces off their ends.
func (p *parser) labels(t *typeSpec) {
	p.wantPunct('(')
	for p.err == nil {
		switch tok := p.peek(); tok.kind {
		case tokString:
			t.elements = append(t.elements, strings.TrimRight(p.take().text, " "))
		default:
			p.unexpected("a label")
		}
		if !p.punct(',') {
			break
		}
	}
	p.wantPunct(')')
}

// typeAttributes takes the attributes that belong to the type and stand directly behind it.
func (p *parser) typeAttributes(t *typeSpec) {
	for p.err == nil {
		switch {
		case p.word("UNSIGNED"):
			t.unsigned = true
		case p.word("SIGNED"):
		case p.word("ZEROFILL"):
			t.zerofill, t.unsigned = true, true
		case p.word("ASCII"):
			t.charset = "latin1"
		case p.word("UNICODE"):
			t.charset = "ucs2"
		case p.word("BYTE"):
			t.byteType = true
		case p.word("BINARY"):
			t.binary = true
		case p.charsetWord():
			t.charset = p.s.charsetName(p.value().text)
		default:
			return
		}
	}
}

// Sizes up to which TEXT(n), BLOB(n) and too long VARCHARs become which type.
const (
	maxTiny   = 255
	maxText   = 65535
	maxMedium = 16777215
)

func sizedType(bytes int) string {
	switch {
	case bytes <= maxTiny:
		return "tiny"
	case bytes <= maxText:
		return ""
	case bytes <= maxMedium:
		return "medium"
	default:
		return "long"
	}
}

// versionNoWidths is the version from which integers have no display width, but for TINYINT(1) and ZEROFILL.
const versionNoWidths = 80019

// resolve gives the type as COLUMN_TYPE prints it, and the column's character set and collation ("" for types without).
func (s *statement) resolve(t *typeSpec, collate, charset, collation string) (text, cs, co string, err error) {
	if !isText(t.base) {
		return s.columnType(t), "", "", nil
	}
	cs, co = s.columnCharset(t, collate, charset, collation)
	if cs == "binary" && t.base != "enum" && t.base != "set" || t.byteType {
		b := binaryForm(*t)
		text, _, _, err = s.resolve(&b, "", "", "")
		return text, "", "", err
	}
	if cs == "binary" {
		return s.columnType(t), "", "", nil
	}
	sized := *t
	s.resize(&sized, schema.CharBytes(cs))
	if !schema.SupportedCharset(cs) && !isASCII(strings.Join(t.elements, "")) {
		return "", "", "", fmt.Errorf("labels in character set %s can't be read", cs)
	}
	return s.columnType(&sized), cs, co, nil
}

// columnCharset applies the rules of the manual, "Column Character Set and Collation".
func (s *statement) columnCharset(t *typeSpec, collate, charset, collation string) (string, string) {
	switch {
	case collate != "":
		return s.charsetOf(collate), collate
	case t.charset != "":
		charset, collation = t.charset, s.defaultCollation(t.charset)
	}
	if t.binary {
		collation = s.binaryCollation(charset)
	}
	return charset, collation
}

func isText(base string) bool {
	switch base {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set":
		return true
	}
	return false
}

// binaryForm gives the binary type that stands for a text type in character set binary.
func binaryForm(t typeSpec) typeSpec {
	switch t.base {
	case "char":
		t.base = "binary"
	case "varchar":
		t.base = "varbinary"
	default:
		t.base = strings.Replace(t.base, "text", "blob", 1)
	}
	t.charset, t.binary, t.byteType = "", false, false
	return t
}

// resize picks the size of TEXT(n), and turns a VARCHAR that is too long into a TEXT, as servers do that are not strict.
func (s *statement) resize(t *typeSpec, perChar int) {
	long := t.base == "varchar" || t.base == "varbinary"
	sized := t.base == "text" || t.base == "blob"
	if t.length < 0 || !sized && (!long || t.length*perChar <= maxText) {
		return
	}
	kind := "text"
	if t.base == "blob" || t.base == "varbinary" {
		kind = "blob"
	}
	t.base, t.length = sizedType(t.length*perChar)+kind, -1
}

// columnType prints the type as information_schema does.
func (s *statement) columnType(in *typeSpec) string {
	t := *in
	s.resize(&t, 1)
	if t.base == "float" && t.length >= 0 && t.scale < 0 {
		if t.length > 24 {
			t.base = "double"
		}
		t.length = -1
	}
	out := t.base + s.typeArguments(&t)
	if t.unsigned {
		out += " unsigned"
	}
	if t.zerofill {
		out += " zerofill"
	}
	return out
}

// integerWidths are the display widths of integers declared without one: signed and unsigned.
var integerWidths = map[string][2]int{"tinyint": {4, 3}, "smallint": {6, 5}, "mediumint": {9, 8}, "int": {11, 10}, "bigint": {20, 20}}

func (s *statement) typeArguments(t *typeSpec) string {
	one := func(n int) string { return "(" + strconv.Itoa(n) + ")" }
	switch t.base {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return s.integerWidth(t)
	case "decimal":
		precision := t.length
		if precision <= 0 {
			precision = 10
		}
		return fmt.Sprintf("(%d,%d)", precision, max(t.scale, 0))
	case "float", "double":
		if t.scale < 0 {
			return ""
		}
		return fmt.Sprintf("(%d,%d)", t.length, t.scale)
	case "bit", "char", "binary":
		if t.length < 0 {
			return one(1)
		}
		return one(t.length)
	case "varchar", "varbinary":
		return one(t.length)
	case "vector":
		if t.length < 0 {
			return one(2048)
		}
		return one(t.length)
	case "datetime", "timestamp", "time":
		if t.length <= 0 {
			return ""
		}
		return one(t.length)
	case "year":
		if s.server.Version < versionNoWidths {
			return one(4)
		}
		return ""
	case "enum", "set":
		quoted := make([]string, len(t.elements))
		for i, e := range t.elements {
			quoted[i] = schema.QuoteLabel(e)
		}
		return "(" + strings.Join(quoted, ",") + ")"
	}
	return ""
}

func (s *statement) integerWidth(t *typeSpec) string {
	width := t.length
	if width < 0 {
		width = integerWidths[t.base][0]
		if t.unsigned {
			width = integerWidths[t.base][1]
		}
	}
	boolean := t.base == "tinyint" && t.length == 1 && !t.unsigned
	if s.server.Version >= versionNoWidths && !t.zerofill && !boolean {
		return ""
	}
	return "(" + strconv.Itoa(width) + ")"
}
