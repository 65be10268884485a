package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// partGroup is parts that one call of read_parquet reads.
type partGroup struct {
	parts   []*Part
	deletes bool
	// exact is what all rows of the parts have in the hidden column besides what the files say: the initial values of
	// columns that the parts do not have.
	exact string
}

// partGroups keeps parts with deleted rows apart, so that the others are read without a filter.
func (s *Scan) partGroups(t *Table) []*partGroup {
	var out []*partGroup
	for i := range t.Parts {
		p := &t.Parts[i]
		dead := countDead(p.Dead, p.Rows)
		s.rows += p.Rows - dead
		if dead == p.Rows {
			continue
		}
		exact := string(s.missingExact(p.has))
		at := slices.IndexFunc(out, func(g *partGroup) bool { return g.deletes == (dead > 0) && g.exact == exact })
		if at < 0 {
			at = len(out)
			out = append(out, &partGroup{deletes: dead > 0, exact: exact})
		}
		out[at].parts = append(out[at].parts, p)
	}
	return out
}

// addParts makes one group of parts ready.
func (s *Scan) addParts(g *partGroup) error {
	filter := ""
	if g.deletes {
		h, err := s.aliveHandle(g.parts)
		if err != nil {
			return err
		}
		filter = fmt.Sprintf(" WHERE %s(%d::UBIGINT, file_index, file_row_number)", aliveFunction, h.id)
	}
	s.branches = append(s.branches, func(p projection) string { return s.partsSQL(g, p) + filter })
	return nil
}

// partsSQL gives a SELECT over one group of parts.
//
// Traps: names are patterns to read_parquet, and "x=y" in a path would add a column; file_index counts the files of this
// call from 0, in their order, which no filter on file names may disturb; comparing it with anything but UBIGINT is slow.
func (s *Scan) partsSQL(g *partGroup, p projection) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	b.WriteString(p.list(g.exact))
	b.WriteString(" FROM read_parquet([")
	for i, p := range g.parts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Quote(escapeGlob(p.Path)))
	}
	b.WriteString("], schema = MAP {")
	s.writeFields(&b, p)
	b.WriteString("}, hive_partitioning = false)")
	return b.String()
}

// list names the columns. added is what all rows have in the hidden one besides its own.
func (p projection) list(added string) string {
	names := make([]string, 0, len(p.columns)+1)
	for _, c := range p.columns {
		names = append(names, c.Name)
	}
	switch {
	case p.exact && added != "":
		names = append(names, fmt.Sprintf("coalesce(%[1]s, ''::BLOB) || %[2]s::BLOB AS %[1]s", ExactColumn, Quote(blobText([]byte(added)))))
	case p.exact:
		names = append(names, ExactColumn)
	}
	return strings.Join(names, ", ")
}

// writeFields writes the entries of the schema map: field id -> name, type and the value of files without the column.
func (s *Scan) writeFields(b *strings.Builder, p projection) {
	for i := range p.columns {
		c := &p.columns[i]
		value, ok := s.literals[c.ID]
		if !ok {
			value = "NULL"
		}
		if i > 0 {
			b.WriteString(", ")
		}
		writeField(b, c.ID, c.Name, c.Type, value)
	}
	if !p.exact {
		return
	}
	if len(p.columns) > 0 {
		b.WriteString(", ")
	}
	writeField(b, schema.ExactFieldID, ExactColumn, Type{ID: Blob}, "NULL")
}

func writeField(b *strings.Builder, id uint32, name string, t Type, value string) {
	b.WriteString(strconv.FormatUint(uint64(id), 10))
	b.WriteString(": {name: ")
	b.WriteString(Quote(name))
	b.WriteString(", type: ")
	b.WriteString(Quote(t.String()))
	b.WriteString(", default_value: ")
	b.WriteString(value)
	b.WriteString("}")
}

// emptySQL gives no rows, with the right types.
func (p projection) emptySQL() string {
	var columns []string
	for _, c := range p.columns {
		columns = append(columns, fmt.Sprintf("NULL::%s AS %s", c.Type, c.Name))
	}
	if p.exact {
		columns = append(columns, "NULL::BLOB AS "+ExactColumn)
	}
	return "SELECT " + strings.Join(columns, ", ") + " WHERE false"
}
