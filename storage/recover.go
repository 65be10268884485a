package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/storage/part"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// recovery reads the last commit back from the metadata store. It changes nothing before all of it was read.
type recovery struct {
	s     *Store
	st    *state
	homes map[HomeID]*home
	files map[string]bool // relative paths that records name
}

func (s *Store) recover() error {
	r := &recovery{s: s, st: &state{tables: map[TableID]*tableState{}}, homes: map[HomeID]*home{}, files: map[string]bool{}}
	steps := []struct {
		kind byte
		read func(key, value []byte) error
	}{
		{kindHead, r.head}, {kindIDs, r.ids}, {kindDatabase, r.database}, {kindPoint, r.point}, {kindTable, r.table},
		{kindIndex, r.index}, {kindLoad, r.load}, {kindPart, r.part}, {kindSegment, r.segment}, {kindDeadBase, r.deadBase}, {kindDeadDelta, r.deadDelta},
		{kindGarbage, r.garbage}, {kindEvent, r.event},
	}
	for _, step := range steps {
		if err := scanPrefix(s.meta, []byte{step.kind}, step.read); err != nil {
			return err
		}
	}
	r.sortHomes()
	r.checkFiles()
	s.head.Store(r.st)
	return errors.Join(r.removeOrphans(), r.removeLayers())
}

func (r *recovery) head(key, value []byte) error {
	var rec headRecord
	err := unframeJSON(key, value, &rec)
	r.st.seq = rec.Seq
	return err
}

func (r *recovery) ids(key, value []byte) error {
	var rec idsRecord
	err := unframeJSON(key, value, &rec)
	r.s.lastID, r.s.reservedID = rec.Reserved, rec.Reserved
	return err
}

func (r *recovery) database(key, value []byte) error {
	id, err := keyNumbers(key, 1)
	if err != nil {
		return err
	}
	d := &databaseState{id: DatabaseID(id[0]), tables: map[string]TableID{}}
	r.st.databases = append(r.st.databases, d)
	return unframeJSON(key, value, &d.rec)
}

func (r *recovery) point(key, value []byte) error {
	id, err := keyNumbers(key, 1)
	if err != nil {
		return err
	}
	payload, err := unframe(key, value)
	if err != nil {
		return err
	}
	d := r.st.database(DatabaseID(id[0]))
	if d == nil {
		return damaged(fmt.Sprintf("metadata record %q", key), "its database is missing")
	}
	d.point = bytes.Clone(payload)
	return nil
}

func (r *recovery) table(key, value []byte) error {
	id, err := keyNumbers(key, 1)
	if err != nil {
		return err
	}
	t := &tableState{id: TableID(id[0])}
	if err := unframeJSON(key, value, &t.rec); err != nil {
		return err
	}
	d := r.st.database(t.rec.Database)
	if d == nil || t.rec.Def == nil {
		return damaged(fmt.Sprintf("metadata record %q", key), "its database or its definition is missing")
	}
	if !t.rec.Shadow {
		d.tables[t.rec.Def.Name] = t.id
	}
	r.st.tables[t.id] = t
	return nil
}

// owner gives the table that a record of a table belongs to, and the other number in the key.
func (r *recovery) owner(key []byte, numbers int) (*tableState, uint64, error) {
	n, err := keyNumbers(key, numbers)
	if err != nil {
		return nil, 0, err
	}
	t := r.st.tables[TableID(n[0])]
	if t == nil {
		return nil, 0, damaged(fmt.Sprintf("metadata record %q", key), "its table is missing")
	}
	return t, n[numbers-1], nil
}

func (r *recovery) index(key, value []byte) error {
	t, _, err := r.owner(key, 1)
	if err != nil {
		return err
	}
	if err := unframeJSON(key, value, &t.idx); err != nil {
		return err
	}
	if t.idx.KeyEncoding != uniquekey.Encoding {
		return fmt.Errorf("%w: the keys of table %s have encoding %d", ErrNewerFormat, t.rec.Def.FullName(), t.idx.KeyEncoding)
	}
	return nil
}

// load reads one checkpoint of a durable load; those of one load stand in the order in which they were made.
func (r *recovery) load(key, value []byte) error {
	t, _, err := r.owner(key, 3)
	if err != nil {
		return err
	}
	var rec checkpointRecord
	if err := unframeJSON(key, value, &rec); err != nil {
		return err
	}
	if rec.KeyEncoding != uniquekey.Encoding {
		return fmt.Errorf("%w: the keys of a copy of table %s have encoding %d", ErrNewerFormat, t.rec.Def.FullName(), rec.KeyEncoding)
	}
	n, err := keyNumbers(key, 3)
	if err != nil {
		return err
	}
	gen := Generation(n[1])
	if t.load != nil && t.load.gen != gen {
		return damaged(fmt.Sprintf("metadata record %q", key), "the table has two bulk loads")
	}
	t.load = t.load.with(gen, rec)
	for _, p := range rec.Pieces {
		r.files[p.Path], r.files[p.IndexPath] = true, true
	}
	return nil
}

