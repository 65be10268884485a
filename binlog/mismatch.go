package binlog

import (
	"fmt"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/schema/charset"
)

// mismatch says how the source's description of a column differs from its definition, "" if it does not.
func mismatch(m *mapColumn, c *schema.Column) string {
	want, ok := expected(c)
	if !ok {
		return fmt.Sprintf("type %s is not supported", c.ColumnType)
	}
	typ := m.typ
	switch typ {
	case typeNewDate:
		typ = typeDate
	case typeVarString:
		typ = typeVarChar
	}
	switch {
	case typ != want.typ:
		return fmt.Sprintf("the source has binlog type %d where %s is of type %d", m.typ, c.ColumnType, want.typ)
	case m.length != want.length, m.bits != want.bits:
		return fmt.Sprintf("the source has a length of %d where %s has %d", m.length, c.ColumnType, want.length)
	case m.prec != want.prec, m.scale != want.scale:
		return fmt.Sprintf("the source has decimal(%d,%d) where the definition has %s", m.prec, m.scale, c.ColumnType)
	case m.fsp != want.fsp:
		return fmt.Sprintf("the source has %d fractional digits of a second where the definition has %s", m.fsp, c.ColumnType)
	case m.nullable != c.Nullable:
		return fmt.Sprintf("the source says nullable = %t, the definition %t", m.nullable, c.Nullable)
	case m.signKnown && m.unsigned != (c.Unsigned || c.Zerofill):
		return fmt.Sprintf("the source says unsigned = %t where the definition has %s", m.unsigned, c.ColumnType)
	case m.name != "" && m.name != c.Name:
		return fmt.Sprintf("the source calls it %q", m.name)
	}
	if reason := charsetMismatch(m, c); reason != "" {
		return reason
	}
	return labelMismatch(m, c)
}

// expected is how the source describes a column of definition c.
func expected(c *schema.Column) (want mapColumn, ok bool) {
	fixed := map[schema.Type]mapColumn{
		schema.TinyInt: {typ: typeTiny}, schema.SmallInt: {typ: typeShort}, schema.MediumInt: {typ: typeInt24},
		schema.Int: {typ: typeLong}, schema.BigInt: {typ: typeLongLong}, schema.Year: {typ: typeYear}, schema.Date: {typ: typeDate},
		schema.Float: {typ: typeFloat, length: 4}, schema.Double: {typ: typeDouble, length: 8}, schema.JSON: {typ: typeJSON, length: 4},
		schema.TinyText: {typ: typeBlob, length: 1}, schema.Text: {typ: typeBlob, length: 2},
		schema.MediumText: {typ: typeBlob, length: 3}, schema.LongText: {typ: typeBlob, length: 4},
		schema.TinyBlob: {typ: typeBlob, length: 1}, schema.Blob: {typ: typeBlob, length: 2},
		schema.MediumBlob: {typ: typeBlob, length: 3}, schema.LongBlob: {typ: typeBlob, length: 4},
		schema.Geometry: {typ: typeGeometry, length: 4}, schema.Vector: {typ: typeVector, length: 4},
		schema.DateTime: {typ: typeDateTime2, fsp: c.FSP}, schema.Timestamp: {typ: typeTimestamp2, fsp: c.FSP},
		schema.Time: {typ: typeTime2, fsp: c.FSP}, schema.Decimal: {typ: typeNewDecimal, prec: c.Precision, scale: c.Scale},
		schema.Bit:  {typ: typeBit, bits: c.Length, length: (c.Length + 7) / 8},
		schema.Enum: {typ: typeEnum, length: enumBytes(len(c.Elements))}, schema.Set: {typ: typeSet, length: setBytes(len(c.Elements))},
		schema.Char: {typ: typeString, length: c.Length * schema.CharBytes(c.Charset)}, schema.Binary: {typ: typeString, length: c.Length},
		schema.VarChar: {typ: typeVarChar, length: c.Length * schema.CharBytes(c.Charset)}, schema.VarBinary: {typ: typeVarChar, length: c.Length},
	}
	want, ok = fixed[c.Type]
	if c.Type == schema.Decimal && (c.Precision < 1 || c.Precision > maxDecimal || c.Scale < 0 || c.Scale > c.Precision) {
		return want, false
	}
	return want, ok
}

func enumBytes(labels int) int {
	if labels < 256 {
		return 1
	}
	return 2
}

func setBytes(labels int) int {
	if n := (labels + 7) / 8; n <= 4 {
		return n
	}
	return 8
}

// charsetMismatch compares character sets. Collations of one character set do not change what is stored.
func charsetMismatch(m *mapColumn, c *schema.Column) string {
	if m.collation == 0 {
		return ""
	}
	got := charset.NameOf(m.collation)
	if got == "" {
		return "" // newer than the table of names
	}
	want := c.Charset
	if c.Type.IsBinary() {
		want = "binary"
	}
	if want == "utf8" {
		want = "utf8mb3"
	}
	if got != want {
		return fmt.Sprintf("the source has character set %s where the definition has %s", got, want)
	}
	return ""
}

func labelMismatch(m *mapColumn, c *schema.Column) string {
	if m.labels == nil {
		return ""
	}
	if len(m.labels) != len(c.Elements) {
		return fmt.Sprintf("the source has %d labels where the definition has %d", len(m.labels), len(c.Elements))
	}
	for i, label := range m.labels {
		if text, _ := schema.ToUTF8(c.Charset, label); string(text) != c.Elements[i] {
			return fmt.Sprintf("the source's label %d is another than in the definition", i+1)
		}
	}
	return ""
}
