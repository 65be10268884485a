package query

import (
	"bytes"
	"strings"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// keyOf gives the key bytes of the only row of a table that can meet a WHERE with these equalities; nil when it leaves a
// column of the key open, or one that is not an integer: other types may be equal without having the same key.
func keyOf(def *schema.Table, equal map[string]translate.Value) []byte {
	if len(def.Key) == 0 || len(equal) == 0 {
		return nil
	}
	b := column.NewKeyBuilder(def)
	for _, i := range def.Key {
		v, ok := equal[strings.ToLower(def.Columns[i].Name)]
		if !ok || !appendInteger(b.Column(i), &def.Columns[i], v) {
			return nil
		}
	}
	b.EndRow()
	keys, err := b.Finish()
	if err != nil {
		return nil
	}
	return keys.At(0)
}

// appendInteger is false for a value that the column's type can't have as it is.
func appendInteger(to column.Appender, c *schema.Column, v translate.Value) bool {
	switch c.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt:
	default:
		return false
	}
	if v.Kind == translate.UintValue {
		if !c.Unsigned && v.Uint>>63 != 0 {
			return false
		}
		v.Int = int64(v.Uint)
	} else if c.Unsigned && v.Int < 0 {
		return false
	}
	if c.Unsigned {
		to.Uint(uint64(v.Int))
	} else {
		to.Int(v.Int)
	}
	return true
}

// maxSought is the number of rows in segments up to which looking for the key here is faster than leaving it to the engine.
const maxSought = 64 << 10

// withKey leaves out the parts and segments that can't have the key, and of the segments all other rows.
func withKey(tv *storage.TableVersion, key []byte) *storage.TableVersion {
	within := func(low, high []byte) bool {
		return low == nil || bytes.Compare(low, key) <= 0 && bytes.Compare(key, high) <= 0
	}
	out := *tv
	out.Parts, out.Segments = nil, nil
	rows := 0
	for _, s := range tv.Segments {
		if within(s.MinKey, s.MaxKey) {
			out.Segments = append(out.Segments, s)
			rows += s.Batch.Rows()
		}
	}
	if rows <= maxSought {
		if out.Segments = only(out.Segments, key); out.Segments != nil {
			return &out // a key has one live row
		}
	}
	for _, p := range tv.Parts {
		if within(p.Info.MinKey, p.Info.MaxKey) {
			out.Parts = append(out.Parts, p)
		}
	}
	return &out
}

// only gives the live row that has the key as a segment; nil when there is none.
func only(segments []storage.SegmentView, key []byte) []storage.SegmentView {
	for _, s := range segments {
		for i := range s.Batch.Keys.Len() {
			if bytes.Equal(s.Batch.Keys.At(i), key) && !s.Dead.Has(uint32(i)) {
				return []storage.SegmentView{{ID: s.ID, Batch: s.Batch.Slice(i, i+1), MinKey: key, MaxKey: key}}
			}
		}
	}
	return nil
}
