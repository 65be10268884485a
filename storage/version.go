package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Version is the store at one commit. What it shows never changes; files and bitmaps stay until Release. Its methods may
// be called from several goroutines.
type Version struct {
	s  *Store
	st *state

	mu       sync.Mutex
	views    map[TableID]*TableVersion
	held     []heldSet
	released bool
}

type heldSet struct {
	dead *deadRows
	set  *flatSet
}

// TableVersion is a table in a Version.
type TableVersion struct {
	TableInfo
	// Parts and Segments hold the rows; their dead rows are not to be seen.
	Parts    []PartView
	Segments []SegmentView
}

// PartView is a part in a Version.
type PartView struct {
	ID   PartID
	Path string // absolute if the data directory is
	Info part.Info
	// Dead has the bits of the dead rows (row r is bit r%64 of word r/64), nil when DeadCount is 0. It must not be changed,
	// and not be used after Release.
	Dead      uniquekey.Bitset
	DeadCount int
}

// SegmentView is a segment in a Version.
type SegmentView struct {
	ID SegmentID
	// Batch follows the table's Def.
	Batch     *column.Batch
	Dead      uniquekey.Bitset
	DeadCount int
}

// Pin gives the newest commit. It must be released. ErrNotFound when one of the databases is gone.
func (s *Store) Pin(dbs ...DatabaseID) (*Version, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	v := &Version{s: s, st: s.pinHead(), views: map[TableID]*TableVersion{}}
	for _, id := range dbs {
		if v.st.database(id) == nil {
			v.Release()
			return nil, fmt.Errorf("database %d: %w", id, ErrNotFound)
		}
	}
	return v, nil
}

// Release lets the version go. It may be called more than once.
func (v *Version) Release() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.released {
		return
	}
	v.released = true
	for _, h := range v.held {
		h.dead.release(h.set)
	}
	v.held, v.views = nil, nil
	v.s.unpin(v.st.seq)
	v.s.work.kickJanitor()
}

// Seq is the commit that the version shows.
func (v *Version) Seq() CommitSeq { return v.st.seq }

// Database gives a database at this commit.
func (v *Version) Database(id DatabaseID) (DatabaseInfo, error) {
	d := v.st.database(id)
	if d == nil {
		return DatabaseInfo{}, fmt.Errorf("database %d: %w", id, ErrNotFound)
	}
	return d.info(), nil
}

// Point is the source position that a database's rows stand at; nil before its first copy is complete.
func (v *Version) Point(id DatabaseID) []byte {
	if d := v.st.database(id); d != nil {
		return d.point
	}
	return nil
}

// Tables lists a database's tables by name.
func (v *Version) Tables(id DatabaseID) []TableInfo { return v.st.tableInfos(id) }

// Table gives a table by name. ErrNotFound when there is none; a DamageError when its files are damaged.
func (v *Version) Table(id DatabaseID, name string) (*TableVersion, error) {
	d := v.st.database(id)
	if d == nil {
		return nil, fmt.Errorf("database %d: %w", id, ErrNotFound)
	}
	t, ok := d.tables[name]
	if !ok {
		return nil, fmt.Errorf("table %s.%s: %w", d.rec.Name, name, ErrNotFound)
	}
	return v.table(t)
}

