package translate

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// window translates a window function.
func (t *translator) window(e *env, n *ast.WindowFuncExpr) (expr, error) {
	if !e.windows {
		return expr{}, errorf(3593, "HY000", "You cannot use the window function '%s' in this context.'", strings.ToLower(n.Name))
	}
	in := e.with(func(c *env) { c.windows = false })
	over, err := t.windowSpec(in, e, &n.Spec)
	if err != nil {
		return expr{}, err
	}
	x, err := t.windowFunction(in, n)
	if err != nil {
		return x, err
	}
	x.sql = strings.ReplaceAll(x.sql, windowMark, " OVER ("+over+")")
	return x, nil
}

// windowMark stands where OVER (...) belongs.
const windowMark = "\x03"

func (t *translator) windowFunction(in *env, n *ast.WindowFuncExpr) (expr, error) {
	name := strings.ToLower(n.Name)
	if n.IgnoreNull || n.FromLast || n.Distinct {
		return expr{}, unsupported("IGNORE NULLS, FROM LAST or DISTINCT in a window function")
	}
	args, err := t.exprs(in, n.Args)
	if err != nil {
		return expr{}, err
	}
	switch name {
	case "row_number", "rank", "dense_rank":
		x := bigintResult(name+"()"+windowMark, 21)
		x.typ.Unsigned = true
		return x, nil
	case "percent_rank", "cume_dist":
		return expr{sql: name + "()" + windowMark, typ: doubleType(), phys: phys{k: physDouble}}, nil
	case "ntile":
		if args[0].lit == nil || args[0].lit.Kind != IntValue || args[0].lit.Int < 1 {
			return expr{}, unsupported("NTILE of anything but a positive constant")
		}
		x := bigintResult("ntile("+args[0].sql+")"+windowMark, 21)
		x.typ.Unsigned = true
		return x, nil
	case "sum", "avg", "count", "min", "max":
		return t.windowAggregate(name, args[0])
	case "first_value", "last_value":
		x := args[0].finish()
		return expr{sql: name + "(" + x.sql + ")" + windowMark, typ: nullable(x.typ), phys: x.phys}, nil
	case "lag", "lead":
		return t.lag(name, args)
	}
	return expr{}, unsupported("the window function %s", strings.ToUpper(name))
}

func nullable(t Type) Type {
	t.Nullable, t.Zerofill = true, 0
	return t
}

// lag translates LAG and LEAD with a constant offset.
func (t *translator) lag(name string, args []expr) (expr, error) {
	x := args[0].finish()
	offset := "1"
	if len(args) > 1 {
		if args[1].lit == nil || args[1].lit.Kind != IntValue || args[1].lit.Int < 0 {
			return x, unsupported("%s with an offset that is no constant", strings.ToUpper(name))
		}
		offset = args[1].sql
	}
	if len(args) > 2 {
		return x, unsupported("%s with a default", strings.ToUpper(name))
	}
	return expr{sql: name + "(" + x.sql + ", " + offset + ")" + windowMark, typ: nullable(x.typ), phys: x.phys}, nil
}

// windowAggregate translates the aggregates whose DuckDB text has the aggregate itself once, so that OVER can follow it.
func (t *translator) windowAggregate(name string, x expr) (expr, error) {
	switch name {
	case "count":
		arg := x.sql
		if x.lit != nil && x.lit.Kind != NullValue {
			arg = "*"
		}
		return bigintResult("count("+arg+")"+windowMark, 21), nil
	case "sum":
		s, err := t.sum(false, x)
		if err != nil {
			return s, err
		}
		if s.typ.Kind == KindDouble {
			return s, unsupported("SUM of floating-point numbers over a window")
		}
		if inner, ok := strings.CutSuffix(s.sql, " AS DECIMAL(38,0))"); ok {
			s.sql = inner + windowMark + " AS DECIMAL(38,0))"
		} else {
			s.sql += windowMark
		}
		return s, nil
	case "min", "max":
		m, err := t.extreme(name, x)
		if err == nil && strings.HasPrefix(m.sql, "arg_") {
			return m, unsupported("%s of text over a window", strings.ToUpper(name))
		}
		m.sql += windowMark
		return m, err
	}
	return t.windowAverage(x)
}

