package binlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// unpacker gives the events of compressed transactions one by one.
type unpacker struct {
	zstd  *zstd.Decoder
	arena arena
}

// open starts on a payload. The events that next gives have no checksum and no position of their own.
func (u *unpacker) open(p payload) (*unpacked, error) {
	src := io.Reader(bytes.NewReader(p.data))
	if !p.zstd {
		return &unpacked{r: src, arena: &u.arena, left: uint64(len(p.data))}, nil
	}
	if u.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		u.zstd = d
	}
	if err := u.zstd.Reset(src); err != nil {
		return nil, err
	}
	return &unpacked{r: u.zstd, arena: &u.arena, left: p.uncompressed}, nil
}

func (u *unpacker) close() {
	if u.zstd != nil {
		u.zstd.Close()
	}
}

type unpacked struct {
	r     io.Reader
	arena *arena
	left  uint64
}

// next gives one event, or io.EOF behind the last.
func (u *unpacked) next() ([]byte, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(u.r, head[:]); err != nil {
		if err == io.EOF && u.left > 0 {
			err = errors.New("ends early")
		}
		return nil, err
	}
	h, err := parseHeader(head[:])
	if err != nil {
		return nil, err
	}
	if uint64(h.Size) > u.left || h.Size > maxEvent {
		return nil, fmt.Errorf("event of %d bytes where %d are left", h.Size, u.left)
	}
	u.left -= uint64(h.Size)
	raw := u.arena.alloc(int(h.Size))
	copy(raw, head[:])
	_, err = io.ReadFull(u.r, raw[headerSize:])
	return raw, unexpected(err)
}
