package storage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Load is a bulk load: a new generation of a table's rows, written by any number of writers at once, which nobody reads
// until [Txn.SwapLoad] makes it current. A load that is not made current is gone after a restart.
type Load struct {
	s      *Store
	db     DatabaseID
	dbName string
	table  TableID
	def    *schema.Table
	gen    Generation

	mu       sync.Mutex
	parts    []*partState
	files    []*sortedFile // index entries, one file a part
	finished bool
	ended    bool // aborted or made current
}

// NewLoad starts a bulk load of a table, of the version of its definition that is current now.
func (s *Store) NewLoad(id TableID) (*Load, error) {
	st := s.head.Load()
	t := st.tables[id]
	if t == nil {
		return nil, fmt.Errorf("table %d: %w", id, ErrNotFound)
	}
	gen, err := s.nextID()
	if err != nil {
		return nil, err
	}
	d := st.database(t.rec.Database)
	s.writers.Add(1)
	return &Load{s: s, db: d.id, dbName: d.rec.Name, table: id, def: t.rec.Def, gen: Generation(gen)}, nil
}

// Def is the definition that the rows must follow.
func (l *Load) Def() *schema.Table { return l.def }

// LoadWriter takes rows for a load. It is used by one goroutine and ends with Close.
type LoadWriter struct {
	l       *Load
	batches []*column.Batch
	rows    int
	bytes   int64
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
	w.batches = append(w.batches, b)
	w.rows += b.Rows()
	w.bytes += batchBytes(b)
	if w.rows >= w.l.s.opt.LoadRows || w.bytes >= w.l.s.opt.LoadBytes {
		return w.flush(ctx)
	}
	return nil
}

// Close writes what is left.
func (w *LoadWriter) Close(ctx context.Context) error { return w.flush(ctx) }

