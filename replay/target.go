package replay

import (
	"context"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// Target takes what one commit does, in order. Nothing of it may be visible or durable before Commit returns nil, and all
// of it must be then. Tables are named as they are called at that point of the commit.
//
// Errors are passed on as they are, except a *storage.DivergenceError of Apply, which is dealt with. After any error the
// target is aborted.
type Target interface {
	// Apply changes rows. It may be called several times for a table, and sees what the calls before it did.
	Apply(ctx context.Context, table string, c *storage.Changes) error
	// Read gives the rows that have the keys, which all differ, as the calls before left them, in pieces and in any order; keys
	// without a row give none. fn may call Apply: all rows are those from before.
	Read(ctx context.Context, table string, keys *column.Keys, fn func(rows *column.Batch) error) error
	Create(def *schema.Table) error
	Drop(table string) error
	Truncate(table string) error
	Alter(def *schema.Table) error
	// SetWindow says how a table's window is from here on; nil: it is passed.
	SetWindow(table string, w *Window) error
	// Quarantine sets a table aside as the last commit left it. at is the point that its rows stand at, unless the table
	// has a window: it keeps it, and stands at no point.
	Quarantine(table, reason string, at gtid.Point) error
	// CreateQuarantined adds a table of which nothing is followed. def may have no columns.
	CreateQuarantined(def *schema.Table, reason string, at gtid.Point) error
	// PutPrepared keeps the events of an XA transaction whose outcome is open, DeletePrepared forgets them.
	PutPrepared(xid string, events []byte)
	DeletePrepared(xid string)
	// Commit ends the target; state is the one behind it.
	Commit(ctx context.Context, state State) error
	// Abort takes everything back. After Commit it does nothing.
	Abort() error
}

// Source gives the replayer its targets, and what they keep.
type Source interface {
	// Begin opens the target of the next commit.
	Begin(ctx context.Context) (Target, error)
	// Prepared gives the committed events of an XA transaction. ok is false when there are none.
	Prepared(xid string) (events []byte, ok bool, err error)
}
