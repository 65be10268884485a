package snapshot

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// literal is a column.Appender that keeps the last value as an SQL literal which compares with its column in the
// column's own type and collation, exactly: bytes are never taken through a character set, ENUM and SET compare as
// numbers, FLOAT as the DOUBLE that it is.
type literal struct {
	column *schema.Column
	unused bool   // nobody asks for the value
	sql    string // "" for values that have none
}

func (l *literal) Null()                       { l.sql = "" }
func (l *literal) Int(v int64)                 { l.sql = strconv.FormatInt(v, 10) }
func (l *literal) Uint(v uint64)               { l.sql = strconv.FormatUint(v, 10) }
func (l *literal) Float(v float32)             { l.Double(float64(v)) }
func (l *literal) Double(v float64)            { l.sql = doubleLiteral(v) }
func (l *literal) Decimal(v decimal128.Num)    { l.sql = v.ToString(int32(l.column.Scale)) }
func (l *literal) DecimalText(v []byte)        { l.sql = string(v) }
func (l *literal) Enum(index int)              { l.Int(int64(index)) }
func (l *literal) Set(mask uint64)             { l.Uint(mask) }
func (l *literal) Bit(v uint64)                { l.Uint(v) }
func (l *literal) JSON([]byte)                 { l.sql = "" }
func (l *literal) Time(us int64)               { l.quote(schema.AppendTime(nil, us, l.column.FSP)) }
func (l *literal) Date(year, month, day int)   { l.quote(schema.AppendDate(nil, year, month, day)) }
func (l *literal) Timestamp(sec int64, us int) { l.quote(timestampText(sec, us, l.column.FSP)) }

func (l *literal) DateTime(year, month, day, hour, minute, second, us int) {
	l.quote(schema.AppendDateTime(nil, year, month, day, hour, minute, second, us, l.column.FSP))
}

// Bytes has no literal for text that is not valid in its character set: the server refuses it.
func (l *literal) Bytes(b []byte) {
	l.sql = ""
	if l.unused {
		return
	}
	if _, ok := schema.ToUTF8(l.column.Charset, b); ok || l.column.Charset == "" {
		l.sql = bytesLiteral(l.column.Charset, b)
	}
}

func (l *literal) quote(text []byte) { l.sql = wire.Literal(string(text)) }

// doubleLiteral has an exponent, which makes it a DOUBLE and no DECIMAL.
func doubleLiteral(v float64) string { return strconv.FormatFloat(v, 'e', -1, 64) }

// bytesLiteral is of text in a character set, or of bytes with none.
func bytesLiteral(charset string, b []byte) string {
	quoted := "x'" + hex.EncodeToString(b) + "'"
	if charset == "" {
		return quoted
	}
	return "_" + charset + " " + quoted
}

func timestampText(sec int64, us, fsp int) []byte {
	if sec == 0 && us == 0 {
		return schema.AppendDateTime(nil, 0, 0, 0, 0, 0, 0, 0, fsp)
	}
	t := time.Unix(sec, 0).UTC()
	return schema.AppendDateTime(nil, t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), us, fsp)
}

// literals takes the key's values off rows.
type literals struct {
	columns []column.Appender // of the table
	key     []*literal
}

func newLiterals(t *schema.Table) *literals {
	l := &literals{columns: make([]column.Appender, len(t.Columns))}
	for i := range t.Columns {
		l.columns[i] = &literal{column: &t.Columns[i], unused: !t.IsKey(i)}
	}
	for _, k := range t.Key {
		l.key = append(l.key, l.columns[k].(*literal))
	}
	return l
}

// of gives the place of a row, nil when a value of its key has no literal.
func (l *literals) of(d *wire.Decoder, row []byte) (boundary, error) {
	if err := d.Values(row, l.columns); err != nil {
		return nil, err
	}
	b := make(boundary, len(l.key))
	for i, k := range l.key {
		if b[i] = k.sql; k.sql == "" {
			return nil, nil
		}
	}
	return b, nil
}
