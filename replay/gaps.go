package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// gap is what a new row lacks because the image it comes from was partial. It has that from the row it was before: one of
// the same batch, or the stored one.
type gap struct {
	columns []int // ascending, shared by the rows of an event
	diffs   []binlog.JSONDiff
	// prev is the new row that it was before; deleted: that one is stored, under key, a number in the keys of before images.
	prev int32
	key  int32
}

// lacks tells whether the row has no value of a column of its own.
func (g *gap) lacks(col int) bool {
	return g.diffOf(col) != nil || slices.Contains(g.columns, col)
}

func (g *gap) diffOf(col int) *binlog.JSONDiff {
	for i := range g.diffs {
		if g.diffs[i].Column == col {
			return &g.diffs[i]
		}
	}
	return nil
}

// gaps are the gaps of a fold's new rows, by row.
type gaps struct {
	of    map[int32]*gap
	bytes int
}

// gapBytes is about the memory of a gap without its differences.
const gapBytes = 120

func (g *gaps) add(row int, from *binlog.Gap) {
	if g.of == nil {
		g.of = map[int32]*gap{}
	}
	kept := &gap{columns: from.Columns, prev: deleted}
	for _, d := range from.Diffs {
		kept.diffs = append(kept.diffs, binlog.JSONDiff{Column: d.Column, Diffs: bytes.Clone(d.Diffs)})
		g.bytes += len(d.Diffs) + gapBytes
	}
	g.of[int32(row)] = kept
	g.bytes += gapBytes
}

func (g *gaps) reset() { g.of, g.bytes = nil, 0 }

// link says which row an updated row was before.
func (g *gaps) link(row, key int, prev int32) {
	if gap := g.of[int32(row)]; gap != nil {
		gap.prev, gap.key = prev, int32(key)
	}
}

// addPartial takes a row event with partial images.
func (f *fold) addPartial(d *binlog.Decoder, e *binlog.RowsEvent) error {
	return d.DecodePartial(e, f.before, f.rows, func(g *binlog.Gap) error {
		if g != nil {
			f.gaps.add(f.rows.Rows()-1, g)
		}
		return nil
	})
}

// trace is where the values of a row come from.
type trace struct {
	row  int32
	from map[int]int32 // of columns that it lacks: the row of the batch that has them
	// stored are columns that only the stored row has, which stands under key.
	stored []int
	key    int32
	diffs  map[int][][]byte // of JSON columns, oldest first
}

