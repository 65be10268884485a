package replica

import (
	"context"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
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
	held, ok := d.held()
	if !ok { // nothing was read yet
		d.setRetention(ctx, &Retention{Keeping: KeepingOf(logs.Retention)})
		return nil
	}
	m := logs.Margin(held, time.Now())
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

// held is how much of the source's binlog is safe here.
func (d *database) held() (compat.Held, bool) {
	info, err := d.m.store.Database(d.spec().Name)
	if err != nil || info.Point == nil {
		return compat.Held{}, false
	}
	state, err := decodePoint(info.Point)
	if err != nil {
		return compat.Held{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.pointTime
	if at.IsZero() && state.Last.Committed > 0 {
		at = time.UnixMicro(int64(state.Last.Committed))
	}
	if d.caughtUp && time.Since(at) < d.signOfLife() {
		at = time.Now()
	}
	return compat.Held{Point: state.Point, Server: state.Last.Source, GTIDs: !d.cfg.ByPosition, Time: at}, true
}
