package server

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/schema"
)

// Status flags of OK and EOF packets.
const (
	statusInTransaction      = 1
	statusAutocommit         = 2
	statusMoreResults        = 8
	statusCursorExists       = 64
	statusLastRowSent        = 128
	statusNoBackslashEscapes = 512
	statusInReadOnly         = 0x2000
)

// okResult is what a statement without rows returns.
type okResult struct {
	affected uint64
	info     string
}

// Headers of the protocol's packets.
const (
	headerOK  = 0x00
	headerEOF = 0xfe
	headerErr = 0xff
	cellNull  = 0xfb
)

func (c *conn) status() uint16 { return c.session.status() | c.moreResults }

func (c *conn) writeOK(r okResult) error { return c.writeOKAs(headerOK, r, c.status()) }

func (c *conn) writeOKAs(header byte, r okResult, status uint16) error {
	b := appendLenInt([]byte{header}, r.affected)
	b = append(b, 0) // last insert id
	b = appendUint16(b, status)
	b = appendUint16(b, c.session.warningCount())
	return c.out.write(append(b, r.info...))
}

// writeEOF ends a list of column definitions or of rows.
func (c *conn) writeEOF(status uint16) error {
	b := appendUint16([]byte{headerEOF}, c.session.warningCount())
	return c.out.write(appendUint16(b, status))
}

// endRows ends the rows, in the form that the client asked for.
func (c *conn) endRows(status uint16) error {
	if c.capabilities&capDeprecateEOF != 0 {
		return c.writeOKAs(headerEOF, okResult{}, status)
	}
	return c.writeEOF(status)
}

// endFields ends the column definitions where the protocol still has an end for them.
func (c *conn) endFields() error {
	if c.capabilities&capDeprecateEOF != 0 {
		return nil
	}
	return c.writeEOF(c.status())
}

func (c *conn) writeError(err error) error {
	e := sqlerr.From(err)
	b := appendUint16([]byte{headerErr}, e.Code)
	b = append(append(b, '#'), e.State...)
	return c.out.write(append(b, e.Message...))
}

func (c *conn) writeFields(fields []field.Field) error {
	for i := range fields {
		if err := c.out.write(c.appendField(nil, &fields[i])); err != nil {
			return err
		}
	}
	return nil
}

// appendField appends a column definition.
func (c *conn) appendField(b []byte, f *field.Field) []byte {
	charset := f.Charset
	if charset != field.Binary {
		charset = c.session.resultCollation()
	}
	b = appendLenString(b, "def")
	for _, name := range []string{f.Database, f.Table, f.OrgTable, f.Name, f.OrgName} {
		b = appendLenBytes(b, c.session.encodeText([]byte(name)))
	}
	b = append(b, 0x0c)
	b = appendUint16(b, charset)
	b = appendUint32(b, c.session.resultLength(f))
	b = append(b, byte(f.Type))
	b = appendUint16(b, uint16(f.Flags))
	return append(b, f.Decimals, 0, 0)
}

// writeRows sends a whole result. The client's pace is the pace: nothing is read from rows that does not fit into the
// connection's buffer.
func (c *conn) writeRows(ctx context.Context, rows result.Rows, encode rowEncoder) error {
	fields := rows.Fields()
	if err := c.out.write(appendLenInt(nil, uint64(len(fields)))); err != nil {
		return err
	}
	if err := c.writeFields(fields); err != nil {
		return err
	}
	if err := c.endFields(); err != nil {
		return err
	}
	var sent uint64
	for {
		n, err := c.writeBlock(ctx, rows, encode)
		sent += uint64(n)
		if errors.Is(err, io.EOF) {
			c.session.foundRows = sent
			return c.endRows(c.status())
		}
		if err != nil {
			return err
		}
	}
}

// writeBlock sends the next block of rows and tells how many there were.
func (c *conn) writeBlock(ctx context.Context, rows result.Rows, encode rowEncoder) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	cells, err := rows.Next()
	if err != nil {
		return 0, err
	}
	fields := rows.Fields()
	for row := range cells.Len() {
		if c.row, err = encode(c.session, c.row[:0], fields, cells, row); err != nil {
			return 0, err
		}
		if err := c.out.write(c.row); err != nil {
			return 0, err
		}
	}
	return cells.Len(), nil
}

// rowEncoder appends one row in one of the two forms of the protocol.
type rowEncoder func(s *session, dst []byte, fields []field.Field, cells result.Cells, row int) ([]byte, error)

// textRow is the form of COM_QUERY.
func textRow(s *session, dst []byte, fields []field.Field, cells result.Cells, row int) ([]byte, error) {
	for col := range fields {
		var null bool
		if dst, null = appendCell(s, dst, &fields[col], cells, row, col); null {
			dst = append(dst, cellNull)
		}
	}
	return dst, nil
}

// appendCell appends a value with its length before it.
func appendCell(s *session, dst []byte, f *field.Field, cells result.Cells, row, col int) ([]byte, bool) {
	at := len(dst)
	dst, null := cells.Text(append(dst, 0), row, col)
	if null {
		return dst[:at], true
	}
	if f.Charset != field.Binary && !s.sendsUTF8() {
		dst = append(dst[:at+1], s.encodeText(dst[at+1:])...)
	}
	n := len(dst) - at - 1
	if n < 251 {
		dst[at] = byte(n)
		return dst, false
	}
	var head [9]byte
	h := appendLenInt(head[:0], uint64(n))
	dst = append(dst, h[1:]...) // make room
	copy(dst[at+len(h):], dst[at+1:at+1+n])
	copy(dst[at:], h)
	return dst, false
}

