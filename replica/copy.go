package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/wire"
)

// firstCopy takes all tables at one point and makes them readable, with the point, in one commit. After an error nothing
// of it is left, and it may be tried again.
func (d *database) firstCopy(ctx context.Context) error {
	source, plan, err := compat.Check(ctx, d.wire(), d.wishes())
	if err != nil {
		return err
	}
	for _, w := range plan.Warnings {
		d.note(ctx, "warning", w.String())
	}
	charset := defaults{plan.Catalog.Charset, plan.Catalog.Collation}
	c := &copySink{ctx: ctx, d: d, loads: map[string]*storage.Load{}, defaults: charset, byPosition: !plan.GTIDs}
	defer c.abort()
	d.setCopy(&CopyProgress{TotalTables: len(plan.Catalog.Tables)})
	result, err := snapshot.Run(ctx, snapshot.Config{Source: d.wire(), Plan: plan, Readers: d.m.opt.Readers, Logger: d.m.log, Waiting: d.waiting, Progress: d.copied}, c)
	if err != nil {
		return err
	}
	for _, t := range result.Tables {
		if t.Changed != "" {
			return fmt.Errorf("%w: table %s: %s", snapshot.ErrSchemaChanged, t.Name, t.Changed)
		}
	}
	again, err := d.sourceDefaults(ctx, plan.Database)
	if err != nil {
		return err
	}
	if again != charset {
		return fmt.Errorf("the database's default character set: %w", snapshot.ErrSchemaChanged)
	}
	if c.anchor, err = d.anchor(ctx, result.Point.Position); err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	d.note(ctx, "copied", fmt.Sprintf("%d rows of %d tables at %s, from MySQL %s; the source was locked for %v", result.Rows, len(result.Tables), result.Point, source.Version, result.LockHeld))
	return nil
}

// waiting shows what the copy waits for, and no longer what it does not.
func (d *database) waiting(reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.message, d.lost = "", false
	if reason != "" {
		d.message, d.lost = "the copy waits: "+reason, true
	}
}

// defaults are a database's default character set and collation.
type defaults struct{ charset, collation string }

func (d *database) sourceDefaults(ctx context.Context, name string) (defaults, error) {
	c, err := wire.Dial(ctx, d.wire())
	if err != nil {
		return defaults{}, err
	}
	defer func() { _ = c.Close() }() // only read from
	r, err := c.Query(ctx, "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+wire.Literal(name))
	if err != nil {
		return defaults{}, err
	}
	if r.Rows() != 1 {
		return defaults{}, &compat.NoDatabaseError{Database: name}
	}
	return defaults{r.Text(0, 0), r.Text(0, 1)}, nil
}

// copySink puts the rows of a copy into loads of the store, which nobody reads until finish.
type copySink struct {
	ctx      context.Context //nolint:containedctx // snapshot calls back without one
	d        *database
	cut      snapshot.Cut
	begun    time.Time // when the cut was made
	defaults defaults
	// byPosition tells that the source has no GTIDs.
	byPosition bool
	anchor     gtid.Identity

	mu    sync.Mutex
	loads map[string]*storage.Load
	// failed is what went wrong in an aborted writer.
	failed error
	done   bool
}

// Begin makes the tables, as ones that are being copied, in place of those of a copy that failed.
func (c *copySink) Begin(cut snapshot.Cut) error {
	c.cut, c.begun = cut, time.Now()
	if err := c.d.commit(c.ctx, c.renewTables); err != nil {
		return err
	}
	for _, t := range c.d.m.store.Tables(c.d.id) {
		load, err := c.d.m.store.NewLoad(t.ID)
		if err != nil {
			return err
		}
		c.loads[t.Def.Name] = load
	}
	return nil
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
	txn.Log(storage.Event{Kind: "copy", Message: fmt.Sprintf("the copy of %d tables begins at %s", len(c.cut.Tables), c.cut.Point)})
	return nil
}

// commit makes one transaction of the store.
func (d *database) commit(ctx context.Context, do func(*storage.Txn) error) error {
	txn := d.m.store.Begin(d.id)
	err := do(txn)
	if err == nil {
		_, err = txn.Commit(ctx)
	}
	if err != nil {
		return errors.Join(err, txn.Abort())
	}
	return nil
}

func (c *copySink) Open(t *schema.Table) (snapshot.Writer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	load, ok := c.loads[t.Name]
	if !ok {
		return nil, fmt.Errorf("table %s is not part of the copy", t.FullName())
	}
	return &copyWriter{sink: c, w: load.NewWriter()}, nil
}

// copyWriter keeps the rows of a chunk until it is done, so that the load has only whole ones.
type copyWriter struct {
	sink  *copySink
	w     *storage.LoadWriter
	chunk []*column.Batch
}

func (w *copyWriter) Add(b *column.Batch) error {
	w.chunk = append(w.chunk, b)
	return nil
}

func (w *copyWriter) Done([]byte) error {
	for _, b := range w.chunk {
		if err := w.w.Add(w.sink.ctx, b); err != nil {
			return err
		}
	}
	w.chunk = nil
	return nil
}

func (w *copyWriter) Close() error { return w.w.Close(w.sink.ctx) }

// Abort writes the chunks that were done; finish reports what goes wrong with that.
func (w *copyWriter) Abort() {
	w.chunk = nil
	if err := w.Close(); err != nil {
		w.sink.mu.Lock()
		defer w.sink.mu.Unlock()
		w.sink.failed = err
	}
}

// finish makes everything readable in one commit.
func (c *copySink) finish() error {
	if c.failed != nil {
		return c.failed
	}
	for _, load := range c.loads {
		if err := load.Finish(c.ctx); err != nil {
			return err
		}
	}
	c.d.changes.Lock()
	defer c.d.changes.Unlock()
	next := c.d.config()
	next.ByPosition = c.byPosition
	encoded, err := next.encode()
	if err != nil {
		return err
	}
	err = c.d.commit(c.ctx, func(txn *storage.Txn) error {
		txn.SetConfig(encoded)
		return c.swap(txn)
	})
	if c.done = err == nil; c.done {
		c.d.setConfig(&next)
		c.d.copyDone(c.begun)
	}
	return err
}

func (c *copySink) swap(txn *storage.Txn) error {
	for _, t := range c.d.m.store.Tables(c.d.id) {
		if err := txn.SwapLoad(t.ID, c.loads[t.Def.Name]); err != nil {
			return err
		}
		if err := txn.SetState(t.ID, storage.Live); err != nil {
			return err
		}
	}
	txn.SetPoint(encodePoint(&replay.State{Point: c.cut.Point, Last: c.anchor, Charset: c.defaults.charset, Collation: c.defaults.collation}))
	return nil
}

// abort removes what a failed copy wrote.
func (c *copySink) abort() {
	if c.done {
		return
	}
	var errs []error
	for _, load := range c.loads {
		errs = append(errs, load.Abort())
	}
	if err := errors.Join(errs...); err != nil {
		c.d.log.Warn("what a failed copy wrote could not be removed; it will be at the next start", "error", err)
	}
}
