package snapshot

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// rangeRows is about how many rows a range of the table should have.
func (c *Config) rangeRows(s size) int64 {
	rows := c.ChunkRows
	if s.rowBytes > 0 {
		rows = min(rows, c.ChunkBytes/s.rowBytes)
	}
	return max(rows, 1000)
}

// cutter cuts one table into ranges, inside a reader's read view. The first range has no lower end and the last no
// upper one, so that together they cover every row, wherever the estimates lie.
type cutter struct {
	conn *wire.Conn
	t    *schema.Table
	rows int64 // wanted in a range
	emit func(keyRange)
	last boundary // where the range being made begins
	made int64    // ranges so far
	most int64    // no more are made by halving
}

func (k *cutter) run(ctx context.Context, s size) error {
	columns := rangeColumns(k.t)
	if len(columns) == 0 || s.rows < 2*k.rows {
		k.emit(keyRange{})
		return nil
	}
	k.most = 4*s.rows/k.rows + 64
	var err error
	if len(k.t.Key) == 1 && columns[0].Type.IsInteger() && !columns[0].desc {
		err = k.byValue(ctx, columns)
	} else {
		err = k.byOffset(ctx, columns)
	}
	if err != nil {
		return err
	}
	k.emit(keyRange{after: k.last})
	return nil
}

func (k *cutter) end(b boundary) {
	k.made++
	k.emit(keyRange{after: k.last, upTo: b})
	k.last = b
}

// byOffset walks along the key, range by range: each step reads only the key of one range, ahead of the readers.
func (k *cutter) byOffset(ctx context.Context, columns []keyColumn) error {
	for {
		query := fmt.Sprintf("SELECT %s%s%s%s LIMIT 1 OFFSET %d", names(columns), from(k.t), keyRange{after: k.last}.condition(columns), order(columns), k.rows-1)
		r, err := k.conn.Query(ctx, query)
		if err != nil {
			return err
		}
		if r.Rows() == 0 {
			return nil
		}
		b := make(boundary, len(columns))
		for i, c := range columns {
			b[i] = literal(c.Column, r.Text(0, i))
		}
		k.end(b)
	}
}

// integers maps the values of an integer type to uint64, in their order, and back.
type integers struct{ unsigned bool }

func (m integers) parse(text string) (uint64, error) {
	if m.unsigned {
		return strconv.ParseUint(text, 10, 64)
	}
	v, err := strconv.ParseInt(text, 10, 64)
	return uint64(v) ^ 1<<63, err
}

func (m integers) format(v uint64) string {
	if m.unsigned {
		return strconv.FormatUint(v, 10)
	}
	return strconv.FormatInt(int64(v^1<<63), 10)
}

// byValue halves the range between the smallest and the largest value until the server's own estimate of each half is
// small enough. No row is read for it, and gaps in the values do no harm. Estimates may be wrong: most bounds the number
// of ranges.
func (k *cutter) byValue(ctx context.Context, columns []keyColumn) error {
	name := wire.Identifier(columns[0].Name)
	r, err := k.conn.Query(ctx, "SELECT MIN("+name+"), MAX("+name+")"+from(k.t))
	if err != nil || r.Cell(0, 0) == nil {
		return err
	}
	m := integers{columns[0].Unsigned}
	low, err := m.parse(r.Text(0, 0))
	if err != nil {
		return err
	}
	high, err := m.parse(r.Text(0, 1))
	if err != nil {
		return err
	}
	return k.halve(ctx, columns[0].Column, m, low, high)
}

// halve emits ranges that cover low..high, each ending at its highest value; that of high itself is left open.
func (k *cutter) halve(ctx context.Context, c *schema.Column, m integers, low, high uint64) error {
	rows, err := k.estimate(ctx, c, m.format(low), m.format(high))
	if err != nil {
		return err
	}
	if rows <= k.rows*3/2 || low == high || k.made >= k.most {
		k.end(boundary{m.format(high)})
		return nil
	}
	middle := low + (high-low)/2
	if err := k.halve(ctx, c, m, low, middle); err != nil {
		return err
	}
	return k.halve(ctx, c, m, middle+1, high)
}

// estimate asks the optimizer. With FORCE INDEX it does not look into the index.
func (k *cutter) estimate(ctx context.Context, c *schema.Column, low, high string) (int64, error) {
	r, err := k.conn.Query(ctx, "EXPLAIN FORMAT=TRADITIONAL SELECT 1"+fromBy(k.t, "USE")+" WHERE "+wire.Identifier(c.Name)+" BETWEEN "+low+" AND "+high)
	if err != nil || r.Rows() == 0 {
		return 0, err
	}
	rows, _ := strconv.ParseInt(r.Named(0, "rows"), 10, 64)
	return rows, nil
}
