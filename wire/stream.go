package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Field describes one column of a streamed result.
type Field struct {
	Name     string
	Type     byte
	Unsigned bool
	Decimals byte
}

// definitionSkip is what a column's definition has in front of its type: character set and display width.
const definitionSkip = 2 + 4

// parseField reads catalog, database, table, original table, name and original name, each length-encoded, the length of
// the rest, u16 character set, u32 width, u8 type, u16 flags, u8 decimals.
func parseField(b []byte) (Field, error) {
	p := packetReader{rest: b}
	for range 4 {
		p.text()
	}
	f := Field{Name: string(p.text())}
	p.text()
	p.length()
	p.take(definitionSkip)
	f.Type = byte(p.number(1))
	f.Unsigned = p.number(2)&mysql.UNSIGNED_FLAG != 0
	f.Decimals = byte(p.number(1))
	if p.bad {
		return Field{}, mysql.ErrMalformPacket
	}
	return f, nil
}

// maxColumns is more than a result can have.
const maxColumns = 1 << 16

// readFields reads the beginning of an answer: its columns, nil where it has no rows.
func (p *packets) readFields() ([]Field, error) {
	head, err := p.read()
	if err != nil {
		return nil, err
	}
	if head[0] == mysql.OK_HEADER {
		return nil, nil
	}
	f := packetReader{rest: head}
	count, null := f.length() // NULL stands for LOAD DATA LOCAL, which was not asked for
	if f.bad || null || len(f.rest) > 0 || count == 0 || count > maxColumns {
		return nil, mysql.ErrMalformPacket
	}
	out := make([]Field, count)
	for i := range out {
		b, err := p.read()
		if err != nil {
			return nil, err
		}
		if out[i], err = parseField(b); err != nil {
			return nil, err
		}
	}
	return out, p.readEnd()
}

// Rows is a streamed result in the binary protocol. It must be read to its end (see Drop) or the connection closed.
type Rows struct {
	conn      *Conn
	statement uint32
	ctx       context.Context
	unlock    func()
	count     int64
	bytes     int64
	done      bool

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
	p := r.conn.packets
	p.grow()
	statement, err := p.prepare(query)
	if err != nil {
		return err
	}
	r.statement = statement
	// Without a cursor the server sends all rows at once, in its own pace: u32 statement, u8 flags, u32 1.
	execute := binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_EXECUTE}, statement)
	if err := p.command(append(execute, mysql.CURSOR_TYPE_NO_CURSOR, 1, 0, 0, 0)...); err != nil {
		return err
	}
	if r.Fields, err = p.readFields(); err == nil && r.Fields == nil {
		err = errors.New("the statement gives no rows")
	}
	return err
}

// prepare gives the number of a prepared statement. The answer is 0x00, u32 statement, u16 columns, u16 parameters, and the
// definitions of both.
func (p *packets) prepare(query string) (uint32, error) {
	if err := p.command(append([]byte{mysql.COM_STMT_PREPARE}, query...)...); err != nil {
		return 0, err
	}
	head, err := p.read()
	if err != nil {
		return 0, err
	}
	f := packetReader{rest: head[1:]}
	statement, columns, params := uint32(f.number(4)), f.number(2), f.number(2)
	if f.bad || head[0] != mysql.OK_HEADER {
		return 0, mysql.ErrMalformPacket
	}
	for _, definitions := range []uint64{params, columns} {
		if err := p.skipFields(definitions); err != nil {
			return 0, err
		}
	}
	return statement, nil
}

func (p *packets) skipFields(n uint64) error {
	if n == 0 {
		return nil
	}
	for range n {
		if _, err := p.read(); err != nil {
			return err
		}
	}
	return p.readEnd()
}

// Next gives the next row as its packet, valid until the next call; nil at the end of the result.
func (r *Rows) Next() ([]byte, error) {
	if r.done {
		return nil, nil
	}
	p, err := r.conn.packets.read()
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
	if err := r.conn.packets.command(binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_CLOSE}, r.statement)...); err != nil {
		return r.conn.wrap(r.ctx, err)
	}
	return nil
}

// Count is the number of rows read so far, Bytes their size on the network.
func (r *Rows) Count() int64 { return r.count }

// Bytes is the size of the rows read so far, as they came.
func (r *Rows) Bytes() int64 { return r.bytes }
