package storage

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
)

// Read gives the live rows that have one of the keys, all of which differ, as the transaction has them now: what it
// applied before counts. They come with their keys, under the table's definition, in pieces of bounded memory and in no
// particular order; keys without a row give none. fn may apply changes, to the same table as well: all rows are those from
// before the call. It is not for tables without a key.
func (t *Txn) Read(ctx context.Context, id TableID, keys *column.Keys, fn func(rows *column.Batch) error) error {
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	if tt.rec.Def.Multiset() {
		return fmt.Errorf("table %s has no key to read rows by", tt.rec.Def.FullName())
	}
	set, err := newKeySet(keys, nil)
	if err == nil {
		err = t.find(ctx, tt, set)
	}
	if err == nil {
		err = t.readFound(ctx, tt, set.found, fn)
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", tt.rec.Def.FullName(), err)
	}
	return nil
}

func (t *Txn) readFound(ctx context.Context, tt *txnTable, where []found, fn func(*column.Batch) error) error {
	if err := t.jobs.wait(); err != nil { // parts of this transaction may be among those to read
		return err
	}
	at := map[HomeID][]uint32{}
	for _, loc := range where {
		if loc.Home != 0 {
			at[HomeID(loc.Home)] = append(at[HomeID(loc.Home)], loc.Row)
		}
	}
	r := &homeReader{t: t, def: tt.rec.Def, fn: fn}
	for _, h := range tt.homes() {
		rows := at[h.id]
		if len(rows) == 0 {
			continue
		}
		slices.Sort(rows)
		if err := r.read(ctx, h, rows); err != nil {
			return err
		}
		delete(at, h.id)
	}
	for id := range at {
		return damaged("key index", fmt.Sprintf("it names home %d, which the table does not have", id))
	}
	return r.flush()
}

// readable is a home as a transaction can read it.
type readable struct {
	id    HomeID
	path  string        // of a part
	batch *column.Batch // nil: a part
}

// homes lists the homes of the table's rows as the transaction has it.
func (tt *txnTable) homes() []readable {
	var homes []readable
	parts := tt.rows.parts
	if !tt.fresh {
		parts = append(slices.Clip(parts), tt.old.parts...)
		for _, s := range tt.old.segments {
			homes = append(homes, readable{id: s.id, batch: s.batch})
		}
	}
	if tt.load != nil {
		for _, p := range tt.load.pieces {
			parts = append(slices.Clip(parts), p.part)
		}
	}
	for _, p := range parts {
		homes = append(homes, readable{id: p.id, path: p.rec.Path})
	}
	for _, s := range tt.rows.segments {
		homes = append(homes, readable{id: s.id, batch: s.batch})
	}
	return homes
}

// homeReader hands rows on in pieces.
type homeReader struct {
	t     *Txn
	def   *schema.Table
	fn    func(*column.Batch) error
	ready []*column.Batch
	rows  int
	bytes int64
}

func (r *homeReader) read(ctx context.Context, h readable, rows []uint32) error {
	if h.batch == nil {
		p, err := part.Open(r.t.s.fs, r.t.s.path(h.path))
		if err != nil {
			return err
		}
		return firstError(p.EachRows(ctx, r.def, rows, r.add), p.Close())
	}
	for some := range slices.Chunk(rows, int(min(pieceRows, pieceBytes/rowBytes(h.batch)+1))) {
		b, err := h.batch.Take(ints(some)).Project(r.def)
		if err == nil {
			err = r.add(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add hands rows on, together with others when they are few.
func (r *homeReader) add(b *column.Batch) error {
	r.ready = append(r.ready, b)
	r.rows += b.Rows()
	r.bytes += batchBytes(b)
	if r.rows < pieceRows && r.bytes < pieceBytes {
		return nil
	}
	return r.flush()
}

func (r *homeReader) flush() error {
	if len(r.ready) == 0 {
		return nil
	}
	all, err := column.Concat(r.ready)
	r.ready, r.rows, r.bytes = nil, 0, 0
	if err != nil {
		return err
	}
	return r.fn(all)
}
