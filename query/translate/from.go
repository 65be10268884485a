package translate

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/tidemarkdb/tidemark/schema"
)

// relation is a translated table reference: its DuckDB text and the columns it brings.
type relation struct {
	sql string
	scope
}

// from translates a FROM clause; e is the environment of the query block (its scope is not set yet).
func (t *translator) from(e *env, clause *ast.TableRefsClause) (*relation, error) {
	r, err := t.tableRef(e, clause.TableRefs)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, s := range r.sources {
		key := s.db + "\x00" + s.name
		if seen[key] {
			return nil, errNonUniqTable(s.name)
		}
		seen[key] = true
	}
	return r, nil
}

func (t *translator) tableRef(e *env, node ast.ResultSetNode) (*relation, error) {
	switch n := node.(type) {
	case *ast.Join:
		return t.join(e, n)
	case *ast.TableSource:
		return t.tableSource(e, n)
	case *ast.TableName:
		return t.tableName(e, n, "")
	default:
		return nil, unsupported("this table reference")
	}
}

func (t *translator) tableSource(e *env, n *ast.TableSource) (*relation, error) {
	if n.Lateral {
		return nil, unsupported("LATERAL")
	}
	switch src := n.Source.(type) {
	case *ast.TableName:
		return t.tableName(e, src, n.AsName.O)
	case *ast.SelectStmt, *ast.SetOprStmt:
		if n.AsName.O == "" {
			return nil, errDerivedNeedsAlias()
		}
		return t.derived(e, src, n)
	case *ast.Join:
		return t.join(e, src)
	default:
		return nil, unsupported("this table reference")
	}
}

func (t *translator) tableName(e *env, n *ast.TableName, as string) (*relation, error) {
	if err := tableNameExtras(n); err != nil {
		return nil, err
	}
	if n.Schema.O == "" {
		if c := e.ctes.find(n.Name.O); c != nil {
			return t.cteReference(c, n.Name.O, as)
		}
	}
	db := n.Schema.O
	if db == "" {
		db = t.session.Database
	}
	if db == "" {
		return nil, errNoDatabase()
	}
	info, err := t.catalog.Table(db, n.Name.O)
	if err != nil {
		return nil, err
	}
	if info == nil {
		return nil, errNoSuchTable(db, n.Name.O)
	}
	if as == "" {
		as = n.Name.O
	}
	return t.table(db, as, info), nil
}

func tableNameExtras(n *ast.TableName) error {
	switch {
	case len(n.PartitionNames) > 0:
		return unsupported("PARTITION (...)")
	case n.TableSample != nil:
		return unsupported("TABLESAMPLE")
	case n.AsOf != nil:
		return unsupported("AS OF")
	}
	return nil
}

func (t *translator) table(db, as string, info *TableInfo) *relation {
	index, read := t.read(info)
	src := &source{db: db, name: as, alias: t.alias("t"), read: read}
	r := &relation{sql: fmt.Sprintf("%s%d%s AS %s", markStart, index, markEnd, src.alias)}
	for i := range info.Table.Columns {
		def := &info.Table.Columns[i]
		ty, ph := columnType(def, info.fits(def.ID))
		if t.session.BinaryCollation && ty.isText() {
			ty.Collation = bytewise(ty.Collation)
		}
		c := &column{name: def.Name, typ: ty, phys: ph, sql: fmt.Sprintf("%s.c%d", src.alias, def.ID), src: src, def: def}
		src.columns = append(src.columns, c)
		if !def.Invisible {
			r.visible = append(r.visible, visible{def.Name, c})
		}
	}
	r.sources = []*source{src}
	return r
}

// bytewise gives a copy of a collation that compares code points and keeps the name that clients see.
func bytewise(c *Collation) *Collation {
	b := *c
	b.Binary, b.PadSpace, b.known = true, false, true
	return &b
}

