package ddl

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// alterSpec is what an ALTER TABLE does, in the groups in which the server carries it out: first columns go, then they
// come, then indexes.
type alterSpec struct {
	dropColumns []string
	addColumns  []columnSpec
	dropIndexes []string
	keys        keySpecs
	edits       []func(t *schema.Table) error // renamed indexes, changed defaults and the like
	options     tableOptions
	// others are tables that the statement touches besides the altered one.
	others []tableName
	// refused says what in the statement can't be followed.
	refused string
}

func (s *statement) alterTable(p *parser) ([]Effect, error) {
	p.ifExists()
	n := p.tableName()
	if p.err != nil {
		return s.failed(p)
	}
	spec := p.alterSpec()
	if p.err != nil {
		s.scanOthers(spec)
	}
	name, def, live, ok := s.lookup(n)
	var out []Effect
	if ok && live {
		out = s.alter(name, n, def, spec, p.err)
	}
	return append(out, s.alterOthers(n, spec)...), nil
}

// alter gives the effect on the altered table.
func (s *statement) alter(name string, n tableName, def *schema.Table, spec *alterSpec, unread error) []Effect {
	switch {
	case spec.refused != "":
		return s.quarantine(n, "%s", spec.refused)
	case unread != nil:
		return s.quarantine(n, "an ALTER TABLE can't be read (%v)", unread)
	case s.st.ErrorCode != 0:
		return s.quarantine(n, "an ALTER TABLE ended with error %d on the source", s.st.ErrorCode)
	}
	next, err := s.altered(def, spec)
	if err != nil {
		return s.quarantine(n, "an ALTER TABLE can't be followed (%v)", err)
	}
	if unchanged(def, next) {
		return nil
	}
	return []Effect{{Op: Alter, Table: name, Def: next}}
}

// unchanged tells whether two definitions differ in nothing but the version (ENGINE=InnoDB, FORCE, AUTO_INCREMENT).
func unchanged(a, b *schema.Table) bool {
	c := *b
	c.Version = a.Version
	return reflect.DeepEqual(a, &c)
}

// scanOthers looks for other tables in a statement that could not be read to its end.
func (s *statement) scanOthers(spec *alterSpec) {
	p := &parser{s: s}
	for !p.atEnd() {
		renames := p.word("RENAME") && !p.peek().is("COLUMN") && !p.peek().is("INDEX") && !p.peek().is("KEY")
		if !renames && !p.word("WITH", "TABLE") {
			p.take()
			continue
		}
		p.oneOf("TO", "AS")
		p.punct('=')
		if n := p.tableName(); p.err == nil {
			spec.others = append(spec.others, n)
		}
	}
	if len(spec.others) > 0 && spec.refused == "" {
		spec.refused = "a statement can't be read that gives a table another's rows or name"
	}
}

// alterOthers gives the effects on other tables: a table that gets another's rows, and new names.
func (s *statement) alterOthers(altered tableName, spec *alterSpec) []Effect {
	var out []Effect
	for _, n := range spec.others {
		if _, _, _, ok := s.lookup(n); ok {
			out = append(out, s.quarantine(n, "%s", spec.refused)...)
			continue
		}
		out = append(out, s.placeholder(n, "%s", spec.refused)...)
	}
	return out
}

func (p *parser) alterSpec() *alterSpec {
	spec := &alterSpec{}
	for p.err == nil && !p.atEnd() && spec.refused == "" {
		p.alteration(spec)
		p.punct(',')
	}
	if spec.refused != "" {
		p.err = nil
	}
	return spec
}

