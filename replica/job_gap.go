package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/storage"
)

// gap is what a source has purged before it was read, and where the stream can go on.
type gap struct {
	source  *compat.Source
	catalog *compat.Catalog
	missing string
	before  replay.State
	after   replay.State
}

// skipPurged lets a database whose source has purged what was not read yet go on behind the gap. Every table stays as it
// is, in quarantine at the point in front of the gap, which is the same for all of them; the stream goes on at what the
// source has executed now; jobs copy the tables anew, one by one. All of that is one commit. The error is cause where it
// can't be told that this is the same history, or where people want to decide (auto_resync = 0).
//
// Everything that was spooled must have been applied.
func (d *database) skipPurged(ctx context.Context, cause error) error {
	if s := d.spec().Settings; !s.AutoResync || !d.isComplete() {
		return cause
	}
	g, err := d.findGap(ctx, cause)
	if err != nil {
		return err
	}
	if g == nil { // it is the relay that ends in front of where the stream is to go on
		at, _, err := d.committed()
		return errors.Join(err, d.puller.begin(at.Point))
	}
	xids, err := d.m.store.PendingXAs(d.id)
	if err != nil {
		return err
	}
	err = d.gate.between(ctx, func() error {
		return d.commit(ctx, func(txn *storage.Txn) error {
			for _, xid := range xids { // their tables are copied anew
				txn.DeletePendingXA(xid)
			}
			txn.Log(storage.Event{Kind: "gap", Message: fmt.Sprintf("the source has purged binlogs that were not read: %s is missing. The tables stay as they were at %s, and are copied anew one by one; "+
				"let the source keep its binlogs longer (binlog_expire_logs_seconds)", g.missing, g.before.Point)})
			txn.SetPoint(encodePoint(&g.after))
			return errors.Join(d.setAllAside(txn, g), d.addMissed(txn, g))
		})
	})
	if err != nil {
		return err
	}
	d.log.Error("the source has purged binlogs that were not read; all tables are copied anew", "missing", g.missing, "cause", cause)
	d.jobs.wake()
	return d.puller.begin(g.after.Point)
}

// isComplete tells whether the first copy is.
func (d *database) isComplete() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.phase() == complete
}

// findGap makes sure that it is a gap in the history that was followed, and finds its ends; nil: there is none behind the
// committed point.
func (d *database) findGap(ctx context.Context, cause error) (*gap, error) {
	c, source, err := compat.Dial(ctx, d.wire())
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // only read from
	g := &gap{source: source}
	if g.before, _, err = d.committed(); err != nil {
		return nil, err
	}
	if last := g.before.Last; d.byPosition() && !last.IsZero() && last.Source != source.UUID {
		return nil, &otherServerError{was: last.Source.String(), is: source.UUID.String()}
	}
	if g.missing, err = d.missed(ctx, source, g.before.Point); err != nil || g.missing == "" {
		return nil, err
	}
	if g.catalog, err = compat.ReadCatalog(ctx, c, d.spec().SourceDatabase, d.wanted, nil); err != nil {
		return nil, err
	}
	// Everything behind is read: the set says what is not, and by position reading begins with the file.
	g.after = replay.State{Point: gtid.Point{Position: gtid.Position{File: source.Position.File, Offset: 4}}, Rows: g.before.Rows,
		Charset: g.catalog.Charset, Collation: g.catalog.Collation}
	if !d.byPosition() {
		g.after.Point.Set = source.Executed
	}
	g.after.Last, err = d.anchor(ctx, source.Position)
	return g, err
}

// missed names what was purged behind a point; empty: nothing. A source that does not have what is in front of the point is
// not the one that was followed.
func (d *database) missed(ctx context.Context, source *compat.Source, at gtid.Point) (string, error) {
	if !d.byPosition() {
		if lost := at.Set.Subtract(source.Executed); !lost.IsZero() {
			return "", &binlog.Error{Class: binlog.Rewound, Missing: lost, Err: fmt.Errorf("the source does not have %s, which is in the copy", lost)}
		}
		missing := source.Purged.Subtract(at.Set)
		if missing.IsZero() {
			return "", nil
		}
		return missing.String(), nil
	}
	files, err := d.binlogFiles(ctx)
	if err != nil || slices.Contains(files, at.Position.File) {
		return "", err
	}
	return fmt.Sprintf("everything from %s up to the start of %s", at.Position, files[0]), nil
}

// setAllAside quarantines the tables that the source still has, and drops the others, and what is begun of new copies.
func (d *database) setAllAside(txn *storage.Txn, g *gap) error {
	reason := fmt.Sprintf("the source has purged binlogs that were not read (%s); the table stays as it was at %s until it is copied anew", g.missing, g.before.Point)
	point := encodePoint(&replay.State{Point: g.before.Point})
	for _, t := range d.m.store.Shadows(d.id) {
		if err := txn.DropTable(t.ID); err != nil {
			return err
		}
	}
	for _, t := range d.m.store.Tables(d.id) {
		switch {
		case g.catalog.Table(t.Def.Name) == nil:
			txn.Log(storage.Event{Kind: "drop", Table: t.Def.Name, Message: "the table is not on the source any more; what dropped it stood in binlogs that were purged"})
			if err := txn.DropTable(t.ID); err != nil {
				return err
			}
		case t.State != storage.Quarantined:
			if err := txn.Quarantine(t.ID, reason, point); err != nil {
				return err
			}
		}
	}
	return nil
}

// addMissed adds the tables that came in the gap.
func (d *database) addMissed(txn *storage.Txn, g *gap) error {
	for _, t := range g.catalog.Tables {
		if _, err := d.m.store.Table(d.id, t.Name); err == nil {
			continue
		}
		if err := d.addEmpty(txn, t.Name, "the table came in binlogs that the source has purged, and is not copied yet", g.after); err != nil {
			return err
		}
	}
	return nil
}

// isPurged tells the error of a source that no longer has what is to be read next.
func isPurged(err error) bool { return binlog.ClassOf(err) == binlog.PurgedLogs }
