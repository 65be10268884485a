package engine

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
)

// initial is what rows older than a column have in it: the value, an array of one, and its exact form, if it has one.
type initial struct {
	value arrow.Array
	exact []byte
}

// initials finds the values of all columns that came by ADD COLUMN.
func (t *Table) initials() (map[uint32]initial, error) {
	out := map[uint32]initial{}
	for i := range t.Schema.Columns {
		c := &t.Schema.Columns[i]
		if c.Initial == nil {
			continue
		}
		value, exact, err := column.Initial(t.Schema, c)
		if err != nil {
			return nil, fmt.Errorf("initial value of column %s: %w", c.Name, err)
		}
		out[c.ID] = initial{value: value, exact: exact}
	}
	return out, nil
}

// missingExact gives the exact forms of the initial values of those columns that a part or segment does not have, in the
// order of the columns.
func (s *Scan) missingExact(has func(i int, id uint32) bool) []byte {
	var out []byte
	for i := range s.columns {
		c := &s.columns[i]
		if in := s.initials[c.ID]; in.exact != nil && !has(i, c.ID) {
			c.Exact = true
			out = append(out, in.exact...)
		}
	}
	return out
}

func (p *Part) has(_ int, id uint32) bool { return p.Columns == nil || slices.Contains(p.Columns, id) }

func (g *boundSegment) has(i int, _ uint32) bool { return g.at[i] >= 0 }

// withExact gives the segment with the exact forms added to each of its rows.
func (g boundSegment) withExact(added []byte) boundSegment {
	if len(added) == 0 {
		return g
	}
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	defer b.Release()
	for i := range int(g.Record.NumRows()) {
		var row []byte
		if g.Exact != nil && g.Exact.IsValid(i) {
			row = append(row, g.Exact.Value(i)...)
		}
		b.Append(append(row, added...))
	}
	g.Exact = b.NewBinaryArray()
	return g
}

// literal gives the value as DuckDB's text form of its type, quoted; NULL for no value.
func (in initial) literal() (string, error) {
	if in.value == nil || in.value.IsNull(0) {
		return "NULL", nil
	}
	text, err := plainText(in.value)
	return Quote(text), err
}

func plainText(a arrow.Array) (string, error) {
	switch a := a.(type) {
	case *array.Int32:
		return strconv.FormatInt(int64(a.Value(0)), 10), nil
	case *array.Int64:
		return strconv.FormatInt(a.Value(0), 10), nil
	case *array.Uint64:
		return strconv.FormatUint(a.Value(0), 10), nil
	case *array.Float32:
		return strconv.FormatFloat(float64(a.Value(0)), 'g', -1, 32), nil
	case *array.Float64:
		return strconv.FormatFloat(a.Value(0), 'g', -1, 64), nil
	case *array.Decimal128:
		return a.Value(0).ToString(a.DataType().(*arrow.Decimal128Type).Scale), nil
	case *array.Date32:
		return a.Value(0).ToTime().Format("2006-01-02"), nil
	case *array.Timestamp:
		return timestampText(a), nil
	case *array.String:
		return a.Value(0), nil
	case *array.Binary:
		return blobText(a.Value(0)), nil
	}
	return "", fmt.Errorf("an initial value of type %s has no text form", a.DataType())
}

func timestampText(a *array.Timestamp) string {
	text := a.Value(0).ToTime(arrow.Microsecond).Format("2006-01-02 15:04:05.000000")
	if a.DataType().(*arrow.TimestampType).TimeZone != "" {
		text += "+00"
	}
	return text
}

// blobText gives DuckDB's text form of a BLOB.
func blobText(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		out.WriteString(`\x`)
		out.WriteString(hex.EncodeToString([]byte{c}))
	}
	return out.String()
}
