package query

import (
	"strings"

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
	}
	for name, spec := range emptyTables {
		informationSchema[name] = func(*view) *result.Table { return result.NewTable(fieldList(spec)...) }
	}
}

// Columns are written as name:type, the types being b (text compared by case), t (text), l (long text compared by case), u (BIGINT UNSIGNED),
// i (BIGINT), d (DATETIME), f (DOUBLE), and a question mark where NULL is possible.

const schemataSpec = "CATALOG_NAME:b SCHEMA_NAME:b DEFAULT_CHARACTER_SET_NAME:t DEFAULT_COLLATION_NAME:t SQL_PATH:t? DEFAULT_ENCRYPTION:b"

const tablesSpec = "TABLE_CATALOG:b TABLE_SCHEMA:b TABLE_NAME:b TABLE_TYPE:b ENGINE:t? VERSION:i? ROW_FORMAT:b? TABLE_ROWS:u? " +
	"AVG_ROW_LENGTH:u? DATA_LENGTH:u? MAX_DATA_LENGTH:u? INDEX_LENGTH:u? DATA_FREE:u? AUTO_INCREMENT:u? CREATE_TIME:d? UPDATE_TIME:d? " +
	"CHECK_TIME:d? TABLE_COLLATION:t? CHECKSUM:i? CREATE_OPTIONS:t? TABLE_COMMENT:t?"

const columnsSpec = "TABLE_CATALOG:b TABLE_SCHEMA:b TABLE_NAME:b COLUMN_NAME:t? ORDINAL_POSITION:u COLUMN_DEFAULT:l? IS_NULLABLE:t " +
	"DATA_TYPE:l? CHARACTER_MAXIMUM_LENGTH:i? CHARACTER_OCTET_LENGTH:i? NUMERIC_PRECISION:u? NUMERIC_SCALE:u? DATETIME_PRECISION:u? " +
	"CHARACTER_SET_NAME:t? COLLATION_NAME:t? COLUMN_TYPE:l COLUMN_KEY:b EXTRA:t? PRIVILEGES:t? COLUMN_COMMENT:l GENERATION_EXPRESSION:l SRS_ID:u?"

const statisticsSpec = "TABLE_CATALOG:b TABLE_SCHEMA:b TABLE_NAME:b NON_UNIQUE:i INDEX_SCHEMA:b INDEX_NAME:t? SEQ_IN_INDEX:u COLUMN_NAME:t? " +
	"COLLATION:t? CARDINALITY:i? SUB_PART:i? PACKED:t? NULLABLE:t INDEX_TYPE:b COMMENT:t INDEX_COMMENT:b IS_VISIBLE:t EXPRESSION:l?"

const keyColumnUsageSpec = "CONSTRAINT_CATALOG:b CONSTRAINT_SCHEMA:b CONSTRAINT_NAME:t? TABLE_CATALOG:b TABLE_SCHEMA:b TABLE_NAME:b " +
	"COLUMN_NAME:t? ORDINAL_POSITION:u POSITION_IN_UNIQUE_CONSTRAINT:u? REFERENCED_TABLE_SCHEMA:b? REFERENCED_TABLE_NAME:b? REFERENCED_COLUMN_NAME:t?"

const tableConstraintsSpec = "CONSTRAINT_CATALOG:b CONSTRAINT_SCHEMA:b CONSTRAINT_NAME:t? TABLE_SCHEMA:b TABLE_NAME:b CONSTRAINT_TYPE:b ENFORCED:b"

