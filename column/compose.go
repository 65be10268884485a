package column

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Compose makes rows whose columns come from different rows: pick has, for each column, the numbers of the rows that its
// values are taken from, counted through all batches. keys are the keys of the new rows.
func Compose(batches []*Batch, pick [][]int, keys Keys) (*Batch, error) {
	all, err := Concat(batches)
	if err != nil {
		return nil, err
	}
	rows := 0
	columns := make([]arrow.Array, len(pick))
	for c := range pick {
		columns[c], rows = take(all.Record.Column(c), pick[c]), len(pick[c])
	}
	out := &Batch{Table: all.Table, Record: array.NewRecordBatch(all.Record.Schema(), columns, int64(rows)), Keys: keys}
	if all.Exact != nil {
		out.Exact = all.composeExact(pick, rows)
	}
	return out, nil
}

// composeExact takes each column's exact value from where its value is taken from.
func (b *Batch) composeExact(pick [][]int, rows int) *array.Binary {
	exact := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	for i := range rows {
		var row []byte
		for c := range pick {
			id := b.Table.Columns[c].ID
			if text, ok := b.exactOf(pick[c][i], id); ok {
				row = AppendExact(row, id, text)
			}
		}
		if row == nil {
			exact.AppendNull()
		} else {
			exact.Append(row)
		}
	}
	if out := exact.NewBinaryArray(); out.NullN() < rows {
		return out
	}
	return nil
}

// Text gives a value of a column that is stored as text; false when it is NULL.
func (b *Batch) Text(col, row int) (string, bool) {
	a := b.Record.Column(col).(*array.String)
	if a.IsNull(row) {
		return "", false
	}
	return a.Value(row), true
}

// WithTexts gives the batch with other texts in a column that is stored as text, by row; nil is NULL. The column must be
// no part of a key.
func (b *Batch) WithTexts(col int, texts map[int][]byte) *Batch {
	old := b.Record.Column(col).(*array.String)
	builder := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range old.Len() {
		text, other := texts[i]
		switch {
		case other && text == nil, !other && old.IsNull(i):
			builder.AppendNull()
		case other:
			builder.BinaryBuilder.Append(text)
		default:
			builder.Append(old.Value(i))
		}
	}
	columns := make([]arrow.Array, b.Record.NumCols())
	for i := range columns {
		columns[i] = b.Record.Column(i)
	}
	columns[col] = builder.NewArray()
	out := *b
	out.Record = array.NewRecordBatch(b.Record.Schema(), columns, b.Record.NumRows())
	return &out
}
