package query

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/schema"
)

// recordedColumns are the tables of information_schema as SHOW COLUMNS of MySQL 9.7 has them: a name, then a line a
// column, with b for a name that compares by its bytes and ? where NULL is possible. CREATE_TIME may be NULL here.
//
//go:embed information_schema.txt
var recordedColumns string

// recordedKeywords are the words of information_schema.KEYWORDS, the reserved ones with an asterisk.
//
//go:embed keywords.txt
var recordedKeywords string

// informationDefinitions are the definitions of all tables of information_schema by name.
var informationDefinitions = parseDefinitions(recordedColumns)

func parseDefinitions(text string) map[string]*schema.Table {
	all := map[string]*schema.Table{}
	var def *schema.Table
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		spec, isColumn := strings.CutPrefix(line, "\t")
		if !isColumn {
			def = &schema.Table{Database: InformationSchema, Name: line, Version: 1, Charset: "utf8mb3", Collation: "utf8mb3_general_ci"}
			all[line] = def
			continue
		}
		c := parseColumn(spec)
		c.ID = uint32(len(def.Columns) + 1)
		def.Columns = append(def.Columns, c)
	}
	return all
}

func parseColumn(spec string) schema.Column {
	name, columnType, _ := strings.Cut(spec, " ")
	name, marks, _ := strings.Cut(name, ":")
	c, err := schema.ParseColumnType(columnType)
	if err != nil {
		panic(fmt.Sprintf("query: information_schema.txt: column %s: %v", name, err))
	}
	c.Name, c.Nullable = name, strings.Contains(marks, "?")
	if field.HasText(c.Type) {
		c.Charset, c.Collation = "utf8mb3", "utf8mb3_general_ci"
		if strings.Contains(marks, "b") {
			c.Collation = "utf8mb3_bin"
		}
	}
	return c
}

// informationTable makes an empty table with the columns of one of information_schema.
func informationTable(name string) *result.Table {
	def := informationDefinitions[name]
	fields := make([]field.Field, len(def.Columns))
	for i := range fields {
		fields[i] = field.Of(def, i, field.UTF8MB3)
	}
	return result.NewTable(fields...)
}

// definitionOf gives the definition of a table that is made of rows in memory.
func definitionOf(database, name string, fields []field.Field) *schema.Table {
	def := &schema.Table{Database: database, Name: name, Version: 1, Charset: "utf8mb3", Collation: "utf8mb3_general_ci"}
	if known := informationDefinitions[name]; known != nil && database == InformationSchema {
		def.Columns = known.Columns
		return def
	}
	for i := range fields {
		c := columnOf(&fields[i])
		c.ID = uint32(i + 1)
		def.Columns = append(def.Columns, c)
	}
	return def
}

func keywords(*view) *result.Table {
	t := informationTable("KEYWORDS")
	for _, word := range strings.Fields(recordedKeywords) {
		word, isReserved := strings.CutSuffix(word, "*")
		reserved := 0
		if isReserved {
			reserved = 1
		}
		t.Add(word, reserved)
	}
	return t
}
