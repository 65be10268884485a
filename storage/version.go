package storage

import (
	"context"
	"fmt"
	"sync"

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
	// MinKey and MaxKey are the smallest and largest key of the rows, dead ones included.
	MinKey, MaxKey []byte
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
	if st == nil || st.rec.Shadow {
		return nil, fmt.Errorf("table %d: %w", id, ErrNotFound)
	}
	return v.view(st)
}

func (v *Version) view(st *tableState) (*TableVersion, error) {
	id := st.id
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
		tv.Segments = append(tv.Segments, SegmentView{ID: s.id, Batch: s.batch, Dead: v.hold(&s.home), DeadCount: s.count, MinKey: s.minKey, MaxKey: s.maxKey})
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
