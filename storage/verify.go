package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/storage/part"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Report is what Verify found.
type Report struct {
	Seq              CommitSeq
	Databases        int
	Tables           int
	Parts, Segments  int
	Checkpoints      int // of bulk loads that are under way
	Rows, IndexEntry int64
	Bytes            int64 // of the parts' files, all read
	// Problems has one sentence for each fault; none means that the store is sound.
	Problems []string
}

// OK tells that no fault was found.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

func (r *Report) String() string {
	head := fmt.Sprintf("commit %d: %d databases, %d tables, %d parts (%d bytes), %d segments, %d rows, %d index entries",
		r.Seq, r.Databases, r.Tables, r.Parts, r.Bytes, r.Segments, r.Rows, r.IndexEntry)
	if r.OK() {
		return head + ": ok"
	}
	return head + ":\n" + strings.Join(r.Problems, "\n")
}

// Verify reads everything back and checks it, while the store goes on working: files against records (both ways, sizes,
// checksums), every part and segment, the records of dead rows, the key index against the rows in both directions, and
// so the uniqueness of keys. It takes eight bytes of memory a row of the largest table. The error is only about reading
// at all; what is wrong stands in the report.
func (s *Store) Verify(ctx context.Context) (Report, error) {
	s.commitMu.Lock()
	base := s.pinHead()
	snapshot := s.meta.NewSnapshot()
	s.commitMu.Unlock()
	defer s.unpin(base.seq)
	v := &verifier{s: s, st: base, r: snapshot, report: Report{Seq: base.seq, Databases: len(base.databases)}}
	err := v.run(ctx)
	return v.report, firstError(err, snapshot.Close())
}

type verifier struct {
	s      *Store
	st     *state
	r      *pebble.Snapshot
	report Report
}

func (v *verifier) problem(format string, args ...any) {
	v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
}

// note records damage as a problem and gives back any other error.
func (v *verifier) note(what string, err error) error {
	var damage *DamageError
	if errors.As(err, &damage) {
		v.problem("%s: %v", what, err)
		return nil
	}
	return err
}

func (v *verifier) run(ctx context.Context) error {
	ids := make([]TableID, 0, len(v.st.tables))
	for id := range v.st.tables {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		t := v.st.tables[id]
		v.report.Tables++
		if err := v.note("table "+t.rec.Def.FullName(), v.table(ctx, t)); err != nil {
			return err
		}
	}
	if err := v.note("records", v.records()); err != nil {
		return err
	}
	return v.files()
}

// homeCheck has, for one home, the hash of the key by which the index knows each row; 0: it does not.
type homeCheck struct {
	home *home
	keys []uint64
	dead uniquekey.Bitset
}

func keyHash(key []byte) uint64 { return xxhash.Sum64(key) | 1 }

func (v *verifier) table(ctx context.Context, t *tableState) error {
	checks := map[HomeID]*homeCheck{}
	for i := range t.parts {
		v.addCheck(checks, &t.parts[i].home)
	}
	for i := range t.segments {
		v.addCheck(checks, &t.segments[i].home)
	}
	if err := v.index(ctx, t, checks); err != nil {
		return err
	}
	name := t.rec.Def.FullName()
	for _, g := range t.segments {
		v.report.Segments++
		v.rows(name, checks[g.id], 0, g.batch)
		if err := v.segment(t, g); err != nil {
			return err
		}
	}
	for _, p := range t.parts {
		v.report.Parts++
		v.report.Bytes += p.rec.Info.Bytes
		if err := v.note("table "+name, v.part(ctx, t, p, checks[p.id])); err != nil {
			return err
		}
	}
	return v.load(ctx, t)
}

func (v *verifier) addCheck(checks map[HomeID]*homeCheck, h *home) {
	c := &homeCheck{home: h, keys: make([]uint64, h.dead.rows)}
	if set := h.dead.at(v.st.seq); set != nil {
		c.dead = slices.Clone(set.bits) // while it is held: a later commit may change it in place
		h.dead.release(set)
	}
	if n := c.dead.Count(); n != h.count {
		v.problem("home %d: %d rows are dead, the count says %d", h.id, n, h.count)
	}
	v.report.Rows += int64(h.dead.rows - h.count)
	checks[h.id] = c
}

