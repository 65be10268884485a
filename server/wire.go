package server

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// maxFrame is the largest payload of one packet of the protocol; longer ones are cut into several.
const maxFrame = 1<<24 - 1

// maxAllowedPacket is the longest payload that is read: what MySQL allows by default.
const maxAllowedPacket = 64 << 20

const (
	readBuffer  = 16 << 10
	writeBuffer = 64 << 10
)

var errPacketTooLarge = errors.New("packet is larger than max_allowed_packet")

// packet is one payload with the sequence number that the answer to it starts with.
type packet struct {
	payload []byte
	next    uint8
}

// packetReader reads payloads.
type packetReader struct{ r *bufio.Reader }

func newPacketReader(c net.Conn) *packetReader {
	return &packetReader{r: bufio.NewReaderSize(c, readBuffer)}
}

// read gives the next payload. A payload that came with a wrong length or sequence is an error.
func (r *packetReader) read() (packet, error) {
	var p packet
	for first := true; ; first = false {
		var header [4]byte
		if _, err := io.ReadFull(r.r, header[:]); err != nil {
			return p, err
		}
		n := int(uint32(header[0]) | uint32(header[1])<<8 | uint32(header[2])<<16)
		if !first && header[3] != p.next {
			return p, fmt.Errorf("packet %d arrived where packet %d was due", header[3], p.next)
		}
		p.next = header[3] + 1
		if len(p.payload)+n > maxAllowedPacket {
			return p, errPacketTooLarge
		}
		if err := r.append(&p, n); err != nil {
			return p, err
		}
		if n < maxFrame {
			return p, nil
		}
	}
}

// append grows as the bytes arrive, so that a length alone does not take memory.
func (r *packetReader) append(p *packet, n int) error {
	const step = 1 << 20
	for n > 0 {
		at, k := len(p.payload), min(n, step)
		p.payload = append(p.payload, make([]byte, k)...)
		if _, err := io.ReadFull(r.r, p.payload[at:]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// packetWriter writes payloads, buffered; flush sends them. Its first error sticks.
type packetWriter struct {
	conn    net.Conn
	w       *bufio.Writer
	seq     uint8
	timeout time.Duration // of one write that the peer does not take; 0: none
	err     error
}

func newPacketWriter(c net.Conn) *packetWriter {
	w := &packetWriter{conn: c}
	w.w = bufio.NewWriterSize(deadlineWriter{w}, writeBuffer)
	return w
}

// deadlineWriter gives every write to the network its own deadline.
type deadlineWriter struct{ w *packetWriter }

func (d deadlineWriter) Write(b []byte) (int, error) {
	if d.w.timeout > 0 {
		if err := d.w.conn.SetWriteDeadline(time.Now().Add(d.w.timeout)); err != nil {
			return 0, err
		}
	}
	return d.w.conn.Write(b)
}

func (w *packetWriter) write(payload []byte) error {
	for {
		n := min(len(payload), maxFrame)
		w.frame(payload[:n])
		payload = payload[n:]
		if n < maxFrame {
			return w.err
		}
	}
}

func (w *packetWriter) frame(b []byte) {
	if w.err != nil {
		return
	}
	n := len(b)
	header := [4]byte{byte(n), byte(n >> 8), byte(n >> 16), w.seq}
	w.seq++
	if _, w.err = w.w.Write(header[:]); w.err == nil {
		_, w.err = w.w.Write(b)
	}
}

func (w *packetWriter) flush() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// The protocol's integers and strings.

func appendUint16(b []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(b, v) }
func appendUint32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }

func appendLenInt(b []byte, v uint64) []byte {
	switch {
	case v < 251:
		return append(b, byte(v))
	case v < 1<<16:
		return append(b, 0xfc, byte(v), byte(v>>8))
	case v < 1<<24:
		return append(b, 0xfd, byte(v), byte(v>>8), byte(v>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), v)
}

func appendLenString(b []byte, s string) []byte {
	return append(appendLenInt(b, uint64(len(s))), s...)
}

func appendLenBytes(b, s []byte) []byte {
	return append(appendLenInt(b, uint64(len(s))), s...)
}

// decoder reads the fields of a payload. After the first field that is not there, ok is false and all fields are zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) bytes(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uint(n int) uint64 {
	var v uint64
	for i, c := range d.bytes(uint64(n)) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

func (d *decoder) lenInt() uint64 {
	switch first := d.uint(1); first {
	case 0xfc:
		return d.uint(2)
	case 0xfd:
		return d.uint(3)
	case 0xfe:
		return d.uint(8)
	case 0xfb, 0xff: // NULL and error have no place where integers are read
		d.bad = true
		return 0
	default:
		return first
	}
}

func (d *decoder) lenBytes() []byte { return d.bytes(d.lenInt()) }

// zeroString reads up to a zero byte.
func (d *decoder) zeroString() string {
	for i, c := range d.b {
		if c == 0 {
			s := string(d.bytes(uint64(i)))
			d.bytes(1)
			return s
		}
	}
	d.bad = true
	return ""
}

func (d *decoder) rest() []byte { return d.bytes(uint64(len(d.b))) }
