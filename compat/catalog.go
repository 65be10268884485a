package compat

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// Filter tells whether a table of the database is wanted. nil wants all.
type Filter func(table string) bool

// Catalog is the definitions of a database's tables, as information_schema had them at one moment.
type Catalog struct {
	// Database is the server's spelling of the name.
	Database string
	// Charset and Collation are the database's defaults.
	Charset, Collation string
	// Tables are in the order of their names.
	Tables []*schema.Table
	// Cascades are the foreign keys by which InnoDB changes rows of a wanted table as an effect of another change.
	Cascades []Cascade

	prints map[string]Fingerprint
}

// Cascade is a foreign key with a cascading action. Table is the one whose rows change.
type Cascade struct{ Table, Constraint, Action string }

// Fingerprint tells whether a table's definition is the same: it covers every column and index and the moment at
// which the table was created, which TRUNCATE and rebuilds renew.
type Fingerprint [sha256.Size]byte

// Fingerprint gives that of a table; the zero value when there is no such table.
func (c *Catalog) Fingerprint(table string) Fingerprint { return c.prints[table] }

// Table finds a table by its name; nil when there is none.
func (c *Catalog) Table(name string) *schema.Table {
	i := slices.IndexFunc(c.Tables, func(t *schema.Table) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return c.Tables[i]
}

// NoDatabaseError says that the source has no such database, or shows none to this account.
type NoDatabaseError struct {
	Database string
	Similar  string // a database whose name differs in letter case only
}

func (e *NoDatabaseError) Error() string {
	if e.Similar != "" {
		return fmt.Sprintf("the source has no database %s; there is %s, and names are case-sensitive there", e.Database, e.Similar)
	}
	return fmt.Sprintf("the source has no database %s, or the account has no privilege to see it", e.Database)
}

// ReadTables reads the definitions of the wanted base tables of a database. Column ids are 1..n and Version is 1.
func ReadTables(ctx context.Context, c *wire.Conn, database string, filter Filter) ([]*schema.Table, error) {
	catalog, err := ReadCatalog(ctx, c, database, filter, nil)
	if err != nil {
		return nil, err
	}
	return catalog.Tables, nil
}

// ReadCatalog reads the definitions of the wanted base tables of a database. Tables that known has under the same
// fingerprint are taken from there, so that reading again costs four queries, however many tables there are.
func ReadCatalog(ctx context.Context, c *wire.Conn, database string, filter Filter, known *Catalog) (*Catalog, error) {
	catalog, err := findDatabase(ctx, c, database)
	if err != nil {
		return nil, err
	}
	name := catalog.Database
	r := reader{ctx: ctx, conn: c, database: name, filter: filter, tables: map[string]*rawTable{}}
	for _, read := range []func() error{r.readTables, r.readColumns, r.readStatistics} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("reading the definitions of database %s: %w", name, err)
		}
	}
	if catalog.Cascades, err = r.cascades(); err != nil {
		return nil, fmt.Errorf("reading the foreign keys of database %s: %w", name, err)
	}
	for _, raw := range r.order {
		t, err := r.table(raw, known)
		if err != nil {
			return nil, err
		}
		catalog.Tables = append(catalog.Tables, t)
		catalog.prints[t.Name] = raw.fingerprint()
	}
	return catalog, nil
}

// findDatabase begins the catalog of a database with the server's spelling of its name.
func findDatabase(ctx context.Context, c *wire.Conn, database string) (*Catalog, error) {
	r, err := c.Query(ctx, "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME, @@lower_case_table_names FROM information_schema.SCHEMATA"+
		" WHERE LOWER(SCHEMA_NAME) = LOWER("+wire.Literal(database)+")")
	if err != nil {
		return nil, fmt.Errorf("looking for database %s: %w", database, err)
	}
	similar := ""
	for i := range r.Rows() {
		found := r.Text(i, 0)
		if found == database || r.Int(i, 3) > 0 {
			return &Catalog{Database: found, Charset: r.Text(i, 1), Collation: r.Text(i, 2), prints: map[string]Fingerprint{}}, nil
		}
		similar = found
	}
	return nil, &NoDatabaseError{Database: database, Similar: similar}
}

// rawTable is what information_schema says of a table, not yet understood.
type rawTable struct {
	name, engine, collation, comment string
	columns                          [][]*string
	indexes                          [][]*string
	sum                              hash.Hash
}

func (t *rawTable) fingerprint() (f Fingerprint) {
	t.sum.Sum(f[:0])
	return f
}

