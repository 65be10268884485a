package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemarkdb/tidemark/uniquekey"
)

// relocation moves the live rows of some homes into a new one, beside the writers of the table:
//
//  1. the rows that are alive at a pinned commit are written to the new home, which no commit refers to yet, and their
//     new locators to an index layer of its own;
//  2. one commit, under the table's lock, puts the new home in the place of the old ones, with the rows that died meanwhile
//     marked dead, and a remap through which locators of the old homes resolve;
//  3. later, and only if the new home was not moved itself by then, the new locators are written into the base index piece
//     by piece; then the remap and its layer are dropped (settle).
//
// A crash before 2 leaves a file and a layer that the next open removes; one in 3 leaves it to be done again.
type relocation struct {
	s     *Store
	base  *state // pinned
	table *tableState
	from  []*home
	// newRow gives for each row of an old home its row in the new one, or gone.
	newRow map[HomeID][]uint32

	// patience is how long the commit waits for the table; 0: for ever.
	patience time.Duration

	// What the new home is; both nil when no row is left.
	part    *partState
	segment *newSegment

	layer LayerID
	file  *sortedFile
	key   []byte
	value []byte
}

const gone = math.MaxUint32

func (s *Store) newRelocation(base *state, t *tableState, from []*home) *relocation {
	r := &relocation{s: s, base: base, table: t, from: from, newRow: map[HomeID][]uint32{}}
	for _, h := range from {
		rows := make([]uint32, h.dead.rows)
		for i := range rows {
			rows[i] = gone
		}
		r.newRow[h.id] = rows
	}
	return r
}

// openLayer starts the layer of new locators.
func (r *relocation) openLayer() error {
	id, err := r.s.nextID()
	if err != nil {
		return err
	}
	r.layer = LayerID(id)
	r.file, err = r.s.meta.newSortedFile(r.s.path(r.s.fs.PathJoin(loadName, fmt.Sprintf("%d.sst", id))))
	return err
}

// place notes the new row of a key; rows come in key order.
func (r *relocation) place(key []byte, home HomeID, row uint32) error {
	r.key = layerKey(r.key[:0], r.layer, key)
	r.value = uniquekey.AppendLocator(r.value[:0], found{Home: uint64(home), Row: row})
	return r.file.add(r.key, r.value)
}

// closeLayer makes the layer part of the metadata store.
func (r *relocation) closeLayer(ctx context.Context) error {
	if err := r.file.finish(); err != nil {
		return err
	}
	err := r.s.meta.ingest(ctx, []string{r.file.path})
	if err != nil {
		return errors.Join(fmt.Errorf("adding index entries: %w", diskError(err)), r.file.remove())
	}
	return r.file.remove()
}

// abandon removes what was written for a relocation that will not be committed.
func (r *relocation) abandon() error {
	var err error
	if r.part != nil {
		err = r.s.removeFile(r.s.path(r.part.rec.Path))
	}
	if r.layer != 0 {
		err = firstError(err, r.s.dropLayer(r.layer))
	}
	return err
}

// commit is step 2. If the table no longer has all the old homes, nothing is changed; nor if it is busy (errTableBusy).
func (r *relocation) commit(ctx context.Context) error {
	lock := r.s.tableLock(r.table.id)
	switch {
	case r.patience == 0:
		lock.Lock()
	case !lock.lockWithin(r.patience):
		return firstError(r.abandon(), errTableBusy)
	}
	defer lock.Unlock()
	if !r.current() {
		return r.abandon()
	}
	_, err := r.s.commit(ctx, r.fill)
	if err != nil && r.s.Failed() == nil {
		err = errors.Join(err, r.abandon())
	}
	return err
}

// current tells whether the old homes are still there. The table's lock is held.
func (r *relocation) current() bool {
	t := r.s.head.Load().tables[r.table.id]
	if t == nil || t.rec.Generation != r.table.rec.Generation {
		return false
	}
	for _, h := range r.from {
		if !t.has(h.id) {
			return false
		}
	}
	return true
}

func (t *tableState) has(id HomeID) bool {
	return slices.ContainsFunc(t.parts, func(p *partState) bool { return p.id == id }) ||
		slices.ContainsFunc(t.segments, func(s *segmentState) bool { return s.id == id })
}

