package binlog

import (
	"fmt"
	"io"
	"iter"
	"math"
	"os"
)

// spill is a temporary file of events, in the form of records.go. It has no name from the start, so that nothing is
// left after a crash, and no checksum, because nobody reads it but the process that wrote it.
type spill struct {
	file *os.File
	w    *recordWriter // nil once finished
	maps []*TableMap
}

func newSpill(dir string) (*spill, error) {
	f, err := os.CreateTemp(dir, "transaction-*.spill")
	if err != nil {
		return nil, spillFault(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, spillFault(err)
	}
	w, err := newRecordWriter(f)
	if err != nil {
		f.Close()
		return nil, spillFault(err)
	}
	return &spill{file: f, w: w}, nil
}

func spillFault(err error) error {
	return fault(Local, "cannot keep a large transaction in a temporary file: %w", err)
}

func (s *spill) add(e Event) error {
	if err := s.w.add(e); err != nil {
		return spillFault(err)
	}
	return nil
}

// finish makes what was added readable.
func (s *spill) finish() error {
	if err := s.w.w.Flush(); err != nil {
		return spillFault(err)
	}
	s.maps, s.w = s.w.maps, nil
	return nil
}

func (s *spill) events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if s.file == nil {
			return
		}
		r, err := newRecordReader(io.NewSectionReader(s.file, 0, math.MaxInt64))
		if err == nil {
			r.maps, r.known, r.reuse = s.maps, len(s.maps), true
		}
		for err == nil {
			var e Event
			if e, err = r.next(); err == nil && !yield(e, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(nil, spillFault(fmt.Errorf("read it back: %w", err)))
		}
	}
}

func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
