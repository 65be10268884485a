package column

import "github.com/apache/arrow-go/v18/arrow/array"

// Slice gives the rows from (inclusive) to (exclusive) without copying the values.
func (b *Batch) Slice(from, to int) *Batch {
	out := &Batch{Table: b.Table, Record: b.Record.NewSlice(int64(from), int64(to))}
	if b.Exact != nil {
		if exact := array.NewSlice(b.Exact, int64(from), int64(to)).(*array.Binary); exact.NullN() < exact.Len() {
			out.Exact = exact
		}
	}
	if b.Numbers != nil {
		out.Numbers = array.NewSlice(b.Numbers, int64(from), int64(to)).(*array.Int64)
	}
	if b.Keys.Len() > 0 {
		out.Keys = b.Keys.Slice(from, to)
	}
	return out
}

// Slice gives the keys from (inclusive) to (exclusive). Their bytes are shared.
func (k *Keys) Slice(from, to int) Keys {
	start := 0
	if from > 0 {
		start = k.ends[from-1]
	}
	out := Keys{ends: make([]int, to-from)}
	for i := range out.ends {
		out.ends[i] = k.ends[from+i] - start
	}
	if to > from {
		out.data = k.data[start:k.ends[to-1]:k.ends[to-1]]
	}
	return out
}