// index checks that each entry leads to a live row, no two to the same.
func (v *verifier) index(ctx context.Context, t *tableState, checks map[HomeID]*homeCheck) error {
	x := newIndex(t.rec.Generation, &t.idx)
	name := t.rec.Def.FullName()
	n := 0
	return x.each(v.r, func(key []byte, loc found) error {
		if n++; n%8192 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v.report.IndexEntry++
		c := checks[HomeID(loc.Home)]
		switch {
		case c == nil:
			v.problem("table %s: the key index names home %d, which the table does not have", name, loc.Home)
		case int(loc.Row) >= len(c.keys):
			v.problem("table %s: the key index names row %d of home %d, which has %d", name, loc.Row, loc.Home, len(c.keys))
		case c.dead.Has(loc.Row):
			v.problem("table %s: the key index names dead row %d of home %d", name, loc.Row, loc.Home)
		case c.keys[loc.Row] != 0:
			v.problem("table %s: two keys of the index name row %d of home %d", name, loc.Row, loc.Home)
		default:
			c.keys[loc.Row] = keyHash(key)
		}
		return nil
	})
}

// rows checks that the index has each live row under its own key.
func (v *verifier) rows(table string, c *homeCheck, first int, b *column.Batch) {
	for i := range b.Rows() {
		row := uint32(first + i)
		if int(row) >= len(c.keys) {
			v.problem("table %s: home %d has more rows than its record says (%d)", table, c.home.id, len(c.keys))
			return
		}
		if c.dead.Has(row) {
			continue
		}
		switch c.keys[row] {
		case 0:
			v.problem("table %s: live row %d of home %d is not in the key index", table, row, c.home.id)
		case keyHash(b.Keys.At(i)):
		default:
			v.problem("table %s: the key index has row %d of home %d under another key", table, row, c.home.id)
		}
	}
}

// segment checks the stored form against the rows in memory.
func (v *verifier) segment(t *tableState, g *segmentState) error {
	key := makeKey(kindSegment, uint64(t.id), uint64(g.id))
	value, closer, err := v.r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return damaged(fmt.Sprintf("metadata record %q", key), "it is missing")
	}
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	payload, err := unframe(key, value)
	if err != nil {
		return err
	}
	b, err := part.DecodeSegment(slices.Clone(payload), t.rec.Def)
	if err != nil {
		return err
	}
	if b.Rows() != g.batch.Rows() {
		v.problem("table %s: segment %d has %d rows stored and %d in memory", t.rec.Def.FullName(), g.id, b.Rows(), g.batch.Rows())
		return nil
	}
	for i := range b.Rows() {
		if string(b.Keys.At(i)) != string(g.batch.Keys.At(i)) {
			v.problem("table %s: segment %d has another key stored than in memory in row %d", t.rec.Def.FullName(), g.id, i)
		}
	}
	return nil
}

func (v *verifier) part(ctx context.Context, t *tableState, p *partState, c *homeCheck) error {
	path := v.s.path(p.rec.Path)
	if err := v.s.checkFile(p.rec.Path, p.rec.Info.Bytes); err != nil {
		return err
	}
	if err := part.Verify(v.s.fs, path, p.rec.Info); err != nil {
		return err
	}
	r, err := part.Open(v.s.fs, path)
	if err != nil {
		return err
	}
	name := t.rec.Def.FullName()
	row := 0
	var last []byte
	err = r.Read(ctx, t.rec.Def, func(b *column.Batch) error {
		v.rows(name, c, row, b)
		for i := range b.Keys.Len() {
			key := b.Keys.At(i)
			if row+i > 0 && string(last) >= string(key) {
				v.problem("table %s: row %d of %s is out of key order", name, row+i, path)
			}
			last = append(last[:0], key...)
		}
		row += b.Rows()
		return nil
	})
	if err == nil && int64(row) != p.rec.Info.Rows {
		v.problem("table %s: %s has %d rows, the record says %d", name, path, row, p.rec.Info.Rows)
	}
	return firstError(err, r.Close())
}

// records reads the catalog of the snapshot a second time, as an open would, and compares it with the state in memory.
func (v *verifier) records() error {
	counts := map[byte]int{}
	for _, kind := range []byte{kindDatabase, kindTable, kindIndex, kindPart, kindSegment, kindLoad, kindDeadBase, kindDeadDelta, kindXA, kindEvent, kindPoint} {
		err := scanPrefix(v.r, []byte{kind}, func(key, value []byte) error {
			counts[kind]++
			_, err := unframe(key, value)
			return err
		})
		if err := v.note("records", err); err != nil {
			return err
		}
	}
	v.compare("databases", counts[kindDatabase], v.report.Databases)
	v.compare("tables", counts[kindTable], v.report.Tables)
	v.compare("index records", counts[kindIndex], v.report.Tables)
	v.compare("parts", counts[kindPart], v.report.Parts)
	v.compare("segments", counts[kindSegment], v.report.Segments)
	v.compare("checkpoints of bulk loads", counts[kindLoad], v.report.Checkpoints)
	v.names()
	return v.deadRecords()
}

