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
	return conn.Exec(ctx, openView, savepoint)
}

// Rolling back to the savepoint after each chunk releases the metadata lock of its table and keeps the read view.
const (
	openView  = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
	savepoint = "SAVEPOINT tidemark"
	letGo     = "ROLLBACK TO SAVEPOINT tidemark"
)

// LetGo releases the metadata locks that statements in the connection's read view have taken, and keeps the view.
func LetGo(ctx context.Context, conn *wire.Conn) error { return conn.Exec(ctx, letGo) }

// Scan reads all rows of a table in the connection's read view (see OpenView), chunk by chunk in the order of the key,
// holding the table's metadata lock for one chunk at a time. The columns are asked for by the names that t has; a
// definition that does not fit is ErrSchemaChanged.
func Scan(ctx context.Context, conn *wire.Conn, t *schema.Table, fn func(*column.Batch) error) error {
	cfg := Config{}.withDefaults()
	s, err := tableSize(ctx, conn, t)
	if err != nil {
		return err
	}
	scan := scan{conn: conn, table: t, columns: keyColumns(t), fn: fn, cfg: &cfg, rows: column.NewBuilder(memory.DefaultAllocator, t)}
	if len(scan.columns) > 0 {
		scan.limit = cfg.mostRows(s.rowBytes)
	}
	for more := true; more; {
		if more, err = scan.chunk(ctx); err == nil {
			err = LetGo(ctx, conn)
		}
		if err != nil {
			return schemaError(t, err)
		}
	}
	return nil
}

// scan is a Scan under way.
type scan struct {
	conn    *wire.Conn
	table   *schema.Table
	columns []keyColumn
	fn      func(*column.Batch) error
	cfg     *Config
	rows    *column.Builder
	after   boundary
	limit   int64 // 0: none
}

// chunk reads what lies behind the rows that were read. It tells whether there may be more.
func (s *scan) chunk(ctx context.Context) (more bool, err error) {
	query := rangeQuery(s.table, s.columns, keyRange{after: s.after})
	if s.limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", s.limit)
	}
	places := newLiterals(s.table)
	count := int64(0)
	err = eachRow(ctx, s.conn, s.table, query, s.rows, func(_ *wire.Rows, d *wire.Decoder, row []byte) (err error) {
		if count++; count == s.limit {
			if s.after, err = places.of(d, row); err == nil && s.after == nil {
				err = fmt.Errorf("table %s has a key whose text is not valid in its character set", s.table.FullName())
			}
		}
		return errors.Join(err, d.Row(row), s.giveWhenFull())
	})
	if err != nil {
		return false, err
	}
	return s.limit > 0 && count == s.limit, s.give()
}

func (s *scan) giveWhenFull() error {
	if s.rows.Rows() >= s.cfg.BatchRows || s.rows.Bytes() >= s.cfg.BatchBytes {
		return s.give()
	}
	return nil
}

func (s *scan) give() error {
	if s.rows.Rows() == 0 {
		return s.rows.Err()
	}
	batch, err := s.rows.Finish()
	if err != nil {
		return err
	}
	return s.fn(batch)
}

// eachRow runs a query for rows of a table and gives them to fn one by one. After an error of fn the rest of the result is
// still on its way.
func eachRow(ctx context.Context, conn *wire.Conn, t *schema.Table, query string, b *column.Builder, fn func(*wire.Rows, *wire.Decoder, []byte) error) error {
	stream, err := conn.Stream(ctx, query)
	if err != nil {
		return err
	}
	decoder, err := wire.NewDecoder(t, stream.Fields, b)
	if err != nil {
		return errors.Join(err, stream.Drop()) // the session goes on with other tables
	}
	for {
		row, err := stream.Next()
		if err != nil {
			return err
		}
		if row == nil {
			return b.Err()
		}
		if err := fn(stream, decoder, row); err != nil {
			return err
		}
	}
}

// Select reads the rows that fulfil a condition, in the connection's read view.
func Select(ctx context.Context, conn *wire.Conn, t *schema.Table, condition string) (*column.Batch, error) {
	rows := column.NewBuilder(memory.DefaultAllocator, t)
	query := "SELECT " + wire.SelectList(t) + " FROM " + tableName(t) + " WHERE " + condition
	err := eachRow(ctx, conn, t, query, rows, func(_ *wire.Rows, d *wire.Decoder, row []byte) error { return d.Row(row) })
	if err != nil {
		return nil, schemaError(t, err)
	}
	if err := LetGo(ctx, conn); err != nil {
		return nil, err
	}
	return rows.Finish()
}

// size is what the source estimates of a table.
type size struct{ rows, rowBytes int64 }

func (s size) bytes() int64 { return s.rows * max(s.rowBytes, 1) }

func tableSize(ctx context.Context, c *wire.Conn, t *schema.Table) (size, error) {
	sizes, err := readSizes(ctx, c, t.Database, " AND TABLE_NAME = "+wire.Literal(t.Name))
	if s, ok := sizes[t.Name]; ok || err != nil {
		return s, err
	}
	return size{}, fmt.Errorf("%w: table %s is gone", ErrSchemaChanged, t.FullName())
}

func tableSizes(ctx context.Context, c *wire.Conn, database string) (map[string]size, error) {
	return readSizes(ctx, c, database, "")
}

func readSizes(ctx context.Context, c *wire.Conn, database, more string) (map[string]size, error) {
	r, err := c.Query(ctx, "SELECT TABLE_NAME, TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+wire.Literal(database)+more)
	if err != nil {
		return nil, fmt.Errorf("reading the sizes of tables: %w", err)
	}
	sizes := make(map[string]size, r.Rows())
	for i := range r.Rows() {
		sizes[r.Text(i, 0)] = size{rows: r.Int(i, 1), rowBytes: r.Int(i, 2)}
	}
	return sizes, nil
}
