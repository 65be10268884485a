package snapshot

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// scale maps values of one key column to whole numbers, in about the order of the key, and back, so that a value between
// two others can be named. It need not be exact: whatever literal it gives is a place in the key, and only how evenly a
// table is split depends on it.
type scale interface {
	number(literal string) (*big.Int, bool)
	literal(n *big.Int) (string, bool)
}

// newScale gives the scale for values between two literals. It asks the server how a collation sorts.
func newScale(ctx context.Context, conn *wire.Conn, c *schema.Column, low, high string) (scale, error) {
	switch c.Type {
	case schema.Decimal:
		return decimals{c.Scale}, nil
	case schema.Float, schema.Double:
		return doubles{}, nil
	case schema.Date, schema.DateTime, schema.Timestamp:
		return moments{c}, nil
	case schema.Time:
		return times{c.FSP}, nil
	case schema.Binary, schema.VarBinary:
		return newByteScale(low, high), nil
	case schema.Char, schema.VarChar:
		return newTextScale(ctx, conn, c, low, high)
	}
	return integers{}, nil
}

// integers is the scale of integers, YEAR, ENUM, SET and BIT.
type integers struct{}

func (integers) number(literal string) (*big.Int, bool) { return new(big.Int).SetString(literal, 10) }
func (integers) literal(n *big.Int) (string, bool)      { return n.String(), true }

// decimals counts in units of the last digit.
type decimals struct{ scale int }

func (d decimals) number(literal string) (*big.Int, bool) {
	whole, fraction, _ := strings.Cut(literal, ".")
	if len(fraction) > d.scale {
		return nil, false
	}
	return new(big.Int).SetString(whole+fraction+strings.Repeat("0", d.scale-len(fraction)), 10)
}

func (d decimals) literal(n *big.Int) (string, bool) {
	digits := new(big.Int).Abs(n).String()
	if len(digits) <= d.scale {
		digits = strings.Repeat("0", d.scale+1-len(digits)) + digits
	}
	at := len(digits) - d.scale
	text := digits[:at]
	if d.scale > 0 {
		text += "." + digits[at:]
	}
	if n.Sign() < 0 {
		text = "-" + text
	}
	return text, true
}

// doubles counts the floating-point numbers themselves: their bits have their order.
type doubles struct{}

func (doubles) number(literal string) (*big.Int, bool) {
	v, err := strconv.ParseFloat(literal, 64)
	bits := int64(math.Float64bits(v))
	if bits < 0 {
		bits = math.MinInt64 - bits
	}
	return big.NewInt(bits), err == nil
}

func (doubles) literal(n *big.Int) (string, bool) {
	bits := n.Int64()
	if bits < 0 {
		bits = math.MinInt64 - bits
	}
	v := math.Float64frombits(uint64(bits))
	return doubleLiteral(v), !math.IsNaN(v) && !math.IsInf(v, 0)
}

// moments counts microseconds of a calendar whose months all have 31 days, numbered from 0 for MySQL's partial dates. Back
// it gives real days only.
type moments struct{ column *schema.Column }

const (
	dayUnits   = 32
	monthUnits = 13
	microsADay = 86400 * 1_000_000
)

func (m moments) number(literal string) (*big.Int, bool) {
	var year, month, day, hour, minute int64
	var second float64
	n, _ := fmt.Sscanf(literal, "'%d-%d-%d %d:%d:%f'", &year, &month, &day, &hour, &minute, &second)
	const parts, ofDate = 6, 3
	if n != parts && (n != ofDate || m.column.Type != schema.Date) {
		return nil, false
	}
	days := big.NewInt((year*monthUnits+month)*dayUnits + day)
	micros := (hour*60+minute)*60*1_000_000 + int64(math.Round(second*1_000_000))
	if m.column.Type == schema.Date {
		return days, true
	}
	return days.Mul(days, big.NewInt(microsADay)).Add(days, big.NewInt(micros)), true
}

