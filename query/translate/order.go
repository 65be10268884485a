package translate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/tidemarkdb/tidemark/schema"
)

// orderItem is one key of an ORDER BY: the text to sort by, and the number of the select item it is, from 1; 0: none.
type orderItem struct {
	sql   string
	field int
	desc  bool
}

// orderSQL writes an ORDER BY clause. MySQL sorts NULL before all values.
func orderSQL(items []orderItem) string {
	if len(items) == 0 {
		return ""
	}
	parts := make([]string, len(items))
	for i, it := range items {
		if isNumber(it.sql) { // a position to DuckDB
			it.sql = "CAST(" + it.sql + " AS BIGINT)"
		}
		parts[i] = it.sql + direction(it.desc)
	}
	return " ORDER BY " + strings.Join(parts, ", ")
}

func direction(desc bool) string {
	if desc {
		return " DESC NULLS LAST"
	}
	return " ASC NULLS FIRST"
}

func (b *block) readOrder() (err error) {
	if b.n.OrderBy == nil {
		if b.group != nil && b.group.rollup && !b.n.Distinct {
			b.order, err = b.group.rollupOrder()
			return err
		}
		b.order = b.keyOrder()
		return nil
	}
	for i, item := range b.n.OrderBy.Items {
		o, err := b.orderItem(item, i+1)
		if err != nil {
			return err
		}
		if o != nil {
			b.order = append(b.order, *o)
		}
	}
	if b.group != nil && b.group.implicit {
		b.order = nil // one row
	}
	return nil
}

// orderItem translates one item; nil for a constant, which sorts nothing.
func (b *block) orderItem(item *ast.ByItem, position int) (*orderItem, error) {
	e := b.grouped("order clause")
	e.fields, e.position = b.fields, position
	if c, ok := item.Expr.(*ast.ColumnNameExpr); ok && c.Name.Table.O == "" {
		e.aliasFirst = true
	}
	f, err := b.positional(item.Expr, "order clause")
	if err != nil {
		return nil, err
	}
	var x expr
	if f != nil {
		x, err = b.t.fieldExpr(e, f)
	} else {
		x, err = b.t.expr(e, item.Expr)
	}
	if err != nil || x.lit != nil {
		return nil, err
	}
	o := &orderItem{desc: item.Desc}
	if b.n.Distinct {
		return o, b.distinctOrder(o, x, position)
	}
	o.sql, err = x.finish().sortSQL()
	return o, err
}

// distinctOrder finds the select item to sort by: with DISTINCT there is nothing else.
func (b *block) distinctOrder(o *orderItem, x expr, position int) error {
	for i, f := range b.fields {
		e := b.grouped("field list")
		y, err := b.t.fieldExpr(e, f)
		if err != nil {
			return err
		}
		if y.sql == x.sql {
			o.field = i + 1
			return nil
		}
	}
	return unsupported("ORDER BY item %d, which is not in the select list, with DISTINCT", position)
}

// distinct writes a SELECT DISTINCT. Text is distinct by its collation.
func (b *block) distinct(items []string, limit string) (string, error) {
	inner := "SELECT " + strings.Join(items, ", ") + b.tail()
	sql, err := distinctRows(b.t, inner, b.out)
	if err != nil {
		return "", err
	}
	return orderOutput(b.t, sql, b.out, b.order, limit)
}

// distinctRows makes the rows of a query with columns out distinct as MySQL compares them.
func distinctRows(t *translator, inner string, out []outColumn) (string, error) {
	alias := t.alias("d")
	keys := make([]string, len(out))
	allPlain := true
	for i := range out {
		x := out[i].e
		x.sql, x.key = fmt.Sprintf("%s.c%d", alias, i+1), ""
		key, plain, err := x.groupSQL()
		if err != nil {
			return "", err
		}
		keys[i] = key
		allPlain = allPlain && plain
	}
	if allPlain {
		return fmt.Sprintf("SELECT DISTINCT * FROM (%s) AS %s", inner, alias), nil
	}
	return fmt.Sprintf("SELECT DISTINCT ON (%s) * FROM (%s) AS %s", strings.Join(keys, ", "), inner, alias), nil
}