// names checks that each table but the shadows is found by its name.
func (v *verifier) names() {
	for _, d := range v.st.databases {
		named := 0
		for _, id := range v.st.tablesOf(d.id) {
			t := v.st.tables[id]
			if t.rec.Shadow {
				continue
			}
			named++
			if d.tables[t.rec.Def.Name] != id {
				v.problem("table %s is not found by its name", t.rec.Def.FullName())
			}
		}
		v.compare("names in database "+d.rec.Name, named, len(d.tables))
	}
}

// deadRecords checks that the stored sets of dead rows have as many rows as the state in memory says.
func (v *verifier) deadRecords() error {
	stored := map[HomeID]int{}
	for kind, numbers := range map[byte]int{kindDeadBase: 1, kindDeadDelta: 2} {
		err := scanPrefix(v.r, []byte{kind}, func(key, value []byte) error {
			n, err := keyNumbers(key, numbers)
			if err != nil {
				return err
			}
			payload, err := unframe(key, value)
			if err != nil {
				return err
			}
			rows, err := uniquekey.DecodeRows(payload, 1<<32)
			stored[HomeID(n[0])] += len(rows)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, t := range v.st.tables {
		for _, p := range t.parts {
			v.compare(fmt.Sprintf("dead rows of part %d", p.id), stored[p.id], p.count)
		}
		for _, g := range t.segments {
			v.compare(fmt.Sprintf("dead rows of segment %d", g.id), stored[g.id], g.count)
		}
	}
	return nil
}

func (v *verifier) compare(what string, stored, memory int) {
	if stored != memory {
		v.problem("%s: %d stored, %d in memory", what, stored, memory)
	}
}

// files checks that no file of a part or a bulk load is there that no record names. While transactions, loads or background work may be
// writing files this can't be told; then it is left out.
func (v *verifier) files() error {
	known := map[string]bool{}
	for _, t := range v.st.tables {
		for _, p := range t.parts {
			known[p.rec.Path] = true
		}
		_ = t.load.each(func(p *pieceRecord) error {
			known[p.Path], known[p.IndexPath] = true, true
			return nil
		})
	}
	err := scanPrefix(v.r, []byte{kindGarbage}, func(key, value []byte) error {
		var g garbageRecord
		err := unframeJSON(key, value, &g)
		known[g.Path] = true
		return err
	})
	if err := v.note("records", err); err != nil {
		return err
	}
	var strays []string
	look := func(relative string) error {
		if !known[relative] {
			strays = append(strays, v.s.path(relative))
		}
		return nil
	}
	err = firstError(v.s.walkParts(look), v.s.walkLoads(look))
	if err != nil || v.s.writers.Load() > 0 || v.s.head.Load().seq != v.st.seq {
		return err
	}
	for _, path := range strays {
		v.problem("file %s belongs to nothing", path)
	}
	return nil
}

// each gives all entries of the index, remaps resolved, each key once.
func (x *index) each(r pebble.Reader, fn func(key []byte, loc found) error) error {
	c := newCursor(r, x)
	prefixes := [][]byte{baseKey(nil, x.gen, nil)}
	for _, l := range x.layers {
		prefixes = append(prefixes, layerKey(nil, l, nil))
	}
	for n, prefix := range prefixes {
		err := scanPrefix(r, prefix, func(key, value []byte) error {
			key = key[indexPrefixLen:]
			if n > 0 || len(x.layers) > 0 {
				first, err := c.firstIn(key)
				if err != nil || first != n {
					return err // a newer layer has the key
				}
			}
			if len(value) == 0 {
				return nil
			}
			loc, err := c.find(key)
			if err != nil {
				return err
			}
			return fn(key, loc)
		})
		if err != nil {
			return firstError(err, c.close())
		}
	}
	return c.close()
}

// firstIn tells which of the base (0) and the layers (1.., newest first) has the key's newest entry.
func (c *cursor) firstIn(key []byte) (int, error) {
	for i := range c.layers {
		_, ok, err := c.layers[i].find(c.r, key, true)
		if err != nil || ok {
			return i + 1, err
		}
	}
	return 0, nil
}
