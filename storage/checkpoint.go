package storage

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/uniquekey"
)

// loadState is the durable part of a bulk load: its checkpoints in the order in which they were committed. It is
// immutable.
type loadState struct {
	gen         Generation
	checkpoints []checkpointRecord
}

// with gives the load with one more checkpoint; it may be nil before.
func (l *loadState) with(gen Generation, rec checkpointRecord) *loadState {
	if l == nil {
		return &loadState{gen: gen, checkpoints: []checkpointRecord{rec}}
	}
	return &loadState{gen: gen, checkpoints: append(slices.Clip(l.checkpoints), rec)}
}

// each calls fn for all pieces of the load; there are none without a load.
func (l *loadState) each(fn func(*pieceRecord) error) error {
	if l == nil {
		return nil
	}
	for i := range l.checkpoints {
		for j := range l.checkpoints[i].Pieces {
			if err := fn(&l.checkpoints[i].Pieces[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ResumeLoad gives the durable load of a table, with the notes of its checkpoints in the order in which they were
// committed. ErrNotFound tells that there is none, ErrLoadOpen that it is in use; a DamageError that one of its files is
// missing or cut: then the table's copy starts anew with NewLoad.
func (s *Store) ResumeLoad(id TableID) (*Load, [][]byte, error) {
	t := s.head.Load().tables[id]
	if t == nil {
		return nil, nil, fmt.Errorf("table %d: %w", id, ErrNotFound)
	}
	if t.load == nil {
		return nil, nil, fmt.Errorf("table %s has no durable bulk load: %w", t.rec.Def.FullName(), ErrNotFound)
	}
	l, err := s.openLoad(t, t.load.gen)
	if err != nil {
		return nil, nil, err
	}
	l.durable = true
	for _, c := range t.load.checkpoints {
		l.notes = append(l.notes, c.Note)
	}
	err = t.load.each(func(rec *pieceRecord) error {
		l.pieces = append(l.pieces, s.pieceOf(l.gen, rec))
		return s.checkPiece(rec)
	})
	if err != nil {
		return nil, nil, firstError(fmt.Errorf("table %s can't go on with its copy: %w", t.rec.Def.FullName(), err), l.Close())
	}
	return l, l.Notes(), nil
}

// pieceOf gives a piece by its record.
func (s *Store) pieceOf(gen Generation, rec *pieceRecord) *piece {
	h := home{id: rec.Part, dead: &deadRows{rows: int(rec.Info.Rows)}}
	return &piece{
		part: &partState{home: h, rec: partRecord{Path: rec.Path, Info: rec.Info}},
		index: &sortedFile{
			path: s.path(rec.IndexPath), fs: s.fs, entries: int(rec.Info.Rows),
			first: baseKey(nil, gen, rec.Info.MinKey), last: baseKey(nil, gen, rec.Info.MaxKey),
		},
		indexID: rec.Index, indexPath: rec.IndexPath, durable: true,
	}
}

// checkPiece checks that the files of a piece are there, whole.
func (s *Store) checkPiece(rec *pieceRecord) error {
	return firstError(s.checkFile(rec.Path, rec.Info.Bytes), s.checkFile(rec.IndexPath, rec.IndexBytes))
}

// record gives the durable form of a piece.
func (s *Store) record(p *piece) (pieceRecord, error) {
	info, err := s.fs.Stat(p.index.path)
	if err != nil {
		return pieceRecord{}, err
	}
	return pieceRecord{
		Part: p.part.id, Path: p.part.rec.Path, Info: p.part.rec.Info,
		Index: p.indexID, IndexPath: p.indexPath, IndexBytes: info.Size(),
	}, nil
}

// checkpoint commits pieces, whose files are durable, and a note.
func (l *Load) checkpoint(ctx context.Context, pieces []*piece, note []byte) error {
	rec := checkpointRecord{KeyEncoding: uniquekey.Encoding, Note: slices.Clone(note)}
	for _, p := range pieces {
		r, err := l.s.record(p)
		if err != nil {
			return err
		}
		rec.Pieces = append(rec.Pieces, r)
	}
	// The lock keeps the order of the notes, and Abort and Close away.
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.finished {
		return fmt.Errorf("table %s: %w", l.def.FullName(), errLoadEnded)
	}
	_, err := l.s.commit(ctx, func(c *commitment) error { return l.fillCheckpoint(c, rec) })
	if err != nil {
		return fmt.Errorf("table %s: checkpoint of its copy: %w", l.def.FullName(), err)
	}
	l.durable = true
	l.notes = append(l.notes, rec.Note)
	for _, p := range pieces {
		p.durable = true
	}
	return nil
}

func (l *Load) fillCheckpoint(c *commitment, rec checkpointRecord) error {
	t := c.ed.table(l.table)
	switch {
	case t == nil || t.rec.Def.Version != l.def.Version:
		return ErrNotFound
	case l.durable && (t.load == nil || t.load.gen != l.gen):
		return ErrNotFound
	case !l.durable:
		if err := c.dropLoad(t); err != nil {
			return err
		}
	}
	t.load = t.load.with(l.gen, rec)
	return c.putJSON(makeKey(kindLoad, uint64(t.id), uint64(l.gen), uint64(c.ed.next.seq)), rec)
}

// forget takes the load out of the catalog, if it is there; its files become garbage.
func (l *Load) forget() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || !l.durable {
		return nil
	}
	_, err := l.s.commit(context.Background(), func(c *commitment) error {
		if t := c.ed.table(l.table); t != nil && t.load != nil && t.load.gen == l.gen {
			return c.dropLoad(t)
		}
		return nil
	})
	l.s.work.kickJanitor()
	return err
}

// forgetLoad takes the records of a table's durable load away.
func (c *commitment) forgetLoad(t *tableState) error {
	gen := t.load.gen
	t.load = nil
	return c.deletePrefix(makeKey(kindLoad, uint64(t.id), uint64(gen)))
}

// dropLoad takes a table's durable load away, if there is one; its files become garbage.
func (c *commitment) dropLoad(t *tableState) error {
	if t.load == nil {
		return nil
	}
	err := t.load.each(func(p *pieceRecord) error {
		return firstError(c.discard(p.Part, p.Path), c.discard(HomeID(p.Index), p.IndexPath))
	})
	return firstError(err, c.forgetLoad(t))
}