func (v *Version) table(id TableID) (*TableVersion, error) {
	st := v.st.tables[id]
	if st == nil {
		return nil, fmt.Errorf("table %d: %w", id, ErrNotFound)
	}
	if st.damage != nil {
		return nil, fmt.Errorf("table %s can't be read: %w", st.rec.Def.FullName(), st.damage)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.released {
		return nil, fmt.Errorf("table %s: the version was released", st.rec.Def.FullName())
	}
	if tv := v.views[id]; tv != nil {
		return tv, nil
	}
	tv := &TableVersion{TableInfo: st.info()}
	for _, p := range st.parts {
		tv.Parts = append(tv.Parts, PartView{ID: p.id, Path: v.s.path(p.rec.Path), Info: p.rec.Info, Dead: v.hold(&p.home), DeadCount: p.count})
	}
	for _, s := range st.segments {
		tv.Segments = append(tv.Segments, SegmentView{ID: s.id, Batch: s.batch, Dead: v.hold(&s.home), DeadCount: s.count})
	}
	v.views[id] = tv
	return tv, nil
}

// hold gives the dead rows of a home as of the version, and keeps them until Release. v.mu is held.
func (v *Version) hold(h *home) uniquekey.Bitset {
	if h.count == 0 {
		return nil
	}
	set := h.dead.at(v.st.seq)
	if set == nil {
		return nil
	}
	v.held = append(v.held, heldSet{h.dead, set})
	return set.bits
}

// Scan calls fn for the rows of a table in pieces, with the dead rows of each piece (nil: none), in no particular order.
func (v *Version) Scan(ctx context.Context, id TableID, fn func(rows *column.Batch, dead uniquekey.Bitset) error) error {
	tv, err := v.table(id)
	if err != nil {
		return err
	}
	for _, s := range tv.Segments {
		if err := fn(s.Batch, s.Dead); err != nil {
			return err
		}
	}
	for i := range tv.Parts {
		if err := v.s.scanPart(ctx, &tv.Parts[i], tv.Def, fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) scanPart(ctx context.Context, p *PartView, def *schema.Table, fn func(*column.Batch, uniquekey.Bitset) error) error {
	r, err := part.Open(s.fs, p.Path)
	if err != nil {
		return err
	}
	row := 0
	err = r.Read(ctx, def, func(b *column.Batch) error {
		dead := cut(p.Dead, row, b.Rows())
		row += b.Rows()
		return fn(b, dead)
	})
	return firstError(err, r.Close())
}

// cut gives n rows of a set from row on, renumbered from 0; nil when none of them is in it.
func cut(set uniquekey.Bitset, row, n int) uniquekey.Bitset {
	if set == nil {
		return nil
	}
	out := uniquekey.NewBitset(n)
	any := false
	for i := range n {
		if set.Has(uint32(row + i)) {
			out.Set(uint32(i))
			any = true
		}
	}
	if !any {
		return nil
	}
	return out
}

// Lookup gives the live rows that have one of the keys, in no particular order. It uses the key index, which knows the
// newest commit only; keys whose rows have changed since are found by reading.
func (v *Version) Lookup(ctx context.Context, id TableID, keys column.Keys) (*column.Batch, error) {
	tv, err := v.table(id)
	if err != nil {
		return nil, err
	}
	at, missing, err := v.locate(ctx, tv, &keys)
	if err != nil {
		return nil, err
	}
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
	if len(missing) > 0 {
		err = v.Scan(ctx, id, func(b *column.Batch, dead uniquekey.Bitset) error {
			var take []int
			for i := range b.Keys.Len() {
				if !dead.Has(uint32(i)) && missing[string(b.Keys.At(i))] {
					take = append(take, i)
				}
			}
			if len(take) > 0 {
				rows = append(rows, b.Take(take))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(rows) == 0 {
		return column.NewBuilder(memory.DefaultAllocator, tv.Def).Finish()
	}
	return column.Concat(rows)
}

// locate finds the rows of keys by the index. Keys whose row there is not in the version, or was not there then, are
// missing: they must be looked for. A key that is in no home of a table unchanged since the version is simply not there.
func (v *Version) locate(ctx context.Context, tv *TableVersion, keys *column.Keys) (at map[HomeID][]uint32, missing map[string]bool, err error) {
	order, unique := keyOrder(keys)
	if !unique {
		return nil, nil, errTwice
	}
	v.s.commitMu.Lock()
	now := v.s.head.Load()
	snapshot := v.s.meta.NewSnapshot()
	v.s.commitMu.Unlock()
	where := make([]found, keys.Len())
	current := now.tables[tv.ID]
	if current != nil && current.rec.Generation == tv.Generation {
		err = newIndex(tv.Generation, &current.idx).lookup(ctx, snapshot, keys, order, where)
	}
	if err := firstError(err, snapshot.Close()); err != nil {
		return nil, nil, err
	}
	unchanged := current == v.st.tables[tv.ID]
	at, missing = map[HomeID][]uint32{}, map[string]bool{}
	for i, loc := range where {
		switch {
		case tv.alive(loc):
			at[HomeID(loc.Home)] = append(at[HomeID(loc.Home)], loc.Row)
		case !unchanged:
			missing[string(keys.At(i))] = true
		}
	}
	for _, rows := range at {
		slices.Sort(rows)
	}
	return at, missing, nil
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