// read registers a table once, however often the statement names it.
func (t *translator) read(info *TableInfo) (int, *tableRead) {
	for i, r := range t.reads {
		if r.info.Table.Database == info.Table.Database && r.info.Table.Name == info.Table.Name {
			return i, r
		}
	}
	r := &tableRead{info: info, columns: map[uint32]bool{}}
	t.reads = append(t.reads, r)
	return len(t.reads) - 1, r
}

func (t *translator) derived(e *env, node ast.ResultSetNode, n *ast.TableSource) (*relation, error) {
	q, err := t.query(node, &env{ctes: e.ctes}, queryNested)
	if err != nil {
		return nil, err
	}
	names, err := columnNames(q, n.ColumnNames, n.AsName.O)
	if err != nil {
		return nil, err
	}
	r := t.queryRelation(q, names, n.AsName.O)
	r.sql = "(" + q.sql + ") AS " + r.sources[0].alias
	return r, nil
}

// columnNames gives the names of a derived table's columns: its own or the list after the alias.
func columnNames(q *query, list []ast.CIStr, table string) ([]string, error) {
	if len(list) > 0 && len(list) != len(q.columns) {
		return nil, errorf(1353, "HY000", "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts")
	}
	names := make([]string, len(q.columns))
	seen := map[string]bool{}
	for i := range q.columns {
		names[i] = q.columns[i].name
		if len(list) > 0 {
			names[i] = list[i].O
		}
		key := foldName(names[i])
		if seen[key] {
			return nil, errorf(1060, "42S21", "Duplicate column name '%s'", names[i])
		}
		seen[key] = true
	}
	return names, nil
}

// queryRelation makes the columns of a query used as a table.
func (t *translator) queryRelation(q *query, names []string, as string) *relation {
	src := &source{name: as, alias: t.alias("t")}
	r := &relation{scope: scope{sources: []*source{src}}}
	for i := range q.columns {
		x := q.columns[i].e
		c := &column{name: names[i], typ: x.typ, phys: x.phys, ragged: x.ragged, sql: fmt.Sprintf("%s.c%d", src.alias, i+1), src: src}
		if c.typ.Kind == KindString && c.typ.Coercibility > Implicit || c.typ.Kind == KindNull {
			c.typ.Coercibility = Implicit
		}
		src.columns = append(src.columns, c)
		r.visible = append(r.visible, visible{names[i], c})
	}
	return r
}

func (t *translator) join(e *env, n *ast.Join) (*relation, error) {
	left, err := t.tableRef(e, n.Left)
	if err != nil || n.Right == nil {
		return left, err
	}
	right, err := t.tableRef(e, n.Right)
	if err != nil {
		return nil, err
	}
	switch n.Tp {
	case ast.LeftJoin:
		right.makeNullable()
	case ast.RightJoin:
		left.makeNullable()
	}
	r := &relation{scope: scope{sources: append(append([]*source{}, left.sources...), right.sources...)}}
	using, err := usingColumns(n, left, right)
	if err != nil {
		return nil, err
	}
	if n.NaturalJoin || len(n.Using) > 0 {
		return t.joinUsing(e, n, left, right, r, using)
	}
	r.visible = append(append([]visible{}, left.visible...), right.visible...)
	cond := ""
	if n.On != nil {
		on := &env{scope: &r.scope, outer: e.outer, ctes: e.ctes, clause: "on clause"}
		if cond, err = t.condition(on, n.On.Expr); err != nil {
			return nil, err
		}
	}
	r.sql = joinSQL(n.Tp, left.sql, right.sql, cond)
	return r, nil
}

func joinSQL(tp ast.JoinType, left, right, cond string) string {
	word := map[ast.JoinType]string{ast.LeftJoin: "LEFT JOIN", ast.RightJoin: "RIGHT JOIN"}[tp]
	if word == "" {
		word = "JOIN"
	}
	if cond == "" && word == "JOIN" {
		return fmt.Sprintf("(%s CROSS JOIN %s)", left, right)
	}
	if cond == "" {
		cond = "true"
	}
	return fmt.Sprintf("(%s %s %s ON %s)", left, word, right, cond)
}

