package column

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemarkdb/tidemark/schema"
)

// Print appends value i of a column as MySQL prints it in the text protocol, text in UTF-8. loc is the time zone in
// which TIMESTAMP is shown. NULL and exact values are the caller's.
func Print(dst []byte, c *schema.Column, a arrow.Array, i int, loc *time.Location) []byte {
	switch a := a.(type) {
	case *array.Int32:
		if c.Type == schema.Year {
			return appendZerofilled(dst, strconv.AppendInt(nil, int64(a.Value(i)), 10), 4)
		}
		return appendInteger(dst, c, strconv.AppendInt(nil, int64(a.Value(i)), 10))
	case *array.Int64:
		switch c.Type {
		case schema.Time:
			return schema.AppendTime(dst, a.Value(i), c.FSP)
		case schema.Bit:
			return appendBits(dst, uint64(a.Value(i)), c.Length)
		}
		return appendInteger(dst, c, strconv.AppendInt(nil, a.Value(i), 10))
	case *array.Uint64:
		if c.Type == schema.Bit {
			return appendBits(dst, a.Value(i), c.Length)
		}
		return appendInteger(dst, c, strconv.AppendUint(nil, a.Value(i), 10))
	case *array.Decimal128:
		return appendDecimal(dst, c, appendScaled(nil, a.Value(i).BigInt(), c.Scale))
	case *array.Float32:
		return appendFloating(dst, c, float64(a.Value(i)), schema.AppendFloat(nil, a.Value(i)))
	case *array.Float64:
		return appendFloating(dst, c, a.Value(i), schema.AppendDouble(nil, a.Value(i)))
	case *array.Date32:
		t := time.Unix(int64(a.Value(i))*86400, 0).UTC()
		return schema.AppendDate(dst, t.Year(), int(t.Month()), t.Day())
	case *array.Timestamp:
		t := time.UnixMicro(int64(a.Value(i))).UTC()
		if c.Type == schema.Timestamp {
			t = t.In(loc)
		}
		return schema.AppendDateTime(dst, t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000, c.FSP)
	case *array.Binary:
		return append(dst, a.Value(i)...)
	case *array.String:
		if c.Type == schema.Decimal {
			return appendDecimal(dst, c, []byte(a.Value(i)))
		}
		return append(dst, a.Value(i)...)
	default:
		panic(fmt.Sprintf("column: no stored column has type %s", a.DataType()))
	}
}

func appendInteger(dst []byte, c *schema.Column, digits []byte) []byte {
	if !c.Zerofill {
		return append(dst, digits...)
	}
	return appendZerofilled(dst, digits, c.Length)
}

func appendDecimal(dst []byte, c *schema.Column, text []byte) []byte {
	if !c.Zerofill {
		return append(dst, text...)
	}
	width := c.Precision
	if c.Scale > 0 {
		width++
	}
	return appendZerofilled(dst, text, width)
}

func appendFloating(dst []byte, c *schema.Column, v float64, shortest []byte) []byte {
	text := shortest
	if c.Scale != schema.FloatUnscaled {
		text = schema.AppendFixed(nil, v, c.Scale)
	}
	if !c.Zerofill {
		return append(dst, text...)
	}
	return appendZerofilled(dst, text, c.Length)
}

func appendZerofilled(dst, text []byte, width int) []byte {
	for range width - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

func appendBits(dst []byte, v uint64, bits int) []byte {
	for i := (bits+7)/8 - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// AppendText appends a value given in MySQL's text form, such as a column's default or initial value. TIMESTAMP is in
// UTC, BIT is b'101' or a number, text is UTF-8, bytes are 0x00ff as information_schema has them (other text is taken as
// the bytes themselves).
func AppendText(a Appender, c *schema.Column, text string) error {
	err := appendText(a, c, text)
	if err != nil {
		return fmt.Errorf("column %s (%s): can't read a value: %w", c.Name, c.ColumnType, err)
	}
	return nil
}

func appendText(a Appender, c *schema.Column, text string) error {
	switch c.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt, schema.Year:
		return appendIntegerText(a, c, text)
	case schema.Decimal:
		a.DecimalText([]byte(text))
		return nil
	case schema.Float:
		v, err := strconv.ParseFloat(text, 32)
		a.Float(float32(v))
		return err
	case schema.Double:
		v, err := strconv.ParseFloat(text, 64)
		a.Double(v)
		return err
	case schema.Bit:
		v, err := parseBits(text)
		a.Bit(v)
		return err
	case schema.Date, schema.DateTime, schema.Timestamp:
		return appendDateText(a, c, text)
	case schema.Time:
		v, err := parseTime(text)
		a.Time(v)
		return err
	case schema.Enum:
		return appendEnumText(a, c, text)
	case schema.Set:
		return appendSetText(a, c, text)
	case schema.JSON:
		a.JSON([]byte(text))
		return nil
	}
	stored, ok := schema.FromUTF8(c.Charset, []byte(text))
	if c.Type.IsBinary() {
		stored, ok = parseBytes(text), true
	}
	if !ok {
		return fmt.Errorf("the text has no form in character set %s", c.Charset)
	}
	a.Bytes(stored)
	return nil
}

// parseBytes reads the form with 0x, which survives where raw bytes do not, such as in JSON.
func parseBytes(text string) []byte {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		if b, err := hex.DecodeString(digits); err == nil {
			return b
		}
	}
	return []byte(text)
}

