package snapshot

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// boundary is a place in the key's order: a value of each of the columns that are cut by, as SQL literals. nil is the
// open end.
type boundary []string

// keyRange is the rows behind after, up to and with upTo.
type keyRange struct{ after, upTo boundary }

// keyColumn is a column of the key, and whether the index has it in descending order or only the beginning of its values.
type keyColumn struct {
	*schema.Column
	desc, prefix bool
}

// keyColumns gives the columns of the key.
func keyColumns(t *schema.Table) []keyColumn {
	out := make([]keyColumn, len(t.Key))
	for i, k := range t.Key {
		out[i].Column = &t.Columns[k]
	}
	at := slices.IndexFunc(t.Indexes, func(ix schema.Index) bool { return ix.Name == t.KeyName })
	if at < 0 {
		return out
	}
	for i, p := range t.Indexes[at].Parts {
		out[i].desc, out[i].prefix = p.Desc, p.Prefix > 0
	}
	return out
}

// rangeColumns gives the leading columns of the key by which the table can be cut: those whose values can be written as
// literals that compare exactly as the column does.
func rangeColumns(t *schema.Table) []keyColumn {
	columns := keyColumns(t)
	end := slices.IndexFunc(columns, func(c keyColumn) bool { return c.prefix || !cuttable(c.Column) })
	if end < 0 {
		return columns
	}
	return columns[:end]
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
func (r keyRange) condition(columns []keyColumn) string {
	var parts []string
	if r.after != nil {
		parts = append(parts, compare(columns, r.after, '>', false))
	}
	if r.upTo != nil {
		parts = append(parts, compare(columns, r.upTo, '<', true))
	}
	if len(parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(parts, " AND ")
}

// compare writes (a > 1 OR a = 1 AND b > 2), or with >= for the last column when the place itself is meant too.
func compare(columns []keyColumn, values boundary, op byte, orEqual bool) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, c := range columns {
		if i > 0 {
			b.WriteString(" OR ")
		}
		for j := range i {
			b.WriteString(wire.Identifier(columns[j].Name) + " = " + values[j] + " AND ")
		}
		b.WriteString(wire.Identifier(c.Name) + " " + c.operator(op))
		if orEqual && i == len(columns)-1 {
			b.WriteByte('=')
		}
		b.WriteString(" " + values[i])
	}
	b.WriteByte(')')
	return b.String()
}

// operator turns < and > around for descending columns.
func (c keyColumn) operator(op byte) string {
	if c.desc {
		op ^= '<' ^ '>'
	}
	return string(op)
}

func names(columns []keyColumn) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = wire.Identifier(c.Name)
	}
	return strings.Join(quoted, ", ")
}

// order gives the ORDER BY clause that follows the index; none where the index doesn't have that order: in a table without
// a key, and where it has only the beginning of values.
func order(columns []keyColumn) string {
	if len(columns) == 0 || slices.ContainsFunc(columns, func(c keyColumn) bool { return c.prefix }) {
		return ""
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = wire.Identifier(c.Name)
		if c.desc {
			quoted[i] += " DESC"
		}
	}
	return " ORDER BY " + strings.Join(quoted, ", ")
}

func from(t *schema.Table) string { return fromBy(t, "FORCE") }

func fromBy(t *schema.Table, hint string) string {
	table := " FROM " + wire.Identifier(t.Database) + "." + wire.Identifier(t.Name)
	if t.Multiset() {
		return table
	}
	return table + " " + hint + " INDEX (" + wire.Identifier(t.KeyName) + ")"
}

// rangeQuery reads a range in the order of the key, which is the order in which InnoDB stores the rows. A table without a
// key is one range.
func rangeQuery(t *schema.Table, r keyRange) string {
	return "SELECT " + wire.SelectList(t) + from(t) + r.condition(rangeColumns(t)) + order(keyColumns(t))
}

func (r keyRange) note() []byte { return []byte(r.condition(nil)) }
