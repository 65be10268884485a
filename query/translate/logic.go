package translate

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// caseWhen translates both forms of CASE.
func (t *translator) caseWhen(e *env, n *ast.CaseExpr) (expr, error) {
	var conds []string
	var results []expr
	var value *expr
	if n.Value != nil {
		v, err := t.expr(e, n.Value)
		if err != nil {
			return v, err
		}
		value = &v
	}
	for _, w := range n.WhenClauses {
		cond, err := t.whenCondition(e, value, w.Expr)
		if err != nil {
			return expr{}, err
		}
		r, err := t.expr(e, w.Result)
		if err != nil {
			return r, err
		}
		conds, results = append(conds, cond), append(results, r)
	}
	otherwise := nullExpr()
	if n.ElseClause != nil {
		var err error
		if otherwise, err = t.expr(e, n.ElseClause); err != nil {
			return otherwise, err
		}
	}
	return t.branches("case", conds, append(results, otherwise))
}

func (t *translator) whenCondition(e *env, value *expr, n ast.ExprNode) (string, error) {
	if value == nil {
		return t.condition(e, n)
	}
	w, err := t.expr(e, n)
	if err != nil {
		return "", err
	}
	c, err := t.compare("=", *value, w)
	return c.sql, err
}

// branches writes CASE WHEN conds[i] THEN results[i] ... ELSE the last result, in the type in which the results meet.
func (t *translator) branches(op string, conds []string, results []expr) (expr, error) {
	ty, p, err := t.merged(op, results)
	if err != nil {
		return expr{}, err
	}
	var b strings.Builder
	b.WriteString("CASE")
	for i, r := range results {
		sql, err := t.as(r, ty, p)
		if err != nil {
			return expr{}, err
		}
		if i < len(conds) {
			b.WriteString(" WHEN " + conds[i] + " THEN " + sql)
		} else {
			b.WriteString(" ELSE " + sql)
		}
	}
	b.WriteString(" END")
	out := expr{sql: "(" + b.String() + ")", typ: ty, phys: p, ascii: allASCII(results), overflows: anyOverflows(results)}
	if p.k == physNull {
		out.sql = "NULL"
	}
	if unevenScales(ty, results) {
		out.ragged = t.raggedText(ty, conds, results)
	}
	return out, nil
}

// unevenScales tells branches of which some print with other digits than the merged type has.
func unevenScales(ty Type, results []expr) bool {
	for i := range results {
		r := &results[i]
		uneven := ty.Kind == KindDecimal && r.typ.Scale != ty.Scale || ty.Kind == KindDouble && r.typ.Kind == KindDecimal
		if numericKind(r.typ.Kind) && (uneven || r.ragged != "") {
			return true
		}
	}
	return false
}

func (t *translator) raggedText(ty Type, conds []string, results []expr) string {
	if ty.Kind == KindDouble {
		return unprintable
	}
	var b strings.Builder
	for i, r := range results {
		if i < len(conds) {
			b.WriteString(" WHEN " + conds[i] + " THEN " + t.text(r).sql)
		} else {
			b.WriteString(" ELSE " + t.text(r).sql)
		}
	}
	return "(CASE" + b.String() + " END)"
}

// unprintable stands where the digits that MySQL prints depend on how it runs the query.
const unprintable = "error('This version of Tidemark does not support printing IF or CASE over numbers of different scales here')"

func allASCII(xs []expr) bool {
	for i := range xs {
		if !xs[i].ascii && xs[i].typ.Kind == KindString {
			return false
		}
	}
	return true
}

func anyOverflows(xs []expr) bool {
	for i := range xs {
		if xs[i].overflows {
			return true
		}
	}
	return false
}

func fnIf(t *translator, e *env, args []expr) (expr, error) {
	cond, err := t.boolean(args[0])
	if err != nil {
		return expr{}, err
	}
	return t.branches("if", []string{cond}, args[1:])
}

func fnCoalesce(t *translator, e *env, args []expr) (expr, error) {
	ty, p, err := t.merged("coalesce", args)
	if err != nil {
		return expr{}, err
	}
	ty.Nullable = true
	parts := make([]string, len(args))
	for i, x := range args {
		ty.Nullable = ty.Nullable && x.typ.Nullable
		if parts[i], err = t.as(x, ty, p); err != nil {
			return expr{}, err
		}
	}
	out := expr{sql: "coalesce(" + strings.Join(parts, ", ") + ")", typ: ty, phys: p, ascii: allASCII(args), overflows: anyOverflows(args)}
	if p.k == physNull {
		out.sql = "NULL"
	}
	return out, nil
}

func fnNullIf(t *translator, e *env, args []expr) (expr, error) {
	x := args[0].number()
	c, err := t.compare("=", args[0], args[1])
	if err != nil {
		return c, err
	}
	out := expr{sql: "(CASE WHEN " + c.sql + " THEN NULL ELSE " + x.sql + " END)", typ: x.typ, phys: x.phys, ascii: x.ascii, overflows: x.overflows}
	out.typ.Nullable = true
	out.typ.Zerofill = 0
	return out, nil
}

// fnGreatest translates GREATEST and LEAST over numbers, or over values of one temporal type.
func fnGreatest(name string) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		ty, p, err := t.merged(name, args)
		if err != nil {
			return expr{}, err
		}
		switch ty.Kind {
		case KindNull:
			return nullExpr(), nil
		case KindString, KindJSON:
			return expr{}, unsupported("%s over text", strings.ToUpper(name))
		}
		parts := make([]string, len(args))
		var nulls []string
		for i, x := range args {
			if x.typ.Kind != ty.Kind && x.typ.temporal() {
				return expr{}, unsupported("%s over values of different temporal types", strings.ToUpper(name))
			}
			if parts[i], err = t.as(x, ty, p); err != nil {
				return expr{}, err
			}
			if x.typ.Nullable {
				nulls = append(nulls, parts[i]+" IS NULL")
			}
		}
		sql := name + "(" + strings.Join(parts, ", ") + ")"
		if len(nulls) > 0 { // DuckDB leaves NULLs out
			sql = "(CASE WHEN " + strings.Join(nulls, " OR ") + " THEN NULL ELSE " + sql + " END)"
		}
		return expr{sql: sql, typ: ty, phys: p}, nil
	}
}