// add puts the values of a row into the fingerprint.
func (t *rawTable) add(row []*string) {
	for _, v := range row {
		if v == nil {
			t.sum.Write([]byte{0})
			continue
		}
		t.sum.Write(fmt.Appendf(nil, "%d:%s", len(*v), *v))
	}
}

type reader struct {
	ctx      context.Context
	conn     *wire.Conn
	database string
	filter   Filter
	tables   map[string]*rawTable
	order    []*rawTable
}

func (r *reader) each(query string, fn func(row []*string)) error {
	result, err := r.conn.Query(r.ctx, query)
	if err != nil {
		return err
	}
	row := make([]*string, result.Columns())
	for i := range result.Rows() {
		for j := range row {
			row[j] = result.Cell(i, j)
		}
		fn(slices.Clone(row))
	}
	return nil
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// leftOver tells the names of tables that a crash of the server left in its dictionary (SNAP-13).
func leftOver(name string) bool {
	return strings.HasPrefix(name, "#sql") || strings.HasPrefix(name, "#mysql50#")
}

func (r *reader) readTables() error {
	// No column that needs the table opened or its statistics: this also runs under the lock.
	query := "SELECT TABLE_NAME, ENGINE, TABLE_COLLATION, TABLE_COMMENT, CREATE_TIME FROM information_schema.TABLES" +
		" WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA = " + wire.Literal(r.database) + " ORDER BY TABLE_NAME"
	err := r.each(query, func(row []*string) {
		name := text(row[0])
		if leftOver(name) || r.filter != nil && !r.filter(name) {
			return
		}
		t := &rawTable{name: name, engine: text(row[1]), collation: text(row[2]), comment: text(row[3]), sum: sha256.New()}
		t.add(row)
		r.tables[name] = t
		r.order = append(r.order, t)
	})
	slices.SortFunc(r.order, func(a, b *rawTable) int { return strings.Compare(a.name, b.name) })
	return err
}

// Columns of the query in readColumns.
const (
	colTable = iota
	colName
	colDefault
	colNullable
	colCharset
	colCollation
	colColumnType
	colExtra
	colComment
	colGenerated
	colSRID
)

// referenceSystem is the last column of the query in readColumns, as younger and older servers have it. From the manual:
// MySQL, "The INFORMATION_SCHEMA COLUMNS Table": SRS_ID came with 8.0.
var referenceSystem = []string{"SRS_ID", "NULL"}

func (r *reader) readColumns() (err error) {
	for _, last := range referenceSystem {
		query := "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE, EXTRA, COLUMN_COMMENT, GENERATION_EXPRESSION, " + last +
			" FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = " + wire.Literal(r.database) + " ORDER BY TABLE_NAME, ORDINAL_POSITION"
		err = r.each(query, func(row []*string) {
			if t := r.tables[text(row[colTable])]; t != nil {
				t.columns = append(t.columns, row)
				t.add(row)
			}
		})
		if wire.Code(err) != wire.CodeUnknownColumn {
			break
		}
	}
	return err
}

// Columns of the query in readStatistics, and of what SHOW INDEX is brought to.
const (
	ixTable = iota
	ixName
	ixNonUnique
	ixSeq
	ixColumn
	ixCollation
	ixPrefix
	ixKind
	ixComment
	ixVisible
	ixExpression
)

// indexColumns are the last two columns of the query in readStatistics, as younger and older servers have them. From the
// manual: MySQL, "The INFORMATION_SCHEMA STATISTICS Table": EXPRESSION came with 8.0.13, IS_VISIBLE with 8.0.
var indexColumns = []string{"IS_VISIBLE, EXPRESSION", "IS_VISIBLE, NULL", "'YES', NULL"}

func (r *reader) readStatistics() (err error) {
	for _, last := range indexColumns {
		query := "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX, COLUMN_NAME, COLLATION, SUB_PART, INDEX_TYPE, INDEX_COMMENT, " + last +
			" FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = " + wire.Literal(r.database) + " ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
		err = r.each(query, func(row []*string) {
			if t := r.tables[text(row[ixTable])]; t != nil {
				t.indexes = append(t.indexes, row)
				t.add(row)
			}
		})
		if wire.Code(err) != wire.CodeUnknownColumn {
			break
		}
	}
	return err
}

// cascades lists the foreign keys of wanted tables whose actions change rows of them.
func (r *reader) cascades() ([]Cascade, error) {
	var out []Cascade
	query := "SELECT TABLE_NAME, CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = " +
		wire.Literal(r.database) + " ORDER BY TABLE_NAME, CONSTRAINT_NAME"
	err := r.each(query, func(row []*string) {
		if r.tables[text(row[0])] == nil {
			return
		}
		for i, event := range []string{"ON UPDATE ", "ON DELETE "} {
			if rule := text(row[2+i]); rule != "NO ACTION" && rule != "RESTRICT" {
				out = append(out, Cascade{Table: text(row[0]), Constraint: text(row[1]), Action: event + rule})
			}
		}
	})
	return out, err
}

func (r *reader) table(raw *rawTable, known *Catalog) (*schema.Table, error) {
	if known != nil && known.Database == r.database && known.prints[raw.name] == raw.fingerprint() {
		if t := known.Table(raw.name); t != nil {
			return t, nil
		}
	}
	t := &schema.Table{Database: r.database, Name: raw.name, Version: 1, Engine: raw.engine, Collation: raw.collation, Comment: raw.comment,
		Charset: charsetOf(raw.collation), NextColumnID: uint32(len(raw.columns) + 1)}
	for i, row := range raw.columns {
		c, err := parseColumn(row)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.FullName(), err)
		}
		c.ID = uint32(i + 1)
		t.Columns = append(t.Columns, c)
	}
	ordered, err := r.indexOrder(raw)
	if err != nil {
		return nil, fmt.Errorf("table %s: reading its indexes: %w", t.FullName(), err)
	}
	if err := addIndexes(t, raw.indexes, ordered); err != nil {
		return nil, err
	}
	chooseKey(t)
	return t, nil
}

