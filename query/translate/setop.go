package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// setOperation translates UNION, INTERSECT and EXCEPT.
func (t *translator) setOperation(n *ast.SetOprStmt, outer *env) (*query, error) {
	e := &env{outer: outer.outer, ctes: outer.ctes}
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

// setList folds the parts. Their columns meet in types merged over all parts, named by the first. INTERSECT binds more
// tightly than UNION and EXCEPT.
func (t *translator) setList(list *ast.SetOprSelectList, e *env) (*query, error) {
	if list.With != nil {
		return nil, unsupported("WITH inside of a set operation")
	}
	parts := make([]*query, len(list.Selects))
	ops := make([]ast.SetOprType, len(list.Selects))
	for i, node := range list.Selects {
		var err error
		if parts[i], ops[i], err = t.setPart(node, e); err != nil {
			return nil, err
		}
	}
	if err := t.unify(parts); err != nil {
		return nil, err
	}
	return t.fold(parts, ops)
}

func (t *translator) fold(parts []*query, ops []ast.SetOprType) (*query, error) {
	var err error
	var terms []*query
	var between []ast.SetOprType
	for i, p := range parts {
		if i > 0 && (ops[i] == ast.Intersect || ops[i] == ast.IntersectAll) {
			last := len(terms) - 1
			if terms[last], err = t.combine(terms[last], p, ops[i]); err != nil {
				return nil, err
			}
			continue
		}
		terms, between = append(terms, p), append(between, ops[i])
	}
	q := terms[0]
	for i, p := range terms[1:] {
		if q, err = t.combine(q, p, between[i+1]); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// unify converts the columns of all parts to the types in which they meet.
func (t *translator) unify(parts []*query) error {
	if len(parts) == 1 {
		return nil
	}
	n := len(parts[0].columns)
	items := make([][]string, len(parts))
	aliases := make([]string, len(parts))
	for i, p := range parts {
		if len(p.columns) != n {
			return errWrongColumnCountInSelect()
		}
		aliases[i] = t.alias("u")
	}
	columns := make([]outColumn, n)
	for c := range n {
		xs := make([]expr, len(parts))
		for i, p := range parts {
			xs[i] = unionSide(p.columns[c].e, aliases[i], c)
		}
		ty, ph, err := t.unionType(xs)
		if err != nil {
			return err
		}
		for i := range parts {
			sql, err := t.as(xs[i], ty, ph)
			if err != nil {
				return err
			}
			items[i] = append(items[i], fmt.Sprintf("%s AS c%d", sql, c+1))
		}
		if ty.Kind == KindString && ty.Coercibility > Implicit {
			ty.Coercibility = Implicit
		}
		columns[c] = outColumn{name: parts[0].columns[c].name, e: expr{sql: fmt.Sprintf("c%d", c+1), typ: ty, phys: ph}.finish()}
	}
	for i, p := range parts {
		p.sql = fmt.Sprintf("SELECT %s FROM (%s) AS %s", strings.Join(items[i], ", "), p.sql, aliases[i])
		p.columns = columns
	}
	return nil
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

// unionType is the merged type; JSON columns are refused.
func (t *translator) unionType(xs []expr) (Type, phys, error) {
	for i := range xs {
		if xs[i].typ.Kind == KindJSON {
			return Type{}, phys{}, unsupported("JSON values in a set operation")
		}
	}
	return t.merged("UNION", xs)
}

func unionSide(x expr, alias string, i int) expr {
	return expr{sql: fmt.Sprintf("%s.c%d", alias, i+1), typ: x.typ, phys: x.phys, ragged: x.ragged}
}

// combine makes one query of two whose columns have the same types.
func (t *translator) combine(a, b *query, op ast.SetOprType) (*query, error) {
	out := &query{columns: a.columns}
	all := fmt.Sprintf("(%s) UNION ALL (%s)", a.sql, b.sql)
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
	out.sql = fmt.Sprintf("(%s) %s (%s)", a.sql, words[op], b.sql)
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
