package snapshot

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// OpenView opens a read view on the connection without any lock: what Scan then reads stands at one point, which lies
// between what the source had executed before and what it has written to its binlog after. A view that is open is
// replaced.
func OpenView(ctx context.Context, conn *wire.Conn) error {
	return conn.Exec(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", savepoint)
}

// LetGo releases the metadata locks that statements in the connection's read view have taken, and keeps the view.
func LetGo(ctx context.Context, conn *wire.Conn) error { return conn.Exec(ctx, letGo) }

// Scan reads all rows of a table in the connection's read view (see OpenView), range by range in the order of the key,
// holding the table's metadata lock for one range at a time. The columns are asked for by the names that t has; a
// definition that does not fit is ErrSchemaChanged.
func Scan(ctx context.Context, conn *wire.Conn, t *schema.Table, fn func(*column.Batch) error) error {
	cfg := Config{}.withDefaults()
	s, err := tableSize(ctx, conn, t)
	if err != nil {
		return err
	}
	var ranges []keyRange
	k := cutter{conn: conn, t: t, rows: cfg.rangeRows(s), emit: func(r keyRange) { ranges = append(ranges, r) }}
	if err := k.run(ctx, s); err != nil {
		return schemaError(t, err)
	}
	rows := column.NewBuilder(memory.DefaultAllocator, t)
	give := func() error {
		if rows.Rows() == 0 {
			return nil
		}
		batch, err := rows.Finish()
		if err != nil {
			return err
		}
		return fn(batch)
	}
	for _, rng := range ranges {
		err := streamRange(ctx, conn, t, rng, rows, func(_ *wire.Rows, end bool) error {
			if end || rows.Rows() >= cfg.BatchRows || rows.Bytes() >= cfg.BatchBytes {
				return give()
			}
			return nil
		})
		if err == nil {
			err = LetGo(ctx, conn)
		}
		if err != nil {
			return schemaError(t, err)
		}
	}
	return nil
}

// Select reads the rows that fulfil a condition, in the connection's read view.
func Select(ctx context.Context, conn *wire.Conn, t *schema.Table, condition string) (*column.Batch, error) {
	rows := column.NewBuilder(memory.DefaultAllocator, t)
	stream, err := conn.Stream(ctx, "SELECT "+wire.SelectList(t)+" FROM "+wire.Identifier(t.Database)+"."+wire.Identifier(t.Name)+" WHERE "+condition)
	if err != nil {
		return nil, schemaError(t, err)
	}
	decoder, err := wire.NewDecoder(t, stream.Fields, rows)
	if err != nil {
		return nil, schemaError(t, errors.Join(err, stream.Drop()))
	}
	for {
		row, err := stream.Next()
		if err != nil {
			return nil, schemaError(t, err)
		}
		if row == nil {
			break
		}
		if err := decoder.Row(row); err != nil {
			return nil, err
		}
	}
	if err := LetGo(ctx, conn); err != nil {
		return nil, err
	}
	return rows.Finish()
}

func tableSize(ctx context.Context, c *wire.Conn, t *schema.Table) (size, error) {
	r, err := c.Query(ctx, "SELECT TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+wire.Literal(t.Database)+
		" AND TABLE_NAME = "+wire.Literal(t.Name))
	if err != nil {
		return size{}, fmt.Errorf("reading the size of table %s: %w", t.FullName(), err)
	}
	if r.Rows() == 0 {
		return size{}, fmt.Errorf("%w: table %s is gone", ErrSchemaChanged, t.FullName())
	}
	return size{rows: r.Int(0, 0), rowBytes: r.Int(0, 1)}, nil
}
