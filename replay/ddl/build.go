package ddl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// buildTable makes the first version of a table.
func (s *statement) buildTable(name string, spec *createSpec) (*schema.Table, error) {
	charset, collation := s.tableCharset(&spec.options)
	t := &schema.Table{Database: s.catalog.Database(), Name: name, Version: 1, NextColumnID: 1,
		Engine: engineName(spec.options.engine), Charset: charset, Collation: collation, Comment: spec.options.comment}
	if err := s.implicitTimestamps(spec.columns); err != nil {
		return nil, err
	}
	for i := range spec.columns {
		c, err := s.build(&spec.columns[i], charset, collation)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", spec.columns[i].name, err)
		}
		s.setDefault(&c, spec.columns[i].value)
		c.ID = t.NextColumnID
		t.NextColumnID++
		t.Columns = append(t.Columns, c)
	}
	return t, s.addIndexes(t, &spec.keys)
}

// tableCharset applies the rules of the manual, "Table Character Set and Collation".
func (s *statement) tableCharset(o *tableOptions) (charset, collation string) {
	switch {
	case o.collation != "":
		return s.charsetOf(o.collation), o.collation
	case o.charset == "default":
		return s.catalog.Charset()
	case o.charset != "":
		return o.charset, s.defaultCollation(o.charset)
	}
	return s.catalog.Charset()
}

