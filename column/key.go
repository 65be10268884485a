package column

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Keys are the key bytes of consecutive rows.
type Keys struct {
	data []byte
	ends []int
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.ends) }

// At gives the i-th key. It points into the set and must not be changed.
func (k *Keys) At(i int) []byte {
	start := 0
	if i > 0 {
		start = k.ends[i-1]
	}
	return k.data[start:k.ends[i]:k.ends[i]]
}

// Append adds a key; it is copied.
func (k *Keys) Append(key []byte) {
	k.data = append(k.data, key...)
	k.ends = append(k.ends, len(k.data))
}

// Bytes is the size of all keys.
func (k *Keys) Bytes() int { return len(k.data) }

// Reset empties the set and keeps its memory.
func (k *Keys) Reset() { k.data, k.ends = k.data[:0], k.ends[:0] }

// keyColumn encodes the values of one key column, or those of any column of a table without a key, and hands them on to
// the stored column when there is one.
type keyColumn struct {
	base
	next Appender // nil when only keys are built
	// row is set in a table without a key: NULL and JSON have a form then, and buf starts with what kind of form it is.
	row bool
	buf []byte
}

// start gives the buffer for the next value.
func (c *keyColumn) start() []byte {
	if c.row {
		return append(c.buf[:0], formValue)
	}
	return c.buf[:0]
}

func (c *keyColumn) Null() {
	if c.row {
		c.buf = append(c.buf[:0], formNull)
	} else {
		c.fail("NULL in a key column")
	}
	if c.next != nil {
		c.next.Null()
	}
}

func (c *keyColumn) Int(v int64) {
	c.buf = uniquekey.AppendInt(c.start(), v)
	if c.next != nil {
		c.next.Int(v)
	}
}

func (c *keyColumn) Uint(v uint64) {
	c.buf = uniquekey.AppendUint(c.start(), v)
	if c.next != nil {
		c.next.Uint(v)
	}
}

func (c *keyColumn) Float(v float32) {
	c.buf = c.appendFloat(float64(v))
	if c.next != nil {
		c.next.Float(v)
	}
}

// appendFloat keeps -0 and 0 apart where the whole row counts: before images do.
func (c *keyColumn) appendFloat(v float64) []byte {
	if c.row {
		return binary.BigEndian.AppendUint64(c.start(), math.Float64bits(v))
	}
	return uniquekey.AppendFloat(c.start(), v)
}

func (c *keyColumn) Double(v float64) {
	c.buf = c.appendFloat(v)
	if c.next != nil {
		c.next.Double(v)
	}
}

func (c *keyColumn) Decimal(v decimal128.Num) {
	c.buf = uniquekey.AppendInt128(c.start(), v.HighBits(), v.LowBits())
	if c.next != nil {
		c.next.Decimal(v)
	}
}

func (c *keyColumn) DecimalText(v []byte) {
	if n, ok := shortUnscaled(v, c.col.Scale); ok {
		c.buf = uniquekey.AppendInt(c.start(), n)
	} else if err := c.longDecimal(v); err != nil {
		c.fail("%v", err)
	}
	if c.next != nil {
		c.next.DecimalText(v)
	}
}

func (c *keyColumn) longDecimal(v []byte) error {
	n, err := unscaled(v, c.col.Scale)
	if err == nil {
		c.buf, err = uniquekey.AppendBig(c.start(), n)
	}
	return err
}

// Dates are packed as MySQL orders them, so that zero and partial dates have keys too.
func packDate(y, m, d int) int64 { return int64(y)<<9 | int64(m)<<5 | int64(d) }

func (c *keyColumn) Date(y, m, d int) {
	c.buf = uniquekey.AppendInt(c.start(), packDate(y, m, d))
	if c.next != nil {
		c.next.Date(y, m, d)
	}
}

func (c *keyColumn) DateTime(y, mo, d, h, mi, s, us int) {
	packed := (packDate(y, mo, d)<<17|int64(h)<<12|int64(mi)<<6|int64(s))<<20 | int64(us)
	c.buf = uniquekey.AppendInt(c.start(), packed)
	if c.next != nil {
		c.next.DateTime(y, mo, d, h, mi, s, us)
	}
}

