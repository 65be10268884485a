package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/wire"
)

// firstCopy reads all tables, or what is left of them when an earlier try broke off, and hands them to the stream. After
// an error the chunks that are finished stay, and the next try goes on behind them.
func (d *database) firstCopy(ctx context.Context) error {
	source, plan, err := compat.Check(ctx, d.wire(), d.wishes())
	if err != nil {
		return err
	}
	if d.config().Facts == nil { // the stream behind the copy may begin while the source is lost
		if err := d.learn(ctx, source); err != nil {
			return err
		}
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c := newSink(run, stop, d, plan)
	defer c.close()
	resume, err := d.resume(ctx, source, c)
	if err != nil {
		return err
	}
	if resume == nil {
		for _, w := range plan.Warnings {
			d.note(ctx, "warning", w.String())
		}
	}
	d.beginProgress(plan, resume, c)
	result, err := snapshot.Run(run, d.snapshotConfig(plan, resume), c)
	if err == nil {
		err = c.finish(result)
	}
	if err != nil && run.Err() != nil {
		return context.Cause(run)
	}
	if err != nil {
		return err
	}
	d.note(ctx, "copied", copiedText(result, c.taken, source.Version))
	return nil
}

func (d *database) snapshotConfig(plan *compat.Plan, resume *snapshot.Resume) snapshot.Config {
	cfg := snapshot.Config{Source: d.wire(), Plan: plan, Resume: resume, Readers: d.m.opt.Readers, Logger: d.log, Waiting: d.waiting, Slowed: d.slowed, Progress: d.copied}
	d.spec().Settings.Gentle.apply(&cfg)
	return cfg
}

func copiedText(r *snapshot.Result, taken int64, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows of %d tables from MySQL %s, lock plan %s", r.Rows+taken, len(r.Tables), version, r.Lock)
	if taken > 0 {
		fmt.Fprintf(&b, ", %d of them before a break", taken)
	}
	if r.LockHeld > 0 {
		fmt.Fprintf(&b, "; the source was locked for %v", r.LockHeld)
	}
	return b.String()
}

// resume gives what an earlier try left, nil for nothing. It opens the loads of that try.
func (d *database) resume(ctx context.Context, source *compat.Source, c *copySink) (*snapshot.Resume, error) {
	record := d.config().Copy
	if record == nil || record.Phase != copying {
		return nil, nil //nolint:nilnil // nothing
	}
	s, err := record.start()
	if err != nil {
		return nil, err
	}
	if err := d.sameServer(source, s.anchor); err != nil {
		return nil, err
	}
	if err := d.knows(ctx, source, s.anchor); err != nil {
		return nil, err
	}
	chunks, err := c.resumeLoads(ctx)
	if err != nil {
		return nil, err
	}
	cut := snapshot.Cut{Point: s.point, Listed: s.listed, Server: s.server, Lock: record.Lock, Tables: c.tables()}
	return &snapshot.Resume{Cut: cut, Chunks: chunks}, nil
}

// knows makes sure that the source still has the history that the copy began in.
func (d *database) knows(ctx context.Context, source *compat.Source, anchor gtid.Identity) error {
	if anchor.IsZero() {
		return nil
	}
	state := replay.State{Last: anchor}
	return d.verifyLast(ctx, d.streamConfig(source, state), anchor)
}

// sameServer makes sure that positions are those of this server: until the database is readable, since the windows of the
// copy are bounded by them, and for good where it is followed by them. last is a transaction that was read, if any was.
func (d *database) sameServer(source *compat.Source, last gtid.Identity) error {
	c, is := d.config(), source.UUID.String()
	if c.Copy != nil && c.Copy.Server != is && (c.Copy.Phase != complete || c.ByPosition) {
		return &otherServerError{was: c.Copy.Server, is: is}
	}
	if c.ByPosition && !last.IsZero() && last.Source != source.UUID {
		return &otherServerError{was: last.Source.String(), is: is}
	}
	return nil
}

// otherServerError says that positions of the copy's server mean nothing on the one that answers.
type otherServerError struct{ was, is string }

func (e *otherServerError) Error() string {
	return fmt.Sprintf("the source is another server now (server_uuid %s instead of %s), where files and positions mean something else", e.is, e.was)
}

// waiting shows what the copy waits for, and no longer what it does not.
func (d *database) waiting(reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.message, d.lost = "", false
	if reason != "" {
		d.message, d.lost = "the copy waits: "+reason, true
	}
}

// defaults are a database's default character set and collation.
type defaults struct{ charset, collation string }

func (d *database) sourceDefaults(ctx context.Context, name string) (defaults, error) {
	c, err := wire.Dial(ctx, d.wire())
	if err != nil {
		return defaults{}, err
	}
	defer func() { _ = c.Close() }() // only read from
	r, err := c.Query(ctx, "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+wire.Literal(name))
	if err != nil {
		return defaults{}, err
	}
	if r.Rows() != 1 {
		return defaults{}, &compat.NoDatabaseError{Database: name}
	}
	return defaults{r.Text(0, 0), r.Text(0, 1)}, nil
}

// commit makes one transaction of the store.
func (d *database) commit(ctx context.Context, do func(*storage.Txn) error) error {
	txn := d.m.store.Begin(d.id)
	err := do(txn)
	if err == nil {
		_, err = txn.Commit(ctx)
	}
	if err != nil {
		return errors.Join(err, txn.Abort())
	}
	return nil
}

// commitConfig changes the configuration in the same commit as something else.
func (d *database) commitConfig(ctx context.Context, edit func(*config), do func(*storage.Txn) error) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	next := d.config()
	edit(&next)
	encoded, err := next.encode()
	if err != nil {
		return err
	}
	err = d.commit(ctx, func(txn *storage.Txn) error {
		txn.SetConfig(encoded)
		return do(txn)
	})
	if err == nil {
		d.setConfig(&next)
	}
	return err
}

// maxRestarts bounds how often a first copy begins anew by itself.
const maxRestarts = 3

// beginAnew takes back a first copy that can't be completed because the source no longer has the log that it needs.
// Nothing of it was readable. It is false for any other error.
func (d *database) beginAnew(ctx context.Context, cause error) (bool, error) {
	record := d.config().Copy
	if record == nil || record.Phase != copying && record.Phase != converging || !lostHistory(cause) {
		return false, nil
	}
	if record.Restarts >= maxRestarts {
		return false, fmt.Errorf("the copy began anew %d times already: %w", record.Restarts, cause)
	}
	text := fmt.Sprintf("the copy begins anew, since it can't be completed: %v", cause)
	d.log.Warn("the copy begins anew", "reason", cause, "time", record.Restarts+1, "of at most", maxRestarts)
	err := d.commitConfig(context.WithoutCancel(ctx), func(c *config) { c.Copy = &copyRecord{Restarts: record.Restarts + 1} }, func(txn *storage.Txn) error {
		for _, t := range d.m.store.Tables(d.id) {
			if err := txn.DropTable(t.ID); err != nil {
				return err
			}
		}
		txn.Log(storage.Event{Kind: "restart", Message: text})
		return nil
	})
	return err == nil, err
}

// copyDone notes that all rows are here; at is when they were the source's, if they stand at one point.
func (d *database) copyDone(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.message, d.lost, d.pointTime = "", false, at
	d.state = d.running()
	if d.state == StateStreaming {
		d.progress = nil
	}
}
