package storage

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// rowChanges is what a transaction did to the rows of one table.
type rowChanges struct {
	parts    []*partState
	segments []*newSegment
	// dead has the rows that died, by home; the homes may be new ones of this transaction.
	dead map[HomeID][]uint32
	// staged has the index entries in memory, overlay the same by key once a second Apply needs to look them up.
	staged   []staged
	overlaid int // entries of staged that overlay has
	overlay  map[string]found
	numbered *numberedOverlay // instead of overlay in a table without a key
	keys     int
	rows     int
	// layer, when not zero, has all index entries instead: they were too many for memory.
	layer LayerID
}

type newSegment struct {
	segmentState
	encoded []byte
}

// staged are index entries of consecutive rows of one home, or of keys that are gone.
type staged struct {
	keys *column.Keys
	home HomeID  // 0: the keys are gone
	only []int32 // of the keys, those that are meant; nil: all
}

func (s *staged) each(fn func(key []byte, loc found) error) error {
	if s.only == nil {
		for i := range s.keys.Len() {
			if err := fn(s.keys.At(i), s.locate(i)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, i := range s.only {
		if err := fn(s.keys.At(int(i)), s.locate(int(i))); err != nil {
			return err
		}
	}
	return nil
}

func (s *staged) locate(row int) found {
	if s.home == 0 {
		return found{}
	}
	return found{Home: uint64(s.home), Row: uint32(row)}
}

func (s *staged) len() int {
	if s.only == nil {
		return s.keys.Len()
	}
	return len(s.only)
}

func (r *rowChanges) kill(loc found) {
	if r.dead == nil {
		r.dead = map[HomeID][]uint32{}
	}
	r.dead[HomeID(loc.Home)] = append(r.dead[HomeID(loc.Home)], loc.Row)
}

func (r *rowChanges) stage(s staged) {
	if s.len() == 0 {
		return
	}
	r.staged = append(r.staged, s)
	r.keys += s.len()
}

// lookupStaged corrects what the committed index says by the entries of this transaction.
func (r *rowChanges) lookupStaged(keys *column.Keys, out []found) {
	if len(r.staged) == 0 {
		return
	}
	if r.overlay == nil {
		r.overlay = make(map[string]found, r.keys)
	}
	for ; r.overlaid < len(r.staged); r.overlaid++ {
		_ = r.staged[r.overlaid].each(func(key []byte, loc found) error {
			r.overlay[string(key)] = loc
			return nil
		})
	}
	for i := range out {
		if loc, ok := r.overlay[string(keys.At(i))]; ok {
			out[i] = loc
		}
	}
}

// spill writes the staged entries to the pending layer, which no reader sees before the commit names it.
func (r *rowChanges) spill(s *Store) error {
	if r.layer == 0 {
		id, err := s.nextID()
		if err != nil {
			return err
		}
		r.layer = LayerID(id)
	}
	b := s.meta.NewBatch()
	var key, value []byte
	for i := range r.staged {
		err := r.staged[i].each(func(k []byte, loc found) error {
			key, value = layerKey(key[:0], r.layer, k), value[:0]
			if loc.Home != 0 {
				value = uniquekey.AppendLocator(value, loc)
			}
			if err := b.Set(key, value, nil); err != nil || b.Len() < s.opt.spillBytes {
				return err
			}
			full := b
			b = s.meta.NewBatch()
			return s.meta.commit(full, false)
		})
		if err != nil {
			return err
		}
	}
	r.staged, r.overlay, r.numbered, r.overlaid = nil, nil, nil, 0
	return s.meta.commit(b, false)
}

// fill puts the changes into a commitment.
func (r *rowChanges) fill(c *commitment, t *tableState) error {
	for _, p := range r.parts {
		if err := c.addPart(t, p); err != nil {
			return err
		}
	}
	for _, s := range r.segments {
		if err := c.addSegment(t, s); err != nil {
			return err
		}
	}
	if err := c.projectSegments(t); err != nil {
		return err
	}
	for id, rows := range r.dead {
		if err := c.kill(t, id, slices.Clone(rows)); err != nil {
			return err
		}
	}
	if r.layer != 0 {
		t.idx.Layers = append(t.idx.Layers, r.layer)
		return c.putIndex(t)
	}
	return r.fillIndex(c.batch, t)
}

// projectSegments brings the segments to the table's current definition.
func (c *commitment) projectSegments(t *tableState) error {
	for i, s := range t.segments {
		if s.batch.Table.Version == t.rec.Def.Version {
			continue
		}
		batch, err := s.batch.Project(t.rec.Def)
		if err != nil {
			return fmt.Errorf("table %s: %w", t.rec.Def.FullName(), err)
		}
		c.ed.home(t, s.id) // makes the segment one that may be changed
		t.segments[i].batch = batch
	}
	return nil
}

func (r *rowChanges) fillIndex(b *pebble.Batch, t *tableState) error {
	w := indexWriter{batch: b, gen: t.rec.Generation, layers: t.idx.Layers}
	for i := range r.staged {
		if err := r.staged[i].each(w.put); err != nil {
			return err
		}
	}
	return nil
}

// indexWriter writes newest entries into the base and takes the keys out of the layers above it.
type indexWriter struct {
	batch      *pebble.Batch
	gen        Generation
	layers     []LayerID
	key, value []byte
}

func (w *indexWriter) put(k []byte, loc found) error {
	for _, l := range w.layers {
		w.key = layerKey(w.key[:0], l, k)
		if err := w.batch.Delete(w.key, nil); err != nil {
			return err
		}
	}
	w.key = baseKey(w.key[:0], w.gen, k)
	if loc.Home == 0 {
		return w.batch.Delete(w.key, nil)
	}
	w.value = uniquekey.AppendLocator(w.value[:0], loc)
	return w.batch.Set(w.key, w.value, nil)
}