// engineName gives the engine as the server prints it. What is not said is InnoDB; a source with another default engine
// is refused when the database is registered.
func engineName(name string) string {
	for _, known := range []string{"InnoDB", "MyISAM", "MEMORY", "ARCHIVE", "CSV", "BLACKHOLE", "FEDERATED"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	if name == "" {
		return "InnoDB"
	}
	return name
}

// implicitTimestamps gives TIMESTAMP columns the attributes that servers with explicit_defaults_for_timestamp = OFF give
// them (manual, "explicit_defaults_for_timestamp").
func (s *statement) implicitTimestamps(columns []columnSpec) error {
	if s.st.ExplicitDefaults {
		return nil
	}
	first := true
	for i := range columns {
		c := &columns[i]
		if c.typ.base != "timestamp" || c.null == nullYes {
			continue
		}
		c.null = nullNo
		if c.value == nil && c.onUpdate == "" && !c.isGenerated {
			if first {
				now := literal{kind: litNow, fsp: max(c.typ.length, 0)}
				c.value, c.onUpdate = &now, now.printed()
			} else {
				c.value = &literal{kind: litString, text: "0000-00-00 00:00:00"}
			}
		}
		first = false
	}
	return nil
}

// versionColumnReferences is the version from which REFERENCES behind a column's type makes a foreign key. Older servers
// read it and forget it.
const versionColumnReferences = 90000

// columnKeys adds what a column defines for itself.
func (s *statement) columnKeys(c *columnSpec, keys *keySpecs) {
	part := []indexPart{{column: c.name}}
	if c.primary {
		keys.add(&indexSpec{kind: indexPrimary, name: "PRIMARY", parts: part}, nil)
	}
	if c.unique || c.typ.serial {
		keys.add(&indexSpec{kind: indexUnique, parts: part}, nil)
	}
	if c.references != nil && s.server.Version >= versionColumnReferences {
		c.references.columns = part
		keys.add(nil, c.references)
	}
}

// addIndexes adds indexes, and those that foreign keys need, to a table, and picks its key if it has none.
func (s *statement) addIndexes(t *schema.Table, keys *keySpecs) error {
	if err := s.checkForeign(t, keys.foreign); err != nil {
		return err
	}
	for i := range keys.indexes {
		if err := addIndex(t, &keys.indexes[i]); err != nil {
			return err
		}
	}
	dropServed(t, keys.indexes)
	sortIndexes(t)
	if len(t.Key) == 0 {
		chooseKey(t)
	}
	return nil
}

// checkForeign refuses actions whose effect the source does not log (DDL-24).
func (s *statement) checkForeign(t *schema.Table, foreign []foreignKey) error {
	for _, fk := range foreign {
		if len(fk.actions) > 0 && s.server.NativeForeignKeys {
			return fmt.Errorf("table %s has a foreign key with %s, whose changes of rows this server does not write to the binlog (MySQL does from 9.6 on)", t.Name, strings.Join(fk.actions, " and "))
		}
	}
	return nil
}

func addIndex(t *schema.Table, spec *indexSpec) error {
	ix := schema.Index{Name: spec.name, Unique: spec.kind <= indexUnique, Kind: indexType(spec), Comment: spec.comment, Invisible: spec.invisible}
	for _, p := range spec.parts {
		part := schema.IndexPart{Prefix: p.prefix, Desc: p.desc, Expr: p.expr}
		if p.expr == "" {
			i := t.Column(p.column)
			if i < 0 {
				return fmt.Errorf("index column %s does not exist", p.column)
			}
			part.Column = t.Columns[i].ID
			part.Prefix = effectivePrefix(&t.Columns[i], p.prefix)
			if spec.kind == indexPrimary {
				t.Columns[i].Nullable = false
			}
		}
		ix.Parts = append(ix.Parts, part)
	}
	if ix.Name == "" {
		ix.Name = indexName(t, spec)
		spec.name = ix.Name
	}
	if slices.ContainsFunc(t.Indexes, func(o schema.Index) bool { return strings.EqualFold(o.Name, ix.Name) }) {
		if spec.foreign {
			return nil
		}
		return fmt.Errorf("index %s exists already", ix.Name)
	}
	t.Indexes = append(t.Indexes, ix)
	return nil
}

// effectivePrefix gives 0 for a prefix that is the whole column.
func effectivePrefix(c *schema.Column, prefix int) int {
	switch c.Type {
	case schema.Char, schema.VarChar, schema.Binary, schema.VarBinary:
		if prefix == c.Length {
			return 0
		}
	}
	return prefix
}

func indexType(spec *indexSpec) string {
	switch spec.kind {
	case indexFulltext:
		return "FULLTEXT"
	case indexSpatial:
		return "SPATIAL"
	case indexPrimary, indexUnique, indexPlain:
	}
	return "BTREE" // InnoDB has no other, whatever USING says
}

// indexName makes a name as the server does: the first column's, with a number if it is taken.
func indexName(t *schema.Table, spec *indexSpec) string {
	base := "functional_index"
	if len(spec.parts) > 0 && spec.parts[0].expr == "" {
		base = t.Columns[t.Column(spec.parts[0].column)].Name
	}
	taken := func(name string) bool {
		return strings.EqualFold(name, "PRIMARY") || slices.ContainsFunc(t.Indexes, func(ix schema.Index) bool { return strings.EqualFold(ix.Name, name) })
	}
	name := base
	for n := 2; taken(name); n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	return name
}

// dropServed removes indexes made for foreign keys where another index starts with the same columns.
func dropServed(t *schema.Table, specs []indexSpec) {
	for i := range specs {
		if !specs[i].foreign {
			continue
		}
		at := slices.IndexFunc(t.Indexes, func(ix schema.Index) bool { return ix.Name == specs[i].name })
		if at >= 0 && served(t, at) {
			t.Indexes = slices.Delete(t.Indexes, at, at+1)
		}
	}
}

func served(t *schema.Table, at int) bool {
	want := t.Indexes[at].Parts
	return slices.ContainsFunc(t.Indexes, func(ix schema.Index) bool {
		if ix.Name == t.Indexes[at].Name || ix.Kind != "BTREE" || len(ix.Parts) < len(want) {
			return false
		}
		for i := range want {
			if ix.Parts[i].Column != want[i].Column || ix.Parts[i].Prefix != 0 {
				return false
			}
		}
		return true
	})
}

// sortIndexes puts indexes in the order that the server keeps (mysql-server, sort_keys): primary, unique ones without NULL
// before others and whole columns before prefixes, plain ones, full text.
func sortIndexes(t *schema.Table) {
	rank := func(ix *schema.Index) int {
		switch {
		case ix.Name == "PRIMARY":
			return 0
		case ix.Unique:
			r := 1
			if !neverNull(t, ix) {
				r += 2
			}
			if slices.ContainsFunc(ix.Parts, func(p schema.IndexPart) bool { return p.Prefix != 0 }) {
				r++
			}
			return r
		case ix.Kind == "FULLTEXT":
			return 6
		default:
			return 5
		}
	}
	slices.SortStableFunc(t.Indexes, func(a, b schema.Index) int { return rank(&a) - rank(&b) })
}

func neverNull(t *schema.Table, ix *schema.Index) bool {
	return !slices.ContainsFunc(ix.Parts, func(p schema.IndexPart) bool {
		i := t.ColumnByID(p.Column)
		return i >= 0 && t.Columns[i].Nullable
	})
}

// chooseKey picks the primary key, else the first unique index over whole columns that are never NULL, as compat does.
func chooseKey(t *schema.Table) {
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if key := keyOf(t, ix); key != nil {
			t.Key, t.KeyName = key, ix.Name
			return
		}
	}
}

func keyOf(t *schema.Table, ix *schema.Index) []int {
	if !ix.Unique || !neverNull(t, ix) {
		return nil
	}
	var key []int
	for _, p := range ix.Parts {
		i := t.ColumnByID(p.Column)
		if i < 0 || p.Prefix != 0 && ix.Name != "PRIMARY" {
			return nil
		}
		key = append(key, i)
	}
	return key
}
