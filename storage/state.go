package storage

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
)

// state is everything that one commit shows. It is immutable once published; an [editor] makes the next one.
type state struct {
	seq       CommitSeq
	databases []*databaseState // by ID
	tables    map[TableID]*tableState
	// segmentBytes is the memory of all segments.
	segmentBytes int64
}

type databaseState struct {
	id     DatabaseID
	rec    databaseRecord
	point  []byte
	tables map[string]TableID // without shadows
}

type tableState struct {
	id  TableID
	rec tableRecord
	idx indexRecord
	// parts and segments are the homes with live rows, by ID.
	parts    []*partState
	segments []*segmentState
	// load is the durable bulk load of the table, nil when there is none.
	load *loadState
	// damage is what was found wrong with a file of the table since the store was opened.
	damage error
}

// tableRecord is the durable form of a table's description.
type tableRecord struct {
	Database   DatabaseID
	Generation Generation
	State      TableState
	Reason     string `json:",omitempty"`
	Point      []byte `json:",omitempty"`
	Window     []byte `json:",omitempty"`
	Shadow     bool   `json:",omitempty"`
	Def        *schema.Table
}

// name is the table's name among those of its database; a shadow has none.
func (r *tableRecord) name() string {
	if r.Shadow {
		return ""
	}
	return r.Def.Name
}

// home is the part of partState and segmentState that commits change.
type home struct {
	id    HomeID
	dead  *deadRows
	count int // dead rows at this state
	// baseCount and deltas describe the durable row sets: rows in the base, number of deltas and rows in them.
	baseCount, deltas, deltaCount int
}

type partState struct {
	home
	rec partRecord
}

// partRecord is the durable form of a part's description. Path is relative to the data directory.
type partRecord struct {
	Path string
	Info part.Info
}

type segmentState struct {
	home
	batch *column.Batch // mapped to the table's current definition
	bytes int64         // in memory
	// minKey and maxKey are the smallest and largest key of the rows.
	minKey, maxKey []byte
}

func newSegmentState(h home, batch *column.Batch) segmentState {
	s := segmentState{home: h, batch: batch, bytes: segmentMemory(batch)}
	for i := range batch.Keys.Len() {
		key := batch.Keys.At(i)
		if i == 0 || bytes.Compare(key, s.minKey) < 0 {
			s.minKey = key
		}
		if i == 0 || bytes.Compare(key, s.maxKey) > 0 {
			s.maxKey = key
		}
	}
	return s
}

func (p *partState) alive() int64    { return p.rec.Info.Rows - int64(p.count) }
func (s *segmentState) alive() int64 { return int64(s.batch.Rows() - s.count) }

func (t *tableState) rows() int64 {
	var n int64
	for _, p := range t.parts {
		n += p.alive()
	}
	for _, s := range t.segments {
		n += s.alive()
	}
	return n
}

func (t *tableState) info() TableInfo {
	info := TableInfo{
		ID: t.id, Database: t.rec.Database, Generation: t.rec.Generation, Def: t.rec.Def, State: t.rec.State, Reason: t.rec.Reason,
		Point: t.rec.Point, Window: t.rec.Window, Shadow: t.rec.Shadow, Rows: t.rows(), Parts: len(t.parts), Segments: len(t.segments), Damage: t.damage,
	}
	for _, p := range t.parts {
		info.Bytes += p.rec.Info.Bytes
	}
	return info
}

func (s *state) database(id DatabaseID) *databaseState {
	i, ok := slices.BinarySearchFunc(s.databases, id, func(d *databaseState, id DatabaseID) int { return cmp.Compare(d.id, id) })
	if !ok {
		return nil
	}
	return s.databases[i]
}

