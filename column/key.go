package column

import (
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

// keyColumn encodes the values of one key column, and hands them on to the stored column when there is one.
type keyColumn struct {
	base
	next Appender // nil when only keys are built
	buf  []byte
}

func (c *keyColumn) Null() {
	c.fail("NULL in a key column")
	if c.next != nil {
		c.next.Null()
	}
}

func (c *keyColumn) Int(v int64) {
	c.buf = uniquekey.AppendInt(c.buf[:0], v)
	if c.next != nil {
		c.next.Int(v)
	}
}

func (c *keyColumn) Uint(v uint64) {
	c.buf = uniquekey.AppendUint(c.buf[:0], v)
	if c.next != nil {
		c.next.Uint(v)
	}
}

func (c *keyColumn) Float(v float32) {
	c.buf = uniquekey.AppendFloat(c.buf[:0], float64(v))
	if c.next != nil {
		c.next.Float(v)
	}
}

func (c *keyColumn) Double(v float64) {
	c.buf = uniquekey.AppendFloat(c.buf[:0], v)
	if c.next != nil {
		c.next.Double(v)
	}
}

func (c *keyColumn) Decimal(v decimal128.Num) {
	c.buf = uniquekey.AppendInt128(c.buf[:0], v.HighBits(), v.LowBits())
	if c.next != nil {
		c.next.Decimal(v)
	}
}

func (c *keyColumn) DecimalText(v []byte) {
	n, err := unscaled(v, c.col.Scale)
	if err == nil {
		c.buf, err = uniquekey.AppendBig(c.buf[:0], n)
	}
	if err != nil {
		c.fail("%v", err)
	}
	if c.next != nil {
		c.next.DecimalText(v)
	}
}

// Dates are packed as MySQL orders them, so that zero and partial dates have keys too.
func packDate(y, m, d int) int64 { return int64(y)<<9 | int64(m)<<5 | int64(d) }

func (c *keyColumn) Date(y, m, d int) {
	c.buf = uniquekey.AppendInt(c.buf[:0], packDate(y, m, d))
	if c.next != nil {
		c.next.Date(y, m, d)
	}
}

func (c *keyColumn) DateTime(y, mo, d, h, mi, s, us int) {
	packed := (packDate(y, mo, d)<<17|int64(h)<<12|int64(mi)<<6|int64(s))<<20 | int64(us)
	c.buf = uniquekey.AppendInt(c.buf[:0], packed)
	if c.next != nil {
		c.next.DateTime(y, mo, d, h, mi, s, us)
	}
}

func (c *keyColumn) Timestamp(sec int64, us int) {
	c.buf = uniquekey.AppendInt(c.buf[:0], sec*1_000_000+int64(us))
	if c.next != nil {
		c.next.Timestamp(sec, us)
	}
}

func (c *keyColumn) Time(us int64) {
	c.buf = uniquekey.AppendInt(c.buf[:0], us)
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
	c.buf = uniquekey.AppendBytes(c.buf[:0], b)
	if c.next != nil {
		c.next.Bytes(b)
	}
}

func (c *keyColumn) Enum(index int) {
	c.buf = uniquekey.AppendUint(c.buf[:0], uint64(index))
	if c.next != nil {
		c.next.Enum(index)
	}
}

func (c *keyColumn) Set(mask uint64) {
	c.buf = uniquekey.AppendUint(c.buf[:0], mask)
	if c.next != nil {
		c.next.Set(mask)
	}
}

func (c *keyColumn) Bit(v uint64) {
	c.buf = uniquekey.AppendUint(c.buf[:0], v)
	if c.next != nil {
		c.next.Bit(v)
	}
}

// KeyBuilder builds only the keys of rows, such as those of before images. Columns outside the key have no appender.
type KeyBuilder struct {
	host host
	cols []*keyColumn // by column index; nil outside the key
	key  []*keyColumn // in key order
	keys Keys
	buf  []byte
}

// NewKeyBuilder gives a builder for the table's keys.
func NewKeyBuilder(t *schema.Table) *KeyBuilder {
	b := &KeyBuilder{host: host{table: t}, cols: make([]*keyColumn, len(t.Columns))}
	for _, i := range t.Key {
		c := &keyColumn{base: base{host: &b.host, col: &t.Columns[i]}}
		b.cols[i] = c
		b.key = append(b.key, c)
	}
	return b
}

// Column gives the appender of column i of the table, nil when it is not part of the key.
func (b *KeyBuilder) Column(i int) Appender {
	if b.cols[i] == nil {
		return nil
	}
	return b.cols[i]
}

// EndRow closes the row whose key values were appended.
func (b *KeyBuilder) EndRow() { b.buf = appendKey(&b.keys, b.buf, b.key) }

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

func appendKey(keys *Keys, buf []byte, parts []*keyColumn) []byte {
	buf = buf[:0]
	for _, p := range parts {
		buf = append(buf, p.buf...)
	}
	keys.Append(buf)
	return buf
}
