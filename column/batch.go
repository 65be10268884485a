package column

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/schema"
)

// Batch is rows of one table as columns. It is immutable.
type Batch struct {
	// Table is the version of the definition that the columns follow.
	Table *schema.Table
	// Record has one column for each column of Table, in its order.
	Record arrow.RecordBatch
	// Exact has the rows' exact values (see AppendExact), NULL where a row has none; nil when no row has any.
	Exact *array.Binary
	// Numbers has the rows' numbers in a table without a key (see Numbered); nil where the table has a key, and before the
	// store has given them.
	Numbers *array.Int64
	// Keys has the rows' key bytes. It is empty where a reader did not ask for keys.
	Keys Keys
}

// Rows is the number of rows.
func (b *Batch) Rows() int { return int(b.Record.NumRows()) }

// ExactColumns lists the ids of the columns that have exact values in the batch, each once, in ascending order.
func (b *Batch) ExactColumns() ([]uint32, error) {
	if b.Exact == nil {
		return nil, nil
	}
	seen := map[uint32]bool{}
	for i := range b.Exact.Len() {
		if b.Exact.IsNull(i) {
			continue
		}
		if err := WalkExact(b.Exact.Value(i), func(id uint32, _ []byte) { seen[id] = true }); err != nil {
			return nil, fmt.Errorf("table %s, row %d: %w", b.Table.FullName(), i, err)
		}
	}
	var ids []uint32
	for i := range b.Table.Columns {
		if id := b.Table.Columns[i].ID; seen[id] {
			ids = append(ids, id)
			delete(seen, id)
		}
	}
	return sortedIDs(ids, seen), nil
}

// Builder builds a Batch row by row: one call on each column's appender, then EndRow.
type Builder struct {
	host     host
	cols     []Appender
	builders []array.Builder
	key      keyMaker
	keys     Keys
	exact    *array.BinaryBuilder // nil until a row has an exact value
	fixed    int                  // bytes of a row's fixed-width values
	rows     int
	mem      memory.Allocator
}

// NewBuilder gives a builder for rows of t. mem is usually memory.DefaultAllocator.
func NewBuilder(mem memory.Allocator, t *schema.Table) *Builder {
	b := &Builder{host: host{table: t}, mem: mem, cols: make([]Appender, len(t.Columns)), builders: make([]array.Builder, len(t.Columns))}
	for i := range t.Columns {
		c := &t.Columns[i]
		b.builders[i] = array.NewBuilder(mem, c.ArrowType())
		b.cols[i] = newAppender(&b.host, c, b.builders[i])
		b.fixed += fixedWidth(c.ArrowType())
	}
	b.key = newKeyMaker(&b.host, t, b.cols)
	return b
}

func fixedWidth(t arrow.DataType) int {
	if f, ok := t.(arrow.FixedWidthDataType); ok {
		return f.Bytes()
	}
	return arrow.Int32SizeBytes
}

func newAppender(h *host, c *schema.Column, b array.Builder) Appender {
	base := base{host: h, col: c}
	switch c.Type {
	case schema.Decimal:
		if c.Precision > schema.MaxDecimal128 {
			return &wideDecimalColumn{base, b.(*array.StringBuilder)}
		}
		return &decimalColumn{base, b.(*array.Decimal128Builder)}
	case schema.Float:
		return &floatColumn{base, b.(*array.Float32Builder)}
	case schema.Double:
		return &doubleColumn{base, b.(*array.Float64Builder)}
	case schema.Date:
		return &dateColumn{base, b.(*array.Date32Builder)}
	case schema.DateTime:
		return &dateTimeColumn{base, b.(*array.TimestampBuilder)}
	case schema.Timestamp:
		return &timestampColumn{base, b.(*array.TimestampBuilder)}
	case schema.Time:
		return &timeColumn{base, b.(*array.Int64Builder)}
	case schema.Enum:
		return &enumColumn{base, b.(*array.StringBuilder)}
	case schema.Set:
		return &setColumn{base: base, b: b.(*array.StringBuilder)}
	case schema.JSON:
		return &jsonColumn{base, b.(*array.StringBuilder)}
	}
	switch b := b.(type) {
	case *array.Int32Builder:
		return &int32Column{base, b}
	case *array.Int64Builder:
		return &int64Column{base, b}
	case *array.Uint64Builder:
		return &uint64Column{base, b}
	case *array.BinaryBuilder:
		return &binaryColumn{base, b}
	default:
		return &textColumn{base, b.(*array.StringBuilder), schema.TextCharset(base.col.Charset)}
	}
}

// Column gives the appender of column i.
func (b *Builder) Column(i int) Appender { return b.cols[i] }

// EndRow closes a row in which every column got one value.
func (b *Builder) EndRow() {
	b.key.end(&b.keys)
	b.rows++
	if len(b.host.exact) == 0 {
		if b.exact != nil {
			b.exact.AppendNull()
		}
		return
	}
	if b.exact == nil {
		b.exact = array.NewBinaryBuilder(b.mem, arrow.BinaryTypes.Binary)
		for range b.rows - 1 {
			b.exact.AppendNull()
		}
	}
	b.exact.Append(b.host.exact)
	b.host.exact = b.host.exact[:0]
}

// Rows is the number of closed rows since the last Finish.
func (b *Builder) Rows() int { return b.rows }

// Bytes is about the memory of the rows since the last Finish.
func (b *Builder) Bytes() int { return b.host.bytes + b.rows*b.fixed + b.keys.Bytes() }

// Keys gives the keys of the closed rows. They stay valid until the next EndRow.
func (b *Builder) Keys() *Keys { return &b.keys }

// Err is the first error of a value since the last Finish.
func (b *Builder) Err() error { return b.host.err }

// Finish gives the closed rows and starts anew. On an error the rows are dropped.
func (b *Builder) Finish() (*Batch, error) {
	rows, err := b.rows, b.host.err
	columns := make([]arrow.Array, len(b.builders))
	for i, builder := range b.builders {
		columns[i] = builder.NewArray()
		if err == nil && columns[i].Len() != rows {
			err = fmt.Errorf("table %s, column %s has %d values in %d rows", b.host.table.FullName(), b.host.table.Columns[i].Name, columns[i].Len(), rows)
		}
	}
	batch := &Batch{Table: b.host.table, Keys: b.keys}
	if b.exact != nil {
		batch.Exact = b.exact.NewBinaryArray()
	}
	b.keys, b.exact, b.rows = Keys{}, nil, 0
	b.host.err, b.host.exact, b.host.bytes = nil, nil, 0
	if err != nil {
		return nil, err
	}
	batch.Record = array.NewRecordBatch(b.host.table.ArrowSchema(), columns, int64(rows))
	return batch, nil
}
