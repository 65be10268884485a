package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/wire"
)

// chunkRead is what one statement has read.
type chunkRead struct {
	rows, bytes int64
	end         boundary // the last key, when there may be more behind it
}

// errNoPlace says that a chunk ends at a key that can't be named: text that is not valid in its character set.
var errNoPlace = errors.New("the key of the last row can't be named")

// read reads the rows at the front of a stretch, limit of them, or all with 0. It ends before, at a row whose key it can
// name, when the rows are more than a chunk may have, or others wait for a lock of ours.
func (r *reader) read(ctx context.Context, s *stretch, limit int64) (got chunkRead, err error) {
	query := rangeQuery(s.table.table, s.table.key, s.bounded())
	if limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", limit)
	}
	if r.isFat(s.table) {
		r.fat.Lock()
		defer r.fat.Unlock()
	}
	r.begin()
	defer r.end()
	c := &counting{reader: r, ctx: ctx, table: s.table}
	err = eachRow(ctx, r.conn, s.table.table, query, r.rows, func(stream *wire.Rows, d *wire.Decoder, row []byte) error {
		if err := d.Row(row); err != nil {
			return err
		}
		r.loose++
		early := limit > 0 && r.early(c, stream, row)
		if early || stream.Count() == limit {
			if got.end, err = r.places.of(d, row); err != nil {
				return err
			}
			if got.end == nil && !early {
				return errors.Join(errNoPlace, stream.Drop())
			}
		}
		if err := c.row(stream); err != nil {
			return err
		}
		if early && got.end != nil {
			return r.interrupt(ctx, stream)
		}
		return nil
	})
	if errors.Is(err, errEarly) {
		err = nil
	}
	c.report()
	got.rows, got.bytes = c.rows, c.bytes
	return got, err
}

// bounded is what is left of a stretch, with an end where the table's last key is known.
func (s *stretch) bounded() keyRange {
	rng := s.rng
	if rng.upTo == nil {
		rng.upTo = s.last
	}
	return rng
}

func (r *reader) begin() {
	r.yield.Store(false)
	r.pace.running.Add(1)
	r.since.Store(time.Now().UnixNano())
}

func (r *reader) end() {
	r.since.Store(0)
	r.pace.running.Add(-1)
}

func (r *reader) isFat(t *tableWork) (fat bool) {
	r.queue.change(func() { fat = t.fat || t.rowBytes() > fatRow })
	return fat
}

// early tells whether the chunk has to end before its limit.
func (r *reader) early(c *counting, stream *wire.Rows, row []byte) bool {
	const tooMuch = 2
	if len(row) > fatRow && !r.isFat(c.table) {
		r.queue.change(func() { c.table.fat = true })
		return true
	}
	return stream.Bytes() > tooMuch*r.cfg.ChunkBytes || r.yield.Load()
}

// errEarly ends the rows of a chunk before the server has sent all that was asked for.
var errEarly = errors.New("the chunk ends early")

// interrupt ends the statement under way, in a session that goes on.
func (r *reader) interrupt(ctx context.Context, stream *wire.Rows) error {
	err := r.control.once(ctx, func(c *wire.Conn) error { return kill(ctx, c, r.conn) })
	if err != nil && wire.Code(err) != mysql.ER_NO_SUCH_THREAD { // which the rest of the rows will show
		return err
	}
	if err := stream.Drop(); err != nil && wire.Code(err) != mysql.ER_QUERY_INTERRUPTED {
		return err
	}
	return errEarly
}

// counting reports the rows of one statement, and hands them on in batches.
type counting struct {
	*reader
	ctx         context.Context //nolint:containedctx // of one statement
	table       *tableWork
	rows, bytes int64
	seen, size  int64
	paid        int64
}

// paidAtOnce is the number of rows between two looks at the bounded rate.
const paidAtOnce = 32

func (c *counting) row(stream *wire.Rows) error {
	c.rows, c.bytes = stream.Count(), stream.Bytes()
	if c.rows-c.paid >= paidAtOnce || c.cfg.RowsPerSecond > 0 && c.cfg.RowsPerSecond < paidAtOnce {
		paid := c.rows - c.paid
		c.paid = c.rows
		if err := c.pace.rows.take(c.ctx, paid); err != nil {
			return err
		}
	}
	if c.reader.rows.Rows() < c.cfg.BatchRows && c.reader.rows.Bytes() < c.cfg.BatchBytes {
		return nil
	}
	c.report()
	return c.flush()
}

func (c *counting) report() {
	if c.rows > c.seen {
		c.progress.read(c.table.table.Name, c.rows-c.seen, c.bytes-c.size)
		c.seen, c.size = c.rows, c.bytes
	}
}
