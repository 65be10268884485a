package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// Run copies the tables of the plan. It goes on by itself after lost connections, as long as Config.Retry says; an error
// is what another try at once does not cure, or the end of ctx. What it has copied by then can be taken over: see Resume.
func Run(ctx context.Context, cfg Config, sink Sink) (*Result, error) {
	cfg = cfg.withDefaults()
	cfg.Plan = narrowed(&cfg)
	begun := time.Now()
	s, err := openSessions(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer s.close()
	c, err := s.begin(ctx, sink)
	if err != nil {
		return nil, err
	}
	if err := sink.Begin(c.origin.cut); err != nil {
		return nil, err
	}
	if err := c.copyAll(ctx, s.take()); err != nil {
		return nil, err
	}
	rows, bytes := c.progress.total()
	result := &Result{Cut: c.origin.cut, Rows: rows, Bytes: bytes, Tables: c.results(), Elapsed: time.Since(begun)}
	cfg.Logger.Info("snapshot is complete", "database", cfg.Plan.Database, "tables", len(result.Tables), "rows", rows, "bytes", bytes,
		"seconds", result.Elapsed.Seconds(), "point", result.Point.String())
	return result, nil
}

// narrowed gives the plan with a filter of the tables that this Run copies.
func narrowed(cfg *Config) *compat.Plan {
	plan := *cfg.Plan
	all := plan.Filter
	var only []string
	if cfg.Resume != nil {
		for _, t := range cfg.Resume.Cut.Tables {
			only = append(only, t.Name)
		}
	}
	plan.Filter = func(table string) bool {
		return (all == nil || all(table)) && (cfg.Tables == nil || slices.Contains(cfg.Tables, table)) && (cfg.Resume == nil || slices.Contains(only, table))
	}
	return &plan
}

// sessions are the connections of a copy: one that locks and asks, and the readers.
type sessions struct {
	cfg     *Config
	control *control
	readers []*wire.Conn
}

func openSessions(ctx context.Context, cfg *Config) (*sessions, error) {
	s := &sessions{cfg: cfg, control: &control{cfg: cfg}}
	err := s.control.once(ctx, func(c *wire.Conn) (err error) {
		s.control.server, err = serverUUID(ctx, c)
		return err
	})
	for err == nil && len(s.readers) < cfg.Readers {
		var reader *wire.Conn
		reader, err = wire.Dial(ctx, cfg.Source)
		if full(err) && len(s.readers) > 0 { // SNAP-18
			cfg.Logger.Warn("the source has no more connections for the snapshot", "readers", len(s.readers), "wished", cfg.Readers)
			return s, nil
		}
		if err == nil {
			s.readers = append(s.readers, reader)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// take gives the readers' connections away.
func (s *sessions) take() []*wire.Conn {
	readers := s.readers
	s.readers = nil
	return readers
}

// close ends all sessions, and with them whatever they hold.
func (s *sessions) close() {
	s.control.close()
	for _, r := range s.readers {
		_ = r.Close() // only read from
	}
}

// begin makes the cut, and lists what there is to do.
func (s *sessions) begin(ctx context.Context, sink Sink) (*copier, error) {
	c := &copier{cfg: s.cfg, sink: sink, control: s.control, pace: newPace(s.cfg)}
	var sizes map[string]size
	err := s.control.once(ctx, func(conn *wire.Conn) (err error) {
		if sizes, err = tableSizes(ctx, conn, s.cfg.Plan.Database); err == nil {
			c.origin, err = begin(ctx, s.cfg, conn, s.readers)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.origin.cut.Server = s.control.server
	for _, name := range s.cfg.Tables {
		if !slices.ContainsFunc(c.origin.cut.Tables, func(t *schema.Table) bool { return t.Name == name }) {
			return nil, fmt.Errorf("%w: the source has no table %s", ErrSchemaChanged, name)
		}
	}
	return c, c.list(sizes)
}

// reasonChanged is why copies of tables are worthless.
const reasonChanged = "its definition was changed during its copy, or it was truncated, dropped, or exchanged for another"

// copier is the copying after the cut.
type copier struct {
	cfg      *Config
	sink     Sink
	control  *control
	pace     *pace
	origin   *origin
	tables   []*tableWork // in the cut's order
	queue    *queue
	progress *progress
	readers  []*reader
	fat      sync.Mutex // held by the reader of a table of very large rows

	settling  sync.Mutex
	unsettled []*tableWork // whose rows are read, and whose windows are open
}

// list lists what there is to do: all tables, or what earlier Runs have left of them.
func (c *copier) list(sizes map[string]size) error {
	for _, def := range c.origin.cut.Tables {
		t := &tableWork{table: def, size: sizes[def.Name], key: keyColumns(def), changed: c.origin.changed[def.Name]}
		if r := c.cfg.Resume; r != nil {
			var err error
			if t.taken, err = takeOver(def, r.Chunks[def.Name]); err != nil {
				return err
			}
			for _, n := range t.taken.notes {
				if t.changed == "" && !sameIdentity(n.Table, c.origin.defs.identity(def.Name)) {
					t.changed = reasonChanged
				}
			}
		}
		if t.changed == "" {
			t.addStretches(c.origin.cut.Exact)
		}
		c.tables = append(c.tables, t)
	}
	c.queue = newQueue(slices.Clone(c.tables), c.readThrough)
	c.progress = newProgress(c.cfg.Progress, c.tables)
	return nil
}

// readThrough takes a table whose rows are all read. The queue's lock is held.
func (c *copier) readThrough(t *tableWork) {
	c.settling.Lock()
	defer c.settling.Unlock()
	c.unsettled = append(c.unsettled, t)
}

// copyAll has the readers read everything, and looks after them and the source meanwhile.
func (c *copier) copyAll(ctx context.Context, conns []*wire.Conn) error {
	for _, conn := range conns {
		r := &reader{copier: c, conn: conn, exact: c.origin.cut.Exact, viewed: time.Now()}
		r.id.Store(conn.ID())
		c.readers = append(c.readers, r)
	}
	beside, end := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { c.watch(beside) })
	others.Go(func() { c.settleNowAndThen(beside) })
	err := c.readAll(ctx)
	end()
	others.Wait()
	if err != nil {
		return err
	}
	return c.settle(ctx)
}

func (c *copier) readAll(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(gctx, c.queue.stop)()
	c.queue.readers = len(c.readers)
	for _, r := range c.readers {
		g.Go(func() error { return r.run(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// Readers that wait for work when ctx ends find none, and end as if all were done.
	return stopped(ctx)
}

const watchPause = time.Second

// watch looks after the source while the readers work. It has no errors: what it can't see now, it may see the next time.
func (c *copier) watch(ctx context.Context) {
	for blind := false; ; {
		err := c.control.once(ctx, func(conn *wire.Conn) error {
			if err := c.pace.look(ctx, conn); err != nil {
				return err
			}
			held, err := c.pace.heldUp(ctx, conn)
			if err != nil || !held {
				return err
			}
			return c.giveWay(ctx, conn)
		})
		if err != nil && ctx.Err() == nil && !blind {
			c.cfg.Logger.Info("how busy the source is can't be seen", "database", c.cfg.Plan.Database, "error", err)
		}
		blind = err != nil
		if sleep(ctx, watchPause) != nil {
			return
		}
	}
}

// giveWay ends chunks that have kept their tables' metadata locks for long: at their next row, or, when none comes for as
// long again, by force.
func (c *copier) giveWay(ctx context.Context, conn *wire.Conn) error {
	for _, r := range c.readers {
		since := r.since.Load()
		held := time.Since(time.Unix(0, since))
		if since == 0 || held < c.cfg.Limits.LockWaits {
			continue
		}
		c.cfg.Logger.Info("a chunk ends early, since statements on the source wait for a lock", "database", c.cfg.Plan.Database, "held", held)
		if !r.yield.Swap(true) || held < 2*c.cfg.Limits.LockWaits {
			continue
		}
		// A statement whose rows nobody takes does not see KILL QUERY.
		err := conn.Exec(ctx, fmt.Sprintf("KILL CONNECTION %d", r.id.Load()))
		if err != nil && wire.ServerError(err) == nil {
			return err
		}
	}
	return nil
}

// results gives what has become of the tables.
func (c *copier) results() []TableResult {
	out := make([]TableResult, len(c.tables))
	for i, t := range c.tables {
		out[i] = t.result
	}
	return out
}

// settleNowAndThen closes the windows of tables that are read, some time after each other, as it reads all definitions
// each time. Now and then it does so in any case: a table that was changed need not be read to its end.
func (c *copier) settleNowAndThen(ctx context.Context) {
	const least, share, always = 2 * time.Second, 20, 30 * time.Second
	last := time.Now()
	for pause := least; sleep(ctx, pause) == nil; {
		begun := time.Now()
		if !c.toSettle() && begun.Sub(last) < always {
			continue
		}
		if err := c.settle(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Info("the end of a table's window can't be read now", "database", c.cfg.Plan.Database, "error", err)
		}
		last = time.Now()
		pause = max(least, share*last.Sub(begun))
	}
}

func (c *copier) toSettle() bool {
	c.settling.Lock()
	defer c.settling.Unlock()
	return len(c.unsettled) > 0
}

// settle closes windows: it reads P1, and behind it the definitions. A definition that changed between the last chunk and
// P1 did no harm, but looks the same as one that did.
func (c *copier) settle(ctx context.Context) error {
	c.settling.Lock()
	tables := c.unsettled
	c.unsettled = nil
	c.settling.Unlock()
	err := c.control.patiently(ctx, func(conn *wire.Conn) error { return c.settleAt(ctx, conn, tables) })
	if err != nil {
		c.settling.Lock()
		c.unsettled = append(tables, c.unsettled...)
		c.settling.Unlock()
	}
	return err
}

func (c *copier) settleAt(ctx context.Context, conn *wire.Conn, tables []*tableWork) error {
	p1, err := status(ctx, conn, c.cfg.Plan)
	if err != nil {
		return err
	}
	now, err := readDefinitions(ctx, conn, c.cfg, c.origin.defs.Catalog)
	var gone *compat.NoDatabaseError
	if errors.As(err, &gone) {
		now, err = &definitions{Catalog: &compat.Catalog{Database: c.cfg.Plan.Database}}, nil
	}
	if err != nil {
		return err
	}
	for _, t := range c.tables {
		if !sameIdentity(c.origin.defs.identity(t.table.Name), now.identity(t.table.Name)) {
			c.queue.failOpen(t, reasonChanged)
		}
	}
	for _, t := range tables {
		r := TableResult{Name: t.table.Name, From: c.origin.cut.Point}
		c.queue.change(func() { r.Rows, r.Changed = t.rows, t.changed })
		if r.Changed == "" && !sameIdentity(c.origin.defs.identity(r.Name), now.identity(r.Name)) {
			r.Changed = reasonChanged
		}
		switch {
		case r.Changed != "":
			r.From = gtid.Point{}
			c.cfg.Logger.Warn("the copy of a table is worthless", "table", t.table.FullName(), "reason", r.Changed)
		case t.bracket != nil:
			r.Bracket = true
			if r.From, r.To, err = t.bracket.decode(); err != nil {
				return err
			}
		case !t.exact:
			r.To = p1.Position
		}
		t.result = r
		c.progress.done(r.Name)
	}
	return nil
}
