package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
)

// copySink puts the rows of a first copy into durable loads of the store, which nobody reads until finish.
type copySink struct {
	ctx      context.Context //nolint:containedctx // snapshot calls back without one
	stop     context.CancelCauseFunc
	d        *database
	plan     *compat.Plan
	defaults defaults
	cut      snapshot.Cut
	begun    time.Time // when the cut was made, or this try went on
	resumed  bool
	taken    int64 // rows of the chunks that earlier tries left

	mu    sync.Mutex
	loads map[string]*storage.Load // by table
}

// newSink makes a sink; stop ends ctx.
func newSink(ctx context.Context, stop context.CancelCauseFunc, d *database, plan *compat.Plan) *copySink {
	return &copySink{ctx: ctx, stop: stop, d: d, plan: plan, defaults: defaults{plan.Catalog.Charset, plan.Catalog.Collation}, loads: map[string]*storage.Load{}}
}

// tables gives the definitions of the tables as they are copied.
func (c *copySink) tables() []*schema.Table {
	var out []*schema.Table
	for _, t := range c.d.m.store.Tables(c.d.id) {
		out = append(out, t.Def)
	}
	return out
}

// resumeLoads opens what earlier tries left, and gives the notes of their chunks by table.
func (c *copySink) resumeLoads(ctx context.Context) (map[string][][]byte, error) {
	c.resumed = true
	chunks := map[string][][]byte{}
	for _, t := range c.d.m.store.Tables(c.d.id) {
		load, notes, err := c.d.m.store.ResumeLoad(t.ID)
		var damage *storage.DamageError
		if errors.As(err, &damage) {
			c.d.note(ctx, "damage", fmt.Sprintf("what was copied of table %s is read again: %v", t.Def.Name, damage))
		}
		if damage != nil || errors.Is(err, storage.ErrNotFound) {
			load, err = c.d.m.store.NewLoad(t.ID)
		}
		if err != nil {
			return nil, err
		}
		c.loads[t.Def.Name], chunks[t.Def.Name] = load, notes
		c.taken += load.Rows()
	}
	return chunks, nil
}

// Begin makes the tables, as ones that are being copied, or notes that a copy goes on.
func (c *copySink) Begin(cut snapshot.Cut) error {
	c.cut, c.begun = cut, time.Now()
	if c.resumed {
		return c.goOn()
	}
	again, err := c.d.sourceDefaults(c.ctx, c.plan.Database)
	if err != nil {
		return err
	}
	if again != c.defaults {
		return fmt.Errorf("the database's default character set: %w", snapshot.ErrSchemaChanged)
	}
	anchor, err := c.d.anchor(c.ctx, cut.Point.Position)
	if err != nil {
		return err
	}
	record := newRecord(&cut, !c.plan.GTIDs, c.defaults, anchor)
	record.XAUnknown = !c.plan.AskXA
	err = c.d.commitConfig(c.ctx, func(cfg *config) {
		if cfg.Copy != nil {
			record.Restarts = cfg.Copy.Restarts
		}
		cfg.Copy, cfg.ByPosition = record, record.ByPosition
	}, c.renewTables)
	if err != nil {
		return err
	}
	for _, t := range c.d.m.store.Tables(c.d.id) {
		if c.loads[t.Def.Name], err = c.d.m.store.NewLoad(t.ID); err != nil {
			return err
		}
	}
	if err := c.d.puller.begin(cut.Point); err != nil {
		return err
	}
	c.guard()
	return nil
}

// guard ends the copy when the source's log can no longer be spooled: it would be of no use.
func (c *copySink) guard() {
	failure := c.d.puller.failure()
	go func() {
		select {
		case <-failure:
			c.stop(c.d.puller.cause())
		case <-c.ctx.Done():
		}
	}()
}

// goOn notes that the copy broke off, and that its rows stand at no one point now.
func (c *copySink) goOn() error {
	text := fmt.Sprintf("the copy goes on behind %d rows of earlier tries, without a lock, with the stream from %s", c.taken, c.cut.Point)
	c.d.log.Info("the copy goes on", "rows taken over", c.taken, "point", c.cut.Point.String())
	if err := c.d.puller.cover(c.cut.Point); err != nil {
		return err
	}
	c.guard()
	return c.d.commitConfig(c.ctx, func(cfg *config) {
		record := *cfg.Copy
		record.Breaks++
		record.Exact = false
		cfg.Copy = &record
	}, func(txn *storage.Txn) error {
		txn.Log(storage.Event{Kind: "resume", Message: text})
		return nil
	})
}

func (c *copySink) renewTables(txn *storage.Txn) error {
	for _, t := range c.d.m.store.Tables(c.d.id) {
		if err := txn.DropTable(t.ID); err != nil {
			return err
		}
	}
	for _, def := range c.cut.Tables {
		id, err := txn.CreateTable(def)
		if err != nil {
			return err
		}
		if err := txn.SetState(id, storage.Copying); err != nil {
			return err
		}
	}
	txn.Log(storage.Event{Kind: "copy", Message: fmt.Sprintf("the copy of %d tables begins at %s, lock plan %s", len(c.cut.Tables), c.cut.Point, c.cut.Lock)})
	return nil
}

// Open gives a writer of a table's load.
func (c *copySink) Open(t *schema.Table) (snapshot.Writer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load, ok := c.loads[t.Name]
	if !ok {
		return nil, fmt.Errorf("table %s is not part of the copy", t.FullName())
	}
	return &copyWriter{ctx: c.ctx, w: load.NewWriter()}, nil
}

// close lets the loads go. What is durable of them stays for the next try.
func (c *copySink) close() {
	var errs []error
	for _, load := range c.loads {
		errs = append(errs, load.Close())
	}
	if err := errors.Join(errs...); err != nil {
		c.d.log.Warn("what an unfinished chunk wrote could not be removed; it will be at the next start", "error", err)
	}
}

// copyWriter takes the rows of one reader.
type copyWriter struct {
	ctx context.Context //nolint:containedctx // snapshot calls back without one
	w   *storage.LoadWriter
}

func (w *copyWriter) Add(b *column.Batch) error { return w.w.Add(w.ctx, b) }
func (w *copyWriter) Done(note []byte) error    { return w.w.Checkpoint(w.ctx, note) }
func (w *copyWriter) Close() error              { return w.w.Close(w.ctx) }

// Abort drops the chunk in hand. What can't be removed now is at the next start.
func (w *copyWriter) Abort() { _ = w.w.Abort() }
