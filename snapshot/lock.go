package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// Obstacle is why the cut could not be made.
type Obstacle uint8

// The obstacles.
const (
	// Busy: long statements or other locks were in the way for all of the patience.
	Busy Obstacle = iota + 1
	// Denied: the source does not allow the global lock to this account.
	Denied
	// PreparedXA: XA transactions stayed prepared for all of the patience.
	PreparedXA
	// TooSlow: the work under the lock took longer than its limit, and the lock was let go.
	TooSlow
	// Unfit: a table that came since the plan was made can't be copied.
	Unfit
)

// LockError says why the cut could not be made. Nothing is locked any more.
type LockError struct {
	Obstacle Obstacle
	Reason   string
	Err      error // nil where the reason is all
}

func (e *LockError) Error() string {
	if e.Err != nil {
		return "snapshot: " + e.Reason + ": " + e.Err.Error()
	}
	return "snapshot: " + e.Reason
}

// Unwrap gives the cause.
func (e *LockError) Unwrap() error { return e.Err }

const (
	firstPause = 250 * time.Millisecond
	longPause  = 5 * time.Second
)

// cut makes the cut: it tries until it succeeds, the patience ends, or an obstacle is there to stay.
func (s *sessions) cut(ctx context.Context) (*Cut, *compat.Catalog, error) {
	known, err := compat.ReadCatalog(ctx, s.lock, s.cfg.Plan.Database, s.cfg.Plan.Filter, s.cfg.Plan.Catalog)
	if err != nil {
		return nil, nil, err
	}
	server, err := s.serverUUID(ctx)
	if err != nil {
		return nil, nil, err
	}
	deadline := time.Now().Add(s.cfg.LockPatience)
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		cut, catalog, err := s.tryCut(ctx, known)
		if err == nil {
			cut.Server = server
			s.cfg.Waiting("")
			return cut, catalog, nil
		}
		var obstacle *LockError
		if !errors.As(err, &obstacle) || obstacle.Obstacle != Busy && obstacle.Obstacle != PreparedXA || time.Now().After(deadline) {
			return nil, nil, err
		}
		s.cfg.Waiting(obstacle.Reason)
		s.cfg.Logger.Info("waiting to make the snapshot's cut", "database", s.cfg.Plan.Database, "reason", obstacle.Reason, "again in", pause)
		if err := sleep(ctx, pause); err != nil {
			return nil, nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (s *sessions) serverUUID(ctx context.Context) (gtid.UUID, error) {
	r, err := s.lock.Query(ctx, "SELECT @@server_uuid")
	if err != nil {
		return gtid.UUID{}, err
	}
	return gtid.ParseUUID(r.Text(0, 0))
}

// tryCut makes one try. The lock is released when it returns.
func (s *sessions) tryCut(ctx context.Context, known *compat.Catalog) (*Cut, *compat.Catalog, error) {
	if err := s.noPreparedXA(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.noLongStatement(ctx, s.cfg.LongStatement); err != nil {
		return nil, nil, err
	}
	ids, err := s.tableIDs(ctx, known.Tables)
	if err != nil {
		return nil, nil, err
	}
	if err := s.takeLock(ctx); err != nil {
		return nil, nil, err
	}
	held := time.Now()
	cut, catalog, err := s.underLock(ctx, known)
	unlockErr := s.lock.Exec(ctx, "UNLOCK TABLES")
	if err != nil {
		return nil, nil, err
	}
	if unlockErr != nil {
		return nil, nil, unlockErr
	}
	cut.LockHeld = time.Since(held)
	if err := s.keepIDs(ctx, ids, cut); err != nil {
		return nil, nil, err
	}
	s.cfg.Logger.Info("snapshot's cut is made", "database", s.cfg.Plan.Database, "point", cut.Point.String(), "tables", len(cut.Tables),
		"readers", len(s.readers), "lock held", cut.LockHeld)
	return cut, catalog, nil
}

// keepIDs keeps the tables' ids of the cut for the comparison at the end. They are read on both sides of the lock, as
// reading them may take long.
func (s *sessions) keepIDs(ctx context.Context, before map[string]string, cut *Cut) (err error) {
	if s.ids, err = s.tableIDs(ctx, cut.Tables); err != nil {
		return err
	}
	if table := exchanged(before, s.ids); table != "" {
		return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("table %s.%s was exchanged for another while the cut was made", s.cfg.Plan.Database, table)}
	}
	return nil
}

// tableIDs gives InnoDB's ids of the tables, none where the account may not see them.
func (s *sessions) tableIDs(ctx context.Context, tables []*schema.Table) (map[string]string, error) {
	if !s.cfg.Plan.Process {
		return nil, nil
	}
	return compat.TableIDs(ctx, s.lock, tables)
}

// exchanged names a table that has other ids now than before; "" when none has.
func exchanged(before, now map[string]string) string {
	for table, id := range before {
		if now[table] != id {
			return table
		}
	}
	return ""
}

func (s *sessions) noPreparedXA(ctx context.Context) error {
	if !s.cfg.Plan.AskXA {
		return nil
	}
	r, err := s.lock.Query(ctx, "XA RECOVER")
	if err != nil {
		return fmt.Errorf("asking for prepared XA transactions: %w", err)
	}
	if r.Rows() == 0 {
		return nil
	}
	return &LockError{Obstacle: PreparedXA, Reason: fmt.Sprintf("%d XA transactions are prepared on the source and no snapshot could see their rows; commit them or roll them back (XA RECOVER lists them)", r.Rows())}
}

// noLongStatement refuses to queue behind a statement that has been running for long (SNAP-02). It names who runs it,
// and not what: statements hold data.
func (s *sessions) noLongStatement(ctx context.Context, long time.Duration) error {
	r, err := s.lock.Query(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return fmt.Errorf("looking for long statements: %w", err)
	}
	limit := max(int64(long/time.Second), 1)
	worst := -1
	for i := range r.Rows() {
		command := r.Named(i, "Command")
		if command != "Query" && command != "Execute" || r.Named(i, "User") == "system user" || s.ours(r.Int(i, r.Find("Id"))) {
			continue
		}
		seconds := r.Int(i, r.Find("Time"))
		if seconds >= limit && (worst < 0 || seconds > r.Int(worst, r.Find("Time"))) {
			worst = i
		}
	}
	if worst < 0 {
		return nil
	}
	return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("a statement of user %s (connection %s) has been running for %s s and the brief lock would queue behind it; wait for its end, or end it",
		r.Named(worst, "User"), r.Named(worst, "Id"), r.Named(worst, "Time"))}
}

func (s *sessions) ours(id int64) bool {
	if id == int64(s.lock.ID()) {
		return true
	}
	for _, r := range s.readers {
		if id == int64(r.ID()) {
			return true
		}
	}
	return false
}

func (s *sessions) takeLock(ctx context.Context) error {
	seconds := max(int64(s.cfg.LockWait/time.Second), 1)
	if !s.cfg.Plan.Process {
		seconds = 1 // what we would queue behind can't be seen
	}
	if err := s.lock.Exec(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", seconds)); err != nil {
		return err
	}
	err := s.lock.Exec(ctx, "FLUSH TABLES WITH READ LOCK")
	switch wire.Code(err) {
	case wire.CodeLockTimeout:
		return s.lockTimeout(ctx, seconds, err)
	case wire.CodeAccessDenied, wire.CodeNoPrivilege: // CLOUD-01
		return &LockError{Obstacle: Denied, Reason: "the source does not allow FLUSH TABLES WITH READ LOCK to this account, which has nothing to do with its password; " +
			"it needs RELOAD or FLUSH_TABLES, and some managed servers allow it to nobody", Err: err}
	}
	return err
}

// lockTimeout says what was in the way, as the process list shows it now. A statement that began just before we looked
// and goes on for long is the one case in which others still wait: the flush has marked the tables that it reads, MySQL
// can't take that back, and statements on these tables wait for its end.
func (s *sessions) lockTimeout(ctx context.Context, seconds int64, err error) error {
	if !s.cfg.Plan.Process {
		return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("the global read lock was not to be had within %d s; a long statement or a lock of another session is in the way, and without PROCESS it can't be seen", seconds), Err: err}
	}
	var busy *LockError
	if why := s.noLongStatement(ctx, s.cfg.LockWait); errors.As(why, &busy) {
		busy.Reason += "; until then, statements on the tables that it reads wait for it"
		return busy
	}
	return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("the global read lock was not to be had within %d s; another session holds table locks or a backup lock", seconds), Err: err}
}

