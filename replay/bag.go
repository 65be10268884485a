package replay

import (
	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/storage"
)

// bag gathers the changes of a table without a key, where a row is named by the hash of all its values. An entry's row is
// the last new row of its hash that is there; the ones before it follow through next. A removal takes a new row of the
// hash, if there is one, and else one that is stored: equal rows are as good as each other.
type bag struct {
	keyIndex
	next []int32 // for each new row the one before it of the same hash, or deleted
	gone []int32 // for each entry the stored rows that were taken
}

func newBag(before, after *column.Keys) *bag { return &bag{keyIndex: *newKeyIndex(before, after)} }

// take enters n rows: new ones from row on, hashes of old ones from key on.
func (b *bag) take(action binlog.Action, row, key, n int) {
	for i := range n {
		if action != binlog.Insert {
			b.remove(key + i)
		}
		if action != binlog.Delete {
			b.put(row + i)
		}
	}
}

func (b *bag) entry(key []byte, number int, after bool) int {
	at, isNew := b.find(key, number, after)
	if isNew {
		b.entries[at].row = deleted
		b.gone = append(b.gone, 0)
	}
	return at
}

func (b *bag) put(row int) {
	e := &b.entries[b.entry(b.after.At(row), row, true)]
	b.next = append(b.next, e.row)
	e.row = int32(row)
}

func (b *bag) remove(number int) {
	at := b.entry(b.before.At(number), number, false)
	if e := &b.entries[at]; e.row != deleted {
		e.row = b.next[e.row]
		return
	}
	b.gone[at]++
}

// settle marks the new rows that are there in the end and counts them, and says what the stored rows must have and lose.
// As many stored rows as were taken must have been there; those for which new ones came stay instead of these.
func (b *bag) settle(out *storage.Changes, alive []bool) (count int) {
	for i := range b.entries {
		e, gone := &b.entries[i], int(b.gone[i])
		there := gone
		for row := e.row; row != deleted; row = b.next[row] {
			if gone > 0 {
				gone--
				continue
			}
			alive[row] = true
			count++
		}
		if there > 0 {
			out.Deletes.Append(b.keyOf(e))
			out.Removals = append(out.Removals, storage.Removal{Gone: gone, There: there})
		}
	}
	return count
}

func (b *bag) reset() {
	b.keyIndex.reset()
	b.next, b.gone = b.next[:0], b.gone[:0]
}

func (b *bag) bytes() int { return b.keyIndex.bytes() + 4*len(b.next) + 4*len(b.gone) }
