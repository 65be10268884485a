package snapshot

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// Rolling back to the savepoint after each range releases the metadata lock of its table and keeps the read view.
const (
	savepoint = "SAVEPOINT tidemark"
	letGo     = "ROLLBACK TO SAVEPOINT tidemark"
)

// fatRow is the average row size from which on one reader at a time reads such tables: a row is in memory a few times on
// its way (SNAP-14).
const fatRow = 2 << 20

// reader copies ranges in its own read view.
type reader struct {
	*copier
	conn   *wire.Conn
	table  *schema.Table // of writer
	writer Writer
	rows   *column.Builder
}

func (r *reader) run(ctx context.Context) error {
	defer func() {
		if r.writer != nil {
			r.writer.Abort()
		}
	}()
	var last *work
	for {
		w, ok := r.queue.next(last)
		if !ok {
			return r.closeWriter()
		}
		if err := r.do(ctx, w); err != nil {
			return schemaError(w.table.table, err)
		}
		last = &w
	}
}

func (r *reader) do(ctx context.Context, w work) error {
	if w.cut {
		k := cutter{conn: r.conn, t: w.table.table, rows: r.cfg.rangeRows(w.table.size), emit: func(rng keyRange) { r.queue.add(w.table, rng) }}
		if err := k.run(ctx, w.table.size); err != nil {
			return err
		}
		r.queue.finishCut(w.table)
		return LetGo(ctx, r.conn)
	}
	if r.table != w.table.table || !w.adjacent {
		if err := r.openWriter(w.table.table); err != nil {
			return err
		}
	}
	if w.table.size.rowBytes > fatRow {
		r.fat.Lock()
		defer r.fat.Unlock()
	}
	if err := r.copyRange(ctx, w.rng); err != nil {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err := r.writer.Done(w.rng.note()); err != nil {
		return err
	}
	return LetGo(ctx, r.conn)
}

func (r *reader) openWriter(t *schema.Table) error {
	if err := r.closeWriter(); err != nil {
		return err
	}
	writer, err := r.sink.Open(t)
	if err != nil {
		return err
	}
	r.table, r.writer, r.rows = t, writer, column.NewBuilder(memory.DefaultAllocator, t)
	return nil
}

// closeWriter gives the writer its last rows and closes it.
func (r *reader) closeWriter() error {
	if r.writer == nil {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	w := r.writer
	r.writer = nil
	return w.Close()
}

func (r *reader) flush() error {
	if r.rows.Rows() == 0 {
		return r.rows.Err()
	}
	batch, err := r.rows.Finish()
	if err != nil {
		return err
	}
	return r.writer.Add(batch)
}

func (r *reader) copyRange(ctx context.Context, rng keyRange) error {
	counted := counter{progress: r.progress, table: r.table.Name}
	full := func() bool { return r.rows.Rows() >= r.cfg.BatchRows || r.rows.Bytes() >= r.cfg.BatchBytes }
	return streamRange(ctx, r.conn, r.table, rng, r.rows, func(s *wire.Rows, end bool) error {
		if end {
			counted.upTo(s)
		}
		if end || !full() {
			return nil
		}
		counted.upTo(s)
		return r.flush()
	})
}

// streamRange reads the rows of a range into a builder. after is called after each row, and at the end.
func streamRange(ctx context.Context, conn *wire.Conn, t *schema.Table, rng keyRange, rows *column.Builder, after func(s *wire.Rows, end bool) error) error {
	stream, err := conn.Stream(ctx, rangeQuery(t, rng))
	if err != nil {
		return err
	}
	decoder, err := wire.NewDecoder(t, stream.Fields, rows)
	if err != nil {
		return errors.Join(err, stream.Drop()) // package verify goes on with the connection
	}
	for {
		row, err := stream.Next()
		if err != nil {
			return err
		}
		if row == nil {
			if err := rows.Err(); err != nil {
				return err
			}
			return after(stream, true)
		}
		if err := decoder.Row(row); err != nil {
			return err
		}
		if err := after(stream, false); err != nil {
			return err
		}
	}
}
