package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// maintenance runs the background work: one goroutine flushes segments, one merges parts and drains index layers, one
// removes files that nothing refers to. None of them changes what a reader sees.
type maintenance struct {
	s       *Store
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	flush   chan struct{}
	merge   chan struct{}
	janitor chan struct{}

	mu sync.Mutex
	// toFlush and toMerge are the tables that changed since they were last looked at.
	toFlush, toMerge map[TableID]bool
	// full are the tables with so many segments that writers wait; room is closed when that may have changed.
	full map[TableID]bool
	room chan struct{}
	err  error // of the last flush; nil after one that went well
	// changed is when each table changed last, by anything but maintenance of its index.
	changed map[TableID]time.Time
}

// retryEvery is how often work that failed is tried again, and files are looked for whose retention has ended.
const retryEvery = 5 * time.Second

func newMaintenance(s *Store) *maintenance {
	w := &maintenance{
		s: s, flush: make(chan struct{}, 1), merge: make(chan struct{}, 1), janitor: make(chan struct{}, 1),
		toFlush: map[TableID]bool{}, toMerge: map[TableID]bool{}, full: map[TableID]bool{}, room: make(chan struct{}), changed: map[TableID]time.Time{},
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for id := range s.head.Load().tables {
		w.toFlush[id], w.toMerge[id] = true, true
	}
	return w
}

func (w *maintenance) start() {
	w.loop(w.flush, "flush", w.flushAll)
	w.loop(w.merge, "merge", w.mergeAll)
	w.loop(w.janitor, "removal of files", w.s.removeGarbage)
	w.kick()
	w.kickJanitor()
}

// loop does the work on each kick, and again after a while.
func (w *maintenance) loop(kick <-chan struct{}, name string, work func(context.Context) error) {
	w.wg.Go(func() {
		timer := time.NewTicker(retryEvery)
		defer timer.Stop()
		for {
			select {
			case <-w.ctx.Done():
				return
			case <-kick:
			case <-timer.C:
			}
			if err := work(w.ctx); err != nil && w.ctx.Err() == nil {
				w.s.opt.Logger.Error("storage: background work failed and will be tried again", "work", name, "error", err)
			}
		}
	})
}

func (w *maintenance) stop() {
	w.cancel()
	w.wg.Wait()
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *maintenance) kick() {
	signal(w.flush)
	signal(w.merge)
}

func (w *maintenance) kickJanitor() { signal(w.janitor) }

// touched notes the tables that a commit changed.
func (w *maintenance) touched(st *state, ids []TableID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.toFlush[id], w.toMerge[id] = true, true
		w.changed[id] = w.s.opt.Now()
		if t := st.tables[id]; t != nil && w.s.flushLoad(t) >= 4 {
			w.full[id] = true
		} else {
			delete(w.full, id)
		}
		if st.tables[id] == nil {
			delete(w.changed, id)
		}
	}
	close(w.room)
	w.room = make(chan struct{})
	w.kick()
}

// quiet tells whether nothing has changed in a table for a while.
func (w *maintenance) quiet(id TableID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.s.opt.Now().Sub(w.changed[id]) >= w.s.opt.settleAfter
}

// take gives the tables noted in one of the two sets, in the order of their ids, and empties it.
func (w *maintenance) take(set *map[TableID]bool) []TableID {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]TableID, 0, len(*set))
	for id := range *set {
		ids = append(ids, id)
	}
	*set = map[TableID]bool{}
	slices.Sort(ids)
	return ids
}

func (w *maintenance) note(set map[TableID]bool, id TableID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set[id] = true
}

// waitForRoom holds a writer back while segments are far over their bounds. The writer must hold no lock that a flush
// needs.
func (w *maintenance) waitForRoom(ctx context.Context) error {
	if w.s.opt.NoMaintenance {
		return nil
	}
	for {
		w.mu.Lock()
		full := len(w.full) > 0 || w.s.head.Load().segmentBytes > 2*w.s.opt.SegmentMemory
		room, err := w.room, w.err
		w.mu.Unlock()
		if !full {
			return nil
		}
		if err != nil {
			return fmt.Errorf("too many fresh rows wait to be flushed: %w", err)
		}
		signal(w.flush)
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ctx.Done():
			return ErrClosed
		}
	}
}

// flushed notes how the last round of flushes went, and wakes waiting writers.
func (w *maintenance) flushed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	close(w.room)
	w.room = make(chan struct{})
}

func (w *maintenance) flushAll(ctx context.Context) error {
	var errs []error
	busy := map[TableID]bool{}
	for _, id := range w.take(&w.toFlush) {
		err := w.s.flushIfDue(ctx, id)
		if busy[id] = errors.Is(err, errTableBusy); err != nil {
			w.note(w.toFlush, id)
		}
		if err != nil && !busy[id] {
			errs = append(errs, err)
		}
	}
	errs = append(errs, w.flushLargest(ctx, busy))
	err := errors.Join(errs...)
	w.flushed(err)
	return err
}

// flushLargest keeps the memory of all segments bounded, by tables that are not busy.
func (w *maintenance) flushLargest(ctx context.Context, busy map[TableID]bool) error {
	for {
		id := w.s.largestSegments(busy)
		if id == 0 {
			return nil
		}
		err := errTableBusy
		if w.s.free(id) {
			err = w.s.flushTable(ctx, id, true)
		}
		if errors.Is(err, errTableBusy) {
			busy[id] = true
			w.note(w.toFlush, id)
		} else if err != nil {
			return err
		}
	}
}

func (w *maintenance) mergeAll(ctx context.Context) error {
	var errs []error
	for _, id := range w.take(&w.toMerge) {
		next, err := w.s.tidy(ctx, id)
		if err != nil {
			errs = append(errs, err)
			next = later
		}
		if next != done {
			w.note(w.toMerge, id)
		}
		if next == again {
			signal(w.merge)
		}
	}
	return errors.Join(errs...)
}

// Maintain does all background work that is due now: flushes, merges, index work, removal of files. It is for stores
// opened without background work.
func (s *Store) Maintain(ctx context.Context) error {
	w := s.work
	err := w.flushAll(ctx)
	signal(w.merge)
	for err == nil {
		select {
		case <-w.merge:
			err = w.mergeAll(ctx)
			continue
		default:
		}
		break
	}
	return firstError(err, s.removeGarbage(ctx))
}

// Flush writes the segments of a table into a part, whatever their number.
func (s *Store) Flush(ctx context.Context, id TableID) error { return s.flushTable(ctx, id, true) }

// removeGarbage removes the files that no commit refers to, no reader holds and the retention has let go.
func (s *Store) removeGarbage(ctx context.Context) error {
	oldest, now := s.oldestPin(), s.opt.Now()
	var due [][]byte
	err := scanPrefix(s.meta, []byte{kindGarbage}, func(key, value []byte) error {
		var g garbageRecord
		if err := unframeJSON(key, value, &g); err != nil {
			return err
		}
		if g.Seq > oldest || now.Sub(time.Unix(g.Removed, 0)) < s.opt.Retention {
			return nil
		}
		due = append(due, slices.Clone(key))
		return s.removeFile(s.path(g.Path))
	})
	if err == nil {
		err = s.removeDroppedDirs()
	}
	if err != nil || len(due) == 0 {
		return err
	}
	return s.exclusive(ctx, func(_ *state, b *pebble.Batch) error {
		for _, key := range due {
			if err := b.Delete(key, nil); err != nil {
				return err
			}
		}
		return nil
	})
}
