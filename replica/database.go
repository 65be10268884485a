package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/storage"
)

// database is one materialized database. While it runs, one goroutine (run) owns everything it does; what others see of
// it stands behind mu.
//
// The states, and what leads from one to the next:
//
//	snapshot  --all rows copied at one point-->  streaming
//	snapshot  --all rows copied-->  converging  --all tables at one point-->  streaming
//	snapshot, converging  --the source lost the log behind the copy's beginning-->  snapshot
//	snapshot, converging, streaming  --source lost, disk full-->  the same, with a message, until it goes on by itself
//	snapshot, converging, streaming  --anything that only people can put right-->  error
//	any  --SYSTEM STOP-->  stopped        stopped, error  --SYSTEM START-->  snapshot, converging or streaming
type database struct {
	m   *Manager
	id  storage.DatabaseID
	log *slog.Logger
	// gate is for those who work on the database between two batches of its stream.
	gate *gate
	jobs *jobs

	changes sync.Mutex // one change of the configuration at a time; taken before mu
	mu      sync.Mutex
	cfg     *config
	host    int // the number of the address that is the source now
	state   State
	message string  // what is wrong, empty when nothing is
	lost    bool    // the message is one that passes by itself
	away    string  // why the source is not read at the moment, empty when it is
	puller  *puller // of the running database; its relay is open
	// progress is that of the first copy, until the database is readable.
	progress *progress
	// pointTime is when the source committed what is readable here; now, while everything is.
	pointTime    time.Time
	caughtUp     bool
	transactions uint64     // applied since the start
	commits      uint64     // of the stream since the start
	retention    *Retention // nil until the source was asked
	ends         ends       // of the goroutine that watches the retention
	// watch is that goroutine, which also runs while the database does not: then it matters most.
	watch    sync.WaitGroup
	endWatch context.CancelFunc
	cancel   context.CancelFunc // nil when nothing runs
	done     chan struct{}
}

func (d *database) spec() Spec {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.Spec
}

func (d *database) serverID() uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.ServerID
}

func (d *database) byPosition() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.ByPosition
}

func (d *database) wanted(table string) bool {
	s := d.spec().Settings
	return s.Wanted(table)
}

// start lets the database run, unless it does.
func (d *database) start(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		return
	}
	ctx, d.cancel = context.WithCancel(ctx)
	d.done = make(chan struct{})
	d.state, d.message, d.lost, d.away = d.running(), "", false, ""
	go d.run(ctx, d.done)
}

// running is the state of a database that runs; mu is held.
func (d *database) running() State {
	switch d.phase() {
	case complete:
		return StateStreaming
	case converging:
		return StateConverging
	}
	return StateSnapshot
}

// isConverging tells whether the stream has still to bring the tables of the first copy to one point.
func (d *database) isConverging() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cfg.Copy != nil && d.cfg.Copy.Phase == converging
}

// unserved tells whether the rows of the first copy do not stand at one point yet: they may hold what the source had and
// has lost since.
func (d *database) unserved() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.phase() != complete
}

// phase is that of the first copy; mu is held.
func (d *database) phase() phase {
	info, err := d.m.store.Database(d.cfg.Spec.Name)
	if err != nil {
		return ""
	}
	return phaseOf(d.cfg, info)
}

