package column

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemarkdb/tidemark/schema"
)

// Feed appends stored value i of a column to an appender: the way back from arrays to MySQL values. exact is the exact
// value of that row and column when it has one (see FindExact), else hasExact is false.
func Feed(dst Appender, c *schema.Column, a arrow.Array, i int, exact []byte, hasExact bool) error {
	if hasExact {
		return feedExact(dst, c, exact)
	}
	if a.IsNull(i) {
		dst.Null()
		return nil
	}
	switch a := a.(type) {
	case *array.Int32:
		feedInteger(dst, c, int64(a.Value(i)))
	case *array.Int64:
		feedInteger(dst, c, a.Value(i))
	case *array.Uint64:
		if c.Type == schema.Bit {
			dst.Bit(a.Value(i))
		} else {
			dst.Uint(a.Value(i))
		}
	case *array.Decimal128:
		dst.Decimal(a.Value(i))
	case *array.Float32:
		dst.Float(a.Value(i))
	case *array.Float64:
		dst.Double(a.Value(i))
	case *array.Date32:
		t := time.Unix(int64(a.Value(i))*86400, 0).UTC()
		dst.Date(t.Year(), int(t.Month()), t.Day())
	case *array.Timestamp:
		feedTimestamp(dst, c, int64(a.Value(i)))
	case *array.Binary:
		dst.Bytes(a.Value(i))
	case *array.String:
		return feedText(dst, c, a.Value(i))
	default:
		return fmt.Errorf("column %s: no stored column has type %s", c.Name, a.DataType())
	}
	return nil
}

func feedExact(dst Appender, c *schema.Column, exact []byte) error {
	if c.Type.IsText() {
		dst.Bytes(exact)
		return nil
	}
	if c.Type == schema.Enum {
		dst.Enum(0)
		return nil
	}
	return AppendText(dst, c, string(exact))
}

func feedInteger(dst Appender, c *schema.Column, v int64) {
	switch {
	case c.Type == schema.Time:
		dst.Time(v)
	case c.Type == schema.Bit:
		dst.Bit(uint64(v))
	case c.Unsigned && c.Type != schema.Year:
		dst.Uint(uint64(v))
	default:
		dst.Int(v)
	}
}

func feedTimestamp(dst Appender, c *schema.Column, us int64) {
	t := time.UnixMicro(us).UTC()
	if c.Type == schema.Timestamp {
		dst.Timestamp(t.Unix(), t.Nanosecond()/1000)
		return
	}
	dst.DateTime(t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000)
}

func feedText(dst Appender, c *schema.Column, v string) error {
	switch {
	case c.Type == schema.Decimal:
		dst.DecimalText([]byte(v))
	case c.Type == schema.JSON:
		dst.JSON([]byte(v))
	case c.Type == schema.Enum, c.Type == schema.Set:
		return AppendText(dst, c, v)
	default:
		stored, ok := schema.FromUTF8(c.Charset, []byte(v))
		if !ok {
			return fmt.Errorf("column %s: stored text has no form in character set %s", c.Name, c.Charset)
		}
		dst.Bytes(stored)
	}
	return nil
}

// WithKeys gives the batch with the keys of its rows, computed anew from the stored values (and the numbers of rows that
// have them).
func (b *Batch) WithKeys() (*Batch, error) {
	if b.Keys.Len() == b.Rows() {
		return b, nil
	}
	kb := NewKeyBuilder(b.Table)
	for i := range b.Rows() {
		for k := range b.Table.Columns {
			if kb.Column(k) == nil {
				continue
			}
			c := &b.Table.Columns[k]
			exact, ok := b.exactOf(i, c.ID)
			if err := Feed(kb.Column(k), c, b.Record.Column(k), i, exact, ok); err != nil {
				return nil, fmt.Errorf("table %s, row %d: %w", b.Table.FullName(), i, err)
			}
		}
		kb.EndRow()
	}
	keys, err := kb.Finish()
	if err != nil {
		return nil, err
	}
	if b.Numbers != nil {
		keys = numberedKeys(&keys, b.Numbers)
	}
	out := *b
	out.Keys = keys
	return &out, nil
}

func (b *Batch) exactOf(row int, column uint32) ([]byte, bool) {
	if b.Exact == nil || b.Exact.IsNull(row) {
		return nil, false
	}
	return FindExact(b.Exact.Value(row), column)
}
