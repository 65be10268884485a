package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Txn gathers everything of one commit of a database: rows, definitions, states, pending XA transactions, the position.
// Nothing of it is visible or durable before Commit. It is used by one goroutine, and ends with Commit or Abort.
//
// A database has one Txn at a time: Begin waits for the one before. Those of shadows (BeginShadow) go beside it.
type Txn struct {
	s      *Store
	db     DatabaseID
	dbName string
	lock   *sync.Mutex // nil: of a shadow
	shadow TableID     // the only table that the transaction may touch; 0: any
	tables map[TableID]*txnTable
	order  []*txnTable
	point  []byte
	config []byte
	xa     map[string][]byte // nil value: deleted
	events []Event
	jobs   *jobs
	failed error // sticky: an operation stopped half-way
	done   bool
}

// Begin starts a transaction on a database.
func (s *Store) Begin(db DatabaseID) *Txn {
	lock := s.transactionLock(db)
	lock.Lock()
	s.writers.Add(1)
	t := &Txn{s: s, db: db, lock: lock, tables: map[TableID]*txnTable{}, xa: map[string][]byte{}, jobs: newJobs()}
	if d := s.head.Load().database(db); d != nil {
		t.dbName = d.rec.Name
	} else {
		t.failed = fmt.Errorf("database %d: %w", db, ErrNotFound)
	}
	return t
}

// txnTable is one table as the transaction has changed it so far.
type txnTable struct {
	id   TableID
	lock tableLock
	// old is the committed table, nil when the transaction created it. The table's lock keeps it from changing.
	old     *tableState
	rec     tableRecord
	changed bool // rec differs from old's
	altered bool // the definition does
	// fresh tells that the generation has no committed rows: created, truncated or loaded here.
	fresh   bool
	dropped bool
	load    *Load
	// committed is the index of old, made when it is first needed.
	committed *index
	rows      rowChanges
}

// table gives the table for changes, and takes its lock.
func (t *Txn) table(id TableID) (*txnTable, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	if t.done {
		return nil, errors.New("transaction has ended")
	}
	if tt := t.tables[id]; tt != nil {
		if tt.dropped {
			return nil, fmt.Errorf("table %d of database %s: %w (dropped in this transaction)", id, t.dbName, ErrNotFound)
		}
		return tt, nil
	}
	if t.shadow != 0 && id != t.shadow { // whose lock might be held by one who waits for this transaction
		return nil, fmt.Errorf("table %d: %w in a transaction of shadow table %d", id, ErrNotFound, t.shadow)
	}
	lock := t.s.tableLock(id)
	lock.Lock()
	old := t.s.head.Load().tables[id]
	if old == nil || old.rec.Database != t.db || t.shadow != 0 && !old.rec.Shadow {
		lock.Unlock()
		return nil, fmt.Errorf("table %d of database %s: %w", id, t.dbName, ErrNotFound)
	}
	tt := &txnTable{id: id, lock: lock, old: old, rec: old.rec}
	t.tables[id] = tt
	t.order = append(t.order, tt)
	return tt, nil
}

// Def gives the table's definition as the transaction has it.
func (t *Txn) Def(id TableID) (*schema.Table, error) {
	tt, err := t.table(id)
	if err != nil {
		return nil, err
	}
	return tt.rec.Def, nil
}

// SetPoint sets the source position at which the rows stand after the commit. It is opaque to the store.
func (t *Txn) SetPoint(point []byte) {
	if t.wide("set the database's point") {
		t.point = slices.Clone(point)
	}
}

// SetConfig replaces the database's configuration.
func (t *Txn) SetConfig(config []byte) {
	if t.wide("set the database's configuration") {
		t.config = slices.Clone(config)
	}
}

// PutPendingXA keeps the rows of a prepared transaction, opaque to the store, under its id, for the database, or for the
// shadow alone in a transaction of BeginShadow.
func (t *Txn) PutPendingXA(xid string, content []byte) {
	t.touchShadow()
	t.xa[xid] = append([]byte{}, content...)
}

// DeletePendingXA forgets a prepared transaction.
func (t *Txn) DeletePendingXA(xid string) {
	t.touchShadow()
	t.xa[xid] = nil
}

// Log adds an entry to the event log. Its time and database are filled in when they are zero.
func (t *Txn) Log(e Event) { t.events = append(t.events, e) }

func (tt *txnTable) writable() error {
	if tt.rec.State == Quarantined {
		return fmt.Errorf("table %s: %w: %s", tt.rec.Def.FullName(), ErrQuarantined, tt.rec.Reason)
	}
	return nil
}

// discard takes back the rows applied to the table: files go at once, spilled index entries with a range delete.
func (t *Txn) discard(tt *txnTable) error {
	_ = t.jobs.wait() // what could not be written fails the commit, not its undoing
	var err error
	for _, p := range tt.rows.parts {
		err = firstError(err, t.s.removeFile(t.s.path(p.rec.Path)))
	}
	if tt.rows.layer != 0 {
		err = firstError(err, t.s.dropLayer(tt.rows.layer))
	}
	tt.rows = rowChanges{}
	return err
}

// dropLayer removes a layer that no commit refers to.
func (s *Store) dropLayer(l LayerID) error {
	b := s.meta.NewBatch()
	prefix := layerKey(nil, l, nil)
	return firstError(b.DeleteRange(prefix, prefixEnd(prefix), nil), s.meta.commit(b, false))
}

