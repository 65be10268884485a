package binlog

import (
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// Gap says what a row lacks that comes from a partial image (see Decoder.DecodePartial). In the row itself NULL stands for
// it.
type Gap struct {
	// Columns are the columns that the event says nothing of: they are as they were. They are the same for all rows of an
	// event, and may be kept.
	Columns []int
	// Diffs are the JSON columns of which the event says how they changed only. They are valid during the call.
	Diffs []JSONDiff
}

// JSONDiff is a change of the document in a column, in the form that AppendJSONDiff takes.
type JSONDiff struct {
	Column int
	Diffs  []byte
}

var (
	errNoKey     = errors.New("the row image lacks it, and it is needed to tell which row is meant")
	errNoColumns = errors.New("its rows have no columns, so that there is no telling how many they are")
	errNoDefault = errors.New("the row image lacks it, and its default is not known exactly")
)

// imageState says what a row image has of a column.
type imageState uint8

const (
	imageAbsent imageState = iota
	imageNull
	imageValue
	imageDiff
)

// imageColumn is a column of a row image; b are the bytes of its value, with the length in front, or of its differences.
type imageColumn struct {
	state imageState
	b     []byte
}

// partialImages are the images of an event of which some lack columns.
type partialImages struct {
	d             *Decoder
	action        Action
	before, after []byte // bitmaps of the columns that are present
	old, now      []imageColumn
	missing       []int // columns of an updated row that neither image has
	gap           Gap
	scratch       [2][]byte
}

// DecodePartial is Decode for events whose images may lack columns (binlog_row_image = MINIMAL or NOBLOB,
// binlog_row_value_options = PARTIAL_JSON). A new row gets what the event says of it: from its new image, else from its
// old one; an inserted row the column's default. What is left comes to row as a gap, nil if there is none. Columns that
// name the row are never left out; where an event does that, it is an error.
func (d *Decoder) DecodePartial(e *RowsEvent, before, after Sink, row func(*Gap) error) error {
	p := &partialImages{d: d, action: e.Action, old: make([]imageColumn, len(d.cols)), now: make([]imageColumn, len(d.cols))}
	b, err := p.header(e)
	if err != nil {
		return &ImageError{Table: d.table.FullName(), Err: err}
	}
	d.use(d.before, before)
	d.use(d.after, after)
	for n := 0; len(b) > 0; n++ {
		if e.Action != Insert {
			if b, err = p.image(b, n, p.old, p.before, false); err == nil {
				err = p.giveOld(n, before)
			}
		}
		if e.Action != Delete && err == nil {
			if b, err = p.image(b, n, p.now, p.after, e.Action == PartialUpdate); err == nil {
				err = p.giveNew(n, after)
			}
		}
		if err != nil {
			return err
		}
		if err := row(p.takeGap()); err != nil {
			return err
		}
	}
	return nil
}

func (p *partialImages) header(e *RowsEvent) ([]byte, error) {
	c := cursor{b: e.body}
	if n := c.lenenc(); c.err == nil && n != uint64(len(p.d.cols)) {
		return nil, fmt.Errorf("it has %d columns and its table map %d", n, len(p.d.cols))
	}
	if e.Action != Insert {
		p.before = c.take(p.d.nulls)
	}
	if e.Action != Delete {
		p.after = c.take(p.d.nulls)
	}
	if c.err != nil {
		return nil, c.err
	}
	if first := p.before; !p.anySet(first) && !p.anySet(p.after) || first != nil && !p.anySet(first) {
		return nil, errNoColumns
	}
	if e.Action == Update || e.Action == PartialUpdate {
		for i := range p.d.cols {
			if !isSet(p.before, i) && !isSet(p.after, i) {
				p.missing = append(p.missing, i)
			}
		}
	}
	return c.b, nil
}

func (p *partialImages) anySet(bitmap []byte) bool {
	for i := range p.d.cols {
		if bitmap != nil && isSet(bitmap, i) {
			return true
		}
	}
	return false
}

func isSet(bitmap []byte, i int) bool { return bitmap[i>>3]>>(i&7)&1 == 1 }

// image reads one row image and returns what follows it. options tells that it may have differences: in front of it then
// stands whether it has, and if so which of the table's JSON columns are given so, present or not.
func (p *partialImages) image(b []byte, row int, to []imageColumn, present []byte, options bool) ([]byte, error) {
	d := p.d
	c := cursor{b: b}
	var diffs []byte
	if options && c.lenenc()&1 == 1 {
		diffs = c.take((d.json + 7) / 8)
	}
	count := 0
	for i := range d.cols {
		if isSet(present, i) {
			count++
		}
	}
	nulls := c.take((count + 7) / 8)
	if c.err != nil {
		return nil, &ImageError{Table: d.table.FullName(), Row: row, Err: c.err}
	}
	at, json := 0, 0
	for i := range d.cols {
		to[i] = imageColumn{}
		isDiff := false
		if d.table.Columns[i].Type == schema.JSON {
			isDiff = diffs != nil && isSet(diffs, json)
			json++
		}
		if !isSet(present, i) {
			continue
		}
		at++
		if isSet(nulls, at-1) {
			to[i].state = imageNull
			continue
		}
		to[i] = imageColumn{imageValue, c.take(d.cols[i].span(c.b))}
		if c.err != nil {
			return nil, d.fail(row, i, c.err)
		}
		if isDiff {
			to[i] = imageColumn{imageDiff, to[i].b[d.cols[i].prefix:]}
		}
	}
	return c.b, nil
}

// give hands a value that is there to its appender.
func (p *partialImages) give(row, i int, v imageColumn, to column.Appender) error {
	if v.state == imageNull {
		to.Null()
		return nil
	}
	if c := &p.d.cols[i]; !c.read(c, v.b[c.prefix:], to) {
		return p.d.fail(row, i, errMalformed)
	}
	return nil
}

// giveOld hands over what the old image has of what is wanted, which are columns that name the row.
func (p *partialImages) giveOld(row int, s Sink) error {
	if s == nil {
		return nil
	}
	for i, to := range p.d.before {
		if to == nil {
			continue
		}
		if p.old[i].state == imageAbsent {
			return p.d.fail(row, i, errNoKey)
		}
		if err := p.give(row, i, p.old[i], to); err != nil {
			return err
		}
	}
	s.EndRow()
	return nil
}

func (p *partialImages) giveNew(row int, s Sink) error {
	if s == nil {
		return nil
	}
	p.gap.Diffs = p.gap.Diffs[:0]
	for i, to := range p.d.after {
		if to == nil {
			continue
		}
		if err := p.giveColumn(row, i, to); err != nil {
			return err
		}
	}
	s.EndRow()
	return nil
}

func (p *partialImages) giveColumn(row, i int, to column.Appender) error {
	now, old := p.now[i], p.old[i]
	switch {
	case now.state == imageDiff:
		return p.giveDiff(row, i, old, now.b, to)
	case now.state != imageAbsent:
		return p.give(row, i, now, to)
	case p.action == Insert:
		return p.giveDefault(row, i, to)
	case old.state != imageAbsent:
		return p.give(row, i, old, to)
	}
	return p.leaveOut(row, i, to)
}

// leaveOut makes a column part of the row's gap.
func (p *partialImages) leaveOut(row, i int, to column.Appender) error {
	if p.d.table.Multiset() || p.d.table.IsKey(i) {
		return p.d.fail(row, i, errNoKey)
	}
	to.Null()
	return nil
}

// giveDiff applies differences to the old document, if the old image has it.
func (p *partialImages) giveDiff(row, i int, old imageColumn, diffs []byte, to column.Appender) error {
	if old.state != imageValue {
		if old.state == imageNull {
			return p.d.fail(row, i, errDiff)
		}
		p.gap.Diffs = append(p.gap.Diffs, JSONDiff{i, diffs})
		return p.leaveOut(row, i, to)
	}
	text, err := appendJSON(p.scratch[0][:0], old.b[p.d.cols[i].prefix:])
	if err != nil {
		return p.d.fail(row, i, errMalformed)
	}
	out, err := AppendJSONDiff(p.scratch[1][:0], text, diffs)
	if err != nil {
		return p.d.fail(row, i, err)
	}
	p.scratch = [2][]byte{text, out}
	to.JSON(out)
	return nil
}

func (p *partialImages) giveDefault(row, i int, to column.Appender) error {
	c := &p.d.table.Columns[i]
	text, known := c.InsertDefault()
	if !known {
		return p.d.fail(row, i, errNoDefault)
	}
	if text == nil {
		to.Null()
		return nil
	}
	if err := column.AppendText(to, c, *text); err != nil {
		return p.d.fail(row, i, err)
	}
	return nil
}

// takeGap gives what the row in hand lacks.
func (p *partialImages) takeGap() *Gap {
	p.gap.Columns = p.missing
	if len(p.missing) == 0 && len(p.gap.Diffs) == 0 {
		return nil
	}
	return &p.gap
}

// jsonColumns counts the JSON columns of a table.
func jsonColumns(t *schema.Table) int {
	n := 0
	for i := range t.Columns {
		if t.Columns[i].Type == schema.JSON {
			n++
		}
	}
	return n
}
