package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// cte is a common table expression in scope.
type cte struct {
	name  string
	alias string
	query *query
	names []string
}

// cteList is the chain of those in scope, innermost first.
type cteList struct {
	cte
	outer *cteList
}

func (l *cteList) find(name string) *cte {
	for ; l != nil; l = l.outer {
		if l.name == name {
			return &l.cte
		}
	}
	return nil
}

// with translates a WITH clause and puts its names into the scope of e. It gives the clause's text.
func (t *translator) with(w *ast.WithClause, e *env) (string, error) {
	if w == nil {
		return "", nil
	}
	var parts []string
	for _, c := range w.CTEs {
		text, err := t.cteText(c, w.IsRecursive, e)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	word := "WITH "
	if w.IsRecursive {
		word = "WITH RECURSIVE "
	}
	return word + strings.Join(parts, ", ") + " ", nil
}

func (t *translator) cteText(c *ast.CommonTableExpression, recursive bool, e *env) (string, error) {
	alias := t.alias("w")
	if recursive && refersTo(c.Query, c.Name.O) {
		return t.recursive(c, alias, e)
	}
	q, err := t.query(c.Query.Query, &env{ctes: e.ctes}, queryNested)
	if err != nil {
		return "", err
	}
	names, err := columnNames(q, c.ColNameList, c.Name.O)
	if err != nil {
		return "", err
	}
	e.ctes = &cteList{cte{c.Name.O, alias, q, names}, e.ctes}
	return fmt.Sprintf("%s AS (%s)", alias, q.sql), nil
}

func (t *translator) cteReference(c *cte, name, as string) (*relation, error) {
	if as == "" {
		as = name
	}
	r := t.queryRelation(c.query, c.names, as)
	r.sql = c.alias + " AS " + r.sources[0].alias
	return r, nil
}

// refersTo tells whether a query names a table.
func refersTo(n ast.Node, name string) bool {
	f := &finder{hit: func(n ast.Node) bool {
		t, ok := n.(*ast.TableName)
		return ok && t.Schema.O == "" && t.Name.O == name
	}}
	walk := &deepFinder{f}
	n.Accept(walk)
	return f.found
}

// deepFinder looks into subqueries too.
type deepFinder struct{ *finder }

func (f *deepFinder) Enter(n ast.Node) (ast.Node, bool) {
	f.found = f.found || f.hit(n)
	return n, f.found
}

// recursive translates a recursive expression: the first part gives names and types, which the second is converted to.
func (t *translator) recursive(c *ast.CommonTableExpression, alias string, e *env) (string, error) {
	set, ok := c.Query.Query.(*ast.SetOprStmt)
	if !ok || len(set.SelectList.Selects) != 2 || set.OrderBy != nil || set.Limit != nil {
		return "", unsupported("a recursive common table expression of this form")
	}
	first, ok1 := set.SelectList.Selects[0].(*ast.SelectStmt)
	second, ok2 := set.SelectList.Selects[1].(*ast.SelectStmt)
	if !ok1 || !ok2 || refersTo(first, c.Name.O) || opOf(second.AfterSetOperator) != ast.UnionAll {
		return "", unsupported("a recursive common table expression of this form")
	}
	q, err := t.query(first, &env{ctes: e.ctes}, queryNested)
	if err != nil {
		return "", err
	}
	if err := recursiveTypes(q); err != nil {
		return "", err
	}
	names, err := columnNames(q, c.ColNameList, c.Name.O)
	if err != nil {
		return "", err
	}
	e.ctes = &cteList{cte{c.Name.O, alias, q, names}, e.ctes}
	step, err := t.query(second, &env{ctes: e.ctes}, queryNested)
	if err != nil {
		return "", err
	}
	a, err := t.castColumns(q, q)
	if err != nil {
		return "", err
	}
	b, err := t.castColumns(step, q)
	return fmt.Sprintf("%s AS (%s UNION ALL %s)", alias, a, b), err
}

// recursiveTypes accepts columns whose values cannot outgrow the type of the first part: integers, dates, DOUBLE. The
// integers of such a table are BIGINT; all may be NULL.
func recursiveTypes(q *query) error {
	for i := range q.columns {
		x := &q.columns[i].e
		x.typ.Nullable = true
		switch x.typ.Kind {
		case KindInt:
			if x.phys.k != physUint64 {
				x.phys.k = physInt64
			}
		case KindDouble, KindDate, KindDateTime:
		default:
			return unsupported("a recursive common table expression with columns other than integers, DOUBLE and dates")
		}
	}
	return nil
}

// castColumns selects the columns of q converted to those of like.
func (t *translator) castColumns(q, like *query) (string, error) {
	if len(q.columns) != len(like.columns) {
		return "", errWrongColumnCountInSelect()
	}
	alias := t.alias("u")
	items := make([]string, len(q.columns))
	for i := range q.columns {
		x := unionSide(q.columns[i].e, alias, i)
		want := like.columns[i].e
		if x.typ.Kind != want.typ.Kind && x.typ.Kind != KindNull {
			return "", unsupported("a recursive common table expression whose parts differ in type")
		}
		items[i] = fmt.Sprintf("CAST(%s AS %s) AS c%d", x.sql, want.phys, i+1)
	}
	return fmt.Sprintf("SELECT %s FROM (%s) AS %s", strings.Join(items, ", "), q.sql, alias), nil
}
