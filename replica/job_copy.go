package replica

import (
	"context"
	"errors"
	"fmt"
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

// copyRows reads the table into the shadow, or what an earlier run has not read yet.
func (j *job) copyRows(ctx context.Context) error {
	d := j.d
	at := d.wire() // one server for the whole copy
	source, plan, err := compat.Check(ctx, at, compat.Wishes{Database: d.spec().SourceDatabase, Lock: compat.LockNone, Filter: func(t string) bool { return t == j.table }})
	if err != nil {
		return err
	}
	if j.shadow != 0 && j.record.Server != source.UUID.String() {
		return &worthlessError{"the source is another server now, and the rows were not all read from one"}
	}
	if plan.Catalog.Table(j.table) == nil {
		return j.absent(ctx, source, plan)
	}
	plan.GTIDs = plan.GTIDs && !d.byPosition()
	sink := &shadowSink{ctx: ctx, j: j, defaults: defaults{plan.Catalog.Charset, plan.Catalog.Collation}, xaUnknown: !plan.AskXA}
	defer sink.close()
	cfg := snapshot.Config{Source: at, Plan: plan, Tables: []string{j.table}, Readers: d.m.opt.Readers, Logger: d.log.With("table", j.table),
		Progress: j.progress,
		Waiting:  func(reason string) { j.waits("the copy waits: ", reason) }, Slowed: func(reason string) { j.waits("the copy goes slowly: ", reason) }}
	d.spec().Settings.Gentle.apply(&cfg)
	if cfg.Resume, err = sink.resume(source); err != nil {
		return err
	}
	j.show(ResyncCopying)
	result, err := snapshot.Run(ctx, cfg, sink)
	if err != nil {
		return err
	}
	t := &result.Tables[0]
	if t.Changed != "" {
		return &worthlessError{t.Changed}
	}
	return sink.finish(t)
}

// waits shows why the copy is not as fast as it could be; an empty reason: it is.
func (j *job) waits(what, reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note = ""
	if reason != "" {
		j.note = what + reason
	}
}

// progress takes how far the copy is.
func (j *job) progress(p snapshot.Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rows, j.total = uint64(p.Rows), uint64(max(p.Rows, p.Estimate))
}

// shadowSink puts the rows into a load of the shadow. Chunks that are finished are durable.
type shadowSink struct {
	ctx      context.Context //nolint:containedctx // snapshot calls back without one
	j        *job
	defaults defaults
	// xaUnknown tells that the account may not ask whether XA transactions were prepared at P0.
	xaUnknown bool
	load      *storage.Load
}

// resume takes over what is there of the shadow; nil: nothing.
func (s *shadowSink) resume(source *compat.Source) (*snapshot.Resume, error) {
	j := s.j
	if j.shadow == 0 {
		return nil, nil //nolint:nilnil // a copy from the beginning
	}
	point, _, err := gtid.DecodePoint(j.record.P0)
	if err != nil {
		return nil, err
	}
	def, err := j.d.shadowDef(j.shadow)
	if err != nil {
		return nil, err
	}
	load, notes, err := j.d.m.store.ResumeLoad(j.shadow)
	var damage *storage.DamageError
	switch {
	case errors.Is(err, storage.ErrNotFound):
		load, err = j.d.m.store.NewLoad(j.shadow)
	case errors.As(err, &damage):
		return nil, &worthlessError{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	s.load = load
	cut := snapshot.Cut{Point: point, Server: source.UUID, Tables: []*schema.Table{def}}
	return &snapshot.Resume{Cut: cut, Chunks: map[string][][]byte{j.table: notes}}, nil
}

func (d *database) shadowDef(id storage.TableID) (*schema.Table, error) {
	for _, t := range d.m.store.Shadows(d.id) {
		if t.ID == id {
			return t.Def, nil
		}
	}
	return nil, fmt.Errorf("shadow table %d: %w", id, storage.ErrNotFound)
}

// Begin makes the shadow, unless the copy goes on.
func (s *shadowSink) Begin(cut snapshot.Cut) error {
	if s.load != nil {
		return nil
	}
	if len(cut.Tables) != 1 {
		return fmt.Errorf("the copy of table %s has %d tables", s.j.table, len(cut.Tables))
	}
	j := s.j
	record := jobRecord{Version: jobVersion, Old: j.old, Server: cut.Server.String(), P0: cut.Point.AppendBinary(nil), Seen: cut.Listed,
		Charset: s.defaults.charset, Collation: s.defaults.collation, XAUnknown: s.xaUnknown}
	encoded, err := record.encode()
	if err != nil {
		return err
	}
	var id storage.TableID
	err = j.d.commit(s.ctx, func(txn *storage.Txn) error {
		if id, err = txn.CreateShadow(cut.Tables[0]); err != nil {
			return err
		}
		txn.Log(storage.Event{Kind: "resync", Table: j.table, Message: fmt.Sprintf("a new copy of the table begins at %s, beside the one that is served", cut.Point)})
		return txn.SetTablePoint(id, encoded)
	})
	if err != nil {
		return err
	}
	j.shadow, j.record = id, record
	s.load, err = j.d.m.store.NewLoad(id)
	return err
}

func (s *shadowSink) Open(*schema.Table) (snapshot.Writer, error) {
	return &shadowWriter{ctx: s.ctx, w: s.load.NewWriter()}, nil
}

// close lets the load go; what is durable of it stays for the next run.
func (s *shadowSink) close() {
	if s.load == nil {
		return
	}
	if err := s.load.Close(); err != nil {
		s.j.d.log.Warn("what a table's new copy left unfinished can't be removed; it will be at the next start", "table", s.j.table, "error", err)
	}
}

// finish makes the rows the shadow's, with the state from which the changes behind P0 are to be applied.
func (s *shadowSink) finish(t *snapshot.TableResult) error {
	if err := s.load.Finish(s.ctx); err != nil {
		return err
	}
	j := s.j
	next := j.record
	next.State = encodePoint(&replay.State{Point: t.From, Charset: next.Charset, Collation: next.Collation})
	if !t.To.IsZero() {
		next.Window = &jobWindow{To: t.To, Bracket: t.Bracket}
	}
	encoded, err := next.encode()
	if err != nil {
		return err
	}
	txn := j.d.m.store.BeginShadow(j.shadow)
	err = txn.SwapLoad(j.shadow, s.load)
	if err == nil {
		err = txn.SetTablePoint(j.shadow, encoded)
	}
	if err == nil {
		_, err = txn.Commit(s.ctx)
	}
	if err != nil {
		return errors.Join(err, txn.Abort())
	}
	j.record = next
	return nil
}

// shadowWriter is one writer of the load.
type shadowWriter struct {
	ctx context.Context //nolint:containedctx // snapshot calls back without one
	w   *storage.LoadWriter
}

func (w *shadowWriter) Add(b *column.Batch) error { return w.w.Add(w.ctx, b) }
func (w *shadowWriter) Done(note []byte) error    { return w.w.Checkpoint(w.ctx, note) }
func (w *shadowWriter) Close() error              { return w.w.Close(w.ctx) }
func (w *shadowWriter) Abort()                    { _ = w.w.Abort() } // the rows come again; files that stay go with the load

const (
	codeNoSuchTable = 1146
	// absentPatience bounds the wait for the stream to come to where the source was seen without the table.
	absentPatience = time.Minute
)

// absent deals with a table that the source does not have. Where the stream has passed the moment at which it was
// missing there and still knows it, what took it away was not seen (it stood in binlogs that were purged) or not followed
// (a renaming). Then the table goes here, too.
func (j *job) absent(ctx context.Context, source *compat.Source, plan *compat.Plan) error {
	missing := fmt.Errorf("the source has no table %s.%s that this account may read", plan.Database, j.table)
	c, err := wire.Dial(ctx, j.d.wire())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only read from
	// information_schema does not show what an account may not read; the server tells the two apart here.
	_, err = c.Query(ctx, fmt.Sprintf("SELECT 1 FROM %s.%s LIMIT 0", wire.Identifier(plan.Database), wire.Identifier(j.table)))
	if wire.Code(err) != codeNoSuchTable {
		return errors.Join(missing, err)
	}
	for deadline := time.Now().Add(absentPatience); ; {
		past, err := j.d.hasPassed(source)
		if err != nil {
			return err
		}
		if past {
			break
		}
		if time.Now().After(deadline) || !sleep(ctx, lookAgain) {
			return missing
		}
	}
	if !j.current() {
		return errGone
	}
	return errors.Join(errGone, j.d.forget(ctx, j.table, j.old, "the table is not on the source any more"))
}

// hasPassed tells whether the database has everything that a source had when it was probed.
func (d *database) hasPassed(source *compat.Source) (bool, error) {
	at, _, err := d.committed()
	if err != nil {
		return false, err
	}
	if d.byPosition() {
		return at.Point.Position.Compare(source.Position) >= 0, nil
	}
	return at.Point.Set.Contains(source.Executed), nil
}

// forget drops a table between two batches of the stream.
func (d *database) forget(ctx context.Context, table string, id storage.TableID, why string) error {
	return d.gate.between(ctx, func() error {
		err := d.commit(ctx, func(txn *storage.Txn) error {
			txn.Log(storage.Event{Kind: "drop", Table: table, Message: why})
			return txn.DropTable(id)
		})
		if err == nil {
			d.gate.restart()
		}
		return err
	})
}
