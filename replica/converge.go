package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
)

// lostHistory tells whether an error says that the source can't give what follows the point where a copy began.
func lostHistory(err error) bool {
	var other *otherServerError
	switch binlog.ClassOf(err) {
	case binlog.PurgedLogs, binlog.Rewound:
		return true
	}
	return errors.As(err, &other) || errors.Is(err, snapshot.ErrSchemaChanged)
}

// finish hands all tables to the stream in one commit: readable at once if every row stands at the cut, else as tables
// whose windows have to be passed. A table whose copy turned out to be worthless is quarantined, to be copied again.
func (c *copySink) finish(result *snapshot.Result) error {
	for _, t := range result.Tables {
		if t.Changed != "" && !c.d.spec().Settings.AutoResync { // else the table is copied again by itself
			return fmt.Errorf("%w: table %s: %s", snapshot.ErrSchemaChanged, t.Name, t.Changed)
		}
	}
	windows, err := c.windows(result)
	if err != nil {
		return err
	}
	changed := map[string]string{}
	for _, t := range result.Tables {
		if t.Changed != "" {
			changed[t.Name] = t.Changed
			continue
		}
		if err := c.loads[t.Name].Finish(c.ctx); err != nil {
			return err
		}
	}
	exact := len(windows) == 0
	err = c.d.commitConfig(c.ctx, func(cfg *config) { cfg.Copy = arrived(cfg.Copy, exact, windows) }, func(txn *storage.Txn) error {
		return c.swap(txn, windows, changed, exact)
	})
	if err != nil {
		return err
	}
	for name := range changed {
		if err := c.loads[name].Abort(); err != nil {
			c.d.log.Warn("what a worthless copy wrote could not be removed; it will be at the next start", "table", name, "error", err)
		}
	}
	c.d.copyDone(c.begun)
	return nil
}

// arrived gives the record of a copy whose rows are all here.
func arrived(old *copyRecord, exact bool, windows map[string]*replay.Window) *copyRecord {
	r := *old
	if r.Phase = converging; exact {
		r.Phase = complete
	}
	r.Exact = exact
	if until := lastEnd(windows); !until.IsZero() {
		r.Until = until.AppendBinary(nil)
	}
	return &r
}

func lastEnd(windows map[string]*replay.Window) gtid.Position {
	var last gtid.Position
	for _, w := range windows {
		if w.To.Compare(last) > 0 {
			last = w.To
		}
	}
	return last
}

// windows gives the window of each table that does not stand at the cut's point, those of worthless copies included.
func (c *copySink) windows(result *snapshot.Result) (map[string]*replay.Window, error) {
	out := map[string]*replay.Window{}
	var last gtid.Position
	for _, t := range result.Tables {
		switch {
		case t.Changed != "":
			out[t.Name] = &replay.Window{}
		case !t.To.IsZero():
			out[t.Name] = &replay.Window{To: t.To, Bracket: t.Bracket}
			if t.Bracket {
				out[t.Name].From = t.From
			}
		}
		if t.To.Compare(last) > 0 {
			last = t.To
		}
	}
	for _, t := range result.Tables {
		if t.Changed != "" {
			out[t.Name].To = last
		}
	}
	if !c.d.byPosition() || c.cut.Listed.IsZero() || len(out) == 0 {
		return out, nil
	}
	if last.Compare(c.cut.Listed) < 0 { // the end was read later, and logs only grow
		return nil, &binlog.Error{Class: binlog.Rewound, At: last, Err: fmt.Errorf("the source's binlog ended at %s when the copy began, and ends here now: its logs were reset", c.cut.Listed)}
	}
	return out, c.lookAhead(out)
}

// lookAhead finds the lower bounds that old statements in the first binlog file give (see replay.Ahead).
func (c *copySink) lookAhead(windows map[string]*replay.Window) error {
	source, err := c.d.known(c.ctx)
	if err != nil {
		return err
	}
	state := replay.State{Point: c.cut.Point, Charset: c.defaults.charset, Collation: c.defaults.collation, Tables: map[string]replay.Table{}}
	for _, def := range c.tables() {
		state.Tables[def.Name] = replay.Table{Def: def, Live: true}
	}
	ahead := replay.NewAhead(c.d.replayConfig(source), state)
	if err := c.d.readTo(c.ctx, state.Point, c.cut.Listed, ahead.Take); err != nil {
		return fmt.Errorf("looking for old changes of definitions up to %s: %w", c.cut.Listed, err)
	}
	for name, w := range windows {
		if from := ahead.From(name); from.Compare(w.From.Position) > 0 {
			w.From.Position = from
		}
	}
	return nil
}

