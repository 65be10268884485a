package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"
)

const (
	packetHeader = 4
	maxPayload   = 1<<24 - 1
	eofLimit     = 9 // an end packet is shorter

	smallBuffer = 16 << 10  // of a session
	readBuffer  = 256 << 10 // of one that streams rows
)

// packets reads and writes MySQL's packets. The first error of the network leaves it useless.
type packets struct {
	conn net.Conn // with TLS, where there is
	br   *bufio.Reader
	seq  byte
	long []byte // a row of several packets, and any packet longer than the read buffer
}

func newPackets(conn net.Conn) *packets {
	return &packets{conn: conn, br: bufio.NewReaderSize(conn, smallBuffer)}
}

// grow makes the buffer one for many rows. Nothing may be on its way.
func (p *packets) grow() {
	if p.br.Size() < readBuffer {
		p.br = bufio.NewReaderSize(p.conn, readBuffer)
	}
}

// command sends the first packet of an exchange.
func (p *packets) command(payload ...byte) error {
	p.seq = 0
	return p.write(payload)
}

// write sends one packet, in pieces where it is a long one.
func (p *packets) write(payload []byte) error {
	for {
		n := min(len(payload), maxPayload)
		piece := append([]byte{byte(n), byte(n >> 8), byte(n >> 16), p.seq}, payload[:n]...)
		p.seq++
		if _, err := p.conn.Write(piece); err != nil {
			return err
		}
		if payload = payload[n:]; n < maxPayload {
			return nil
		}
	}
}

// read gives one packet, of any size, and turns an error packet into an error. The result is never empty and valid until
// the next call; it points into the read buffer where it fits.
func (p *packets) read() ([]byte, error) {
	b, err := p.payload()
	if err != nil {
		return nil, err
	}
	if len(b) == maxPayload {
		if b, err = p.joined(b); err != nil {
			return nil, err
		}
	}
	if len(b) == 0 {
		return nil, mysql.ErrMalformPacket
	}
	if b[0] == mysql.ERR_HEADER {
		return nil, errorPacket(b)
	}
	return b, nil
}

func (p *packets) payload() ([]byte, error) {
	head, err := p.br.Peek(packetHeader)
	if err != nil {
		return nil, unexpected(err)
	}
	size := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if head[3] != p.seq {
		return nil, fmt.Errorf("packet %d came where %d was due", head[3], p.seq)
	}
	p.seq++
	if size+packetHeader > p.br.Size() {
		return p.largePayload(size)
	}
	// The bytes stay in the buffer until the next read moves them: Discard does not.
	b, err := p.br.Peek(packetHeader + size)
	if err != nil {
		return nil, unexpected(err)
	}
	_, err = p.br.Discard(packetHeader + size)
	return b[packetHeader:], err
}

func (p *packets) largePayload(size int) ([]byte, error) {
	if _, err := p.br.Discard(packetHeader); err != nil {
		return nil, unexpected(err)
	}
	if cap(p.long) < size {
		p.long = make([]byte, size)
	}
	b := p.long[:size]
	_, err := io.ReadFull(p.br, b)
	return b, unexpected(err)
}

// joined reads the packets that follow one of full length, up to a shorter one.
func (p *packets) joined(first []byte) ([]byte, error) {
	whole := append([]byte(nil), first...)
	for {
		b, err := p.payload()
		if err != nil {
			return nil, err
		}
		whole = append(whole, b...)
		if len(b) < maxPayload {
			p.long = nil // as large again for every row would keep the largest row's memory
			return whole, nil
		}
	}
}

// readOK reads the answer to a command that has no rows.
func (p *packets) readOK() error {
	b, err := p.read()
	if err == nil && b[0] != mysql.OK_HEADER {
		err = mysql.ErrMalformPacket
	}
	return err
}

// readEnd reads the packet behind a list of definitions.
func (p *packets) readEnd() error {
	b, err := p.read()
	if err == nil && !isEnd(b) {
		err = mysql.ErrMalformPacket
	}
	return err
}

func isEnd(p []byte) bool { return p[0] == mysql.EOF_HEADER && len(p) < eofLimit }

// unexpected names an end of the stream in the middle of a result.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errorPacket reads 0xFF, u16 code, then, but for errors in front of a login, '#' and five bytes of SQL state, and the message.
func errorPacket(p []byte) error {
	const codeEnd, stateEnd = 3, 9
	if len(p) < codeEnd {
		return mysql.ErrMalformPacket
	}
	my := &mysql.MyError{Code: binary.LittleEndian.Uint16(p[1:]), State: mysql.DEFAULT_MYSQL_STATE, Message: string(p[codeEnd:])}
	if len(p) >= stateEnd && p[codeEnd] == '#' {
		my.State, my.Message = string(p[codeEnd+1:stateEnd]), string(p[stateEnd:])
	}
	return my
}

// packetReader takes values out of a packet. What goes beyond its end makes it bad, and gives zeros from then on.
type packetReader struct {
	rest []byte
	bad  bool
}

func (f *packetReader) take(n uint64) []byte {
	if f.bad || n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return nil
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

// number takes an integer of n bytes.
func (f *packetReader) number(n uint64) uint64 {
	var v uint64
	for i, b := range f.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// length takes a length-encoded integer. null tells that NULL stands in its place.
func (f *packetReader) length() (v uint64, null bool) {
	switch first := f.number(1); first {
	case 0xFB:
		return 0, true
	case 0xFC:
		return f.number(2), false
	case 0xFD:
		return f.number(3), false
	case 0xFE:
		return f.number(8), false
	case 0xFF:
		f.bad, f.rest = true, nil
		return 0, false
	default:
		return first, false
	}
}

// text takes a length-encoded string; nil is NULL.
func (f *packetReader) text() []byte {
	n, null := f.length()
	b := f.take(n)
	if null {
		return nil
	}
	return b
}

// terminated takes a string up to a zero byte, or to the end where there is none.
func (f *packetReader) terminated() string {
	for i, b := range f.rest {
		if b == 0 {
			s := string(f.rest[:i])
			f.rest = f.rest[i+1:]
			return s
		}
	}
	return string(f.take(uint64(len(f.rest))))
}
