//go:build invariants

package storage

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/storage/part"
)

// The checks of our own invariants, compiled into tests only. What fails here is a fault of this program, so it panics
// where it is met, and not where its consequences show.

func violated(format string, args ...any) { panic("storage: " + fmt.Sprintf(format, args...)) }

// checkRows checks what a caller hands over: the shape that the definition asks for, and keys that are those of the
// values. Of many rows some are looked at, the first and the last among them.
func checkRows(b *column.Batch) {
	name, rows := b.Table.FullName(), b.Rows()
	if n := int(b.Record.NumCols()); n != len(b.Table.Columns) {
		violated("table %s: a batch of %d columns for %d", name, n, len(b.Table.Columns))
	}
	for i := range b.Table.Columns {
		if a := b.Record.Column(i); a.Len() != rows || a.DataType().ID() != b.Table.Columns[i].ArrowType().ID() {
			violated("table %s, column %s: %d values of type %s in %d rows", name, b.Table.Columns[i].Name, a.Len(), a.DataType(), rows)
		}
	}
	if b.Exact != nil && b.Exact.Len() != rows {
		violated("table %s: %d exact values for %d rows", name, b.Exact.Len(), rows)
	}
	if b.Keys.Len() != rows {
		violated("table %s: %d keys for %d rows", name, b.Keys.Len(), rows)
	}
	some := sample(rows)
	again := b.Take(some)
	again.Keys = column.Keys{}
	again, err := again.WithKeys()
	if err != nil {
		violated("table %s: keys can't be computed anew: %v", name, err)
	}
	for i, row := range some {
		if given := b.Keys.At(row); !bytes.Equal(given, again.Keys.At(i)) {
			violated("table %s, row %d: key %x was given, its values have key %x", name, row, given, again.Keys.At(i))
		}
	}
}

// sample gives up to about a thousand row numbers, ascending.
func sample(rows int) []int {
	var some []int
	for row := 0; row < rows; row += rows/1024 + 1 {
		some = append(some, row)
	}
	if rows > 0 && some[len(some)-1] != rows-1 {
		some = append(some, rows-1)
	}
	return some
}

// checkStored checks that a segment reads back as the rows it was made of.
func checkStored(b *column.Batch, encoded []byte) {
	name := b.Table.FullName()
	back, err := part.DecodeSegment(slices.Clone(encoded), b.Table)
	if err != nil {
		violated("table %s: a segment does not read back: %v", name, err)
	}
	if back.Rows() != b.Rows() || back.Keys.Len() != b.Keys.Len() {
		violated("table %s: a segment of %d rows reads back with %d", name, b.Rows(), back.Rows())
	}
	for i := range b.Table.Columns {
		if !array.Equal(b.Record.Column(i), back.Record.Column(i)) {
			violated("table %s, column %s: a segment reads back with other values", name, b.Table.Columns[i].Name)
		}
	}
	if (b.Exact == nil) != (back.Exact == nil) || b.Exact != nil && !array.Equal(b.Exact, back.Exact) {
		violated("table %s: a segment reads back with other exact values", name)
	}
	for i := range b.Keys.Len() {
		if !bytes.Equal(b.Keys.At(i), back.Keys.At(i)) {
			violated("table %s, row %d: a segment reads back with key %x instead of %x", name, i, back.Keys.At(i), b.Keys.At(i))
		}
	}
}

// checkAlive checks that rows about to die at a commit, given in ascending order, are different rows and alive before it.
func checkAlive(h *home, before CommitSeq, rows []uint32) {
	set := h.dead.at(before)
	defer h.dead.release(set)
	for i, row := range rows {
		if i > 0 && rows[i-1] == row || set != nil && set.bits.Has(row) {
			violated("row %d of home %d dies twice", row, h.id)
		}
	}
}

// checkHeld checks a count of holders after one has let go.
func checkHeld(what string, count int) {
	if count < 0 {
		violated("%s was let go more often than it was held", what)
	}
}

// checkMoved checks that rows which died while they were moved were moved.
func checkMoved(table string, rows []uint32) {
	if len(rows) > 0 && slices.Max(rows) == gone {
		violated("table %s: a row died that was dead when its home was moved", table)
	}
}
