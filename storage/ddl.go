package storage

import (
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/schema"
)

// CreateTable adds a table without rows, in state Live (see SetState). ErrExists when the name is taken.
func (t *Txn) CreateTable(def *schema.Table) (TableID, error) {
	if !t.wide("create tables") {
		return 0, t.failed
	}
	if t.nameTaken(def.Name) {
		return 0, fmt.Errorf("table %s: %w", def.FullName(), ErrExists)
	}
	return t.create(tableRecord{Database: t.db, State: Live, Def: def})
}

// CreateQuarantined adds a table whose rows are not known, quarantined from the start; see Quarantine. The definition may
// have no columns.
func (t *Txn) CreateQuarantined(def *schema.Table, reason string, point []byte) (TableID, error) {
	id, err := t.CreateTable(def)
	if err != nil {
		return 0, err
	}
	rec := &t.tables[id].rec
	rec.State, rec.Reason, rec.Point = Quarantined, reason, slices.Clone(point)
	return id, nil
}

func (t *Txn) create(rec tableRecord) (TableID, error) {
	id, err := t.s.nextID()
	if err != nil {
		return 0, err
	}
	gen, err := t.s.nextID()
	if err != nil {
		return 0, err
	}
	rec.Generation = Generation(gen)
	tt := &txnTable{id: TableID(id), lock: t.s.tableLock(TableID(id)), rec: rec, fresh: true, changed: true}
	tt.lock.Lock()
	t.tables[tt.id] = tt
	t.order = append(t.order, tt)
	return tt.id, nil
}

// nameTaken tells whether a table of the transaction's view has the name.
func (t *Txn) nameTaken(name string) bool {
	_, taken := t.named(name)
	return taken
}

// named finds a table, no shadow, by its name in the transaction's view.
func (t *Txn) named(name string) (TableID, bool) {
	for _, tt := range t.order {
		if !tt.dropped && tt.rec.name() == name {
			return tt.id, true
		}
	}
	d := t.s.head.Load().database(t.db)
	if d == nil {
		return 0, false
	}
	id, ok := d.tables[name]
	return id, ok && t.tables[id] == nil
}

// DropTable takes the table away. Its name may be used again in the same transaction.
func (t *Txn) DropTable(id TableID) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	tt.dropped, tt.load = true, nil
	return t.discard(tt)
}

// Truncate takes all rows away: the table gets a new, empty generation.
func (t *Txn) Truncate(id TableID) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	if err := tt.writable(); err != nil {
		return err
	}
	gen, err := t.s.nextID()
	if err != nil {
		return err
	}
	tt.rec.Generation, tt.fresh, tt.changed, tt.load = Generation(gen), true, true, nil
	return t.discard(tt)
}

// Alter replaces the definition; rows applied before keep their values, matched by column id. The new definition must
// have a higher version and the same key. Bulk loads of the table under the old one are worth nothing then; a durable one
// is removed.
func (t *Txn) Alter(id TableID, def *schema.Table) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	if err := tt.writable(); err != nil {
		return err
	}
	if def.Version <= tt.rec.Def.Version {
		return fmt.Errorf("table %s: version %d of the definition can't follow version %d", def.FullName(), def.Version, tt.rec.Def.Version)
	}
	if !slices.Equal(keyColumns(def), keyColumns(tt.rec.Def)) {
		return fmt.Errorf("table %s: the key can't change without a new copy", def.FullName())
	}
	if !keepsHashes(tt.rec.Def, def) {
		return fmt.Errorf("table %s: a column of a table without a key can't go without a new copy", def.FullName())
	}
	if !tt.rec.Shadow && def.Name != tt.rec.Def.Name && t.nameTaken(def.Name) {
		return fmt.Errorf("table %s: %w", def.FullName(), ErrExists)
	}
	tt.rec.Def, tt.changed, tt.altered = def, true, true
	return nil
}

func keyColumns(t *schema.Table) []uint32 {
	ids := make([]uint32, len(t.Key))
	for i, k := range t.Key {
		ids[i] = t.Columns[k].ID
	}
	return ids
}

// Quarantine takes back what the transaction did to the table so far, and sets the table aside: it keeps its rows as of
// the last commit and its definition of that time, takes no more changes, and says why and where it stands.
func (t *Txn) Quarantine(id TableID, reason string, point []byte) error {
	if err := t.Revoke(id); err != nil {
		return err
	}
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	tt.rec.State, tt.rec.Reason, tt.rec.Point, tt.changed = Quarantined, reason, slices.Clone(point), true
	return nil
}

// SetState changes the table's state; reason and point of a quarantine are forgotten.
func (t *Txn) SetState(id TableID, state TableState) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	if tt.rec.State == Quarantined {
		tt.rec.Point = nil
	}
	tt.rec.State, tt.rec.Reason, tt.changed = state, "", true
	return nil
}

// Revoke takes back everything that the transaction did to the table. A table created in it is gone then.
func (t *Txn) Revoke(id TableID) error {
	tt := t.tables[id]
	if tt == nil {
		return t.failed
	}
	err := t.discard(tt)
	tt.load = nil
	if tt.old == nil {
		tt.dropped = true
		return err
	}
	tt.rec, tt.changed, tt.altered, tt.fresh, tt.dropped = tt.old.rec, false, false, false, false
	return err
}

// SwapLoad makes the rows of a finished bulk load the table's rows, in place of those it has. When the transaction is
// aborted the load is as it was: to be swapped in again, or aborted.
func (t *Txn) SwapLoad(id TableID, load *Load) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	if load.table != id || !load.finished {
		return fmt.Errorf("table %s: the copy is not finished, or is of another table", tt.rec.Def.FullName())
	}
	if load.def.Version != tt.rec.Def.Version {
		return fmt.Errorf("table %s: the copy has version %d of the definition, the table %d", tt.rec.Def.FullName(), load.def.Version, tt.rec.Def.Version)
	}
	tt.rec.Generation, tt.fresh, tt.changed, tt.load = load.gen, true, true, load
	return t.discard(tt)
}
