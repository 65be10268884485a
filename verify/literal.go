package verify

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

var utc = time.UTC

// condition gives the SQL condition that names row i on the source, by its key.
func condition(b *column.Batch, i int) (string, error) {
	var out strings.Builder
	for n, k := range b.Table.Key {
		c := &b.Table.Columns[k]
		lit := literal{col: c}
		var exact []byte
		found := false
		if b.Exact != nil && !b.Exact.IsNull(i) {
			exact, found = column.FindExact(b.Exact.Value(i), c.ID)
		}
		if err := column.Feed(&lit, c, b.Record.Column(k), i, exact, found); err != nil {
			return "", err
		}
		if n > 0 {
			out.WriteString(" AND ")
		}
		out.WriteString(wire.Identifier(c.Name) + " = " + lit.text)
	}
	return out.String(), nil
}

// literal takes one value of a key column and writes it as an SQL literal that equals that value in its column.
type literal struct {
	col  *schema.Column
	text string
}

func (l *literal) Null()           { l.text = "NULL" }
func (l *literal) Int(v int64)     { l.text = strconv.FormatInt(v, 10) }
func (l *literal) Uint(v uint64)   { l.text = strconv.FormatUint(v, 10) }
func (l *literal) Float(v float32) { l.Double(float64(v)) }

// Double writes all digits, and an exponent, which makes it a DOUBLE and no DECIMAL.
func (l *literal) Double(v float64) { l.text = strconv.FormatFloat(v, 'e', -1, 64) }

func (l *literal) Decimal(v decimal128.Num) { l.text = v.ToString(int32(l.col.Scale)) }
func (l *literal) DecimalText(v []byte)     { l.text = string(v) }
func (l *literal) Date(y, m, d int) {
	l.text = wire.Literal(string(schema.AppendDate(nil, y, m, d)))
}

func (l *literal) DateTime(y, mo, d, h, mi, s, us int) {
	l.text = wire.Literal(string(schema.AppendDateTime(nil, y, mo, d, h, mi, s, us, l.col.FSP)))
}

func (l *literal) Timestamp(sec int64, us int) {
	if sec == 0 && us == 0 {
		l.DateTime(0, 0, 0, 0, 0, 0, 0)
		return
	}
	t := time.Unix(sec, 0).UTC()
	l.DateTime(t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), us)
}

func (l *literal) Time(us int64) {
	l.text = wire.Literal(string(schema.AppendTime(nil, us, l.col.FSP)))
}

// Bytes never takes the stored bytes through a character set.
func (l *literal) Bytes(b []byte) {
	l.text = "x'" + hex.EncodeToString(b) + "'"
	if !l.col.Type.IsBinary() {
		l.text = "_" + l.col.Charset + " " + l.text
	}
}

func (l *literal) Enum(index int)  { l.Int(int64(index)) }
func (l *literal) Set(mask uint64) { l.Uint(mask) }
func (l *literal) Bit(v uint64)    { l.Uint(v) }
func (l *literal) JSON(b []byte)   { l.Bytes(b) }
