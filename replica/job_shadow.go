package replica

import (
	"context"
	"errors"

	"github.com/tidemarkdb/tidemark/storage"
)

// dropShadows removes those that no job can go on with: of tables that are gone, and of records that can't be read.
func (d *database) dropShadows(ctx context.Context) {
	for _, t := range d.m.store.Shadows(d.id) {
		if d.jobs.of(t.Def.Name) != nil {
			continue // its own business
		}
		r, err := decodeJob(t.Point)
		if err == nil {
			now, findErr := d.m.store.Table(d.id, t.Def.Name)
			if findErr == nil && now.ID == r.Old {
				continue
			}
		}
		d.jobs.letGo(t.Def.Name)
		d.dropShadow(ctx, t.ID)
	}
}

// dropShadow removes a shadow, with everything of it; 0: none. One that can't be removed now is tried again later.
func (d *database) dropShadow(ctx context.Context, id storage.TableID) {
	if id == 0 {
		return
	}
	err := d.commit(context.WithoutCancel(ctx), func(txn *storage.Txn) error { return txn.DropTable(id) })
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		d.log.Warn("what is left of a table's new copy can't be removed", "error", err)
	}
}

// tableNote adds to the event log.
func (d *database) tableNote(ctx context.Context, table, kind, message string) {
	err := d.m.store.Log(context.WithoutCancel(ctx), storage.Event{Kind: kind, Database: d.spec().Name, Table: table, Message: message})
	if err != nil {
		d.log.Warn("the event log can't be written", "error", err, "entry", message)
	}
}
