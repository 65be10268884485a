package storage

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/schema"
)

// BeginShadow starts a transaction on one shadow table alone. It holds up neither the transactions of the database nor
// those of other shadows, and is not held up by them. In it the table's rows and description can be changed, its
// prepared transactions kept ([Store.ShadowPendingXA]) and entries logged; everything else is an error.
func (s *Store) BeginShadow(id TableID) *Txn {
	s.writers.Add(1)
	t := &Txn{s: s, shadow: id, tables: map[TableID]*txnTable{}, xa: map[string][]byte{}, jobs: newJobs()}
	st := s.head.Load()
	if table := st.tables[id]; table != nil && table.rec.Shadow {
		t.db, t.dbName = table.rec.Database, st.database(table.rec.Database).rec.Name
	} else {
		t.failed = fmt.Errorf("shadow table %d: %w", id, ErrNotFound)
	}
	return t
}

// wide tells that the transaction may touch more than one shadow. An error sticks: what was asked for is not in it.
func (t *Txn) wide(what string) bool {
	if t.failed == nil && t.shadow != 0 {
		t.failed = fmt.Errorf("a transaction of shadow table %d can't %s", t.shadow, what)
	}
	return t.failed == nil
}

// touchShadow makes sure that the shadow is there until the commit of what is kept for it.
func (t *Txn) touchShadow() {
	if t.shadow == 0 {
		return
	}
	if _, err := t.table(t.shadow); t.failed == nil {
		t.failed = err
	}
}

// CreateShadow adds a table without rows that no version shows: a copy in the making, in state Copying, which may bear
// the name of a table that is there, or of another shadow. [Txn.Replace] makes it a table like others.
func (t *Txn) CreateShadow(def *schema.Table) (TableID, error) {
	if !t.wide("create tables") {
		return 0, t.failed
	}
	return t.create(tableRecord{Database: t.db, State: Copying, Shadow: true, Def: def})
}

// SetTablePoint sets the position at which a shadow's rows stand after the commit. It is opaque to the store.
func (t *Txn) SetTablePoint(id TableID, point []byte) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	if !tt.rec.Shadow {
		return fmt.Errorf("table %s has no point of its own", tt.rec.Def.FullName())
	}
	tt.rec.Point, tt.changed = slices.Clone(point), true
	return nil
}

// SetWindow notes that the table's rows stand at no one point yet, and until when, in a form that only the caller knows;
// nil takes the note away. Nothing else does.
func (t *Txn) SetWindow(id TableID, window []byte) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	tt.rec.Window, tt.changed = slices.Clone(window), true
	return nil
}

// Replace drops the table old (0: there is none) and makes the shadow the table of its name, Live and at the database's
// point. Readers that pinned a version before go on with the old rows. ErrExists when another table has the name.
func (t *Txn) Replace(old, shadow TableID) error {
	if !t.wide("replace tables") {
		return t.failed
	}
	tt, err := t.table(shadow)
	if err != nil {
		return err
	}
	if !tt.rec.Shadow {
		return fmt.Errorf("table %s is no shadow", tt.rec.Def.FullName())
	}
	if old != 0 {
		was, err := t.table(old)
		if err != nil {
			return err
		}
		if was.rec.Shadow {
			return fmt.Errorf("table %s, which is to be replaced, is a shadow", was.rec.Def.FullName())
		}
	}
	if id, taken := t.named(tt.rec.Def.Name); taken && id != old {
		return fmt.Errorf("table %s: %w", tt.rec.Def.FullName(), ErrExists)
	}
	if old != 0 {
		if err := t.DropTable(old); err != nil {
			return err
		}
	}
	tt.rec.Shadow, tt.rec.State, tt.rec.Reason, tt.rec.Point, tt.changed = false, Live, "", nil, true
	return nil
}

// Shadows lists a database's shadow tables, by name, then by ID.
func (s *Store) Shadows(id DatabaseID) []TableInfo {
	var out []TableInfo
	for _, t := range s.head.Load().tables {
		if t.rec.Shadow && t.rec.Database == id {
			out = append(out, t.info())
		}
	}
	slices.SortFunc(out, func(a, b TableInfo) int {
		return cmp.Or(cmp.Compare(a.Def.Name, b.Def.Name), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// TableByID gives a table, shadow or not. ErrNotFound when there is none.
func (s *Store) TableByID(id TableID) (TableInfo, error) {
	t := s.head.Load().tables[id]
	if t == nil {
		return TableInfo{}, fmt.Errorf("table %d: %w", id, ErrNotFound)
	}
	return t.info(), nil
}

// ShadowPendingXA gives the content kept for a prepared transaction by the transactions of a shadow ([Store.BeginShadow]).
// ErrNotFound when there is none.
func (s *Store) ShadowPendingXA(id TableID, xid string) ([]byte, error) {
	return s.pendingXA(uint64(id), xid)
}
