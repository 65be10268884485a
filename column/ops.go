package column

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/schema"
)

func sortedIDs(ids []uint32, more map[uint32]bool) []uint32 {
	for id := range more {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Take gives the rows with the given numbers, in that order.
func (b *Batch) Take(rows []int) *Batch {
	columns := make([]arrow.Array, b.Record.NumCols())
	for i := range columns {
		columns[i] = take(b.Record.Column(i), rows)
	}
	out := &Batch{Table: b.Table, Record: array.NewRecordBatch(b.Record.Schema(), columns, int64(len(rows)))}
	if b.Exact != nil {
		if exact := take(b.Exact, rows).(*array.Binary); exact.NullN() < exact.Len() {
			out.Exact = exact
		}
	}
	if b.Numbers != nil {
		out.Numbers = take(b.Numbers, rows).(*array.Int64)
	}
	if b.Keys.Len() > 0 {
		for _, r := range rows {
			out.Keys.Append(b.Keys.At(r))
		}
	}
	return out
}

// SortByKey gives the rows in the order of their keys. It returns b itself when they are in order already.
func (b *Batch) SortByKey() *Batch {
	order := make([]int, b.Keys.Len())
	for i := range order {
		order[i] = i
	}
	byKey := func(i, j int) int { return bytes.Compare(b.Keys.At(i), b.Keys.At(j)) }
	if slices.IsSortedFunc(order, byKey) {
		return b
	}
	slices.SortStableFunc(order, byKey)
	return b.Take(order)
}

// Concat joins batches that follow the same version of the table.
func Concat(batches []*Batch) (*Batch, error) {
	if len(batches) == 1 {
		return batches[0], nil
	}
	first := batches[0]
	columns := make([]arrow.Array, first.Record.NumCols())
	rows := int64(0)
	for _, b := range batches {
		if b.Table.Version != first.Table.Version {
			return nil, fmt.Errorf("table %s: can't join rows of versions %d and %d", first.Table.FullName(), first.Table.Version, b.Table.Version)
		}
		rows += b.Record.NumRows()
	}
	for i := range columns {
		parts := make([]arrow.Array, len(batches))
		for j, b := range batches {
			parts[j] = b.Record.Column(i)
		}
		joined, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", first.Table.FullName(), err)
		}
		columns[i] = joined
	}
	numbers, err := concatNumbers(batches)
	if err != nil {
		return nil, err
	}
	out := &Batch{Table: first.Table, Record: array.NewRecordBatch(first.Record.Schema(), columns, rows), Exact: concatExact(batches, int(rows)), Numbers: numbers}
	for _, b := range batches {
		for i := range b.Keys.Len() {
			out.Keys.Append(b.Keys.At(i))
		}
	}
	return out, nil
}

func concatExact(batches []*Batch, rows int) *array.Binary {
	if !slices.ContainsFunc(batches, func(b *Batch) bool { return b.Exact != nil }) {
		return nil
	}
	out := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	out.Reserve(rows)
	for _, b := range batches {
		for i := range b.Rows() {
			if b.Exact == nil || b.Exact.IsNull(i) {
				out.AppendNull()
			} else {
				out.Append(b.Exact.Value(i))
			}
		}
	}
	return out.NewBinaryArray()
}

// Project maps the rows to another version of the table: columns are matched by id, those that are gone are dropped,
// those that came later get their initial value.
func (b *Batch) Project(t *schema.Table) (*Batch, error) {
	if b.Table.Version == t.Version {
		return b, nil
	}
	out := &Batch{Table: t, Keys: b.Keys, Numbers: b.Numbers}
	columns := make([]arrow.Array, len(t.Columns))
	var added []byte // exact values of columns that came later, the same for each row
	for i := range t.Columns {
		if at := b.Table.ColumnByID(t.Columns[i].ID); at >= 0 {
			columns[i] = b.Record.Column(at)
			continue
		}
		filled, exact, err := initial(&t.Columns[i], t, b.Rows())
		if err != nil {
			return nil, err
		}
		columns[i] = filled
		added = append(added, exact...)
	}
	out.Record = array.NewRecordBatch(t.ArrowSchema(), columns, int64(b.Rows()))
	var err error
	if out.Exact, err = b.projectExact(t, added); err != nil {
		return nil, fmt.Errorf("table %s: %w", t.FullName(), err)
	}
	return out, nil
}

// projectExact keeps the exact values of columns that still exist, and adds those of initial values.
func (b *Batch) projectExact(t *schema.Table, added []byte) (*array.Binary, error) {
	if b.Exact == nil && len(added) == 0 {
		return nil, nil
	}
	out := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	used := false
	for i := range b.Rows() {
		var row []byte
		if b.Exact != nil && !b.Exact.IsNull(i) {
			err := WalkExact(b.Exact.Value(i), func(id uint32, text []byte) {
				if t.ColumnByID(id) >= 0 {
					row = AppendExact(row, id, text)
				}
			})
			if err != nil {
				return nil, fmt.Errorf("row %d: %w", i, err)
			}
		}
		row = append(row, added...)
		if len(row) == 0 {
			out.AppendNull()
			continue
		}
		used = true
		out.Append(row)
	}
	if !used {
		return nil, nil
	}
	return out.NewBinaryArray(), nil
}

// initial gives n times the initial value of a column that came by ADD COLUMN, and its exact form if it has one.
func initial(c *schema.Column, t *schema.Table, n int) (arrow.Array, []byte, error) {
	one, exact, err := Initial(t, c)
	if err != nil {
		return nil, nil, err
	}
	rows := make([]int, n)
	return take(one, rows), exact, nil
}

// Initial gives the value that rows older than the column have, as an array of one, and its exact form (see
// AppendExact) if it has one.
func Initial(t *schema.Table, c *schema.Column) (arrow.Array, []byte, error) {
	h := host{table: t}
	builder := array.NewBuilder(memory.DefaultAllocator, c.ArrowType())
	appender := newAppender(&h, c, builder)
	if c.Initial == nil {
		appender.Null()
	} else if err := AppendText(appender, c, *c.Initial); err != nil {
		return nil, nil, err
	}
	return builder.NewArray(), h.exact, h.err
}

type valueArray[T any] interface {
	arrow.Array
	Value(int) T
}

type fixedBuilder[T any] interface {
	array.Builder
	UnsafeAppend(T)
}

func takeFixed[T any](a valueArray[T], b fixedBuilder[T], rows []int) arrow.Array {
	b.Reserve(len(rows))
	for _, r := range rows {
		if a.IsNull(r) {
			b.AppendNull()
		} else {
			b.UnsafeAppend(a.Value(r))
		}
	}
	return b.NewArray()
}

func take(a arrow.Array, rows []int) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, a.DataType())
	switch a := a.(type) {
	case *array.Int32:
		return takeFixed(a, b.(*array.Int32Builder), rows)
	case *array.Int64:
		return takeFixed(a, b.(*array.Int64Builder), rows)
	case *array.Uint64:
		return takeFixed(a, b.(*array.Uint64Builder), rows)
	case *array.Float32:
		return takeFixed(a, b.(*array.Float32Builder), rows)
	case *array.Float64:
		return takeFixed(a, b.(*array.Float64Builder), rows)
	case *array.Date32:
		return takeFixed(a, b.(*array.Date32Builder), rows)
	case *array.Timestamp:
		return takeFixed(a, b.(*array.TimestampBuilder), rows)
	case *array.Decimal128:
		return takeFixed(a, b.(*array.Decimal128Builder), rows)
	case *array.String:
		return takeVariable(a, b.(*array.StringBuilder), rows)
	case *array.Binary:
		return takeVariable(a, b.(*array.BinaryBuilder), rows)
	default:
		panic(fmt.Sprintf("column: no stored column has type %s", a.DataType()))
	}
}

type variableBuilder[T any] interface {
	array.Builder
	Append(T)
}

func takeVariable[T any](a valueArray[T], b variableBuilder[T], rows []int) arrow.Array {
	b.Reserve(len(rows))
	for _, r := range rows {
		if a.IsNull(r) {
			b.AppendNull()
		} else {
			b.Append(a.Value(r))
		}
	}
	return b.NewArray()
}
