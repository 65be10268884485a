package field

import (
	"cmp"
	"slices"

	"github.com/tidemarkdb/tidemark/schema"
)

// The ranks in which MySQL keeps and shows indexes. A nullable column puts a unique one two ranks back, a prefix one.
const (
	rankPrimary = iota
	rankUnique
	rankPlain    = rankUnique + 4
	rankFullText = rankPlain + 1
)

// Indexes gives a table's indexes in MySQL's order: the primary key, unique keys without NULL, other unique keys, the
// others, full-text ones last.
func Indexes(t *schema.Table) []schema.Index {
	list := slices.Clone(t.Indexes)
	slices.SortStableFunc(list, func(a, b schema.Index) int { return cmp.Compare(rank(t, &a), rank(t, &b)) })
	return list
}

func rank(t *schema.Table, ix *schema.Index) int {
	switch {
	case ix.Name == "PRIMARY":
		return rankPrimary
	case ix.Kind == "FULLTEXT":
		return rankFullText
	case !ix.Unique:
		return rankPlain
	}
	r := rankUnique
	if slices.ContainsFunc(ix.Parts, func(p schema.IndexPart) bool { return isNullable(t, p.Column) }) {
		r += 2
	}
	if slices.ContainsFunc(ix.Parts, func(p schema.IndexPart) bool { return p.Prefix > 0 }) {
		r++
	}
	return r
}

func isNullable(t *schema.Table, column uint32) bool {
	i := t.ColumnByID(column)
	return i < 0 || t.Columns[i].Nullable
}

// Primary gives the name of the index that MySQL takes for the primary key: where there is none, the first unique one
// whose columns are all NOT NULL and whole. Empty: there is none.
func Primary(t *schema.Table) string {
	list := Indexes(t)
	if len(list) > 0 && rank(t, &list[0]) <= rankUnique {
		return list[0].Name
	}
	return ""
}
