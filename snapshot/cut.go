package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// origin is where a copy begins.
type origin struct {
	cut  Cut
	defs *definitions
	// changed are the tables that can't be copied any more when a copy goes on, with the reasons.
	changed map[string]string
}

// begin makes the cut by the plan, or by a weaker one that the plan allows when the source denies the lock, or when its
// tables were not to be locked for all of the patience. The readers' sessions have their views open when it is exact.
func begin(ctx context.Context, cfg *Config, lock *wire.Conn, readers []*wire.Conn) (*origin, error) {
	if cfg.Resume != nil {
		return goOn(ctx, cfg, lock)
	}
	kinds := append([]compat.LockPlan{cfg.Plan.Lock}, cfg.Plan.Weaker...)
	for i, kind := range kinds {
		o, err := cutBy(ctx, cfg, lock, readers, kind)
		var denied *LockError
		if i+1 == len(kinds) || !errors.As(err, &denied) || denied.Obstacle != Denied && (denied.Obstacle != Busy || kind != compat.LockTables) {
			return o, err
		}
		cfg.Logger.Warn("the lock is not to be had; the copy begins by a weaker plan", "database", cfg.Plan.Database, "plan", kind, "next", kinds[i+1], "error", err)
	}
	return nil, errors.New("snapshot: there is no lock plan")
}

func cutBy(ctx context.Context, cfg *Config, lock *wire.Conn, readers []*wire.Conn, kind compat.LockPlan) (o *origin, err error) {
	switch kind {
	case compat.LockGlobal, compat.LockTables:
		c := &cutter{cfg: cfg, lock: lock, views: readers, kind: kind, known: cfg.Plan.Catalog}
		err = insist(ctx, cfg, func() (err error) { o, err = c.try(ctx); return err })
	case compat.LockNone:
		o, err = cutWithout(ctx, cfg, lock)
	default:
		return nil, fmt.Errorf("snapshot: lock plan %q is not known", kind)
	}
	if err != nil {
		return nil, err
	}
	o.cut.Lock, o.cut.Tables = kind, o.defs.Tables
	if problems := compat.TableProblems(o.defs.Catalog); len(problems) > 0 { // SNAP-19
		return nil, &LockError{Obstacle: Unfit, Reason: (&compat.ProblemsError{Addr: lock.Addr(), Problems: problems}).Error()}
	}
	cfg.Logger.Info("snapshot's cut is made", "database", cfg.Plan.Database, "plan", kind, "point", o.cut.Point.String(),
		"tables", len(o.cut.Tables), "readers", len(readers), "lock held", o.cut.LockHeld)
	return o, nil
}

// cutWithout makes a cut that is none: a lower bound, and behind it the definitions.
func cutWithout(ctx context.Context, cfg *Config, c *wire.Conn) (*origin, error) {
	p, err := lowerBound(ctx, c, cfg)
	if err != nil {
		return nil, err
	}
	listed, err := status(ctx, c, cfg.Plan)
	if err != nil {
		return nil, err
	}
	o := &origin{cut: Cut{Point: p, Listed: listed.Position}}
	return o, insist(ctx, cfg, func() (err error) { o.defs, err = readDefinitions(ctx, c, cfg, cfg.Plan.Catalog); return err })
}

// goOn takes a copy over. Its P0 stays: views that are opened now show more than those of then.
func goOn(ctx context.Context, cfg *Config, c *wire.Conn) (*origin, error) {
	was := cfg.Resume.Cut
	server, err := serverUUID(ctx, c)
	if err != nil {
		return nil, err
	}
	if server != was.Server {
		return nil, &otherServerError{addr: c.Addr(), was: was.Server, came: server}
	}
	var defs *definitions
	err = insist(ctx, cfg, func() (err error) { defs, err = readDefinitions(ctx, c, cfg, cfg.Plan.Catalog); return err })
	var gone *compat.NoDatabaseError
	if errors.As(err, &gone) {
		defs, err = &definitions{Catalog: &compat.Catalog{Database: cfg.Plan.Database}}, nil
	}
	if err != nil {
		return nil, err
	}
	o := &origin{cut: was, defs: defs, changed: map[string]string{}}
	o.cut.Exact, o.cut.Lock, o.cut.LockHeld, o.cut.Tables = false, compat.LockNone, 0, nil
	for _, then := range was.Tables {
		now := defs.Table(then.Name)
		if now == nil || !sameDefinition(then, now) {
			o.changed[then.Name] = reasonChanged
			now = then
		}
		o.cut.Tables = append(o.cut.Tables, now)
	}
	cfg.Logger.Info("the copy goes on", "database", cfg.Plan.Database, "point", o.cut.Point.String(), "tables", len(o.cut.Tables))
	return o, nil
}

