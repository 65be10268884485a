package compat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// Zerofill widths of FLOAT and DOUBLE without (M,D).
const (
	floatWidth  = 12
	doubleWidth = 22
)

// parseColumn understands one row of information_schema.COLUMNS. A type that is not known gives an Invalid type, which
// the table's Problems then name.
func parseColumn(row []*string) (schema.Column, error) {
	columnType := text(row[colColumnType])
	c := schema.Column{Name: text(row[colName]), ColumnType: columnType, Nullable: text(row[colNullable]) == "YES", Comment: text(row[colComment]),
		Charset: text(row[colCharset]), Collation: text(row[colCollation])}
	c.Type, _ = schema.ParseType(text(row[colDataType]))
	c.FSP = number(row[colFSP])
	parseExtra(&c, text(row[colExtra]), text(row[colGenerated]))
	if row[colDefault] != nil && c.Generated == "" {
		value := *row[colDefault]
		if c.DefaultExpr {
			value = unescape(value)
		}
		c.Default = &value
	}
	switch c.Type {
	case schema.Enum, schema.Set:
		elements, err := parseLabels(columnType)
		if err != nil {
			return c, fmt.Errorf("column %s: %w", c.Name, err)
		}
		c.Elements = elements
	case schema.Char, schema.VarChar, schema.Binary, schema.VarBinary:
		c.Length = number(row[colCharLength])
	case schema.Decimal:
		c.Precision, c.Scale = number(row[colPrecision]), number(row[colScale])
	}
	if c.Type.IsInteger() || c.Type == schema.Decimal || c.Type == schema.Float || c.Type == schema.Double || c.Type == schema.Bit || c.Type == schema.Year {
		parseNumeric(&c, row)
	}
	return c, nil
}

func number(p *string) int {
	n, _ := strconv.Atoi(text(p))
	return n
}

// parseNumeric reads what only the full type says: attributes, display width, bits.
func parseNumeric(c *schema.Column, row []*string) {
	words := strings.Fields(c.ColumnType)
	for _, w := range words[1:] {
		c.Unsigned = c.Unsigned || w == "unsigned"
		c.Zerofill = c.Zerofill || w == "zerofill"
	}
	_, arguments, _ := strings.Cut(strings.TrimSuffix(words[0], ")"), "(")
	width, _, _ := strings.Cut(arguments, ",")
	if c.Type != schema.Decimal {
		c.Length, _ = strconv.Atoi(width)
	}
	if c.Type != schema.Float && c.Type != schema.Double {
		return
	}
	c.Scale = schema.FloatUnscaled
	if row[colScale] != nil {
		c.Precision, c.Scale = number(row[colPrecision]), number(row[colScale])
	}
	if c.Length == 0 && c.Zerofill {
		c.Length = doubleWidth
		if c.Type == schema.Float {
			c.Length = floatWidth
		}
	}
}

// parseExtra reads the EXTRA column, such as "DEFAULT_GENERATED on update CURRENT_TIMESTAMP(3)".
func parseExtra(c *schema.Column, extra, expression string) {
	upper := strings.ToUpper(extra)
	c.AutoIncrement = strings.Contains(upper, "AUTO_INCREMENT")
	c.Invisible = strings.Contains(upper, "INVISIBLE")
	c.DefaultExpr = strings.Contains(upper, "DEFAULT_GENERATED")
	if i := strings.Index(upper, "ON UPDATE "); i >= 0 {
		c.OnUpdate, _, _ = strings.Cut(extra[i+len("ON UPDATE "):], " ")
	}
	if strings.Contains(upper, "VIRTUAL GENERATED") || strings.Contains(upper, "STORED GENERATED") {
		c.Generated, c.Stored = unescape(expression), strings.Contains(upper, "STORED GENERATED")
	}
}

// unescape undoes the escapes with which information_schema shows expressions.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			b.WriteByte(escaped(s[i]))
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// escaped gives the byte that a backslash and c stand for.
func escaped(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'Z':
		return 0x1A
	}
	return c
}

// parseLabels reads the labels of enum('a','it”s',...) or set(...).
func parseLabels(columnType string) ([]string, error) {
	_, list, ok := strings.Cut(columnType, "(")
	if !ok {
		return nil, fmt.Errorf("no labels in type %s", columnType)
	}
	var labels []string
	for {
		label, rest, err := quotedLabel(list)
		if err != nil {
			return nil, fmt.Errorf("the labels of type %s: %w", columnType, err)
		}
		labels = append(labels, label)
		switch {
		case strings.HasPrefix(rest, ","):
			list = rest[1:]
		case strings.HasPrefix(rest, ")"):
			return labels, nil
		default:
			return nil, fmt.Errorf("the labels of type %s do not end", columnType)
		}
	}
}

func quotedLabel(s string) (label, rest string, err error) {
	if !strings.HasPrefix(s, "'") {
		return "", "", fmt.Errorf("no quote where a label is due")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(escaped(s[i]))
		case s[i] != '\'':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '\'':
			i++
			b.WriteByte('\'')
		default:
			return b.String(), s[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("a label has no end")
}