// underLock does what has to be done while the source stands still. Every step is on the locking session or needs none
// of its locks, so that we never wait for ourselves (SNAP-10).
func (s *sessions) underLock(ctx context.Context, known *compat.Catalog) (*Cut, *compat.Catalog, error) {
	limited, cancel := context.WithTimeoutCause(ctx, s.cfg.HoldLimit, fmt.Errorf("more than %s", s.cfg.HoldLimit))
	defer cancel()
	cut, catalog, err := s.readUnderLock(limited, known)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, nil, &LockError{Obstacle: TooSlow, Reason: "opening the read views under the lock took too long, and it was let go", Err: err}
	}
	return cut, catalog, err
}

func (s *sessions) readUnderLock(ctx context.Context, known *compat.Catalog) (*Cut, *compat.Catalog, error) {
	if err := s.noPreparedXA(ctx); err != nil {
		return nil, nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, reader := range s.readers {
		g.Go(func() error {
			return reader.Exec(gctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", savepoint)
		})
	}
	cut := Cut{Exact: true, Lock: s.cfg.Plan.Lock}
	var catalog *compat.Catalog
	g.Go(func() (err error) {
		if cut.Point, err = s.point(gctx); err != nil {
			return err
		}
		catalog, err = compat.ReadCatalog(gctx, s.lock, s.cfg.Plan.Database, s.cfg.Plan.Filter, known)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	cut.Tables = catalog.Tables
	if problems := compat.TableProblems(catalog); len(problems) > 0 { // SNAP-19
		return nil, nil, &LockError{Obstacle: Unfit, Reason: (&compat.ProblemsError{Addr: s.lock.Addr(), Problems: problems}).Error()}
	}
	return &cut, catalog, nil
}

func (s *sessions) point(ctx context.Context) (gtid.Point, error) {
	r, err := s.lock.Query(ctx, s.cfg.Plan.Status)
	if err != nil {
		return gtid.Point{}, fmt.Errorf("reading the position: %w", err)
	}
	if r.Rows() != 1 || r.Named(0, "File") == "" {
		return gtid.Point{}, errors.New("the source has no binlog position: its binlog is off")
	}
	p := gtid.Point{Position: gtid.Position{File: r.Named(0, "File"), Offset: uint64(r.Int(0, r.Find("Position")))}}
	if s.cfg.Plan.GTIDs {
		p.Set, err = gtid.ParseSet(strings.TrimSpace(r.Named(0, "Executed_Gtid_Set")))
	}
	return p, err
}
