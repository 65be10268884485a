package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// fold gathers the row events of one table under one definition, and makes one change a key of them.
//
// Invariant: an entry of the index refers to a key of before or rows, and to a row of rows, by number; all three start
// anew together.
type fold struct {
	def      *schema.Table
	rows     *column.Builder    // after images
	before   *column.KeyBuilder // keys of before images
	index    *keyIndex          // of a table with a key
	bag      *bag               // of a table without one
	gaps     gaps               // of rows
	decoders map[*binlog.TableMap]*binlog.Decoder
	// tolerant tells that the rows are inside the table's window: a key may have a row or not, whatever an event says.
	tolerant bool
}

func newFold(def *schema.Table) *fold {
	f := &fold{def: def, rows: column.NewBuilder(memory.DefaultAllocator, def), before: column.NewKeyBuilder(def), decoders: map[*binlog.TableMap]*binlog.Decoder{}}
	if def.Multiset() {
		f.bag = newBag(f.before.Keys(), f.rows.Keys())
	} else {
		f.index = newKeyIndex(f.before.Keys(), f.rows.Keys())
	}
	return f
}

// maxDecoders bounds the table maps that a fold remembers: a table gets a new one whenever the source opens it anew.
const maxDecoders = 64

func (f *fold) decoder(m *binlog.TableMap) (*binlog.Decoder, error) {
	if d := f.decoders[m]; d != nil {
		return d, nil
	}
	d, err := binlog.NewDecoder(m, f.def)
	if err != nil {
		return nil, err
	}
	if len(f.decoders) >= maxDecoders {
		clear(f.decoders)
	}
	f.decoders[m] = d
	return d, nil
}

// add takes a row event and gives the number of its rows. After an error the fold must be discarded.
func (f *fold) add(e *binlog.RowsEvent) (int, error) {
	d, err := f.decoder(e.Table)
	if err != nil {
		return 0, err
	}
	row, key := f.rows.Rows(), f.before.Keys().Len()
	err = d.Decode(e, f.before, f.rows, nil)
	if errors.Is(err, binlog.ErrPartialImage) {
		err = f.addPartial(d, e)
	}
	for _, err := range []error{err, f.rows.Err(), f.before.Err()} {
		if err != nil {
			return 0, err
		}
	}
	n := max(f.rows.Rows()-row, f.before.Keys().Len()-key)
	if row+n > math.MaxInt32 || key+n > math.MaxInt32 {
		return 0, fmt.Errorf("table %s: too many rows in one slice", f.def.FullName())
	}
	if f.bag != nil {
		f.bag.take(e.Action, row, key, n)
		return n, nil
	}
	return n, f.take(e.Action, row, key, n)
}

