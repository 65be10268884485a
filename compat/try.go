package compat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// Trial is what happened when something was tried, because what the server says about it can't be relied on.
type Trial struct {
	// Tried is false where nothing was tried, for Reason.
	Tried  bool
	Reason string
	// Err is how it failed; nil where it went well.
	Err error
}

// Refused tells that it was tried in vain.
func (t Trial) Refused() bool { return t.Tried && t.Err != nil }

const (
	codeDatabaseDenied = 1044
	codeTableDenied    = 1142
	// codeForbidden is "the server is running with an option so that it cannot execute this statement": a vendor's way to
	// forbid one (from the manual: Cloud SQL, "Unsupported statements").
	codeForbidden = 1290
)

// tryDump opens a dump of the binlog at its present end (CLOUD-09).
func (s *Source) tryDump(ctx context.Context, cfg wire.Config) {
	if !s.LogBin || s.Position.IsZero() {
		s.Dumping = Trial{Reason: "there is no position to begin at"}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	at := gtid.Point{Set: s.Executed, Position: s.Position}
	err := binlog.Try(ctx, dumpConfig(cfg, s.GTIDs(), at))
	s.Dumping = Trial{Tried: true, Err: err}
}

const tryTimeout = 20 * time.Second

// tryLock takes the global lock for an instant, where SHOW GRANTS shows that we may and the product is known to refuse it
// all the same (CLOUD-01). It does not where a long statement runs, behind which it would queue (SNAP-02): the snapshot
// then finds out.
func (s *Source) tryLock(ctx context.Context, c *wire.Conn) error {
	if !s.quirk().blindLock || !s.mayReload() {
		s.Locking = Trial{Reason: "SHOW GRANTS says it"}
		return nil
	}
	if !s.Grants.HasGlobal("PROCESS") {
		s.Locking = Trial{Reason: "without PROCESS nobody can tell what it would wait for"}
		return nil
	}
	busy, err := longStatement(ctx, c)
	if err != nil {
		return err
	}
	if busy {
		s.Locking = Trial{Reason: "a long statement is running, behind which it would wait"}
		return nil
	}
	if err := c.Exec(ctx, "SET SESSION lock_wait_timeout = 1"); err != nil {
		return err
	}
	err = c.Exec(ctx, "FLUSH TABLES WITH READ LOCK")
	switch {
	case err == nil:
		s.Locking = Trial{Tried: true}
		return c.Exec(ctx, "UNLOCK TABLES")
	case denied(err), wire.Code(err) == codeForbidden:
		s.Locking = Trial{Tried: true, Err: wire.ServerError(err)}
		return nil
	case wire.Code(err) == wire.CodeLockTimeout:
		s.Locking = Trial{Tried: true}
		return nil
	}
	return err
}

// longStatement tells whether any statement has been running for a second or more.
func longStatement(ctx context.Context, c *wire.Conn) (bool, error) {
	r, err := c.Query(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return false, fmt.Errorf("looking for long statements: %w", err)
	}
	for i := range r.Rows() {
		command := r.Named(i, "Command")
		if (command == "Query" || command == "Execute") && r.Int(i, r.Find("Time")) >= 1 && r.Int(i, r.Find("Id")) != int64(c.ID()) {
			return true, nil
		}
	}
	return false, nil
}

// dumpProblem says why the binlog can't be read, unless another problem says it already.
func (s *Source) dumpProblem() []Problem {
	if !s.Dumping.Refused() {
		return nil
	}
	var e *binlog.Error
	if errors.As(s.Dumping.Err, &e) && e.Class == binlog.AuthFailed && !s.Grants.HasGlobal("REPLICATION SLAVE") {
		return nil
	}
	return []Problem{{Code: "dump", What: fmt.Sprintf("the binlog can't be read, although everything looks as if it could: %v", s.Dumping.Err),
		Do: "a proxy in between, or a server that is none of MySQL's, may be the cause: give the address of the server itself"}}
}