// trace follows a row back until all its columns are found, or to the stored row.
func (g *gaps) trace(row int32) *trace {
	t := &trace{row: row, from: map[int]int32{}}
	at := g.of[row]
	missing := slices.Clone(at.columns)
	for i := range at.diffs {
		missing = append(missing, at.diffs[i].Column)
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	for {
		for _, c := range missing {
			if d := at.diffOf(c); d != nil {
				t.note(c, d.Diffs)
			}
		}
		if at.prev == deleted {
			t.stored, t.key = missing, at.key
			break
		}
		next := g.of[at.prev]
		missing = slices.DeleteFunc(missing, func(c int) bool {
			if next != nil && next.lacks(c) {
				return false
			}
			t.from[c] = at.prev
			return true
		})
		if len(missing) == 0 {
			break
		}
		at = next
	}
	for _, d := range t.diffs {
		slices.Reverse(d)
	}
	return t
}

func (t *trace) note(col int, diffs []byte) {
	if t.diffs == nil {
		t.diffs = map[int][][]byte{}
	}
	t.diffs[col] = append(t.diffs[col], diffs)
}

// compose gives the rows of traces, with NULL for what stored rows have.
func compose(batch *column.Batch, traces []*trace) (*column.Batch, error) {
	pick := make([][]int, len(batch.Table.Columns))
	for c := range pick {
		pick[c] = make([]int, len(traces))
		for i, t := range traces {
			pick[c][i] = int(t.row)
			if from, ok := t.from[c]; ok {
				pick[c][i] = int(from)
			}
		}
	}
	var keys column.Keys
	for _, t := range traces {
		keys.Append(batch.Keys.At(int(t.row)))
	}
	return column.Compose([]*column.Batch{batch}, pick, keys)
}

// unfinished are new rows that need columns of stored ones.
type unfinished struct {
	rows     *column.Batch
	traces   []*trace // one a row
	expect   []storage.Expect
	keys     column.Keys    // of the stored rows, one a row
	numbers  map[string]int // of the rows by these keys
	done     []bool
	tolerant bool
}

// apply completes the rows with the stored ones, and hands all changes of the table to the target. Rows that were completed
// by several pieces of stored ones go piece by piece, so that memory is bounded by a piece; else all go in one.
func (u *unfinished) apply(ctx context.Context, t Target, changes *storage.Changes) error {
	table := u.rows.Table.Name
	var last *storage.Changes
	err := t.Read(ctx, table, &u.keys, func(stored *column.Batch) error {
		if last != nil {
			if err := t.Apply(ctx, table, last); err != nil {
				return err
			}
		}
		var err error
		if last, err = u.finish(stored); err != nil {
			return &fault{table, false, err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := u.left(); err != nil {
		return &fault{table, false, err}
	}
	if err := join(changes, last); err != nil {
		return err
	}
	return t.Apply(ctx, table, changes)
}

// join adds puts to changes.
func join(to, from *storage.Changes) error {
	if from == nil {
		return nil
	}
	puts := []*column.Batch{from.Puts}
	if to.Puts != nil {
		puts = append(puts, to.Puts)
	}
	var err error
	to.Puts, err = column.Concat(puts)
	to.PutExpect = append(from.PutExpect, to.PutExpect...)
	return err
}

// errStale is why a window can't do with what is stored.
var errStale = errors.New("a partial row image came while the table's copy was read, and the row that would complete it is not there as it was then")

// finish completes rows with a piece of the stored ones.
func (u *unfinished) finish(stored *column.Batch) (*storage.Changes, error) {
	numbers := make([]int, stored.Rows())
	for i := range numbers {
		n, ok := u.numbers[string(stored.Keys.At(i))]
		if !ok || u.done[n] {
			return nil, fmt.Errorf("table %s: the store gave a row that was not asked for", stored.Table.FullName())
		}
		numbers[i], u.done[n] = n, true
	}
	own := u.rows.Take(numbers)
	pick := make([][]int, len(own.Table.Columns))
	for c := range pick {
		pick[c] = make([]int, len(numbers))
		for i, n := range numbers {
			pick[c][i] = i
			if slices.Contains(u.traces[n].stored, c) {
				pick[c][i] = len(numbers) + i
			}
		}
	}
	whole, err := column.Compose([]*column.Batch{own, stored}, pick, own.Keys)
	if err != nil {
		return nil, err
	}
	out := &storage.Changes{Tolerant: u.tolerant}
	traces := make([]*trace, len(numbers))
	for i, n := range numbers {
		traces[i] = u.traces[n]
		out.PutExpect = append(out.PutExpect, u.expect[n])
		if u.tolerant && len(traces[i].diffs) > 0 {
			return nil, errStale // differences must not be applied twice
		}
	}
	out.Puts, err = applyDiffs(whole, traces)
	return out, err
}

// left gives an error if rows were not completed. In a window a row that is not there was deleted before it was read, and
// so does its change no good; but if it has moved, the place where it went may have been read before.
func (u *unfinished) left() error {
	for i, done := range u.done {
		switch {
		case done:
		case !u.tolerant:
			return &storage.DivergenceError{Table: u.rows.Table.FullName(), Key: bytes.Clone(u.keys.At(i)), Expected: storage.MustExist}
		case !bytes.Equal(u.keys.At(i), u.rows.Keys.At(i)):
			return errStale
		}
	}
	return nil
}

// applyDiffs brings documents up to date of which only differences came.
func applyDiffs(b *column.Batch, traces []*trace) (*column.Batch, error) {
	for c := range b.Table.Columns {
		if b.Table.Columns[c].Type != schema.JSON {
			continue
		}
		texts := map[int][]byte{}
		for i, t := range traces {
			if len(t.diffs[c]) == 0 {
				continue
			}
			text, err := newDocument(b, i, c, t.diffs[c])
			if err != nil {
				return nil, fmt.Errorf("table %s, column %s: %w", b.Table.FullName(), b.Table.Columns[c].Name, err)
			}
			texts[i] = text
		}
		if len(texts) > 0 {
			b = b.WithTexts(c, texts)
		}
	}
	return b, nil
}

var errNoDocument = errors.New("a difference of a JSON document came for a row without one")

func newDocument(b *column.Batch, row, col int, diffs [][]byte) ([]byte, error) {
	text, ok := b.Text(col, row)
	if !ok {
		if len(slices.Concat(diffs...)) == 0 {
			return nil, nil
		}
		return nil, errNoDocument
	}
	doc := []byte(text)
	for _, d := range diffs {
		var err error
		if doc, err = binlog.AppendJSONDiff(nil, doc, d); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// split sets aside the rows that need stored ones, completes the others that have gaps, and gives the puts.
func (f *fold) split(batch *column.Batch, expect []storage.Expect, alive []bool, count int, before column.Keys, gaps gaps, out *storage.Changes) (*unfinished, error) {
	var near, far []*trace
	for _, row := range slices.Sorted(maps.Keys(gaps.of)) {
		if !alive[row] {
			continue
		}
		alive[row] = false
		count--
		if t := gaps.trace(row); len(t.stored) > 0 {
			far = append(far, t)
		} else {
			near = append(near, t)
		}
	}
	var puts []*column.Batch
	if count > 0 {
		whole, kept := survivors(batch, expect, alive, count)
		puts, out.PutExpect = append(puts, whole), kept
	}
	if len(near) > 0 {
		b, err := compose(batch, near)
		if err == nil {
			b, err = applyDiffs(b, near)
		}
		if err != nil {
			return nil, err
		}
		puts = append(puts, b)
		for _, t := range near {
			out.PutExpect = append(out.PutExpect, expect[t.row])
		}
	}
	if len(puts) > 0 {
		var err error
		if out.Puts, err = column.Concat(puts); err != nil {
			return nil, err
		}
	}
	if len(far) == 0 {
		return nil, nil
	}
	return f.unfinished(batch, far, expect, before)
}

func (f *fold) unfinished(batch *column.Batch, far []*trace, expect []storage.Expect, before column.Keys) (*unfinished, error) {
	u := &unfinished{traces: far, numbers: map[string]int{}, done: make([]bool, len(far)), tolerant: f.tolerant}
	for i, t := range far {
		u.expect = append(u.expect, expect[t.row])
		u.keys.Append(before.At(int(t.key)))
		u.numbers[string(u.keys.At(i))] = i
	}
	if len(u.numbers) != len(far) {
		return nil, fmt.Errorf("table %s: two rows come from one", f.def.FullName())
	}
	var err error
	u.rows, err = compose(batch, far)
	return u, err
}
