package storage

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
)

// what follows a piece of background work on a table.
type followUp int

const (
	done  followUp = iota // nothing, until the table changes
	later                 // look again at the next round
	again                 // there may be more to do at once
)

// tidy does one piece of the work that a table's parts and index need.
func (s *Store) tidy(ctx context.Context, id TableID) (followUp, error) {
	base := s.pinHead()
	defer s.unpin(base.seq)
	t := base.tables[id]
	if t == nil || t.damage != nil {
		return done, nil
	}
	if len(t.idx.Layers) > 0 {
		return again, s.drain(ctx, id, t.idx.Layers[0])
	}
	if parts := s.pickMerge(t); len(parts) > 0 {
		return again, s.mergeParts(ctx, base, t, parts)
	}
	if len(t.idx.Remaps) == 0 {
		return done, nil
	}
	if home := s.pickSettle(t); home != 0 {
		return again, s.settle(ctx, id, home)
	}
	return later, nil
}

// pickSettle chooses the home to settle next, 0 for none yet. Settling costs a write for each row of a home, which a merge
// makes needless; a remap costs a second look for each key that it resolves. So homes that will be merged soon wait.
func (s *Store) pickSettle(t *tableState) HomeID {
	for _, r := range t.idx.Remaps {
		if h := t.home(r.New); int64(h.dead.rows)*4 >= s.opt.MergeRows {
			return r.New
		}
	}
	if len(t.idx.Remaps) >= s.opt.settleRemaps || s.work.quiet(t.id) {
		return t.idx.Remaps[0].New
	}
	return 0
}

// The rules of merging.
const (
	mergeWidth    = 4    // parts of like size that are merged into one
	mergeLike     = 4    // like: within this factor
	smallParts    = 12   // more small parts than this are merged even when they are not alike
	fewParts      = 48   // with so few parts, those of a 16th of the bounds of a merge are large enough; with more, of half
	maxMergeParts = 16   // parts read at once
	deadShare     = 0.25 // a part with a larger share of dead rows is rewritten
)

// pickMerge chooses the parts to merge next; none when the table is in order. A large part is left alone until enough of
// its rows are dead: what a bulk load or a full flush writes need not be written again.
func (s *Store) pickMerge(t *tableState) []*partState {
	var small []*partState
	share := int64(2)
	if len(t.parts) <= fewParts {
		share = 16
	}
	for _, p := range t.parts {
		heavy := p.count >= s.opt.deadFloor && float64(p.count) > deadShare*float64(p.rec.Info.Rows)
		if p.alive() == 0 || heavy {
			return []*partState{p}
		}
		if p.alive()*share < s.opt.MergeRows && s.aliveBytes(p)*share < s.opt.MergeBytes {
			small = append(small, p)
		}
	}
	slices.SortFunc(small, func(a, b *partState) int { return cmp.Compare(a.alive(), b.alive()) })
	for i := 0; i+mergeWidth <= len(small); i++ {
		if small[i+mergeWidth-1].alive() <= mergeLike*small[i].alive() {
			return s.fitting(small[i:])
		}
	}
	if len(small) > smallParts {
		return s.fitting(small)
	}
	return nil
}

// aliveBytes is about what a part's live rows would take in a file.
func (s *Store) aliveBytes(p *partState) int64 {
	if p.rec.Info.Rows == 0 {
		return 0
	}
	return int64(float64(p.rec.Info.Bytes) * float64(p.alive()) / float64(p.rec.Info.Rows))
}

// fitting gives the first parts, by size, that make one part within the bounds; at least two.
func (s *Store) fitting(parts []*partState) []*partState {
	var rows, size int64
	for i, p := range parts {
		rows += p.alive()
		size += s.aliveBytes(p)
		alike := i < mergeWidth || p.alive() <= mergeLike*parts[0].alive()
		if i >= 2 && (rows > s.opt.MergeRows || size > s.opt.MergeBytes || i == maxMergeParts || !alike) {
			return parts[:i]
		}
	}
	return parts
}