var emptyTables = map[string]string{
	"VIEWS": "TABLE_CATALOG:b TABLE_SCHEMA:b TABLE_NAME:b VIEW_DEFINITION:l? CHECK_OPTION:b? IS_UPDATABLE:b? DEFINER:b? " +
		"SECURITY_TYPE:b? CHARACTER_SET_CLIENT:t COLLATION_CONNECTION:t",
	"ROUTINES": "SPECIFIC_NAME:t ROUTINE_CATALOG:b ROUTINE_SCHEMA:b ROUTINE_NAME:t ROUTINE_TYPE:b DATA_TYPE:l? CHARACTER_MAXIMUM_LENGTH:i? " +
		"CHARACTER_OCTET_LENGTH:i? NUMERIC_PRECISION:u? NUMERIC_SCALE:u? DATETIME_PRECISION:u? CHARACTER_SET_NAME:t? COLLATION_NAME:t? " +
		"DTD_IDENTIFIER:l? ROUTINE_BODY:t ROUTINE_DEFINITION:l? EXTERNAL_NAME:t? EXTERNAL_LANGUAGE:b PARAMETER_STYLE:t IS_DETERMINISTIC:t " +
		"SQL_DATA_ACCESS:b SQL_PATH:t? SECURITY_TYPE:b CREATED:d LAST_ALTERED:d SQL_MODE:b ROUTINE_COMMENT:l DEFINER:b " +
		"CHARACTER_SET_CLIENT:t COLLATION_CONNECTION:t DATABASE_COLLATION:t",
	"TRIGGERS": "TRIGGER_CATALOG:b TRIGGER_SCHEMA:b TRIGGER_NAME:t EVENT_MANIPULATION:b EVENT_OBJECT_CATALOG:b EVENT_OBJECT_SCHEMA:b " +
		"EVENT_OBJECT_TABLE:b ACTION_ORDER:u ACTION_CONDITION:t? ACTION_STATEMENT:l ACTION_ORIENTATION:t ACTION_TIMING:b " +
		"ACTION_REFERENCE_OLD_TABLE:t? ACTION_REFERENCE_NEW_TABLE:t? ACTION_REFERENCE_OLD_ROW:t ACTION_REFERENCE_NEW_ROW:t CREATED:d " +
		"SQL_MODE:b DEFINER:b CHARACTER_SET_CLIENT:t COLLATION_CONNECTION:t DATABASE_COLLATION:t",
	"EVENTS": "EVENT_CATALOG:b EVENT_SCHEMA:b EVENT_NAME:t DEFINER:b TIME_ZONE:b EVENT_BODY:t EVENT_DEFINITION:l EVENT_TYPE:t EXECUTE_AT:d? " +
		"INTERVAL_VALUE:t? INTERVAL_FIELD:b? SQL_MODE:b STARTS:d? ENDS:d? STATUS:b ON_COMPLETION:t CREATED:d LAST_ALTERED:d LAST_EXECUTED:d? " +
		"EVENT_COMMENT:b ORIGINATOR:u CHARACTER_SET_CLIENT:t COLLATION_CONNECTION:t DATABASE_COLLATION:t",
	"PARAMETERS": "SPECIFIC_CATALOG:b SPECIFIC_SCHEMA:b SPECIFIC_NAME:t ORDINAL_POSITION:u PARAMETER_MODE:b? PARAMETER_NAME:t? DATA_TYPE:l? " +
		"CHARACTER_MAXIMUM_LENGTH:i? CHARACTER_OCTET_LENGTH:i? NUMERIC_PRECISION:u? NUMERIC_SCALE:i? DATETIME_PRECISION:u? " +
		"CHARACTER_SET_NAME:t? COLLATION_NAME:t? DTD_IDENTIFIER:l ROUTINE_TYPE:b",
	"REFERENTIAL_CONSTRAINTS": "CONSTRAINT_CATALOG:b CONSTRAINT_SCHEMA:b CONSTRAINT_NAME:t? UNIQUE_CONSTRAINT_CATALOG:b UNIQUE_CONSTRAINT_SCHEMA:b " +
		"UNIQUE_CONSTRAINT_NAME:t? MATCH_OPTION:b UPDATE_RULE:b DELETE_RULE:b TABLE_NAME:b REFERENCED_TABLE_NAME:b",
	"PARTITIONS": "TABLE_CATALOG:b TABLE_SCHEMA:b TABLE_NAME:b PARTITION_NAME:t? SUBPARTITION_NAME:t? PARTITION_ORDINAL_POSITION:u? " +
		"SUBPARTITION_ORDINAL_POSITION:u? PARTITION_METHOD:t? SUBPARTITION_METHOD:t? PARTITION_EXPRESSION:b? SUBPARTITION_EXPRESSION:b? " +
		"PARTITION_DESCRIPTION:l? TABLE_ROWS:u? AVG_ROW_LENGTH:u? DATA_LENGTH:u? MAX_DATA_LENGTH:u? INDEX_LENGTH:u? DATA_FREE:u? " +
		"CREATE_TIME:d UPDATE_TIME:d? CHECK_TIME:d? CHECKSUM:i? PARTITION_COMMENT:l NODEGROUP:t? TABLESPACE_NAME:b?",
	"PLUGINS": "PLUGIN_NAME:t PLUGIN_VERSION:t PLUGIN_STATUS:t PLUGIN_TYPE:t PLUGIN_TYPE_VERSION:t PLUGIN_LIBRARY:t? PLUGIN_LIBRARY_VERSION:t? " +
		"PLUGIN_AUTHOR:t? PLUGIN_DESCRIPTION:t? PLUGIN_LICENSE:t? LOAD_OPTION:t",
	"CHECK_CONSTRAINTS": "CONSTRAINT_CATALOG:b CONSTRAINT_SCHEMA:b CONSTRAINT_NAME:t CHECK_CLAUSE:l",
	"SCHEMA_PRIVILEGES": "GRANTEE:t TABLE_CATALOG:t TABLE_SCHEMA:t PRIVILEGE_TYPE:t IS_GRANTABLE:t",
	"TABLE_PRIVILEGES":  "GRANTEE:t TABLE_CATALOG:t TABLE_SCHEMA:t TABLE_NAME:t PRIVILEGE_TYPE:t IS_GRANTABLE:t",
	"COLUMN_PRIVILEGES": "GRANTEE:t TABLE_CATALOG:t TABLE_SCHEMA:t TABLE_NAME:t COLUMN_NAME:t PRIVILEGE_TYPE:t IS_GRANTABLE:t",
	"FILES": "FILE_ID:i? FILE_NAME:l? FILE_TYPE:t? TABLESPACE_NAME:b TABLE_CATALOG:t TABLE_SCHEMA:t? TABLE_NAME:t? LOGFILE_GROUP_NAME:t? " +
		"LOGFILE_GROUP_NUMBER:i? ENGINE:t FULLTEXT_KEYS:t? DELETED_ROWS:t? UPDATE_COUNT:t? FREE_EXTENTS:i? TOTAL_EXTENTS:i? EXTENT_SIZE:i? " +
		"INITIAL_SIZE:i? MAXIMUM_SIZE:i? AUTOEXTEND_SIZE:i? CREATION_TIME:t? LAST_UPDATE_TIME:t? LAST_ACCESS_TIME:t? RECOVER_TIME:t? " +
		"TRANSACTION_COUNTER:t? VERSION:i? ROW_FORMAT:t? TABLE_ROWS:t? AVG_ROW_LENGTH:t? DATA_LENGTH:t? MAX_DATA_LENGTH:t? INDEX_LENGTH:t? " +
		"DATA_FREE:i? CREATE_TIME:t? UPDATE_TIME:t? CHECK_TIME:t? CHECKSUM:t? STATUS:t? EXTRA:t?",
	"COLUMN_STATISTICS": "SCHEMA_NAME:b TABLE_NAME:b COLUMN_NAME:t HISTOGRAM:l",
}

