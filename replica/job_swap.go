package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// errElsewhere says that the stream stands where the shadow can't go to yet.
var errElsewhere = errors.New("the stream is not where the new copy of the table can meet it")

// swap holds the stream, goes to where it stands, and puts the shadow into the table's place. errElsewhere: go on
// following; errNotMet: the time was up in the middle of something.
func (f *follower) swap(ctx context.Context) error {
	d := f.j.d
	var inside error
	err := d.gate.hold(ctx, func() error {
		bound, cancel := context.WithTimeout(ctx, holdLimit)
		defer cancel()
		inside = f.swapHeld(bound)
		if inside != nil && bound.Err() != nil && ctx.Err() == nil {
			inside = errNotMet
		}
		return nil
	})
	if errors.Is(err, errEnding) {
		return errElsewhere
	}
	return errors.Join(err, inside)
}

// reach goes to exactly where the stream stands.
func (f *follower) reach(ctx context.Context, to gtid.Point) error {
	for !f.at(to) {
		if err := f.advance(ctx, to); err != nil {
			return err
		}
		switch {
		case ctx.Err() != nil:
			return errNotMet
		case !f.at(to) && !f.feed.late():
			return errElsewhere
		}
	}
	return nil
}

func (f *follower) swapHeld(ctx context.Context) error {
	j, d := f.j, f.j.d
	if !j.current() {
		return errGone
	}
	at, _, err := d.committed()
	if err != nil {
		return err
	}
	if err := f.reach(ctx, at.Point); err != nil {
		return err
	}
	if !f.converged() {
		return errElsewhere
	}
	begun := time.Now()
	err = d.commitConfig(ctx, func(c *config) {
		c.editResync(j.table, func(r *resync) { r.succeeded(d.m.opt.ResyncPause) })
	}, func(txn *storage.Txn) error {
		txn.Log(storage.Event{Kind: "resync", Table: j.table, Message: fmt.Sprintf("the new copy of the table is served, at %s", at.Point)})
		return txn.Replace(j.old, j.shadow)
	})
	if err != nil {
		return err
	}
	d.log.Info("a table was copied anew", "table", j.table, "swap", time.Since(begun).Round(time.Microsecond))
	if err := d.adopt(j.table, j.shadow, f.r.State().Tables[j.table].Def); err != nil {
		return err
	}
	d.convergeHeld(ctx) // the first copy may have waited for it
	return nil
}

// adopt lets the stream go on with a table that was swapped in. The gate is held.
func (d *database) adopt(table string, id storage.TableID, def *schema.Table) error {
	if d.gate.replayer == nil {
		return nil // the next stream reads the store
	}
	d.gate.rows.adopt(table, id)
	return d.gate.replayer.Adopt(table, replay.Table{Def: def, Live: true})
}
