package binlog

import (
	"bufio"
	"encoding/binary"
	"io"
	"iter"
	"math"
	"os"
)

// spill is a temporary file of events. It has no name from the start, so that nothing is left after a crash, and no
// checksums, because nobody reads it but the process that wrote it.
//
// Each record is: u8 tag, u32 argument, u32 length, then the bytes. For row events the argument is the index of the
// table map and the tag is the action; for statements it is the header's timestamp.
type spill struct {
	file *os.File
	w    *bufio.Writer
	maps []*TableMap
	last map[*TableMap]uint32
	size int64
}

const (
	tagStatement     = 0x40
	tagLoadStatement = 0x41
	spillHeader      = 1 + 4 + 4
)

func newSpill(dir string) (*spill, error) {
	f, err := os.CreateTemp(dir, "transaction-*.spill")
	if err != nil {
		return nil, fault(Local, "cannot spill a large transaction: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fault(Local, "cannot spill a large transaction: %w", err)
	}
	return &spill{file: f, w: bufio.NewWriterSize(f, 256<<10), last: map[*TableMap]uint32{}}, nil
}

func (s *spill) add(e Event) error {
	var head [spillHeader]byte
	var data []byte
	switch e := e.(type) {
	case *RowsEvent:
		head[0], data = byte(e.Action), e.body
		binary.LittleEndian.PutUint32(head[1:], s.index(e.Table))
	case *Statement:
		head[0], data = tagStatement, e.raw
		if e.load {
			head[0] = tagLoadStatement
		}
		binary.LittleEndian.PutUint32(head[1:], e.timestamp)
	}
	binary.LittleEndian.PutUint32(head[5:], uint32(len(data)))
	_, _ = s.w.Write(head[:]) // a fault stays in the writer and comes back from the next call
	if _, err := s.w.Write(data); err != nil {
		return fault(Local, "cannot spill a large transaction: %w", err)
	}
	s.size += spillHeader + int64(len(data))
	return nil
}

func (s *spill) index(m *TableMap) uint32 {
	i, ok := s.last[m]
	if !ok {
		i = uint32(len(s.maps))
		s.maps, s.last[m] = append(s.maps, m), i
	}
	return i
}

// finish makes what was added readable.
func (s *spill) finish() error {
	if err := s.w.Flush(); err != nil {
		return fault(Local, "cannot spill a large transaction: %w", err)
	}
	s.w, s.last = nil, nil
	return nil
}

func (s *spill) events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if s.file == nil {
			return
		}
		r := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, math.MaxInt64), 256<<10)
		var buf []byte
		for left := s.size; left > 0; {
			e, next, err := s.read(r, buf)
			if err != nil {
				yield(nil, fault(Local, "cannot read a spilled transaction back: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
			buf = next
			left -= spillHeader + int64(len(next))
		}
	}
}

// read takes one record, into buf if it has room.
func (s *spill) read(r io.Reader, buf []byte) (Event, []byte, error) {
	var head [spillHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, nil, err
	}
	arg, n := binary.LittleEndian.Uint32(head[1:]), int(binary.LittleEndian.Uint32(head[5:]))
	if cap(buf) < n {
		buf = make([]byte, n, n+n/4)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, nil, err
	}
	if head[0] >= tagStatement {
		st, err := parseStatement(buf, arg, head[0] == tagLoadStatement)
		return st, buf, err
	}
	return &RowsEvent{Table: s.maps[arg], Action: Action(head[0]), body: buf}, buf, nil
}

func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
