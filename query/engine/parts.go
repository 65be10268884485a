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

// partsSQL gives a SELECT over one group of parts.
//
// Traps: names are patterns to read_parquet, and "x=y" in a path would add a column; file_index counts the files of this
// call from 0, in their order, which no filter on file names may disturb; comparing it with anything but UBIGINT is slow.
func (s *Scan) partsSQL(g *partGroup) (string, error) {
	var b strings.Builder
	b.WriteString("SELECT ")
	b.WriteString(s.columnList(g.exact))
	b.WriteString(" FROM read_parquet([")
	for i, p := range g.parts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Quote(escapeGlob(p.Path)))
	}
	b.WriteString("], schema = MAP {")
	if err := s.writeFields(&b); err != nil {
		return "", err
	}
	b.WriteString("}, hive_partitioning = false)")
	if g.deletes {
		h, err := s.aliveHandle(g.parts)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, " WHERE %s(%d::UBIGINT, file_index, file_row_number)", aliveFunction, h.id)
	}
	return b.String(), nil
}

func (s *Scan) columnList(exact string) string {
	names := make([]string, 0, len(s.columns)+1)
	for _, c := range s.columns {
		names = append(names, c.Name)
	}
	hidden := ExactColumn
	if exact != "" {
		hidden = fmt.Sprintf("coalesce(%[1]s, ''::BLOB) || %[2]s::BLOB AS %[1]s", ExactColumn, Quote(blobText([]byte(exact))))
	}
	return strings.Join(append(names, hidden), ", ")
}

// writeFields writes the entries of the schema map: field id -> name, type and the value of files without the column.
func (s *Scan) writeFields(b *strings.Builder) error {
	for i := range s.columns {
		c := &s.columns[i]
		value, err := s.initials[c.ID].literal()
		if err != nil {
			return err
		}
		writeField(b, c.ID, c.Name, c.Type, value)
		b.WriteString(", ")
	}
	writeField(b, schema.ExactFieldID, ExactColumn, Type{ID: Blob}, "NULL")
	return nil
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
func (s *Scan) emptySQL() string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for _, c := range s.columns {
		fmt.Fprintf(&b, "NULL::%s AS %s, ", c.Type, c.Name)
	}
	fmt.Fprintf(&b, "NULL::BLOB AS %s WHERE false", ExactColumn)
	return b.String()
}
