package query

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// Table is what SHOW and information_schema tell of a table.
type Table struct {
	Database string
	Def      *schema.Table
	// View tells a table of a database that is not materialized.
	View bool
	Rows int64
	// Bytes is the size of the table's files.
	Bytes int64
}

// Tables lists the tables of a database by name, at the newest commit.
func (p *Processor) Tables(database string) ([]Table, error) {
	s, err := p.Pin()
	if err != nil {
		return nil, err
	}
	defer s.Release()
	return p.view(s.version).tables(database)
}

// Table finds a table. The error is MySQL's 1049 or 1146 when there is none.
func (p *Processor) Table(database, name string) (Table, error) {
	tables, err := p.Tables(database)
	if err != nil {
		return Table{}, err
	}
	for _, t := range tables {
		if t.Def.Name == name || t.View && strings.EqualFold(t.Def.Name, name) {
			return t, nil
		}
	}
	return Table{}, sqlerr.New(sqlerr.NoSuchTable, "Table '%s.%s' doesn't exist", database, name)
}

// view is the catalog of all databases at one commit.
type view struct {
	p       *Processor
	version *storage.Version
}

func (p *Processor) view(v *storage.Version) *view { return &view{p, v} }

func (v *view) tables(database string) ([]Table, error) {
	lower := strings.ToLower(database)
	if lower == InformationSchema {
		makers := map[string]func() *result.Table{}
		for name, make := range informationSchema {
			makers[name] = func() *result.Table { return make(&view{v.p, nil}) }
		}
		return virtualTables(lower, makers)
	}
	if makers, ok := v.p.o.System[lower]; ok {
		return virtualTables(lower, makers)
	}
	info, err := v.p.readable(v.version, database)
	if err != nil {
		return nil, err
	}
	var out []Table
	for _, t := range v.version.Tables(info.ID) {
		if t.State != storage.Copying {
			out = append(out, Table{Database: database, Def: t.Def, Rows: t.Rows, Bytes: t.Bytes})
		}
	}
	return out, nil
}

func virtualTables(database string, makers map[string]func() *result.Table) ([]Table, error) {
	var out []Table
	for _, name := range slices.Sorted(maps.Keys(makers)) {
		def := definitionOf(database, name, makers[name]().Fields())
		out = append(out, Table{Database: database, Def: def, View: true})
	}
	return out, nil
}

// all lists the tables of the databases that are readable.
func (v *view) all() []Table {
	if v.version == nil {
		return nil
	}
	var out []Table
	for _, name := range v.p.Databases() {
		if tables, err := v.tables(name); err == nil {
			out = append(out, tables...)
		}
	}
	return out
}

// Type is what information_schema.TABLES calls the table.
func (t *Table) Type() string {
	if t.View {
		return "SYSTEM VIEW"
	}
	return "BASE TABLE"
}

// ColumnKey is the Key of SHOW COLUMNS: PRI, UNI, MUL or nothing.
func (t *Table) ColumnKey(c *schema.Column) string {
	key, primary := "", field.Primary(t.Def)
	for _, ix := range t.Def.Indexes {
		for n, p := range ix.Parts {
			switch {
			case p.Column != c.ID:
			case ix.Name == primary:
				return "PRI"
			case n == 0 && ix.Unique && len(ix.Parts) == 1:
				key = "UNI"
			case n == 0 && key == "":
				key = "MUL"
			}
		}
	}
	return key
}

// Extra is the Extra of SHOW COLUMNS.
func Extra(c *schema.Column) string {
	var words []string
	if c.AutoIncrement {
		words = append(words, "auto_increment")
	}
	if c.DefaultExpr {
		words = append(words, "DEFAULT_GENERATED")
	}
	if c.OnUpdate != "" {
		words = append(words, "on update "+c.OnUpdate)
	}
	switch {
	case c.Generated != "" && c.Stored:
		words = append(words, "STORED GENERATED")
	case c.Generated != "":
		words = append(words, "VIRTUAL GENERATED")
	}
	if c.Invisible {
		words = append(words, "INVISIBLE")
	}
	return strings.Join(words, " ")
}

