package replay

import (
	"bytes"
	"hash/maphash"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/storage"
)

// deleted is the row of a key that is gone.
const deleted = -1

// entry is the net change of one key so far.
type entry struct {
	hash   uint32
	key    int32 // number in the set that has the key's bytes
	row    int32 // row of the builder that is there afterwards, or deleted
	after  bool  // the key stands in the builder's keys, not in those of before images
	expect storage.Expect
}

// keyIndex finds entries by key bytes: open addressing over entry numbers. No key is copied; the bytes stay where the
// decoder put them.
type keyIndex struct {
	seed    maphash.Seed
	slots   []int32 // entry number + 1, 0: free
	entries []entry
	before  *column.Keys
	after   *column.Keys
}

const minSlots = 1 << 10

func newKeyIndex(before, after *column.Keys) *keyIndex {
	return &keyIndex{seed: maphash.MakeSeed(), slots: make([]int32, minSlots), before: before, after: after}
}

func (x *keyIndex) keyOf(e *entry) []byte {
	if e.after {
		return x.after.At(int(e.key))
	}
	return x.before.At(int(e.key))
}

// find gives the number of a key's entry; it is new when the key was not there.
func (x *keyIndex) find(key []byte, number int, after bool) (at int, isNew bool) {
	if len(x.entries)*4 >= len(x.slots)*3 {
		x.grow()
	}
	hash := uint32(maphash.Bytes(x.seed, key))
	mask := uint32(len(x.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		n := x.slots[i]
		if n == 0 {
			x.entries = append(x.entries, entry{hash: hash, key: int32(number), after: after})
			x.slots[i] = int32(len(x.entries))
			return len(x.entries) - 1, true
		}
		if e := &x.entries[n-1]; e.hash == hash && bytes.Equal(x.keyOf(e), key) {
			return int(n - 1), false
		}
	}
}

// rowOf gives the row that a key has by now, deleted if it has none of this batch.
func (x *keyIndex) rowOf(key []byte) int32 {
	hash := uint32(maphash.Bytes(x.seed, key))
	mask := uint32(len(x.slots) - 1)
	for i := hash & mask; x.slots[i] != 0; i = (i + 1) & mask {
		if e := &x.entries[x.slots[i]-1]; e.hash == hash && bytes.Equal(x.keyOf(e), key) {
			return e.row
		}
	}
	return deleted
}

func (x *keyIndex) grow() {
	x.slots = make([]int32, 2*len(x.slots))
	mask := uint32(len(x.slots) - 1)
	for n := range x.entries {
		i := x.entries[n].hash & mask
		for x.slots[i] != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = int32(n + 1)
	}
}

// put says that the key now has a row. It is false when the key has one already: no source can do that.
func (x *keyIndex) put(key []byte, number int, row int) bool {
	at, isNew := x.find(key, number, true)
	e := &x.entries[at]
	if isNew {
		e.expect = storage.MustNotExist
	} else if e.row != deleted {
		return false
	}
	e.row = int32(row)
	return true
}

// set says that the key has a row, whatever it had.
func (x *keyIndex) set(key []byte, row int) {
	at, isNew := x.find(key, row, true)
	e := &x.entries[at]
	if isNew {
		e.expect = storage.MustNotExist
	}
	e.row = int32(row)
}

// remove says that the key is gone. It stands in the keys of before images. It is false when the key is gone already.
func (x *keyIndex) remove(key []byte, number int) bool {
	return x.change(key, number, deleted)
}

// change says that the row of the key is another, or deleted. It is false when the key has none.
func (x *keyIndex) change(key []byte, number int, row int32) bool {
	at, isNew := x.find(key, number, false)
	e := &x.entries[at]
	if isNew {
		e.expect = storage.MustExist
	} else if e.row == deleted {
		return false
	}
	e.row = row
	return true
}

// reset forgets all entries. A table that has grown large is given back.
func (x *keyIndex) reset() {
	x.entries = x.entries[:0]
	if len(x.slots) > 1<<16 {
		x.slots, x.entries = make([]int32, minSlots), nil
		return
	}
	clear(x.slots)
}

// entryBytes is the memory of an entry and its slots.
const entryBytes = 16 + 8

func (x *keyIndex) bytes() int { return len(x.entries) * entryBytes }
