package relay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// bufferBytes is what a writer collects while more is at hand.
const bufferBytes = 256 << 10

// output is where a writer writes: an *os.File, but for tests of what a disk may do.
type output interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Close() error
}

// writer appends events to the newest file. What it has written counts from the next flush on, up to the end of the
// last transaction: until then nobody sees it.
type writer struct {
	r      *Relay
	source gtid.UUID
	bySet  bool

	file *file  // nil: the next transaction begins one
	out  output // of file
	off  int64  // of file, the buffer included
	buf  []byte
	// format is the format description of what comes, place where on the source it stands.
	format []byte
	place  gtid.Position
	// end and size are what a flush makes valid.
	end    spooled
	size   int64
	inside bool
	asked  int64               // off when there was room
	wrap   func(output) output // nil but in tests
	failed bool                // a write failed: what is in the file behind what is visible is not known
}

// newWriter goes on behind the last transaction.
func (r *Relay) newWriter(source gtid.UUID) (*writer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &writer{r: r, source: source, bySet: !r.byPosition(), end: r.spooled, place: r.spooled.point.Position}
	if len(r.files) == 0 {
		return w, nil
	}
	// What lies behind the last transaction is the rest of an earlier try.
	last := r.files[len(r.files)-1]
	if err := os.Truncate(filepath.Join(r.cfg.Dir, last.name), last.size); err != nil {
		return nil, local("cut off half a transaction", err)
	}
	if w.bySet || last.log != r.spooled.point.Position.File {
		return w, nil // which begins a file
	}
	out, err := os.OpenFile(filepath.Join(r.cfg.Dir, last.name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, local("go on with a file", err)
	}
	w.file, w.out, w.off, w.size = last, out, last.size, last.size
	return w, nil
}

// take adds the next event of the source.
func (w *writer) take(raw []byte, step binlog.Step) error {
	was := w.place
	w.place = step.Position
	switch step.Mark {
	case binlog.MarkSwitch:
		return w.turn(step)
	case binlog.MarkSign:
		return w.sign(step)
	case binlog.MarkFormat:
		return w.begin(raw, step)
	case binlog.MarkPrevious:
		if w.bySet {
			return nil // ours stands in its place
		}
	case binlog.MarkNone:
	}
	if w.passed(step.Position) {
		return nil
	}
	if w.file == nil {
		if !step.Inside && step.Transaction == nil {
			return nil // by GTIDs what lies between transactions begins no file
		}
		if err := w.create(was); err != nil {
			return err
		}
	}
	if err := w.add(binlog.Sealed(raw, step.Checksum)); err != nil {
		return err
	}
	return w.border(step)
}

// passed tells of an event that it is in the file already, since the source could not be asked for a later place.
func (w *writer) passed(at gtid.Position) bool {
	here := w.end.point.Position
	return !w.bySet && w.file != nil && at.File == here.File && at.Offset <= here.Offset
}

// turn goes on in another place of the source.
func (w *writer) turn(step binlog.Step) error {
	if !w.bySet && w.file != nil && w.file.log == step.Position.File {
		if here := w.end.point.Position; step.Position.Compare(here) > 0 {
			return &binlog.Error{Class: binlog.Corrupt, At: here, Err: fmt.Errorf("the source goes on at %s", step.Position)}
		}
		return nil
	}
	return w.leave()
}

// leave ends the file; half a transaction in it never was, as the source died while it wrote it.
func (w *writer) leave() error {
	if w.file == nil {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	err := w.out.Truncate(w.size)
	if err = errors.Join(err, w.out.Close()); err != nil {
		return local("end a file", err)
	}
	w.file, w.out, w.inside = nil, nil, false
	return nil
}

// begin takes a format description. By position it begins a file, or repeats how the one in hand begins.
func (w *writer) begin(raw []byte, step binlog.Step) error {
	w.format = append([]byte(nil), binlog.Sealed(raw, step.Checksum)...)
	if w.bySet {
		return w.leave()
	}
	if w.file != nil {
		if last := w.end.last; last.Start.File == w.file.log && last.FileCreated != step.Created {
			return &binlog.Error{Class: binlog.Rewound, At: w.end.point.Position, Err: errors.New("the source has begun the binlog file anew")}
		}
		return nil
	}
	if err := w.create(step.Position); err != nil {
		return err
	}
	return w.border(step)
}

// create begins a file for what stands on the source from place on.
func (w *writer) create(place gtid.Position) error {
	f, head, err := w.next(place)
	if err != nil {
		return err
	}
	path := filepath.Join(w.r.cfg.Dir, f.name)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return local("begin a file", err)
	}
	w.file, w.out, w.off, w.size = f, out, 0, 0
	if w.wrap != nil {
		w.out = w.wrap(out)
	}
	w.buf, w.off = append(w.buf, head...), int64(len(head))
	if err := w.drain(); err != nil {
		w.file = nil
		return errors.Join(err, out.Close(), os.Remove(path)) // without its head it is none
	}
	w.size = w.off
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	f.size = w.size
	w.r.files = append(w.r.files, f)
	w.r.bytes += f.size
	w.r.signal()
	return nil
}

// next gives the file behind the last one, and what it begins with.
func (w *writer) next(place gtid.Position) (*file, []byte, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	head := append(binlog.FileMagic(), w.format...)
	var last *file
	if n := len(w.r.files); n > 0 {
		last = w.r.files[n-1]
	}
	if !w.bySet {
		f, err := of(w.source, place.File)
		if err == nil && last != nil {
			if bad := follows(last, f); bad != nil {
				err = &binlog.Error{Class: binlog.Corrupt, At: w.end.point.Position, Err: fmt.Errorf("the source goes on with file %s: %w", place.File, bad)}
			}
		}
		return f, head, err
	}
	number := uint64(1)
	if last != nil {
		number = last.number + 1
	}
	f := numbered(w.source, number, gtid.Point{Set: w.end.point.Set, Position: place})
	return f, append(append(head, binlog.PreviousEvent(f.begin.Set)...), binlog.SwitchEvent(place)...), nil
}

// add writes through the buffer.
func (w *writer) add(raw []byte) error {
	if len(w.buf)+len(raw) > bufferBytes {
		if err := w.drain(); err != nil {
			return err
		}
	}
	if len(raw) > bufferBytes {
		if err := w.write(raw); err != nil {
			return err
		}
	} else {
		w.buf = append(w.buf, raw...)
	}
	w.off += int64(len(raw))
	return nil
}

func (w *writer) drain() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *writer) write(b []byte) error {
	if _, err := w.out.Write(b); err != nil {
		w.failed = true
		return local("write", err)
	}
	return nil
}

