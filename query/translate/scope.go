package translate

import (
	"fmt"
	"strings"
	"time"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/tidemarkdb/tidemark/schema"
)

// column is one column that names can resolve to: of a table, a derived table or a common table expression.
type column struct {
	name string
	typ  Type
	phys phys
	// sql names the column in DuckDB's text.
	sql string
	src *source
	// ragged is that of the expression of a derived table's column.
	ragged string
	// def is the table's column; nil for a derived one.
	def *schema.Column
}

// source is one table of a FROM clause.
type source struct {
	// db and name are what qualified names match; db is empty for a derived table.
	db, name string
	// alias is the name in DuckDB's text.
	alias   string
	read    *tableRead
	columns []*column
}

// visible is a column that an unqualified name finds and that * shows.
type visible struct {
	name string
	col  *column
}

// scope is what a query block's FROM clause gives.
type scope struct {
	sources []*source
	visible []visible
}

// aggregates says whether an aggregate function may stand at a place.
type aggregates uint8

const (
	aggForbidden aggregates = iota
	aggAllowed
	aggInside // within the argument of one
)

// env is where an expression stands: what its names mean and what may occur in it.
type env struct {
	scope  *scope
	outer  *env
	ctes   *cteList
	clause string // as MySQL's error texts name it
	aggs   aggregates
	// fields are the select list's items where an alias can be used. aliasFirst looks there before the columns.
	fields     []*selectItem
	aliasFirst bool
	// group is set where expressions must be computed from a group's keys and aggregates.
	group *grouping
	// windows tells that window functions may occur; named are those of the WINDOW clause.
	windows bool
	named   []ast.WindowSpec
	// projection is set for a select item of the outermost query that is nothing but a column: such a column may have
	// values that only the printer knows.
	projection bool
	// position is the number of the expression in its list, for MySQL's error texts.
	position int
}

// with copies e with a change.
func (e *env) with(change func(*env)) *env {
	c := *e
	change(&c)
	return &c
}

// inner makes the environment of a subquery of an expression that stands in e.
func (e *env) inner() *env { return &env{outer: e, ctes: e.ctes} }

func foldName(s string) string { return strings.ToLower(s) }

func (s *scope) find(db, table, name string) (found []*column, tableKnown bool) {
	if table == "" {
		for _, v := range s.visible {
			if strings.EqualFold(v.name, name) {
				found = append(found, v.col)
			}
		}
		if len(found) == 0 {
			found = s.invisible(name)
		}
		return found, true
	}
	for _, src := range s.sources {
		if !src.matches(db, table) {
			continue
		}
		tableKnown = true
		for _, c := range src.columns {
			if strings.EqualFold(c.name, name) {
				found = append(found, c)
			}
		}
	}
	return found, tableKnown
}

// invisible finds the columns that SELECT * leaves out; by name they are there.
func (s *scope) invisible(name string) (found []*column) {
	for _, src := range s.sources {
		for _, c := range src.columns {
			if c.def != nil && c.def.Invisible && strings.EqualFold(c.name, name) {
				found = append(found, c)
			}
		}
	}
	return found
}

func (s *source) matches(db, table string) bool {
	return s.name == table && (db == "" || s.db == db)
}

func columnText(n *ast.ColumnName) string {
	s := n.Name.O
	if n.Table.O != "" {
		s = n.Table.O + "." + s
	}
	if n.Schema.O != "" {
		s = n.Schema.O + "." + s
	}
	return s
}

// column resolves a name from the inside out: the block's own columns and aliases first, then those of the blocks around.
func (t *translator) column(e *env, n *ast.ColumnName) (expr, error) {
	for at := e; at != nil; at = at.outer {
		x, found, err := t.columnIn(at, n)
		if err != nil || found {
			if found && at != e && strings.HasPrefix(x.sql, "first(") {
				err = unsupported("column %s of the outer query, which is not grouped by its bytes, in a subquery", columnText(n))
			}
			return x, err
		}
	}
	return expr{}, errBadField(columnText(n), e.clause)
}

func (t *translator) columnIn(e *env, n *ast.ColumnName) (x expr, found bool, err error) {
	if e.aliasFirst && n.Table.O == "" {
		if x, found, err = t.aliasIn(e, n); found || err != nil {
			return x, found, err
		}
	}
	if e.scope != nil {
		cols, _ := e.scope.find(n.Schema.O, n.Table.O, n.Name.O)
		if len(cols) > 1 {
			return expr{}, false, errAmbiguous(columnText(n), e.clause)
		}
		if len(cols) == 1 {
			x, err = t.columnExpr(e, cols[0])
			return x, err == nil, err
		}
	}
	if !e.aliasFirst && n.Table.O == "" {
		return t.aliasIn(e, n)
	}
	return expr{}, false, nil
}

// aliasIn finds a select item by its alias and translates it anew for the place e.
func (t *translator) aliasIn(e *env, n *ast.ColumnName) (x expr, found bool, err error) {
	var hit *selectItem
	for _, f := range e.fields {
		if !f.named(n.Name.O) {
			continue
		}
		if hit != nil && !hit.same(f) {
			return expr{}, false, errAmbiguous(columnText(n), e.clause)
		}
		hit = f
	}
	if hit == nil {
		return expr{}, false, nil
	}
	x, err = t.fieldExpr(e, hit)
	return x, err == nil, err
}

// columnExpr gives the expression of a column at a place.
func (t *translator) columnExpr(e *env, c *column) (expr, error) {
	if c.def != nil {
		c.src.read.columns[c.def.ID] = true
		if c.src.read.info.exact(c.def.ID) && !e.projection {
			return expr{}, unsupported("an expression over column %s.%s, which has values outside of its type's range (such as zero dates)",
				c.src.name, c.name)
		}
	}
	if c.def != nil && c.def.Type == schema.Char && t.session.SQLMode.PadCharToFullLength {
		return expr{}, unsupported("CHAR columns under sql_mode PAD_CHAR_TO_FULL_LENGTH")
	}
	x := expr{sql: c.sql, typ: c.typ, phys: c.phys, col: c, ragged: c.ragged}
	if c.def != nil && c.def.Type == schema.Timestamp {
		x.utc = c.sql
		x.sql = t.shiftFromUTC(c.sql)
	}
	if e.group == nil || e.aggs == aggInside {
		return x, nil
	}
	return e.group.column(e, x)
}

// shiftFromUTC gives the wall clock time in the session's time zone of a TIMESTAMP column.
func (t *translator) shiftFromUTC(sql string) string {
	offset, fixed := fixedOffset(t.session.Location)
	switch {
	case fixed && offset == 0:
		return "tm_utc(" + sql + ")"
	case fixed:
		return fmt.Sprintf("(tm_utc(%s) + to_seconds(%d))", sql, offset)
	default:
		return "tm_shift_zone(" + sql + ", " + quoteText(t.session.Location.String()) + ")"
	}
}

// fixedOffset tells whether a zone has one offset from UTC over the whole range of TIMESTAMP, 1970 to 2038.
func fixedOffset(loc *time.Location) (seconds int, fixed bool) {
	const week = 7 * 24 * 3600
	_, first := time.Unix(0, 0).In(loc).Zone()
	for s := int64(week); s < 1<<31; s += week {
		if _, o := time.Unix(s, 0).In(loc).Zone(); o != first {
			return 0, false
		}
	}
	return first, true
}
