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
	tables  map[string]*tableProgress
}

type tableProgress struct {
	snapshot.Progress
	// taken and takenChunks are what earlier tries left, chunks what this one finished.
	taken               int64
	takenChunks, chunks int
}

func (d *database) beginProgress(plan *compat.Plan, resume *snapshot.Resume, c *copySink) {
	p := &progress{total: len(plan.Catalog.Tables), begun: time.Now(), tables: map[string]*tableProgress{}}
	if resume != nil {
		p.resumed, p.total = true, len(resume.Cut.Tables)
		for name, load := range c.loads {
			p.tables[name] = &tableProgress{taken: load.Rows(), takenChunks: len(resume.Chunks[name]), Progress: snapshot.Progress{Table: name}}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state, d.progress = StateSnapshot, p
}

// of gives the progress of a table, to be changed.
func (p *progress) of(table string) *tableProgress {
	t := p.tables[table]
	if t == nil {
		t = &tableProgress{Progress: snapshot.Progress{Table: table}}
		p.tables[table] = t
	}
	return t
}

// copied takes the progress of one table.
func (d *database) copied(now snapshot.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.progress != nil {
		d.progress.of(now.Table).Progress = now
	}
}

// chunkDone counts a chunk that is durable.
func (d *database) chunkDone(table string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.progress != nil {
		d.progress.of(table).chunks++
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

// rows are those of the table that are here.
func (t *tableProgress) rows() int64 { return t.Rows + t.taken }

// status gives the table's progress as it is shown.
func (t *tableProgress) status() *TableCopy {
	out := &TableCopy{
		Rows: uint64(t.rows()), TotalRows: uint64(max(t.rows(), t.Estimate)), Bytes: uint64(t.Bytes), Chunks: t.takenChunks + t.chunks,
		RowsTakenOver: uint64(t.taken),
	}
	if t.Elapsed > 0 {
		out.RowsPerSecond = float64(t.Rows) / t.Elapsed.Seconds()
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
		s := t.status()
		out.Rows += s.Rows
		out.TotalRows += s.TotalRows
		out.Bytes += s.Bytes
		out.Chunks += s.Chunks
		out.RowsTakenOver += s.RowsTakenOver
		read += t.Rows
		if t.Left == 0 {
			out.Tables++
		}
	}
	if elapsed := time.Since(p.begun).Seconds(); elapsed > 0 && read > 0 {
		out.RowsPerSecond = float64(read) / elapsed
		out.LeftSeconds = new(float64(out.TotalRows-out.Rows) / out.RowsPerSecond)
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