// border notes what the event completed.
func (w *writer) border(step binlog.Step) error {
	if t := step.Transaction; t != nil {
		w.end.last, w.end.behind = t.Identity(), t.End
		if w.bySet {
			w.end.point.Set = w.end.point.Set.Add(t.GTID)
		}
	}
	if w.inside = step.Inside; w.inside {
		return nil
	}
	w.size, w.end.point.Position = w.off, step.Position
	if w.bySet && w.off >= w.r.cfg.FileBytes {
		return w.leave()
	}
	return nil
}

// flush makes everything up to the last border visible.
func (w *writer) flush() error {
	if w.file == nil || w.failed {
		return nil
	}
	if err := w.drain(); err != nil {
		return err
	}
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.size == 0 || w.file.size == w.size && r.spooled.point.Position == w.end.point.Position {
		return nil
	}
	r.bytes += w.size - w.file.size
	w.file.size, r.spooled = w.size, w.end
	r.signal()
	return nil
}

// sign passes a sign of life on. By GTIDs the source starts at the head of a file, in front of where we are.
func (w *writer) sign(step binlog.Step) error {
	if w.inside || step.Inside {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	at := step.Position
	if here := w.end.point.Position; at.SameSeries(here) && at.Compare(here) < 0 {
		at = here
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.sign = sign{w.r.sign.number + 1, at}
	w.r.signal()
	return nil
}

// close leaves the file at its last whole transaction.
func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	w.r.mu.Lock()
	size := w.file.size
	w.r.mu.Unlock()
	if err := errors.Join(w.out.Truncate(size), w.out.Close()); err != nil {
		return local("end a file", err)
	}
	return nil
}
