package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/storage"
)

// A table copy job copies one table anew beside the running stream, and swaps it in:
//
//  1. A shadow table is made, which no reader sees. P0 is what the source had executed then. The relay is held there.
//  2. Package snapshot copies the one table without a lock: rows of the window (P0, P1]. Chunks that are finished are
//     durable.
//  3. The job follows the relay from P0 on with a replayer of its own that knows this one table, as far as the stream has
//     come, and never beyond it. Its point is durable with the shadow.
//  4. When it has left its window and is near, it takes the gate: the stream stands between two batches at a point M. The
//     job goes on to exactly M, one commit puts the shadow in the place of the old table, and the stream goes on with it.
//     That lasts holdLimit at most; otherwise the job lets go, comes nearer, and tries again.
//
// Until the swap the old copy is served as it is: live and followed by the stream, or quarantined at its point. So every
// reader sees the one or the other, and each at the point at which the database says it is.
//
// What may happen meanwhile:
//
//   - The stream meets DDL on the table. The job meets the same statement later, since it never is ahead: inside its
//     window, or when it can't be followed, the copy is worthless and made anew; ALTER and TRUNCATE behind the window are
//     followed; after DROP and RENAME there is nothing left to copy (errGone). A rename swap (gh-ost, pt-osc) is RENAME. The
//     stream's table of that name is then another one, or quarantined, and that needs a job of its own, or none.
//   - The table is dropped and created anew, or renamed: the swap replaces the table that there was when the job began, by
//     its id. If that is not the table of the name any more, nothing is swapped.
//   - The stream quarantines the table, or finds it damaged: it is the same table, and the job goes on.
//   - Settings take the table out: the commit that drops it drops the shadow, and the job finds neither.
//   - The database is stopped, or the server: the job ends, and goes on from its finished chunks, or from the shadow's
//     point, when the database runs again. DROP DATABASE takes shadows with it.
//   - The source is lost: the job tries again for as long as the stream does. Nothing of the stream hangs on it. The swap
//     needs no source: it may happen while it is lost.
//   - Failover: rows may hold transactions that the new server never had, until the window is passed. A job that has not
//     passed it begins anew when the server's uuid changes.
//   - The stream stands still (an error, a full relay): the job waits at the stream's point. A relay that is full because
//     of the job is let go; what is missing then comes from the source's own binlog, over a connection of the job's own.
//   - XA transactions that are prepared at P0 are excluded (snapshot waits for XA RECOVER to be empty between P0 and the
//     first view). Those prepared behind P0 are kept with the shadow, decided in it, or dropped at the swap: the stream has
//     them, too, with the rows of this table, because it has followed the name since before P0.
//   - A transaction larger than memory goes to the shadow in slices, in a transaction of the store that does not lock out
//     the stream's. It is never begun while the stream is held, unless it is there already: then the bound ends it.
//   - A table that changes all the time is met as any other: the job applies that table only, the stream all of them.
//   - Two jobs take turns at the gate. There are maxJobs at a time; the others wait.
//
// By file and position P0 is the start of a binlog file, since the end of it may be ahead of what a read sees. Row events
// in front of the last DDL on the table would follow another definition; they are older than the copy and left out: the
// job begins behind that statement.
//
// Jobs are begun for tables that people ask for (SYSTEM RESYNC), and, with auto_resync, for those in quarantine and
// damaged ones. So whatever quarantines a table starts a job: a statement that can't be followed, a table that was taken
// in by changed settings, a gap in the source's binlogs. After a failure, and for a table that needs one again soon after
// its last, there is a pause that doubles (backoff).
type job struct {
	d     *database
	table string
	// old is the table whose place the shadow takes.
	old storage.TableID
	// shadow is 0 until it is made; record is kept with it.
	shadow storage.TableID
	record jobRecord
	// direct tells that the relay does not have, or can't give, what the job needs: it reads the source's binlog itself.
	direct bool

	mu          sync.Mutex
	state       ResyncState
	rows, total uint64
	note        string // why it is not as fast as it could be
}

// maxJobs bounds the jobs of a database that run at a time. Each has the connections of a copy.
const maxJobs = 2

// jobs are those of one database that run.
type jobs struct {
	kick chan struct{} // there may be something to do

	mu      sync.Mutex
	running map[string]*job // by table
	lost    map[string]lostJob
	holds   map[string]*relay.Hold // by table: what of the relay jobs need that run or go on
}

// lostJob is a job that tries again for as long as it takes: what it waits for passes by itself.
type lostJob struct {
	until time.Time
	text  string
}

func newJobs() *jobs {
	return &jobs{kick: make(chan struct{}, 1), running: map[string]*job{}, lost: map[string]lostJob{}, holds: map[string]*relay.Hold{}}
}

// wake lets the database look for jobs to begin.
func (j *jobs) wake() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

func (j *jobs) of(table string) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.running[table]
}

// lookForJobs is how often a database looks for tables that need a job, if nothing else makes it.
const lookForJobs = time.Second