func (c *keyColumn) Timestamp(sec int64, us int) {
	c.buf = uniquekey.AppendInt(c.start(), sec*1_000_000+int64(us))
	if c.next != nil {
		c.next.Timestamp(sec, us)
	}
}

func (c *keyColumn) Time(us int64) {
	c.buf = uniquekey.AppendInt(c.start(), us)
	if c.next != nil {
		c.next.Time(us)
	}
}

// Bytes encodes the stored bytes. BINARY(n) is padded as it is stored, so that a row image without the trailing zero
// bytes names the same row.
func (c *keyColumn) Bytes(b []byte) {
	if c.col.Type == schema.Binary && len(b) < c.col.Length {
		padded := make([]byte, c.col.Length)
		copy(padded, b)
		b = padded
	}
	if c.row {
		c.buf = appendRowBytes(c.buf[:0], b)
	} else {
		c.buf = uniquekey.AppendBytes(c.buf[:0], b)
	}
	if c.next != nil {
		c.next.Bytes(b)
	}
}

func (c *keyColumn) Enum(index int) {
	c.buf = uniquekey.AppendUint(c.start(), uint64(index))
	if c.next != nil {
		c.next.Enum(index)
	}
}

func (c *keyColumn) Set(mask uint64) {
	c.buf = uniquekey.AppendUint(c.start(), mask)
	if c.next != nil {
		c.next.Set(mask)
	}
}

func (c *keyColumn) Bit(v uint64) {
	c.buf = uniquekey.AppendUint(c.start(), v)
	if c.next != nil {
		c.next.Bit(v)
	}
}

// JSON has a form in tables without a key only: no key has a JSON column.
func (c *keyColumn) JSON(b []byte) {
	if !c.row {
		c.base.JSON(b)
		return
	}
	c.buf = appendRowBytes(c.buf[:0], b)
	if c.next != nil {
		c.next.JSON(b)
	}
}

// keyMaker joins the forms of a row's values to its key.
type keyMaker interface {
	// end appends the key of the row whose values were given last.
	end(keys *Keys)
}

// newKeyMaker puts itself in front of the appenders whose values count for the key; cols has one a column, nil where the
// values go nowhere else.
func newKeyMaker(h *host, t *schema.Table, cols []Appender) keyMaker {
	if t.Multiset() {
		return newRowKey(h, t, cols)
	}
	k := &columnsKey{}
	for _, i := range t.Key {
		c := &keyColumn{base: base{host: h, col: &t.Columns[i]}, next: cols[i]}
		cols[i] = c
		k.parts = append(k.parts, c)
	}
	return k
}

// columnsKey is the key of a table that has one: the forms of its key columns, in key order.
type columnsKey struct {
	parts []*keyColumn
	buf   []byte
}

func (k *columnsKey) end(keys *Keys) {
	k.buf = k.buf[:0]
	for _, p := range k.parts {
		k.buf = append(k.buf, p.buf...)
	}
	keys.Append(k.buf)
}

// KeyBuilder builds only the keys of rows, such as those of before images. Columns outside the key have no appender; in a
// table without a key all columns have one, and the keys are hashes of whole rows (see RowHashLen).
type KeyBuilder struct {
	host host
	cols []Appender // by column index; nil outside the key
	key  keyMaker
	keys Keys
}

// NewKeyBuilder gives a builder for the table's keys.
func NewKeyBuilder(t *schema.Table) *KeyBuilder {
	b := &KeyBuilder{host: host{table: t}, cols: make([]Appender, len(t.Columns))}
	b.key = newKeyMaker(&b.host, t, b.cols)
	return b
}

// Column gives the appender of column i of the table, nil when it is not part of the key.
func (b *KeyBuilder) Column(i int) Appender { return b.cols[i] }

// EndRow closes the row whose key values were appended.
func (b *KeyBuilder) EndRow() { b.key.end(&b.keys) }

// Finish gives the keys built so far, and starts anew.
func (b *KeyBuilder) Finish() (Keys, error) {
	keys, err := b.keys, b.host.err
	b.keys, b.host.err = Keys{}, nil
	return keys, err
}

// Keys gives the keys built since the last Finish. They stay valid until the next EndRow.
func (b *KeyBuilder) Keys() *Keys { return &b.keys }

// Err is the first error of a value.
func (b *KeyBuilder) Err() error { return b.host.err }