func appendIntegerText(a Appender, c *schema.Column, text string) error {
	if c.Unsigned && c.Type != schema.Year {
		v, err := strconv.ParseUint(text, 10, 64)
		a.Uint(v)
		return err
	}
	v, err := strconv.ParseInt(text, 10, 64)
	a.Int(v)
	return err
}

func parseBits(text string) (uint64, error) {
	if inner, ok := strings.CutPrefix(text, "b'"); ok {
		return strconv.ParseUint(strings.TrimSuffix(inner, "'"), 2, 64)
	}
	return strconv.ParseUint(text, 10, 64)
}

// numberFields reads the digit groups of a date or time; the last group after a '.' is scaled to microseconds.
func numberFields(text string) ([]int, error) {
	whole, fraction, hasFraction := strings.Cut(text, ".")
	var fields []int
	for f := range strings.FieldsFuncSeq(whole, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		fields = append(fields, n)
	}
	if hasFraction {
		us, err := strconv.Atoi((fraction + "000000")[:6])
		if err != nil {
			return nil, err
		}
		return append(fields, us), nil
	}
	return append(fields, 0), nil
}

func appendDateText(a Appender, c *schema.Column, text string) error {
	f, err := numberFields(text)
	if err != nil {
		return err
	}
	if len(f) == 4 {
		f = []int{f[0], f[1], f[2], 0, 0, 0, f[3]}
	}
	if len(f) != 7 {
		return fmt.Errorf("%d fields are not a date", len(f)-1)
	}
	switch c.Type {
	case schema.Date:
		a.Date(f[0], f[1], f[2])
	case schema.DateTime:
		a.DateTime(f[0], f[1], f[2], f[3], f[4], f[5], f[6])
	default:
		if f[0] == 0 {
			a.Timestamp(0, 0)
			return nil
		}
		a.Timestamp(time.Date(f[0], time.Month(f[1]), f[2], f[3], f[4], f[5], 0, time.UTC).Unix(), f[6])
	}
	return nil
}

func parseTime(text string) (int64, error) {
	f, err := numberFields(text)
	if err != nil {
		return 0, err
	}
	if len(f) != 4 {
		return 0, fmt.Errorf("%d fields are not a time", len(f)-1)
	}
	us := ((int64(f[0])*60+int64(f[1]))*60+int64(f[2]))*1_000_000 + int64(f[3])
	if strings.HasPrefix(text, "-") {
		us = -us
	}
	return us, nil
}

// label finds a label of ENUM or SET, from 1; 0 when there is none. Letter case decides only between labels.
func label(c *schema.Column, text string) int {
	if i := slices.Index(c.Elements, text); i >= 0 {
		return i + 1
	}
	return slices.IndexFunc(c.Elements, func(e string) bool { return strings.EqualFold(e, text) }) + 1
}

func appendEnumText(a Appender, c *schema.Column, text string) error {
	i := label(c, text)
	if i == 0 && text != "" {
		return fmt.Errorf("not one of the labels")
	}
	a.Enum(i)
	return nil
}

func appendSetText(a Appender, c *schema.Column, text string) error {
	mask := uint64(0)
	for _, part := range bytes.Split([]byte(text), []byte(",")) {
		if len(part) == 0 {
			continue
		}
		i := label(c, string(part))
		if i == 0 {
			return fmt.Errorf("not one of the labels")
		}
		mask |= 1 << (i - 1)
	}
	a.Set(mask)
	return nil
}
