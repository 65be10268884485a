package binlog

import (
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// MismatchError says that the source logs a table's rows in a form that does not fit the definition they are to be
// read with. Decoding anyway would put values into wrong columns.
type MismatchError struct {
	Table  string // database.table
	Column string // empty if the table as a whole does not fit
	Reason string
}

// Error says what differs.
func (e *MismatchError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("table %s: its row events do not fit its definition: %s", e.Table, e.Reason)
	}
	return fmt.Sprintf("table %s, column %s: its row events do not fit its definition: %s", e.Table, e.Column, e.Reason)
}

// ImageError says that a row image can not be read: it is partial, or its bytes make no sense. It carries no values.
type ImageError struct {
	Table  string
	Row    int // in its event, from 0
	Column string
	Err    error
}

// Error says where and why.
func (e *ImageError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("table %s: row event: %v", e.Table, e.Err)
	}
	return fmt.Sprintf("table %s, column %s: row %d of a row event: %v", e.Table, e.Column, e.Row, e.Err)
}

// Unwrap gives the cause.
func (e *ImageError) Unwrap() error { return e.Err }

// ErrPartialImage is the cause of an ImageError of Decode if the event has less than whole rows: DecodePartial reads it.
var ErrPartialImage = errors.New("the row image is partial")

var errMalformed = errors.New("the bytes are not a value of the column's type")

// Sink takes rows; column.Builder and column.KeyBuilder are ones. Column gives nil for a column that is not wanted.
type Sink interface {
	Column(i int) column.Appender
	EndRow()
}

// Decoder reads the row images of one table as one table map describes them. It is for one goroutine.
type Decoder struct {
	table *schema.Table
	cols  []columnDecoder
	nulls int // bytes of a bitmap of all columns
	json  int // columns of type JSON

	before, after []column.Appender
}

// NewDecoder checks that the source's description of the table fits the definition: the number of columns, their
// types, lengths, precisions and nullability, and as far as the source tells them also signs, character sets, names and
// labels. The error is a *MismatchError.
func NewDecoder(m *TableMap, t *schema.Table) (*Decoder, error) {
	if m.problem != nil {
		return nil, &MismatchError{Table: t.FullName(), Reason: m.problem.Error()}
	}
	if len(m.columns) != len(t.Columns) || len(m.columns) == 0 {
		return nil, &MismatchError{Table: t.FullName(), Reason: fmt.Sprintf("%d columns instead of %d", len(m.columns), len(t.Columns))}
	}
	d := &Decoder{
		table: t, nulls: (len(t.Columns) + 7) / 8, json: jsonColumns(t), cols: make([]columnDecoder, len(t.Columns)),
		before: make([]column.Appender, len(t.Columns)), after: make([]column.Appender, len(t.Columns)),
	}
	for i := range t.Columns {
		if reason := mismatch(&m.columns[i], &t.Columns[i]); reason != "" {
			return nil, &MismatchError{Table: t.FullName(), Column: t.Columns[i].Name, Reason: reason}
		}
		d.cols[i] = newColumnDecoder(&m.columns[i], &t.Columns[i])
	}
	return d, nil
}

// Decode hands the rows of an event over: for an insert each row to after, for a delete each row to before, for an
// update each old row to before and then its new one to after. It calls row, if not nil, behind each row, for an update
// behind each pair; an error of row ends the decoding and is returned as it is. A nil before is for callers who do not
// want old rows.
//
// Other errors are an *ImageError. It is ErrPartialImage, before anything is handed over, if the event has less than whole
// rows; with any other the sinks may have part of a row and are of no further use. Values that a column
// can not take are the sinks' own errors.
func (d *Decoder) Decode(e *RowsEvent, before, after Sink, row func() error) error {
	b, err := d.header(e)
	if err != nil {
		return &ImageError{Table: d.table.FullName(), Err: err}
	}
	d.use(d.before, before)
	d.use(d.after, after)
	for n := 0; len(b) > 0; n++ {
		if e.Action != Insert {
			if b, err = d.image(b, n, d.before, before); err != nil {
				return err
			}
		}
		if e.Action != Delete {
			if b, err = d.image(b, n, d.after, after); err != nil {
				return err
			}
		}
		if row != nil {
			if err := row(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Decoder) use(appenders []column.Appender, s Sink) {
	for i := range appenders {
		appenders[i] = nil
		if s != nil {
			appenders[i] = s.Column(i)
		}
	}
}

// header reads what stands in front of the rows: the number of columns and a bitmap of those that are present, two of
// them for an update.
func (d *Decoder) header(e *RowsEvent) ([]byte, error) {
	if e.Action == PartialUpdate {
		return nil, ErrPartialImage
	}
	c := cursor{b: e.body}
	if n := c.lenenc(); c.err == nil && n != uint64(len(d.cols)) {
		return nil, fmt.Errorf("it has %d columns and its table map %d", n, len(d.cols))
	}
	bitmaps := 1
	if e.Action == Update {
		bitmaps = 2
	}
	for range bitmaps {
		if present := c.take(d.nulls); c.err == nil && !allSet(present, len(d.cols)) {
			return nil, ErrPartialImage
		}
	}
	return c.b, c.err
}

func allSet(bitmap []byte, n int) bool {
	for i := range n {
		if bitmap[i/8]>>(i%8)&1 == 0 {
			return false
		}
	}
	return true
}

// image reads one row image and returns what follows it.
func (d *Decoder) image(b []byte, row int, to []column.Appender, s Sink) ([]byte, error) {
	if len(b) < d.nulls {
		return nil, &ImageError{Table: d.table.FullName(), Row: row, Err: errShort}
	}
	nulls := b[:d.nulls]
	b = b[d.nulls:]
	for i := range d.cols {
		if nulls[i>>3]>>(i&7)&1 == 1 {
			if to[i] != nil {
				to[i].Null()
			}
			continue
		}
		c := &d.cols[i]
		n := c.span(b)
		if n > len(b) {
			return nil, d.fail(row, i, errShort)
		}
		if to[i] != nil && !c.read(c, b[c.prefix:n], to[i]) {
			return nil, d.fail(row, i, errMalformed)
		}
		b = b[n:]
	}
	if s != nil {
		s.EndRow()
	}
	return b, nil
}

func (d *Decoder) fail(row, col int, err error) error {
	return &ImageError{Table: d.table.FullName(), Row: row, Column: d.table.Columns[col].Name, Err: err}
}
