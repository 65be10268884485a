package compat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// parseColumn understands one row of information_schema.COLUMNS. A type that is not known gives an Invalid type, which
// the table's Problems then name.
func parseColumn(row []*string) (schema.Column, error) {
	c, err := schema.ParseColumnType(text(row[colColumnType]))
	c.Name = text(row[colName])
	if err != nil {
		return c, fmt.Errorf("column %s: %w", c.Name, err)
	}
	c.Nullable, c.Comment = text(row[colNullable]) == "YES", text(row[colComment])
	c.Charset, c.Collation = text(row[colCharset]), text(row[colCollation])
	parseExtra(&c, text(row[colExtra]), text(row[colGenerated]))
	if row[colSRID] != nil {
		srid, err := strconv.ParseUint(*row[colSRID], 10, 32)
		if err != nil {
			return c, fmt.Errorf("column %s: SRS_ID %q: %w", c.Name, *row[colSRID], err)
		}
		c.SRID = new(uint32(srid))
	}
	// Before 8.0.13 there is no DEFAULT_GENERATED, and this is the only default that is no literal (from the manual: MySQL
	// 8.0, "Data Type Default Values"). No literal of these types begins like that.
	if (c.Type == schema.DateTime || c.Type == schema.Timestamp) && strings.HasPrefix(strings.ToUpper(text(row[colDefault])), "CURRENT_TIMESTAMP") {
		c.DefaultExpr = true
	}
	if row[colDefault] != nil && c.Generated == "" {
		value := *row[colDefault]
		if c.DefaultExpr {
			value = unescape(value)
		}
		c.Default = &value
	}
	return c, nil
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