func (m moments) literal(n *big.Int) (string, bool) {
	days, micros := n, new(big.Int)
	if m.column.Type != schema.Date {
		days, micros = new(big.Int).DivMod(n, big.NewInt(microsADay), micros)
	}
	d, us := int(days.Int64()), int(micros.Int64())
	month := max(d/dayUnits%monthUnits, 1)
	year := d / dayUnits / monthUnits
	lastDay := time.Date(max(year, 1), time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	day := min(max(d%dayUnits, 1), lastDay)
	if m.column.Type == schema.Date {
		return wire.Literal(string(schema.AppendDate(nil, year, month, day))), year <= 9999
	}
	second := us / 1_000_000
	text := schema.AppendDateTime(nil, year, month, day, second/3600, second/60%60, second%60, us%1_000_000, m.column.FSP)
	return wire.Literal(string(text)), year <= 9999
}

// times counts microseconds.
type times struct{ fsp int }

func (t times) number(literal string) (*big.Int, bool) {
	text, negative := strings.CutPrefix(strings.Trim(literal, "'"), "-")
	var hour, minute int64
	var second float64
	if _, err := fmt.Sscanf(text, "%d:%d:%f", &hour, &minute, &second); err != nil {
		return nil, false
	}
	us := (hour*60+minute)*60*1_000_000 + int64(math.Round(second*1_000_000))
	if negative {
		us = -us
	}
	return big.NewInt(us), true
}

func (t times) literal(n *big.Int) (string, bool) {
	return wire.Literal(string(schema.AppendTime(nil, n.Int64(), t.fsp))), true
}

// byteScale counts in the bytes that follow what both ends begin with.
type byteScale struct{ prefix []byte }

// scaleDigits is how many bytes or characters behind the common beginning count.
const scaleDigits = 8

func newByteScale(low, high string) byteScale {
	a, _ := literalBytes(low)
	b, _ := literalBytes(high)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return byteScale{a[:n]}
}

// literalBytes gives the bytes of what bytesLiteral wrote.
func literalBytes(literal string) ([]byte, bool) {
	_, quoted, ok := strings.Cut(literal, "x'")
	if !ok {
		return nil, false
	}
	b, err := hex.DecodeString(strings.TrimSuffix(quoted, "'"))
	return b, err == nil
}

func (s byteScale) number(literal string) (*big.Int, bool) {
	b, ok := literalBytes(literal)
	if !ok || len(b) < len(s.prefix) {
		return nil, false
	}
	digits := make([]byte, scaleDigits)
	copy(digits, b[len(s.prefix):])
	return new(big.Int).SetBytes(digits), true
}

func (s byteScale) literal(n *big.Int) (string, bool) {
	digits := n.FillBytes(make([]byte, scaleDigits))
	return bytesLiteral("", append(append([]byte{}, s.prefix...), digits...)), true
}

// textScale counts in the characters that follow what both ends begin with: first those that can be typed, in the
// collation's order, then all others, by their code points.
type textScale struct {
	charset string
	prefix  []rune
	typed   []rune       // one of each weight, in order
	rank    map[rune]int // of all that can be typed
}

func newTextScale(ctx context.Context, conn *wire.Conn, c *schema.Column, low, high string) (*textScale, error) {
	s := &textScale{charset: c.Charset, rank: map[rune]int{}}
	a, b := s.text(low), s.text(high)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	s.prefix = a[:n]
	return s, s.askOrder(ctx, conn, c)
}

func (s *textScale) text(literal string) []rune {
	b, _ := literalBytes(literal)
	text, _ := schema.ToUTF8(s.charset, b)
	return []rune(string(text))
}

// askOrder asks the server in which order the collation has the characters, and which are the same to it.
func (s *textScale) askOrder(ctx context.Context, conn *wire.Conn, c *schema.Column) error {
	const first, last = ' ', '~'
	var each []string
	for r := rune(first); r <= last; r++ {
		each = append(each, fmt.Sprintf("SELECT %d AS n, _%s x'%02x' COLLATE %s AS c", r, c.Charset, r, c.Collation))
	}
	r, err := conn.Query(ctx, "SELECT n, HEX(WEIGHT_STRING(c)) FROM ("+strings.Join(each, " UNION ALL ")+") AS typed ORDER BY c, n")
	if err != nil {
		return fmt.Errorf("asking for the order of collation %s: %w", c.Collation, err)
	}
	for i := range r.Rows() {
		char := rune(r.Int(i, 0))
		if i == 0 || r.Text(i, 1) != r.Text(i-1, 1) {
			s.typed = append(s.typed, char)
		}
		s.rank[char] = len(s.typed) // 0 is the end of a text
	}
	return nil
}

// base is the number of digits: the end of the text, the typed characters, all others.
func (s *textScale) base() *big.Int { return big.NewInt(int64(len(s.typed)) + 2 + utf8.MaxRune) }

func (s *textScale) digit(r rune) int64 {
	if d, ok := s.rank[r]; ok {
		return int64(d)
	}
	return int64(len(s.typed)) + 1 + int64(r)
}

func (s *textScale) number(literal string) (*big.Int, bool) {
	text := s.text(literal)
	if len(text) < len(s.prefix) {
		return nil, false
	}
	text = text[len(s.prefix):]
	n := new(big.Int)
	for i := range scaleDigits {
		n.Mul(n, s.base())
		if i < len(text) {
			n.Add(n, big.NewInt(s.digit(text[i])))
		}
	}
	return n, true
}

func (s *textScale) literal(n *big.Int) (string, bool) {
	digits := make([]int64, scaleDigits)
	rest, digit := new(big.Int).Set(n), new(big.Int)
	for i := range digits {
		rest.DivMod(rest, s.base(), digit)
		digits[scaleDigits-1-i] = digit.Int64()
	}
	out, ok := schema.FromUTF8(s.charset, []byte(string(s.prefix)))
	for _, d := range digits {
		if d == 0 {
			break
		}
		char, known := schema.FromUTF8(s.charset, []byte(string(s.char(d))))
		if _, valid := schema.ToUTF8(s.charset, char); !known || !valid {
			break // the character set does not have it; what stands before it is near enough
		}
		out = append(out, char...)
	}
	return bytesLiteral(s.charset, out), ok
}

func (s *textScale) char(digit int64) rune {
	if digit <= int64(len(s.typed)) {
		return s.typed[digit-1]
	}
	r := rune(digit - int64(len(s.typed)) - 1)
	if !utf8.ValidRune(r) {
		r = 0xD7FF // the last before the surrogates
	}
	return r
}