// makeNullable marks the columns of the side of an outer join that may be missing.
func (r *relation) makeNullable() {
	for _, s := range r.sources {
		for _, c := range s.columns {
			c.typ.Nullable = true
		}
	}
}

// usingColumns gives the names on which a NATURAL JOIN or one with USING joins, in the order of the first table.
func usingColumns(n *ast.Join, left, right *relation) ([]string, error) {
	first, second := left, right
	if n.Tp == ast.RightJoin {
		first, second = right, left
	}
	var names []string
	if n.NaturalJoin {
		for _, v := range first.visible {
			if len(second.named(v.name)) > 0 {
				names = append(names, v.name)
			}
		}
		return names, nil
	}
	for _, u := range n.Using {
		if len(first.named(u.Name.O)) == 0 || len(second.named(u.Name.O)) == 0 {
			return nil, errBadField(u.Name.O, "from clause")
		}
	}
	for _, v := range first.visible {
		for _, u := range n.Using {
			if strings.EqualFold(u.Name.O, v.name) {
				names = append(names, v.name)
			}
		}
	}
	return names, nil
}

func (r *relation) named(name string) []*column {
	var out []*column
	for _, v := range r.visible {
		if strings.EqualFold(v.name, name) {
			out = append(out, v.col)
		}
	}
	return out
}

// joinUsing joins on equal columns of the given names. They are shown once, first, with the values of the side that is
// always there.
func (t *translator) joinUsing(e *env, n *ast.Join, left, right, r *relation, names []string) (*relation, error) {
	first, second := left, right
	if n.Tp == ast.RightJoin {
		first, second = right, left
	}
	var conds []string
	common := map[string]bool{}
	on := &env{scope: &r.scope, outer: e.outer, ctes: e.ctes, clause: "from clause"}
	for _, name := range names {
		a, b := first.named(name), second.named(name)
		if len(a) > 1 || len(b) > 1 {
			return nil, errAmbiguous(name, "from clause")
		}
		cond, err := t.equalColumns(on, a[0], b[0])
		if err != nil {
			return nil, err
		}
		conds = append(conds, cond)
		common[foldName(name)] = true
		r.visible = append(r.visible, visible{a[0].name, a[0]})
	}
	for _, side := range []*relation{first, second} {
		for _, v := range side.visible {
			if !common[foldName(v.name)] {
				r.visible = append(r.visible, v)
			}
		}
	}
	r.sql = joinSQL(n.Tp, left.sql, right.sql, strings.Join(conds, " AND "))
	return r, nil
}

func (t *translator) equalColumns(e *env, a, b *column) (string, error) {
	x, err := t.columnExpr(e, a)
	if err != nil {
		return "", err
	}
	y, err := t.columnExpr(e, b)
	if err != nil {
		return "", err
	}
	c, err := t.compare("=", x, y)
	return c.sql, err
}

// uniqueKeys gives the sets of NOT NULL columns that identify a row of the table.
func (s *source) uniqueKeys() [][]uint32 {
	if s.read == nil {
		return nil
	}
	table := s.read.info.Table
	var keys [][]uint32
	if len(table.Key) > 0 {
		var key []uint32
		for _, i := range table.Key {
			key = append(key, table.Columns[i].ID)
		}
		keys = append(keys, key)
	}
	for i := range table.Indexes {
		if key := notNullKey(table, &table.Indexes[i]); key != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

func notNullKey(table *schema.Table, ix *schema.Index) []uint32 {
	if !ix.Unique {
		return nil
	}
	var key []uint32
	for _, p := range ix.Parts {
		i := table.ColumnByID(p.Column)
		if i < 0 || p.Prefix > 0 || table.Columns[i].Nullable {
			return nil
		}
		key = append(key, p.Column)
	}
	return key
}
