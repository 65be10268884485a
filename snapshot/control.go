package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

const (
	firstPause = 250 * time.Millisecond
	longPause  = 5 * time.Second
)

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// control is the session that asks, locks and looks after the readers. Only the lock needs this one session: for all else
// it is opened anew when it was lost.
type control struct {
	cfg    *Config
	server gtid.UUID // zero until it is known

	mu   sync.Mutex
	conn *wire.Conn // nil when it was lost
}

func (c *control) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // only read from
		c.conn = nil
	}
}

// shortWaits bounds the wait for a metadata lock when definitions are read.
const shortWaits = "SET SESSION lock_wait_timeout = 3"

// once asks on the session that there is, or on a new one.
func (c *control) once(ctx context.Context, ask func(*wire.Conn) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		conn, err := dial(ctx, c.cfg, c.server)
		if err != nil {
			return err
		}
		c.conn = conn
		if err := conn.Exec(ctx, shortWaits); err != nil {
			return err
		}
	}
	err := ask(c.conn)
	if err != nil && wire.ServerError(err) == nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	return err
}

// patiently asks until the source answers, or has not for as long as Config.Retry says.
func (c *control) patiently(ctx context.Context, ask func(*wire.Conn) error) error {
	begun := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := c.once(ctx, ask)
		if err == nil || !passing(err) || time.Since(begun) > c.cfg.Retry {
			return err
		}
		if err := stopped(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// otherServerError says that the source's address leads to another server now.
type otherServerError struct {
	addr      string
	was, came gtid.UUID
}

func (e *otherServerError) Error() string {
	return fmt.Sprintf("MySQL at %s is another server than at the beginning of the copy (server_uuid %s, it was %s); the copy can't go on with its rows", e.addr, e.came, e.was)
}

// dial connects, to the server that it was before if that is known.
func dial(ctx context.Context, cfg *Config, server gtid.UUID) (*wire.Conn, error) {
	conn, err := wire.Dial(ctx, cfg.Source)
	if err != nil || server.IsZero() {
		return conn, err
	}
	came, err := serverUUID(ctx, conn)
	if err == nil && came != server {
		err = &otherServerError{addr: conn.Addr(), was: server, came: came}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func serverUUID(ctx context.Context, c *wire.Conn) (gtid.UUID, error) {
	r, err := c.Query(ctx, "SELECT @@server_uuid")
	if err != nil {
		return gtid.UUID{}, err
	}
	return gtid.ParseUUID(r.Text(0, 0))
}

// status reads the end of the binlog and, with GTIDs, what was executed then.
func status(ctx context.Context, c *wire.Conn, plan *compat.Plan) (gtid.Point, error) {
	r, err := c.Query(ctx, plan.Status)
	if err != nil {
		return gtid.Point{}, fmt.Errorf("reading the position: %w", err)
	}
	if r.Rows() != 1 || r.Named(0, "File") == "" {
		return gtid.Point{}, errors.New("the source has no binlog position: its binlog is off")
	}
	p := gtid.Point{Position: gtid.Position{File: r.Named(0, "File"), Offset: uint64(r.Int(0, r.Find("Position")))}}
	if plan.GTIDs {
		p.Set, err = gtid.ParseSet(strings.TrimSpace(r.Named(0, "Executed_Gtid_Set")))
	}
	return p, err
}

// firstEvent is the offset of the first event of a binlog file.
const firstEvent = 4

// lowerBound reads a P0: everything up to it is committed, so that each view opened from now on shows it. The binlog is
// written before the engine commits, so that its end is no such bound. With GTIDs it is @@gtid_executed, which is updated
// behind the engine's commit; without, the start of the current file: MySQL begins a new one only when all transactions
// of the old ones are committed.
//
// A transaction that XA PREPARE has written is in the set, and its rows are in no view. So it waits until there was no
// such transaction at one moment; one that is prepared later comes behind P0 in the stream.
func lowerBound(ctx context.Context, c *wire.Conn, cfg *Config) (gtid.Point, error) {
	p, err := status(ctx, c, cfg.Plan)
	if err != nil {
		return p, err
	}
	p.Position.Offset = firstEvent
	if cfg.Plan.GTIDs {
		r, err := c.Query(ctx, "SELECT @@GLOBAL.gtid_executed")
		if err != nil {
			return p, fmt.Errorf("reading what the source has executed: %w", err)
		}
		if p.Set, err = gtid.ParseSet(r.Text(0, 0)); err != nil {
			return p, err
		}
	}
	return p, insist(ctx, cfg, func() error { return noPreparedXA(ctx, c, cfg.Plan) })
}

// insist tries until it succeeds, the patience ends, or an obstacle is there to stay.
func insist(ctx context.Context, cfg *Config, try func() error) error {
	deadline := time.Now().Add(cfg.LockPatience)
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := try()
		var obstacle *LockError
		if !errors.As(err, &obstacle) || obstacle.Obstacle != Busy && obstacle.Obstacle != PreparedXA || time.Now().After(deadline) {
			cfg.Waiting("")
			return err
		}
		cfg.Waiting(obstacle.Reason)
		cfg.Logger.Info("waiting to begin the copy", "database", cfg.Plan.Database, "reason", obstacle.Reason, "again in", pause)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func noPreparedXA(ctx context.Context, c *wire.Conn, plan *compat.Plan) error {
	if !plan.AskXA {
		return nil
	}
	r, err := c.Query(ctx, "XA RECOVER")
	if err != nil {
		return fmt.Errorf("asking for prepared XA transactions: %w", err)
	}
	if r.Rows() == 0 {
		return nil
	}
	return &LockError{Obstacle: PreparedXA, Reason: fmt.Sprintf("%d XA transactions are prepared on the source and no snapshot could see their rows; commit them or roll them back (XA RECOVER lists them)", r.Rows())}
}

// definitions are the tables as they were read at one time.
type definitions struct {
	*compat.Catalog
	ids map[string]string // compat.TableIDs, none where the account may not see them
}

func readDefinitions(ctx context.Context, c *wire.Conn, cfg *Config, known *compat.Catalog) (*definitions, error) {
	catalog, err := compat.ReadCatalog(ctx, c, cfg.Plan.Database, cfg.Plan.Filter, known)
	if err != nil {
		return nil, beingChanged(err)
	}
	ids, err := tableIDs(ctx, c, cfg.Plan, catalog.Tables)
	return &definitions{catalog, ids}, err
}

// beingChanged names what keeps definitions from being read: a statement that changes one waits for the end of others.
func beingChanged(err error) error {
	if wire.Code(err) != wire.CodeLockTimeout {
		return err
	}
	return &LockError{Obstacle: Busy, Reason: "a definition on the source is being changed", Err: err}
}

func tableIDs(ctx context.Context, c *wire.Conn, plan *compat.Plan, tables []*schema.Table) (map[string]string, error) {
	if !plan.Process {
		return nil, nil
	}
	ids, err := compat.TableIDs(ctx, c, tables)
	return ids, beingChanged(err)
}

// identity tells a table from one that took its name, and from itself before a change of its definition; "" is no table.
func (d *definitions) identity(table string) string {
	print := d.Fingerprint(table)
	if print == (compat.Fingerprint{}) {
		return ""
	}
	return fmt.Sprintf("%x/%s", print, d.ids[table])
}

// sameIdentity compares identities. Ids count only when both were to be seen.
func sameIdentity(a, b string) bool {
	printA, idA, _ := strings.Cut(a, "/")
	printB, idB, _ := strings.Cut(b, "/")
	return printA == printB && (idA == idB || idA == "" || idB == "")
}