// orderOutput sorts a finished query by its own columns.
func orderOutput(t *translator, sql string, out []outColumn, order []orderItem, limit string) (string, error) {
	if len(order) == 0 {
		return sql + limit, nil
	}
	alias := t.alias("d")
	for i := range order {
		n := order[i].field
		x := out[n-1].e
		x.sql, x.key = fmt.Sprintf("%s.c%d", alias, n), ""
		key, err := x.sortSQL()
		if err != nil {
			return "", err
		}
		order[i].sql = key
	}
	return fmt.Sprintf("SELECT * FROM (%s) AS %s%s%s", sql, alias, orderSQL(order), limit), nil
}

// sortSQL gives the text by which DuckDB sorts values as MySQL sorts them.
func (x expr) sortSQL() (string, error) {
	switch {
	case x.key != "" && x.typ.isText() && x.typ.Collation.known && x.typ.Collation.Binary:
		return collationKey(x.key, x.typ.Collation, true) // the key tells equal from not equal only
	case x.key != "":
		return x.key, nil
	case x.typ.Kind == KindJSON:
		return "", unsupported("sorting JSON values")
	case x.phys.k == physDecimalText:
		return "", unsupported("sorting DECIMAL values of more than %d digits", maxDuckDecimal)
	case x.typ.isEnum():
		return x.enumIndex(), nil
	case x.typ.isSet():
		return x.setBits(), nil
	case x.typ.isText():
		return collationKey(x.sql, x.typ.Collation, true)
	}
	return x.sql, nil
}

// groupSQL gives the text by which equal values are equal; plain tells that it is the value itself.
func (x expr) groupSQL() (key string, plain bool, err error) {
	switch {
	case x.typ.Kind == KindJSON:
		return "", false, unsupported("grouping JSON values")
	case x.typ.isEnum() || x.typ.isSet():
		return x.sql, true, nil
	case x.typ.isText():
		key, err = x.equalKey(x.typ.Collation)
		return key, key == x.sql, err
	}
	return x.sql, true, nil
}

// equalKey gives the text that is the same by bytes for texts that are equal by collation c. The values of a CHAR column
// have no spaces at their end: MySQL takes them away whenever it reads one.
func (x expr) equalKey(c *Collation) (string, error) {
	if c.known && c.Binary && x.col != nil && x.col.def != nil && x.col.def.Type == schema.Char && x.sql == x.col.sql {
		return x.sql, nil
	}
	return collationKey(x.sql, c, false)
}

// collationKey gives the text of a value that compares by bytes as the string compares by its collation. order tells
// that less and greater matter too, not only equality.
func collationKey(sql string, c *Collation, order bool) (string, error) {
	switch {
	case !c.known:
		return "", unsupported("comparing text by collation %s", c.Name)
	case c.Binary && !c.PadSpace && (c.Charset != "latin1" || !order):
		return sql, nil
	case c.Binary && !order:
		return "rtrim(" + sql + ", ' ')", nil
	}
	return fmt.Sprintf("tm_sortkey(%s, %d)", sql, c.ID), nil
}

// enumIndex gives the index of an ENUM's label, from 1.
func (x expr) enumIndex() string {
	return fmt.Sprintf("list_position([%s], %s)", quoteAll(x.typ.Elements), x.sql)
}

// setBits gives the bits of a SET value.
func (x expr) setBits() string {
	parts := make([]string, 0, len(x.typ.Elements))
	for i, e := range x.typ.Elements {
		bit := strconv.FormatUint(1<<uint(i), 10)
		parts = append(parts, fmt.Sprintf("CASE WHEN list_contains(string_split(%s, ','), %s) THEN %s::UBIGINT ELSE 0::UBIGINT END", x.sql, quoteText(e), bit))
	}
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN %s END", x.sql, strings.Join(parts, " + "))
}

func quoteAll(labels []string) string {
	q := make([]string, len(labels))
	for i, l := range labels {
		q[i] = quoteText(l)
	}
	return strings.Join(q, ", ")
}