var errBadCell = errors.New("a value does not have the form of its column's type")

// binaryRow is the form of COM_STMT_EXECUTE.
func binaryRow(s *session, dst []byte, fields []field.Field, cells result.Cells, row int) ([]byte, error) {
	dst = append(dst, headerOK)
	nulls := len(dst)
	dst = append(dst, make([]byte, (len(fields)+9)/8)...)
	var text []byte
	for col := range fields {
		f := &fields[col]
		at, null, ok := len(dst), false, true
		if isLenString(f.Type) {
			dst, null = appendCell(s, dst, f, cells, row, col)
		} else if text, null = cells.Text(text[:0], row, col); !null {
			dst, ok = appendBinary(dst, f, text, func() float64 { return cells.Float(row, col) })
		}
		if !ok {
			return nil, errBadCell
		}
		if null {
			dst = dst[:at]
			dst[nulls+(col+2)/8] |= 1 << ((col + 2) % 8)
		}
	}
	return dst, nil
}

// isLenString tells the types whose binary form is their text.
func isLenString(t field.Type) bool {
	switch t {
	case field.Tiny, field.Short, field.Year, field.Int24, field.Long, field.LongLong, field.Float, field.Double,
		field.Date, field.DateTime, field.Timestamp, field.Time:
		return false
	}
	return true
}

func appendBinary(dst []byte, f *field.Field, text []byte, float func() float64) ([]byte, bool) {
	switch f.Type {
	case field.Float:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(float()))), true
	case field.Double:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float())), true
	case field.Date, field.DateTime, field.Timestamp:
		return appendBinaryDate(dst, text)
	case field.Time:
		return appendBinaryTime(dst, text)
	}
	return appendBinaryInt(dst, f, text)
}

var intBytes = map[field.Type]int{field.Tiny: 1, field.Short: 2, field.Year: 2, field.Int24: 4, field.Long: 4, field.LongLong: 8}

func appendBinaryInt(dst []byte, f *field.Field, text []byte) ([]byte, bool) {
	var v uint64
	if len(text) > 0 && text[0] == '-' {
		i, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return dst, false
		}
		v = uint64(i)
	} else {
		u, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			return dst, false
		}
		v = u
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return append(dst, b[:intBytes[f.Type]]...), true
}

// appendBinaryDate takes YYYY-MM-DD[ hh:mm:ss[.ffffff]]. What is zero at the end is left out.
func appendBinaryDate(dst, text []byte) ([]byte, bool) {
	p := digitGroups(text)
	if len(p) < 3 {
		return dst, false
	}
	var part [7]int
	copy(part[:], p)
	if len(p) == 7 {
		part[6] = microseconds(text)
	}
	n := 0
	switch {
	case part[6] != 0:
		n = 11
	case part[3] != 0 || part[4] != 0 || part[5] != 0:
		n = 7
	case part[0] != 0 || part[1] != 0 || part[2] != 0:
		n = 4
	}
	full := appendUint16([]byte{byte(n)}, uint16(part[0]))
	full = append(full, byte(part[1]), byte(part[2]), byte(part[3]), byte(part[4]), byte(part[5]))
	full = appendUint32(full, uint32(part[6]))
	return append(dst, full[:n+1]...), true
}

// appendBinaryTime takes [-]hhh:mm:ss[.ffffff].
func appendBinaryTime(dst, text []byte) ([]byte, bool) {
	p := digitGroups(text)
	if len(p) < 3 {
		return dst, false
	}
	us, negative := 0, byte(0)
	if len(p) == 4 {
		us = microseconds(text)
	}
	if text[0] == '-' {
		negative = 1
	}
	n := 12
	switch {
	case p[0] == 0 && p[1] == 0 && p[2] == 0 && us == 0:
		n = 0
	case us == 0:
		n = 8
	}
	full := appendUint32([]byte{byte(n), negative}, uint32(p[0]/24))
	full = append(full, byte(p[0]%24), byte(p[1]), byte(p[2]))
	full = appendUint32(full, uint32(us))
	return append(dst, full[:n+1]...), true
}

// digitGroups gives the numbers in a date or time.
func digitGroups(text []byte) []int {
	var out []int
	in := false
	for _, ch := range text {
		if ch < '0' || ch > '9' {
			in = false
			continue
		}
		if !in {
			out, in = append(out, 0), true
		}
		last := &out[len(out)-1]
		*last = *last*10 + int(ch-'0')
	}
	return out
}

// microseconds gives the fraction behind the point, whatever its number of digits.
func microseconds(text []byte) int {
	us, scale := 0, 100_000
	point := false
	for _, ch := range text {
		if ch == '.' {
			point = true
		} else if point && scale > 0 {
			us += int(ch-'0') * scale
			scale /= 10
		}
	}
	return us
}

// decodeText reads what a client sends in its character set. UTF-8 is left as it is: literals may hold bytes of any kind.
func decodeText(charset string, b []byte) string {
	if charset != "latin1" {
		return string(b)
	}
	out, _ := schema.ToUTF8(charset, b)
	return string(out)
}