// alteration takes one change.
func (p *parser) alteration(spec *alterSpec) {
	switch {
	case p.word("ADD"):
		p.add(spec)
	case p.word("DROP"):
		p.drop(spec)
	case p.word("ALTER"):
		p.alterPart(spec)
	case p.word("RENAME"):
		p.renamePart(spec)
	case p.word("CONVERT"):
		p.convert(spec)
	case p.word("ALGORITHM"), p.word("LOCK"):
		p.value()
	case p.word("FORCE"), p.word("ENABLE", "KEYS"), p.word("DISABLE", "KEYS"), p.word("WITH", "VALIDATION"), p.word("WITHOUT", "VALIDATION"),
		p.word("SECONDARY_LOAD"), p.word("SECONDARY_UNLOAD"):
	case p.word("ORDER", "BY"):
		p.orderBy()
	case p.word("ANALYZE", "PARTITION"), p.word("OPTIMIZE", "PARTITION"), p.word("CHECK", "PARTITION"), p.word("REBUILD", "PARTITION"):
		p.rest()
	case p.isTableOption():
		p.tableOption(&spec.options)
	default:
		p.refuse(spec)
	}
}

// refused alterations by their first word, with what to say.
var refusals = map[string]string{
	"MODIFY": "changing a column is not supported yet", "CHANGE": "changing a column is not supported yet",
	"EXCHANGE": "exchanging a partition is not supported yet",
	"DISCARD":  "discarding a tablespace removes the rows and is not supported", "IMPORT": "importing a tablespace brings rows that are not in the binlog",
	"PARTITION": "partitioning a table is not supported yet", "REMOVE": "partitioning a table is not supported yet",
	"REORGANIZE": "changing partitions is not supported yet", "COALESCE": "changing partitions is not supported yet",
	"TRUNCATE": "truncating a partition removes rows that are not named in the binlog", "REPAIR": "repairing a partition is not supported",
}

func (p *parser) refuse(spec *alterSpec) {
	reason, ok := refusals[strings.ToUpper(p.peek().text)]
	if !ok {
		p.unexpected("an alteration")
		return
	}
	spec.refused = reason
	for !p.atEnd() {
		if p.word("WITH", "TABLE") {
			spec.others = append(spec.others, p.tableName())
			continue
		}
		p.take()
	}
}

func (p *parser) rest() {
	for !p.atEnd() {
		p.take()
	}
}

func (p *parser) orderBy() {
	for p.err == nil {
		p.tableName()
		p.oneOf("ASC", "DESC")
		if !p.peek().isPunct(',') || !p.peekAt(1).isName() || !p.peekAt(2).isPunct(',') && p.peekAt(2).kind != tokEnd && !p.peekAt(2).is("ASC") && !p.peekAt(2).is("DESC") {
			return
		}
		p.take()
	}
}

// add takes what may follow ADD.
func (p *parser) add(spec *alterSpec) {
	if p.peek().is("PARTITION") {
		spec.refused = "adding a partition is not supported yet"
		return
	}
	if ix, fk, ok := p.constraint(); ok {
		spec.keys.add(ix, fk)
		return
	}
	p.word("COLUMN")
	if !p.punct('(') {
		spec.addColumn(p.placedColumn(), p.s)
		return
	}
	for p.err == nil {
		if ix, fk, ok := p.constraint(); ok {
			spec.keys.add(ix, fk)
		} else {
			spec.addColumn(p.columnSpec(), p.s)
		}
		if !p.punct(',') {
			break
		}
	}
	p.wantPunct(')')
}

func (spec *alterSpec) addColumn(c columnSpec, s *statement) {
	spec.addColumns = append(spec.addColumns, c)
	s.columnKeys(&c, &spec.keys)
}

func (p *parser) placedColumn() columnSpec {
	c := p.columnSpec()
	if p.word("FIRST") {
		c.first = true
	}
	if p.word("AFTER") {
		c.after = p.name()
	}
	return c
}

