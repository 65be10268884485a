package binlog

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tidemarkdb/tidemark/schema"
)

// Value types of MySQL's binary JSON (mysql-server, sql-common/json_binary.h).
const (
	jsonSmallObject = 0x00
	jsonLargeObject = 0x01
	jsonSmallArray  = 0x02
	jsonLargeArray  = 0x03
	jsonLiteral     = 0x04
	jsonInt16       = 0x05
	jsonUint16      = 0x06
	jsonInt32       = 0x07
	jsonUint32      = 0x08
	jsonInt64       = 0x09
	jsonUint64      = 0x0a
	jsonDouble      = 0x0b
	jsonString      = 0x0c
	jsonOpaque      = 0x0f
)

// maxJSONDepth is the deepest nesting that MySQL stores.
const maxJSONDepth = 100

var errJSON = errors.New("binlog: malformed binary JSON")

// appendJSON appends the text form of a binary JSON document, byte for byte what the server prints. An empty document
// is JSON null (the server stores it for a NOT NULL column under sql_mode ”). Values are found by their offsets; unused
// bytes between them, which in-place updates leave, are never looked at.
func appendJSON(dst, doc []byte) ([]byte, error) {
	if len(doc) == 0 {
		return append(dst, "null"...), nil
	}
	// A valid document holds each of its bytes once, so that offsets which go round in circles soon exceed it.
	w := jsonWriter{out: dst, budget: len(doc)}
	w.value(doc[0], doc[1:], 0)
	return w.out, w.err
}

type jsonWriter struct {
	out    []byte
	budget int
	err    error
}

func (w *jsonWriter) fail() { w.err = errJSON }

// spend counts n bytes of the document as read.
func (w *jsonWriter) spend(n int) bool {
	w.budget -= n
	if w.budget < 0 {
		w.fail()
	}
	return w.err == nil
}

// value writes the value of type typ at the start of b, which goes to the end of the document or of the container.
func (w *jsonWriter) value(typ byte, b []byte, depth int) {
	if w.err != nil || depth > maxJSONDepth {
		w.fail()
		return
	}
	switch typ {
	case jsonSmallObject, jsonLargeObject, jsonSmallArray, jsonLargeArray:
		w.container(typ, b, depth)
	case jsonString:
		if s, ok := variableLength(b); ok && w.spend(len(s)) {
			w.quoted(s)
		} else {
			w.fail()
		}
	case jsonOpaque:
		w.opaque(b)
	default:
		w.scalar(typ, b)
	}
}

var jsonScalarSize = map[byte]int{
	jsonLiteral: 1, jsonInt16: 2, jsonUint16: 2, jsonInt32: 4, jsonUint32: 4, jsonInt64: 8, jsonUint64: 8, jsonDouble: 8,
}

