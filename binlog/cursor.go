package binlog

import (
	"encoding/binary"
	"errors"
)

var errShort = errors.New("ends early")

// cursor takes little-endian values off the front of b. After the first fault it gives zero values and keeps the
// error, so that a decoder checks once, at its end.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.fail(errShort)
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) u8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uint reads n bytes, 1 to 8.
func (c *cursor) uint(n int) uint64 {
	var v uint64
	for i, x := range c.take(n) {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// lenenc reads a length-encoded integer of the client/server protocol.
func (c *cursor) lenenc() uint64 {
	switch first := c.u8(); first {
	case 0xfc:
		return c.uint(2)
	case 0xfd:
		return c.uint(3)
	case 0xfe:
		return c.uint(8)
	case 0xfb, 0xff:
		c.fail(errors.New("bad length-encoded integer"))
		return 0
	default:
		return uint64(first)
	}
}

// length reads a length-encoded integer that counts bytes which must still follow.
func (c *cursor) length() int {
	n := c.lenenc()
	if n > uint64(len(c.b)) {
		c.fail(errShort)
		return 0
	}
	return int(n)
}

// varlen reads an unsigned integer of mysql::serialization: the number of trailing one bits of the first byte is the
// number of bytes that follow it.
func (c *cursor) varlen() uint64 {
	if len(c.b) == 0 {
		c.fail(errShort)
		return 0
	}
	extra := 0
	for extra < 8 && c.b[0]>>extra&1 == 1 {
		extra++
	}
	raw := c.take(extra + 1)
	var buf [9]byte
	copy(buf[:], raw)
	if extra == 8 {
		return binary.LittleEndian.Uint64(buf[1:])
	}
	return binary.LittleEndian.Uint64(buf[:8]) >> (extra + 1)
}

// varlenSigned reads a signed integer of mysql::serialization: the lowest bit is the sign.
func (c *cursor) varlenSigned() int64 {
	v := c.varlen()
	if v&1 == 0 {
		return int64(v >> 1)
	}
	return -1 - int64(v>>1)
}
