package translate

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
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
	if !comparedAlike(*value, w) {
		return "", unsupported("CASE value WHEN over values of different types")
	}
	c, err := t.compare("=", *value, w)
	return c.sql, err
}

// comparedAlike tells values that CASE value WHEN compares as = does: MySQL chooses one comparison for all WHENs of a
// type, without regard to signs.
func comparedAlike(v, w expr) bool {
	switch {
	case v.typ.Kind == KindNull || w.typ.Kind == KindNull:
		return true
	case v.typ.Kind != w.typ.Kind:
		return v.typ.Kind == KindDecimal && w.typ.Kind == KindInt || v.typ.Kind == KindInt && w.typ.Kind == KindDecimal
	case v.typ.Kind == KindInt:
		return v.typ.Unsigned == w.typ.Unsigned || w.lit != nil && w.lit.Kind == IntValue && w.lit.Int >= 0
	case v.typ.Kind == KindString:
		return w.lit != nil || v.typ.Collation.Name == w.typ.Collation.Name
	}
	return true
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
	out := expr{sql: "(" + b.String() + ")", typ: ty, phys: p, ascii: allASCII(results), overflows: anyOverflows(results), mixed: mixedKinds(ty, results)}
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
		padded := r.typ.Zerofill > 0 && ty.Field != mysql.TypeYear
		if numericKind(r.typ.Kind) && (uneven || padded || r.ragged != "") {
			return true
		}
	}
	return false
}

func (t *translator) raggedText(ty Type, conds []string, results []expr) string {
	if ty.Kind != KindDecimal {
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
const unprintable = "error('printing IF or CASE over numbers of different scales here is not supported yet')"

func mixedKinds(ty Type, xs []expr) bool {
	for i := range xs {
		k := xs[i].typ.Kind
		if ty.Kind == KindString && k != KindString && k != KindNull || ty.Kind == KindDateTime && k == KindDate || xs[i].mixed || ty.Kind == KindString && (xs[i].typ.isEnum() || xs[i].typ.isSet()) {
			return true
		}
	}
	return false
}

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
	out := expr{sql: "coalesce(" + strings.Join(parts, ", ") + ")", typ: ty, phys: p, ascii: allASCII(args), overflows: anyOverflows(args), mixed: mixedKinds(ty, args)}
	if p.k == physNull {
		out.sql = "NULL"
	}
	return out, nil
}

func fnNullIf(t *translator, e *env, args []expr) (expr, error) {
	x := args[0].number()
	if a, b := args[0].typ.Kind, args[1].typ.Kind; a != b && a != KindNull && b != KindNull && !(a <= KindDecimal && b <= KindDecimal) && !(x.typ.temporal() && args[1].lit != nil) {
		return x, unsupported("NULLIF over values of different types")
	}
	if x.typ.Kind == KindString && args[1].typ.Kind == KindString && x.typ.isBytes() != args[1].typ.isBytes() {
		return x, unsupported("NULLIF over text and byte strings")
	}
	if x.typ.isEnum() || x.typ.isSet() {
		x.typ.Field, x.typ.Elements = mysql.TypeVarString, nil
	}
	c, err := t.compare("=", args[0], args[1])
	if err != nil {
		return c, err
	}
	out := expr{sql: "(CASE WHEN " + c.sql + " THEN NULL ELSE " + x.sql + " END)", typ: x.typ, phys: x.phys, ascii: x.ascii, overflows: x.overflows}
	out.typ.Nullable = true
	out.typ.Zerofill = 0
	if x.ragged != "" || x.typ.Zerofill > 0 {
		out.ragged = unprintable
	}
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
			if x.phys.k == physFloat || x.lit != nil && x.lit.Kind == HexValue {
				return expr{}, unsupported("%s over FLOAT or hexadecimal values", strings.ToUpper(name))
			}
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
