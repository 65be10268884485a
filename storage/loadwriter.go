package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/storage/part"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// LoadWriter takes rows for a load. It is used by one goroutine and ends with Close or Abort.
type LoadWriter struct {
	l       *Load
	batches []*column.Batch
	rows    int
	bytes   int64
	pending []*piece // written since the last checkpoint
}

// NewWriter gives one more writer.
func (l *Load) NewWriter() *LoadWriter { return &LoadWriter{l: l} }

// Add takes rows with their keys, in any order; those in ascending order of their keys cost less. The rows must not be
// changed afterwards.
func (w *LoadWriter) Add(ctx context.Context, b *column.Batch) error {
	if b.Table.Version != w.l.def.Version || b.Keys.Len() != b.Rows() {
		return fmt.Errorf("table %s: rows of version %d with %d keys for %d rows don't fit the load of version %d",
			w.l.def.FullName(), b.Table.Version, b.Keys.Len(), b.Rows(), w.l.def.Version)
	}
	if b.Rows() == 0 {
		return nil
	}
	checkRows(b)
	if b.Table.Multiset() {
		var err error
		if b, err = w.l.s.number(b); err != nil {
			return fmt.Errorf("table %s: %w", b.Table.FullName(), err)
		}
	}
	w.batches = append(w.batches, b)
	w.rows += b.Rows()
	w.bytes += batchBytes(b)
	if w.rows >= w.l.s.opt.LoadRows || w.bytes >= w.l.s.opt.LoadBytes {
		return w.flush(ctx)
	}
	return nil
}

// Checkpoint makes what was added since the last one durable, together with a note, in one step: after a crash the load
// has all of it or nothing. Without rows the note alone becomes durable. On ErrDiskFull and on a cancelled ctx it may be
// called again. ErrNotFound tells that the load is gone; see [Load].
func (w *LoadWriter) Checkpoint(ctx context.Context, note []byte) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	if err := w.l.syncPieces(w.pending); err != nil {
		return err
	}
	if err := w.l.checkpoint(ctx, w.pending, note); err != nil {
		return err
	}
	w.pending = nil
	return nil
}

// Close writes what is left. It becomes durable with the load's swap.
func (w *LoadWriter) Close(ctx context.Context) error {
	err := w.flush(ctx)
	if err == nil {
		w.pending = nil
	}
	return err
}

// Abort removes what was added since the last checkpoint. The load goes on.
func (w *LoadWriter) Abort() error {
	w.batches, w.rows, w.bytes = nil, 0, 0
	pending := w.pending
	w.pending = nil
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.pieces = slices.DeleteFunc(w.l.pieces, func(p *piece) bool { return slices.Contains(pending, p) })
	return w.l.s.removePieces(pending)
}

func (w *LoadWriter) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil || len(w.batches) == 0 {
		return err
	}
	batches, err := sortBatches(w.batches)
	if err != nil {
		return err
	}
	p, err := w.l.write(ctx, batches)
	if err != nil {
		return err
	}
	w.batches, w.rows, w.bytes = nil, 0, 0
	w.pending = append(w.pending, p)
	return nil
}

// sortBatches gives the rows in key order, without copying when they are in order already.
func sortBatches(batches []*column.Batch) ([]*column.Batch, error) {
	var last []byte
	sorted := true
	for _, b := range batches {
		for i := 0; i < b.Keys.Len() && sorted; i++ {
			key := b.Keys.At(i)
			sorted = bytes.Compare(last, key) < 0
			last = key
		}
	}
	if sorted {
		return batches, nil
	}
	all, err := column.Concat(batches)
	if err != nil {
		return nil, err
	}
	return []*column.Batch{all.SortByKey()}, nil
}

// write writes a part and its index entries. Nothing is left of them after an error.
func (l *Load) write(ctx context.Context, batches []*column.Batch) (*piece, error) {
	if err := l.s.checkSpace(); err != nil {
		return nil, err
	}
	id, err := l.s.nextID()
	if err != nil {
		return nil, err
	}
	path, err := l.s.newPartPath(l.db, l.dbName, l.table, l.def.Name, HomeID(id))
	if err != nil {
		return nil, err
	}
	var cut []*column.Batch
	for _, b := range batches {
		cut = append(cut, pieces(b)...)
	}
	info, err := part.Write(ctx, l.s.path(path), l.def, cut, part.WriteOptions{FS: l.s.fs})
	if err != nil {
		return nil, diskError(err)
	}
	p := &piece{part: &partState{home: home{id: HomeID(id), dead: &deadRows{rows: int(info.Rows)}}, rec: partRecord{Path: path, Info: info}}}
	if err := l.writeIndex(p, batches); err != nil {
		return nil, errors.Join(err, l.s.removeFile(l.s.path(path)))
	}
	return p, l.add(p)
}

// add makes a piece part of the load.
func (l *Load) add(p *piece) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.finished {
		return errors.Join(fmt.Errorf("table %s: %w", l.def.FullName(), errLoadEnded), l.s.removePieces([]*piece{p}))
	}
	l.pieces = append(l.pieces, p)
	return nil
}

func (l *Load) writeIndex(p *piece, batches []*column.Batch) (err error) {
	if p.index, p.indexPath, p.indexID, err = l.newIndexFile(); err != nil {
		return err
	}
	var key, value, last []byte
	row := uint32(0)
	for _, b := range batches {
		for i := range b.Keys.Len() {
			k := b.Keys.At(i)
			if row > 0 && bytes.Equal(last, k) {
				return errors.Join(&DuplicateKeyError{Table: l.def.FullName(), Key: bytes.Clone(k)}, p.index.abort())
			}
			last = k
			key = baseKey(key[:0], l.gen, k)
			value = uniquekey.AppendLocator(value[:0], found{Home: uint64(p.part.id), Row: row})
			if err := p.index.add(key, value); err != nil {
				return errors.Join(diskError(err), p.index.abort())
			}
			row++
		}
	}
	return p.index.finish()
}

func (l *Load) newIndexFile() (f *sortedFile, path string, id uint64, err error) {
	if id, err = l.s.nextID(); err != nil {
		return nil, "", 0, err
	}
	path = l.s.fs.PathJoin(loadName, fmt.Sprintf("%d.sst", id))
	f, err = l.s.meta.newSortedFile(l.s.path(path))
	return f, path, id, err
}
