package storage

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Lookup gives the live rows that have one of the keys, in no particular order. It uses the key index, which knows the
// newest commit only; keys whose rows have changed since are found by reading. In a table without a key the keys are
// hashes, and all live rows of each are given.
func (v *Version) Lookup(ctx context.Context, id TableID, keys column.Keys) (*column.Batch, error) {
	tv, err := v.table(id)
	if err != nil {
		return nil, err
	}
	locate := v.locate
	if tv.Def.Multiset() {
		locate = v.locateHashes
	}
	at, missing, err := locate(ctx, tv, &keys)
	if err != nil {
		return nil, err
	}
	rows, err := v.fetch(ctx, tv, at)
	if err != nil {
		return nil, err
	}
	more, err := v.search(ctx, tv, missing)
	if err != nil {
		return nil, err
	}
	if rows = append(rows, more...); len(rows) == 0 {
		return column.NewBuilder(memory.DefaultAllocator, tv.Def).Finish()
	}
	return column.Concat(rows)
}

// fetch reads rows by their place.
func (v *Version) fetch(ctx context.Context, tv *TableVersion, at map[HomeID][]uint32) ([]*column.Batch, error) {
	var rows []*column.Batch
	for i := range tv.Segments {
		if want := at[tv.Segments[i].ID]; len(want) > 0 {
			rows = append(rows, tv.Segments[i].Batch.Take(ints(want)))
		}
	}
	for i := range tv.Parts {
		if want := at[tv.Parts[i].ID]; len(want) > 0 {
			b, err := v.readRows(ctx, &tv.Parts[i], tv.Def, want)
			if err != nil {
				return nil, err
			}
			rows = append(rows, b)
		}
	}
	return rows, nil
}

// search reads the homes that may have one of the keys, which are in ascending order.
func (v *Version) search(ctx context.Context, tv *TableVersion, keys []string) ([]*column.Batch, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	name := func(key []byte) string { return string(key) }
	if tv.Def.Multiset() {
		name = func(key []byte) string { return string(key[:column.RowHashLen]) }
	}
	var rows []*column.Batch
	pick := func(b *column.Batch, dead uniquekey.Bitset) error {
		var take []int
		for i := range b.Keys.Len() {
			if dead.Has(uint32(i)) {
				continue
			}
			if _, wanted := slices.BinarySearch(keys, name(b.Keys.At(i))); wanted {
				take = append(take, i)
			}
		}
		if len(take) > 0 {
			rows = append(rows, b.Take(take))
		}
		return nil
	}
	for i := range tv.Segments {
		_ = pick(tv.Segments[i].Batch, tv.Segments[i].Dead)
	}
	for i := range tv.Parts {
		p := &tv.Parts[i]
		if p.Info.Rows == 0 {
			continue
		}
		first, _ := slices.BinarySearch(keys, name(p.Info.MinKey))
		if first == len(keys) || keys[first] > name(p.Info.MaxKey) {
			continue
		}
		if err := v.s.scanPart(ctx, p, tv.Def, pick); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// locate finds the rows of keys by the index. Keys whose row there is not in the version, or was not there then, are
// missing: they must be looked for, in ascending order. A key that is in no home of a table unchanged since the version is simply not there.
func (v *Version) locate(ctx context.Context, tv *TableVersion, keys *column.Keys) (at map[HomeID][]uint32, missing []string, err error) {
	order, unique := keyOrder(keys)
	if !unique {
		return nil, nil, errTwice
	}
	where := make([]found, keys.Len())
	unchanged, err := v.withIndex(tv, func(x *index, r pebble.Reader) error { return x.lookup(ctx, r, keys, order, where) })
	if err != nil {
		return nil, nil, err
	}
	at = map[HomeID][]uint32{}
	for _, i := range order {
		loc := where[i]
		switch {
		case tv.alive(loc):
			at[HomeID(loc.Home)] = append(at[HomeID(loc.Home)], loc.Row)
		case !unchanged:
			missing = append(missing, string(keys.At(int(i))))
		}
	}
	for _, rows := range at {
		slices.Sort(rows)
	}
	return at, missing, nil
}

// withIndex calls fn with the newest index of the table, unless that is of another generation, and tells whether the table
// has not changed since the version.
func (v *Version) withIndex(tv *TableVersion, fn func(*index, pebble.Reader) error) (unchanged bool, err error) {
	v.s.commitMu.Lock()
	now := v.s.head.Load()
	snapshot := v.s.meta.NewSnapshot()
	v.s.commitMu.Unlock()
	current := now.tables[tv.ID]
	if current != nil && current.rec.Generation == tv.Generation {
		err = fn(newIndex(tv.Generation, &current.idx), snapshot)
	}
	return current == v.st.tables[tv.ID], firstError(err, snapshot.Close())
}

// locateHashes is locate for a table without a key. Once the table has changed, rows of any hash may be gone from the
// index, so that all are missing.
func (v *Version) locateHashes(ctx context.Context, tv *TableVersion, hashes *column.Keys) (at map[HomeID][]uint32, missing []string, err error) {
	order, unique := keyOrder(hashes)
	if !unique {
		return nil, nil, errTwice
	}
	if err := checkHashes(hashes); err != nil {
		return nil, nil, err
	}
	look := hashLookup{
		hashes: hashes, out: make([][]numberedRow, hashes.Len()),
		wanted: func(int32) int { return math.MaxInt }, skip: func([]byte) bool { return false },
	}
	unchanged, err := v.withIndex(tv, func(x *index, r pebble.Reader) error { return x.lookupHashes(ctx, r, &look, order) })
	if err != nil {
		return nil, nil, err
	}
	if !unchanged {
		for _, i := range order {
			missing = append(missing, string(hashes.At(int(i))))
		}
		return nil, missing, nil
	}
	at = map[HomeID][]uint32{}
	for _, rows := range look.out {
		for _, row := range rows {
			at[HomeID(row.at.Home)] = append(at[HomeID(row.at.Home)], row.at.Row)
		}
	}
	for _, rows := range at {
		slices.Sort(rows)
	}
	return at, nil, nil
}

func (tv *TableVersion) alive(loc found) bool {
	id := HomeID(loc.Home)
	if i, ok := slices.BinarySearchFunc(tv.Parts, id, func(p PartView, id HomeID) int { return cmp.Compare(p.ID, id) }); ok {
		return !tv.Parts[i].Dead.Has(loc.Row)
	}
	if i, ok := slices.BinarySearchFunc(tv.Segments, id, func(s SegmentView, id HomeID) int { return cmp.Compare(s.ID, id) }); ok {
		return !tv.Segments[i].Dead.Has(loc.Row)
	}
	return false
}

func (v *Version) readRows(ctx context.Context, p *PartView, def *schema.Table, rows []uint32) (*column.Batch, error) {
	r, err := part.Open(v.s.fs, p.Path)
	if err != nil {
		return nil, err
	}
	b, err := r.ReadRows(ctx, def, rows)
	return b, firstError(err, r.Close())
}

func ints(rows []uint32) []int {
	out := make([]int, len(rows))
	for i, r := range rows {
		out[i] = int(r)
	}
	return out
}
