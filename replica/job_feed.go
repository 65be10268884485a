package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/replay"
)

// feed gives a job the source's transactions.
type feed interface {
	// next gives the next transaction, or nil when none has come until the deadline (zero: none). errNotMet: begin anew.
	next(ctx context.Context, deadline time.Time) (*binlog.Transaction, error)
	// late tells that transactions in front of where the stream stands may not have come yet.
	late() bool
	close()
}

// openFeed gives the transactions behind a point: those that are spooled, or, where the relay does not reach back, those
// of the source.
func (j *job) openFeed(ctx context.Context, from gtid.Point) (feed, error) {
	source, err := j.d.known(ctx)
	if err != nil {
		return nil, err
	}
	follows, fold := j.d.follows(source), source.LowerCaseTableNames > 0
	only := func(database, table string) bool {
		return follows(database, table) && (table == j.table || fold && strings.EqualFold(table, j.table))
	}
	if !j.direct {
		rd, err := j.d.puller.relay.Read(from, relay.ReadConfig{Follow: only})
		var before *relay.NotSpooledError
		if !errors.As(err, &before) {
			return &relayFeed{j, rd}, err
		}
		j.d.log.Info("the spooled binlog does not reach back to where a table's new copy stands; the source's is read", "table", j.table, "reason", err)
		j.direct = true
	}
	return j.openStream(ctx, from, only)
}

// relayFeed reads what is spooled.
type relayFeed struct {
	j  *job
	rd *relay.Reader
}

func (f *relayFeed) next(ctx context.Context, deadline time.Time) (*binlog.Transaction, error) {
	reading := ctx
	if !deadline.IsZero() {
		var cancel context.CancelFunc
		reading, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	tx, err := f.rd.Next(reading)
	var gone *relay.GoneError
	var before *relay.NotSpooledError
	switch {
	case err == nil:
		return tx, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case binlog.ClassOf(err) == binlog.Cancelled:
		return nil, nil
	case errors.As(err, &gone):
		return nil, fmt.Errorf("%w: %w", errNotMet, err)
	case errors.As(err, &before), binlog.ClassOf(err) == binlog.Corrupt:
		f.j.direct = true // the stream sees to its relay
		return nil, fmt.Errorf("%w: %w", errNotMet, err)
	}
	return nil, err
}

// late is false: the stream has read everything from the relay that is in it.
func (f *relayFeed) late() bool { return false }
func (f *relayFeed) close()     { _ = f.rd.Close() } // only read from

// feedBytes bounds what waits between a connection of a job's own and the job.
const feedBytes = 16 << 20

// streamFeed is a connection to the source of the job's own.
type streamFeed struct {
	stream *binlog.Stream
	q      *queue
	cancel context.CancelFunc
	ended  chan struct{}
}

func (j *job) openStream(ctx context.Context, from gtid.Point, only func(database, table string) bool) (feed, error) {
	source, err := j.d.probe(ctx)
	if err != nil {
		return nil, err
	}
	cfg := j.d.streamConfig(source, replay.State{Point: from})
	cfg.ServerID, cfg.Follow = j.d.m.newServerID(source), only
	stream, err := binlog.Open(ctx, cfg)
	if isPurged(err) {
		return nil, &worthlessError{fmt.Sprintf("neither the spooled binlog nor the source has what follows the copy of the table: %v", err)}
	}
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithCancel(ctx)
	f := &streamFeed{stream: stream, q: newQueue(feedBytes), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.q.close(f.read(reading))
	}()
	return f, nil
}

// read fills the queue until the stream ends.
func (f *streamFeed) read(ctx context.Context) error {
	for {
		tx, err := f.stream.Next(ctx)
		if err != nil {
			return err
		}
		if !f.q.push(ctx, tx) {
			return errors.Join(context.Cause(ctx), tx.Release())
		}
	}
}

func (f *streamFeed) next(ctx context.Context, deadline time.Time) (*binlog.Transaction, error) {
	return f.q.pop(ctx, deadline)
}

func (f *streamFeed) late() bool { return true }

func (f *streamFeed) close() {
	f.cancel()
	<-f.ended
	f.q.drain()
	_ = f.stream.Close() // only read from
}

// holdRelay keeps in the relay what a job is going to need: everything behind where the database stands now.
func (d *database) holdRelay(table string) error {
	at, _, err := d.committed()
	if err == nil {
		d.jobs.keep(d.puller.relay, table, at.Point)
	}
	return err
}

// holdForShadows keeps in the relay what the jobs of an earlier run of the database have not read yet.
func (d *database) holdForShadows() {
	d.jobs.letAllGo() // of a relay that was closed
	for _, t := range d.m.store.Shadows(d.id) {
		r, err := decodeJob(t.Point)
		if err != nil {
			continue // dropped soon
		}
		if p, err := r.point(); err == nil {
			d.jobs.keep(d.puller.relay, t.Def.Name, p)
		}
	}
}

// relieveRelay lets go what jobs hold in a relay that is full because of them: the stream goes first. They read the rest
// from the source.
func (d *database) relieveRelay() {
	if !d.puller.relay.Status().Full {
		return
	}
	at, _, err := d.committed()
	if err != nil || !d.puller.relay.Consumed(at.Point) {
		return
	}
	d.log.Warn("the spooled binlog is full of what tables' new copies still need (relay_max_bytes); they will read it from the source")
	d.jobs.letAllGo()
	d.prune(at.Point)
}

func (j *jobs) keep(r *relay.Relay, table string, p gtid.Point) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.holds[table] == nil {
		j.holds[table] = r.Hold(p)
	}
}

func (j *jobs) moveHold(table string, p gtid.Point) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := j.holds[table]; h != nil {
		h.Move(p)
	}
}

func (j *jobs) letGo(table string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := j.holds[table]; h != nil {
		h.Release()
		delete(j.holds, table)
	}
}

func (j *jobs) letAllGo() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, h := range j.holds {
		h.Release()
	}
	clear(j.holds)
}
