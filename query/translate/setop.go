package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// setOperation translates UNION, INTERSECT and EXCEPT.
func (t *translator) setOperation(n *ast.SetOprStmt, outer *env) (*query, error) {
	e := &env{outer: outer.outerOf(), ctes: outer.ctes, correlated: outer.correlated}
	with, err := t.with(n.With, e)
	if err != nil {
		return nil, err
	}
	q, err := t.setList(n.SelectList, e)
	if err != nil {
		return nil, err
	}
	limit, err := t.limit(n.Limit)
	if err != nil {
		return nil, err
	}
	order, err := setOrder(n.OrderBy, q)
	if err != nil {
		return nil, err
	}
	if q.sql, err = orderOutput(t, q.sql, q.columns, order, limit); err != nil {
		return nil, err
	}
	q.sql = with + q.sql
	return q, nil
}

// setList folds the parts. INTERSECT binds more tightly than UNION and EXCEPT.
func (t *translator) setList(list *ast.SetOprSelectList, e *env) (*query, error) {
	if list.With != nil {
		return nil, unsupported("WITH inside of a set operation")
	}
	var parts []*query
	var ops []ast.SetOprType
	for i, node := range list.Selects {
		q, op, err := t.setPart(node, e)
		if err != nil {
			return nil, err
		}
		if i > 0 && (op == ast.Intersect || op == ast.IntersectAll) {
			last := len(parts) - 1
			if parts[last], err = t.combine(parts[last], q, op); err != nil {
				return nil, err
			}
			continue
		}
		parts = append(parts, q)
		ops = append(ops, op)
	}
	q := parts[0]
	for i, p := range parts[1:] {
		var err error
		if q, err = t.combine(q, p, ops[i+1]); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func (t *translator) setPart(node ast.Node, e *env) (*query, ast.SetOprType, error) {
	switch n := node.(type) {
	case *ast.SelectStmt:
		q, err := t.query(n, e, queryNested)
		return q, opOf(n.AfterSetOperator), err
	case *ast.SetOprSelectList:
		q, err := t.setList(n, e)
		if err != nil {
			return nil, 0, err
		}
		limit, err := t.limit(n.Limit)
		if err != nil {
			return nil, 0, err
		}
		order, err := setOrder(n.OrderBy, q)
		if err != nil {
			return nil, 0, err
		}
		q.sql, err = orderOutput(t, q.sql, q.columns, order, limit)
		return q, opOf(n.AfterSetOperator), err
	}
	return nil, 0, unsupported("this part of a set operation")
}

func opOf(op *ast.SetOprType) ast.SetOprType {
	if op == nil {
		return 0
	}
	return *op
}

// combine makes one query of two: their columns meet in merged types, named by the first.
func (t *translator) combine(a, b *query, op ast.SetOprType) (*query, error) {
	if len(a.columns) != len(b.columns) {
		return nil, errWrongColumnCountInSelect()
	}
	left, right := t.alias("u"), t.alias("u")
	var ls, rs []string
	out := &query{}
	for i := range a.columns {
		x, y := unionSide(a.columns[i].e, left, i), unionSide(b.columns[i].e, right, i)
		ty, p, err := t.unionType(x, y)
		if err != nil {
			return nil, err
		}
		l, err := t.as(x, ty, p)
		if err != nil {
			return nil, err
		}
		r, err := t.as(y, ty, p)
		if err != nil {
			return nil, err
		}
		ls = append(ls, fmt.Sprintf("%s AS c%d", l, i+1))
		rs = append(rs, fmt.Sprintf("%s AS c%d", r, i+1))
		out.columns = append(out.columns, outColumn{name: a.columns[i].name, e: expr{typ: ty, phys: p}.finish()})
	}
	l := fmt.Sprintf("SELECT %s FROM (%s) AS %s", strings.Join(ls, ", "), a.sql, left)
	r := fmt.Sprintf("SELECT %s FROM (%s) AS %s", strings.Join(rs, ", "), b.sql, right)
	return t.combined(out, l, r, op)
}

// unionType is the merged type; ENUM, SET and JSON columns stay what they are only among their equals, which are refused.
func (t *translator) unionType(x, y expr) (Type, phys, error) {
	if x.typ.Kind == KindJSON || y.typ.Kind == KindJSON {
		return Type{}, phys{}, unsupported("JSON values in a set operation")
	}
	return t.merged("UNION", []expr{x, y})
}

func unionSide(x expr, alias string, i int) expr {
	return expr{sql: fmt.Sprintf("%s.c%d", alias, i+1), typ: x.typ, phys: x.phys}
}

func (t *translator) combined(out *query, l, r string, op ast.SetOprType) (*query, error) {
	all := fmt.Sprintf("(%s) UNION ALL (%s)", l, r)
	var err error
	switch op {
	case ast.UnionAll:
		out.sql = all
		return out, nil
	case ast.Union:
		out.sql, err = distinctRows(t, all, out.columns)
		return out, err
	}
	for i := range out.columns {
		x := out.columns[i].e
		x.sql = "x"
		if _, plain, err := x.groupSQL(); err != nil || !plain {
			return nil, unsupported("INTERSECT and EXCEPT over text that is not compared bytewise")
		}
	}
	words := map[ast.SetOprType]string{ast.Intersect: "INTERSECT", ast.IntersectAll: "INTERSECT ALL", ast.Except: "EXCEPT", ast.ExceptAll: "EXCEPT ALL"}
	out.sql = fmt.Sprintf("(%s) %s (%s)", l, words[op], r)
	return out, nil
}

// setOrder resolves ORDER BY of a set operation: positions and names of its columns.
func setOrder(by *ast.OrderByClause, q *query) ([]orderItem, error) {
	if by == nil {
		return nil, nil
	}
	var items []orderItem
	for _, item := range by.Items {
		o := orderItem{desc: item.Desc}
		switch n := item.Expr.(type) {
		case *ast.PositionExpr:
			o.field = n.N
			if n.P != nil || n.N < 1 || n.N > len(q.columns) {
				return nil, errBadField(fmt.Sprint(n.N), "order clause")
			}
		case *ast.ColumnNameExpr:
			if n.Name.Table.O != "" {
				return nil, errorf(1250, "42000", "Table '%s' from one of the SELECTs cannot be used in global ORDER clause", n.Name.Table.O)
			}
			for i := range q.columns {
				if strings.EqualFold(q.columns[i].name, n.Name.Name.O) && o.field == 0 {
					o.field = i + 1
				}
			}
			if o.field == 0 {
				return nil, errBadField(n.Name.Name.O, "order clause")
			}
		default:
			return nil, unsupported("ORDER BY an expression of a set operation")
		}
		items = append(items, o)
	}
	return items, nil
}
