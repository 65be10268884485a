package snapshot

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tidemarkdb/tidemark/schema"
)

// tableWork is one table of the copy. Its queue's lock guards what changes.
type tableWork struct {
	table *schema.Table
	size  size
	key   []keyColumn // empty when it can only be read in one piece
	// taken is what earlier Runs have copied.
	taken *taken

	stretches []*stretch // that nobody works on
	open      int        // stretches that are not read to their end
	places    []string   // all that were given, in order
	rows      int64      // of finished chunks, those taken over included
	bytes     int64      // read by this Run
	read      int64      // rows of them
	exact     bool       // every chunk was read at the cut's point
	bracket   *bracket
	result    TableResult
	changed   string // why the copy is worthless
	fat       bool   // a row was found that is large beyond the estimate
	whole     bool   // a key was found that can't be written as a literal: no statement has a limit any more
}

// stretch is a piece of a table's key that one reader goes through, chunk by chunk.
type stretch struct {
	table *tableWork
	rng   keyRange // what is left
	last  boundary // the last key of the table, known when the stretch has no other end and is long
	place string
	// number counts its chunks. left is an estimate of the rows in rng, negative when nothing is known.
	number int
	left   int64
	// patience is the number of chunks before it is tried again to split it.
	patience int
}

// queue hands out the stretches of a copy. At first each table is one; a reader that has none is given half of what is
// left of another's (see reader.split), so that each reader covers few long stretches of a table's key and its parts
// overlap little. No table is cut in advance: no estimate of the server has to be right.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond
	tables  []*tableWork
	busy    int // stretches that readers have
	waiting int // readers that wait for one
	readers int
	stopped bool
	// done is called with the lock held when a table is read to its end or given up.
	done func(*tableWork)
}

// newQueue orders the tables: first those that can be read in one piece only, as their windows are the better the sooner
// they are closed, then by size.
func newQueue(tables []*tableWork, done func(*tableWork)) *queue {
	q := &queue{tables: tables, done: done}
	q.changed.L = &q.mu
	slices.SortStableFunc(q.tables, func(a, b *tableWork) int {
		return cmp.Or(cmp.Compare(piece(a), piece(b)), cmp.Compare(b.size.bytes(), a.size.bytes()))
	})
	for _, t := range q.tables {
		if t.open == 0 {
			done(t)
		}
	}
	return q
}

// chunked tells whether statements have limits. The queue's lock is held.
func (t *tableWork) chunked() bool { return len(t.key) > 0 && !t.whole }

// rowBytes is about the size of a row: what was seen, or else what the server estimates. The queue's lock is held.
func (t *tableWork) rowBytes() int64 {
	if t.read > 0 {
		return t.bytes / t.read
	}
	return t.size.rowBytes
}

// addStretches makes the first stretches of a table: all of it, or what is left of it.
func (t *tableWork) addStretches(exact bool) {
	t.exact = exact
	gaps := []gap{{place: between("", "")}}
	if k := t.taken; k != nil {
		gaps, t.exact, t.rows = k.gaps, k.exact, k.rows
		for _, n := range k.notes {
			t.places = append(t.places, string(n.Place))
			t.bracket = n.Bracket
		}
	}
	for _, g := range gaps {
		left := int64(-1)
		if t.taken == nil || len(t.taken.notes) == 0 {
			left = t.size.rows
		}
		t.stretches = append(t.stretches, &stretch{table: t, rng: g.rng, place: g.place, left: left})
		t.places = append(t.places, g.place)
	}
	slices.Sort(t.places)
	t.places = slices.Compact(t.places)
	t.open = len(gaps)
}

// change does something with the lock held.
func (q *queue) change(do func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	do()
}

// stop wakes all who wait; there is no more work.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.changed.Broadcast()
}

// next waits for a stretch. nil: there is no more.
func (q *queue) next() *stretch {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting++
	defer func() { q.waiting-- }()
	for !q.stopped {
		for _, t := range q.tables {
			if n := len(t.stretches); n > 0 {
				s := t.stretches[n-1]
				t.stretches = t.stretches[:n-1]
				q.busy++
				return s
			}
		}
		if q.busy == 0 {
			q.changed.Broadcast()
			return nil
		}
		q.changed.Wait()
	}
	return nil
}

// hungry tells whether readers wait in vain.
func (q *queue) hungry() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	free := 0
	for _, t := range q.tables {
		free += len(t.stretches)
	}
	return q.waiting > free
}

// split gives away what is behind the middle of a stretch that the caller has.
func (q *queue) split(s *stretch, middle boundary, left, right int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := s.table
	at, _ := slices.BinarySearch(t.places, s.place)
	behind := ""
	if at+1 < len(t.places) {
		behind = t.places[at+1]
	}
	place := between(s.place, behind)
	t.places = slices.Insert(t.places, at+1, place)
	t.stretches = append(t.stretches, &stretch{table: t, rng: keyRange{middle, s.rng.upTo}, last: s.last, place: place, left: right})
	t.open++
	s.rng.upTo, s.last, s.left = middle, nil, left
	q.changed.Signal()
}

// finished takes a chunk that is durable.
func (q *queue) finished(s *stretch, n *note, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := s.table
	t.rows += n.Rows
	t.read += n.Rows
	t.bytes += bytes
	t.exact = t.exact && n.Exact
	if n.Bracket != nil {
		t.bracket = n.Bracket
	}
	s.rng.after, s.number = n.UpTo, s.number+1
	s.left = max(s.left-n.Rows, -1)
	if s.left == 0 {
		s.left = -1
	}
}

// release gives a stretch back that the reader has not ended.
func (q *queue) release(s *stretch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	s.table.stretches = append(s.table.stretches, s)
	q.changed.Signal()
}

// ended says that a stretch is read to its end, or that its table is given up.
func (q *queue) ended(s *stretch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	t := s.table
	if t.open--; t.open == 0 && t.changed == "" {
		q.done(t)
	}
	q.changed.Broadcast()
}

// fail gives up a table.
func (q *queue) fail(t *tableWork, reason string) { q.change(func() { q.failLocked(t, reason) }) }

// failOpen gives up a table that is not read to its end.
func (q *queue) failOpen(t *tableWork, reason string) {
	q.change(func() {
		if t.open > 0 {
			q.failLocked(t, reason)
		}
	})
}

func (q *queue) failLocked(t *tableWork, reason string) {
	if t.changed == "" {
		t.changed = reason
		q.done(t)
	}
	t.stretches = nil
	q.changed.Broadcast()
}

func (q *queue) fine(t *tableWork) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.changed == ""
}

// retire takes one reader away. It is refused to the last one.
func (q *queue) retire() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.readers == 1 {
		return false
	}
	q.readers--
	return true
}

// piece orders tables without a key first.
func piece(t *tableWork) int {
	if t.table.Multiset() {
		return 0
	}
	return 1
}
