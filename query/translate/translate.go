// Package translate turns a SELECT in MySQL's dialect into one for DuckDB that gives MySQL's answer.
//
// It is pure: it parses (with TiDB's parser), resolves names against a [Catalog], gives every expression the type that
// MySQL gives it, and writes SQL whose values, once printed by the rules in [ResultColumn], are the bytes that MySQL
// sends. What it is not sure of it refuses by name with [*Unsupported]; what MySQL refuses it refuses with MySQL's own
// number and text as [*sqlerr.Error]. It never guesses: a wrong answer is a defect, a refusal is not.
//
// The contract with the engine that runs the text:
//
//   - Tables stand in the text as marks that [Statement.Render] replaces. A relation has one column a table column,
//     named c<id> with the column's id, of the DuckDB types INTEGER (TINYINT..INT, YEAR), BIGINT (INT UNSIGNED, BIGINT,
//     BIT up to 63), UBIGINT (BIGINT UNSIGNED and BIT(64); BIGINT where [TableInfo.FitsInt64] says so), DECIMAL(p,s) up
//     to 38 digits and VARCHAR beyond, FLOAT, DOUBLE, DATE, TIMESTAMP (DATETIME), TIMESTAMPTZ (TIMESTAMP), BIGINT
//     microseconds (TIME), VARCHAR (text, ENUM, SET, JSON) and BLOB (byte strings), and the BLOB column exact where
//     [TableRead.Exact] asks for it.
//   - The functions named tm_... are scalar functions that the engine registers.
//   - A value that DuckDB cannot hold ends the query with an error; nothing is rounded silently.
package translate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pingcap/tidb/pkg/parser/ast"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"

	"github.com/tidemarkdb/tidemark/schema"
)

// Catalog resolves table names. It stands for one pinned point in time.
type Catalog interface {
	// Table gives a table, or nil when the database has none of that name. Its errors are passed on as they are
	// (a database that is not readable yet, a quarantined table).
	Table(database, name string) (*TableInfo, error)
}

// TableInfo is what translation must know about a table at the point in time that is read.
type TableInfo struct {
	Table *schema.Table
	// Rows is about the number of rows, as far as it is known.
	Rows int64
	// Exact tells whether a column has values in this version that its DuckDB type can't hold. nil: none has.
	Exact func(column uint32) bool
	// FitsInt64 tells for a 64-bit unsigned column whether all values of this version are below 1<<63, so that the
	// relation has a BIGINT. nil: none does.
	FitsInt64 func(column uint32) bool
}

func (i *TableInfo) exact(id uint32) bool { return i.Exact != nil && i.Exact(id) }

func (i *TableInfo) fits(id uint32) bool { return i.FitsInt64 != nil && i.FitsInt64(id) }

// Session is the state of the connection that gives a statement its meaning.
type Session struct {
	// Database is the default database; empty: none.
	Database string
	SQLMode  SQLMode
	// Location is the session's time_zone; nil: UTC.
	Location *time.Location
	// Collation is collation_connection, for literals; empty: utf8mb4_0900_ai_ci.
	Collation string
	// BinaryCollation is tidemark_collation = 'binary': all text compares by its bytes.
	BinaryCollation bool
	// WideDecimals computes decimals of up to 18 digits in 128 bits where a result may need more. Without it such a result
	// ends the query with DuckDB's overflow of DECIMAL(18), and the statement can be translated again with it.
	WideDecimals bool
	// Now is the statement's time, for NOW() and the like.
	Now time.Time
	// GroupConcatMaxLen is group_concat_max_len in bytes; 0: 1024.
	GroupConcatMaxLen int
	// Function gives the value of a function of the session without arguments (DATABASE, VERSION, CONNECTION_ID, USER,
	// CURRENT_USER, ...), named in upper case. ok is false for one it does not have.
	Function func(name string) (v Value, ok bool)
	// SystemVariable gives @@name; scope is "", "global" or "session". Its errors are passed on.
	SystemVariable func(scope, name string) (Value, error)
	// UserVariable gives @name; a variable never set is NULL.
	UserVariable func(name string) Value
}

