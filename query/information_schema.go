package query

import (
	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/schema"
)

// informationSchema has the tables of information_schema by name, with MySQL's columns. Those of things that are not
// here (views, routines, ...) are empty, as they are on a MySQL without them.
var informationSchema map[string]func(v *view) *result.Table

func init() { // not in the declaration: SCHEMATA and others list this map
	informationSchema = map[string]func(v *view) *result.Table{
		"SCHEMATA":                              schemata,
		"TABLES":                                tables,
		"COLUMNS":                               columns,
		"STATISTICS":                            statistics,
		"KEY_COLUMN_USAGE":                      keyColumnUsage,
		"TABLE_CONSTRAINTS":                     tableConstraints,
		"ENGINES":                               func(*view) *result.Table { return Engines() },
		"CHARACTER_SETS":                        func(*view) *result.Table { return characterSets() },
		"COLLATIONS":                            func(*view) *result.Table { return collationsTable() },
		"COLLATION_CHARACTER_SET_APPLICABILITY": func(*view) *result.Table { return applicability() },
		"USER_PRIVILEGES":                       userPrivileges,
		"PROCESSLIST":                           processList,
		"KEYWORDS":                              keywords,
	}
	for name := range informationDefinitions {
		if informationSchema[name] == nil {
			informationSchema[name] = func(*view) *result.Table { return informationTable(name) }
		}
	}
}

const catalogName = "def"

func schemata(v *view) *result.Table {
	t := informationTable("SCHEMATA")
	for _, name := range v.p.Databases() {
		charset, collation := "utf8mb4", modernDefault
		if name == InformationSchema {
			charset, collation = "utf8mb3", "utf8mb3_general_ci"
		}
		t.Add(catalogName, name, charset, collation, nil, "NO")
	}
	return t
}

func tables(v *view) *result.Table {
	t := informationTable("TABLES")
	for _, x := range v.all() {
		if x.View {
			t.Add(catalogName, x.Database, x.Def.Name, x.Type(), nil, 10, nil, 0, 0, 0, 0, 0, 0, nil, nil, nil, nil, nil, nil, "", "")
			continue
		}
		average := int64(0)
		if x.Rows > 0 {
			average = x.Bytes / x.Rows
		}
		t.Add(catalogName, x.Database, x.Def.Name, x.Type(), x.Def.Engine, 10, "Dynamic", x.Rows, average, x.Bytes, 0, 0, 0,
			nil, nil, nil, nil, x.Def.Collation, nil, "", x.Def.Comment)
	}
	return t
}

func columns(v *view) *result.Table {
	t := informationTable("COLUMNS")
	for _, x := range v.all() {
		for i := range x.Def.Columns {
			addColumn(t, &x, i)
		}
	}
	return t
}

// Privileges is what every user may do with every column.
const Privileges = "select"

func addColumn(t *result.Table, x *Table, i int) {
	c := &x.Def.Columns[i]
	chars, octets := textLengths(c)
	precision, scale := numericPrecision(c)
	var fsp, charset, collation any
	if c.Type == schema.DateTime || c.Type == schema.Timestamp || c.Type == schema.Time {
		fsp = c.FSP
	}
	if c.Charset != "" && c.Charset != "binary" {
		charset, collation = c.Charset, c.Collation
	}
	t.Add(catalogName, x.Database, x.Def.Name, c.Name, i+1, c.Default, YesNo(c.Nullable), c.Type.String(), chars, octets,
		precision, scale, fsp, charset, collation, c.ColumnType, x.ColumnKey(c), Extra(c), Privileges, c.Comment, c.Generated, nil)
}

// YesNo is how information_schema spells a truth value.
func YesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// textLengths gives CHARACTER_MAXIMUM_LENGTH and CHARACTER_OCTET_LENGTH; nil where they mean nothing.
func textLengths(c *schema.Column) (chars, octets any) {
	bytesPerChar := int64(schema.CharBytes(c.Charset))
	switch {
	case c.Type == schema.Char || c.Type == schema.VarChar:
		return c.Length, int64(c.Length) * bytesPerChar
	case c.Type == schema.Binary || c.Type == schema.VarBinary:
		return c.Length, c.Length
	case c.Type == schema.Enum || c.Type == schema.Set:
		n := int64(field.Of(&schema.Table{Columns: []schema.Column{*c}}, 0, field.UTF8MB4).Length / utf8mb4Bytes)
		return n, n * bytesPerChar
	case c.Type.IsText() || c.Type.IsBinary():
		return blobBytes[c.Type], blobBytes[c.Type]
	}
	return nil, nil
}

var blobBytes = map[schema.Type]int64{
	schema.TinyText: 1<<8 - 1, schema.Text: 1<<16 - 1, schema.MediumText: 1<<24 - 1, schema.LongText: 1<<32 - 1,
	schema.TinyBlob: 1<<8 - 1, schema.Blob: 1<<16 - 1, schema.MediumBlob: 1<<24 - 1, schema.LongBlob: 1<<32 - 1,
}

