package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseColumnType(t *testing.T) {
	for text, want := range map[string]Column{
		"int":                           {Type: Int},
		"int(7) unsigned zerofill":      {Type: Int, Length: 7, Unsigned: true, Zerofill: true},
		"tinyint(1)":                    {Type: TinyInt, Length: 1},
		"bigint unsigned":               {Type: BigInt, Unsigned: true},
		"decimal(7,3) unsigned":         {Type: Decimal, Precision: 7, Scale: 3, Unsigned: true},
		"float unsigned zerofill":       {Type: Float, Length: 12, Scale: FloatUnscaled, Unsigned: true, Zerofill: true},
		"double":                        {Type: Double, Scale: FloatUnscaled},
		"double(10,2)":                  {Type: Double, Length: 10, Precision: 10, Scale: 2},
		"datetime(3)":                   {Type: DateTime, FSP: 3},
		"time":                          {Type: Time},
		"year":                          {Type: Year},
		"year(4)":                       {Type: Year, Length: 4},
		"bit(64)":                       {Type: Bit, Length: 64},
		"char(0)":                       {Type: Char},
		"varchar(700)":                  {Type: VarChar, Length: 700},
		"mediumtext":                    {Type: MediumText},
		"enum('a','it''s','b\\\\s','')": {Type: Enum, Elements: []string{"a", "it's", `b\s`, ""}},
		"set(',','(x)','\\n\\0\\r')":    {Type: Set, Elements: []string{",", "(x)", "\n\x00\r"}},
		"geomcollection":                {Type: Geometry},
		"vector(3)":                     {Type: Vector, Length: 3},
		"inet6":                         {Type: Invalid},
	} {
		want.ColumnType = text
		got, err := ParseColumnType(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseColumnTypeBad(t *testing.T) {
	for _, text := range []string{"int(", "int(x)", "enum()", "enum('a)", "enum('a' 'b')", "set(a)"} {
		_, err := ParseColumnType(text)
		require.Error(t, err, text)
	}
}

func TestQuoteLabel(t *testing.T) {
	for _, label := range []string{"", "a", "it's", `b\s`, "n\nl", "z\x00y", "r\rr", "é,"} {
		c, err := ParseColumnType("enum(" + QuoteLabel(label) + ")")
		require.NoError(t, err)
		require.Equal(t, []string{label}, c.Elements)
	}
}

func FuzzParseColumnType(f *testing.F) {
	for _, s := range []string{"int", "decimal(1,2)", "enum('a','b''')", "set('\\", "x(", ")("} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { _, _ = ParseColumnType(s) })
}
