package snapshot

import (
	"context"
	"errors"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// bracketed reads a table without a key in one view of its own, between two points. Where the account may lock the table
// for the moment at which the view is opened, both points are this moment, and nothing can be between them.
func (r *reader) bracketed(ctx context.Context, s *stretch) error {
	at, err := r.lockedView(ctx, s.table)
	if err != nil {
		return err
	}
	if at != nil {
		got, err := r.read(ctx, s, 0)
		if err == nil {
			err = r.conn.Exec(ctx, "ROLLBACK")
		}
		if err != nil {
			return err
		}
		return r.finish(s, got, &note{Bracket: newBracket(*at, at.Position)})
	}
	from, err := lowerBound(ctx, r.conn, r.cfg)
	if err != nil {
		return err
	}
	got, err := r.read(ctx, s, 0)
	if err != nil {
		return err
	}
	to, err := status(ctx, r.conn, r.cfg.Plan)
	if err != nil {
		return err
	}
	return r.finish(s, got, &note{Bracket: newBracket(from, to.Position)})
}

// lockedView opens the reader's view under a lock on one table, and gives its point; nil when the lock is not to be had.
func (r *reader) lockedView(ctx context.Context, t *tableWork) (*gtid.Point, error) {
	if !r.cfg.Plan.MayLockTables {
		return nil, nil //nolint:nilnil // no lock
	}
	lock, err := dial(ctx, r.cfg, r.control.server)
	if full(err) {
		return nil, nil //nolint:nilnil // no lock
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }() // and with it the lock
	point, err := r.lockOne(ctx, lock, t)
	var obstacle *LockError
	if !errors.As(err, &obstacle) {
		return point, err
	}
	r.cfg.Logger.Info("a table without a key can't be locked, and is read between two points", "table", t.table.FullName(), "reason", err)
	r.hangUp() // whatever state it is in
	return nil, r.ready(ctx)
}

func (r *reader) lockOne(ctx context.Context, lock *wire.Conn, t *tableWork) (*gtid.Point, error) {
	const patience = 10 * time.Second
	cfg, plan := *r.cfg, *r.cfg.Plan
	plan.Filter = func(table string) bool { return table == t.table.Name }
	cfg.Plan, cfg.LockPatience, cfg.Waiting = &plan, patience, func(string) {}
	o, err := cutBy(ctx, &cfg, lock, []*wire.Conn{r.conn}, compat.LockTables)
	if err != nil {
		return nil, err
	}
	if o.defs.identity(t.table.Name) != r.origin.defs.identity(t.table.Name) {
		return nil, ErrSchemaChanged
	}
	return &o.cut.Point, nil
}
