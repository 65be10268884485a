package engine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// partGroup is parts that one call of read_parquet reads.
type partGroup struct {
	parts   []*Part
	deletes bool
}

// partGroups keeps parts with deleted rows apart, so that the others are read without a filter.
func (s *Scan) partGroups(t *Table) ([]*partGroup, error) {
	whole, holed := &partGroup{}, &partGroup{deletes: true}
	for i := range t.Parts {
		p := &t.Parts[i]
		dead := countDead(p.Dead, p.Rows)
		s.rows += p.Rows - dead
		switch {
		case dead == p.Rows:
		case dead == 0:
			whole.parts = append(whole.parts, p)
		default:
			holed.parts = append(holed.parts, p)
		}
	}
	var out []*partGroup
	for _, g := range []*partGroup{whole, holed} {
		if len(g.parts) > 0 {
			out = append(out, g)
		}
	}
	return out, nil
}

// partsSQL gives a SELECT over one group of parts.
//
// Traps: names are patterns to read_parquet, and "x=y" in a path would add a column; file_index counts the files of this
// call from 0, in their order, which no filter on file names may disturb; comparing it with anything but UBIGINT is slow.
func (s *Scan) partsSQL(g *partGroup) (string, error) {
	var b strings.Builder
	b.WriteString("SELECT ")
	b.WriteString(s.columnList())
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

func (s *Scan) columnList() string {
	names := make([]string, 0, len(s.columns)+1)
	for _, c := range s.columns {
		names = append(names, c.Name)
	}
	return strings.Join(append(names, ExactColumn), ", ")
}

// writeFields writes the entries of the schema map: field id -> name, type and the value of files without the column.
func (s *Scan) writeFields(b *strings.Builder) error {
	for i := range s.columns {
		c := &s.columns[i]
		writeField(b, c.ID, c.Name, c.Type, "NULL")
		b.WriteString(", ")
	}
	writeField(b, schema.ExactFieldID, ExactColumn, Type{ID: Blob}, "NULL")
	return nil
}

func writeField(b *strings.Builder, id uint32, name string, t Type, initial string) {
	b.WriteString(strconv.FormatUint(uint64(id), 10))
	b.WriteString(": {name: ")
	b.WriteString(Quote(name))
	b.WriteString(", type: ")
	b.WriteString(Quote(t.String()))
	b.WriteString(", default_value: ")
	b.WriteString(initial)
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
