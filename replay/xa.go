package replay

import (
	"context"
	"fmt"

	"github.com/tidemarkdb/tidemark/binlog"
)

// prepare keeps the rows of an XA transaction whose outcome is open. They are part of the commit that counts its GTID,
// because the source never sends them again.
func (b *batch) prepare(ctx context.Context, tx *binlog.Transaction) error {
	events, err := tx.MarshalEvents()
	if err != nil {
		return fmt.Errorf("keeping the rows of %s: %w", tx, err)
	}
	t, err := b.open(ctx)
	if err != nil {
		return err
	}
	id := tx.XA.String()
	b.prepared[id] = events
	t.PutPrepared(id, events)
	return nil
}

// decide applies or drops a prepared transaction. Conflicts are checked now: the keys stay locked on the source from
// PREPARE on, so nothing else has changed them meanwhile.
func (b *batch) decide(ctx context.Context, tx *binlog.Transaction) error {
	id := tx.XA.String()
	events, ok, err := b.find(id)
	if err != nil {
		return err
	}
	if !ok && (tx.Kind == binlog.XARollback || b.seen()) {
		return nil
	}
	if !ok {
		return &StopError{Transaction: tx.String(), Reason: "XA COMMIT of a transaction (" + id + ") whose XA PREPARE was not seen, so its rows are not known"}
	}
	t, err := b.open(ctx)
	if err != nil {
		return err
	}
	b.prepared[id] = nil
	t.DeletePrepared(id)
	if tx.Kind == binlog.XARollback {
		return nil
	}
	kept, err := binlog.UnmarshalEvents(events)
	if err != nil {
		return fmt.Errorf("the kept rows of XA transaction %s: %w", id, err)
	}
	kept.Kind = binlog.Rows
	return b.events(ctx, kept)
}

// seen tells that the rows of an XA transaction that is committed by the transaction in hand, and that was prepared in
// front of the stream, are in the copy: none was prepared any more when the copy's first read began. Where no table is
// followed there is nothing that it could have changed.
func (b *batch) seen() bool {
	if b.converging() && !b.r.cfg.XAUnknown {
		return true
	}
	for _, t := range b.cat.State.Tables {
		if t.Live {
			return false
		}
	}
	return true
}

func (b *batch) find(id string) (events []byte, ok bool, err error) {
	if events, ok := b.prepared[id]; ok {
		return events, events != nil, nil
	}
	if err := b.r.Wait(); err != nil { // it may be the one that keeps them
		return nil, false, err
	}
	return b.r.source.Prepared(id)
}
