package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// removeOrphans removes files that no record names: those of transactions, loads, flushes and merges that a crash cut
// off.
func (r *recovery) removeOrphans() error {
	remove := func(relative string) error {
		if r.files[relative] {
			return nil
		}
		return r.s.removeFile(r.s.path(relative))
	}
	err := firstError(r.s.walkLoads(remove), r.s.walkParts(remove))
	return firstError(err, r.s.removeDirs(r.st, func(id TableID) bool { return r.st.tables[id] == nil }))
}

// noteDropped notes the tables that a commit took away. Nothing but a load that does not know it yet makes files for
// them.
func (s *Store) noteDropped(ed *editor) {
	s.dirMu.Lock()
	defer s.dirMu.Unlock()
	for id := range ed.tables {
		if ed.next.tables[id] == nil {
			s.dropped[id] = true
		}
	}
}

// removeDroppedDirs removes the directories of dropped tables once they are empty.
func (s *Store) removeDroppedDirs() error {
	s.dirMu.Lock()
	defer s.dirMu.Unlock()
	if len(s.dropped) == 0 {
		return nil
	}
	waiting := map[TableID]bool{}
	err := s.removeDirs(s.head.Load(), func(id TableID) bool {
		if s.dropped[id] {
			waiting[id] = true
		}
		return s.dropped[id]
	})
	if err == nil {
		s.dropped = waiting
	}
	return err
}

// removeDirs removes the empty directories of tables that are gone, and of databases that a state does not have.
func (s *Store) removeDirs(st *state, gone func(TableID) bool) error {
	return s.walkDatabases(func(db string, tables []string) error {
		left := len(tables)
		for _, dir := range tables {
			if id, ok := s.idOf(dir); !ok || !gone(TableID(id)) {
				continue
			}
			removed, err := s.removeEmpty(dir)
			if err != nil {
				return err
			}
			if removed {
				left--
			}
		}
		if id, ok := s.idOf(db); ok && left == 0 && st.database(DatabaseID(id)) == nil {
			if _, err := s.removeEmpty(db); err != nil {
				return err
			}
		}
		return nil
	})
}

// walkDatabases calls fn for each directory of a database below the parts directory, with those of its tables.
func (s *Store) walkDatabases(fn func(db string, tables []string) error) error {
	databases, err := s.list(partsName)
	if err != nil {
		return err
	}
	for _, db := range databases {
		tables, err := s.list(db)
		if err != nil {
			return err
		}
		if err := fn(db, tables); err != nil {
			return err
		}
	}
	return nil
}

// idOf gives the identity at the beginning of a directory's name; see safeName.
func (s *Store) idOf(dir string) (uint64, bool) {
	digits, _, ok := strings.Cut(s.fs.PathBase(dir), "-")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	return id, err == nil
}

// removeEmpty removes a directory, unless something is in it.
func (s *Store) removeEmpty(dir string) (bool, error) {
	info, err := s.fs.Stat(s.path(dir))
	if err != nil || !info.IsDir() {
		return false, err
	}
	names, err := s.list(dir)
	if err != nil || len(names) > 0 {
		return false, err
	}
	delete(s.madeDirs, dir)
	return true, s.removeFile(s.path(dir))
}

// walkLoads calls fn for each file of the directory of index entries on their way.
func (s *Store) walkLoads(fn func(relative string) error) error {
	files, err := s.list(loadName)
	for _, relative := range files {
		err = firstError(err, fn(relative))
	}
	return err
}

// walkParts calls fn for each part's file below the parts directory. What others put there is left alone.
func (s *Store) walkParts(fn func(relative string) error) error {
	return s.walkDatabases(func(_ string, tables []string) error {
		for _, table := range tables {
			files, err := s.list(table)
			if err != nil {
				return err
			}
			for _, path := range files {
				if !strings.HasSuffix(path, ".parquet") {
					continue
				}
				if err := fn(path); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// list gives the relative paths of what is in a directory; nothing when it is a file.
func (s *Store) list(relative string) ([]string, error) {
	info, err := s.fs.Stat(s.path(relative))
	if err != nil || !info.IsDir() {
		return nil, err
	}
	names, err := s.fs.List(s.path(relative))
	for i := range names {
		names[i] = s.fs.PathJoin(relative, names[i])
	}
	return names, err
}

// removeLayers removes index entries of generations and layers that no record names.
func (r *recovery) removeLayers() error {
	used := map[byte]map[uint64]bool{kindBase: {}, kindLayer: {}}
	for _, t := range r.st.tables {
		used[kindBase][uint64(t.rec.Generation)] = true
		for _, l := range t.idx.Layers {
			used[kindLayer][uint64(l)] = true
		}
		for _, m := range t.idx.Remaps {
			used[kindLayer][uint64(m.Layer)] = true
		}
	}
	b := r.s.meta.NewBatch()
	for kind, ids := range used {
		if err := r.removeUnused(kind, ids, b); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	if b.Empty() {
		return b.Close()
	}
	return r.s.meta.commit(b, true)
}

func (r *recovery) removeUnused(kind byte, used map[uint64]bool, b *pebble.Batch) error {
	it, err := r.s.meta.NewIter(prefixOptions([]byte{kind}))
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; {
		if len(it.Key()) < indexPrefixLen {
			err = damaged(fmt.Sprintf("metadata key %q", it.Key()), "it is too short")
			break
		}
		id := binary.BigEndian.Uint64(it.Key()[1:])
		prefix := makeKey(kind, id)
		if !used[id] {
			err = b.DeleteRange(prefix, prefixEnd(prefix), nil)
		}
		ok = it.SeekGE(prefixEnd(prefix))
	}
	return firstError(err, firstError(it.Error(), it.Close()))
}
