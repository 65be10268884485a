package uniquekey

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
)

// Bitset is a flat set of row numbers: bit r%64 of word r/64 is row r. It is the form that scans test.
type Bitset []uint64

// NewBitset gives an empty set for rows 0..rows-1.
func NewBitset(rows int) Bitset { return make(Bitset, (rows+63)/64) }

// Has tells whether row r is in the set. A row beyond the set's size is not.
func (b Bitset) Has(r uint32) bool {
	w := int(r >> 6)
	return w < len(b) && b[w]&(1<<(r&63)) != 0
}

// Set adds row r, which must be within the size the set was made for.
func (b Bitset) Set(r uint32) { b[r>>6] |= 1 << (r & 63) }

// Clear takes row r out.
func (b Bitset) Clear(r uint32) { b[r>>6] &^= 1 << (r & 63) }

// Count is the number of rows in the set.
func (b Bitset) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Rows lists the set in ascending order.
func (b Bitset) Rows() []uint32 {
	rows := make([]uint32, 0, b.Count())
	for i, w := range b {
		for w != 0 {
			rows = append(rows, uint32(i<<6+bits.TrailingZeros64(w)))
			w &= w - 1
		}
	}
	return rows
}

// EncodeRows gives the durable form of a set of row numbers, given in ascending order: a Roaring bitmap in its portable
// serialization.
func EncodeRows(rows []uint32) ([]byte, error) {
	bm := roaring.New()
	bm.AddMany(rows)
	bm.RunOptimize()
	return bm.ToBytes()
}

// DecodeRows reads what EncodeRows wrote, in ascending order. Row numbers at or above limit are an error, so that a
// damaged set can't reach beyond the rows it speaks of.
func DecodeRows(b []byte, limit int) (rows []uint32, err error) {
	// The library checks lengths, but not every way in which its containers can disagree with each other.
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("damaged row set: %v", p)
		}
	}()
	bm := roaring.New()
	n, err := bm.FromBuffer(b)
	if err != nil {
		return nil, fmt.Errorf("damaged row set: %w", err)
	}
	if int(n) != len(b) {
		return nil, errors.New("damaged row set: trailing bytes")
	}
	if err := bm.Validate(); err != nil {
		return nil, fmt.Errorf("damaged row set: %w", err)
	}
	if !bm.IsEmpty() && int64(bm.Maximum()) >= int64(limit) {
		return nil, fmt.Errorf("damaged row set: row %d of %d", bm.Maximum(), limit)
	}
	return bm.ToArray(), nil
}
