package ddl

import (
	"fmt"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// indexPart is a column of an index as written.
type indexPart struct {
	column string
	prefix int
	desc   bool
	expr   string
}

// indexKind says what an index is for, in the order in which the server sorts them where it has a choice.
type indexKind uint8

const (
	indexPrimary indexKind = iota + 1
	indexUnique
	indexPlain
	indexFulltext
	indexSpatial
)

// indexSpec is an index as a statement defines it.
type indexSpec struct {
	kind      indexKind
	name      string
	parts     []indexPart
	comment   string
	using     string
	invisible bool
	foreign   bool // made for a foreign key, if no other index serves
}

// tableOptions are the options that are kept.
type tableOptions struct {
	engine, charset, collation, comment string
	hasComment                          bool
}

// createSpec is a CREATE TABLE with a list of columns.
type createSpec struct {
	columns []columnSpec
	keys    keySpecs
	options tableOptions
}

func (s *statement) createTable(p *parser) ([]Effect, error) {
	conditional := p.ifNotExists()
	n := p.tableName()
	if p.err != nil {
		return s.failed(p)
	}
	if !s.followed(n) {
		return nil, nil
	}
	name, _, live, exists := s.lookup(n)
	if exists && conditional {
		return nil, nil
	}
	if exists && live {
		out := s.quarantine(n, "the table was created on the source although it is there already")
		for i := range out {
			out[i].Exists = true
		}
		return out, nil
	}
	if !exists {
		name = s.newName(n.table)
	}
	def, err := s.define(p, name)
	if err != nil {
		return s.placeholder(n, "the definition of a new table can't be followed (%v)", err), nil
	}
	out := []Effect{{Op: Create, Table: name, Def: def}}
	if problems := def.Problems(); len(problems) > 0 {
		out = []Effect{{Op: Quarantine, Table: name, Def: def, Reason: strings.Join(problems, "; ")}}
	}
	if exists {
		out = append([]Effect{{Op: Drop, Table: name}}, out...)
	}
	return out, nil
}

// define gives the definition that follows the name in CREATE TABLE.
func (s *statement) define(p *parser, name string) (*schema.Table, error) {
	if p.word("LIKE") || p.peek().isPunct('(') && p.peekAt(1).is("LIKE") {
		return s.like(p, name)
	}
	spec := p.createSpec()
	if p.err != nil {
		return nil, p.err
	}
	return s.buildTable(name, &spec)
}

// like copies the definition of a table that is known here.
func (s *statement) like(p *parser, name string) (*schema.Table, error) {
	if p.punct('(') {
		p.wantWord("LIKE")
	}
	model := p.tableName()
	_, def, live, ok := s.lookup(model)
	switch {
	case p.err != nil:
		return nil, p.err
	case !ok:
		return nil, fmt.Errorf("it is made like %s.%s, which is not followed", model.database, model.table)
	case !live:
		return nil, fmt.Errorf("it is made like %s, which is quarantined", model.table)
	}
	return cloneAs(def, name), nil
}

// cloneAs gives a first version of another table with the same columns and indexes.
func cloneAs(def *schema.Table, name string) *schema.Table {
	t := def.Clone()
	t.Name, t.Version, t.NextColumnID = name, 1, uint32(len(t.Columns))+1
	renumbered := map[uint32]uint32{}
	for i := range t.Columns {
		c := &t.Columns[i]
		renumbered[c.ID] = uint32(i) + 1
		c.ID, c.Added, c.Initial = uint32(i)+1, false, nil
	}
	for i := range t.Indexes {
		t.Indexes[i].Parts = append([]schema.IndexPart(nil), t.Indexes[i].Parts...)
		for j := range t.Indexes[i].Parts {
			t.Indexes[i].Parts[j].Column = renumbered[t.Indexes[i].Parts[j].Column]
		}
	}
	return t
}

// createSpec takes the columns, indexes and options. What follows them (PARTITION BY) does not change the rows.
func (p *parser) createSpec() createSpec {
	var spec createSpec
	p.wantPunct('(')
	for p.err == nil {
		p.element(&spec)
		if !p.punct(',') {
			break
		}
	}
	p.wantPunct(')')
	for p.err == nil && !p.atEnd() {
		switch {
		case p.punct(','):
		case p.peek().is("PARTITION"):
			p.partitioning()
		case p.word("START", "TRANSACTION"): // the rows of CREATE TABLE .. SELECT follow in the same transaction
		case p.peek().is("SELECT"), p.peek().is("AS"), p.peek().is("IGNORE"), p.peek().is("REPLACE"), p.peek().isPunct('('):
			p.fail("it takes its columns from a SELECT")
		default:
			p.tableOption(&spec.options)
		}
	}
	return spec
}

func (p *parser) partitioning() {
	for p.err == nil && !p.atEnd() && !p.peek().is("START") {
		p.take()
	}
}

// element takes a column, an index or a constraint. The server keeps indexes in the order of the elements that they come
// from.
func (p *parser) element(spec *createSpec) {
	if ix, fk, ok := p.constraint(); ok {
		spec.keys.add(ix, fk)
		return
	}
	c := p.columnSpec()
	spec.columns = append(spec.columns, c)
	p.s.columnKeys(&c, &spec.keys)
}

// keySpecs are the indexes of a statement, those made for foreign keys included, and the foreign keys.
type keySpecs struct {
	indexes []indexSpec
	foreign []foreignKey
}

func (k *keySpecs) add(ix *indexSpec, fk *foreignKey) {
	if ix != nil {
		k.indexes = append(k.indexes, *ix)
	}
	if fk == nil {
		return
	}
	name := fk.index
	if fk.name != "" {
		name = fk.name
	}
	k.indexes = append(k.indexes, indexSpec{kind: indexPlain, name: name, parts: fk.columns, foreign: true})
	k.foreign = append(k.foreign, *fk)
}

// constraint takes an index, a foreign key or a check. ok is false if a column comes instead.
func (p *parser) constraint() (ix *indexSpec, fk *foreignKey, ok bool) {
	symbol := ""
	named := p.word("CONSTRAINT")
	if named && !p.peek().is("PRIMARY") && !p.peek().is("UNIQUE") && !p.peek().is("FOREIGN") && !p.peek().is("CHECK") {
		symbol = p.name()
	}
	switch {
	case p.peek().is("CHECK"):
		p.check()
		return nil, nil, true
	case p.word("PRIMARY", "KEY"):
		return p.index(indexSpec{kind: indexPrimary, name: "PRIMARY"}, ""), nil, true
	case p.word("UNIQUE"):
		p.oneOf("INDEX", "KEY")
		return p.index(indexSpec{kind: indexUnique}, symbol), nil, true
	case p.word("FOREIGN", "KEY"):
		return nil, p.foreignKey(symbol), true
	case named:
		p.unexpected("a constraint")
		return nil, nil, true
	case p.oneOf("FULLTEXT", "SPATIAL") != "":
		kind := indexFulltext
		if p.s.tokens[p.i-1].is("SPATIAL") {
			kind = indexSpatial
		}
		p.oneOf("INDEX", "KEY")
		return p.index(indexSpec{kind: kind}, ""), nil, true
	case p.oneOf("INDEX", "KEY") != "":
		return p.index(indexSpec{kind: indexPlain}, ""), nil, true
	}
	return nil, nil, false
}

// index takes [name] [USING x] (parts) options.
func (p *parser) index(ix indexSpec, symbol string) *indexSpec {
	if !p.peek().isPunct('(') && !p.peek().is("USING") && !p.peek().is("TYPE") {
		if name := p.name(); ix.kind != indexPrimary {
			ix.name = name
		}
	}
	if ix.name == "" {
		ix.name = symbol
	}
	if p.oneOf("USING", "TYPE") != "" {
		ix.using = p.name()
	}
	ix.parts = p.indexParts()
	p.indexOptions(&ix)
	return &ix
}

func (p *parser) indexParts() []indexPart {
	var out []indexPart
	p.wantPunct('(')
	for p.err == nil {
		var part indexPart
		if p.peek().isPunct('(') {
			part.expr = p.parenthesized()
		} else {
			part.column = p.name()
			if p.punct('(') {
				part.prefix = p.number()
				p.wantPunct(')')
			}
		}
		part.desc = p.word("DESC")
		p.word("ASC")
		out = append(out, part)
		if !p.punct(',') {
			break
		}
	}
	p.wantPunct(')')
	return out
}

func (p *parser) indexOptions(ix *indexSpec) {
	for p.err == nil {
		switch {
		case p.oneOf("USING", "TYPE") != "":
			ix.using = p.name()
		case p.oneOf("KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE") != "":
			p.value()
		case p.word("COMMENT"):
			ix.comment = p.text()
		case p.word("WITH", "PARSER"):
			p.name()
		case p.word("VISIBLE"):
			ix.invisible = false
		case p.word("INVISIBLE"):
			ix.invisible = true
		default:
			return
		}
	}
}

// foreignKey takes [index name] (columns) REFERENCES ..
func (p *parser) foreignKey(symbol string) *foreignKey {
	index := ""
	if !p.peek().isPunct('(') {
		index = p.name()
	}
	columns := p.indexParts()
	p.wantWord("REFERENCES")
	fk := p.references()
	fk.name, fk.index, fk.columns = symbol, index, columns
	return fk
}

// plainOptions are table options that do not change rows or definitions that we keep.
var plainOptions = []string{
	"AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION",
	"ENGINE_ATTRIBUTE", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD", "ROW_FORMAT",
	"SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES",
	"TABLE_CHECKSUM", "STORAGE",
}

// isTableOption tells whether an option comes next.
func (p *parser) isTableOption() bool {
	for _, w := range append([]string{"ENGINE", "TYPE", "DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "COMMENT", "TABLESPACE", "DATA", "UNION"}, plainOptions...) {
		if p.peek().is(w) {
			return true
		}
	}
	return p.peek().is("INDEX") && p.peekAt(1).is("DIRECTORY")
}

func (p *parser) tableOption(o *tableOptions) {
	p.word("DEFAULT")
	switch {
	case p.oneOf("ENGINE", "TYPE") != "":
		o.engine = p.value().text
	case p.charsetWord():
		o.charset, o.collation = p.s.charsetName(p.value().text), ""
	case p.word("COLLATE"):
		o.collation = p.s.collationName(p.value().text)
	case p.word("COMMENT"):
		p.punct('=')
		o.comment, o.hasComment = p.text(), true
	case p.word("DATA", "DIRECTORY"), p.word("INDEX", "DIRECTORY"):
		p.value()
	case p.word("TABLESPACE"):
		p.value()
	case p.word("UNION"):
		p.fail("a MERGE table has no rows of its own")
	case p.oneOf(plainOptions...) != "":
		p.value()
	default:
		p.unexpected("a table option")
	}
}