func fieldList(spec string) []field.Field {
	var out []field.Field
	for _, s := range strings.Fields(spec) {
		name, kind, _ := strings.Cut(s, ":")
		kind, nullable := strings.CutSuffix(kind, "?")
		var f field.Field
		switch kind {
		case "b":
			f = result.Object(name)
		case "l":
			f = result.LongText(name)
			f.Charset = field.UTF8MB3Bin
		case "u":
			f = result.Uint(name)
		case "i":
			f = result.Int(name)
		case "d":
			f = result.DateTime(name)
		case "f":
			f = result.Double(name)
		default:
			f = result.Text(name)
		}
		if !nullable {
			f.Flags |= field.NotNull
		}
		out = append(out, f)
	}
	return out
}

const catalogName = "def"

func schemata(v *view) *result.Table {
	t := result.NewTable(fieldList(schemataSpec)...)
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
	t := result.NewTable(fieldList(tablesSpec)...)
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
	t := result.NewTable(fieldList(columnsSpec)...)
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
	bytesPerChar := int64(1)
	switch c.Charset {
	case "utf8mb4":
		bytesPerChar = 4
	case "utf8mb3":
		bytesPerChar = 3
	}
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
	t := result.NewTable(fieldList(statisticsSpec)...)
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
	t := result.NewTable(fieldList(keyColumnUsageSpec)...)
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
	t := result.NewTable(fieldList(tableConstraintsSpec)...)
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
	t := result.NewTable(fieldList("ENGINE:t SUPPORT:t COMMENT:t TRANSACTIONS:t? XA:t? SAVEPOINTS:t?")...)
	t.Add("InnoDB", "DEFAULT", "Tables of the source, kept as columns", "YES", "NO", "NO")
	return t
}

// ProcessListFields are the columns of information_schema.PROCESSLIST.
func ProcessListFields() []field.Field {
	return fieldList("ID:u USER:t HOST:t DB:t? COMMAND:t TIME:i STATE:t? INFO:l?")
}

func processList(v *view) *result.Table {
	if v.p.o.ProcessList == nil {
		return result.NewTable(ProcessListFields()...)
	}
	return v.p.o.ProcessList()
}

func userPrivileges(*view) *result.Table {
	t := result.NewTable(fieldList("GRANTEE:t TABLE_CATALOG:t PRIVILEGE_TYPE:t IS_GRANTABLE:t")...)
	for _, p := range []string{"SELECT", "PROCESS", "SHOW DATABASES"} {
		t.Add("'root'@'%'", catalogName, p, "NO")
	}
	return t
}