var integerDigits = map[schema.Type]int{schema.TinyInt: 3, schema.SmallInt: 5, schema.MediumInt: 7, schema.Int: 10, schema.BigInt: 19}

func numericPrecision(c *schema.Column) (precision, scale any) {
	switch c.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int:
		return integerDigits[c.Type], 0
	case schema.BigInt:
		if c.Unsigned {
			return 20, 0
		}
		return integerDigits[c.Type], 0
	case schema.Decimal:
		return c.Precision, c.Scale
	case schema.Bit:
		return c.Length, nil
	case schema.Float, schema.Double:
		if c.Scale != schema.FloatUnscaled {
			return c.Precision, c.Scale
		}
		if c.Type == schema.Float {
			return 12, nil
		}
		return 22, nil
	}
	return nil, nil
}

func statistics(v *view) *result.Table {
	t := informationTable("STATISTICS")
	for _, x := range v.all() {
		x.eachIndexPart(func(p *IndexRow) {
			t.Add(catalogName, x.Database, x.Def.Name, p.NonUnique, x.Database, p.Index.Name, p.Seq, p.Column, p.Collation, p.Cardinality,
				p.SubPart, nil, p.Nullable, p.Index.Kind, "", p.Index.Comment, YesNo(!p.Index.Invisible), p.Expression)
		})
	}
	return t
}

// IndexRow is a row of SHOW INDEX: one column of one index.
type IndexRow struct {
	Index       *schema.Index
	NonUnique   int
	Seq         int
	Column      any // the name; nil for an expression
	Collation   any // A, D or nil
	Cardinality int64
	SubPart     any
	Nullable    string
	Expression  any
}

// IndexRows gives what SHOW INDEX shows. The cardinality of the whole primary key is the number of rows; others are not
// known and estimated by it.
func (t *Table) IndexRows() []IndexRow {
	var out []IndexRow
	t.eachIndexPart(func(p *IndexRow) { out = append(out, *p) })
	return out
}

func (t *Table) eachIndexPart(fn func(p *IndexRow)) {
	for _, ix := range field.Indexes(t.Def) {
		for n, part := range ix.Parts {
			row := IndexRow{Index: &ix, Seq: n + 1, Cardinality: t.Rows, NonUnique: 1, Collation: "A"}
			if ix.Unique {
				row.NonUnique = 0
			}
			if part.Desc {
				row.Collation = "D"
			}
			if ix.Kind == "FULLTEXT" {
				row.Collation = nil
			}
			if part.Prefix > 0 {
				row.SubPart = part.Prefix
			}
			if i := t.Def.ColumnByID(part.Column); i >= 0 {
				row.Column = t.Def.Columns[i].Name
				if t.Def.Columns[i].Nullable {
					row.Nullable = "YES"
				}
			} else {
				row.Expression = part.Expr
			}
			fn(&row)
		}
	}
}

func keyColumnUsage(v *view) *result.Table {
	t := informationTable("KEY_COLUMN_USAGE")
	for _, x := range v.all() {
		x.eachIndexPart(func(p *IndexRow) {
			if p.Index.Unique && p.Column != nil {
				t.Add(catalogName, x.Database, p.Index.Name, catalogName, x.Database, x.Def.Name, p.Column, p.Seq, nil, nil, nil, nil)
			}
		})
	}
	return t
}

func tableConstraints(v *view) *result.Table {
	t := informationTable("TABLE_CONSTRAINTS")
	for _, x := range v.all() {
		for _, ix := range field.Indexes(x.Def) {
			switch {
			case ix.Name == "PRIMARY":
				t.Add(catalogName, x.Database, ix.Name, x.Database, x.Def.Name, "PRIMARY KEY", "YES")
			case ix.Unique:
				t.Add(catalogName, x.Database, ix.Name, x.Database, x.Def.Name, "UNIQUE", "YES")
			}
		}
	}
	return t
}

// Engines is SHOW ENGINES.
func Engines() *result.Table {
	t := informationTable("ENGINES")
	t.Add("InnoDB", "DEFAULT", "Tables of the source, kept as columns", "YES", "NO", "NO")
	return t
}

// ProcessListFields are the columns of information_schema.PROCESSLIST.
func ProcessListFields() []field.Field {
	return informationTable("PROCESSLIST").Fields()
}

func processList(v *view) *result.Table {
	if v.p.o.ProcessList == nil {
		return result.NewTable(ProcessListFields()...)
	}
	return v.p.o.ProcessList()
}

func userPrivileges(*view) *result.Table {
	t := informationTable("USER_PRIVILEGES")
	for _, p := range []string{"SELECT", "PROCESS", "SHOW DATABASES"} {
		t.Add("'root'@'%'", catalogName, p, "NO")
	}
	return t
}
