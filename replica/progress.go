package replica

import (
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
)

// progress is what is known of a first copy while it is under way; the database's mu guards it.
type progress struct {
	total   int // tables
	resumed bool
	begun   time.Time // of this try
	slowed  string
	tables  map[string]snapshot.Progress
}

func (d *database) beginProgress(plan *compat.Plan, resume *snapshot.Resume, c *copySink) {
	p := &progress{total: len(plan.Catalog.Tables), begun: time.Now(), tables: map[string]snapshot.Progress{}}
	if resume != nil {
		p.resumed, p.total = true, len(resume.Cut.Tables)
		for name, load := range c.loads { // until the first report
			p.tables[name] = snapshot.Progress{Table: name, Rows: load.Rows(), Resumed: load.Rows(), Chunks: int64(len(resume.Chunks[name]))}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state, d.progress = StateSnapshot, p
}

// copied takes the progress of one table.
func (d *database) copied(now snapshot.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.progress != nil {
		d.progress.tables[now.Table] = now
	}
}

// slowed shows why the copy spares the source.
func (d *database) slowed(reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.progress != nil {
		d.progress.slowed = reason
	}
	if reason != "" {
		d.log.Info("the copy goes slower", "reason", reason)
	}
}

// tableCopy gives a table's progress as it is shown.
func tableCopy(t snapshot.Progress) *TableCopy {
	out := &TableCopy{
		Rows: uint64(t.Rows), TotalRows: uint64(max(t.Rows, t.Estimate)), Bytes: uint64(t.Bytes), RowsPerSecond: t.Rate,
		Chunks: int(t.Chunks), TotalChunks: int(t.ChunksTotal), RowsTakenOver: uint64(t.Resumed), RowsReadAgain: uint64(t.Again),
	}
	if t.Done {
		out.TotalRows, out.TotalChunks = out.Rows, out.Chunks
	}
	if t.Left > 0 {
		out.LeftSeconds = new(t.Left.Seconds())
	}
	return out
}

// status adds up the tables.
func (p *progress) status() *CopyProgress {
	out := &CopyProgress{TotalTables: p.total, Resumed: p.resumed, Slowed: p.slowed}
	var read int64
	for _, t := range p.tables {
		s := tableCopy(t)
		out.Rows += s.Rows
		out.TotalRows += s.TotalRows
		out.Bytes += s.Bytes
		out.Chunks += s.Chunks
		out.TotalChunks += s.TotalChunks
		out.RowsTakenOver += s.RowsTakenOver
		out.RowsReadAgain += s.RowsReadAgain
		read += t.Rows - t.Resumed
		if t.Done {
			out.Tables++
		}
	}
	if elapsed := time.Since(p.begun).Seconds(); elapsed > 0 && read > 0 {
		out.RowsPerSecond = float64(read) / elapsed
		if out.Tables < out.TotalTables {
			out.LeftSeconds = new(float64(out.TotalRows-out.Rows) / out.RowsPerSecond)
		}
	}
	return out
}

// copyNow gives what there is to know of the first copy while nothing is readable; nil before it has begun. mu is held.
func (d *database) copyNow() *CopyProgress {
	record := d.cfg.Copy
	if record == nil || record.Phase != converging {
		if d.progress == nil {
			return nil
		}
		return d.progress.status()
	}
	tables := d.m.store.Tables(d.id)
	out := &CopyProgress{Converging: true, TotalTables: len(tables), Until: record.until().String()}
	if info, err := d.m.store.Database(d.cfg.Spec.Name); err == nil {
		if state, err := decodePoint(info.Point); err == nil {
			out.Position = state.Point.Position.String()
		}
	}
	for _, t := range tables {
		out.Rows += uint64(t.Rows)
		out.TotalRows += uint64(t.Rows)
		switch {
		case t.Window == nil:
			out.Tables++
		case t.State == storage.Quarantined:
			out.Again = append(out.Again, t.Def.Name)
		}
	}
	return out
}

// Text is how far a first copy is, in words.
func (c *CopyProgress) Text() string {
	switch {
	case c.Converging && len(c.Again) > 0:
		return fmt.Sprintf("all rows are here; the stream is at %s and has to pass %s; %d of %d tables stand at its point, and %d have to be copied again",
			c.Position, c.Until, c.Tables, c.TotalTables, len(c.Again))
	case c.Converging:
		return fmt.Sprintf("all rows are here; the stream is at %s and has to pass %s; %d of %d tables stand at its point", c.Position, c.Until, c.Tables, c.TotalTables)
	}
	return fmt.Sprintf("%d of about %d rows, %d of %d tables", c.Rows, c.TotalRows, c.Tables, c.TotalTables)
}

// snapshotStatus tells how the copy was made, and what that promises (SNAP-20).
func (r *copyRecord) status() *SnapshotStatus {
	if r == nil || r.Phase == "" {
		return nil
	}
	out := &SnapshotStatus{Lock: string(r.Lock), Exact: r.Exact, Guarantee: r.guarantee(), Begun: r.Begun, LockSeconds: r.LockHeld.Seconds(), Breaks: r.Breaks, Restarts: r.Restarts}
	if s, err := r.start(); err == nil {
		out.Point = s.point.String()
	}
	return out
}
