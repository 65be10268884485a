package translate

// keyOrderRows is the number of rows up to which a plain SELECT of a table comes in the order of its key, as InnoDB gives
// it. MySQL leaves the order open without ORDER BY, but people compare what they see; larger results are not sorted,
// so that they stream in bounded memory.
const keyOrderRows = 1_000_000

// keyOrder gives the order of the rows of a plain SELECT over one table: by its key where the table is small, or where a
// LIMIT makes it cheap and tells which rows come. It gives nothing where MySQL has no such order either, and for keys that
// can't be sorted by.
func (b *block) keyOrder() []orderItem {
	src := b.plainTable()
	if src == nil || b.n.Limit == nil && src.read.info.Rows > keyOrderRows {
		return nil
	}
	def := src.read.info.Table
	e := b.grouped("order clause")
	var order []orderItem
	for _, k := range def.Key {
		item, ok := b.keyItem(e, src, def.Columns[k].ID)
		if !ok {
			return nil
		}
		order = append(order, item)
	}
	return order
}

func (b *block) keyItem(e *env, src *source, id uint32) (orderItem, bool) {
	for _, c := range src.columns {
		if c.def == nil || c.def.ID != id {
			continue
		}
		x, err := b.t.columnExpr(e, c)
		if err != nil {
			return orderItem{}, false
		}
		sql, err := x.finish().sortSQL()
		return orderItem{sql: sql}, err == nil
	}
	return orderItem{}, false
}

// plainTable gives the only table of a SELECT whose rows go to the client one by one; nil for every other.
func (b *block) plainTable() *source {
	if b.place != queryTop || b.group != nil || b.n.Distinct || b.n.OrderBy != nil || len(b.env.scope.sources) != 1 {
		return nil
	}
	src := b.env.scope.sources[0]
	if src.read == nil {
		return nil
	}
	for _, f := range b.fields {
		if f.node != nil && hasWindow(f.node) {
			return nil
		}
	}
	return src
}