func (w *jsonWriter) scalar(typ byte, b []byte) {
	size := jsonScalarSize[typ]
	if size == 0 || len(b) < size || !w.spend(size) {
		w.fail()
		return
	}
	switch typ {
	case jsonLiteral:
		w.literal(b[0])
	case jsonInt16:
		w.out = strconv.AppendInt(w.out, int64(int16(binary.LittleEndian.Uint16(b))), 10)
	case jsonUint16:
		w.out = strconv.AppendUint(w.out, uint64(binary.LittleEndian.Uint16(b)), 10)
	case jsonInt32:
		w.out = strconv.AppendInt(w.out, int64(int32(binary.LittleEndian.Uint32(b))), 10)
	case jsonUint32:
		w.out = strconv.AppendUint(w.out, uint64(binary.LittleEndian.Uint32(b)), 10)
	case jsonInt64:
		w.out = strconv.AppendInt(w.out, int64(binary.LittleEndian.Uint64(b)), 10)
	case jsonUint64:
		w.out = strconv.AppendUint(w.out, binary.LittleEndian.Uint64(b), 10)
	case jsonDouble:
		w.double(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
}

func (w *jsonWriter) literal(code byte) {
	texts := [...]string{"null", "true", "false"}
	if int(code) >= len(texts) {
		w.fail()
		return
	}
	w.out = append(w.out, texts[code]...)
}

// double writes a number that reads back as a double: one that would look like an integer gets ".0".
func (w *jsonWriter) double(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		w.fail()
		return
	}
	at := len(w.out)
	w.out = schema.AppendDouble(w.out, v)
	for _, c := range w.out[at:] {
		if c == '.' || c == 'e' {
			return
		}
	}
	w.out = append(w.out, ".0"...)
}

// variableLength takes a length of up to five bytes, seven bits each with the lowest first, and as many bytes.
func variableLength(b []byte) ([]byte, bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || size > 5 || n > uint64(len(b)-size) {
		return nil, false
	}
	return b[size : size+int(n)], true
}

// container reads objects and arrays. All offsets count from the start of the container.
type jsonContainer struct {
	b      []byte
	word   int // 2 bytes in the small form, 4 in the large one
	count  int
	object bool
}

func openJSONContainer(typ byte, b []byte) (jsonContainer, bool) {
	c := jsonContainer{b: b, word: 2, object: typ <= jsonLargeObject}
	if typ == jsonLargeObject || typ == jsonLargeArray {
		c.word = 4
	}
	count, ok1 := c.number(0)
	size, ok2 := c.number(c.word)
	if !ok1 || !ok2 || size > len(b) {
		return c, false
	}
	c.b, c.count = b[:size], count
	return c, c.header() <= size && count <= size
}

func (c *jsonContainer) number(at int) (int, bool) {
	if at < 0 || at+c.word > len(c.b) {
		return 0, false
	}
	if c.word == 2 {
		return int(binary.LittleEndian.Uint16(c.b[at:])), true
	}
	return int(binary.LittleEndian.Uint32(c.b[at:])), true
}

func (c *jsonContainer) keyEntry() int { return c.word + 2 }

func (c *jsonContainer) valueEntry() int { return c.word + 1 }

// values is where the value entries start.
func (c *jsonContainer) values() int {
	if c.object {
		return 2*c.word + c.count*c.keyEntry()
	}
	return 2 * c.word
}

func (c *jsonContainer) header() int { return c.values() + c.count*c.valueEntry() }

func (c *jsonContainer) key(i int) ([]byte, bool) {
	entry := 2*c.word + i*c.keyEntry()
	at, ok := c.number(entry)
	if !ok {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint16(c.b[entry+c.word:]))
	if at > len(c.b)-n {
		return nil, false
	}
	return c.b[at : at+n], true
}

// value gives type and bytes of the i-th value: small ones stand in the entry itself.
func (c *jsonContainer) value(i int) (byte, []byte, bool) {
	entry := c.values() + i*c.valueEntry()
	typ := c.b[entry]
	switch typ {
	case jsonLiteral, jsonInt16, jsonUint16:
		return typ, c.b[entry+1 : entry+1+c.word], true
	case jsonInt32, jsonUint32:
		if c.word == 4 {
			return typ, c.b[entry+1 : entry+1+c.word], true
		}
	}
	at, ok := c.number(entry + 1)
	if !ok || at < c.header() || at >= len(c.b) {
		return 0, nil, false
	}
	return typ, c.b[at:], true
}

func (w *jsonWriter) container(typ byte, b []byte, depth int) {
	c, ok := openJSONContainer(typ, b)
	if !ok || !w.spend(2*c.word) {
		w.fail()
		return
	}
	brackets := "[]"
	if c.object {
		brackets = "{}"
	}
	w.out = append(w.out, brackets[0])
	for i := 0; i < c.count && w.err == nil; i++ {
		if i > 0 {
			w.out = append(w.out, ", "...)
		}
		w.member(&c, i, depth)
	}
	w.out = append(w.out, brackets[1])
}

func (w *jsonWriter) member(c *jsonContainer, i, depth int) {
	if c.object {
		key, ok := c.key(i)
		if !ok || !w.spend(len(key)) {
			w.fail()
			return
		}
		w.quoted(key)
		w.out = append(w.out, ": "...)
	}
	typ, b, ok := c.value(i)
	if !ok {
		w.fail()
		return
	}
	w.value(typ, b, depth+1)
}

// quoted writes a string with the escapes that the server uses.
func (w *jsonWriter) quoted(s []byte) {
	if !utf8.Valid(s) {
		w.fail()
		return
	}
	const short = "btn\x00fr" // escapes of 8 to 13
	w.out = append(w.out, '"')
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.out = append(w.out, s[from:i]...)
		from = i + 1
		switch {
		case c >= ' ':
			w.out = append(w.out, '\\', c)
		case c >= '\b' && c <= '\r' && c != '\v':
			w.out = append(w.out, '\\', short[c-'\b'])
		default:
			const digits = "0123456789abcdef"
			w.out = append(w.out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	w.out = append(append(w.out, s[from:]...), '"')
}

// opaque writes a value of a column type that JSON has no form for: the type, a length, and the value's bytes.
func (w *jsonWriter) opaque(b []byte) {
	if len(b) == 0 {
		w.fail()
		return
	}
	typ := b[0]
	data, ok := variableLength(b[1:])
	if !ok || !w.spend(len(data)+1) {
		w.fail()
		return
	}
	switch typ {
	case typeNewDecimal:
		w.opaqueDecimal(data)
	case typeDate, typeDateTime, typeTimestamp, typeTime:
		w.opaqueTemporal(typ, data)
	default:
		w.opaqueBytes(typ, data)
	}
}

// maxJSONDecimal is the largest precision of a decimal in JSON. The server counts whole groups of nine digits, so it
// can be larger than that of a column.
const maxJSONDecimal = 81

// opaqueDecimal writes precision, scale and packed digits as a number.
func (w *jsonWriter) opaqueDecimal(b []byte) {
	if len(b) < 2 || b[0] < 1 || b[0] > maxJSONDecimal || b[1] > b[0] {
		w.fail()
		return
	}
	l := newDecimalLayout(int(b[0]), int(b[1]))
	if len(b) != 2+l.size {
		w.fail()
		return
	}
	var ok bool
	if w.out, ok = l.appendText(w.out, b[2:]); !ok {
		w.fail()
	}
}

// opaqueTemporal writes a date or time, always with six digits of fraction: 24 bits of it are the lowest of the eight
// bytes, above them stand the fields of DATETIME or TIME.
func (w *jsonWriter) opaqueTemporal(typ byte, b []byte) {
	if len(b) != 8 {
		w.fail()
		return
	}
	packed := int64(binary.LittleEndian.Uint64(b))
	w.out = append(w.out, '"')
	amount := packed
	if packed < 0 {
		amount = -packed
	}
	whole, us := amount>>24, amount&(1<<24-1)
	switch typ {
	case typeTime:
		t, ok := timeMicros(whole, us)
		if !ok {
			w.fail()
			return
		}
		if packed < 0 {
			t = -t
		}
		w.out = schema.AppendTime(w.out, t, 6)
	default:
		w.dateTime(typ, whole, us)
	}
	w.out = append(w.out, '"')
}

func (w *jsonWriter) dateTime(typ byte, whole, us int64) {
	ym, day, hms := whole>>22, int(whole>>17&31), whole&(1<<17-1)
	year, month := int(ym/13), int(ym%13)
	if year > 9999 || us > 999_999 {
		w.fail()
		return
	}
	if typ == typeDate {
		w.out = schema.AppendDate(w.out, year, month, day)
		return
	}
	w.out = schema.AppendDateTime(w.out, year, month, day, int(hms>>12), int(hms>>6&63), int(hms&63), int(us), 6)
}

// base64Line is after how many characters the server's base64 breaks the line.
const base64Line = 76

func (w *jsonWriter) opaqueBytes(typ byte, b []byte) {
	text := append([]byte("base64:type"), strconv.Itoa(int(typ))...)
	text = append(text, ':')
	encoded := base64.StdEncoding.EncodeToString(b)
	for len(encoded) > base64Line {
		text = append(append(text, encoded[:base64Line]...), '\n')
		encoded = encoded[base64Line:]
	}
	w.quoted(append(text, encoded...))
}