func (s *Store) mergeParts(ctx context.Context, base *state, t *tableState, parts []*partState) error {
	err := s.relocateParts(ctx, base, t, parts)
	if err == nil {
		return nil
	}
	var damage *DamageError
	if errors.As(err, &damage) {
		s.markDamaged(t.id, damage)
	}
	return fmt.Errorf("merging parts of table %s: %w", t.rec.Def.FullName(), err)
}

func (s *Store) relocateParts(ctx context.Context, base *state, t *tableState, parts []*partState) error {
	homes := make([]*home, len(parts))
	alive := int64(0)
	for i, p := range parts {
		homes[i] = &p.home
		alive += p.alive()
	}
	r := s.newRelocation(base, t, homes)
	s.writers.Add(1)
	defer s.writers.Add(-1)
	if alive > 0 {
		if err := r.writeMerge(ctx, parts); err != nil {
			return errors.Join(err, r.abandon())
		}
	}
	return r.commit(ctx)
}

// writeMerge writes the live rows of the parts, in key order, as a new part.
func (r *relocation) writeMerge(ctx context.Context, parts []*partState) error {
	id, err := r.s.nextID()
	if err != nil {
		return err
	}
	h := home{id: HomeID(id), dead: &deadRows{}}
	path, err := r.newPart(h)
	if err != nil {
		return err
	}
	opt := part.WriteOptions{FS: r.s.fs}
	for _, p := range parts {
		opt.Wide = append(opt.Wide, p.rec.Info.Wide...)
		opt.Exact = opt.Exact || p.rec.Info.Exact
	}
	slices.Sort(opt.Wide)
	opt.Wide = slices.Compact(opt.Wide)
	opt.Exact = opt.Exact || hasExactInitial(r.table.rec.Def)
	w, err := part.NewWriter(r.s.path(path), r.table.rec.Def, opt)
	if err != nil {
		return diskError(err)
	}
	if err := r.openLayer(); err != nil {
		w.Abort()
		return err
	}
	if err := r.mergeInto(ctx, parts, w, h.id); err != nil {
		w.Abort()
		return errors.Join(diskError(err), r.file.abort())
	}
	if r.part.rec.Info, err = w.Finish(); err != nil {
		return errors.Join(diskError(err), r.file.abort())
	}
	r.part.dead.rows = int(r.part.rec.Info.Rows)
	if err := syncDir(r.s.fs, r.s.fs.PathDir(r.s.path(path))); err != nil {
		return errors.Join(diskError(err), r.file.abort())
	}
	return r.closeLayer(ctx)
}

// hasExactInitial tells whether rows older than some column may get an exact value for it.
func hasExactInitial(t *schema.Table) bool {
	return slices.ContainsFunc(t.Columns, func(c schema.Column) bool { return c.Added && c.Initial != nil })
}

// mergeInto reads the parts in step and writes their live rows in key order.
func (r *relocation) mergeInto(ctx context.Context, parts []*partState, w *part.Writer, id HomeID) (err error) {
	m := &merger{r: r, w: w, home: id}
	defer func() { err = firstError(err, m.close()) }()
	for _, p := range parts {
		src := &mergeSource{home: &p.home, set: p.dead.at(r.base.seq), newRow: r.newRow[p.id]}
		m.sources = append(m.sources, src)
		if src.reader, err = part.Open(r.s.fs, r.s.path(p.rec.Path)); err != nil {
			return err
		}
		if src.batches, err = src.reader.Batches(ctx, r.table.rec.Def); err != nil {
			return err
		}
		if err := src.fetch(); err != nil {
			return err
		}
		if src.batch != nil {
			m.heap = append(m.heap, src)
		}
	}
	heap.Init(&m.heap)
	return m.run()
}

// mergeSource is one part that is being merged, at its next live row.
type mergeSource struct {
	home    *home
	set     *flatSet
	reader  *part.Reader
	batches *part.Batches
	newRow  []uint32

	batch *column.Batch // nil at the end
	row   int           // of batch
	first int           // row of the part at which batch starts
	next  int           // row of the part after batch

	rowBytes int64 // about the memory of a row of batch
}

func (s *mergeSource) dead(row int) bool { return s.set != nil && s.set.bits.Has(uint32(row)) }

