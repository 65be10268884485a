package clouds

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	maxPacket = 1<<24 - 1
	okHeader  = 0x00
	eofHeader = 0xfe
	errHeader = 0xff
	nullCell  = 0xfb
)

// packet is one packet of MySQL's protocol: three bytes of length, the sequence number, the payload.
type packet struct {
	seq     byte
	payload []byte
}

func readPacket(r io.Reader) (packet, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return packet{}, err
	}
	p := packet{seq: head[3], payload: make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)}
	_, err := io.ReadFull(r, p.payload)
	return p, err
}

func (p packet) write(w io.Writer) error {
	n := len(p.payload)
	if _, err := w.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), p.seq}); err != nil {
		return err
	}
	_, err := w.Write(p.payload)
	return err
}

// wantsTLS tells the client's request to go on encrypted: the head of a login, without the login.
func (p packet) wantsTLS() bool {
	const clientSSL, size = 0x0800, 32
	return len(p.payload) == size && binary.LittleEndian.Uint16(p.payload)&clientSSL != 0
}

// kind is the first byte.
func (p packet) kind() byte {
	if len(p.payload) == 0 {
		return 0
	}
	return p.payload[0]
}

func (p packet) isEOF() bool { return p.kind() == eofHeader && len(p.payload) < 9 }

var errShort = errors.New("a packet is too short")

// lengthEncoded reads an integer of the protocol's variable form. null tells the byte that stands for NULL.
func lengthEncoded(b []byte) (n uint64, null bool, rest []byte, err error) {
	if len(b) == 0 {
		return 0, false, nil, errShort
	}
	size := 0
	switch b[0] {
	case nullCell:
		return 0, true, b[1:], nil
	case 0xfc:
		size = 2
	case 0xfd:
		size = 3
	case 0xfe:
		size = 8
	default:
		return uint64(b[0]), false, b[1:], nil
	}
	if len(b) < 1+size {
		return 0, false, nil, errShort
	}
	var full [8]byte
	copy(full[:], b[1:1+size])
	return binary.LittleEndian.Uint64(full[:]), false, b[1+size:], nil
}

func appendLength(b []byte, n uint64) []byte {
	switch {
	case n < nullCell:
		return append(b, byte(n))
	case n < 1<<16:
		return binary.LittleEndian.AppendUint16(append(b, 0xfc), uint16(n))
	case n < 1<<24:
		return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}

// text reads a string with its length in front; nil is NULL.
func text(b []byte) (s *string, rest []byte, err error) {
	n, null, rest, err := lengthEncoded(b)
	if err != nil || null {
		return nil, rest, err
	}
	if uint64(len(rest)) < n {
		return nil, nil, errShort
	}
	v := string(rest[:n])
	return &v, rest[n:], nil
}

// Capabilities of the handshake that the proxy hides, so that packets can be read and results have one form.
const (
	hiddenLow  = 0x0020                               // compression
	hiddenHigh = 1<<(24-16) | 1<<(26-16) | 1<<(27-16) // no EOF packets, zstd, query attributes
)

// greeting hides capabilities in the server's first packet and replaces its version, unless version is empty.
func greeting(p packet, version string) (packet, error) {
	end := 1
	for end < len(p.payload) && p.payload[end] != 0 {
		end++
	}
	tail := p.payload[min(end, len(p.payload)):]
	const low, high = 1 + 4 + 8 + 1, 1 + 4 + 8 + 1 + 2 + 1 + 2
	if p.kind() != 10 || len(tail) < high+2 {
		return p, nil // an error of the server
	}
	out := append([]byte{10}, p.payload[1:end]...)
	if version != "" {
		out = append([]byte{10}, version...)
	}
	tail = append([]byte(nil), tail...)
	hide := func(at int, bits uint16) {
		binary.LittleEndian.PutUint16(tail[at:], binary.LittleEndian.Uint16(tail[at:])&^bits)
	}
	hide(low, hiddenLow)
	hide(high, hiddenHigh)
	return packet{p.seq, append(out, tail...)}, nil
}
