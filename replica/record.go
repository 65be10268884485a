package replica

import (
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
)

// phase is how far a first copy is.
type phase string

// The phases. Nothing is readable before the last one.
const (
	// copying: rows are read from the source; the chunks that are finished are durable.
	copying phase = "copying"
	// converging: all rows are here, and the tables that were not read at one point are on their way to one.
	converging phase = "converging"
	// complete: all tables stand at one point.
	complete phase = "complete"
)

// copyRecord is what is kept of the first copy: while it is under way, so that it can go on after a restart; then, so that
// one can ask how it was made (SNAP-20).
type copyRecord struct {
	Phase phase
	// Lock is the plan that made the cut. Exact tells that every row stood at Point, with no window to pass.
	Lock  compat.LockPlan
	Exact bool
	// Point is P0, Listed a position of the source's binlog behind which the tables were listed (zero: at P0), in the
	// binary form.
	Point, Listed []byte
	// Anchor is a transaction that is in P0, by which the source's history is known again; empty: there is none.
	Anchor []byte
	// Server is the source's server_uuid: positions are its own.
	Server     string
	ByPosition bool
	// XAUnknown tells that the account could not ask whether XA transactions were prepared at P0.
	XAUnknown bool `json:",omitempty"`
	// Charset and Collation are the database's defaults at P0.
	Charset, Collation string
	Begun              time.Time
	// LockHeld is how long the source was locked.
	LockHeld time.Duration
	// Breaks counts how often the copy broke off and went on, Restarts how often it began anew.
	Breaks, Restarts int `json:",omitempty"`
	// Until is where the last window ends, in the binary form; empty while copying, and of an exact copy.
	Until []byte `json:",omitempty"`
}

func newRecord(cut *snapshot.Cut, byPosition bool, charset defaults, anchor gtid.Identity) *copyRecord {
	r := &copyRecord{
		Phase: copying, Lock: cut.Lock, Exact: cut.Exact, Point: cut.Point.AppendBinary(nil), Listed: cut.Listed.AppendBinary(nil), Server: cut.Server.String(),
		ByPosition: byPosition, Charset: charset.charset, Collation: charset.collation, Begun: time.Now().UTC(), LockHeld: cut.LockHeld,
	}
	if !anchor.IsZero() {
		r.Anchor = anchor.AppendBinary(nil)
	}
	return r
}

// start is a record's cut in memory.
type start struct {
	point  gtid.Point
	listed gtid.Position
	anchor gtid.Identity
	server gtid.UUID
}

func (r *copyRecord) start() (start, error) {
	var s start
	var errs [4]error
	s.point, _, errs[0] = gtid.DecodePoint(r.Point)
	s.listed, _, errs[1] = gtid.DecodePosition(r.Listed)
	if len(r.Anchor) > 0 {
		s.anchor, _, errs[2] = gtid.DecodeIdentity(r.Anchor)
	}
	s.server, errs[3] = gtid.ParseUUID(r.Server)
	for _, err := range errs {
		if err != nil {
			return s, fmt.Errorf("the stored record of the copy can't be read: %w", err)
		}
	}
	return s, nil
}

func (r *copyRecord) until() gtid.Position {
	p, _, err := gtid.DecodePosition(r.Until)
	if err != nil { // it only shows how far the database is
		return gtid.Position{}
	}
	return p
}

// guarantee says in words what a copy promised, for people.
func (r *copyRecord) guarantee() string {
	switch {
	case r.Exact:
		return "exact: all tables were read at one point, under a lock that was held while the read views were opened"
	case r.Phase == complete:
		return "converged: tables were read at points of their own, and the binlog brought them to one point before the database was readable"
	default:
		return "converging: tables are read at points of their own, and the binlog brings them to one point before the database is readable"
	}
}

// phaseOf tells how far a database's first copy is; empty: it has not begun.
func phaseOf(c *config, info storage.DatabaseInfo) phase {
	switch {
	case c.Copy != nil:
		return c.Copy.Phase
	case len(info.Point) > 0: // made by a version that kept no record
		return complete
	}
	return ""
}
