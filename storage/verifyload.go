package storage

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
)

// load checks what is durable of a table's bulk load. Keys that two pieces share are found when the load is finished.
func (v *verifier) load(ctx context.Context, t *tableState) error {
	if t.load == nil {
		return nil
	}
	v.report.Checkpoints += len(t.load.checkpoints)
	name := "the copy of table " + t.rec.Def.FullName()
	return t.load.each(func(p *pieceRecord) error {
		v.report.Bytes += p.Info.Bytes
		return v.note(name, v.piece(ctx, t.rec.Def, t.load.gen, p))
	})
}

// piece compares a part with its sorted file of index entries, row by row.
func (v *verifier) piece(ctx context.Context, def *schema.Table, gen Generation, p *pieceRecord) error {
	if err := v.s.checkPiece(p); err != nil {
		return err
	}
	path := v.s.path(p.Path)
	if err := part.Verify(v.s.fs, path, p.Info); err != nil {
		return err
	}
	r, err := part.Open(v.s.fs, path)
	if err != nil {
		return err
	}
	entries, err := v.openIndexFile(ctx, p)
	if err != nil {
		return firstError(err, r.Close())
	}
	err = comparePiece(ctx, r, entries, def, gen, p)
	return firstError(err, firstError(entries.Close(), r.Close()))
}

func (v *verifier) openIndexFile(ctx context.Context, p *pieceRecord) (*pebble.Iterator, error) {
	f, err := v.s.fs.Open(v.s.path(p.IndexPath))
	if err != nil {
		return nil, err
	}
	it, err := pebble.NewExternalIterWithContext(ctx, v.s.meta.options, &pebble.IterOptions{}, [][]sstable.ReadableFile{{f}})
	if err != nil {
		return nil, damaged(p.IndexPath, err.Error())
	}
	return it, nil
}

func comparePiece(ctx context.Context, r *part.Reader, entries *pebble.Iterator, def *schema.Table, gen Generation, p *pieceRecord) error {
	row := uint32(0)
	more := entries.First()
	var key []byte
	err := r.Read(ctx, def, func(b *column.Batch) error {
		for i := range b.Rows() {
			key = baseKey(key[:0], gen, b.Keys.At(i))
			if !more || !bytes.Equal(entries.Key(), key) {
				return damaged(p.IndexPath, fmt.Sprintf("its entries are not the keys of %s, from row %d on", p.Path, row))
			}
			loc, err := decodeEntry(entries.Value())
			if err != nil || loc != (found{Home: uint64(p.Part), Row: row}) {
				return damaged(p.IndexPath, fmt.Sprintf("the entry of row %d of %s leads elsewhere", row, p.Path))
			}
			row++
			more = entries.Next()
		}
		return nil
	})
	if err == nil && entries.Error() != nil {
		err = damaged(p.IndexPath, entries.Error().Error())
	}
	if err == nil && more {
		err = damaged(p.IndexPath, "it has more entries than "+p.Path+" has rows")
	}
	return err
}