// drop takes what may follow DROP.
func (p *parser) drop(spec *alterSpec) {
	switch {
	case p.word("PRIMARY", "KEY"):
		spec.refused = "changing the primary key is not supported yet"
	case p.word("PARTITION"):
		spec.refused = "dropping a partition removes rows that are not named in the binlog"
	case p.word("FOREIGN", "KEY"), p.word("CHECK"):
		p.name()
	case p.word("CONSTRAINT"):
		p.dropConstraint(spec)
	case p.oneOf("INDEX", "KEY") != "":
		spec.dropIndexes = append(spec.dropIndexes, p.name())
	default:
		p.word("COLUMN")
		spec.dropColumns = append(spec.dropColumns, p.name())
		p.oneOf("RESTRICT", "CASCADE")
	}
}

// dropConstraint takes DROP CONSTRAINT name, which may be an index.
func (p *parser) dropConstraint(spec *alterSpec) {
	name := p.name()
	if strings.EqualFold(name, "PRIMARY") {
		spec.refused = "changing the primary key is not supported yet"
		return
	}
	spec.edits = append(spec.edits, func(t *schema.Table) error {
		if findIndex(t, name) >= 0 {
			return dropIndex(t, name)
		}
		return nil
	})
}

// alterPart takes ALTER [COLUMN] c SET DEFAULT .., ALTER INDEX i VISIBLE, ALTER CHECK.
func (p *parser) alterPart(spec *alterSpec) {
	switch {
	case p.word("INDEX"):
		name := p.name()
		invisible := p.word("INVISIBLE")
		if !invisible {
			p.wantWord("VISIBLE")
		}
		spec.edits = append(spec.edits, func(t *schema.Table) error {
			i := findIndex(t, name)
			if i < 0 {
				return fmt.Errorf("index %s does not exist", name)
			}
			t.Indexes[i].Invisible = invisible
			return nil
		})
	case p.oneOf("CHECK", "CONSTRAINT") != "":
		p.name()
		p.enforced()
	default:
		p.word("COLUMN")
		p.alterColumn(spec)
	}
}

func (p *parser) alterColumn(spec *alterSpec) {
	name := p.name()
	var change func(c *schema.Column)
	switch {
	case p.word("SET", "DEFAULT"):
		value := p.defaultValue()
		change = func(c *schema.Column) { p.s.setDefault(c, &value) }
	case p.word("DROP", "DEFAULT"):
		change = func(c *schema.Column) { p.s.setDefault(c, nil) }
	case p.word("SET", "VISIBLE"):
		change = func(c *schema.Column) { c.Invisible = false }
	case p.word("SET", "INVISIBLE"):
		change = func(c *schema.Column) { c.Invisible = true }
	default:
		p.unexpected("SET or DROP")
		return
	}
	spec.edits = append(spec.edits, func(t *schema.Table) error {
		i := t.Column(name)
		if i < 0 {
			return fmt.Errorf("column %s does not exist", name)
		}
		change(&t.Columns[i])
		return nil
	})
}

// renamePart takes RENAME INDEX, RENAME COLUMN, RENAME [TO] t.
func (p *parser) renamePart(spec *alterSpec) {
	switch {
	case p.word("COLUMN"):
		spec.refused = "renaming a column is not supported yet"
	case p.oneOf("INDEX", "KEY") != "":
		from := p.name()
		p.wantWord("TO")
		to := p.name()
		spec.edits = append(spec.edits, func(t *schema.Table) error { return renameIndex(t, from, to) })
	default:
		p.oneOf("TO", "AS")
		p.punct('=')
		spec.refused = "renaming a table is not supported yet"
		spec.others = append(spec.others, p.tableName())
	}
}

func (p *parser) convert(spec *alterSpec) {
	p.rest()
	spec.refused = "converting a table to another character set is not supported yet"
}