func (w *LoadWriter) flush(ctx context.Context) error {
	if len(w.batches) == 0 {
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	batches, err := sortBatches(w.batches)
	w.batches, w.rows, w.bytes = nil, 0, 0
	if err != nil {
		return err
	}
	return w.l.write(ctx, batches)
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

// write writes a part and its index entries.
func (l *Load) write(ctx context.Context, batches []*column.Batch) error {
	if err := l.s.checkSpace(); err != nil {
		return err
	}
	id, err := l.s.nextID()
	if err != nil {
		return err
	}
	path, err := l.s.newPartPath(l.db, l.dbName, l.table, l.def.Name, HomeID(id))
	if err != nil {
		return err
	}
	var cut []*column.Batch
	for _, b := range batches {
		cut = append(cut, pieces(b)...)
	}
	info, err := part.Write(ctx, l.s.path(path), l.def, cut, part.WriteOptions{FS: l.s.fs})
	if err != nil {
		return diskError(err)
	}
	p := &partState{home: home{id: HomeID(id), dead: &deadRows{rows: int(info.Rows)}}, rec: partRecord{Path: path, Info: info}}
	l.mu.Lock()
	l.parts = append(l.parts, p)
	l.mu.Unlock()
	file, err := l.writeIndex(batches, p.id)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.files = append(l.files, file)
	l.mu.Unlock()
	return nil
}

func (l *Load) writeIndex(batches []*column.Batch, id HomeID) (*sortedFile, error) {
	file, err := l.s.meta.newSortedFile(l.s.path(l.s.fs.PathJoin(loadName, fmt.Sprintf("%d.sst", id))))
	if err != nil {
		return nil, err
	}
	var key, value, last []byte
	row := uint32(0)
	for _, b := range batches {
		for i := range b.Keys.Len() {
			k := b.Keys.At(i)
			if row > 0 && bytes.Equal(last, k) {
				return nil, errors.Join(&DuplicateKeyError{Table: l.def.FullName(), Key: bytes.Clone(k)}, file.abort())
			}
			last = k
			key = baseKey(key[:0], l.gen, k)
			value = uniquekey.AppendLocator(value[:0], found{Home: uint64(id), Row: row})
			if err := file.add(key, value); err != nil {
				return nil, errors.Join(diskError(err), file.abort())
			}
			row++
		}
	}
	return file, file.finish()
}

// Rows is the number of rows written so far.
func (l *Load) Rows() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, p := range l.parts {
		n += p.rec.Info.Rows
	}
	return n
}

// Finish makes the load ready for SwapLoad, once all writers are closed. A DuplicateKeyError tells that two rows have one
// key. On an error the load must be aborted.
func (l *Load) Finish(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.syncParts(); err != nil {
		return err
	}
	if err := l.untangle(ctx); err != nil {
		return err
	}
	var paths []string
	for _, f := range l.files {
		paths = append(paths, f.path)
	}
	if len(paths) > 0 {
		if err := l.s.meta.ingest(ctx, paths); err != nil {
			return fmt.Errorf("table %s: adding index entries: %w", l.def.FullName(), diskError(err))
		}
	}
	err := l.removeFiles()
	l.finished = err == nil
	return err
}

func (l *Load) syncParts() error {
	if len(l.parts) == 0 {
		return nil
	}
	dir := l.s.fs.PathDir(l.s.path(l.parts[0].rec.Path))
	return diskError(syncDir(l.s.fs, dir))
}

func (l *Load) removeFiles() error {
	var err error
	for _, f := range l.files {
		err = firstError(err, f.remove())
	}
	l.files = nil
	return err
}

// untangle joins index files whose key ranges overlap, so that no two do. Readers that copy ranges of the key give
// files that don't.
func (l *Load) untangle(ctx context.Context) error {
	slices.SortFunc(l.files, func(a, b *sortedFile) int { return bytes.Compare(a.first, b.first) })
	var apart []*sortedFile
	for from := 0; from < len(l.files); {
		to, last := from+1, l.files[from].last
		for to < len(l.files) && bytes.Compare(l.files[to].first, last) <= 0 {
			if bytes.Compare(l.files[to].last, last) > 0 {
				last = l.files[to].last
			}
			to++
		}
		if to == from+1 {
			apart = append(apart, l.files[from])
		} else {
			joined, err := l.join(ctx, l.files[from:to])
			if err != nil {
				return err
			}
			apart = append(apart, joined)
		}
		from = to
	}
	l.files = apart
	return nil
}

// join merges sorted files into one and removes them.
func (l *Load) join(ctx context.Context, files []*sortedFile) (*sortedFile, error) {
	id, err := l.s.nextID()
	if err != nil {
		return nil, err
	}
	out, err := l.s.meta.newSortedFile(l.s.path(l.s.fs.PathJoin(loadName, fmt.Sprintf("%d.sst", id))))
	if err != nil {
		return nil, err
	}
	if err := l.joinInto(ctx, out, files); err != nil {
		return nil, errors.Join(diskError(err), out.abort())
	}
	if err := out.finish(); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := f.remove(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *Load) joinInto(ctx context.Context, out *sortedFile, files []*sortedFile) (err error) {
	var readers [][]sstable.ReadableFile
	total := 0
	for _, f := range files {
		r, err := l.s.fs.Open(f.path)
		if err != nil {
			for _, opened := range readers {
				_ = opened[0].Close()
			}
			return err
		}
		readers = append(readers, []sstable.ReadableFile{r})
		total += f.entries
	}
	it, err := pebble.NewExternalIterWithContext(ctx, l.s.meta.options, &pebble.IterOptions{}, readers)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := out.add(it.Key(), it.Value()); err != nil {
			return firstError(err, it.Close())
		}
	}
	if err := firstError(it.Error(), it.Close()); err != nil {
		return err
	}
	if out.entries != total {
		return &DuplicateKeyError{Table: l.def.FullName()}
	}
	return nil
}

// Abort removes everything that was written. It does nothing to a load that was made current.
func (l *Load) Abort() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	l.s.writers.Add(-1)
	err := l.removeFiles()
	for _, p := range l.parts {
		err = firstError(err, l.s.removeFile(l.s.path(p.rec.Path)))
	}
	l.parts = nil
	if !l.finished {
		return err
	}
	l.finished = false
	b := l.s.meta.NewBatch()
	prefix := baseKey(nil, l.gen, nil)
	err = firstError(err, b.DeleteRange(prefix, prefixEnd(prefix), nil))
	return firstError(err, l.s.meta.commit(b, false))
}

func (l *Load) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.s.writers.Add(-1)
	}
}

// fill puts the load's parts into a commitment.
func (l *Load) fill(c *commitment, t *tableState) error {
	parts := slices.Clone(l.parts)
	slices.SortFunc(parts, func(a, b *partState) int { return cmp.Compare(a.id, b.id) })
	for _, p := range parts {
		if err := c.addPart(t, p); err != nil {
			return err
		}
	}
	return nil
}
