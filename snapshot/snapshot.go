package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// ErrSchemaChanged says that the definition of a table changed between the cut and the end of the copy. What was copied
// is of no use; a new Run can succeed.
var ErrSchemaChanged = errors.New("a table's definition changed during the snapshot")

// Config says what to copy and how gently. Zero values mean the defaults.
type Config struct {
	Source wire.Config
	// Plan is compat's, with the database and the filter.
	Plan *compat.Plan
	// Readers is the number of parallel readers, each one connection; 1..16, default 4.
	Readers int
	// BatchRows and BatchBytes bound the batches given to the sink; defaults 65536 rows, 8 MiB. A reader holds one batch.
	BatchRows  int
	BatchBytes int
	// RangeRows and RangeBytes are about the size of one range of a table, and so of the time for which its metadata
	// lock is held; defaults 500000 rows, 64 MiB.
	RangeRows  int64
	RangeBytes int64
	// LockWait bounds the wait for the global lock, in whole seconds; default 3 s. While it waits, others queue behind it.
	LockWait time.Duration
	// LongStatement is the running time from which a statement of others keeps us from asking for the lock; default 1 s.
	LongStatement time.Duration
	// LockPatience bounds all tries to get the lock with no XA transaction prepared; default 5 min.
	LockPatience time.Duration
	// HoldLimit bounds the time for which the lock is held; default 5 s. Beyond it the lock is let go and Run fails.
	HoldLimit time.Duration
	// Logger hears what happens; nil discards it.
	Logger *slog.Logger
	// Waiting is called with what keeps the cut from being made, at each try, and with "" when it is made; may be nil.
	Waiting func(reason string)
	// Progress is called after each batch, one call at a time; may be nil.
	Progress func(Progress)
}

const (
	defaultReaders = 4
	maxReaders     = 16
)

func (c Config) withDefaults() Config {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	setLong := func(p *int64, v int64) {
		if *p <= 0 {
			*p = v
		}
	}
	setTime := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&c.Readers, defaultReaders)
	c.Readers = min(c.Readers, maxReaders)
	set(&c.BatchRows, 65536)
	set(&c.BatchBytes, 8<<20)
	setLong(&c.RangeRows, 500_000)
	setLong(&c.RangeBytes, 64<<20)
	setTime(&c.LockWait, 3*time.Second)
	setTime(&c.LongStatement, time.Second)
	setTime(&c.LockPatience, 5*time.Minute)
	setTime(&c.HoldLimit, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Waiting == nil {
		c.Waiting = func(string) {}
	}
	return c
}

// Cut is the point at which all tables are copied.
type Cut struct {
	// Point is what the source had executed, and the end of its binlog.
	Point gtid.Point
	// Server is the source's server_uuid.
	Server gtid.UUID
	// Tables are the definitions at the point, in the order of their names.
	Tables []*schema.Table
	// LockHeld is how long the source was locked.
	LockHeld time.Duration
}

// Result is a finished copy.
type Result struct {
	Cut
	// Rows and Bytes count what was read; bytes as they came over the network.
	Rows, Bytes int64
	Elapsed     time.Duration
}

// Sink takes the copy. Its owner drops what it took when Run fails.
type Sink interface {
	// Begin is called once, when the cut is made and before any row. An error ends the copy.
	Begin(Cut) error
	// Open gives a writer for rows of a table. Several goroutines call it at the same time, also for the same table.
	Open(t *schema.Table) (Writer, error)
}

// Writer takes rows of one table from one reader: one range of its key or several adjacent ones, in the order in which
// MySQL sorts the key.
type Writer interface {
	// Add takes rows. The batch belongs to the writer then.
	Add(*column.Batch) error
	// Close says that all rows of the writer were added.
	Close() error
	// Abort ends a writer whose reader failed.
	Abort()
}

