package snapshot

import (
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/wire"
)

// Progress is how far the copy of a table is.
type Progress struct {
	Table string
	// Rows and Bytes are what was read; bytes as they came over the network.
	Rows, Bytes int64
	// Estimate is the source's estimate of the table's rows. It may be far off, and be less than Rows.
	Estimate int64
	// Elapsed counts from the table's first row. Left is the time to its end at the same pace; 0 when nothing is known.
	Elapsed, Left time.Duration
}

// progress adds up what all readers read.
type progress struct {
	mu     sync.Mutex
	report func(Progress)
	sizes  map[string]size
	tables map[string]*tableProgress
}

type tableProgress struct {
	rows, bytes int64
	begun       time.Time
}

func newProgress(report func(Progress), sizes map[string]size) *progress {
	return &progress{report: report, sizes: sizes, tables: map[string]*tableProgress{}}
}

func (p *progress) add(table string, rows, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tables[table]
	if t == nil {
		t = &tableProgress{begun: time.Now()}
		p.tables[table] = t
	}
	t.rows += rows
	t.bytes += bytes
	if p.report == nil {
		return
	}
	now := Progress{Table: table, Rows: t.rows, Bytes: t.bytes, Estimate: p.sizes[table].rows, Elapsed: time.Since(t.begun)}
	if left := now.Estimate - now.Rows; left > 0 && now.Rows > 0 {
		now.Left = time.Duration(float64(now.Elapsed) * float64(left) / float64(now.Rows))
	}
	p.report(now)
}

func (p *progress) total() (rows, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tables {
		rows, bytes = rows+t.rows, bytes+t.bytes
	}
	return rows, bytes
}

// counter reports the growth of one stream.
type counter struct {
	progress    *progress
	table       string
	rows, bytes int64
}

func (c *counter) upTo(s *wire.Rows) {
	c.progress.add(c.table, s.Count()-c.rows, s.Bytes()-c.bytes)
	c.rows, c.bytes = s.Count(), s.Bytes()
}
