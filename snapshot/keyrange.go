package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// boundary is a place in the key's order: values of the key's leading columns, as SQL literals (see literals.go). One
// with fewer values than the key has columns stands behind all rows that begin with them. nil is the open end.
type boundary []string

// keyRange is the rows behind after, up to and with upTo.
type keyRange struct{ after, upTo boundary }

// keyColumn is a column of the key, and whether the index has it in descending order.
type keyColumn struct {
	*schema.Column
	desc bool
}

// keyColumns gives the columns of the key by which the table can be read chunk by chunk. There are none, and the table is
// one chunk, when it has no key, or when the key's index has only the beginning of some values: it does not have their
// order then.
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
		if p.Prefix > 0 {
			return nil
		}
		out[i].desc = p.Desc
	}
	return out
}

// common is the number of leading values that all rows of the range have.
func (r keyRange) common() int {
	n := 0
	for n+1 < min(len(r.after), len(r.upTo)) && r.after[n] == r.upTo[n] {
		n++
	}
	return n
}

// conditions gives the conditions of the range, none for all rows. Rows are compared column by column, as the server
// uses no index for a comparison of row constructors. What all rows have in common stands by itself: else the server
// would sort the rows of one ENUM value.
func (r keyRange) conditions(columns []keyColumn) []string {
	var parts []string
	n := r.common()
	for i := range n {
		parts = append(parts, columns[i].equals(r.after[i]))
	}
	if r.after != nil {
		parts = append(parts, compare(columns[n:], r.after[n:], '>', false))
	}
	if r.upTo != nil {
		parts = append(parts, compare(columns[n:], r.upTo[n:], '<', true))
	}
	return parts
}

func where(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// compare writes (a > 1 OR a = 1 AND b > 2), or with >= for the last value when the place itself is meant too.
func compare(columns []keyColumn, values boundary, op byte, orEqual bool) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, v := range values {
		if i > 0 {
			b.WriteString(" OR ")
		}
		for j := range i {
			b.WriteString(columns[j].equals(values[j]) + " AND ")
		}
		b.WriteString(columns[i].compares(op, orEqual && i == len(values)-1, v))
	}
	b.WriteByte(')')
	return b.String()
}

func (c keyColumn) equals(literal string) string { return wire.Identifier(c.Name) + " = " + literal }

// compares writes a > 1. For ENUM and SET the optimizer uses an index for equality only; where it is possible, they are
// compared with a list.
func (c keyColumn) compares(op byte, orEqual bool, literal string) string {
	op = c.operator(op)[0]
	if list, ok := c.listed(op, orEqual, literal); ok {
		if len(list) == 0 {
			return "FALSE"
		}
		return wire.Identifier(c.Name) + " IN (" + strings.Join(list, ", ") + ")"
	}
	equal := ""
	if orEqual {
		equal = "="
	}
	return wire.Identifier(c.Name) + " " + string(op) + equal + " " + literal
}

// listed gives all values of an ENUM or SET column beyond one of them, if they are few.
func (c keyColumn) listed(op byte, orEqual bool, literal string) (values []string, ok bool) {
	const most = 64
	all := len(c.Elements) + 1 // 0 is the ENUM value that is none
	switch {
	case c.Type == schema.Set && len(c.Elements) < 7:
		all = 1 << len(c.Elements)
	case c.Type != schema.Enum || all > most:
		return nil, false
	}
	than, err := strconv.Atoi(literal)
	if err != nil {
		return nil, false
	}
	for v := range all {
		if v > than && op == '>' || v < than && op == '<' || v == than && orEqual {
			values = append(values, strconv.Itoa(v))
		}
	}
	return values, true
}

// operator turns < and > around for descending columns.
func (c keyColumn) operator(op byte) string {
	if c.desc {
		op ^= '<' ^ '>'
	}
	return string(op)
}

// order gives the ORDER BY clause that follows the index, or the index backwards.
func order(columns []keyColumn, backwards bool) string {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = wire.Identifier(c.Name)
		if c.desc != backwards {
			quoted[i] += " DESC"
		}
	}
	return " ORDER BY " + strings.Join(quoted, ", ")
}

func tableName(t *schema.Table) string {
	return wire.Identifier(t.Database) + "." + wire.Identifier(t.Name)
}

// fromBy reads through the key's index. The hint is FORCE, or USE where the optimizer is asked for an estimate: with
// FORCE INDEX it does not look into the index.
func fromBy(t *schema.Table, hint string) string {
	return " FROM " + tableName(t) + " " + hint + " INDEX (" + wire.Identifier(t.KeyName) + ")"
}

// rangeQuery reads a range in the order of the key, which is the order in which InnoDB stores the rows. A table without
// columns to read it by is read as it lies.
func rangeQuery(t *schema.Table, columns []keyColumn, r keyRange) string {
	if len(columns) == 0 {
		return "SELECT " + wire.SelectList(t) + " FROM " + tableName(t)
	}
	return "SELECT " + wire.SelectList(t) + fromBy(t, "FORCE") + where(r.conditions(columns)) + order(columns[r.common():], false)
}