// altered gives the next version of a definition.
func (s *statement) altered(def *schema.Table, spec *alterSpec) (*schema.Table, error) {
	t := def.Clone()
	t.Version++
	for i := range t.Indexes {
		t.Indexes[i].Parts = slices.Clone(t.Indexes[i].Parts)
	}
	key := keyIDs(t)
	for _, name := range spec.dropIndexes {
		if err := dropIndex(t, name); err != nil {
			return nil, err
		}
	}
	if def.Multiset() && len(spec.dropColumns) > 0 {
		return nil, errors.New("it takes a column from a table without a key, whose rows are found by all their values")
	}
	for _, name := range spec.dropColumns {
		if err := dropColumn(t, name, key); err != nil {
			return nil, err
		}
	}
	if err := s.alterOptions(t, &spec.options); err != nil {
		return nil, err
	}
	if err := s.addColumns(t, spec.addColumns); err != nil {
		return nil, err
	}
	for _, edit := range spec.edits {
		if err := edit(t); err != nil {
			return nil, err
		}
	}
	t.Key = keyFromIDs(t, key)
	if slices.ContainsFunc(spec.keys.indexes, func(ix indexSpec) bool { return ix.kind == indexPrimary }) {
		return nil, errors.New("it changes the primary key")
	}
	if err := s.addIndexes(t, &spec.keys); err != nil {
		return nil, err
	}
	if def.Multiset() && !t.Multiset() {
		return nil, fmt.Errorf("it gives a key (%s) to a table that had none", t.KeyName)
	}
	return t, nil
}

func keyIDs(t *schema.Table) []uint32 {
	ids := make([]uint32, len(t.Key))
	for i, k := range t.Key {
		ids[i] = t.Columns[k].ID
	}
	return ids
}

func keyFromIDs(t *schema.Table, ids []uint32) []int {
	key := make([]int, len(ids))
	for i, id := range ids {
		key[i] = t.ColumnByID(id)
	}
	return key
}

func (s *statement) alterOptions(t *schema.Table, o *tableOptions) error {
	switch {
	case o.collation != "":
		t.Charset, t.Collation = s.charsetOf(o.collation), o.collation
	case o.charset != "":
		t.Charset, t.Collation = s.tableCharset(o)
	}
	if o.hasComment {
		t.Comment = o.comment
	}
	if o.engine == "" {
		return nil
	}
	if engine := engineName(o.engine); engine != "InnoDB" {
		return fmt.Errorf("storage engine %s is not supported", engine)
	}
	return nil
}

// dropColumn removes a column from the table and from its indexes.
func dropColumn(t *schema.Table, name string, key []uint32) error {
	i := t.Column(name)
	if i < 0 {
		return fmt.Errorf("column %s does not exist", name)
	}
	id := t.Columns[i].ID
	if slices.Contains(key, id) {
		return fmt.Errorf("column %s is part of the table's key", name)
	}
	t.Columns = slices.Delete(t.Columns, i, i+1)
	for j := range t.Indexes {
		t.Indexes[j].Parts = slices.DeleteFunc(t.Indexes[j].Parts, func(p schema.IndexPart) bool { return p.Column == id })
	}
	t.Indexes = slices.DeleteFunc(t.Indexes, func(ix schema.Index) bool { return len(ix.Parts) == 0 })
	return nil
}

func (s *statement) addColumns(t *schema.Table, specs []columnSpec) error {
	if err := s.implicitTimestampsOfAlter(t, specs); err != nil {
		return err
	}
	for i := range specs {
		if err := s.addColumn(t, &specs[i]); err != nil {
			return fmt.Errorf("column %s: %w", specs[i].name, err)
		}
	}
	return nil
}

// implicitTimestampsOfAlter refuses what depends on the other TIMESTAMP columns of the table.
func (s *statement) implicitTimestampsOfAlter(t *schema.Table, specs []columnSpec) error {
	had := slices.ContainsFunc(t.Columns, func(c schema.Column) bool { return c.Type == schema.Timestamp })
	if !had {
		return s.implicitTimestamps(specs)
	}
	for i := range specs {
		c := &specs[i]
		if !s.st.ExplicitDefaults && c.typ.base == "timestamp" && c.null != nullYes && c.value == nil {
			return errors.New("a TIMESTAMP column without NULL or DEFAULT was added with explicit_defaults_for_timestamp = OFF")
		}
	}
	return nil
}

