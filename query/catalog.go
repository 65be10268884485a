package query

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// InformationSchema is the name of MySQL's catalog database, which is matched in any case.
const InformationSchema = "information_schema"

// shownTable is the database and table under which [Processor.Filter] knows its rows. No statement can name it: the
// parser takes no empty names.
const shownTable = "\x00"

type tableName struct{ database, name string }

// source is a table that a statement reads.
type source struct {
	database string
	info     storage.TableInfo
	table    *schema.Table
	scan     *engine.Scan
	// point tells points in time apart: equal strings are one point. Empty: the table has none.
	point string
}

// catalog resolves the tables of one statement at one commit. It implements [translate.Catalog].
type catalog struct {
	p        *Processor
	session  *Session
	snapshot *Snapshot // released with the catalog
	version  *storage.Version
	tables   map[tableName]*source
	shown    *result.Table
	// equal is what the statement's WHERE demands of the columns of its only table, see [translate.Equalities].
	equal map[string]translate.Value
}

func (c *catalog) close() {
	for _, s := range c.tables {
		s.scan.Close()
	}
	c.tables = nil
	c.snapshot.Release()
}

// Table resolves a name; nil when the database has no such table.
func (c *catalog) Table(database, name string) (*translate.TableInfo, error) {
	s, err := c.resolve(database, name)
	if err != nil || s == nil {
		return nil, err
	}
	columns := s.scan.Columns()
	find := func(id uint32) *engine.ScanColumn {
		for i := range columns {
			if columns[i].ID == id {
				return &columns[i]
			}
		}
		return nil
	}
	return &translate.TableInfo{
		Table:     s.table,
		Rows:      s.scan.Rows(),
		Exact:     func(id uint32) bool { col := find(id); return col != nil && col.Exact },
		FitsInt64: func(id uint32) bool { col := find(id); return col != nil && col.Type.ID == engine.BigInt },
	}, nil
}

func (c *catalog) byDefinition(t *schema.Table) *source {
	for _, s := range c.tables {
		if s.table == t {
			return s
		}
	}
	panic("query: a translated statement reads a table that was not resolved")
}

func (c *catalog) resolve(database, name string) (*source, error) {
	key := tableName{database, name}
	if s := c.tables[key]; s != nil {
		return s, nil
	}
	s, err := c.load(database, name)
	if s != nil && err == nil {
		c.tables[key] = s
	}
	return s, err
}

func (c *catalog) load(database, name string) (*source, error) {
	if c.shown != nil && database == shownTable {
		return c.relation("", shownTable, c.shown)
	}
	lower := strings.ToLower(database)
	if lower == InformationSchema {
		make, ok := informationSchema[strings.ToUpper(name)]
		if !ok {
			return nil, sqlerr.New(1109, "Unknown table '%s' in information_schema", strings.ToUpper(name))
		}
		return c.relation(InformationSchema, strings.ToUpper(name), make(c.p.view(c.version)))
	}
	if tables, ok := c.p.o.System[lower]; ok {
		make, ok := tables[strings.ToLower(name)]
		if !ok {
			return nil, nil
		}
		return c.relation(lower, strings.ToLower(name), make())
	}
	return c.materialized(database, name)
}

// relation makes a table of rows in memory.
func (c *catalog) relation(database, name string, t *result.Table) (*source, error) {
	def, segment, err := relation(database, name, t)
	if err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", database, name, err)
	}
	scan, err := c.p.o.Engine.Scan(engine.Table{Schema: def, Segments: segment})
	if err != nil {
		return nil, err
	}
	return &source{database: database, table: def, scan: scan}, nil
}

func (c *catalog) materialized(database, name string) (*source, error) {
	info, err := c.p.readable(c.version, database)
	if err != nil {
		return nil, err
	}
	tv, err := c.version.Table(info.ID, name)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, sqlerr.New(sqlerr.Unknown, "%w", err)
	}
	if tv.State == storage.Copying {
		return nil, c.p.notReadable(database)
	}
	if tv.State == storage.Quarantined && (tv.Window != nil || len(tv.Def.Columns) == 0) { // there never was anything to read
		return nil, sqlerr.New(sqlerr.NotReadable, "Table '%s.%s' is not readable: %s", database, name, tv.Reason)
	}
	if key := keyOf(tv.Def, c.equal); key != nil {
		tv = withKey(tv, key)
	}
	t, err := engineTable(tv)
	if err != nil {
		return nil, err
	}
	scan, err := c.p.o.Engine.Scan(t)
	if err != nil {
		return nil, err
	}
	point := string(info.Point)
	if tv.State == storage.Quarantined {
		point = "quarantine " + string(tv.Point)
	}
	return &source{
		database: database, info: tv.TableInfo, table: tv.Def, scan: scan,
		point: fmt.Sprintf("%d %s", info.Stream, point),
	}, nil
}

func engineTable(tv *storage.TableVersion) (engine.Table, error) {
	t := engine.Table{Schema: tv.Def}
	for i := range tv.Parts {
		p := &tv.Parts[i]
		t.Parts = append(t.Parts, engine.Part{
			Path: p.Path, Rows: p.Info.Rows, Dead: p.Dead, Wide: p.Info.Wide, Exact: p.Info.ExactColumns, Columns: p.Info.Columns,
		})
	}
	for i := range tv.Segments {
		s := &tv.Segments[i]
		exact, err := s.Batch.ExactColumns()
		if err != nil {
			return t, err
		}
		t.Segments = append(t.Segments, engine.Segment{Record: s.Batch.Record, Exact: s.Batch.Exact, ExactColumns: exact, Dead: s.Dead})
	}
	return t, nil
}

func errUnknownDatabase(name string) error {
	return sqlerr.New(sqlerr.UnknownDatabase, "Unknown database '%s'", name)
}

// notReadable is the one error of a database whose first copy is not complete.
func (p *Processor) notReadable(database string) error {
	progress := ""
	if p.o.Progress != nil {
		progress = p.o.Progress(database)
	}
	return sqlerr.New(sqlerr.NotReadable, "Database '%s' is not readable yet: its first copy is not complete%s", database, progress)
}

// readable gives a materialized database that may be read.
func (p *Processor) readable(v *storage.Version, name string) (storage.DatabaseInfo, error) {
	info, err := p.o.Store.Database(name)
	if err != nil {
		return info, errUnknownDatabase(name)
	}
	info, err = v.Database(info.ID)
	if err != nil {
		return info, errUnknownDatabase(name)
	}
	if len(info.Point) == 0 {
		return info, p.notReadable(name)
	}
	if p.o.Readable != nil {
		return info, p.o.Readable(name)
	}
	return info, nil
}

// Databases lists all databases by name, those that are not readable yet included.
func (p *Processor) Databases() []string {
	names := []string{InformationSchema}
	names = append(names, slices.Collect(maps.Keys(p.o.System))...)
	for _, d := range p.o.Store.Databases() {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// CheckDatabase gives the database's name as it is written, or MySQL's error when there is none.
func (p *Processor) CheckDatabase(name string) (string, error) {
	if p.IsReserved(name) {
		return strings.ToLower(name), nil
	}
	if _, err := p.o.Store.Database(name); err != nil {
		return "", errUnknownDatabase(name)
	}
	return name, nil
}

// IsReserved tells the databases that are not materialized, in any case.
func (p *Processor) IsReserved(name string) bool {
	lower := strings.ToLower(name)
	_, ok := p.o.System[lower]
	return ok || lower == InformationSchema
}