// Run copies the plan's database. It does not try again: see ErrSchemaChanged and LockError.
func Run(ctx context.Context, cfg Config, sink Sink) (*Result, error) {
	cfg = cfg.withDefaults()
	if cfg.Plan.Lock != compat.LockGlobal {
		return nil, fmt.Errorf("snapshot: lock plan %q is not known", cfg.Plan.Lock)
	}
	begun := time.Now()
	s, err := openSessions(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer s.close()
	sizes, err := tableSizes(ctx, s.lock, cfg.Plan)
	if err != nil {
		return nil, err
	}
	cut, catalog, err := s.cut(ctx)
	if err != nil {
		return nil, err
	}
	if err := sink.Begin(*cut); err != nil {
		return nil, err
	}
	c := &copier{cfg: cfg, sink: sink, queue: newQueue(cut.Tables, sizes), progress: newProgress(cfg.Progress, sizes)}
	if err := c.copyAll(ctx, s.readers); err != nil {
		return nil, err
	}
	if err := s.unchanged(ctx, catalog); err != nil {
		return nil, err
	}
	rows, bytes := c.progress.total()
	result := &Result{Cut: *cut, Rows: rows, Bytes: bytes, Elapsed: time.Since(begun)}
	cfg.Logger.Info("snapshot is complete", "database", cfg.Plan.Database, "tables", len(cut.Tables), "rows", rows, "bytes", bytes,
		"seconds", result.Elapsed.Seconds(), "point", cut.Point.String())
	return result, nil
}

// sessions are the connections of a copy: one that locks and asks, and the readers.
type sessions struct {
	cfg     Config
	lock    *wire.Conn
	readers []*wire.Conn
	ids     map[string]string // compat.TableIDs at the cut
}

func openSessions(ctx context.Context, cfg Config) (*sessions, error) {
	lock, err := wire.Dial(ctx, cfg.Source)
	if err != nil {
		return nil, err
	}
	s := &sessions{cfg: cfg, lock: lock}
	for len(s.readers) < cfg.Readers {
		reader, err := wire.Dial(ctx, cfg.Source)
		var refused *wire.ConnectError
		if errors.As(err, &refused) && refused.Full && len(s.readers) > 0 { // SNAP-18
			cfg.Logger.Warn("the source has no more connections for the snapshot", "readers", len(s.readers), "wished", cfg.Readers)
			break
		}
		if err != nil {
			s.close()
			return nil, err
		}
		s.readers = append(s.readers, reader)
	}
	return s, nil
}

// close ends all sessions, and with them whatever they hold.
func (s *sessions) close() {
	_ = s.lock.Close()
	for _, r := range s.readers {
		_ = r.Close()
	}
}

// size is what the source estimates of a table.
type size struct{ rows, rowBytes int64 }

func tableSizes(ctx context.Context, c *wire.Conn, plan *compat.Plan) (map[string]size, error) {
	r, err := c.Query(ctx, "SELECT TABLE_NAME, TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+wire.Literal(plan.Database))
	if err != nil {
		return nil, fmt.Errorf("reading the sizes of the tables: %w", err)
	}
	sizes := make(map[string]size, r.Rows())
	for i := range r.Rows() {
		sizes[r.Text(i, 0)] = size{rows: r.Int(i, 1), rowBytes: r.Int(i, 2)}
	}
	return sizes, nil
}

// unchanged reads the definitions again and compares.
func (s *sessions) unchanged(ctx context.Context, cut *compat.Catalog) error {
	now, err := compat.ReadCatalog(ctx, s.lock, s.cfg.Plan.Database, s.cfg.Plan.Filter, cut)
	var gone *compat.NoDatabaseError
	if errors.As(err, &gone) {
		return fmt.Errorf("%w: %w", ErrSchemaChanged, err)
	}
	if err != nil {
		return err
	}
	for _, t := range cut.Tables {
		if now.Fingerprint(t.Name) != cut.Fingerprint(t.Name) {
			return fmt.Errorf("%w: table %s was altered, truncated or dropped", ErrSchemaChanged, t.FullName())
		}
	}
	ids, err := s.tableIDs(ctx, cut.Tables)
	if err != nil {
		return err
	}
	if table := exchanged(s.ids, ids); table != "" {
		return fmt.Errorf("%w: table %s.%s was exchanged for another, truncated or rebuilt", ErrSchemaChanged, cut.Database, table)
	}
	return nil
}

// copier is the copying after the cut.
type copier struct {
	cfg      Config
	sink     Sink
	queue    *queue
	progress *progress
	fat      sync.Mutex // held by the reader of a table of very large rows
}

func (c *copier) copyAll(ctx context.Context, conns []*wire.Conn) error {
	g, gctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(gctx, c.queue.stop)
	defer stop()
	for _, conn := range conns {
		r := &reader{copier: c, conn: conn}
		g.Go(func() error { return r.run(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// Readers that wait for work when ctx ends find none, and end as if all were done.
	return context.Cause(ctx)
}

// schemaError turns the errors by which a changed definition shows into ErrSchemaChanged.
func schemaError(t *schema.Table, err error) error {
	if err == nil {
		return nil
	}
	var mismatch *wire.MismatchError
	codes := []uint16{wire.CodeTableChanged, wire.CodeNoSuchTable, wire.CodeUnknownColumn, wire.CodeNoSuchKey, wire.CodeLockTimeout}
	if errors.As(err, &mismatch) || slices.Contains(codes, wire.Code(err)) {
		return fmt.Errorf("%w: table %s: %w", ErrSchemaChanged, t.FullName(), err)
	}
	return fmt.Errorf("copying table %s: %w", t.FullName(), err)
}
