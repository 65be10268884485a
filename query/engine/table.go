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
	sql      string
	rows     int64
	handles  []*handle
}

// Columns gives the scan's columns in the order of the table's, the hidden one left out.
func (s *Scan) Columns() []ScanColumn { return s.columns }

// SQL gives the relation: a SELECT in parentheses that returns the alive rows, with the columns of Columns and, last,
// the hidden column. It may stand wherever a table may, followed by an alias, any number of times.
func (s *Scan) SQL() string { return s.sql }

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
	s.columns = t.columns(s.initials)
	var selects []string
	for _, g := range s.partGroups(t) {
		sql, err := s.partsSQL(g)
		if err != nil {
			return err
		}
		selects = append(selects, sql)
	}
	if len(t.Segments) > 0 {
		sql, err := s.segmentsSQL(t)
		if err != nil {
			return err
		}
		selects = append(selects, sql)
	}
	if len(selects) == 0 {
		selects = []string{s.emptySQL()}
	}
	s.sql = "(" + strings.Join(selects, " UNION ALL ") + ")"
	return nil
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
func (t *Table) columns(initials map[uint32]initial) []ScanColumn {
	out := make([]ScanColumn, len(t.Schema.Columns))
	for i := range out {
		c := &t.Schema.Columns[i]
		out[i] = ScanColumn{ID: c.ID, Name: columnName(c.ID), Type: columnType(c), Exact: t.hasExact(c.ID)}
		if c.Wide() && !(t.fitsInt64(c.ID) && fitInt64(initials[c.ID].value)) {
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

// fitsInt64 tells whether all values of a 64-bit unsigned column are below 2^63.
func (t *Table) fitsInt64(id uint32) bool {
	for i := range t.Parts {
		if slices.Contains(t.Parts[i].Wide, id) {
			return false
		}
	}
	for i := range t.Segments {
		if !fitInt64(t.Segments[i].column(id)) {
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

// column finds a column of the record by id; nil when it has none.
func (g *Segment) column(id uint32) arrow.Array {
	if id == schema.ExactFieldID {
		if g.Exact == nil {
			return nil
		}
		return g.Exact
	}
	for i, f := range g.Record.Schema().Fields() {
		if have, ok := schema.FieldID(f); ok && have == id {
			return g.Record.Column(i)
		}
	}
	return nil
}
