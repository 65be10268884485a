package engine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemarkdb/tidemark/schema"
)

// Table is one table as a reader has pinned it. Everything in it is immutable and must stay as it is until the scans
// made of it are closed.
type Table struct {
	Schema   *schema.Table
	Parts    []Part
	Segments []Segment
}

// Part is one Parquet file, written under the table's schema or an older one. Its columns are found by field id.
type Part struct {
	Path string // absolute
	Rows int64
	// Dead has bit i%64 of word i/64 set when row i is deleted; rows beyond its words are alive. nil: no row is.
	Dead []uint64
	// Wide lists the ids of the BIGINT UNSIGNED and BIT(64) columns that the part stores as decimal(20,0).
	Wide []uint32
	// Exact lists the ids of the columns for which the part's hidden column has values. Empty: the part has no such column.
	Exact []uint32
	// Columns lists the ids of the columns that the part has; nil: all of the table's.
	Columns []uint32
}

// Segment is a batch of rows in memory, made under the table's schema or an older one. The fields of the record carry
// their column ids as [schema.FieldID] reads them.
type Segment struct {
	Record arrow.RecordBatch
	// Exact is the hidden column, or nil. ExactColumns lists the columns for which it has values.
	Exact        *array.Binary
	ExactColumns []uint32
	Dead         []uint64 // as in Part
}

// ExactColumn is the name of the hidden column of exact values in a scan: the BLOB of [schema], NULL in most rows.
const ExactColumn = "exact"

// ScanColumn is one column of a scan.
type ScanColumn struct {
	ID   uint32
	Name string // "c" and the id: c7
	Type Type
	// Exact tells that some row's value is not in this column but in the hidden one, so that expressions over the
	// column would not see it.
	Exact bool
}

// Scan is a table made ready for SQL text. It holds memory of the table for the engine until it is closed.
type Scan struct {
	engine  *Engine
	columns []ScanColumn
	// initials are the values of columns that came by ADD COLUMN, by column id.
	initials map[uint32]initial
	literals map[uint32]string // the initial values as SQL
	// branches give the SELECTs over the parts and the segments, with some of the columns.
	branches []func(p projection) string
	rows     int64
	handles  []*handle
}

// projection is some of a scan's columns. The hidden one is always the last.
type projection struct {
	columns []ScanColumn
	exact   bool
}

// Columns gives the scan's columns in the order of the table's, the hidden one left out.
func (s *Scan) Columns() []ScanColumn { return s.columns }

// SQL gives the relation: a SELECT in parentheses that returns the alive rows, with the columns of Columns and, last,
// the hidden column. It may stand wherever a table may, followed by an alias, any number of times.
func (s *Scan) SQL() string { return s.text(projection{s.columns, true}) }

// SQLOf is SQL with the columns of these ids only, in the order of the table's, and the hidden column only if it is asked
// for: what a statement does not read costs time nevertheless when the engine has to resolve it. Without any, the
// relation has one column that is there for its rows.
func (s *Scan) SQLOf(ids []uint32, exact bool) string {
	p := projection{exact: exact}
	for _, c := range s.columns {
		if slices.Contains(ids, c.ID) {
			p.columns = append(p.columns, c)
		}
	}
	if len(p.columns) == 0 && !exact && len(s.columns) > 0 {
		p.columns = s.columns[:1]
	}
	return s.text(p)
}

func (s *Scan) text(p projection) string {
	selects := make([]string, len(s.branches))
	for i, branch := range s.branches {
		selects[i] = branch(p)
	}
	if len(selects) == 0 {
		return "(" + p.emptySQL() + ")"
	}
	return "(" + strings.Join(selects, " UNION ALL ") + ")"
}

// Rows is the number of alive rows.
func (s *Scan) Rows() int64 { return s.rows }

// Close makes the scan's SQL stale. Calling it again does nothing.
func (s *Scan) Close() {
	for _, h := range s.handles {
		h.release()
	}
	s.handles = nil
}

// Scan makes a pinned table ready for queries.
func (e *Engine) Scan(t Table) (*Scan, error) {
	s := &Scan{engine: e}
	if err := s.build(&t); err != nil {
		s.Close()
		return nil, fmt.Errorf("scan of %s: %w", t.Schema.FullName(), err)
	}
	return s, nil
}

func (s *Scan) build(t *Table) error {
	if err := t.check(); err != nil {
		return err
	}
	var err error
	if s.initials, err = t.initials(); err != nil {
		return err
	}
	segments := t.boundSegments()
	s.columns = t.columns(s.initials, segments)
	s.literals = map[uint32]string{}
	for id, value := range s.initials {
		if s.literals[id], err = value.literal(); err != nil {
			return err
		}
	}
	for _, g := range s.partGroups(t) {
		if err := s.addParts(g); err != nil {
			return err
		}
	}
	if len(segments) == 0 {
		return nil
	}
	return s.addSegments(segments)
}