func (r *recovery) part(key, value []byte) error {
	t, id, err := r.owner(key, 2)
	if err != nil {
		return err
	}
	p := &partState{home: home{id: HomeID(id)}}
	if err := unframeJSON(key, value, &p.rec); err != nil {
		return err
	}
	p.dead = &deadRows{rows: int(p.rec.Info.Rows)}
	t.parts = append(t.parts, p)
	r.homes[p.id] = &p.home
	r.files[p.rec.Path] = true
	return nil
}

func (r *recovery) segment(key, value []byte) error {
	t, id, err := r.owner(key, 2)
	if err != nil {
		return err
	}
	payload, err := unframe(key, value)
	if err != nil {
		return err
	}
	// The value is valid only during the call, while the batch may point into it.
	batch, err := part.DecodeSegment(bytes.Clone(payload), t.rec.Def)
	if err != nil {
		return fmt.Errorf("table %s, segment %d: %w", t.rec.Def.FullName(), id, err)
	}
	g := new(segmentState)
	*g = newSegmentState(home{id: HomeID(id), dead: &deadRows{rows: batch.Rows()}}, batch)
	t.segments = append(t.segments, g)
	r.st.segmentBytes += g.bytes
	r.homes[g.id] = &g.home
	return nil
}

// deadSet reads a set of dead rows; seq is 0 for a base.
func (r *recovery) deadSet(key, value []byte, numbers int) (h *home, seq CommitSeq, rows []uint32, err error) {
	n, err := keyNumbers(key, numbers)
	if err != nil {
		return nil, 0, nil, err
	}
	if h = r.homes[HomeID(n[0])]; h == nil {
		return nil, 0, nil, damaged(fmt.Sprintf("metadata record %q", key), "its part or segment is missing")
	}
	payload, err := unframe(key, value)
	if err != nil {
		return nil, 0, nil, err
	}
	rows, err = uniquekey.DecodeRows(payload, h.dead.rows)
	if err != nil {
		return nil, 0, nil, damaged(fmt.Sprintf("metadata record %q", key), err.Error())
	}
	if numbers > 1 {
		seq = CommitSeq(n[1])
	}
	return h, seq, rows, nil
}

func (r *recovery) deadBase(key, value []byte) error {
	h, _, rows, err := r.deadSet(key, value, 1)
	if err != nil {
		return err
	}
	h.baseCount = len(rows)
	return r.die(h, key, rows)
}

func (r *recovery) deadDelta(key, value []byte) error {
	h, _, rows, err := r.deadSet(key, value, 2)
	if err != nil {
		return err
	}
	h.deltas++
	h.deltaCount += len(rows)
	return r.die(h, key, rows)
}

func (r *recovery) die(h *home, key []byte, rows []uint32) error {
	d := h.dead
	d.own()
	d.flatSeq = r.st.seq
	for _, row := range rows {
		if d.flat.bits.Has(row) {
			return damaged(fmt.Sprintf("metadata record %q", key), "a row dies twice")
		}
		d.flat.bits.Set(row)
	}
	h.count += len(rows)
	return nil
}

func (r *recovery) garbage(key, value []byte) error {
	var g garbageRecord
	err := unframeJSON(key, value, &g)
	r.files[g.Path] = true
	return err
}

func (r *recovery) event(key, _ []byte) error {
	n, err := keyNumbers(key, 1)
	if err != nil {
		return err
	}
	l := &r.s.events
	if l.last == 0 {
		l.first = n[0]
	}
	l.last = n[0]
	return nil
}

func (r *recovery) sortHomes() {
	slices.SortFunc(r.st.databases, func(a, b *databaseState) int { return cmp.Compare(a.id, b.id) })
	for _, t := range r.st.tables {
		slices.SortFunc(t.parts, func(a, b *partState) int { return cmp.Compare(a.id, b.id) })
		slices.SortFunc(t.segments, func(a, b *segmentState) int { return cmp.Compare(a.id, b.id) })
	}
}

// checkFiles notes tables with a missing or cut file. They can't be read; the others can.
func (r *recovery) checkFiles() {
	for _, t := range r.st.tables {
		for _, p := range t.parts {
			if err := r.s.checkFile(p.rec.Path, p.rec.Info.Bytes); err != nil && t.damage == nil {
				t.damage = err
				r.s.opt.Logger.Error("storage: table is damaged", "table", t.rec.Def.FullName(), "error", err)
			}
		}
	}
}

// checkFile checks that a file, named relative to the data directory, is there with its size.
func (s *Store) checkFile(relative string, size int64) error {
	path := s.path(relative)
	info, err := s.fs.Stat(path)
	switch {
	case isNotExist(err):
		return damaged(path, "the file is missing")
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case info.Size() != size:
		return damaged(path, fmt.Sprintf("the file has %d bytes instead of %d", info.Size(), size))
	}
	return nil
}

// markDamaged notes what is wrong with a table's file, so that it is no longer read.
func (s *Store) markDamaged(id TableID, damage error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	ed := edit(s.head.Load())
	ed.next.seq--
	if t := ed.table(id); t != nil {
		t.damage = damage
		s.head.Store(&ed.next)
		s.opt.Logger.Error("storage: table is damaged", "table", t.rec.Def.FullName(), "error", damage)
	}
}
