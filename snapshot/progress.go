package snapshot

import (
	"sync"
	"time"
)

// Progress is how far the copy of a table is.
type Progress struct {
	Table string
	// Rows are what this Run has read, in finished chunks and chunks under way. Bytes are what came over the network for it.
	Rows, Bytes int64
	// Resumed are the rows taken over from an earlier Run, Again those that were read and dropped since their chunk broke
	// off.
	Resumed, Again int64
	// Chunks are finished, by this Run or an earlier one. ChunksTotal is an estimate, as Estimate is.
	Chunks, ChunksTotal int64
	// Estimate is the source's estimate of the table's rows. It may be far off, and be less than Resumed and Rows.
	Estimate int64
	// Rate is in rows per second since the table's first row.
	Rate float64
	// Elapsed counts from the table's first row. Left is the time to its end at the same pace; 0 when nothing is known.
	Elapsed, Left time.Duration
	// Done tells that all rows of the table are read.
	Done bool
}

// progress adds up what all readers read.
type progress struct {
	mu     sync.Mutex
	report func(Progress)
	tables map[string]*tableProgress
}

type tableProgress struct {
	Progress
	begun time.Time
}

func newProgress(report func(Progress), tables []*tableWork) *progress {
	p := &progress{report: report, tables: map[string]*tableProgress{}}
	for _, t := range tables {
		now := &tableProgress{Progress: Progress{Table: t.table.Name, Estimate: t.size.rows}}
		if t.taken != nil {
			now.Resumed, now.Chunks = t.taken.rows, t.taken.chunks
		}
		p.tables[t.table.Name] = now
	}
	return p
}

// change changes a table's progress and reports it.
func (p *progress) change(table string, change func(*Progress)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tables[table]
	if t.begun.IsZero() {
		t.begun = time.Now()
	}
	change(&t.Progress)
	t.Elapsed = time.Since(t.begun)
	t.estimate()
	if p.report != nil {
		p.report(t.Progress)
	}
}

func (t *tableProgress) estimate() {
	t.Rate, t.Left, t.ChunksTotal = 0, 0, t.Chunks
	if t.Elapsed > 0 {
		t.Rate = float64(t.Rows) / t.Elapsed.Seconds()
	}
	left := t.Estimate - t.Rows - t.Resumed
	if t.Done || left <= 0 {
		return
	}
	if t.Rows > 0 {
		t.Left = time.Duration(float64(t.Elapsed) * float64(left) / float64(t.Rows))
	}
	if t.Chunks > 0 {
		t.ChunksTotal += max(left*t.Chunks/max(t.Rows+t.Resumed, 1), 1)
	}
}

func (p *progress) read(table string, rows, bytes int64) {
	p.change(table, func(t *Progress) { t.Rows, t.Bytes = t.Rows+rows, t.Bytes+bytes })
}

func (p *progress) chunk(table string) { p.change(table, func(t *Progress) { t.Chunks++ }) }

// dropped takes rows back whose chunk broke off.
func (p *progress) dropped(table string, rows int64) {
	p.change(table, func(t *Progress) { t.Rows, t.Again = t.Rows-rows, t.Again+rows })
}

func (p *progress) done(table string) { p.change(table, func(t *Progress) { t.Done = true }) }

// total is what this Run has read and not dropped.
func (p *progress) total() (rows, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tables {
		rows, bytes = rows+t.Rows, bytes+t.Bytes
	}
	return rows, bytes
}