func (t *translator) windowAverage(x expr) (expr, error) {
	sum, err := t.windowAggregate("sum", x)
	if err != nil {
		return sum, err
	}
	n, err := t.numeric(x)
	if err != nil {
		return n, err
	}
	n = n.number()
	return average(n, sum, expr{sql: "count(" + n.sql + ")" + windowMark, phys: phys{k: physInt64}}), nil
}

// windowSpec writes what stands within OVER (...).
func (t *translator) windowSpec(in, e *env, s *ast.WindowSpec) (string, error) {
	if s.Name.O != "" || s.Ref.O != "" {
		name := s.Name.L
		if name == "" {
			name = s.Ref.L
		}
		for i := range e.named {
			if e.named[i].Name.L == name && s.PartitionBy == nil && s.OrderBy == nil && s.Frame == nil && e.named[i].Ref.O == "" {
				named := e.named[i]
				named.Name = ast.CIStr{}
				return t.windowSpec(in, e, &named)
			}
		}
		return "", unsupported("this use of a named window")
	}
	var parts []string
	if s.PartitionBy != nil {
		keys, err := t.partitionKeys(in, s.PartitionBy.Items)
		if err != nil {
			return "", err
		}
		parts = append(parts, "PARTITION BY "+strings.Join(keys, ", "))
	}
	if s.OrderBy != nil {
		items, err := t.windowOrder(in, s.OrderBy.Items)
		if err != nil {
			return "", err
		}
		parts = append(parts, strings.TrimSpace(orderSQL(items)))
	}
	if s.Frame != nil {
		frame, err := frameSQL(s.Frame)
		if err != nil {
			return "", err
		}
		parts = append(parts, frame)
	}
	return strings.Join(parts, " "), nil
}

func (t *translator) partitionKeys(in *env, items []*ast.ByItem) ([]string, error) {
	var keys []string
	for _, item := range items {
		x, err := t.expr(in, item.Expr)
		if err != nil {
			return nil, err
		}
		key, _, err := x.finish().groupSQL()
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (t *translator) windowOrder(in *env, list []*ast.ByItem) ([]orderItem, error) {
	var items []orderItem
	for _, item := range list {
		x, err := t.expr(in, item.Expr)
		if err != nil {
			return nil, err
		}
		key, err := x.finish().sortSQL()
		if err != nil {
			return nil, err
		}
		items = append(items, orderItem{sql: key, desc: item.Desc})
	}
	return items, nil
}

// frameSQL writes a ROWS frame; RANGE only with its default bounds.
func frameSQL(f *ast.FrameClause) (string, error) {
	lo, err := boundSQL(&f.Extent.Start)
	if err != nil {
		return "", err
	}
	hi, err := boundSQL(&f.Extent.End)
	if err != nil {
		return "", err
	}
	word := "ROWS"
	if f.Type == ast.Ranges {
		word = "RANGE"
		if strings.ContainsAny(lo+hi, "0123456789") {
			return "", unsupported("RANGE with an offset in a window")
		}
	}
	return word + " BETWEEN " + lo + " AND " + hi, nil
}

func boundSQL(b *ast.FrameBound) (string, error) {
	direction := map[ast.BoundType]string{ast.Preceding: "PRECEDING", ast.Following: "FOLLOWING"}[b.Type]
	switch {
	case b.Type == ast.CurrentRow:
		return "CURRENT ROW", nil
	case b.UnBounded:
		return "UNBOUNDED " + direction, nil
	}
	v, ok := b.Expr.(ast.ValueExpr)
	if !ok || b.Unit != ast.TimeUnitInvalid {
		return "", unsupported("this bound of a window")
	}
	n, ok := v.GetValue().(int64)
	if !ok || n < 0 {
		return "", unsupported("this bound of a window")
	}
	return itoa(int(n)) + " " + direction, nil
}
