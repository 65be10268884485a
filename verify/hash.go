package verify

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

const (
	bucketBits = 16
	buckets    = 1 << bucketBits
)

// hasher hashes rows under a secret of the run. It is for one goroutine; clone gives another with the same secret.
type hasher struct {
	seed    maphash.Seed
	secret  [4]uint64
	keys    []uint64
	hashes  []uint64
	scratch []int
}

func newHasher() *hasher {
	h := &hasher{seed: maphash.MakeSeed()}
	for i := range h.secret {
		h.secret[i] = maphash.String(h.seed, string(rune('a'+i))) | 1
	}
	return h
}

func (h *hasher) clone() *hasher { return &hasher{seed: h.seed, secret: h.secret} }

func (h *hasher) mix(state, value uint64) uint64 {
	hi, lo := bits.Mul64(state^h.secret[0], value^h.secret[1])
	return hi ^ lo ^ h.secret[2]
}

func bucketOf(key uint64) int { return int(key >> (64 - bucketBits)) }

// rows gives, for each row of a batch, a hash of its key and one of all its values, which is both in a table without a
// key. They stay valid until the next call.
func (h *hasher) rows(b *column.Batch) (keys, hashes []uint64, err error) {
	n := b.Rows()
	h.keys, h.hashes = sized(h.keys, n), sized(h.hashes, n)
	for _, k := range b.Table.Key {
		h.fold(h.keys, b.Record.Column(k))
	}
	copy(h.hashes, h.keys)
	for i := range b.Table.Columns {
		if !b.Table.IsKey(i) {
			h.fold(h.hashes, b.Record.Column(i))
		}
	}
	err = h.foldExact(b)
	if b.Table.Multiset() {
		copy(h.keys, h.hashes)
	}
	return h.keys, h.hashes, err
}

func sized(s []uint64, n int) []uint64 {
	if cap(s) < n {
		s = make([]uint64, n)
	}
	s = s[:n]
	clear(s)
	return s
}

type valued[T any] interface {
	arrow.Array
	Value(int) T
}

func foldEach[T any](h *hasher, states []uint64, a valued[T], value func(T) uint64) {
	for i := range states {
		if a.IsNull(i) {
			states[i] = h.mix(states[i], h.secret[3])
			continue
		}
		states[i] = h.mix(h.mix(states[i], 1), value(a.Value(i)))
	}
}

func (h *hasher) fold(states []uint64, a arrow.Array) {
	switch a := a.(type) {
	case *array.Int32:
		foldEach(h, states, a, func(v int32) uint64 { return uint64(v) })
	case *array.Int64:
		foldEach(h, states, a, func(v int64) uint64 { return uint64(v) })
	case *array.Uint64:
		foldEach(h, states, a, func(v uint64) uint64 { return v })
	case *array.Float32:
		foldEach(h, states, a, func(v float32) uint64 { return uint64(math.Float32bits(v)) })
	case *array.Float64:
		foldEach(h, states, a, math.Float64bits)
	case *array.Date32:
		foldEach(h, states, a, func(v arrow.Date32) uint64 { return uint64(v) })
	case *array.Timestamp:
		foldEach(h, states, a, func(v arrow.Timestamp) uint64 { return uint64(v) })
	case *array.Decimal128:
		for i := range states {
			if a.IsNull(i) {
				states[i] = h.mix(states[i], h.secret[3])
				continue
			}
			v := a.Value(i)
			states[i] = h.mix(h.mix(h.mix(states[i], 1), uint64(v.HighBits())), v.LowBits())
		}
	case *array.String:
		foldEach(h, states, a, func(v string) uint64 { return maphash.String(h.seed, v) })
	case *array.Binary:
		foldEach(h, states, a, func(v []byte) uint64 { return maphash.Bytes(h.seed, v) })
	default:
		panic(fmt.Sprintf("verify: no stored column has type %s", a.DataType()))
	}
}

// foldExact adds the exact values, which may stand in any order.
func (h *hasher) foldExact(b *column.Batch) error {
	if b.Exact == nil {
		return nil
	}
	for i := range h.hashes {
		if b.Exact.IsNull(i) {
			continue
		}
		sum := uint64(0)
		err := column.WalkExact(b.Exact.Value(i), func(id uint32, text []byte) { sum += h.mix(uint64(id), maphash.Bytes(h.seed, text)) })
		if err != nil {
			return fmt.Errorf("table %s: %w", b.Table.FullName(), err)
		}
		h.hashes[i] = h.mix(h.hashes[i], sum)
	}
	return nil
}