// stop ends the goroutine, and waits for it.
func (d *database) stop() {
	d.mu.Lock()
	cancel, done := d.cancel, d.done
	d.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// run is the database's goroutine.
func (d *database) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	var watch sync.WaitGroup
	watch.Go(func() { d.watchRole(ctx) })
	defer watch.Wait()
	err := d.pulled(ctx, d.work)
	told, ended := ctx.Err() != nil, errors.Is(err, errEnded)
	text := ""
	if ended {
		d.ended(ctx)
	} else if !told {
		text = judge(err).explain(err)
		d.log.Error("the database can't go on", "error", text)
		d.note(ctx, "error", text)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel()
	d.cancel, d.progress, d.caughtUp, d.away = nil, nil, false, ""
	switch {
	case ended:
		d.state, d.message, d.lost = StateEnded, "", false
	case !told: // people have to look at it
		d.state, d.message, d.lost = StateError, text, false
	}
}

// pulled runs do beside what fills the relay.
func (d *database) pulled(ctx context.Context, do func(context.Context) error) error {
	p, err := newPuller(ctx, d)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.puller = p
	d.mu.Unlock()
	return errors.Join(do(ctx), p.close())
}

// steady is how long a stream must have lasted for earlier errors to be forgotten.
const steady = 30 * time.Second

// work copies and follows until ctx ends or an error that no other try can mend.
func (d *database) work(ctx context.Context) error {
	defer d.startJobs(ctx)()
	tries := map[string]int{}
	pause := d.m.opt.FirstPause
	for {
		begun, commits := time.Now(), d.achieved()
		err := d.once(ctx)
		if isPurged(err) {
			err = d.skipPurged(ctx, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if d.achieved() != commits {
			pause = d.m.opt.FirstPause
			// Two readers with one server id both get something done in turns, so that alone proves nothing.
			if time.Since(begun) > steady {
				clear(tries)
			}
		}
		if err == nil || errors.Is(err, errRestart) { // the copy is complete, or what is followed has changed
			clear(tries)
			continue
		}
		if errors.Is(err, errEnded) {
			return err
		}
		anew, failed := d.beginAnew(ctx, err)
		if failed != nil {
			err = failed
		}
		v := judge(err)
		if !anew {
			tries[v.kind]++
		}
		if !anew && v.tries != forever && tries[v.kind] > v.tries {
			return err
		}
		d.missing(ctx, v.explain(err), pause)
		if !sleep(ctx, pause+rand.N(pause/4+1)) {
			return context.Cause(ctx)
		}
		pause = min(2*pause, d.spec().Settings.MaxWaitTimeWhenMySQLUnavailable)
	}
}

// achieved counts what the database got done.
func (d *database) achieved() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commits
}

// once does what is next: the copy, or the stream.
func (d *database) once(ctx context.Context) error {
	info, err := d.m.store.Database(d.spec().Name)
	if err != nil {
		return err
	}
	c := d.config()
	if c.Spec.replays() && info.Point == nil {
		return d.beginReplay(ctx)
	}
	switch phaseOf(&c, info) {
	case converging, complete:
		return d.follow(ctx, info)
	}
	return d.firstCopy(ctx)
}

// missing shows an error that passes by itself.
func (d *database) missing(ctx context.Context, text string, pause time.Duration) {
	d.mu.Lock()
	first := !d.lost
	d.message, d.lost, d.caughtUp = text, true, false
	d.mu.Unlock()
	d.log.Warn("trying again", "in", pause.Round(time.Millisecond), "error", text)
	if first {
		d.note(ctx, "lost", text)
	}
}

// sleep is false when ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// note adds to the event log. What can't be written there is not worth stopping for.
func (d *database) note(ctx context.Context, kind, message string) {
	err := d.m.store.Log(context.WithoutCancel(ctx), storage.Event{Kind: kind, Database: d.spec().Name, Message: message})
	if err != nil {
		d.log.Warn("the event log can't be written", "error", err, "entry", message)
	}
}

// applied notes that transactions are readable, or that there are none. idle tells that nothing more waits here.
func (d *database) applied(at time.Time, transactions int, moved, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.message, d.lost = "", false
	if moved {
		d.commits++
		d.transactions += uint64(transactions)
	}
	idle = idle && d.away == ""
	d.caughtUp = idle
	switch {
	case idle:
		d.pointTime = time.Now()
	case at.After(d.pointTime):
		d.pointTime = at
	}
}

// fault is what is wrong, empty when nothing is; mu is held.
func (d *database) fault() string {
	if d.message != "" {
		return d.message
	}
	return d.away
}

// status is what there is to know now.
func (d *database) status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	spec := &d.cfg.Spec
	st := Status{Name: spec.Name, Source: spec.Source(), State: d.state, User: spec.User, Settings: spec.Settings, TimeZone: d.cfg.TimeZone, Snapshot: d.cfg.Copy.status(), Retention: d.retention, Transactions: d.transactions, PointTime: d.pointTime, Tables: []TableStatus{}}
	if fault := d.fault(); fault != "" {
		st.Error = new(fault)
	}
	if d.puller != nil {
		st.Relay = relayStatus(d.puller.relay.Status())
	}
	info, err := d.m.store.Database(spec.Name)
	if err != nil {
		return st
	}
	tables := d.m.store.Tables(d.id)
	point, err := decodePoint(info.Point)
	if d.phase() != complete {
		st.Copy = d.copyNow()
	} else if err == nil {
		st.GTIDSet, st.File, st.Position = point.Point.Set.String(), point.Point.Position.File, point.Point.Position.Offset
		st.RowsApplied = point.Rows
		st.LagSeconds = d.lag(point)
	}
	begun := d.begunShadows()
	for _, t := range tables {
		row := TableStatus{Name: t.Def.Name, State: t.State.String(), Rows: t.Rows, Resync: d.resyncStatus(&t, begun[t.ID])}
		if d.progress != nil && t.State == storage.Copying && d.state == StateSnapshot {
			row.Copy = tableCopy(d.progress.tables[t.Def.Name])
		}
		switch {
		case t.State == storage.Quarantined:
			row.Error = &t.Reason
		case t.Damage != nil:
			row.Error = new(fmt.Sprintf("%v; %s", t.Damage, d.copyAgain()))
		}
		st.Tables = append(st.Tables, row)
	}
	return st
}

// signOfLife is how long silence of an idle source proves nothing. It is called with mu held.
func (d *database) signOfLife() time.Duration {
	return missedHeartbeats * d.cfg.Spec.Settings.Connection.HeartbeatPeriod
}

// lag is how far the readable point is behind the source. It is nil as long as nothing is known.
func (d *database) lag(point replay.State) *float64 {
	since := d.pointTime
	if since.IsZero() && point.Last.Committed > 0 {
		since = time.UnixMicro(int64(point.Last.Committed))
	}
	if since.IsZero() {
		return nil
	}
	if d.caughtUp && d.state == StateStreaming && time.Since(since) < d.signOfLife() {
		return new(float64(0))
	}
	return new(max(0, time.Since(since).Seconds()))
}
