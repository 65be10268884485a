package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/column"
)

// flushLoad says how far the segments of a table are towards the bounds at which they are flushed; 1 is there.
func (s *Store) flushLoad(t *tableState) float64 {
	var rows, bytes int64
	for _, g := range t.segments {
		rows += int64(g.batch.Rows())
		bytes += g.bytes
	}
	o := &s.opt
	return max(float64(len(t.segments))/float64(o.FlushSegments), float64(rows)/float64(o.FlushRows), float64(bytes)/float64(o.FlushBytes))
}

func (s *Store) flushIfDue(ctx context.Context, id TableID) error {
	if t := s.head.Load().tables[id]; t == nil || s.flushLoad(t) < 1 {
		return nil
	}
	if !s.free(id) {
		return errTableBusy
	}
	return s.flushTable(ctx, id, false)
}

// largestSegments gives the table with the most memory in segments, of those that are not busy, when all tables together
// have too much, else 0.
func (s *Store) largestSegments(busy map[TableID]bool) TableID {
	st := s.head.Load()
	if st.segmentBytes <= s.opt.SegmentMemory {
		return 0
	}
	var largest TableID
	var most int64
	for id, t := range st.tables {
		if busy[id] {
			continue
		}
		var bytes int64
		for _, g := range t.segments {
			bytes += g.bytes
		}
		if bytes > most {
			largest, most = id, bytes
		}
	}
	return largest
}

// flushTable turns the segments of a table into one part, or, unless a part is asked for, into one segment when they hold
// little.
func (s *Store) flushTable(ctx context.Context, id TableID, asPart bool) error {
	base := s.pinHead()
	defer s.unpin(base.seq)
	t := base.tables[id]
	if t == nil || len(t.segments) == 0 {
		return nil
	}
	homes := make([]*home, len(t.segments))
	batches := make([]*column.Batch, len(t.segments))
	for i, g := range t.segments {
		homes[i], batches[i] = &g.home, g.batch
	}
	r := s.newRelocation(base, t, homes)
	r.patience = flushCommitsWithin
	s.writers.Add(1)
	defer s.writers.Add(-1)
	rows, err := r.gather(batches)
	if err == nil {
		err = r.writeFlush(ctx, rows, asPart)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("flushing table %s: %w", t.rec.Def.FullName(), err), r.abandon())
	}
	if err := r.commit(ctx); err != nil {
		return fmt.Errorf("flushing table %s: %w", t.rec.Def.FullName(), err)
	}
	return nil
}

// gather joins the live rows of the segments in key order, and notes where each goes. nil: there is none.
func (r *relocation) gather(batches []*column.Batch) (*column.Batch, error) {
	all, err := column.Concat(batches)
	if err != nil {
		return nil, err
	}
	var alive column.Keys
	var at []int // row of all, by row of alive
	var origin []found
	start := 0
	for i, h := range r.from {
		set := h.dead.at(r.base.seq)
		for row := range batches[i].Rows() {
			if set != nil && set.bits.Has(uint32(row)) {
				continue
			}
			alive.Append(all.Keys.At(start + row))
			at = append(at, start+row)
			origin = append(origin, found{Home: uint64(h.id), Row: uint32(row)})
		}
		h.dead.release(set)
		start += batches[i].Rows()
	}
	order, unique := keyOrder(&alive)
	if !unique {
		return nil, damaged(r.table.rec.Def.FullName(), "two live rows have one key")
	}
	if len(order) == 0 {
		return nil, nil
	}
	take := make([]int, len(order))
	for row, o := range order {
		take[row] = at[o]
		r.newRow[HomeID(origin[o].Home)][origin[o].Row] = uint32(row)
	}
	return all.Take(take), nil
}

// writeFlush writes the rows as the new home.
func (r *relocation) writeFlush(ctx context.Context, rows *column.Batch, asPart bool) error {
	if rows == nil {
		return nil
	}
	id, err := r.s.nextID()
	if err != nil {
		return err
	}
	h := home{id: HomeID(id), dead: &deadRows{rows: rows.Rows()}}
	if !asPart && rows.Rows() < r.s.opt.PartMinRows && batchBytes(rows) < r.s.opt.SegmentBytes {
		r.segment = &newSegment{segmentState: newSegmentState(h, rows)}
		r.segment.encoded, err = encodeSegment(rows)
		return err
	}
	path, err := r.newPart(h)
	if err != nil {
		return err
	}
	if r.part.rec.Info, err = r.s.writePart(path, r.table.rec.Def, rows); err != nil {
		return err
	}
	if err := syncDir(r.s.fs, r.s.fs.PathDir(r.s.path(path))); err != nil {
		return diskError(err)
	}
	if err := r.openLayer(); err != nil {
		return err
	}
	for row := range rows.Keys.Len() {
		if err := r.place(rows.Keys.At(row), h.id, uint32(row)); err != nil {
			return errors.Join(err, r.file.abort())
		}
	}
	return r.closeLayer(ctx)
}

// newPart starts the record of the new home as a part.
func (r *relocation) newPart(h home) (path string, err error) {
	if err := r.s.checkSpace(); err != nil {
		return "", err
	}
	d := r.base.database(r.table.rec.Database)
	path, err = r.s.newPartPath(d.id, d.rec.Name, r.table.id, r.table.rec.Def.Name, h.id)
	if err == nil {
		r.part = &partState{home: h, rec: partRecord{Path: path}}
	}
	return path, err
}