// tablesOf gives the tables of a database, shadows among them.
func (s *state) tablesOf(id DatabaseID) []TableID {
	var ids []TableID
	for _, t := range s.tables {
		if t.rec.Database == id {
			ids = append(ids, t.id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (s *state) databaseByName(name string) *databaseState {
	for _, d := range s.databases {
		if d.rec.Name == name {
			return d
		}
	}
	return nil
}

func (d *databaseState) info() DatabaseInfo {
	return DatabaseInfo{ID: d.id, Stream: d.rec.Stream, Name: d.rec.Name, Config: d.rec.Config, Point: d.point}
}

// editor makes the state after a commit from the one before. What it hands out to be changed is copied once; nothing
// that the old state refers to is changed.
type editor struct {
	next   state
	dbs    map[DatabaseID]*databaseState
	tables map[TableID]*tableState
	homes  map[HomeID]*home
	named  map[DatabaseID]bool // whose map of names was copied
}

func edit(old *state) *editor {
	return &editor{
		next:   state{seq: old.seq + 1, databases: slices.Clone(old.databases), tables: maps.Clone(old.tables), segmentBytes: old.segmentBytes},
		dbs:    map[DatabaseID]*databaseState{},
		tables: map[TableID]*tableState{},
		homes:  map[HomeID]*home{},
		named:  map[DatabaseID]bool{},
	}
}

// database gives a database to be changed, nil when there is none.
func (e *editor) database(id DatabaseID) *databaseState {
	if d := e.dbs[id]; d != nil {
		return d
	}
	i := slices.IndexFunc(e.next.databases, func(d *databaseState) bool { return d.id == id })
	if i < 0 {
		return nil
	}
	d := *e.next.databases[i]
	e.dbs[id], e.next.databases[i] = &d, &d
	return &d
}

func (e *editor) addDatabase(d *databaseState) {
	e.dbs[d.id] = d
	e.next.databases = append(e.next.databases, d)
	slices.SortFunc(e.next.databases, func(a, b *databaseState) int { return cmp.Compare(a.id, b.id) })
}

func (e *editor) dropDatabase(id DatabaseID) {
	e.next.databases = slices.DeleteFunc(e.next.databases, func(d *databaseState) bool { return d.id == id })
}

// names gives the names of a database's tables, to be changed.
func (e *editor) names(id DatabaseID) map[string]TableID {
	d := e.database(id)
	if !e.named[id] {
		d.tables, e.named[id] = maps.Clone(d.tables), true
	}
	return d.tables
}

// table gives a table to be changed, nil when there is none.
func (e *editor) table(id TableID) *tableState {
	if t := e.tables[id]; t != nil {
		return t
	}
	old := e.next.tables[id]
	if old == nil {
		return nil
	}
	t := *old
	t.parts, t.segments = slices.Clone(t.parts), slices.Clone(t.segments)
	t.idx.Layers, t.idx.Remaps = slices.Clone(t.idx.Layers), slices.Clone(t.idx.Remaps)
	e.tables[id], e.next.tables[id] = &t, &t
	return &t
}

func (e *editor) addTable(t *tableState) {
	e.tables[t.id], e.next.tables[t.id] = t, t
	e.addName(t.rec.Database, t.rec.name(), t.id)
}

func (e *editor) dropTable(t *tableState) {
	delete(e.next.tables, t.id)
	e.dropName(t.rec.Database, t.rec.name())
}

func (e *editor) addName(db DatabaseID, name string, id TableID) {
	if name != "" {
		e.names(db)[name] = id
	}
}

func (e *editor) dropName(db DatabaseID, name string) {
	if name != "" {
		delete(e.names(db), name)
	}
}

// home gives the home of t with the id, to be changed; nil when there is none.
func (e *editor) home(t *tableState, id HomeID) *home {
	if h := e.homes[id]; h != nil {
		return h
	}
	if i, ok := slices.BinarySearchFunc(t.parts, id, func(p *partState, id HomeID) int { return cmp.Compare(p.id, id) }); ok {
		p := *t.parts[i]
		t.parts[i] = &p
		e.homes[id] = &p.home
		return &p.home
	}
	if i, ok := slices.BinarySearchFunc(t.segments, id, func(s *segmentState, id HomeID) int { return cmp.Compare(s.id, id) }); ok {
		s := *t.segments[i]
		t.segments[i] = &s
		e.homes[id] = &s.home
		return &s.home
	}
	return nil
}

func (t *tableState) addPart(p *partState) {
	t.parts = append(t.parts, p)
	slices.SortFunc(t.parts, func(a, b *partState) int { return cmp.Compare(a.id, b.id) })
}

func (t *tableState) addSegment(s *segmentState) {
	t.segments = append(t.segments, s)
	slices.SortFunc(t.segments, func(a, b *segmentState) int { return cmp.Compare(a.id, b.id) })
}
