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
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Load is a bulk load: a new generation of a table's rows, written by any number of writers at once, which nobody reads
// until [Txn.SwapLoad] makes it current.
//
// What its writers have checkpointed is durable: after a restart, or after Close, [Store.ResumeLoad] gives the load back
// with that and nothing else. A table has at most one durable load: the first checkpoint of another takes its place, and
// it is gone when the table is dropped or altered, or another load is made current. A load without a checkpoint is gone
// after a restart.
type Load struct {
	s      *Store
	db     DatabaseID
	dbName string
	table  TableID
	def    *schema.Table
	gen    Generation

	mu       sync.Mutex
	pieces   []*piece
	notes    [][]byte
	finished bool
	ended    bool // closed, aborted or made current
	durable  bool // a checkpoint was committed
}

// piece is a part with its index entries in a sorted file.
type piece struct {
	part      *partState
	index     *sortedFile
	indexID   uint64
	indexPath string // relative to the data directory
	durable   bool
}

var errLoadEnded = errors.New("the bulk load was ended")

// NewLoad starts a bulk load of a table, of the version of its definition that is current now.
func (s *Store) NewLoad(id TableID) (*Load, error) {
	t := s.head.Load().tables[id]
	if t == nil {
		return nil, fmt.Errorf("table %d: %w", id, ErrNotFound)
	}
	gen, err := s.nextID()
	if err != nil {
		return nil, err
	}
	return s.openLoad(t, Generation(gen))
}

// openLoad gives the one handle on a load.
func (s *Store) openLoad(t *tableState, gen Generation) (*Load, error) {
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	if s.openLoads[gen] {
		return nil, fmt.Errorf("table %s: %w", t.rec.Def.FullName(), ErrLoadOpen)
	}
	s.openLoads[gen] = true
	s.writers.Add(1)
	d := s.head.Load().database(t.rec.Database)
	return &Load{s: s, db: t.rec.Database, dbName: d.rec.Name, table: t.id, def: t.rec.Def, gen: gen}, nil
}

// Def is the definition that the rows must follow.
func (l *Load) Def() *schema.Table { return l.def }

// Notes gives the notes of all checkpoints, in the order in which they were committed.
func (l *Load) Notes() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.notes)
}

// Rows is the number of rows written so far.
func (l *Load) Rows() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, p := range l.pieces {
		n += p.part.rec.Info.Rows
	}
	return n
}

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

// syncPieces makes the names of pieces durable.
func (l *Load) syncPieces(pieces []*piece) error {
	if len(pieces) == 0 {
		return nil
	}
	for _, dir := range []string{l.s.fs.PathDir(l.s.path(pieces[0].part.rec.Path)), l.s.path(loadName)} {
		if err := syncDir(l.s.fs, dir); err != nil {
			return fmt.Errorf("syncing %s: %w", dir, diskError(err))
		}
	}
	return nil
}

// removePieces removes files of pieces that no record names.
func (s *Store) removePieces(pieces []*piece) error {
	var err error
	for _, p := range pieces {
		err = firstError(err, s.removeFile(s.path(p.part.rec.Path)))
		err = firstError(err, s.removeFile(s.path(p.indexPath)))
	}
	return err
}

// Finish makes the load ready for SwapLoad, once all writers are closed. A DuplicateKeyError tells that two rows have one
// key. On an error the load must be aborted, or closed to keep what is durable.
func (l *Load) Finish(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return fmt.Errorf("table %s: %w", l.def.FullName(), errLoadEnded)
	}
	if l.finished {
		return nil
	}
	if err := l.syncPieces(l.pieces); err != nil {
		return err
	}
	files, err := l.untangle(ctx)
	if err != nil {
		return err
	}
	if err := l.ingest(ctx, files); err != nil {
		for _, f := range files {
			err = errors.Join(err, f.remove())
		}
		return fmt.Errorf("table %s: adding index entries: %w", l.def.FullName(), diskError(err))
	}
	l.finished = true
	return nil
}