// SQLMode holds the sql_mode flags that change the meaning of a SELECT.
type SQLMode struct {
	ANSIQuotes            bool
	PipesAsConcat         bool
	NoBackslashEscapes    bool
	HighNotPrecedence     bool
	IgnoreSpace           bool
	OnlyFullGroupBy       bool
	NoUnsignedSubtraction bool
	RealAsFloat           bool
	PadCharToFullLength   bool
}

// TableRead is one table that the statement reads.
type TableRead struct {
	Table *schema.Table
	// Columns are the ids of the columns read, each once, in ascending order.
	Columns []uint32
	// Exact tells that the hidden column is read too.
	Exact bool
}

// Statement is a translated SELECT.
type Statement struct {
	// Tables are the tables read, each once; the index is that of [Statement.Render].
	Tables []TableRead
	// Columns are the result's columns as MySQL announces them. The DuckDB result has these columns first, in this
	// order, and after them the hidden ones that ResultColumn.Exact names.
	Columns []ResultColumn
	sql     string
}

const markStart, markEnd = "\x01", "\x02"

// Render gives the DuckDB text with relation i standing for Tables[i]: the name of a view, or a SELECT in parentheses.
func (s *Statement) Render(relation func(i int) string) string {
	var b strings.Builder
	rest := s.sql
	for {
		before, after, found := strings.Cut(rest, markStart)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		index, tail, _ := strings.Cut(after, markEnd)
		i, err := strconv.Atoi(index)
		if err != nil {
			panic("translate: damaged relation mark " + index)
		}
		b.WriteString(relation(i))
		rest = tail
	}
}

type translator struct {
	session *Session
	catalog Catalog
	params  []Value
	markers map[*driver.ParamMarkerExpr]int
	reads   []*tableRead
	aliases int
}

// orderMarkers numbers the parameter markers as they stand in the text.
func orderMarkers(stmt ast.StmtNode) map[*driver.ParamMarkerExpr]int {
	var markers []*driver.ParamMarkerExpr
	f := &deepFinder{&finder{hit: func(n ast.Node) bool {
		if m, ok := n.(*driver.ParamMarkerExpr); ok {
			markers = append(markers, m)
		}
		return false
	}}}
	stmt.Accept(f)
	slices.SortFunc(markers, func(a, b *driver.ParamMarkerExpr) int { return a.Offset - b.Offset })
	order := make(map[*driver.ParamMarkerExpr]int, len(markers))
	for i, m := range markers {
		order[m] = i
	}
	return order
}

type tableRead struct {
	info    *TableInfo
	columns map[uint32]bool
	exact   bool
}

// Select translates a SELECT, a set operation of SELECTs, TABLE or VALUES. params are the values of its parameter
// markers in order.
func Select(stmt ast.StmtNode, session *Session, catalog Catalog, params []Value) (*Statement, error) {
	t := &translator{session: session.withDefaults(), catalog: catalog, params: params}
	node, ok := stmt.(ast.ResultSetNode)
	if !ok {
		return nil, unsupported("this statement")
	}
	t.markers = orderMarkers(stmt)
	q, err := t.query(node, &env{}, queryTop)
	if err != nil {
		return nil, err
	}
	s := &Statement{sql: q.sql}
	for i := range q.columns {
		s.Columns = append(s.Columns, q.columns[i].result())
	}
	for _, r := range t.reads {
		s.Tables = append(s.Tables, r.tableRead())
	}
	return s, nil
}

func (s *Session) withDefaults() *Session {
	c := *s
	if c.Collation == "" {
		c.Collation = "utf8mb4_0900_ai_ci"
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.GroupConcatMaxLen == 0 {
		c.GroupConcatMaxLen = 1024
	}
	return &c
}

func (r *tableRead) tableRead() TableRead {
	out := TableRead{Table: r.info.Table, Exact: r.exact}
	for i := range r.info.Table.Columns {
		if id := r.info.Table.Columns[i].ID; r.columns[id] {
			out.Columns = append(out.Columns, id)
		}
	}
	return out
}

// alias makes a name that is used once in the statement.
func (t *translator) alias(prefix string) string {
	t.aliases++
	return prefix + strconv.Itoa(t.aliases)
}