// charsetOf gives the character set of a collation, by MySQL's rule of naming. Some versions still call the collations
// of utf8mb3 utf8_...
func charsetOf(collation string) string {
	charset, _, _ := strings.Cut(collation, "_")
	if charset == "utf8" {
		return "utf8mb3"
	}
	return charset
}

// indexOrder lists the names of a table's indexes in the server's own order, which information_schema does not have: the
// first usable unique index is the one by which InnoDB lays out the rows.
func (r *reader) indexOrder(raw *rawTable) ([]string, error) {
	var names []string
	err := r.each("SHOW INDEX FROM "+wire.Identifier(raw.name)+" FROM "+wire.Identifier(r.database), func(row []*string) {
		const keyName = 2
		if name := text(row[keyName]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names, err
}

// addIndexes builds the table's indexes from their rows, in the order of the names.
func addIndexes(t *schema.Table, rows [][]*string, names []string) error {
	for _, name := range names {
		ix := schema.Index{Name: name}
		for _, row := range rows {
			if text(row[ixName]) != name {
				continue
			}
			part, err := indexPart(t, row)
			if err != nil {
				return err
			}
			ix.Unique, ix.Kind, ix.Comment = text(row[ixNonUnique]) == "0", text(row[ixKind]), text(row[ixComment])
			ix.Invisible = text(row[ixVisible]) == "NO"
			ix.Parts = append(ix.Parts, part)
		}
		if len(ix.Parts) == 0 {
			return fmt.Errorf("table %s: index %s appeared while the definition was read", t.FullName(), name)
		}
		t.Indexes = append(t.Indexes, ix)
	}
	return nil
}

func indexPart(t *schema.Table, row []*string) (schema.IndexPart, error) {
	part := schema.IndexPart{Desc: text(row[ixCollation]) == "D"}
	part.Prefix, _ = strconv.Atoi(text(row[ixPrefix]))
	if row[ixColumn] == nil {
		part.Expr = unescape(text(row[ixExpression]))
		return part, nil
	}
	i := t.Column(text(row[ixColumn]))
	if i < 0 {
		return part, fmt.Errorf("table %s: index %s has column %s, which the table does not have", t.FullName(), text(row[ixName]), text(row[ixColumn]))
	}
	part.Column = t.Columns[i].ID
	return part, nil
}

// chooseKey takes the primary key, else the first unique index of whole NOT NULL columns. A primary key over the beginning
// of values is taken with the whole values (KEY-07): these are different if their beginnings are, and row images that
// are not complete have them.
func chooseKey(t *schema.Table) {
	for i := range t.Indexes {
		if key, ok := usableKey(t, &t.Indexes[i]); ok {
			t.Key, t.KeyName = key, t.Indexes[i].Name
			if t.KeyName == "PRIMARY" {
				return
			}
			break
		}
	}
}

func usableKey(t *schema.Table, ix *schema.Index) ([]int, bool) {
	if !ix.Unique {
		return nil, false
	}
	var key []int
	for _, p := range ix.Parts {
		i := t.ColumnByID(p.Column)
		if p.Column == 0 || p.Prefix != 0 && ix.Name != "PRIMARY" || t.Columns[i].Nullable {
			return nil, false
		}
		key = append(key, i)
	}
	return key, true
}
