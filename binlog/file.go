package binlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tidemarkdb/tidemark/gtid"
)

// File reads the transactions of one binlog file on disk, as the server or mysqlbinlog --raw wrote it.
type File struct {
	file   *os.File
	reader reader
}

// OpenFile opens a binlog file. Of cfg, Follow, SpillDir and SpillBytes are used.
func OpenFile(path string, cfg Config) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault(Local, "cannot read a binlog file: %w", err)
	}
	r, err := newFileReader(f, filepath.Base(path), cfg)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{f, r}, nil
}

// Next gives the next transaction, or io.EOF at the end of the file. A transaction that the file has only a part of is
// not given.
func (f *File) Next() (*Transaction, error) {
	for {
		tx, err := f.reader.next()
		if err != nil || tx.Kind != Progress {
			return tx, err
		}
	}
}

// Close closes the file.
func (f *File) Close() error {
	f.reader.close()
	return f.file.Close()
}

var fileMagic = [4]byte{0xfe, 'b', 'i', 'n'}

func newFileReader(in io.Reader, name string, cfg Config) (reader, error) {
	cfg = cfg.withDefaults()
	events := &fileEvents{r: bufio.NewReaderSize(in, 256<<10)}
	var magic [4]byte
	if _, err := io.ReadFull(events.r, magic[:]); err != nil || magic != fileMagic {
		return reader{}, fault(Corrupt, "%s is not a binlog file, or it is encrypted", name)
	}
	asm := newAssembler(cfg.Follow, cfg.SpillDir, cfg.SpillBytes)
	asm.pos = gtid.Position{File: name, Offset: uint64(len(magic))}
	return reader{in: events, asm: asm}, nil
}

// fileEvents takes events out of a file.
type fileEvents struct {
	r     *bufio.Reader
	arena arena
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
	if size > 16<<20 {
		return f.large(int64(size))
	}
	b := f.arena.alloc(int(size))
	if _, err := io.ReadFull(f.r, b); err != nil {
		return nil, fault(Corrupt, "file ends within an event: %w", unexpected(err))
	}
	return b, nil
}

// large reads an event whose size is not to be trusted with an allocation before its bytes are there.
func (f *fileEvents) large(size int64) ([]byte, error) {
	f.arena.last = 0
	b, err := io.ReadAll(io.LimitReader(f.r, size))
	if err == nil && int64(len(b)) < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fault(Corrupt, "file ends within an event: %w", err)
	}
	return b, nil
}

func (f *fileEvents) giveBack() { f.arena.undo() }