// CreateTable gives the table's definition as SHOW CREATE TABLE prints it. What is not in the catalog is left out: the next
// value of AUTO_INCREMENT, foreign keys, partitions, and that a collation which is the default was written out.
func (t *Table) CreateTable() string {
	var lines []string
	for i := range t.Def.Columns {
		lines = append(lines, "  "+t.columnLine(&t.Def.Columns[i]))
	}
	for _, ix := range field.Indexes(t.Def) {
		lines = append(lines, "  "+t.indexLine(&ix))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (\n%s\n)", quoteName(t.Def.Name), strings.Join(lines, ",\n"))
	fmt.Fprintf(&b, " ENGINE=%s", cmp.Or(t.Def.Engine, "InnoDB"))
	b.WriteString(t.tableCharset())
	if t.Def.Comment != "" {
		b.WriteString(" COMMENT=" + quoteText(t.Def.Comment))
	}
	return b.String()
}

// modernDefault is the collation that MySQL always writes out, since it was not the default before version 8.
const modernDefault = "utf8mb4_0900_ai_ci"

func (t *Table) tableCharset() string {
	if t.Def.Charset == "" {
		return ""
	}
	s := " DEFAULT CHARSET=" + t.Def.Charset
	if !isDefaultCollation(t.Def.Charset, t.Def.Collation) || t.Def.Collation == modernDefault {
		s += " COLLATE=" + t.Def.Collation
	}
	return s
}

func isDefaultCollation(charset, collation string) bool {
	return schema.DefaultCollation(charset) == collation
}

func (t *Table) columnLine(c *schema.Column) string {
	var b strings.Builder
	b.WriteString(quoteName(c.Name) + " " + c.ColumnType)
	b.WriteString(t.columnCharset(c))
	if c.Generated != "" {
		kind := "VIRTUAL"
		if c.Stored {
			kind = "STORED"
		}
		fmt.Fprintf(&b, " GENERATED ALWAYS AS (%s) %s", c.Generated, kind)
	}
	switch {
	case !c.Nullable:
		b.WriteString(" NOT NULL")
	case c.Type == schema.Timestamp:
		b.WriteString(" NULL")
	}
	if c.SRID != nil {
		fmt.Fprintf(&b, " /*!80003 SRID %d */", *c.SRID)
	}
	b.WriteString(columnDefault(c))
	if c.OnUpdate != "" {
		b.WriteString(" ON UPDATE " + c.OnUpdate)
	}
	if c.AutoIncrement {
		b.WriteString(" AUTO_INCREMENT")
	}
	if c.Invisible {
		b.WriteString(" /*!80023 INVISIBLE */")
	}
	if c.Comment != "" {
		b.WriteString(" COMMENT " + quoteText(c.Comment))
	}
	return b.String()
}

func (t *Table) columnCharset(c *schema.Column) string {
	if c.Charset == "" || c.Charset == "binary" {
		return ""
	}
	switch {
	case c.Collation != t.Def.Collation:
		return " CHARACTER SET " + c.Charset + " COLLATE " + c.Collation
	case !isDefaultCollation(c.Charset, c.Collation):
		return " COLLATE " + c.Collation
	}
	return ""
}

func columnDefault(c *schema.Column) string {
	switch {
	case c.Generated != "" || c.AutoIncrement:
		return ""
	case c.Default == nil:
		if !c.Nullable || c.Type >= schema.TinyText && c.Type <= schema.LongText || c.Type >= schema.TinyBlob && c.Type <= schema.LongBlob {
			return ""
		}
		return " DEFAULT NULL"
	case c.DefaultExpr && strings.HasPrefix(strings.ToUpper(*c.Default), "CURRENT_TIMESTAMP"):
		return " DEFAULT " + *c.Default
	case c.DefaultExpr:
		return " DEFAULT (" + *c.Default + ")"
	case c.Type == schema.Bit:
		return " DEFAULT " + *c.Default
	case c.Type.IsBinary():
		return " DEFAULT " + binaryDefault(c)
	}
	return " DEFAULT " + quoteText(*c.Default)
}

// binaryDefault prints bytes, which are known in hexadecimal, as the server does: as text where they are UTF-8. Bytes
// behind a zero byte are not known, as information_schema leaves them out.
func binaryDefault(c *schema.Column) string {
	digits, isHex := strings.CutPrefix(*c.Default, "0x")
	b, err := hex.DecodeString(digits)
	if !isHex || err != nil {
		return quoteText(*c.Default)
	}
	if c.Type == schema.Binary && len(b) < c.Length {
		b = append(b, make([]byte, c.Length-len(b))...)
	}
	if !utf8.Valid(b) {
		return fmt.Sprintf("0x%X", b)
	}
	return quoteText(string(b))
}

func (t *Table) indexLine(ix *schema.Index) string {
	var b strings.Builder
	switch {
	case ix.Name == "PRIMARY":
		b.WriteString("PRIMARY KEY ")
	case ix.Unique:
		b.WriteString("UNIQUE KEY " + quoteName(ix.Name) + " ")
	case ix.Kind == "FULLTEXT" || ix.Kind == "SPATIAL":
		b.WriteString(ix.Kind + " KEY " + quoteName(ix.Name) + " ")
	default:
		b.WriteString("KEY " + quoteName(ix.Name) + " ")
	}
	parts := make([]string, len(ix.Parts))
	for i, p := range ix.Parts {
		parts[i] = t.indexPart(&p)
	}
	b.WriteString("(" + strings.Join(parts, ",") + ")")
	if ix.Comment != "" {
		b.WriteString(" COMMENT " + quoteText(ix.Comment))
	}
	if ix.Invisible {
		b.WriteString(" /*!80000 INVISIBLE */")
	}
	return b.String()
}

func (t *Table) indexPart(p *schema.IndexPart) string {
	s := "(" + p.Expr + ")"
	if i := t.Def.ColumnByID(p.Column); i >= 0 {
		s = quoteName(t.Def.Columns[i].Name)
	}
	if p.Prefix > 0 {
		s += fmt.Sprintf("(%d)", p.Prefix)
	}
	if p.Desc {
		s += " DESC"
	}
	return s
}

func quoteName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// quoteText quotes as SHOW CREATE TABLE does.
func quoteText(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s) + "'"
}
