package ddl

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

var (
	errExpression = errors.New("its default is an expression, and the values that the existing rows got are not in the binlog")
	errTimeZone   = errors.New("the session's time zone is not known, on which its default depends")
	errForm       = errors.New("its default has a form that is not known")
)

// setDefault fills the column's Default as information_schema.COLUMNS prints it, TIMESTAMP in the time zone of the
// session that defined it. It is for show only, since row images are complete: a constant in a form that is not known is kept as it was written.
func (s *statement) setDefault(c *schema.Column, l *literal) {
	c.Default, c.DefaultExpr = nil, false
	if l == nil || l.kind == litNull {
		return
	}
	text := l.text
	switch {
	case l.kind == litNow:
		text, c.DefaultExpr = l.printed(), true
	case l.paren:
		text, c.DefaultExpr = printedExpression(l), true
	case c.Type.Supported():
		shown := *c
		if c.Type == schema.Timestamp {
			shown.Type = schema.DateTime
		}
		if exact, err := s.constant(&shown, l); err == nil {
			text = printedConstant(c, exact)
		}
	}
	c.Default = &text
}

// printedExpression gives an expression default as information_schema prints it, as far as it is known.
func printedExpression(l *literal) string {
	switch l.kind {
	case litString:
		charset := l.charset
		if charset == "" {
			charset = "utf8mb4"
		}
		return "_" + charset + "'" + l.text + "'"
	case litHex:
		return "0x" + strings.ToLower(l.text)
	case litNull, litNow, litNumber, litBits, litExpr:
		return l.text
	}
	return l.text
}

func printedConstant(c *schema.Column, text string) string {
	switch {
	case c.Type == schema.Bit:
		n, _ := strconv.ParseUint(text, 10, 64)
		return "b'" + strconv.FormatUint(n, 2) + "'"
	case c.Type.IsBinary() && text != "":
		shown, _, _ := strings.Cut(text, "\x00") // so does the server
		return "0x" + strings.ToUpper(hex.EncodeToString([]byte(shown)))
	}
	return text
}

// setInitial fills the value that the rows have which are older than the column.
func (s *statement) setInitial(c *schema.Column, l *literal) error {
	c.Added, c.Initial = true, nil
	var text string
	var err error
	switch {
	case c.Generated != "":
		return errors.New("it is a generated column, and the values of the existing rows are not in the binlog")
	case c.AutoIncrement:
		return errors.New("it is AUTO_INCREMENT, and the values that the existing rows got are not in the binlog")
	case l == nil && !c.Nullable:
		text = c.ImplicitDefault()
	case l == nil || l.kind == litNull:
		return nil
	case l.kind == litExpr:
		return errExpression
	case l.kind == litNow:
		text, err = s.current(c)
	default:
		text, err = s.constant(c, l)
	}
	if err != nil {
		return err
	}
	if c.Type.IsBinary() && text != "" {
		text = "0x" + hex.EncodeToString([]byte(text))
	}
	c.Initial = &text
	_, _, err = column.Initial(&schema.Table{Database: s.catalog.Database(), Columns: []schema.Column{*c}}, c)
	return err
}

// current gives CURRENT_TIMESTAMP of the statement, which is what the existing rows got.
func (s *statement) current(c *schema.Column) (string, error) {
	t := s.st.Time.UTC()
	if c.Type != schema.Timestamp {
		loc, err := s.location()
		if err != nil {
			return "", err
		}
		t = t.In(loc)
	}
	t = t.Truncate(time.Second / time.Duration(pow10(c.FSP)))
	return printTime(c, t)
}

func printTime(c *schema.Column, t time.Time) (string, error) {
	switch c.Type {
	case schema.Date:
		return t.Format(time.DateOnly), nil
	case schema.DateTime, schema.Timestamp:
		return string(schema.AppendDateTime(nil, t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000, c.FSP)), nil
	}
	return "", errForm
}

// location is the session's time zone: an offset, a name, or SYSTEM.
func (s *statement) location() (*time.Location, error) {
	zone := s.st.TimeZone
	switch {
	case zone == "":
		return nil, errTimeZone
	case strings.EqualFold(zone, "SYSTEM"):
		if s.server.Location == nil {
			return nil, errTimeZone
		}
		return s.server.Location, nil
	case zone[0] == '+' || zone[0] == '-':
		t, err := time.Parse("-07:00", zone)
		if err != nil {
			return nil, errTimeZone
		}
		return t.Location(), nil
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, errTimeZone
	}
	return loc, nil
}

// constant converts a literal to the column's type, and prints it in MySQL's text form: BIT as a number, binary types as
// their bytes, TIMESTAMP in UTC.
func (s *statement) constant(c *schema.Column, l *literal) (string, error) {
	switch {
	case c.Type.IsInteger(), c.Type == schema.Decimal, c.Type == schema.Float, c.Type == schema.Double:
		return number(c, l)
	case c.Type == schema.Bit:
		return bits(l)
	case c.Type == schema.Year:
		return year(l)
	case c.Type == schema.Date, c.Type == schema.DateTime:
		return dateTime(c, l.text, l.kind)
	case c.Type == schema.Timestamp:
		return s.timestamp(c, l)
	case c.Type == schema.Time:
		return timeOfDay(c, l)
	case c.Type == schema.Enum, c.Type == schema.Set:
		return labelled(c, l)
	case c.Type == schema.JSON:
		return jsonText(l)
	}
	return text(c, l)
}

