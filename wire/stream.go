package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

const (
	packetHeader = 4
	maxPayload   = 1<<24 - 1
	eofLimit     = 9 // an end packet is shorter
)

// Field describes one column of a streamed result.
type Field struct {
	Name     string
	Type     byte
	Unsigned bool
	Decimals byte
}

// Rows is a streamed result in the binary protocol. It must be read to its end (see Drop) or the connection closed.
type Rows struct {
	conn   *Conn
	stmt   *client.Stmt
	ctx    context.Context
	unlock func()
	seq    byte
	count  int64
	bytes  int64
	done   bool

	Fields []Field
}

// Stream runs a SELECT and gives its rows one at a time, as they arrive.
func (c *Conn) Stream(ctx context.Context, query string) (*Rows, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := &Rows{conn: c, ctx: ctx, unlock: c.guard(ctx)}
	if err := r.start(query); err != nil {
		r.unlock()
		return nil, c.wrap(ctx, err)
	}
	return r, nil
}

func (r *Rows) start(query string) error {
	stmt, err := r.conn.conn.Prepare(query)
	if err != nil {
		return err
	}
	r.stmt = stmt
	if r.conn.br == nil {
		// The connection below go-mysql's buffer: that buffer is empty here, as an answer was read to its end.
		r.conn.br = bufio.NewReaderSize(r.conn.conn.Conn.Conn, readBuffer)
	}
	if err := r.execute(); err != nil {
		return err
	}
	return r.readFields()
}

// execute asks for the result without a cursor, so that the server sends all rows at once, in its own pace.
func (r *Rows) execute() error {
	packet := []byte{10, 0, 0, 0, mysql.COM_STMT_EXECUTE, 0, 0, 0, 0, mysql.CURSOR_TYPE_NO_CURSOR, 1, 0, 0, 0}
	binary.LittleEndian.PutUint32(packet[5:], r.stmt.ID)
	_, err := r.conn.conn.Conn.Conn.Write(packet)
	r.seq = 1
	return err
}

func (r *Rows) readFields() error {
	head, err := r.packet()
	if err != nil {
		return err
	}
	if head[0] == mysql.OK_HEADER {
		return errors.New("the statement gives no rows")
	}
	count, _, n := mysql.LengthEncodedInt(head)
	if n != len(head) {
		return mysql.ErrMalformPacket
	}
	r.Fields = make([]Field, count)
	for i := range r.Fields {
		data, err := r.packet()
		if err != nil {
			return err
		}
		var f mysql.Field
		if err := f.Parse(append([]byte(nil), data...)); err != nil {
			return err
		}
		r.Fields[i] = Field{Name: string(f.Name), Type: f.Type, Unsigned: f.Flag&mysql.UNSIGNED_FLAG != 0, Decimals: f.Decimal}
	}
	end, err := r.packet()
	if err == nil && !isEnd(end) {
		err = mysql.ErrMalformPacket
	}
	return err
}

func isEnd(p []byte) bool { return p[0] == mysql.EOF_HEADER && len(p) < eofLimit }

// Next gives the next row as its packet, valid until the next call; nil at the end of the result.
func (r *Rows) Next() ([]byte, error) {
	if r.done {
		return nil, nil
	}
	p, err := r.packet()
	if err != nil {
		r.unlock()
		return nil, r.conn.wrap(r.ctx, err)
	}
	if isEnd(p) {
		return nil, r.finish()
	}
	if p[0] != mysql.OK_HEADER {
		r.unlock()
		return nil, r.conn.wrap(r.ctx, fmt.Errorf("a row begins with byte %#x", p[0]))
	}
	r.count++
	r.bytes += int64(len(p))
	return p, nil
}

// Drop reads the rest of the result and throws it away, so that the connection can be used again. It is for results that
// turn out to be of no use; a long one costs less to close the connection.
func (r *Rows) Drop() error {
	for {
		p, err := r.Next()
		if p == nil || err != nil {
			return err
		}
	}
}

func (r *Rows) finish() error {
	r.done = true
	r.unlock()
	if err := r.stmt.Close(); err != nil {
		return r.conn.wrap(r.ctx, err)
	}
	return nil
}

// Count is the number of rows read so far, Bytes their size on the network.
func (r *Rows) Count() int64 { return r.count }

// Bytes is the size of the rows read so far, as they came.
func (r *Rows) Bytes() int64 { return r.bytes }

// packet reads one packet, of any size, and turns an error packet into an error. The result is valid until the next
// call; it points into the read buffer where it fits.
func (r *Rows) packet() ([]byte, error) {
	p, err := r.payload()
	if err != nil {
		return nil, err
	}
	if len(p) == maxPayload {
		if p, err = r.joined(p); err != nil {
			return nil, err
		}
	}
	if len(p) == 0 {
		return nil, mysql.ErrMalformPacket
	}
	if p[0] == mysql.ERR_HEADER {
		return nil, errorPacket(p)
	}
	return p, nil
}

func (r *Rows) payload() ([]byte, error) {
	br := r.conn.br
	head, err := br.Peek(packetHeader)
	if err != nil {
		return nil, unexpected(err)
	}
	size := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if head[3] != r.seq {
		return nil, fmt.Errorf("packet %d came where %d was due", head[3], r.seq)
	}
	r.seq++
	if size+packetHeader > readBuffer {
		return r.largePayload(size)
	}
	// The bytes stay in the buffer until the next read moves them: Discard does not.
	p, err := br.Peek(packetHeader + size)
	if err != nil {
		return nil, unexpected(err)
	}
	_, err = br.Discard(packetHeader + size)
	return p[packetHeader:], err
}

func (r *Rows) largePayload(size int) ([]byte, error) {
	if _, err := r.conn.br.Discard(packetHeader); err != nil {
		return nil, unexpected(err)
	}
	if cap(r.conn.long) < size {
		r.conn.long = make([]byte, size)
	}
	p := r.conn.long[:size]
	_, err := io.ReadFull(r.conn.br, p)
	return p, unexpected(err)
}

// joined reads the packets that follow one of full length, up to a shorter one.
func (r *Rows) joined(first []byte) ([]byte, error) {
	whole := append([]byte(nil), first...)
	for {
		p, err := r.payload()
		if err != nil {
			return nil, err
		}
		whole = append(whole, p...)
		if len(p) < maxPayload {
			r.conn.long = nil // as large again for every row would keep the largest row's memory
			return whole, nil
		}
	}
}

// unexpected names an end of the stream in the middle of a result.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func errorPacket(p []byte) error {
	const head = 9 // 0xFF, code, '#', state
	if len(p) < head {
		return mysql.ErrMalformPacket
	}
	return &mysql.MyError{Code: binary.LittleEndian.Uint16(p[1:]), State: string(p[4:head]), Message: string(p[head:])}
}