// sums are the rows of one side by bucket.
type sums struct {
	rows int64
	sum  [buckets]uint64
	n    [buckets]uint32
}

// add takes the rows of a batch that are not dead.
func (s *sums) add(h *hasher, b *column.Batch, dead uniquekey.Bitset) error {
	keys, hashes, err := h.rows(b)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if dead.Has(uint32(i)) {
			continue
		}
		at := bucketOf(key)
		s.sum[at] += hashes[i]
		s.n[at]++
		s.rows++
	}
	return nil
}

// differing lists the buckets that are not equal.
func differing(a, b *sums) []int {
	var out []int
	for i := range buckets {
		if a.sum[i] != b.sum[i] || a.n[i] != b.n[i] {
			out = append(out, i)
		}
	}
	return out
}

// row is what is kept of a row in a bucket that differs.
type row struct {
	hash   uint64 // in a table without a key the number of equal rows
	bucket int
	where  string // the condition that names it on the source; none in a table without a key
}

// collection is the rows of some buckets of one side, by key bytes.
type collection struct {
	wanted *[buckets]bool
	rows   map[string]row
}

// name gives the bytes that name a row on both sides: its key, or its hash without the number that our store gave it.
func name(b *column.Batch, i int) string {
	if b.Table.Multiset() {
		return string(b.Keys.At(i)[:column.RowHashLen])
	}
	return string(b.Keys.At(i))
}

func (c *collection) add(h *hasher, b *column.Batch, dead uniquekey.Bitset) error {
	keys, hashes, err := h.rows(b)
	if err != nil {
		return err
	}
	some, err := h.inBuckets(b, dead, c.wanted)
	if some == nil || err != nil {
		return err
	}
	for i, at := range h.scratch {
		id := name(some, i)
		r := row{hash: hashes[at], bucket: bucketOf(keys[at])}
		if b.Table.Multiset() {
			r.hash = c.rows[id].hash + 1
		} else if r.where, err = condition(some, i); err != nil {
			return err
		}
		c.rows[id] = r
	}
	return nil
}

// inBuckets gives the rows that are in some buckets, with their keys; nil when none is. Their numbers are in h.scratch. It
// goes by the hashes of the last call of rows.
func (h *hasher) inBuckets(b *column.Batch, dead uniquekey.Bitset, wanted *[buckets]bool) (*column.Batch, error) {
	h.scratch = h.scratch[:0]
	for i, key := range h.keys {
		if wanted[bucketOf(key)] && !dead.Has(uint32(i)) {
			h.scratch = append(h.scratch, i)
		}
	}
	if len(h.scratch) == 0 {
		return nil, nil
	}
	return b.Take(h.scratch).WithKeys()
}

// maxNamed is the number of bytes of a value that is shown where all values name the row.
const maxNamed = 40

// keyNames prints the key of a row for people.
func keyNames(b *column.Batch, i int) string {
	key := b.Table.Key
	if b.Table.Multiset() {
		for c := range b.Table.Columns {
			key = append(key, c)
		}
	}
	var out []byte
	for n, k := range key {
		if n > 0 {
			out = append(out, ", "...)
		}
		out = append(out, b.Table.Columns[k].Name...)
		out = append(out, '=')
		start := len(out)
		out = appendValue(out, b, i, k)
		if b.Table.Multiset() && len(out)-start > maxNamed {
			out = append(out[:start+maxNamed], "..."...)
		}
	}
	return string(out)
}

// appendValue prints one value as MySQL does, TIMESTAMP in UTC.
func appendValue(dst []byte, b *column.Batch, i, c int) []byte {
	col := &b.Table.Columns[c]
	if b.Exact != nil && !b.Exact.IsNull(i) {
		if text, ok := column.FindExact(b.Exact.Value(i), col.ID); ok {
			return append(dst, schema.ShowStored(col.Charset, text)...)
		}
	}
	if b.Record.Column(c).IsNull(i) {
		return append(dst, "NULL"...)
	}
	if col.Type.IsBinary() || col.Type == schema.Bit {
		return fmt.Appendf(dst, "0x%X", column.Print(nil, col, b.Record.Column(c), i, utc))
	}
	return column.Print(dst, col, b.Record.Column(c), i, utc)
}
