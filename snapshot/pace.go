package snapshot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/wire"
)

// bucket bounds the rows that all readers read in a second.
type bucket struct {
	perSecond int64

	mu   sync.Mutex
	next time.Time // when what was taken so far is paid for
}

// burst is how far ahead the readers may be.
const burst = 100 * time.Millisecond

// take waits until n more rows may be read.
func (b *bucket) take(ctx context.Context, n int64) error {
	if b.perSecond <= 0 || n == 0 {
		return nil
	}
	b.mu.Lock()
	now := time.Now()
	if b.next.Before(now) {
		b.next = now
	}
	b.next = b.next.Add(time.Duration(float64(n) / float64(b.perSecond) * float64(time.Second)))
	wait := b.next.Sub(now) - burst
	b.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return sleep(ctx, wait)
}

// pace is how fast the copy may go: at once, or one reader at a time with pauses while the source is busy.
type pace struct {
	cfg     *Config
	rows    bucket
	alone   chan struct{} // has a token while nobody works alone
	running atomic.Int64  // statements of readers under way
	busy    atomic.Bool
	// oldViews tells that the read views of the cut must be given up: they keep too many undo records.
	oldViews atomic.Bool
	reason   string // of the last look, for its reports
}

func newPace(cfg *Config) *pace {
	p := &pace{cfg: cfg, rows: bucket{perSecond: cfg.RowsPerSecond}, alone: make(chan struct{}, 1)}
	p.alone <- struct{}{}
	return p
}

// longestRest bounds the pause after a chunk.
const longestRest = 5 * time.Second

// turn does a chunk's work when it is its turn.
func (p *pace) turn(ctx context.Context, work func() error) error {
	if !p.busy.Load() {
		return work()
	}
	if alone, err := p.waitAlone(ctx); !alone || err != nil {
		if err != nil {
			return err
		}
		return work()
	}
	defer func() { p.alone <- struct{}{} }()
	begun := time.Now()
	if err := work(); err != nil {
		return err
	}
	return sleep(ctx, min(time.Since(begun), longestRest))
}

// waitAlone waits until no other reader works, or the source is not busy any more.
func (p *pace) waitAlone(ctx context.Context) (alone bool, err error) {
	for p.busy.Load() {
		select {
		case <-p.alone:
			return true, nil
		case <-time.After(firstPause):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}

// look sees how busy the source is. What the account may not see is not looked at.
func (p *pace) look(ctx context.Context, c *wire.Conn) error {
	var reasons []string
	for _, see := range []func(context.Context, *wire.Conn) (string, error){p.threads, p.history, p.lag} {
		reason, err := see(ctx, c)
		if err != nil && wire.ServerError(err) == nil {
			return err
		}
		if err == nil && reason != "" {
			reasons = append(reasons, reason)
		}
	}
	reason := ""
	if len(reasons) > 0 {
		reason = fmt.Sprintf("the copy goes slowly: %s", reasons[0])
	}
	p.busy.Store(reason != "")
	if (reason == "") != (p.reason == "") {
		p.cfg.Logger.Info("the pace of the copy changes", "database", p.cfg.Plan.Database, "reason", reason)
	}
	if reason != p.reason {
		p.cfg.Slowed(reason)
	}
	p.reason = reason
	return nil
}

func (p *pace) threads(ctx context.Context, c *wire.Conn) (string, error) {
	if p.cfg.Limits.ThreadsRunning < 0 {
		return "", nil
	}
	r, err := c.Query(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_running'")
	if err != nil || r.Rows() == 0 {
		return "", err
	}
	others := r.Int(0, 1) - p.running.Load() - 1 // and this session
	if others <= int64(p.cfg.Limits.ThreadsRunning) {
		return "", nil
	}
	return fmt.Sprintf("%d statements of others run at once on the source (limit %d)", others, p.cfg.Limits.ThreadsRunning), nil
}

func (p *pace) history(ctx context.Context, c *wire.Conn) (string, error) {
	if p.cfg.Limits.HistoryLength < 0 || !p.cfg.Plan.Process {
		return "", nil
	}
	r, err := c.Query(ctx, "SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'")
	if err != nil || r.Rows() == 0 || r.Int(0, 0) <= p.cfg.Limits.HistoryLength {
		return "", err
	}
	if !p.oldViews.Swap(true) {
		p.cfg.Logger.Info("the copy gives up its read views, so that InnoDB can purge its undo log", "database", p.cfg.Plan.Database, "history list length", r.Int(0, 0))
	}
	return fmt.Sprintf("InnoDB's history list has %d entries (limit %d)", r.Int(0, 0), p.cfg.Limits.HistoryLength), nil
}

func (p *pace) lag(ctx context.Context, c *wire.Conn) (string, error) {
	if p.cfg.Limits.ReplicaLag < 0 {
		return "", nil
	}
	r, err := c.Query(ctx, "SHOW REPLICA STATUS")
	if wire.Code(err) == mysql.ER_PARSE_ERROR { // before 8.0.22
		r, err = c.Query(ctx, "SHOW SLAVE STATUS")
	}
	if err != nil {
		return "", err
	}
	worst := int64(0)
	for i := range r.Rows() {
		for _, name := range []string{"Seconds_Behind_Source", "Seconds_Behind_Master"} {
			if at := r.Find(name); at >= 0 {
				worst = max(worst, r.Int(i, at))
			}
		}
	}
	if worst <= int64(p.cfg.Limits.ReplicaLag/time.Second) {
		return "", nil
	}
	return fmt.Sprintf("the source is a replica and %d s behind (limit %s)", worst, p.cfg.Limits.ReplicaLag), nil
}

// lockWaits are the states of sessions that wait for a metadata lock, or for tables that are in use (Reference Manual,
// "General Thread States").
var lockWaits = []string{"Waiting for table metadata lock", "Waiting for table flush"}

// heldUp tells whether a statement of others has been waiting for a lock on a table for longer than the limit. Which
// session keeps the lock is not asked: to end a chunk early costs little.
func (p *pace) heldUp(ctx context.Context, c *wire.Conn) (bool, error) {
	if p.cfg.Limits.LockWaits < 0 || !p.cfg.Plan.Process {
		return false, nil
	}
	r, err := c.Query(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return false, err
	}
	for i := range r.Rows() {
		waited := time.Duration(r.Int(i, r.Find("Time"))) * time.Second
		if slices.Contains(lockWaits, r.Named(i, "State")) && waited >= p.cfg.Limits.LockWaits {
			return true, nil
		}
	}
	return false, nil
}
