package binlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
)

// Bytes are those of a log file. They stay readable until Close, even if the file is removed meanwhile.
type Bytes interface {
	io.ReaderAt
	io.Closer
}

// reread is a transaction whose events are read from their log file a second time, since they are too many for memory.
type reread struct {
	bytes    Bytes // nil once closed
	at       int64 // where the transaction begins
	checksum bool
	maps     map[*TableMap]bool // those of kept row events
}

func newReread(a *assembler, t *Transaction) (*reread, error) {
	bytes, err := a.again()
	if err != nil {
		return nil, fault(Local, "cannot read a large transaction again: %w", err)
	}
	r := &reread{bytes: bytes, at: t.at, checksum: a.checksum, maps: map[*TableMap]bool{}}
	for _, e := range t.mem {
		r.meet(e)
	}
	return r, nil
}

// meet notes what is needed of an event to know it again.
func (r *reread) meet(e Event) {
	if rows, ok := e.(*RowsEvent); ok {
		r.maps[rows.Table] = true
	}
}

var errEnough = errors.New("no more events are wanted")

func (r *reread) events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if r.bytes == nil {
			return
		}
		in := &fileEvents{r: bufio.NewReaderSize(io.NewSectionReader(r.bytes, r.at, math.MaxInt64-r.at), 256<<10)}
		again := reader{in: in, asm: r.assembler(yield)}
		defer again.close()
		if _, err := again.next(); err != nil && !errors.Is(err, errEnough) {
			yield(nil, rereadFault(err))
		}
	}
}

// assembler makes one that stands in front of the transaction and hands its events out.
func (r *reread) assembler(yield func(Event, error) bool) *assembler {
	a := newAssembler(nil, "", 0)
	a.formatted, a.checksum = true, r.checksum
	for m := range r.maps {
		a.interned[string(m.raw)] = m
	}
	a.emit = func(e Event) error {
		if !yield(e, nil) {
			return errEnough
		}
		return nil
	}
	return a
}

func rereadFault(err error) error {
	const doing = "read a large transaction again"
	var own *Error
	if errors.As(err, &own) {
		return &Error{Class: own.Class, Err: fmt.Errorf("%s: %w", doing, own.Err)}
	}
	return fault(Corrupt, "%s: %w", doing, unexpected(err))
}

func (r *reread) close() error {
	if r.bytes == nil {
		return nil
	}
	err := r.bytes.Close()
	r.bytes = nil
	return err
}
