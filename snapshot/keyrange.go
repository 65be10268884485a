package snapshot

import (
	"encoding/hex"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// boundary is a place in the key's order: a value of each of the columns that are cut by, as SQL literals. nil is the
// open end.
type boundary []string

// keyRange is the rows behind after, up to and with upTo.
type keyRange struct{ after, upTo boundary }

// rangeColumns gives the leading columns of the key by which the table can be cut: those whose values can be written as
// literals that compare exactly as the column does.
func rangeColumns(t *schema.Table) []*schema.Column {
	var out []*schema.Column
	for _, i := range t.Key {
		c := &t.Columns[i]
		if !cuttable(c) {
			break
		}
		out = append(out, c)
	}
	return out
}

func cuttable(c *schema.Column) bool {
	switch c.Type {
	case schema.Date, schema.DateTime, schema.Timestamp, schema.Time, schema.Year, schema.Decimal,
		schema.Char, schema.VarChar, schema.Binary, schema.VarBinary:
		return true
	}
	return c.Type.IsInteger()
}

// literal writes a value, as a text query gave it, so that it compares with its column in the column's own type and
// collation. Bytes are never taken through a character set.
func literal(c *schema.Column, value string) string {
	quoted := "x'" + hex.EncodeToString([]byte(value)) + "'"
	switch c.Type {
	case schema.Char, schema.VarChar:
		return "_" + c.Charset + " " + quoted
	case schema.Binary, schema.VarBinary:
		return quoted
	case schema.Date, schema.DateTime, schema.Timestamp, schema.Time:
		return wire.Literal(value)
	}
	return value
}

// condition gives the WHERE clause of the range, "" for all rows. Rows are compared column by column, as the server
// uses no index for a comparison of row constructors.
func (r keyRange) condition(columns []*schema.Column) string {
	var parts []string
	if r.after != nil {
		parts = append(parts, compare(columns, r.after, ">", ">"))
	}
	if r.upTo != nil {
		parts = append(parts, compare(columns, r.upTo, "<", "<="))
	}
	if len(parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(parts, " AND ")
}

// compare writes (a > 1 OR a = 1 AND b > 2), with the last column compared by last.
func compare(columns []*schema.Column, values boundary, op, last string) string {
	var b strings.Builder
	b.WriteByte('(')
	for i := range columns {
		if i > 0 {
			b.WriteString(" OR ")
		}
		for j := range i {
			b.WriteString(wire.Identifier(columns[j].Name) + " = " + values[j] + " AND ")
		}
		if i == len(columns)-1 {
			op = last
		}
		b.WriteString(wire.Identifier(columns[i].Name) + " " + op + " " + values[i])
	}
	b.WriteByte(')')
	return b.String()
}

func names(columns []*schema.Column) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = wire.Identifier(c.Name)
	}
	return strings.Join(quoted, ", ")
}

func keyColumns(t *schema.Table) []*schema.Column {
	out := make([]*schema.Column, len(t.Key))
	for i, k := range t.Key {
		out[i] = &t.Columns[k]
	}
	return out
}

func from(t *schema.Table) string {
	return " FROM " + wire.Identifier(t.Database) + "." + wire.Identifier(t.Name) + " FORCE INDEX (" + wire.Identifier(t.KeyName) + ")"
}

// rangeQuery reads a range in the order of the key, which is the order in which InnoDB stores the rows.
func rangeQuery(t *schema.Table, r keyRange) string {
	return "SELECT " + wire.SelectList(t) + from(t) + r.condition(rangeColumns(t)) + " ORDER BY " + names(keyColumns(t))
}