func (r *relocation) fill(c *commitment) error {
	t := c.ed.table(r.table.id)
	died := r.died()
	for _, h := range r.from {
		if err := r.drop(c, t, h.id); err != nil {
			return err
		}
	}
	id, err := r.add(c, t)
	if err != nil {
		return err
	}
	if err := r.redirect(c, t, id); err != nil || id == 0 {
		return err
	}
	if err := c.kill(t, id, died); err != nil {
		return err
	}
	if r.layer == 0 {
		return r.rewriteNow(c, t, id, died)
	}
	for _, h := range r.from {
		t.idx.Remaps = append(t.idx.Remaps, remap{Old: h.id, New: id, Layer: r.layer})
	}
	return c.putIndex(t)
}

// redirect takes the remaps that lead to the old homes on to the new one, whose layer has the live keys of all of them;
// without a new home no live row is left for them to find. Their own layers are dropped.
func (r *relocation) redirect(c *commitment, t *tableState, id HomeID) error {
	var err error
	kept := t.idx.Remaps[:0]
	dropped := map[LayerID]bool{}
	for _, m := range t.idx.Remaps {
		if _, moved := r.newRow[m.New]; moved {
			if !dropped[m.Layer] {
				dropped[m.Layer] = true
				err = firstError(err, c.deletePrefix(layerKey(nil, m.Layer, nil)))
			}
			if id == 0 {
				continue
			}
			m.New, m.Layer = id, r.layer
		}
		kept = append(kept, m)
	}
	if len(dropped) == 0 {
		return err
	}
	t.idx.Remaps = kept
	return firstError(err, c.putIndex(t))
}

// died lists the rows of the new home that died since the pinned commit.
func (r *relocation) died() []uint32 {
	var died []uint32
	for _, h := range r.from {
		rows := r.newRow[h.id]
		for _, row := range h.dead.since(r.base.seq) {
			died = append(died, rows[row])
		}
	}
	slices.Sort(died)
	checkMoved(r.table.rec.Def.FullName(), died)
	return died
}

func (r *relocation) drop(c *commitment, t *tableState, id HomeID) error {
	for _, p := range t.parts {
		if p.id == id {
			return c.dropPart(t, p)
		}
	}
	for _, s := range t.segments {
		if s.id == id {
			return c.dropSegment(t, s)
		}
	}
	return nil
}

func (r *relocation) add(c *commitment, t *tableState) (HomeID, error) {
	if r.part != nil {
		return r.part.id, c.addPart(t, r.part)
	}
	if r.segment != nil {
		return r.segment.id, firstError(c.addSegment(t, r.segment), c.projectSegments(t))
	}
	return 0, nil
}

// rewriteNow is step 3 within the commit, for a new home of few rows.
func (r *relocation) rewriteNow(c *commitment, t *tableState, id HomeID, died []uint32) error {
	w := indexWriter{batch: c.batch, gen: t.rec.Generation, layers: t.idx.Layers}
	keys := &r.segment.batch.Keys
	for row := range keys.Len() {
		if _, dead := slices.BinarySearch(died, uint32(row)); dead {
			continue
		}
		if err := w.put(keys.At(row), found{Home: uint64(id), Row: uint32(row)}); err != nil {
			return err
		}
	}
	return nil
}

// settle is step 3 for the home that remaps of the table lead to.
func (s *Store) settle(ctx context.Context, id TableID, home HomeID) error {
	t := s.head.Load().tables[id]
	if t == nil {
		return nil
	}
	i := slices.IndexFunc(t.idx.Remaps, func(r remap) bool { return r.New == home })
	if i < 0 {
		return nil
	}
	layer := t.idx.Remaps[i].Layer
	it, err := s.meta.NewIter(prefixOptions(layerKey(nil, layer, nil)))
	if err != nil {
		return fmt.Errorf("key index: %w", err)
	}
	err = s.settleAll(ctx, id, t.rec.Generation, home, it)
	if err = firstError(err, it.Close()); err != nil {
		return err
	}
	return s.dropRemap(ctx, id, home, layer)
}

type indexEntry struct {
	key []byte
	loc found
}

