package snapshot

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tidemarkdb/tidemark/schema"
)

// work is one step of a reader: to cut a table into ranges, or to read one range of it.
type work struct {
	table *tableWork
	cut   bool
	index int // of the range
	rng   keyRange
	// adjacent tells that the range follows the one that the reader read before.
	adjacent bool
}

// tableWork is what is left to do of a table.
type tableWork struct {
	table  *schema.Table
	size   size
	ranges []keyRange
	taken  []bool
	state  cutState
}

type cutState uint8

const (
	uncut cutState = iota
	cutting
	cutDone
)

// queue hands out the work of a copy, large tables first. A reader goes on with the range next to its last one, and
// else begins in the middle of the longest stretch that nobody has begun: so each reader covers few long stretches of a
// table's key, and its parts overlap little.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond
	tables  []*tableWork
	stopped bool
}

func newQueue(tables []*schema.Table, sizes map[string]size) *queue {
	q := &queue{}
	q.changed.L = &q.mu
	for _, t := range tables {
		q.tables = append(q.tables, &tableWork{table: t, size: sizes[t.Name]})
	}
	slices.SortStableFunc(q.tables, func(a, b *tableWork) int {
		return cmp.Compare(b.size.rows*max(b.size.rowBytes, 1), a.size.rows*max(a.size.rowBytes, 1))
	})
	return q
}

// stop wakes all who wait; there is no more work.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.changed.Broadcast()
}

// next waits for work; last is the reader's work before, nil at first. false: all is handed out.
func (q *queue) next(last *work) (work, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.stopped {
		if w, ok := q.follow(last); ok {
			return w, true
		}
		if w, ok := q.pick(); ok {
			return w, true
		}
		if !slices.ContainsFunc(q.tables, func(t *tableWork) bool { return t.state == cutting }) {
			return work{}, false
		}
		q.changed.Wait()
	}
	return work{}, false
}

func (q *queue) follow(last *work) (work, bool) {
	if last == nil || last.cut {
		return work{}, false
	}
	i := last.index + 1
	if i >= len(last.table.ranges) || last.table.taken[i] {
		return work{}, false
	}
	w := last.table.take(i)
	w.adjacent = true
	return w, true
}

func (q *queue) pick() (work, bool) {
	for _, t := range q.tables {
		if t.state == uncut {
			t.state = cutting
			return work{table: t, cut: true}, true
		}
		if i, ok := t.longestStretch(); ok {
			return t.take(i), true
		}
	}
	return work{}, false
}

func (t *tableWork) take(i int) work {
	t.taken[i] = true
	return work{table: t, index: i, rng: t.ranges[i]}
}

// longestStretch gives where to begin in the longest stretch of ranges that are not taken: at its start, or in its
// middle when a reader is on its way there.
func (t *tableWork) longestStretch() (start int, ok bool) {
	best, length := 0, 0
	for i := 0; i < len(t.taken); {
		n := 0
		for i+n < len(t.taken) && !t.taken[i+n] {
			n++
		}
		if n > length {
			best, length = i, n
		}
		i += n + 1
	}
	if length == 0 {
		return 0, false
	}
	if best > 0 {
		best += length / 2
	}
	return best, true
}

// add puts in a range of a table that is being cut; they come in order.
func (q *queue) add(t *tableWork, r keyRange) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.ranges = append(t.ranges, r)
	t.taken = append(t.taken, false)
	q.changed.Signal()
}

// finishCut says that a table has all its ranges.
func (q *queue) finishCut(t *tableWork) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.state = cutDone
	q.changed.Broadcast()
}