// startJobs runs the jobs beside the stream. It gives what ends them.
func (d *database) startJobs(ctx context.Context) (stop func()) {
	d.holdForShadows() // before anything is pruned
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { d.runJobs(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// runJobs begins jobs and waits for them, until ctx ends.
func (d *database) runJobs(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		d.dropShadows(ctx)
		d.relieveRelay()
		d.beginJobs(ctx, &running)
		select {
		case <-d.jobs.kick:
		case <-time.After(lookForJobs):
		case <-ctx.Done():
			return
		}
	}
}

// beginJobs begins those that are due, as far as there is room.
func (d *database) beginJobs(ctx context.Context, running *sync.WaitGroup) {
	if !d.followsNow() {
		return
	}
	now := time.Now()
	for _, n := range d.needs() {
		if n.due.After(now) {
			continue
		}
		j := &job{d: d, table: n.table.Def.Name, old: n.table.ID, state: ResyncWaiting}
		if !d.jobs.add(j, now) {
			continue
		}
		running.Go(func() {
			err := j.run(ctx)
			d.jobs.remove(j)
			d.jobEnded(ctx, j, err)
		})
	}
}

// followsNow tells whether there is a stream that a job can meet, and a source to copy from.
func (d *database) followsNow() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return (d.state == StateStreaming || d.state == StateConverging) && !d.lost
}

// add is false if there is no room, or one of the table.
func (j *jobs) add(job *job, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.running) >= maxJobs || j.running[job.table] != nil || now.Before(j.lost[job.table].until) {
		return false
	}
	delete(j.lost, job.table)
	j.running[job.table] = job
	return true
}

func (j *jobs) remove(job *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.running, job.table)
}

// errGone ends a job whose table is not there any more, or is another one now.
var errGone = errors.New("the table is no longer the one that the copy was begun for")

// worthlessError says that what a job has copied can't be used.
type worthlessError struct{ reason string }

func (e *worthlessError) Error() string { return e.reason }

// jobEnded decides what comes after a job.
func (d *database) jobEnded(ctx context.Context, j *job, err error) {
	defer d.jobs.wake()
	if err == nil || ctx.Err() != nil {
		return
	}
	defer d.converge(ctx)
	if errors.Is(err, errGone) || errors.Is(err, storage.ErrNotFound) {
		d.tableNote(ctx, j.table, "resync", "the new copy is given up: "+errGone.Error())
		d.jobs.letGo(j.table)
		d.dropShadow(ctx, j.shadow)
		d.remember(ctx, j.table, func(r *resync) { *r = resync{} })
		return
	}
	v := judge(err)
	var worthless *worthlessError
	if v.tries == forever && !errors.As(err, &worthless) {
		d.log.Warn("a table's new copy waits", "table", j.table, "error", err)
		d.jobs.wait(j.table, lostJob{time.Now().Add(d.m.opt.ResyncPause), v.explain(err)})
		return
	}
	d.jobFailed(ctx, j, err)
}

func (j *jobs) wait(table string, l lostJob) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost[table] = l
}

// jobFailed takes note of a try that failed. What it has copied is kept where another try can use it.
func (d *database) jobFailed(ctx context.Context, j *job, err error) {
	var worthless *worthlessError
	if errors.As(err, &worthless) {
		d.dropShadow(ctx, j.shadow)
	}
	d.jobs.letGo(j.table)
	var next time.Time
	d.remember(ctx, j.table, func(r *resync) {
		r.failed(err.Error(), d.m.opt.ResyncPause)
		next = r.Next
	})
	d.log.Warn("a table could not be copied anew", "table", j.table, "error", err, "again", next)
	d.tableNote(ctx, j.table, "resync", fmt.Sprintf("the new copy failed: %v; it is tried again at %s", err, next.UTC().Format(time.DateTime)))
}

// run carries a job out, from wherever an earlier one has left it.
func (j *job) run(ctx context.Context) error {
	if err := j.find(); err != nil {
		return err
	}
	if err := j.d.holdRelay(j.table); err != nil {
		return err
	}
	if j.record.State == nil {
		if err := j.copyRows(ctx); err != nil {
			return err
		}
	}
	j.show(ResyncCatching)
	if err := j.follow(ctx); err != nil {
		return err
	}
	j.d.jobs.letGo(j.table)
	return nil
}

// find takes over the shadow of an earlier run.
func (j *job) find() error {
	for _, t := range j.d.m.store.Shadows(j.d.id) {
		if t.Def.Name != j.table {
			continue
		}
		record, err := decodeJob(t.Point)
		if err != nil {
			return err
		}
		if record.Old == j.old {
			j.shadow, j.record = t.ID, record
			return nil
		}
	}
	return nil
}

// current tells whether the table to be replaced is still the one of the name.
func (j *job) current() bool {
	t, err := j.d.m.store.Table(j.d.id, j.table)
	return err == nil && t.ID == j.old
}

func (j *job) show(s ResyncState) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state, j.note = s, ""
}
