package binlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/tidemarkdb/tidemark/gtid"
)

// LogConfig says what of a log file to read, and how.
type LogConfig struct {
	// Name is the file's name on its source, and Source the server's UUID, for positions and identities.
	Name   string
	Source gtid.UUID
	// Follow, SpillDir and SpillBytes are as in Config.
	Follow     func(database, table string) bool
	SpillDir   string
	SpillBytes int64
	// Again gives the bytes of the file once more. With it, a transaction beyond SpillBytes is not written to SpillDir: its
	// events are read from the file again by each call of Events. The bytes are closed by Release.
	Again func() (Bytes, error)
	// Skip tells of a transaction, of which only what stands in its head is known, that it is not wanted; nil: all are.
	// Nothing of it is decompressed or kept.
	Skip func(*Transaction) bool
}

// Log reads the transactions of one log file in the server's format: of a source, of mysqlbinlog --raw, or a relay file.
// It is for one goroutine.
type Log struct {
	in     *fileEvents
	reader reader
}

var fileMagic = [4]byte{0xfe, 'b', 'i', 'n'}

// NewLog begins with the file's first byte. If in has a method Left() int64, the number of bytes that it is sure to have yet,
// a large event costs its size in memory and no more.
func NewLog(in io.Reader, cfg LogConfig) (*Log, error) {
	c := Config{Follow: cfg.Follow, SpillBytes: cfg.SpillBytes}.withDefaults()
	events, err := newFileEvents(in, cfg.Name)
	if err != nil {
		return nil, err
	}
	asm := newAssembler(c.Follow, cfg.SpillDir, c.SpillBytes)
	asm.pos = gtid.Position{File: cfg.Name, Offset: uint64(len(fileMagic))}
	asm.source, asm.again, asm.skip = cfg.Source, cfg.Again, cfg.Skip
	return &Log{events, reader{in: events, asm: asm}}, nil
}

// Next gives the next transaction that is wanted, or io.EOF at the end of what there is. A transaction of which only a
// part is there is not given. After io.EOF it may be called again, when in has more; after any other error, a *Error of
// class Corrupt, Local, UnknownEvent or Incident, not.
func (l *Log) Next() (*Transaction, error) {
	for {
		tx, err := l.reader.next()
		if err != nil {
			return nil, l.placed(err)
		}
		if tx.Kind != Progress && !tx.skipped {
			return tx, nil
		}
	}
}

// placed says where an error was met.
func (l *Log) placed(err error) error {
	var own *Error
	if errors.As(err, &own) && own.At.IsZero() {
		own.At = l.reader.asm.pos
	}
	return err
}

// Offset is the number of bytes up to the end of the last event that was read.
func (l *Log) Offset() int64 { return l.in.off }

// Inside tells that a part of a transaction was read.
func (l *Log) Inside() bool { return l.reader.asm.tx != nil }

// Position is the place on the source behind the last event that was read.
func (l *Log) Position() gtid.Position { return l.reader.asm.pos }

// Close frees what an unfinished transaction holds.
func (l *Log) Close() { l.reader.close() }

// fileEvents takes events out of a file.
type fileEvents struct {
	r     *bufio.Reader
	left  lefter // nil: not known
	arena arena
	off   int64 // behind the last event
}

// lefter is a reader that knows how many bytes it has yet to give, at least.
type lefter interface{ Left() int64 }

// newFileEvents begins with the file's first byte.
func newFileEvents(in io.Reader, name string) (*fileEvents, error) {
	f := &fileEvents{r: bufio.NewReaderSize(in, 256<<10), off: int64(len(fileMagic))}
	f.left, _ = in.(lefter)
	var magic [4]byte
	if _, err := io.ReadFull(f.r, magic[:]); err != nil || magic != fileMagic {
		return nil, fault(Corrupt, "%s is not a binlog file, or it is encrypted", name)
	}
	return f, nil
}

func (f *fileEvents) next() ([]byte, error) {
	head, err := f.r.Peek(headerSize)
	if err != nil {
		if errors.Is(err, io.EOF) && len(head) == 0 {
			return nil, io.EOF
		}
		return nil, fault(Corrupt, "file ends within an event: %w", unexpected(err))
	}
	size := binary.LittleEndian.Uint32(head[9:])
	if size < headerSize || size > maxEvent {
		return nil, fault(Corrupt, "event says it has %d bytes", size)
	}
	if size > 16<<20 && !f.has(int64(size)) {
		return f.large(int64(size))
	}
	b := f.arena.alloc(int(size))
	if _, err := io.ReadFull(f.r, b); err != nil {
		return nil, fault(Corrupt, "file ends within an event: %w", unexpected(err))
	}
	f.off += int64(size)
	return b, nil
}

// has tells whether so many bytes are there for sure, where the reader can tell.
func (f *fileEvents) has(size int64) bool {
	return f.left != nil && size <= f.left.Left()+int64(f.r.Buffered())
}

// large reads an event whose size is not to be trusted with an allocation before its bytes are there.
func (f *fileEvents) large(size int64) ([]byte, error) {
	f.arena.forget()
	b, err := io.ReadAll(io.LimitReader(f.r, size))
	if err == nil && int64(len(b)) < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fault(Corrupt, "file ends within an event: %w", err)
	}
	f.off += size
	return b, nil
}

func (f *fileEvents) offset() int64 { return f.off }
func (f *fileEvents) giveBack()     { f.arena.undo() }
