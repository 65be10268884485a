package query

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
)

// rows are the rows of a SELECT. They hold the catalog, and with it the pinned version, until they are closed.
type rows struct {
	engine  *engine.Rows
	columns []translate.ResultColumn
	fields  []field.Field
	print   []printer
	catalog *catalog
	block   block
	// ahead is the first chunk, read before the first call of Next; atEnd tells that there is none.
	ahead *engine.Chunk
	atEnd bool
}

// printer appends one value that is not NULL as MySQL prints it.
type printer func(dst []byte, v *engine.Vector, row int) []byte

// newRows reads the first chunk, so that an error that comes before any row comes before the columns are announced.
func newRows(e *engine.Rows, columns []translate.ResultColumn, c *catalog) (*rows, error) {
	r := &rows{engine: e, columns: columns, fields: fieldsOf(columns), catalog: c}
	have := e.Columns()
	for i := range columns {
		if i >= len(have) || columns[i].Exact >= len(have) {
			return nil, fmt.Errorf("query: the engine gives %d columns where %d are due", len(have), len(columns))
		}
		p, err := printerOf(&columns[i], have[i].Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", columns[i].Name, err)
		}
		r.print = append(r.print, p)
	}
	r.block.rows = r
	var err error
	if r.ahead, err = e.Next(); errors.Is(err, io.EOF) {
		r.atEnd, err = true, nil
	}
	return r, err
}

func (r *rows) Fields() []field.Field { return r.fields }

func (r *rows) Close() {
	if r.catalog == nil {
		return
	}
	r.engine.Close()
	r.catalog.close()
	r.catalog = nil
}

func (r *rows) Next() (result.Cells, error) {
	if r.atEnd {
		return nil, io.EOF
	}
	chunk := r.ahead
	if r.ahead = nil; chunk == nil {
		var err error
		if chunk, err = r.engine.Next(); errors.Is(err, io.EOF) {
			r.atEnd = true
			return nil, io.EOF
		} else if err != nil {
			return nil, engineError(err)
		}
	}
	r.block.chunk = chunk
	return &r.block, r.checkDoubles(chunk)
}

// checkDoubles finds results that MySQL does not have.
func (r *rows) checkDoubles(c *engine.Chunk) error {
	for i := range r.columns {
		if r.columns[i].Format != translate.FormatDouble {
			continue
		}
		v := c.Vector(i)
		for row, f := range v.Float64s() {
			if (math.IsInf(f, 0) || math.IsNaN(f)) && v.Valid(row) {
				return sqlerr.New(sqlerr.OutOfRange, "DOUBLE value is out of range in '%s'", r.columns[i].Name)
			}
		}
	}
	return nil
}

// block is one chunk of the engine as cells.
type block struct {
	rows  *rows
	chunk *engine.Chunk
}

func (b *block) Len() int { return b.chunk.Len() }

func (b *block) Text(dst []byte, row, col int) ([]byte, bool) {
	c := &b.rows.columns[col]
	if c.Exact > 0 {
		if e := b.chunk.Vector(c.Exact); e.Valid(row) {
			if text, ok := column.FindExact(e.Bytes(row), c.ColumnID); ok {
				return append(dst, schema.ShowStored(c.StoredCharset, text)...), false
			}
		}
	}
	v := b.chunk.Vector(col)
	if c.Format == translate.FormatNull || !v.Valid(row) {
		return dst, true
	}
	return b.rows.print[col](dst, v, row), false
}

func (b *block) Float(row, col int) float64 {
	v := b.chunk.Vector(col)
	if v.Type.ID == engine.Float {
		return float64(v.Float32s()[row])
	}
	return v.Float64s()[row]
}

// printerOf chooses the printer of a column, whose engine type must be one that its format prints.
func printerOf(c *translate.ResultColumn, t engine.Type) (printer, error) {
	p := plainPrinter(c, t)
	if p == nil {
		return nil, fmt.Errorf("format %d has no form for the engine's type %s", c.Format, t)
	}
	if c.Zerofill > 0 {
		return zerofilled(p, c.Zerofill), nil
	}
	return p, nil
}

func plainPrinter(c *translate.ResultColumn, t engine.Type) printer {
	digits := int(c.Decimals)
	switch f := c.Format; {
	case f == translate.FormatNull:
		return func(dst []byte, _ *engine.Vector, _ int) []byte { return dst }
	case f == translate.FormatInt, f == translate.FormatUint:
		return integerPrinter(t.ID)
	case f == translate.FormatYear && t.ID == engine.Integer:
		return zerofilled(printInt32, yearDigits)
	case f == translate.FormatDecimal && t.ID == engine.Decimal:
		return printDecimal
	case (f == translate.FormatText || f == translate.FormatDecimalText) && t.ID == engine.Varchar, f == translate.FormatBytes && t.ID == engine.Blob:
		return func(dst []byte, v *engine.Vector, row int) []byte { return append(dst, v.Bytes(row)...) }
	case f == translate.FormatBit:
		return bitPrinter(int(c.Length), t.ID)
	case f == translate.FormatTime && t.ID == engine.BigInt:
		return func(dst []byte, v *engine.Vector, row int) []byte {
			return schema.AppendTime(dst, v.Int64s()[row], digits)
		}
	}
	return floatOrDatePrinter(c.Format, t.ID, digits)
}