// ingest makes sorted files part of the metadata store, which removes them.
func (l *Load) ingest(ctx context.Context, files []*sortedFile) error {
	if len(files) == 0 {
		return nil
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	return l.s.meta.ingest(ctx, paths)
}

// untangle gives files of the load's index entries of which no two overlap: those of its pieces under second names, since
// after a crash durable ones are needed again, or several of them joined. Readers that copy ranges of the key make pieces
// that don't overlap.
func (l *Load) untangle(ctx context.Context) (apart []*sortedFile, err error) {
	defer func() {
		if err != nil {
			for _, f := range apart {
				err = errors.Join(err, f.remove())
			}
		}
	}()
	files := make([]*sortedFile, len(l.pieces))
	for i, p := range l.pieces {
		files[i] = p.index
	}
	slices.SortFunc(files, func(a, b *sortedFile) int { return bytes.Compare(a.first, b.first) })
	for from := 0; from < len(files); {
		to, last := from+1, files[from].last
		for to < len(files) && bytes.Compare(files[to].first, last) <= 0 {
			if bytes.Compare(files[to].last, last) > 0 {
				last = files[to].last
			}
			to++
		}
		next, err := l.join(ctx, files[from:to])
		if err != nil {
			return apart, err
		}
		apart = append(apart, next)
		from = to
	}
	return apart, nil
}

// join makes one sorted file of several that overlap, or a second name of one that stands alone.
func (l *Load) join(ctx context.Context, files []*sortedFile) (*sortedFile, error) {
	if len(files) == 1 {
		path := files[0].path + ".link"
		if err := vfs.LinkOrCopy(l.s.fs, files[0].path, path); err != nil {
			return nil, diskError(err)
		}
		return &sortedFile{path: path, fs: l.s.fs}, nil
	}
	out, _, _, err := l.newIndexFile()
	if err != nil {
		return nil, err
	}
	if err := l.joinInto(ctx, out, files); err != nil {
		return nil, errors.Join(diskError(err), out.abort())
	}
	return out, out.finish()
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

// Abort removes everything that was written, what is durable as well. It does nothing to a load that was made current.
// After an error what is durable may still be there, as after Close.
func (l *Load) Abort() error {
	if err := l.forget(); err != nil {
		return errors.Join(err, l.Close())
	}
	return l.end(func(*piece) bool { return true })
}

// Close lets the load go: what is durable stays for [Store.ResumeLoad], the rest is removed. It does nothing to a load
// that was made current or aborted.
func (l *Load) Close() error {
	return l.end(func(p *piece) bool { return !p.durable })
}

// end removes pieces of a load that no record names, and its index entries.
func (l *Load) end(remove func(*piece) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	err := l.s.removePieces(slices.DeleteFunc(slices.Clone(l.pieces), func(p *piece) bool { return !remove(p) }))
	if l.finished {
		b := l.s.meta.NewBatch()
		prefix := baseKey(nil, l.gen, nil)
		err = firstError(err, b.DeleteRange(prefix, prefixEnd(prefix), nil))
		err = firstError(err, l.s.meta.commit(b, false))
	}
	l.pieces, l.finished = nil, false
	l.close()
	return err
}

// close lets the handle go. l.mu is held.
func (l *Load) close() {
	l.ended = true
	l.s.writers.Add(-1)
	l.s.lockMu.Lock()
	defer l.s.lockMu.Unlock()
	delete(l.s.openLoads, l.gen)
}

// swapped notes that the load was made current.
func (l *Load) swapped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.close()
	}
}

// fill puts the load's parts into a commitment; its index files are needed no longer. Nothing changes a finished load.
func (l *Load) fill(c *commitment, t *tableState) error {
	if l.durable && (t.load == nil || t.load.gen != l.gen) {
		return fmt.Errorf("table %s: the bulk load: %w", l.def.FullName(), ErrNotFound)
	}
	parts := slices.Clone(l.pieces)
	slices.SortFunc(parts, func(a, b *piece) int { return cmp.Compare(a.part.id, b.part.id) })
	for _, p := range parts {
		err := firstError(c.addPart(t, p.part), c.discard(HomeID(p.indexID), p.indexPath))
		if err != nil {
			return err
		}
	}
	if l.durable {
		return c.forgetLoad(t)
	}
	return c.dropLoad(t)
}
