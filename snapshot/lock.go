package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/wire"
)

// take takes the lock.
func (c *cutter) take(ctx context.Context) error {
	seconds := max(int64(c.cfg.LockWait/time.Second), 1)
	if !c.cfg.Plan.Process {
		seconds = 1 // what we would queue behind can't be seen
	}
	if err := c.lock.Exec(ctx, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", seconds)); err != nil {
		return err
	}
	if c.kind == compat.LockTables {
		return c.lockTables(ctx)
	}
	err := c.lock.Exec(ctx, "FLUSH TABLES WITH READ LOCK")
	switch wire.Code(err) {
	case wire.CodeLockTimeout:
		return c.globalTimeout(ctx, seconds, err)
	case wire.CodeAccessDenied, wire.CodeNoPrivilege, mysql.ER_OPTION_PREVENTS_STATEMENT: // CLOUD-01
		return &LockError{Obstacle: Denied, Reason: "the source does not allow FLUSH TABLES WITH READ LOCK to this account, which has nothing to do with its password; " +
			"it needs RELOAD or FLUSH_TABLES, and some managed servers allow it to nobody", Err: err}
	}
	return err
}

// globalTimeout says what was in the way, as the process list shows it now. A statement that began just before we looked
// and goes on for long is the one case in which others still wait: the flush has marked the tables that it reads, MySQL
// can't take that back, and statements on these tables wait for its end.
func (c *cutter) globalTimeout(ctx context.Context, seconds int64, err error) error {
	if !c.cfg.Plan.Process {
		return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("the global read lock was not to be had within %d s; a long statement or a lock of another session is in the way, and without PROCESS it can't be seen", seconds), Err: err}
	}
	var busy *LockError
	if why := c.noLongStatement(ctx, c.cfg.LockWait); errors.As(why, &busy) {
		busy.Reason += "; until then, statements on the tables that it reads wait for it"
		return busy
	}
	return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("the global read lock was not to be had within %d s; another session holds table locks or a backup lock", seconds), Err: err}
}

// lockTables locks the wanted base tables, and nothing else (CLOUD-02), in one statement, however many they are: a second
// LOCK TABLES would let go of what the first has locked. lock_wait_timeout bounds the wait for each table; the statement
// as a whole is ended by another session. The first tries are short: it waits for one table while it holds another, and a
// transaction that uses both may wait for it crosswise. Where MySQL sees that, it ends the transaction as a deadlock.
func (c *cutter) lockTables(ctx context.Context) error {
	if len(c.known.Tables) == 0 {
		return nil
	}
	names := make([]string, len(c.known.Tables))
	for i, t := range c.known.Tables {
		names[i] = tableName(t) + " READ"
	}
	const first, growing = 200 * time.Millisecond, 6
	wait := min(first<<min(c.tries, growing), c.cfg.LockWait)
	c.tries++
	endWait := killAfter(ctx, c.views[0], c.lock, wait)
	err := c.lock.Exec(ctx, "LOCK TABLES "+strings.Join(names, ", "))
	endWait()
	busy := func(format string, args ...any) error {
		return &LockError{Obstacle: Busy, Reason: fmt.Sprintf(format, args...), Err: err}
	}
	switch wire.Code(err) {
	case wire.CodeLockTimeout, mysql.ER_QUERY_INTERRUPTED:
		if why := c.noLongWriter(ctx, 0); why != nil {
			return why
		}
		return busy("the tables were not to be locked within %s: a transaction that has written to one of them, one that was prepared by XA PREPARE, or LOCK TABLES of another session is in the way", wait)
	case wire.CodeNoSuchTable:
		return busy("a table was dropped or renamed while the cut was made")
	case wire.CodeAccessDenied, wire.CodeNoPrivilege, mysql.ER_DBACCESS_DENIED_ERROR, mysql.ER_TABLEACCESS_DENIED_ERROR, mysql.ER_OPTION_PREVENTS_STATEMENT:
		return &LockError{Obstacle: Denied, Reason: "the source does not allow LOCK TABLES to this account; GRANT SELECT, LOCK TABLES ON " + wire.Identifier(c.cfg.Plan.Database) + ".* would", Err: err}
	}
	return err
}