// Abort takes everything back.
func (t *Txn) Abort() error {
	if t.done {
		return nil
	}
	var errs []error
	for _, tt := range t.order {
		errs = append(errs, t.discard(tt))
	}
	t.end()
	return errors.Join(errs...)
}

func (t *Txn) end() {
	t.done = true
	t.s.writers.Add(-1)
	for _, tt := range t.order {
		tt.lock.Unlock()
	}
	if t.lock != nil {
		t.lock.Unlock()
	}
}

// Commit makes the transaction durable and visible. On ErrDiskFull and on a cancelled ctx nothing has changed and
// Commit may be called again. On a FailedError the outcome is known when the store is opened again. On any other error
// nothing has changed and the transaction must be aborted.
func (t *Txn) Commit(ctx context.Context) (CommitSeq, error) {
	if t.done {
		return 0, errors.New("transaction has ended")
	}
	if t.failed != nil {
		return 0, t.failed
	}
	if err := t.jobs.wait(); err != nil {
		t.failed = err
		return 0, err
	}
	if err := t.syncDirs(); err != nil {
		return 0, err
	}
	seq, err := t.s.commit(ctx, func(c *commitment) error { return t.fill(c) })
	if err != nil {
		return 0, err
	}
	for _, tt := range t.order {
		if tt.load != nil {
			tt.load.swapped()
		}
	}
	t.end()
	return seq, nil
}

// syncDirs makes the names of new parts durable.
func (t *Txn) syncDirs() error {
	synced := map[string]bool{}
	for _, tt := range t.order {
		for _, p := range tt.rows.parts {
			dir := t.s.fs.PathDir(t.s.path(p.rec.Path))
			if synced[dir] {
				continue
			}
			synced[dir] = true
			if err := syncDir(t.s.fs, dir); err != nil {
				return fmt.Errorf("syncing %s: %w", dir, diskError(err))
			}
		}
	}
	return nil
}

// fill puts the transaction into a commitment.
func (t *Txn) fill(c *commitment) error {
	if c.ed.database(t.db) == nil {
		return fmt.Errorf("database %s: %w", t.dbName, ErrNotFound)
	}
	for _, tt := range t.order {
		if tt.dropped && tt.old != nil {
			if err := c.dropTable(c.ed.table(tt.id)); err != nil {
				return err
			}
		}
	}
	t.fillNames(c)
	for _, tt := range t.order {
		if tt.dropped {
			continue
		}
		if err := t.fillTable(c, tt); err != nil {
			return err
		}
	}
	return t.fillDatabase(c)
}

// fillNames gives the tables that were there before their new names. All old names go first: tables may have changed
// names with each other.
func (t *Txn) fillNames(c *commitment) {
	renamed := func(tt *txnTable) bool { return !tt.dropped && tt.old != nil && tt.old.rec.name() != tt.rec.name() }
	for _, tt := range t.order {
		if renamed(tt) {
			c.ed.dropName(t.db, tt.old.rec.name())
		}
	}
	for _, tt := range t.order {
		if renamed(tt) {
			c.ed.addName(t.db, tt.rec.name(), tt.id)
		}
	}
}

func (t *Txn) fillDatabase(c *commitment) error {
	var err error
	if t.config != nil {
		d := c.ed.database(t.db)
		d.rec.Config = t.config
		err = c.putDatabase(d)
	}
	if t.point != nil {
		err = firstError(err, c.putPoint(t.db, t.point))
	}
	err = firstError(err, t.fillXA(c))
	for _, e := range t.events {
		if e.Database == "" {
			e.Database = t.dbName
		}
		err = firstError(err, c.log(e))
	}
	return err
}

func (t *Txn) fillXA(c *commitment) error {
	owner := uint64(t.db)
	if t.shadow != 0 {
		owner = uint64(t.shadow)
		if tt := t.tables[t.shadow]; tt != nil && tt.dropped {
			return nil
		}
	}
	var err error
	for xid, content := range t.xa {
		key := append(makeKey(kindXA, owner), xid...)
		if content == nil {
			err = firstError(err, c.delete(key))
		} else {
			err = firstError(err, c.put(key, content))
		}
	}
	return err
}

func (t *Txn) fillTable(c *commitment, tt *txnTable) error {
	st := c.ed.table(tt.id)
	if st == nil {
		st = &tableState{id: tt.id, rec: tt.rec, idx: indexRecord{KeyEncoding: uniquekey.Encoding}}
		c.ed.addTable(st)
		if err := c.putIndex(st); err != nil {
			return err
		}
	}
	if tt.fresh && tt.old != nil {
		if err := firstError(c.dropRows(st), c.putIndex(st)); err != nil {
			return err
		}
		st.damage = nil
	}
	if tt.changed {
		st.rec = tt.rec
		if err := c.putTable(st); err != nil {
			return err
		}
		if tt.old != nil && tt.old.rec.Shadow && !tt.rec.Shadow {
			if err := c.deletePrefix(makeKey(kindXA, uint64(tt.id))); err != nil {
				return err
			}
		}
	}
	if tt.altered {
		if err := c.dropLoad(st); err != nil {
			return err
		}
	}
	if tt.load != nil {
		if err := tt.load.fill(c, st); err != nil {
			return err
		}
	}
	return tt.rows.fill(c, st)
}
