package storage

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// CreateDatabase registers a database, durably. config is the caller's own and opaque.
func (s *Store) CreateDatabase(ctx context.Context, name string, config []byte) (DatabaseID, error) {
	id, err := s.nextID()
	if err != nil {
		return 0, err
	}
	stream, err := s.nextID()
	if err != nil {
		return 0, err
	}
	d := &databaseState{
		id: DatabaseID(id), tables: map[string]TableID{},
		rec: databaseRecord{Name: name, Stream: StreamID(stream), Config: bytes.Clone(config)},
	}
	_, err = s.commit(ctx, func(c *commitment) error {
		if s.head.Load().databaseByName(name) != nil {
			return fmt.Errorf("database %s: %w", name, ErrExists)
		}
		c.ed.addDatabase(d)
		return c.putDatabase(d)
	})
	return d.id, err
}

// UpdateConfig replaces a database's configuration.
func (s *Store) UpdateConfig(ctx context.Context, id DatabaseID, config []byte) error {
	_, err := s.commit(ctx, func(c *commitment) error {
		d := c.ed.database(id)
		if d == nil {
			return fmt.Errorf("database %d: %w", id, ErrNotFound)
		}
		d.rec.Config = bytes.Clone(config)
		return c.putDatabase(d)
	})
	return err
}

// DropDatabase takes a database away with all its tables. It waits for the database's open transaction to end.
func (s *Store) DropDatabase(ctx context.Context, id DatabaseID) error {
	lock := s.transactionLock(id)
	lock.Lock()
	defer lock.Unlock()
	st := s.head.Load()
	if st.database(id) == nil {
		return fmt.Errorf("database %d: %w", id, ErrNotFound)
	}
	tables := st.tablesOf(id) // none can come: only the holder of the database's lock makes tables
	for _, table := range tables {
		l := s.tableLock(table)
		l.Lock()
		defer l.Unlock()
	}
	_, err := s.commit(ctx, func(c *commitment) error {
		for _, table := range tables {
			if c.ed.table(table) == nil {
				continue // a shadow that its own transaction has dropped
			}
			if err := c.dropTable(c.ed.table(table)); err != nil {
				return err
			}
		}
		c.ed.dropDatabase(id)
		err := firstError(c.delete(makeKey(kindDatabase, uint64(id))), c.delete(makeKey(kindPoint, uint64(id))))
		return firstError(err, c.deletePrefix(makeKey(kindXA, uint64(id))))
	})
	s.work.kick()
	return err
}

// Databases lists the databases by name.
func (s *Store) Databases() []DatabaseInfo {
	var out []DatabaseInfo
	for _, d := range s.head.Load().databases {
		out = append(out, d.info())
	}
	slices.SortFunc(out, func(a, b DatabaseInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Database finds a database by name. ErrNotFound when there is none.
func (s *Store) Database(name string) (DatabaseInfo, error) {
	d := s.head.Load().databaseByName(name)
	if d == nil {
		return DatabaseInfo{}, fmt.Errorf("database %s: %w", name, ErrNotFound)
	}
	return d.info(), nil
}

// Tables lists a database's tables by name, without shadows.
func (s *Store) Tables(id DatabaseID) []TableInfo {
	return s.head.Load().tableInfos(id)
}

func (s *state) tableInfos(id DatabaseID) []TableInfo {
	d := s.database(id)
	if d == nil {
		return nil
	}
	out := make([]TableInfo, 0, len(d.tables))
	for _, t := range d.tables {
		out = append(out, s.tables[t].info())
	}
	slices.SortFunc(out, func(a, b TableInfo) int { return cmp.Compare(a.Def.Name, b.Def.Name) })
	return out
}

// Table finds a table by name; shadows have none. ErrNotFound when there is none.
func (s *Store) Table(id DatabaseID, name string) (TableInfo, error) {
	st := s.head.Load()
	if d := st.database(id); d != nil {
		if t, ok := d.tables[name]; ok {
			return st.tables[t].info(), nil
		}
	}
	return TableInfo{}, fmt.Errorf("table %s: %w", name, ErrNotFound)
}

// Seq is the number of the newest commit.
func (s *Store) Seq() CommitSeq { return s.head.Load().seq }

// PendingXA gives the content kept for a prepared transaction of a database. ErrNotFound when there is none.
func (s *Store) PendingXA(id DatabaseID, xid string) ([]byte, error) {
	return s.pendingXA(uint64(id), xid)
}

// pendingXA reads what is kept under a database or a shadow: no identity is both.
func (s *Store) pendingXA(owner uint64, xid string) ([]byte, error) {
	key := append(makeKey(kindXA, owner), xid...)
	value, closer, err := s.meta.Get(key)
	if err == pebble.ErrNotFound {
		return nil, fmt.Errorf("prepared transaction %q: %w", xid, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("prepared transaction %q: %w", xid, err)
	}
	payload, err := unframe(key, value)
	content := bytes.Clone(payload)
	return content, firstError(err, closer.Close())
}

// PendingXAs lists the ids of the prepared transactions that are kept.
func (s *Store) PendingXAs(id DatabaseID) ([]string, error) {
	var xids []string
	prefix := makeKey(kindXA, uint64(id))
	err := scanPrefix(s.meta, prefix, func(key, _ []byte) error {
		xids = append(xids, string(key[len(prefix):]))
		return nil
	})
	return xids, err
}
