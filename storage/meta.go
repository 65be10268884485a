package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// metaFormat is the Pebble format that a new store gets. It is fixed, so that an upgrade of the library alone never
// makes a directory unreadable for the version before.
const metaFormat = pebble.FormatValueSeparation

// meta is the Pebble database with its write errors turned into one sticky, typed error.
//
// Pebble ends the process when its log or manifest can't be written (Logger.Fatalf). Here such an error ends only the
// goroutine that met it, marks the database as failed and keeps it from being written again: the process goes on to serve
// reads and to say why it has stopped.
type meta struct {
	*pebble.DB
	fs      vfs.FS
	options *pebble.Options
	cache   *pebble.Cache
	watch   *fatalWatch
}

// fatalWatch is Pebble's logger.
type fatalWatch struct {
	log  *slog.Logger
	mu   sync.Mutex
	err  error
	dead chan struct{}
}

func (w *fatalWatch) Infof(string, ...any) {}

func (w *fatalWatch) Errorf(format string, args ...any) {
	w.log.Error("metadata store", "error", fmt.Sprintf(format, args...))
}

// Fatalf does not return: what follows it in Pebble relies on that.
func (w *fatalWatch) Fatalf(format string, args ...any) {
	cause := fmt.Errorf(format, args...)
	for _, a := range args {
		if err, ok := a.(error); ok {
			cause = err
		}
	}
	w.fail(cause)
	runtime.Goexit()
}

func (w *fatalWatch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = &FailedError{Cause: err}
		w.log.Error("the store has stopped", "error", err)
		close(w.dead)
	}
}

// failed gives the error that stopped the database, nil while it works.
func (w *fatalWatch) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// guard runs a write on a goroutine of its own, which Fatalf may end, and gives up on it once the database has failed: a
// write that waits for a background goroutine that is gone would wait for ever.
func (w *fatalWatch) guard(write func() error) error {
	if err := w.failed(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		finished := false
		defer func() {
			if p := recover(); p != nil {
				w.fail(fmt.Errorf("%v", p))
			}
			if !finished {
				done <- w.failed()
			}
		}()
		err := write()
		finished = true
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-w.dead:
	}
	select {
	case err := <-done:
		return err
	default:
		return w.failed()
	}
}

func openMeta(dir string, opt *Options) (*meta, error) {
	watch := &fatalWatch{log: opt.Logger, dead: make(chan struct{})}
	m := &meta{fs: opt.FS, watch: watch, cache: pebble.NewCache(opt.CacheBytes)}
	m.options = &pebble.Options{
		FS:                          opt.FS,
		Cache:                       m.cache,
		Logger:                      watch,
		EventListener:               m.listener(opt.Logger),
		FormatMajorVersion:          metaFormat,
		MemTableSize:                uint64(opt.MemTableBytes),
		MemTableStopWritesThreshold: 3,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                500,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(1, runtime.GOMAXPROCS(0)/2) },
	}
	for i := range m.options.Levels {
		m.options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		m.options.Levels[i].BlockSize = 4 << 10
	}
	m.options.EnsureDefaults()
	err := watch.guard(func() (err error) {
		m.DB, err = pebble.Open(dir, m.options)
		return err
	})
	if err != nil {
		m.cache.Unref()
		return nil, fmt.Errorf("opening the metadata store %s: %w", dir, diskError(err))
	}
	return m, nil
}

func (m *meta) listener(log *slog.Logger) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			log.Warn("metadata store: background work failed and will be tried again", "error", err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			log.Error("metadata store: damaged file", "path", info.Path, "error", info.Details)
		},
	}
}

// commit writes a batch and closes it. With sync it is durable when commit returns nil.
func (m *meta) commit(b *pebble.Batch, sync bool) error {
	opt := pebble.NoSync
	if sync {
		opt = pebble.Sync
	}
	if err := m.watch.guard(func() error { return b.Commit(opt) }); err != nil {
		return diskError(err) // Pebble may still hold the batch
	}
	return b.Close()
}

// ingest makes sorted tables part of the database, durably. Their keys must not be there yet.
func (m *meta) ingest(ctx context.Context, paths []string) error {
	return m.watch.guard(func() error { return m.DB.Ingest(ctx, paths) })
}

// close closes the database. One that has failed is left as it is: its goroutines may be gone and closing would hang.
func (m *meta) close() error {
	if m.watch.failed() != nil {
		return nil //nolint:nilerr // whoever wrote has got the error
	}
	err := m.watch.guard(m.DB.Close)
	m.cache.Unref()
	return err
}

// sortedFile writes index entries, in ascending order, to a file that can be ingested.
type sortedFile struct {
	path        string
	fs          vfs.FS
	w           *sstable.Writer
	entries     int
	first, last []byte
}

func (m *meta) newSortedFile(path string) (*sortedFile, error) {
	f, err := m.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("creating sorted index file: %w", diskError(err))
	}
	opt := m.options.MakeWriterOptions(6, m.DB.TableFormat())
	return &sortedFile{path: path, fs: m.fs, w: sstable.NewWriter(objstorageprovider.NewFileWritable(f), opt)}, nil
}

func (f *sortedFile) add(key, value []byte) error {
	if f.entries == 0 {
		f.first = append(f.first, key...)
	}
	f.last = append(f.last[:0], key...)
	f.entries++
	return f.w.Set(key, value)
}

// finish closes the file, synced.
func (f *sortedFile) finish() error {
	if err := f.w.Close(); err != nil {
		return errors.Join(fmt.Errorf("writing sorted index file %s: %w", f.path, diskError(err)), f.remove())
	}
	return nil
}

func (f *sortedFile) abort() error {
	return errors.Join(f.w.Close(), f.remove())
}

func (f *sortedFile) remove() error {
	if err := f.fs.Remove(f.path); err != nil && !isNotExist(err) {
		return err
	}
	return nil
}