// sameDefinition compares what rows are read and kept by.
func sameDefinition(a, b *schema.Table) bool {
	of := func(t *schema.Table) []byte {
		out, err := json.Marshal([]any{t.Columns, t.Key, t.KeyName})
		if err != nil {
			panic(err) // plain values
		}
		return out
	}
	return slices.Equal(of(a), of(b))
}

// cutter makes a cut under a lock.
type cutter struct {
	cfg   *Config
	lock  *wire.Conn   // the session that locks
	views []*wire.Conn // the readers' sessions
	kind  compat.LockPlan
	known *compat.Catalog // as it was before the lock
	tries int
}

// try makes one try. The lock is released when it returns.
func (c *cutter) try(ctx context.Context) (*origin, error) {
	var err error
	if c.known, err = compat.ReadCatalog(ctx, c.lock, c.cfg.Plan.Database, c.cfg.Plan.Filter, c.known); err != nil {
		return nil, beingChanged(err)
	}
	if err := noPreparedXA(ctx, c.lock, c.cfg.Plan); err != nil {
		return nil, err
	}
	if err := c.nothingLong(ctx); err != nil {
		return nil, err
	}
	before, err := tableIDs(ctx, c.lock, c.cfg.Plan, c.known.Tables)
	if err != nil {
		return nil, err
	}
	o, err := c.locked(ctx)
	if err != nil {
		return nil, err
	}
	return o, c.keepIDs(ctx, before, o)
}

func (c *cutter) locked(ctx context.Context) (*origin, error) {
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	held := time.Now()
	o, err := c.underLock(ctx)
	if unlockErr := c.lock.Exec(ctx, "UNLOCK TABLES", shortWaits); err == nil {
		err = unlockErr
	}
	if err != nil {
		return nil, err
	}
	o.cut.LockHeld = time.Since(held)
	return o, nil
}

// keepIDs keeps the tables' ids of the cut for the comparison at the end. They are read on both sides of the lock, as
// reading them can take long.
func (c *cutter) keepIDs(ctx context.Context, before map[string]string, o *origin) error {
	var err error
	if o.defs.ids, err = tableIDs(ctx, c.lock, c.cfg.Plan, o.defs.Tables); err != nil {
		return err
	}
	for table, id := range before {
		if o.defs.ids[table] != id {
			return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("table %s.%s was exchanged for another while the cut was made", c.cfg.Plan.Database, table)}
		}
	}
	return nil
}

// underLock does what has to be done while the source stands still. Every step is on the locking session or needs none
// of its locks, so that we never wait for ourselves (SNAP-10).
func (c *cutter) underLock(ctx context.Context) (*origin, error) {
	limited, cancel := context.WithTimeoutCause(ctx, c.cfg.HoldLimit, fmt.Errorf("more than %s", c.cfg.HoldLimit))
	defer cancel()
	o, err := c.readUnderLock(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, &LockError{Obstacle: TooSlow, Reason: "opening the read views under the lock took too long, and it was let go", Err: err}
	}
	return o, err
}

func (c *cutter) readUnderLock(ctx context.Context) (*origin, error) {
	if err := noPreparedXA(ctx, c.lock, c.cfg.Plan); err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, view := range c.views {
		g.Go(func() error { return view.Exec(gctx, openView, savepoint) })
	}
	o := &origin{cut: Cut{Exact: true}}
	g.Go(func() (err error) {
		// The position first: a table that is created behind it, with only the tables locked, comes by the stream.
		if o.cut.Point, err = status(gctx, c.lock, c.cfg.Plan); err != nil {
			return err
		}
		catalog, err := compat.ReadCatalog(gctx, c.lock, c.cfg.Plan.Database, c.cfg.Plan.Filter, c.known)
		o.defs = &definitions{Catalog: catalog}
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return o, c.allLocked(o.defs.Catalog)
}

// allLocked refuses tables that came between their listing and LOCK TABLES (SNAP-19).
func (c *cutter) allLocked(catalog *compat.Catalog) error {
	if c.kind != compat.LockTables {
		return nil
	}
	for _, t := range catalog.Tables {
		if c.known.Fingerprint(t.Name) != catalog.Fingerprint(t.Name) {
			return &LockError{Obstacle: Busy, Reason: "table " + t.FullName() + " came or changed while the tables were locked"}
		}
	}
	return nil
}