func (t *Table) check() error {
	for _, p := range t.Parts {
		if !filepath.IsAbs(p.Path) || strings.ContainsRune(p.Path, 0) {
			return fmt.Errorf("part %q: not an absolute path", p.Path)
		}
		if p.Rows < 0 {
			return fmt.Errorf("part %q: %d rows", p.Path, p.Rows)
		}
	}
	return nil
}

// columns gives the scan's columns with the types that hold all values of this version.
func (t *Table) columns(initials map[uint32]initial, segments []boundSegment) []ScanColumn {
	out := make([]ScanColumn, len(t.Schema.Columns))
	for i := range out {
		c := &t.Schema.Columns[i]
		out[i] = ScanColumn{ID: c.ID, Name: columnName(c.ID), Type: columnType(c), Exact: t.hasExact(c.ID)}
		if c.Wide() && !(t.fitsInt64(c.ID, i, segments) && fitInt64(initials[c.ID].value)) {
			out[i].Type = Type{ID: UBigInt}
		}
	}
	return out
}

func columnName(id uint32) string { return "c" + strconv.FormatUint(uint64(id), 10) }

// columnType gives the DuckDB type of a column's values; BIGINT for 64-bit unsigned columns.
func columnType(c *schema.Column) Type {
	switch t := c.ArrowType().(type) {
	case *arrow.Decimal128Type:
		return Type{ID: Decimal, Width: uint8(t.Precision), Scale: uint8(t.Scale)}
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return Type{ID: TimestampTZ}
		}
		return Type{ID: Timestamp}
	default:
		return Type{ID: arrowTypes[t.ID()]}
	}
}

var arrowTypes = map[arrow.Type]TypeID{
	arrow.INT32: Integer, arrow.INT64: BigInt, arrow.UINT64: BigInt, arrow.FLOAT32: Float, arrow.FLOAT64: Double,
	arrow.DATE32: Date, arrow.STRING: Varchar, arrow.BINARY: Blob,
}

func (t *Table) hasExact(id uint32) bool {
	for i := range t.Parts {
		if slices.Contains(t.Parts[i].Exact, id) {
			return true
		}
	}
	for i := range t.Segments {
		if slices.Contains(t.Segments[i].ExactColumns, id) {
			return true
		}
	}
	return false
}

// fitsInt64 tells whether all values of a 64-bit unsigned column, the i-th of the schema, are below 2^63.
func (t *Table) fitsInt64(id uint32, i int, segments []boundSegment) bool {
	for p := range t.Parts {
		if slices.Contains(t.Parts[p].Wide, id) {
			return false
		}
	}
	for g := range segments {
		if !fitInt64(segments[g].column(i)) {
			return false
		}
	}
	return true
}

// fitInt64 tells whether an array is one of unsigned values below 2^63, or not an array of unsigned values at all.
func fitInt64(a arrow.Array) bool {
	u, ok := a.(*array.Uint64)
	if !ok {
		return true
	}
	for i, v := range u.Uint64Values() {
		if v>>63 != 0 && u.IsValid(i) {
			return false
		}
	}
	return true
}

// boundSegment is a segment with its columns found by id.
type boundSegment struct {
	Segment
	at []int // for each column of the table its place in the record; -1: the segment does not have it
}

// boundSegments finds the columns of all segments. Most have the same few schemas.
func (t *Table) boundSegments() []boundSegment {
	known := map[*arrow.Schema][]int{}
	out := make([]boundSegment, len(t.Segments))
	for i := range out {
		s := t.Segments[i].Record.Schema()
		at, ok := known[s]
		if !ok {
			at = t.places(s)
			known[s] = at
		}
		out[i] = boundSegment{Segment: t.Segments[i], at: at}
	}
	return out
}

func (t *Table) places(s *arrow.Schema) []int {
	byID := make(map[uint32]int, s.NumFields())
	for i := range s.NumFields() {
		if id, ok := schema.FieldID(s.Field(i)); ok {
			byID[id] = i
		}
	}
	at := make([]int, len(t.Schema.Columns))
	for i := range at {
		at[i] = -1
		if place, ok := byID[t.Schema.Columns[i].ID]; ok {
			at[i] = place
		}
	}
	return at
}

// column gives the array of the table's i-th column, and the hidden one for the number after the last; nil when the
// segment does not have it.
func (g *boundSegment) column(i int) arrow.Array {
	switch {
	case i < len(g.at) && g.at[i] >= 0:
		return g.Record.Column(g.at[i])
	case i == len(g.at) && g.Exact != nil:
		return g.Exact
	default:
		return nil
	}
}
