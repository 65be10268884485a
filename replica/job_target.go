package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// shadowRows gives the replayer of a job transactions of the store on its shadow.
type shadowRows struct{ j *job }

var _ replay.Source = (*shadowRows)(nil)

func (s *shadowRows) Begin(context.Context) (replay.Target, error) {
	return &shadowTarget{j: s.j, txn: s.j.d.m.store.BeginShadow(s.j.shadow)}, nil
}

func (s *shadowRows) Prepared(xid string) ([]byte, bool, error) {
	b, err := s.j.d.m.store.ShadowPendingXA(s.j.shadow, xid)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, false, nil
	}
	return b, err == nil, err
}

// shadowTarget is one transaction on the shadow. What ends the table, or its use, ends the job.
type shadowTarget struct {
	j   *job
	txn *storage.Txn
}

func (t *shadowTarget) Apply(ctx context.Context, _ string, c *storage.Changes) error {
	return t.txn.Apply(ctx, t.j.shadow, c)
}

func (t *shadowTarget) Read(ctx context.Context, _ string, keys *column.Keys, fn func(rows *column.Batch) error) error {
	return t.txn.Read(ctx, t.j.shadow, keys, fn)
}

func (t *shadowTarget) Create(def *schema.Table) error {
	return fmt.Errorf("%w: table %s was created", errGone, def.Name)
}
func (t *shadowTarget) Drop(string) error                      { return errGone }
func (t *shadowTarget) Truncate(string) error                  { return t.txn.Truncate(t.j.shadow) }
func (t *shadowTarget) Alter(def *schema.Table) error          { return t.txn.Alter(t.j.shadow, def) }
func (t *shadowTarget) SetWindow(string, *replay.Window) error { return nil } // Commit keeps what the state says
func (t *shadowTarget) Quarantine(_, reason string, _ gtid.Point) error {
	return &worthlessError{reason}
}
func (t *shadowTarget) CreateQuarantined(_ *schema.Table, reason string, _ gtid.Point) error {
	return &worthlessError{reason}
}
func (t *shadowTarget) PutPrepared(xid string, events []byte) { t.txn.PutPendingXA(xid, events) }
func (t *shadowTarget) DeletePrepared(xid string)             { t.txn.DeletePendingXA(xid) }

func (t *shadowTarget) Commit(ctx context.Context, state replay.State) error {
	next := t.j.record
	next.State, next.Window = encodePoint(&state), windowOf(&state, t.j.table)
	encoded, err := next.encode()
	if err != nil {
		return err
	}
	if err := t.txn.SetTablePoint(t.j.shadow, encoded); err != nil {
		return err
	}
	if _, err := t.txn.Commit(ctx); err != nil {
		return err
	}
	t.j.record = next
	return nil
}

func (t *shadowTarget) Abort() error { return t.txn.Abort() }

// windowOf gives the durable form of a table's window; nil: it has none.
func windowOf(s *replay.State, table string) *jobWindow {
	w := s.Tables[table].Window
	if w == nil {
		return nil
	}
	out := &jobWindow{To: w.To, Bracket: w.Bracket}
	if !w.From.IsZero() {
		out.From = w.From.AppendBinary(nil)
	}
	return out
}

// open is the other way round; nil: the table has none.
func (w *jobWindow) open() (*replay.Window, error) {
	if w == nil {
		return nil, nil //nolint:nilnil // no window
	}
	out := &replay.Window{To: w.To, Bracket: w.Bracket}
	if w.From == nil {
		return out, nil
	}
	var err error
	out.From, _, err = gtid.DecodePoint(w.From)
	return out, err
}