// addColumn puts a column in its place. Positions refer to the columns that are there by then.
func (s *statement) addColumn(t *schema.Table, spec *columnSpec) error {
	if t.Column(spec.name) >= 0 {
		return errors.New("it exists already")
	}
	c, err := s.build(spec, t.Charset, t.Collation)
	if err != nil {
		return err
	}
	if !c.Type.Supported() || c.Charset != "" && !schema.SupportedCharset(c.Charset) {
		return fmt.Errorf("type %s %s is not supported yet", c.ColumnType, c.Charset)
	}
	s.setDefault(&c, spec.value)
	if err := s.setInitial(&c, spec.value); err != nil {
		return err
	}
	c.ID = t.NextColumnID
	t.NextColumnID++
	at := len(t.Columns)
	switch {
	case spec.first:
		at = 0
	case spec.after != "":
		if at = t.Column(spec.after) + 1; at == 0 {
			return fmt.Errorf("column %s does not exist", spec.after)
		}
	}
	t.Columns = slices.Insert(t.Columns, at, c)
	return nil
}

func findIndex(t *schema.Table, name string) int {
	return slices.IndexFunc(t.Indexes, func(ix schema.Index) bool { return strings.EqualFold(ix.Name, name) })
}

func dropIndex(t *schema.Table, name string) error {
	i := findIndex(t, name)
	switch {
	case i < 0:
		return fmt.Errorf("index %s does not exist", name)
	case strings.EqualFold(t.Indexes[i].Name, t.KeyName):
		return fmt.Errorf("index %s is the table's key", name)
	}
	t.Indexes = slices.Delete(t.Indexes, i, i+1)
	return nil
}

func renameIndex(t *schema.Table, from, to string) error {
	i := findIndex(t, from)
	if i < 0 {
		return fmt.Errorf("index %s does not exist", from)
	}
	if strings.EqualFold(t.KeyName, from) {
		t.KeyName = to
	}
	t.Indexes[i].Name = to
	return nil
}

// index takes CREATE INDEX and DROP INDEX, which are forms of ALTER TABLE.
func (s *statement) index(p *parser, verb token) ([]Effect, error) {
	spec := &alterSpec{}
	n := tableName{}
	if verb.is("DROP") {
		name := p.name()
		p.wantWord("ON")
		n = p.tableName()
		spec.dropIndexes = []string{name}
		if strings.EqualFold(name, "PRIMARY") {
			spec.refused = "changing the primary key is not supported yet"
		}
	} else {
		n = s.createIndex(p, spec)
	}
	for p.err == nil && !p.atEnd() {
		if p.oneOf("ALGORITHM", "LOCK") == "" {
			p.unexpected("the end")
			break
		}
		p.value()
	}
	if n.table == "" {
		return s.failed(p)
	}
	name, def, live, ok := s.lookup(n)
	if !ok || !live {
		return nil, nil
	}
	return s.alter(name, n, def, spec, p.err), nil
}

// createIndex takes name [USING x] ON t (parts) options. The kind stands in front of INDEX.
func (s *statement) createIndex(p *parser, spec *alterSpec) tableName {
	ix := indexSpec{kind: indexPlain}
	switch before := s.tokens[p.i-2]; {
	case before.is("UNIQUE"):
		ix.kind = indexUnique
	case before.is("FULLTEXT"):
		ix.kind = indexFulltext
	case before.is("SPATIAL"):
		ix.kind = indexSpatial
	}
	ix.name = p.name()
	if p.oneOf("USING", "TYPE") != "" {
		ix.using = p.name()
	}
	p.wantWord("ON")
	n := p.tableName()
	ix.parts = p.indexParts()
	p.indexOptions(&ix)
	spec.keys.add(&ix, nil)
	return n
}
