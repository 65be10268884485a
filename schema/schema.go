// Package schema holds the definition of a MySQL table as plain values: columns with their types, the key, the
// indexes; the mapping of MySQL types to Arrow; and the text forms in which MySQL prints and reads values.
//
// The values are immutable once published: a change makes a new Table with a higher Version. Column IDs are never
// reused within a table; they are the Parquet field ids of its parts, so that parts written under an older version
// are read by id.
package schema

import (
	"fmt"
	"slices"
	"strings"
)

// MaxDecimal128 is the largest precision that a decimal128 holds; wider DECIMAL columns are stored as exact text.
const MaxDecimal128 = 38

// FloatUnscaled is the Scale of a FLOAT or DOUBLE column declared without (M,D).
const FloatUnscaled = -1

// Column is one column of a table.
type Column struct {
	// ID identifies the column within its table for ever; it is the Parquet field id. IDs start at 1.
	ID   uint32
	Name string
	Type Type
	// Unsigned and Zerofill are the attributes of numeric types.
	Unsigned bool `json:",omitempty"`
	Zerofill bool `json:",omitempty"`
	// Length is the display width of integers (0: none declared), characters of CHAR and VARCHAR, bytes of BINARY and
	// VARBINARY, bits of BIT, dimensions of VECTOR. It means nothing for other types.
	Length int `json:",omitempty"`
	// Precision and Scale are DECIMAL(Precision,Scale). Scale is FloatUnscaled for FLOAT and DOUBLE without (M,D).
	Precision int `json:",omitempty"`
	Scale     int `json:",omitempty"`
	// FSP is the number of fractional digits of DATETIME, TIMESTAMP and TIME, 0..6.
	FSP int `json:",omitempty"`
	// Charset and Collation are MySQL's names; empty for types without.
	Charset   string `json:",omitempty"`
	Collation string `json:",omitempty"`
	// Elements are the labels of ENUM and SET, in order, as UTF-8.
	Elements []string `json:",omitempty"`
	Nullable bool     `json:",omitempty"`
	// Default is the declared default as information_schema.COLUMNS.COLUMN_DEFAULT has it; nil: none or NULL.
	// DefaultExpr tells that it is an expression (CURRENT_TIMESTAMP included) and not a literal.
	Default     *string `json:",omitempty"`
	DefaultExpr bool    `json:",omitempty"`
	// OnUpdate is the ON UPDATE expression of the column, usually empty.
	OnUpdate      string `json:",omitempty"`
	AutoIncrement bool   `json:",omitempty"`
	Invisible     bool   `json:",omitempty"`
	// Generated is the expression of a generated column; Stored tells STORED from VIRTUAL.
	Generated string `json:",omitempty"`
	Stored    bool   `json:",omitempty"`
	// SRID is the spatial reference system that a GEOMETRY column is restricted to; nil: none.
	SRID    *uint32 `json:",omitempty"`
	Comment string  `json:",omitempty"`
	// ColumnType is the full type as information_schema.COLUMNS.COLUMN_TYPE prints it, such as "int unsigned".
	ColumnType string
	// Added tells that the column came by ADD COLUMN after the table's first version: rows in parts without this column
	// have the value Initial, in MySQL's text form; nil is NULL.
	Added   bool    `json:",omitempty"`
	Initial *string `json:",omitempty"`
}

// Wide tells a column whose values need 64 unsigned bits: BIGINT UNSIGNED and BIT(64).
func (c *Column) Wide() bool {
	return c.Type == BigInt && c.Unsigned || c.Type == Bit && c.Length > 63
}

// Index is a secondary or primary index, kept for SHOW and information_schema.
type Index struct {
	Name      string
	Unique    bool        `json:",omitempty"`
	Kind      string      `json:",omitempty"` // BTREE, FULLTEXT, SPATIAL, HASH
	Parts     []IndexPart `json:",omitempty"`
	Comment   string      `json:",omitempty"`
	Invisible bool        `json:",omitempty"`
}

// IndexPart is one column of an index.
type IndexPart struct {
	Column uint32 // column id; 0 for an expression
	Prefix int    `json:",omitempty"` // characters or bytes of a prefix index; 0: the whole column
	Desc   bool   `json:",omitempty"`
	Expr   string `json:",omitempty"`
}

// Table is one version of a table's definition.
type Table struct {
	Database string
	Name     string
	Version  uint32
	Columns  []Column
	// Key lists the indexes into Columns of the columns that identify a row, in key order. KeyName is the index it
	// comes from, normally PRIMARY. Without a key the table is a multiset: see Multiset.
	Key     []int
	KeyName string
	Indexes []Index `json:",omitempty"`
	// NextColumnID is the next unused column id.
	NextColumnID uint32
	Engine       string `json:",omitempty"`
	Charset      string `json:",omitempty"`
	Collation    string `json:",omitempty"`
	Comment      string `json:",omitempty"`
}

// FullName gives database.table for messages.
func (t *Table) FullName() string { return t.Database + "." + t.Name }

// Column finds a column by name, ignoring case as MySQL does. It returns -1 when there is none.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
}

// ColumnByID finds a column by id. It returns -1 when there is none.
func (t *Table) ColumnByID(id uint32) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.ID == id })
}

// Multiset tells a table without a key: neither a primary key nor a unique one of NOT NULL columns. Equal rows may stand
// in it several times, and a row is identified by all its values: deleting one takes one of its equals away.
func (t *Table) Multiset() bool { return len(t.Key) == 0 && len(t.Columns) > 0 }

// IsKey tells whether the column with index i is part of the key.
func (t *Table) IsKey(i int) bool { return slices.Contains(t.Key, i) }

// Clone gives a deep enough copy to be changed into the next version.
func (t *Table) Clone() *Table {
	n := *t
	n.Columns = slices.Clone(t.Columns)
	n.Key = slices.Clone(t.Key)
	n.Indexes = slices.Clone(t.Indexes)
	return &n
}

// Problems lists everything that keeps the table from being materialized, one sentence each, naming the column.
func (t *Table) Problems() []string {
	var out []string
	for i := range t.Columns {
		c := &t.Columns[i]
		if !c.Type.Supported() {
			out = append(out, fmt.Sprintf("table %s: column %s has type %s, which is not supported yet", t.FullName(), c.Name, c.ColumnType))
			continue
		}
		if c.Charset != "" && !SupportedCharset(c.Charset) {
			out = append(out, fmt.Sprintf("table %s: column %s has character set %s, which is not supported yet", t.FullName(), c.Name, c.Charset))
		}
	}
	for _, k := range t.Key {
		if c := &t.Columns[k]; c.Type.Supported() && !c.Type.SupportedKey() {
			out = append(out, fmt.Sprintf("table %s: key column %s has type %s, which is not supported in a key", t.FullName(), c.Name, c.ColumnType))
		}
	}
	if t.Engine != "" && !strings.EqualFold(t.Engine, "InnoDB") {
		out = append(out, fmt.Sprintf("table %s has engine %s, which a consistent snapshot does not cover; only InnoDB is supported", t.FullName(), t.Engine))
	}
	return out
}