// text converts to the text and binary types.
func text(c *schema.Column, l *literal) (string, error) {
	out := l.text
	if l.kind == litHex || l.kind == litBits {
		b, err := literalBytes(l)
		if err != nil {
			return "", err
		}
		if c.Type.IsText() {
			var ok bool
			if b, ok = schema.ToUTF8(c.Charset, b); !ok {
				return "", fmt.Errorf("its default is not valid in character set %s", c.Charset)
			}
		}
		out = string(b)
	} else if l.charset != "" && !isASCII(out) && l.charset != "utf8mb4" && l.charset != "utf8mb3" {
		return "", errForm
	}
	if c.Type == schema.Char {
		out = strings.TrimRight(out, " ")
	}
	return out, nil
}

// literalBytes gives the bytes of x'..' and b'..'.
func literalBytes(l *literal) ([]byte, error) {
	if l.kind == litHex {
		return hex.DecodeString(strings.Repeat("0", len(l.text)%2) + l.text)
	}
	n, ok := new(big.Int).SetString("0"+l.text, 2)
	if !ok {
		return nil, errForm
	}
	return n.FillBytes(make([]byte, (len(l.text)+7)/8)), nil
}

// rational gives a literal as an exact number.
func rational(l *literal) (*big.Rat, error) {
	switch l.kind {
	case litHex, litBits:
		b, err := literalBytes(l)
		return new(big.Rat).SetInt(new(big.Int).SetBytes(b)), err
	}
	r, ok := new(big.Rat).SetString(strings.TrimSpace(l.text))
	if !ok {
		return nil, errForm
	}
	return r, nil
}

// number converts to the numeric types, rounding half away from zero, and prints as SELECT does.
func number(c *schema.Column, l *literal) (string, error) {
	r, err := rational(l)
	if err != nil {
		return "", err
	}
	plain := r.FloatString(0)
	switch c.Type {
	case schema.Decimal:
		plain = r.FloatString(c.Scale)
	case schema.Float, schema.Double:
		f, _ := r.Float64()
		plain = strconv.FormatFloat(f, 'g', -1, 64)
	}
	if strings.TrimLeft(plain, "-0.") == "" {
		plain = strings.TrimPrefix(plain, "-")
	}
	return printed(c, plain)
}

// printed gives a value in text form as the server prints it.
func printed(c *schema.Column, value string) (string, error) {
	t := &schema.Table{Name: c.Name, Columns: []schema.Column{*c}}
	b := column.NewBuilder(memory.DefaultAllocator, t)
	if err := column.AppendText(b.Column(0), c, value); err != nil {
		return "", err
	}
	b.EndRow()
	batch, err := b.Finish()
	if err != nil {
		return "", err
	}
	a := batch.Record.Column(0)
	if a.IsNull(0) {
		return value, nil
	}
	if s, ok := a.(*array.String); ok && c.Type != schema.Decimal {
		return s.Value(0), nil
	}
	return string(column.Print(nil, c, a, 0, time.UTC)), nil
}

func bits(l *literal) (string, error) {
	if l.kind == litString {
		return new(big.Int).SetBytes([]byte(l.text)).String(), nil
	}
	r, err := rational(l)
	if err != nil || !r.IsInt() {
		return "", errForm
	}
	return r.Num().String(), nil
}

// year applies the rules for two digits: 0 as a number is 0000, as a string 2000.
func year(l *literal) (string, error) {
	r, err := rational(l)
	if err != nil || !r.IsInt() {
		return "", errForm
	}
	n := int(r.Num().Int64())
	switch {
	case n == 0 && (l.kind != litString || len(strings.TrimSpace(l.text)) > 2):
	case n < 70:
		n += 2000
	case n < 100:
		n += 1900
	}
	return fmt.Sprintf("%04d", n), nil
}

func labelled(c *schema.Column, l *literal) (string, error) {
	if l.kind != litString {
		return labelledByNumber(c, l)
	}
	if c.Type == schema.Enum {
		for _, e := range c.Elements {
			if strings.EqualFold(e, strings.TrimRight(l.text, " ")) {
				return e, nil
			}
		}
		return "", errForm
	}
	var out []string
	given := strings.Split(l.text, ",")
	for _, e := range c.Elements {
		for _, g := range given {
			if strings.EqualFold(e, strings.TrimRight(g, " ")) {
				out = append(out, e)
				break
			}
		}
	}
	return strings.Join(out, ","), nil
}

func labelledByNumber(c *schema.Column, l *literal) (string, error) {
	r, err := rational(l)
	if err != nil || !r.IsInt() {
		return "", errForm
	}
	n := int(r.Num().Int64())
	if c.Type == schema.Enum {
		if n < 1 || n > len(c.Elements) {
			return "", errForm
		}
		return c.Elements[n-1], nil
	}
	var out []string
	for i, e := range c.Elements {
		if n>>i&1 == 1 {
			out = append(out, e)
		}
	}
	return strings.Join(out, ","), nil
}

// jsonText takes the literals whose text is the same in any form: scalars without blanks and empty containers.
func jsonText(l *literal) (string, error) {
	t := strings.TrimSpace(l.text)
	_, err := strconv.ParseInt(t, 10, 64)
	if t == "{}" || t == "[]" || t == "null" || t == "true" || t == "false" || err == nil {
		return t, nil
	}
	return "", errExpression
}

func pow10(n int) int {
	p := 1
	for range n {
		p *= 10
	}
	return p
}
