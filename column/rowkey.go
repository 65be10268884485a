package column

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/schema"
)

// RowHashLen is the length of the key of a row of a table without a key (see schema.Table.Multiset) before the store has
// numbered it: the first half of a SHA-256 over the row's values. Behind it stands the row's number, once it has one.
//
// SHA-256 and no faster hash, because whoever may write to a source must not be able to make two rows that are taken for
// each other; the processors that this runs on compute it in hardware.
const RowHashLen = 16

// The forms of a value in a row's hash.
const (
	formNull   byte = 0
	formValue  byte = 1 // the value as in a key
	formBytes  byte = 2 // the bytes as they are
	formDigest byte = 3 // the SHA-256 of the bytes
)

// maxRowBytes is the length from which on the digest of bytes stands for them, so that large values are not copied.
const maxRowBytes = 64

func appendRowBytes(dst, b []byte) []byte {
	if len(b) < maxRowBytes {
		return append(append(dst, formBytes), b...)
	}
	sum := sha256.Sum256(b)
	return append(append(dst, formDigest), sum[:]...)
}

// rowKey is the key of a row of a table without one: a hash over (column id, value) of its values in the order of the
// ids. A value is left out if it is the one that rows older than its column have (NULL for a column that was there from
// the beginning): so the keys of stored rows stay what they are when a column is added or columns change places.
type rowKey struct {
	parts []rowPart
	buf   []byte
}

type rowPart struct {
	*keyColumn
	absent []byte // the form that is left out
}

func newRowKey(h *host, t *schema.Table, cols []Appender) *rowKey {
	k := &rowKey{}
	for i := range t.Columns {
		c := &keyColumn{base: base{host: h, col: &t.Columns[i]}, row: true}
		k.parts = append(k.parts, rowPart{c, absentForm(c)})
		c.next, cols[i] = cols[i], c
	}
	slices.SortFunc(k.parts, func(a, b rowPart) int { return cmp.Compare(a.col.ID, b.col.ID) })
	return k
}

// absentForm gives the form of the value that rows older than the column have. A value that can't be read is the
// builder's error, as it is for whoever reads such rows.
func absentForm(c *keyColumn) []byte {
	c.Null()
	if c.col.Added && c.col.Initial != nil {
		if err := AppendText(c, c.col, *c.col.Initial); err != nil {
			c.fail("%v", err)
		}
	}
	return bytes.Clone(c.buf)
}

func (k *rowKey) end(keys *Keys) {
	k.buf = k.buf[:0]
	for i := range k.parts {
		p := &k.parts[i]
		if bytes.Equal(p.buf, p.absent) {
			continue
		}
		k.buf = binary.AppendUvarint(k.buf, uint64(p.col.ID))
		k.buf = binary.AppendUvarint(k.buf, uint64(len(p.buf)))
		k.buf = append(k.buf, p.buf...)
	}
	sum := sha256.Sum256(k.buf)
	keys.Append(sum[:RowHashLen])
}

// Numbered gives rows of a table without a key, whose keys are hashes, the numbers first, first+1 and so on, and the
// keys that they then have: the hash and the number, 8 bytes, big-endian. So equal rows have different keys, which begin
// with the same bytes. A number must not be given twice in a generation of a table.
func (b *Batch) Numbered(first int64) *Batch {
	numbers := array.NewInt64Builder(memory.DefaultAllocator)
	numbers.Reserve(b.Rows())
	for i := range b.Rows() {
		numbers.UnsafeAppend(first + int64(i))
	}
	out := *b
	out.Numbers = numbers.NewInt64Array()
	out.Keys = numberedKeys(&b.Keys, out.Numbers)
	return &out
}

func numberedKeys(hashes *Keys, numbers *array.Int64) Keys {
	keys := Keys{data: make([]byte, 0, hashes.Len()*(RowHashLen+8)), ends: make([]int, 0, hashes.Len())}
	for i := range hashes.Len() {
		keys.data = append(keys.data, hashes.At(i)[:RowHashLen]...)
		keys.data = binary.BigEndian.AppendUint64(keys.data, uint64(numbers.Value(i)))
		keys.ends = append(keys.ends, len(keys.data))
	}
	return keys
}

// concatNumbers joins the numbers of batches, of which all have them or none.
func concatNumbers(batches []*Batch) (*array.Int64, error) {
	if batches[0].Numbers == nil {
		if slices.ContainsFunc(batches, func(b *Batch) bool { return b.Numbers != nil }) {
			return nil, fmt.Errorf("table %s: can't join rows with numbers and rows without", batches[0].Table.FullName())
		}
		return nil, nil
	}
	out := array.NewInt64Builder(memory.DefaultAllocator)
	for _, b := range batches {
		if b.Numbers == nil {
			return nil, fmt.Errorf("table %s: can't join rows with numbers and rows without", b.Table.FullName())
		}
		out.AppendValues(b.Numbers.Int64Values(), nil)
	}
	return out.NewInt64Array(), nil
}
