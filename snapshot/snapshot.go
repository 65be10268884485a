package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// ErrSchemaChanged says that the definition of a table changed between the cut and the end of the copy. What was copied
// is of no use; a new Run can succeed.
var ErrSchemaChanged = errors.New("a table's definition changed during the snapshot")

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
	tables, err := s.results(ctx, cut, catalog)
	if err != nil {
		return nil, err
	}
	rows, bytes := c.progress.total()
	result := &Result{Cut: *cut, Rows: rows, Bytes: bytes, Tables: tables, Elapsed: time.Since(begun)}
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

// results reads the definitions again and compares.
func (s *sessions) results(ctx context.Context, cut *Cut, catalog *compat.Catalog) ([]TableResult, error) {
	now, err := compat.ReadCatalog(ctx, s.lock, s.cfg.Plan.Database, s.cfg.Plan.Filter, catalog)
	var gone *compat.NoDatabaseError
	if err != nil && !errors.As(err, &gone) {
		return nil, err
	}
	ids, err := s.tableIDs(ctx, catalog.Tables)
	if err != nil {
		return nil, err
	}
	out := make([]TableResult, len(catalog.Tables))
	for i, t := range catalog.Tables {
		out[i] = TableResult{Name: t.Name, From: cut.Point}
		switch {
		case now == nil || now.Fingerprint(t.Name) != catalog.Fingerprint(t.Name):
			out[i].Changed = "it was altered, truncated or dropped during its copy"
		case ids[t.Name] != s.ids[t.Name]:
			out[i].Changed = "it was exchanged for another, truncated or rebuilt during its copy"
		}
	}
	return out, nil
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
