package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// rows gives the replayer transactions of the store. It is for one goroutine.
type rows struct {
	store *storage.Store
	db    storage.DatabaseID
	ids   map[string]storage.TableID // as committed
}

var _ replay.Source = (*rows)(nil)

func (r *rows) Begin(context.Context) (replay.Target, error) {
	return &target{rows: r, txn: r.store.Begin(r.db), ids: r.ids}, nil
}

func (r *rows) Prepared(xid string) ([]byte, bool, error) {
	b, err := r.store.PendingXA(r.db, xid)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, false, nil
	}
	return b, err == nil, err
}

// adopt takes a table that somebody else has put into the store.
func (r *rows) adopt(table string, id storage.TableID) {
	r.ids = maps.Clone(r.ids)
	r.ids[table] = id
}

// target is one transaction of the store under the names that replay uses.
type target struct {
	rows   *rows
	txn    *storage.Txn
	ids    map[string]storage.TableID
	cloned bool // ids is ours
}

func (t *target) id(table string) (storage.TableID, error) {
	id, ok := t.ids[table]
	if !ok {
		return 0, fmt.Errorf("table %s: %w", table, storage.ErrNotFound)
	}
	return id, nil
}

// names makes the names ones that may be changed.
func (t *target) names() map[string]storage.TableID {
	if !t.cloned {
		t.ids, t.cloned = maps.Clone(t.ids), true
	}
	return t.ids
}

func (t *target) Apply(ctx context.Context, table string, c *storage.Changes) error {
	id, err := t.id(table)
	if err != nil {
		return err
	}
	return t.txn.Apply(ctx, id, c)
}

func (t *target) Read(ctx context.Context, table string, keys *column.Keys, fn func(rows *column.Batch) error) error {
	id, err := t.id(table)
	if err != nil {
		return err
	}
	return t.txn.Read(ctx, id, keys, fn)
}

func (t *target) log(kind, table, message string) {
	t.txn.Log(storage.Event{Kind: kind, Table: table, Message: message})
}

func (t *target) Create(def *schema.Table) error {
	id, err := t.txn.CreateTable(def)
	if err != nil {
		return err
	}
	t.names()[def.Name] = id
	t.log("create", def.Name, "the table was created on the source")
	return nil
}

func (t *target) Drop(table string) error {
	id, err := t.id(table)
	if err != nil {
		return err
	}
	delete(t.names(), table)
	t.log("drop", table, "the table was dropped on the source")
	return t.txn.DropTable(id)
}

func (t *target) Truncate(table string) error {
	id, err := t.id(table)
	if err != nil {
		return err
	}
	return t.txn.Truncate(id)
}

func (t *target) Alter(def *schema.Table) error {
	id, err := t.id(def.Name)
	if err != nil {
		return err
	}
	t.log("alter", def.Name, fmt.Sprintf("the definition has version %d now", def.Version))
	return t.txn.Alter(id, def)
}

func (t *target) SetWindow(table string, w *replay.Window) error {
	id, err := t.id(table)
	if err != nil {
		return err
	}
	return t.txn.SetWindow(id, encodeWindow(w))
}

func (t *target) Quarantine(table, reason string, at gtid.Point) error {
	id, err := t.id(table)
	if err != nil {
		return err
	}
	t.log("quarantine", table, reason)
	return t.txn.Quarantine(id, reason, encodePoint(&replay.State{Point: at}))
}

func (t *target) CreateQuarantined(def *schema.Table, reason string, at gtid.Point) error {
	id, err := t.txn.CreateQuarantined(def, reason, encodePoint(&replay.State{Point: at}))
	if err != nil {
		return err
	}
	t.names()[def.Name] = id
	t.log("quarantine", def.Name, reason)
	return nil
}

func (t *target) PutPrepared(xid string, events []byte) { t.txn.PutPendingXA(xid, events) }
func (t *target) DeletePrepared(xid string)             { t.txn.DeletePendingXA(xid) }

func (t *target) Commit(ctx context.Context, state replay.State) error {
	t.txn.SetPoint(encodePoint(&state))
	if _, err := t.txn.Commit(ctx); err != nil {
		return err
	}
	t.rows.ids = t.ids
	return nil
}

func (t *target) Abort() error { return t.txn.Abort() }
