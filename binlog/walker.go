package binlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/tidemarkdb/tidemark/gtid"
)

// Mark says what an event means to somebody who keeps the log.
type Mark uint8

// The marks of events.
const (
	MarkNone     Mark = iota // part of the log, and nothing more
	MarkFormat               // the format description, with which a file begins
	MarkPrevious             // the set of GTIDs in front of the file; see Step.Previous
	MarkSwitch               // made up by the sender, no part of the log: what follows stands at Step.Position
	MarkSign                 // made up by the sender, no part of the log: a sign of life
)

// Step is what a Walker makes of one event.
type Step struct {
	Mark Mark
	// Position is the place on the source behind the event.
	Position gtid.Position
	// Previous is set for MarkPrevious.
	Previous gtid.Set
	// Transaction is the one that the event completes, without its events; nil inside and between transactions.
	Transaction *Transaction
	// Inside tells that a transaction has begun and is not complete.
	Inside bool
	// Created is when the file was created, seconds since 1970.
	Created uint32
	// Checksum tells that the event has one, which was right.
	Checksum bool
}

// Walker follows the events of a log, one by one as the source sends or stores them, only as far as it takes to tell
// transactions apart: nothing is decompressed or kept.
type Walker struct{ r reader }

// NewWalker begins at a place of a server's log, between two transactions.
func NewWalker(source gtid.UUID, at gtid.Position) *Walker {
	asm := newAssembler(func(string, string) bool { return false }, "", 0)
	asm.source, asm.pos = source, at
	asm.skip = func(*Transaction) bool { return true }
	return &Walker{reader{asm: asm}}
}

// Step takes the next whole event, verified where it has a checksum. Errors are as those of a Stream: of class Corrupt,
// UnknownEvent or Incident. Nothing of raw is kept.
func (w *Walker) Step(raw []byte) (Step, error) {
	step, err := w.step(raw)
	if err != nil {
		own := corrupt(err)
		own.At = w.r.asm.pos
		return Step{}, own
	}
	return step, nil
}

func (w *Walker) step(raw []byte) (Step, error) {
	a := w.r.asm
	e, err := parseEvent(raw, a.checksum)
	if err != nil {
		return Step{}, err
	}
	tx, err := w.r.step(e, raw)
	if err != nil {
		return Step{}, err
	}
	if tx != nil && tx.Kind == Progress {
		tx = nil
	}
	s := Step{Mark: markOf(e), Position: a.pos, Transaction: tx, Inside: a.tx != nil, Created: a.created, Checksum: len(e.body) < len(raw)-headerSize}
	if s.Mark == MarkPrevious {
		if s.Previous, err = gtid.DecodeMySQL(e.body); err != nil {
			return Step{}, fmt.Errorf("previous GTIDs: %w", err)
		}
	}
	return s, nil
}

// FileWalk walks through a whole log file. It is for one goroutine.
type FileWalk struct {
	in   *fileEvents
	walk *Walker
}

// NewFileWalk begins with the file's first byte; name is the file's on its source.
func NewFileWalk(in io.Reader, source gtid.UUID, name string) (*FileWalk, error) {
	events, err := newFileEvents(in, name)
	if err != nil {
		return nil, err
	}
	return &FileWalk{events, NewWalker(source, gtid.Position{File: name, Offset: uint64(len(fileMagic))})}, nil
}

// Next gives the next event, whose bytes are valid until the next call, or io.EOF at the end; any other error is an
// *Error.
func (f *FileWalk) Next() ([]byte, Step, error) {
	f.in.giveBack()
	raw, err := f.in.next()
	if err != nil {
		return nil, Step{}, err
	}
	step, err := f.walk.Step(raw)
	return raw, step, err
}

// Offset is the number of bytes up to the end of the last event that was read.
func (f *FileWalk) Offset() int64 { return f.in.off }

func markOf(e event) Mark {
	switch {
	case e.Type == evFormatDescription:
		return MarkFormat
	case e.Type == evPreviousGTIDs:
		return MarkPrevious
	case e.Type == evRotate && !e.inFile():
		return MarkSwitch
	case e.Type == evHeartbeat, e.Type == evHeartbeatV2:
		return MarkSign
	}
	return MarkNone
}

// Sealed gives the event with a checksum: itself where it has one, else a copy that ends in one. A format description is
// given as one of a log with checksums, and as one of a file that is closed; it bears a flag if it had none.
func Sealed(raw []byte, hasChecksum bool) []byte {
	if len(raw) < headerSize+checksumSize+1 {
		return raw
	}
	format := eventType(raw[4]) == evFormatDescription
	switch {
	case format && (!hasChecksum || raw[17]&flagInUse != 0):
		out := append([]byte(nil), raw...)
		out[17] &^= flagInUse
		if !hasChecksum {
			out[17] |= flagRelay
		}
		out[len(out)-checksumSize-1] = checksumCRC32
		seal(out)
		return out
	case hasChecksum:
		return raw
	}
	out := append(append(make([]byte, 0, len(raw)+checksumSize), raw...), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(out[9:], uint32(len(out)))
	seal(out)
	return out
}

// seal computes the checksum, for which there must be room.
func seal(raw []byte) {
	end := len(raw) - checksumSize
	binary.LittleEndian.PutUint32(raw[end:], crc32.ChecksumIEEE(raw[:end]))
}

// PreviousEvent makes the event that says which GTIDs lie in front of a file.
func PreviousEvent(s gtid.Set) []byte { return madeUp(evPreviousGTIDs, s.AppendMySQL(nil)) }

// SwitchEvent makes the event that says where on the source the following events stand.
func SwitchEvent(p gtid.Position) []byte {
	return madeUp(evRotate, append(binary.LittleEndian.AppendUint64(nil, p.Offset), p.File...))
}

// madeUp is an event with a checksum that stands in no file of the source.
func madeUp(typ eventType, body []byte) []byte {
	size := headerSize + len(body) + checksumSize
	raw := make([]byte, headerSize, size)
	raw[4] = byte(typ)
	binary.LittleEndian.PutUint32(raw[9:], uint32(size))
	binary.LittleEndian.PutUint16(raw[17:], flagArtificial)
	raw = append(raw, body...)[:size]
	seal(raw)
	return raw
}

// FileMagic is what every binlog file begins with.
func FileMagic() []byte { return fileMagic[:] }

// FormatServer gives the version that a format description names, such as 8.4.6.
func FormatServer(raw []byte) string {
	c := cursor{b: raw}
	c.take(headerSize + 2)
	version := c.take(50)
	for i, b := range version {
		if b == 0 {
			return string(version[:i])
		}
	}
	return string(version)
}
