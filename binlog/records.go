package binlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The byte form of a transaction's events, in spill files and in stored XA transactions: docs/format/events.md.
const (
	recordsVersion = 1

	recordTableMap  = 1
	recordRows      = 2
	recordStatement = 3

	flagLoad = 1
)

// recordWriter writes events. Each table map stands once, in front of its first row event.
type recordWriter struct {
	w     *bufio.Writer
	index map[*TableMap]uint64
	maps  []*TableMap
}

func newRecordWriter(w io.Writer) (*recordWriter, error) {
	r := &recordWriter{w: bufio.NewWriterSize(w, 64<<10), index: map[*TableMap]uint64{}}
	return r, r.w.WriteByte(recordsVersion)
}

func (r *recordWriter) add(e Event) error {
	switch e := e.(type) {
	case *RowsEvent:
		i, known := r.index[e.Table]
		if !known {
			i = uint64(len(r.maps))
			r.index[e.Table], r.maps = i, append(r.maps, e.Table)
			if err := r.record(recordTableMap, 0, 0, e.Table.raw); err != nil {
				return err
			}
		}
		return r.record(recordRows, byte(e.Action), i, e.body)
	case *Statement:
		var flags byte
		if e.load {
			flags = flagLoad
		}
		return r.record(recordStatement, flags, uint64(e.timestamp), e.raw)
	}
	return fmt.Errorf("no record for %T", e)
}

func (r *recordWriter) record(tag, detail byte, number uint64, data []byte) error {
	var head [2 + 2*binary.MaxVarintLen64]byte
	b := append(head[:0], tag, detail)
	b = binary.AppendUvarint(b, number)
	b = binary.AppendUvarint(b, uint64(len(data)))
	if _, err := r.w.Write(b); err != nil {
		return err
	}
	_, err := r.w.Write(data)
	return err
}

// ErrRecords is wrapped by every error about the byte form of events.
var ErrRecords = errors.New("binlog: damaged record of a transaction's events")

// recordReader reads what a recordWriter wrote.
type recordReader struct {
	r *bufio.Reader
	// maps are the table maps met so far. The first known of them are given, so that an event has the very map that it
	// was written with.
	maps  []*TableMap
	known int
	met   int
	// buf takes the bytes of a record; with reuse they are overwritten by the next one.
	buf   []byte
	reuse bool
}

func newRecordReader(in io.Reader) (*recordReader, error) {
	r := &recordReader{r: bufio.NewReaderSize(in, 64<<10)}
	v, err := r.r.ReadByte()
	if err == nil && v != recordsVersion {
		err = fmt.Errorf("%w: version %d is not known to this release", ErrRecords, v)
	}
	return r, err
}

// next gives the next event, or io.EOF behind the last one.
func (r *recordReader) next() (Event, error) {
	for {
		tag, err := r.r.ReadByte()
		if err != nil {
			return nil, err
		}
		detail, err := r.r.ReadByte()
		if err != nil {
			return nil, unexpected(err)
		}
		number, err := binary.ReadUvarint(r.r)
		if err != nil {
			return nil, unexpected(err)
		}
		data, err := r.data(tag)
		if err != nil {
			return nil, err
		}
		if tag == recordTableMap {
			if err := r.tableMap(data); err != nil {
				return nil, err
			}
			continue
		}
		return r.event(tag, detail, number, data)
	}
}

func (r *recordReader) data(tag byte) ([]byte, error) {
	n, err := binary.ReadUvarint(r.r)
	if err != nil {
		return nil, unexpected(err)
	}
	if n > maxEvent {
		return nil, fmt.Errorf("%w: a record of %d bytes", ErrRecords, n)
	}
	if !r.reuse || tag == recordTableMap {
		return readSome(r.r, int(n))
	}
	if cap(r.buf) < int(n) {
		r.buf = make([]byte, n+n/4)
	}
	r.buf = r.buf[:n]
	_, err = io.ReadFull(r.r, r.buf)
	return r.buf, unexpected(err)
}

// readSome reads n bytes and trusts n with an allocation only as far as bytes follow.
func readSome(r io.Reader, n int) ([]byte, error) {
	const trusted = 1 << 20
	if n <= trusted {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, unexpected(err)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, unexpected(err)
	}
	return b.Bytes(), nil
}

func (r *recordReader) tableMap(raw []byte) error {
	r.met++
	if r.met <= r.known {
		return nil
	}
	m, err := parseTableMap(raw)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRecords, err)
	}
	r.maps = append(r.maps, m)
	return nil
}

func (r *recordReader) event(tag, detail byte, number uint64, data []byte) (Event, error) {
	switch tag {
	case recordRows:
		if number >= uint64(r.met) || Action(detail) < Insert || Action(detail) > PartialUpdate {
			return nil, fmt.Errorf("%w: a row event of map %d, action %d", ErrRecords, number, detail)
		}
		return &RowsEvent{Table: r.maps[number], Action: Action(detail), body: data}, nil
	case recordStatement:
		st, err := parseStatement(data, uint32(number), detail == flagLoad)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRecords, err)
		}
		return st, nil
	}
	return nil, fmt.Errorf("%w: tag %d", ErrRecords, tag)
}

// MarshalEvents gives the events of the transaction, with their table maps, in a form that UnmarshalEvents of this
// and all later releases reads. It holds them all in memory. The rest of the transaction is not part of it.
func (t *Transaction) MarshalEvents() ([]byte, error) {
	var b bytes.Buffer
	w, err := newRecordWriter(&b)
	if err != nil {
		return nil, err
	}
	for e, err := range t.Events() {
		if err != nil {
			return nil, err
		}
		if err := w.add(e); err != nil {
			return nil, err
		}
	}
	if err := w.w.Flush(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// UnmarshalEvents makes a transaction of which only the events, their number and their size are set. Errors wrap
// ErrRecords.
func UnmarshalEvents(b []byte) (*Transaction, error) {
	r, err := newRecordReader(bytes.NewReader(b))
	if err != nil {
		return nil, damaged(err)
	}
	t := &Transaction{}
	for {
		e, err := r.next()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, damaged(err)
		}
		t.add(e)
	}
}

func damaged(err error) error {
	if errors.Is(err, ErrRecords) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrRecords, unexpected(err))
}