func (s *Store) settleAll(ctx context.Context, id TableID, gen Generation, home HomeID, it *pebble.Iterator) error {
	entries := make([]indexEntry, 0, s.opt.settleRows)
	for ok := it.First(); ok; {
		entries = entries[:0]
		for ; ok && len(entries) < s.opt.settleRows; ok = it.Next() {
			loc, err := decodeEntry(it.Value())
			if err != nil {
				return err
			}
			entries = append(entries, indexEntry{bytes.Clone(it.Key()[indexPrefixLen:]), loc})
		}
		gone := false
		err := s.exclusive(ctx, func(st *state, b *pebble.Batch) error {
			t := st.tables[id]
			if gone = t == nil || t.rec.Generation != gen || t.home(home) == nil; gone {
				return nil
			}
			return settleSome(st, t, home, entries, b)
		})
		if err != nil || gone {
			return err
		}
	}
	return it.Error()
}

// settleSome writes the entries whose rows are alive into the base.
func settleSome(st *state, t *tableState, id HomeID, entries []indexEntry, b *pebble.Batch) error {
	h := t.home(id)
	set := h.dead.at(st.seq)
	defer h.dead.release(set)
	var dead uniquekey.Bitset
	if set != nil {
		dead = set.bits
	}
	w := indexWriter{batch: b, gen: t.rec.Generation, layers: t.idx.Layers}
	for _, e := range entries {
		if dead.Has(e.loc.Row) {
			continue
		}
		if err := w.put(e.key, e.loc); err != nil {
			return err
		}
	}
	return nil
}

func (t *tableState) home(id HomeID) *home {
	for _, p := range t.parts {
		if p.id == id {
			return &p.home
		}
	}
	for _, s := range t.segments {
		if s.id == id {
			return &s.home
		}
	}
	return nil
}

func (s *Store) dropRemap(ctx context.Context, id TableID, home HomeID, layer LayerID) error {
	_, err := s.commit(ctx, func(c *commitment) error {
		t := c.ed.table(id)
		if t == nil || t.home(home) == nil {
			return nil
		}
		t.idx.Remaps = slices.DeleteFunc(t.idx.Remaps, func(r remap) bool { return r.New == home })
		return firstError(c.putIndex(t), c.deletePrefix(layerKey(nil, layer, nil)))
	})
	return err
}

// drain moves the oldest layer of a table into the base, piece by piece, and drops it.
func (s *Store) drain(ctx context.Context, id TableID, layer LayerID) error {
	from := layerKey(nil, layer, nil)
	end := prefixEnd(from)
	for from != nil {
		err := s.exclusive(ctx, func(st *state, b *pebble.Batch) (err error) {
			t := st.tables[id]
			if t == nil || !slices.Contains(t.idx.Layers, layer) {
				from = nil
				return nil
			}
			from, err = s.drainSome(t.rec.Generation, from, end, b)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.dropOldestLayer(ctx, id, layer)
}

// drainSome moves entries from a layer key on, and gives the key to go on from, nil at the end.
func (s *Store) drainSome(gen Generation, from, end []byte, b *pebble.Batch) (next []byte, err error) {
	it, err := s.meta.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: end})
	if err != nil {
		return nil, err
	}
	var key []byte
	n := 0
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if n++; n > s.opt.settleRows {
			next = bytes.Clone(it.Key())
			break
		}
		key = baseKey(key[:0], gen, it.Key()[indexPrefixLen:])
		if v := it.Value(); len(v) > 0 {
			err = b.Set(key, v, nil)
		} else {
			err = b.Delete(key, nil)
		}
	}
	err = firstError(err, firstError(it.Error(), it.Close()))
	if next != nil {
		end = next
	}
	return next, firstError(err, b.DeleteRange(from, end, nil))
}

func (s *Store) dropOldestLayer(ctx context.Context, id TableID, layer LayerID) error {
	_, err := s.commit(ctx, func(c *commitment) error {
		t := c.ed.table(id)
		if t == nil || !slices.Contains(t.idx.Layers, layer) {
			return nil
		}
		t.idx.Layers = slices.DeleteFunc(t.idx.Layers, func(l LayerID) bool { return l == layer })
		return firstError(c.putIndex(t), c.deletePrefix(layerKey(nil, layer, nil)))
	})
	return err
}
