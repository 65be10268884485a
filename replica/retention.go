package replica

import (
	"context"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// Keeping is for how long a source keeps its binlog.
type Keeping struct {
	// Setting is what decides it on the source; empty when the account may not see it.
	Setting string `json:"setting"`
	// Hours is nil where it is not known, and where files are kept for ever.
	Hours   *float64 `json:"hours"`
	Forever bool     `json:"forever"`
	// Limit is a bound on space or files that removes files, too.
	Limit string `json:"limit,omitempty"`
}

// KeepingOf brings what compat found into the form of a Status.
func KeepingOf(r compat.Retention) Keeping {
	k := Keeping{Setting: r.Setting, Forever: r.Forever, Limit: r.Limit}
	if r.Known() && !r.Forever {
		k.Hours = new(r.Keep.Hours())
	}
	return k
}

// Retention is how far the source is from removing binlog that is still needed, as it was when it was last asked.
type Retention struct {
	Keeping
	// HoursLeft is for how long at least the source still has what is needed next; nil: not known, or for ever.
	HoursLeft *float64 `json:"hours_left"`
	// OlderFiles is how many files are removed before the one that is needed; nil when that can't be told.
	OlderFiles *int `json:"older_files"`
	// BytesAhead is the size of what is still to be read.
	BytesAhead uint64 `json:"bytes_ahead"`
	// Warning says that it gets tight, or that binlog is gone; nil when all is well.
	Warning *string `json:"warning"`

	code string
}

// retentionEvery is how often the source is asked, unless Options say otherwise.
const retentionEvery = time.Minute

// watchRetention looks at the source's binlogs at an interval until ctx ends. It has a connection of its own for each look,
// and changes nothing but what is shown.
func (d *database) watchRetention(ctx context.Context) {
	if spec := d.spec(); spec.replays() {
		return
	}
	for {
		if err := d.lookAtRetention(ctx); err != nil && ctx.Err() == nil {
			d.log.Debug("the source's binlogs could not be looked at", "error", err)
		}
		if !sleep(ctx, d.m.opt.RetentionEvery) {
			return
		}
	}
}

func (d *database) lookAtRetention(ctx context.Context) error {
	c, err := wire.Dial(ctx, d.wire())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only read from
	logs, err := compat.ReadLogs(ctx, c)
	if err != nil {
		return err
	}
	now := time.Now()
	d.ends.see(logs, now)
	held, ok := d.held(logs.Server)
	if !ok { // nothing was read yet
		d.setRetention(ctx, &Retention{Keeping: KeepingOf(logs.Retention)})
		return nil
	}
	if at := d.ends.reached(held.Point.Position); !at.IsZero() {
		held.Time = at
	}
	m := logs.Margin(held, now)
	r := &Retention{Keeping: KeepingOf(logs.Retention), BytesAhead: m.Ahead, code: m.Code}
	if m.Known {
		r.HoursLeft = new(m.Left.Hours())
	}
	if m.Older >= 0 {
		r.OlderFiles = &m.Older
	}
	if m.Warning != "" {
		r.Warning = &m.Warning
	}
	d.setRetention(ctx, r)
	return nil
}

// setRetention shows what was found, and writes to the log when a warning comes, changes its kind, or goes.
func (d *database) setRetention(ctx context.Context, r *Retention) {
	d.mu.Lock()
	before := ""
	if d.retention != nil {
		before = d.retention.code
	}
	d.retention = r
	d.mu.Unlock()
	switch {
	case r.code == before:
	case r.code == "":
		d.log.Info("the source keeps enough binlog again", "setting", r.Setting)
		d.note(ctx, "retention", "the source keeps enough binlog again ("+r.Setting+")")
	default:
		d.log.Warn("the source's binlog retention", "warning", *r.Warning)
		d.note(ctx, "retention", *r.Warning)
	}
}

// held is how much of the source's binlog is here: what is spooled, or, before anything is, what is committed. server is the
// source as it is now.
func (d *database) held(server gtid.UUID) (compat.Held, bool) {
	state, ok, err := d.committed()
	if err != nil || !ok {
		return compat.Held{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := compat.Held{Point: state.Point, Server: state.Last.Source, GTIDs: !d.cfg.ByPosition}
	if state.Last.Committed > 0 {
		h.Time = time.UnixMicro(int64(state.Last.Committed))
	}
	if d.puller == nil || d.away != "" {
		return h, true
	}
	end := d.puller.relay.End()
	if end.IsZero() {
		return h, true
	}
	// Heads of files, which have no transactions, are passed by what is committed before they count as spooled.
	if h.Server == server && h.Point.Position.SameSeries(end.Position) && h.Point.Position.Compare(end.Position) > 0 {
		end.Position = h.Point.Position
	}
	h.Point, h.Server = end, server // it is being read from there
	return h, true
}

// ends are where the source's binlog ended when it was looked at, oldest first. By them the age of a position is known
// without a clock of the source's: who has reached an end has everything that the source had at that time.
type ends struct {
	server gtid.UUID
	seen   []end
}

type end struct {
	position gtid.Position
	at       time.Time
}

// maxEnds is where half of the ends are forgotten: three days of minutes. A forgotten one only makes a position look older.
const maxEnds = 4096

// see takes a look.
func (e *ends) see(l *compat.Logs, now time.Time) {
	if e.server != l.Server {
		e.server, e.seen = l.Server, nil
	}
	if len(l.Files) == 0 {
		return
	}
	last := l.Files[len(l.Files)-1]
	position := gtid.Position{File: last.Name, Offset: last.Size}
	if n := len(e.seen); n > 0 && e.seen[n-1].position == position {
		e.seen[n-1].at = now // idle since
		return
	}
	e.seen = append(e.seen, end{position, now})
	if len(e.seen) > maxEnds {
		thin := e.seen[:0]
		for i := 0; i < len(e.seen); i += 2 {
			thin = append(thin, e.seen[i])
		}
		e.seen = thin
	}
}

// reached gives the time of the last end that a position has reached, and forgets those in front of it; zero when there is
// none.
func (e *ends) reached(p gtid.Position) time.Time {
	n := 0
	for n < len(e.seen) && e.seen[n].position.SameSeries(p) && e.seen[n].position.Compare(p) <= 0 {
		n++
	}
	if n == 0 {
		return time.Time{}
	}
	e.seen = e.seen[n-1:]
	return e.seen[0].at
}