// readTo gives the transactions from a point to a position to take, without the row events.
func (d *database) readTo(ctx context.Context, from gtid.Point, to gtid.Position, take func(*binlog.Transaction) error) error {
	reader, err := d.puller.relay.Read(from, relay.ReadConfig{Follow: func(string, string) bool { return false }})
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }() // only read from
	for {
		tx, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		if tx.Start.Compare(to) < 0 {
			err = take(tx)
		}
		end := tx.End
		if err := errors.Join(err, tx.Release()); err != nil {
			return err
		}
		if end.Compare(to) >= 0 {
			return nil
		}
	}
}

// swap makes the rows those of their tables.
func (c *copySink) swap(txn *storage.Txn, windows map[string]*replay.Window, changed map[string]string, exact bool) error {
	at := encodePoint(&replay.State{Point: c.cut.Point})
	for _, t := range c.d.m.store.Tables(c.d.id) {
		name := t.Def.Name
		reason, worthless := changed[name]
		var err error
		switch {
		case worthless:
			reason = fmt.Sprintf("what was copied of the table is of no use, and it has to be copied again: %s", reason)
			txn.Log(storage.Event{Kind: "quarantine", Table: name, Message: reason})
			err = txn.Quarantine(t.ID, reason, at)
		case exact:
			err = errors.Join(txn.SwapLoad(t.ID, c.loads[name]), txn.SetState(t.ID, storage.Live))
		default:
			err = txn.SwapLoad(t.ID, c.loads[name])
		}
		if err != nil {
			return err
		}
		if w := windows[name]; w != nil {
			if err := txn.SetWindow(t.ID, encodeWindow(w)); err != nil {
				return err
			}
		}
	}
	start, err := c.d.config().Copy.start()
	if err != nil {
		return err
	}
	txn.SetPoint(encodePoint(&replay.State{Point: c.cut.Point, Last: start.anchor, Charset: c.defaults.charset, Collation: c.defaults.collation}))
	return nil
}

// becomeReadable ends the convergence when it is time: all windows are passed, and no table waits for being copied again.
// Whoever calls it has the gate.
func (d *database) becomeReadable(ctx context.Context, r *replay.Replayer) error {
	if !d.isConverging() || !passed(r.State()) {
		return nil
	}
	if err := r.Wait(); err != nil {
		return err
	}
	if d.jobsLeft() {
		return nil
	}
	if table := d.worthless(); table != "" && !d.spec().Settings.AutoResync {
		return fmt.Errorf("%w: table %s", snapshot.ErrSchemaChanged, table)
	}
	var tables int
	err := d.commitConfig(ctx, func(c *config) {
		record := *c.Copy
		record.Phase = complete
		c.Copy = &record
	}, func(txn *storage.Txn) error {
		for _, t := range d.m.store.Tables(d.id) {
			if t.State != storage.Copying {
				continue
			}
			tables++
			if err := txn.SetState(t.ID, storage.Live); err != nil {
				return err
			}
		}
		txn.Log(storage.Event{Kind: "converged", Message: fmt.Sprintf("all tables stand at one point, %s, and can be read", r.State().Point)})
		return nil
	})
	if err != nil {
		return err
	}
	d.log.Info("the database is readable: all tables stand at one point", "tables", tables, "point", r.State().Point.String())
	d.copyDone(time.Time{})
	return nil
}

// converge is becomeReadable for those who don't have the gate.
func (d *database) converge(ctx context.Context) {
	_ = d.gate.hold(ctx, func() error { // an ending stream is followed by one that looks itself
		d.convergeHeld(ctx)
		return nil
	})
}

func (d *database) convergeHeld(ctx context.Context) {
	if d.gate.replayer == nil {
		return
	}
	if err := d.becomeReadable(ctx, d.gate.replayer); err != nil {
		d.log.Warn("the database could not be made readable; the stream tries it again", "error", err)
	}
}

// worthless names a table whose copy has to be made again; "" when there is none.
func (d *database) worthless() string {
	for _, t := range d.m.store.Tables(d.id) {
		if t.State == storage.Quarantined && t.Window != nil {
			return t.Def.Name
		}
	}
	return ""
}

// passed tells whether the stream has passed the windows of all tables that are followed.
func passed(s replay.State) bool {
	for _, t := range s.Tables {
		if t.Live && t.Window != nil {
			return false
		}
	}
	return true
}
