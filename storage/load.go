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

	"github.com/tidemarkdb/tidemark/schema"
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
func (l *Load) Abort() error { return errors.Join(l.forget(), l.Close()) }

// Close lets the load go: what is durable stays for [Store.ResumeLoad], the rest is removed. It does nothing to a load
// that was made current or aborted.
func (l *Load) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	err := l.s.removePieces(slices.DeleteFunc(slices.Clone(l.pieces), func(p *piece) bool { return p.durable }))
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