// killAfter ends the statement of one session through another one, which must be idle, after a time. The returned function
// ends the watch; nothing is killed behind it.
func killAfter(ctx context.Context, killer, victim *wire.Conn, after time.Duration) (end func()) {
	limited, cancel := context.WithTimeout(ctx, after)
	done := make(chan struct{})
	stop := context.AfterFunc(limited, func() {
		defer close(done)
		if ctx.Err() == nil && limited.Err() == context.DeadlineExceeded {
			_ = kill(ctx, killer, victim) // what it waits for then ends it
		}
	})
	return func() {
		if !stop() {
			<-done
		}
		cancel()
	}
}

func kill(ctx context.Context, killer, victim *wire.Conn) error {
	return killer.Exec(ctx, fmt.Sprintf("KILL QUERY %d", victim.ID()))
}

// nothingLong refuses to queue behind what will hold the lock up for long (SNAP-02).
func (c *cutter) nothingLong(ctx context.Context) error {
	if c.kind == compat.LockTables {
		return c.noLongWriter(ctx, c.cfg.LongStatement)
	}
	return c.noLongStatement(ctx, c.cfg.LongStatement)
}

// noLongStatement names who runs a long statement, and not what: statements hold data.
func (c *cutter) noLongStatement(ctx context.Context, long time.Duration) error {
	r, err := c.lock.Query(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return fmt.Errorf("looking for long statements: %w", err)
	}
	limit := max(int64(long/time.Second), 1)
	worst := -1
	for i := range r.Rows() {
		command := r.Named(i, "Command")
		if command != "Query" && command != "Execute" || r.Named(i, "User") == "system user" || c.ours(r.Int(i, r.Find("Id"))) {
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

// writersQuery lists the transactions that hold metadata locks against LOCK TABLES ... READ.
const writersQuery = "SELECT m.OBJECT_NAME, t.PROCESSLIST_ID, t.PROCESSLIST_USER, TIMESTAMPDIFF(SECOND, x.trx_started, NOW())" +
	" FROM performance_schema.metadata_locks AS m JOIN performance_schema.threads AS t ON t.THREAD_ID = m.OWNER_THREAD_ID" +
	" JOIN information_schema.INNODB_TRX AS x ON x.trx_mysql_thread_id = t.PROCESSLIST_ID" +
	" WHERE m.OBJECT_TYPE = 'TABLE' AND m.LOCK_STATUS = 'GRANTED' AND m.LOCK_TYPE IN ('SHARED_WRITE', 'SHARED_WRITE_LOW_PRIO', 'SHARED_NO_READ_WRITE', 'EXCLUSIVE')" +
	" AND m.OBJECT_SCHEMA = "

// noLongWriter finds a transaction that has held one of the tables for long: it does so until its commit has ended. Where
// the account may not look, the short wait has to do.
func (c *cutter) noLongWriter(ctx context.Context, long time.Duration) error {
	if !c.cfg.Plan.Process {
		return nil
	}
	r, err := c.lock.Query(ctx, writersQuery+wire.Literal(c.cfg.Plan.Database))
	if wire.ServerError(err) != nil {
		return nil //nolint:nilerr // without SELECT on performance_schema
	}
	if err != nil {
		return fmt.Errorf("looking for long transactions: %w", err)
	}
	for i := range r.Rows() {
		if c.known.Table(r.Text(i, 0)) == nil || r.Int(i, 3) < int64(long/time.Second) || c.ours(r.Int(i, 1)) {
			continue
		}
		return &LockError{Obstacle: Busy, Reason: fmt.Sprintf("a transaction of user %s (connection %s) has been open for %s s and has written to table %s; the brief lock would queue behind it, and writers behind the lock; wait for its end, or end it",
			r.Text(i, 2), r.Text(i, 1), r.Text(i, 3), r.Text(i, 0))}
	}
	return nil
}

func (c *cutter) ours(id int64) bool {
	return id == int64(c.lock.ID()) || slices.ContainsFunc(c.views, func(r *wire.Conn) bool { return id == int64(r.ID()) })
}