// take enters n rows into the index: new ones from row on, keys of old ones from key on.
func (f *fold) take(action binlog.Action, row, key, n int) error {
	for i := range n {
		switch action {
		case binlog.Insert:
			now := f.rows.Keys().At(row + i)
			if !f.put(now, row+i) {
				return f.diverged(now, storage.MustNotExist)
			}
		case binlog.Delete:
			old := f.before.Keys().At(key + i)
			if !f.index.remove(old, key+i) && !f.tolerant {
				return f.diverged(old, storage.MustExist)
			}
		case binlog.Update, binlog.PartialUpdate:
			if err := f.update(row+i, key+i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fold) update(row, key int) error {
	old, now := f.before.Keys().At(key), f.rows.Keys().At(row)
	if f.gaps.of != nil {
		f.gaps.link(row, key, f.index.rowOf(old))
	}
	if bytes.Equal(old, now) {
		if !f.index.change(old, key, int32(row)) {
			if !f.tolerant {
				return f.diverged(old, storage.MustExist)
			}
			f.index.set(now, row)
		}
		return nil
	}
	if !f.index.remove(old, key) && !f.tolerant {
		return f.diverged(old, storage.MustExist)
	}
	if !f.put(now, row) {
		return f.diverged(now, storage.MustNotExist)
	}
	return nil
}

// put says that the key now has a row. It is false when it has one already and must not.
func (f *fold) put(key []byte, row int) bool {
	if f.tolerant {
		f.index.set(key, row)
		return true
	}
	return f.index.put(key, row, row)
}

// diverged is for what contradicts an event before it in the same batch; what contradicts the stored rows is found by
// the target.
func (f *fold) diverged(key []byte, expected storage.Expect) error {
	return &storage.DivergenceError{Table: f.def.FullName(), Key: bytes.Clone(key), Expected: expected}
}

// bytes is about the memory of what was added.
func (f *fold) bytes() int {
	return f.rows.Bytes() + f.before.Keys().Bytes() + f.entries().bytes() + f.gaps.bytes
}

func (f *fold) entries() interface {
	bytes() int
	reset()
} {
	if f.bag != nil {
		return f.bag
	}
	return f.index
}

// discard forgets what was added.
func (f *fold) discard() {
	_, _ = f.rows.Finish() // an error says only that a row is incomplete
	_, _ = f.before.Finish()
	f.entries().reset()
	f.gaps.reset()
}

// changes gives what was added as net changes, and starts anew. Rows that need columns of stored ones are not among these.
func (f *fold) changes() (*storage.Changes, *unfinished, error) {
	if f.bag != nil {
		c, err := f.bagChanges()
		return c, nil, err
	}
	out := &storage.Changes{Tolerant: f.tolerant}
	total := f.rows.Rows()
	expect := make([]storage.Expect, total)
	alive := make([]bool, total)
	count := 0
	for i := range f.index.entries {
		e := &f.index.entries[i]
		switch {
		case e.row != deleted:
			expect[e.row], alive[e.row] = e.expect, true
			count++
		case e.expect == storage.MustExist, f.tolerant: // what came and went may have been read between
			out.Deletes.Append(f.index.keyOf(e))
			out.DeleteExpect = append(out.DeleteExpect, e.expect)
		default:
			out.Checks.Append(f.index.keyOf(e))
			out.CheckExpect = append(out.CheckExpect, e.expect)
		}
	}
	gaps := f.gaps
	batch, before, err := f.finish()
	if err != nil {
		return nil, nil, err
	}
	if len(gaps.of) > 0 {
		rest, err := f.split(batch, expect, alive, count, before, gaps, out)
		return out, rest, err
	}
	if count > 0 {
		out.Puts, out.PutExpect = survivors(batch, expect, alive, count)
	}
	return out, nil, nil
}

// finish gives the new rows and the keys of old ones, and starts anew.
func (f *fold) finish() (*column.Batch, column.Keys, error) {
	batch, err := f.rows.Finish()
	before, keyErr := f.before.Finish()
	f.entries().reset()
	f.gaps.reset()
	return batch, before, cmp.Or(err, keyErr)
}

// bagChanges is changes for a table without a key.
func (f *fold) bagChanges() (*storage.Changes, error) {
	out := &storage.Changes{}
	alive := make([]bool, f.rows.Rows())
	count := f.bag.settle(out, alive)
	batch, _, err := f.finish()
	if err != nil {
		return nil, err
	}
	if count > 0 {
		out.Puts, _ = survivors(batch, make([]storage.Expect, batch.Rows()), alive, count)
	}
	return out, nil
}

// survivors gives the rows that are alive and what is expected of their keys.
func survivors(batch *column.Batch, expect []storage.Expect, alive []bool, count int) (*column.Batch, []storage.Expect) {
	if count == batch.Rows() {
		return batch, expect
	}
	rows := make([]int, 0, count)
	kept := make([]storage.Expect, 0, count)
	for i, a := range alive {
		if a {
			rows = append(rows, i)
			kept = append(kept, expect[i])
		}
	}
	return batch.Take(rows), kept
}