func floatOrDatePrinter(f translate.Format, id engine.TypeID, digits int) printer {
	switch {
	case f == translate.FormatFloat && id == engine.Float:
		return func(dst []byte, v *engine.Vector, row int) []byte {
			x := v.Float32s()[row]
			if digits < field.AnyDecimals {
				return schema.AppendFixed(dst, float64(x), digits)
			}
			return schema.AppendFloat(dst, x)
		}
	case f == translate.FormatDouble && id == engine.Double:
		return func(dst []byte, v *engine.Vector, row int) []byte {
			x := v.Float64s()[row]
			if digits < field.AnyDecimals {
				return schema.AppendFixed(dst, x, digits)
			}
			return schema.AppendDouble(dst, x)
		}
	case f == translate.FormatDate && id == engine.Date:
		return func(dst []byte, v *engine.Vector, row int) []byte {
			y, m, d := civil(int64(v.Int32s()[row]))
			return schema.AppendDate(dst, y, m, d)
		}
	case f == translate.FormatDateTime && (id == engine.Timestamp || id == engine.TimestampTZ):
		return func(dst []byte, v *engine.Vector, row int) []byte { return appendMoment(dst, v.Int64s()[row], digits) }
	}
	return nil
}

const yearDigits = 4

func integerPrinter(id engine.TypeID) printer {
	switch id {
	case engine.Boolean:
		return func(dst []byte, v *engine.Vector, row int) []byte {
			if v.Bools()[row] {
				return append(dst, '1')
			}
			return append(dst, '0')
		}
	case engine.Integer:
		return printInt32
	case engine.BigInt:
		return func(dst []byte, v *engine.Vector, row int) []byte { return strconv.AppendInt(dst, v.Int64s()[row], 10) }
	case engine.UBigInt:
		return func(dst []byte, v *engine.Vector, row int) []byte {
			return strconv.AppendUint(dst, v.Uint64s()[row], 10)
		}
	}
	return nil
}

func printInt32(dst []byte, v *engine.Vector, row int) []byte {
	return strconv.AppendInt(dst, int64(v.Int32s()[row]), 10)
}

// bitPrinter prints BIT(n) as its bytes, the highest first.
func bitPrinter(bits int, id engine.TypeID) printer {
	n := (bits + 7) / 8
	value := func(v *engine.Vector, row int) uint64 { return uint64(v.Int64s()[row]) }
	switch id {
	case engine.UBigInt:
		value = func(v *engine.Vector, row int) uint64 { return v.Uint64s()[row] }
	case engine.Integer:
		value = func(v *engine.Vector, row int) uint64 { return uint64(v.Int32s()[row]) }
	case engine.BigInt:
	default:
		return nil
	}
	return func(dst []byte, v *engine.Vector, row int) []byte {
		x := value(v, row)
		for i := n - 1; i >= 0; i-- {
			dst = append(dst, byte(x>>(8*i)))
		}
		return dst
	}
}

// zerofilled pads with zeros to a width.
func zerofilled(p printer, width int) printer {
	return func(dst []byte, v *engine.Vector, row int) []byte {
		at := len(dst)
		dst = p(dst, v, row)
		n := len(dst) - at
		if n >= width || dst[at] == '-' {
			return dst
		}
		for range width - n {
			dst = append(dst, '0')
		}
		copy(dst[at+width-n:], dst[at:at+n])
		for i := range width - n {
			dst[at+i] = '0'
		}
		return dst
	}
}

func printDecimal(dst []byte, v *engine.Vector, row int) []byte {
	scale := int(v.Type.Scale)
	x := v.Unscaled(row)
	if !x.IsInt64() {
		return appendScaled(dst, x.Big().Append(nil, 10), scale)
	}
	var buf [24]byte
	return appendScaled(dst, strconv.AppendInt(buf[:0], int64(x.Low), 10), scale)
}

// appendScaled sets the decimal point into the digits of an integer.
func appendScaled(dst, digits []byte, scale int) []byte {
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	if scale == 0 {
		return append(dst, digits...)
	}
	point := len(digits) - scale
	if point <= 0 {
		dst = append(dst, '0', '.')
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:point]...)
	dst = append(dst, '.')
	return append(dst, digits[point:]...)
}

const (
	usPerSecond = 1_000_000
	usPerDay    = 86_400 * usPerSecond
)

func appendMoment(dst []byte, us int64, digits int) []byte {
	day, rest := us/usPerDay, us%usPerDay
	if rest < 0 {
		day, rest = day-1, rest+usPerDay
	}
	y, m, d := civil(day)
	s := int(rest / usPerSecond)
	return schema.AppendDateTime(dst, y, m, d, s/3600, s/60%60, s%60, int(rest%usPerSecond), digits)
}

// civil gives the date of a day counted from 1970-01-01 in the Gregorian calendar carried back for ever, as MySQL and
// DuckDB count.
func civil(day int64) (y, m, d int) {
	const (
		daysPerEra = 146_097 // 400 years
		epoch      = 719_468 // 1970-01-01 counted from 0000-03-01
		march      = 3
	)
	day += epoch
	era := day / daysPerEra
	if day < 0 {
		era = (day - daysPerEra + 1) / daysPerEra
	}
	dayOfEra := day - era*daysPerEra
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/(daysPerEra-1)) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	month := (5*dayOfYear + 2) / 153 // from March
	d = int(dayOfYear-(153*month+2)/5) + 1
	y = int(yearOfEra + era*400)
	if month < 10 {
		return y, int(month) + march, d
	}
	return y + 1, int(month) - 9, d
}