// fetch moves to the next batch with a live row.
func (s *mergeSource) fetch() error {
	for {
		b, err := s.batches.Next()
		if errors.Is(err, io.EOF) {
			s.batch = nil
			return nil
		}
		if err != nil {
			return err
		}
		s.batch, s.first, s.row, s.rowBytes = b, s.next, -1, rowBytes(b)
		s.next += b.Rows()
		if s.advance() {
			return nil
		}
	}
}

// advance moves to the next live row of the batch.
func (s *mergeSource) advance() bool {
	for s.row++; s.row < s.batch.Rows(); s.row++ {
		if !s.dead(s.first + s.row) {
			return true
		}
	}
	return false
}

func (s *mergeSource) key() []byte { return s.batch.Keys.At(s.row) }

type mergeHeap []*mergeSource

func (h mergeHeap) Len() int           { return len(h) }
func (h mergeHeap) Less(i, j int) bool { return bytes.Compare(h[i].key(), h[j].key()) < 0 }
func (h mergeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)        { *h = append(*h, x.(*mergeSource)) }
func (h *mergeHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// merger writes the rows of its sources in key order, a block at a time. A block ends when it is full or when a source
// needs its next batch, so that all rows of a block stand in the sources' present batches.
type merger struct {
	r       *relocation
	w       *part.Writer
	home    HomeID
	sources []*mergeSource
	heap    mergeHeap
	block   []pick
	bytes   int64 // about the memory of the block's rows
	rows    uint32
	last    []byte
}

type pick struct {
	src *mergeSource
	row int // of the source's batch
}

func (m *merger) run() error {
	for len(m.heap) > 0 {
		src := m.heap[0]
		if err := m.take(src); err != nil {
			return err
		}
		if src.advance() {
			heap.Fix(&m.heap, 0)
			if len(m.block) < pieceRows && m.bytes < pieceBytes {
				continue
			}
		}
		if err := m.flush(); err != nil {
			return err
		}
		if src.row < src.batch.Rows() {
			continue
		}
		if err := src.fetch(); err != nil {
			return err
		}
		if src.batch == nil {
			heap.Pop(&m.heap)
		} else {
			heap.Fix(&m.heap, 0)
		}
	}
	return m.flush()
}

// take adds the source's present row to the block.
func (m *merger) take(src *mergeSource) error {
	key := src.key()
	if m.rows > 0 && bytes.Compare(m.last, key) >= 0 {
		return damaged(m.r.s.path(m.r.table.rec.Def.FullName()), "live rows of its parts are out of key order, or share a key")
	}
	m.last = append(m.last[:0], key...)
	src.newRow[src.first+src.row] = m.rows
	if err := m.r.place(key, m.home, m.rows); err != nil {
		return err
	}
	m.rows++
	m.bytes += src.rowBytes
	m.block = append(m.block, pick{src, src.row})
	return nil
}

func (m *merger) flush() error {
	if len(m.block) == 0 {
		return nil
	}
	rows, err := m.gather()
	m.block, m.bytes = m.block[:0], 0
	if err != nil {
		return err
	}
	return m.w.Add(rows)
}

// gather makes one batch of the block.
func (m *merger) gather() (*column.Batch, error) {
	start := map[*mergeSource]int{}
	var batches []*column.Batch
	total := 0
	for _, p := range m.block {
		if _, ok := start[p.src]; !ok {
			start[p.src] = total
			batches = append(batches, p.src.batch)
			total += p.src.batch.Rows()
		}
	}
	first, last := m.block[0].row, m.block[len(m.block)-1].row
	if len(batches) == 1 && last-first+1 == len(m.block) {
		return batches[0].Slice(first, last+1), nil
	}
	all, err := column.Concat(batches)
	if err != nil {
		return nil, err
	}
	take := make([]int, len(m.block))
	for i, p := range m.block {
		take[i] = start[p.src] + p.row
	}
	return all.Take(take), nil
}

func (m *merger) close() error {
	var err error
	for _, s := range m.sources {
		if s.batches != nil {
			s.batches.Close()
		}
		if s.reader != nil {
			err = firstError(err, s.reader.Close())
		}
		s.home.dead.release(s.set)
	}
	return err
}
