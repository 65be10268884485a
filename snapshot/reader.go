package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/wire"
)

// fatRow is the row size from which on one reader at a time reads such tables: a row is in memory a few times on its way
// (SNAP-14).
const fatRow = 2 << 20

// reader copies chunks, one after the other.
type reader struct {
	*copier
	conn *wire.Conn // nil when it was lost
	// exact tells that the session's read view is the cut's, opened at viewed.
	exact  bool
	viewed time.Time

	table  *tableWork // of writer
	writer Writer
	rows   *column.Builder
	places *literals
	loose  int64 // rows read since the last finished chunk

	// since is when the statement under way began, in Unix nanoseconds; 0: none. yield asks for its early end.
	since atomic.Int64
	yield atomic.Bool
	id    atomic.Uint32 // of the session
}

// errRetired ends a reader for which the source has no connection, while there are others.
var errRetired = errors.New("the source has no connection for this reader")

func (r *reader) run(ctx context.Context) error {
	defer func() { r.abortWriter(); r.hangUp() }()
	for s := r.queue.next(); s != nil; s = r.queue.next() {
		err := r.through(ctx, s)
		if errors.Is(err, errRetired) {
			r.queue.release(s)
			return r.closeWriter()
		}
		if err != nil {
			return err
		}
		r.queue.ended(s)
	}
	return r.closeWriter()
}

// through reads a stretch to its end.
func (r *reader) through(ctx context.Context, s *stretch) error {
	for more := true; more && r.queue.fine(s.table); {
		err := r.pace.turn(ctx, func() (err error) {
			more, err = r.persist(ctx, s)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// persist reads the next chunk of a stretch, again and again if need be. A table that is another one than it was is given
// up, and the copy goes on.
func (r *reader) persist(ctx context.Context, s *stretch) (more bool, err error) {
	begun := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		more, err = r.step(ctx, s)
		if err == nil {
			return more, nil
		}
		r.abortWriter()
		if wire.ServerError(err) == nil && !changed(err) {
			r.hangUp()
		}
		if stop := stopped(ctx); stop != nil {
			return false, stop
		}
		switch {
		case isSinks(err):
			return false, err
		case changed(err):
			r.queue.fail(s.table, fmt.Sprintf("%s (%v)", reasonChanged, err))
			return false, r.letGo(ctx)
		case full(err) && r.queue.retire():
			r.cfg.Logger.Warn("the source has no more connections for the copy, which goes on with fewer", "error", err)
			return false, errRetired
		case !passing(err):
			return false, fmt.Errorf("copying table %s: %w", s.table.table.FullName(), err)
		case time.Since(begun) > r.cfg.Retry:
			return r.giveUp(s, err)
		}
		r.cfg.Logger.Warn("a chunk is read again", "table", s.table.table.FullName(), "error", err, "in", pause)
		if err := sleep(ctx, pause); err != nil {
			return false, err
		}
	}
}

// giveUp ends the copy, or that of the table alone when only this table is not to be had.
func (r *reader) giveUp(s *stretch, err error) (more bool, fatal error) {
	if wire.Code(err) == wire.CodeLockTimeout {
		r.queue.fail(s.table, fmt.Sprintf("another session has kept it locked for %s (%v)", r.cfg.Retry, err))
		return false, nil
	}
	return false, fmt.Errorf("copying table %s: %w", s.table.table.FullName(), err)
}

// step makes one try to read the next chunk.
func (r *reader) step(ctx context.Context, s *stretch) (more bool, err error) {
	if err := r.ready(ctx); err != nil {
		return false, err
	}
	if r.table != s.table || r.writer == nil {
		if err := r.openWriter(s.table); err != nil {
			return false, err
		}
	}
	if s.table.table.Multiset() && !r.exact {
		return false, r.bracketed(ctx, s)
	}
	if s.patience <= 0 && r.queue.hungry() {
		if err := r.split(ctx, s); err != nil {
			return false, err
		}
	}
	s.patience--
	return r.chunk(ctx, s)
}

// ready has a session that may read: a new one when it was lost, and without the cut's read view when that got too old.
func (r *reader) ready(ctx context.Context) error {
	if r.conn == nil {
		conn, err := dial(ctx, r.cfg, r.control.server)
		if err != nil {
			return err
		}
		r.conn = conn
		r.id.Store(conn.ID())
	}
	old := r.cfg.Limits.ViewAge > 0 && time.Since(r.viewed) > r.cfg.Limits.ViewAge
	if r.exact && (old || r.pace.oldViews.Load()) {
		r.cfg.Logger.Info("a reader gives up its read view; what it reads from now on needs a window", "database", r.cfg.Plan.Database, "age", time.Since(r.viewed))
		r.exact = false
		return r.conn.Exec(ctx, "ROLLBACK")
	}
	return nil
}

// hangUp ends the session. What is read in the next one needs a window.
func (r *reader) hangUp() {
	if r.conn != nil {
		_ = r.conn.Close() // it may be dead already
	}
	r.conn, r.exact = nil, false
}

// letGo releases the metadata locks of a session that keeps its read view. Without one they ended with their statements.
func (r *reader) letGo(ctx context.Context) error {
	if r.conn == nil || !r.exact {
		return nil
	}
	if err := LetGo(ctx, r.conn); err != nil {
		r.hangUp()
		return stopped(ctx)
	}
	return nil
}

func (r *reader) openWriter(t *tableWork) error {
	if err := r.closeWriter(); err != nil {
		return err
	}
	writer, err := r.sink.Open(t.table)
	if err != nil {
		return ofSink(err)
	}
	r.table, r.writer, r.rows, r.places = t, writer, column.NewBuilder(memory.DefaultAllocator, t.table), newLiterals(t.table)
	return nil
}

func (r *reader) closeWriter() error {
	if r.writer == nil {
		return nil
	}
	w := r.writer
	r.writer = nil
	return ofSink(w.Close())
}

// abortWriter drops the rows of the chunk under way.
func (r *reader) abortWriter() {
	if r.writer == nil {
		return
	}
	r.writer.Abort()
	r.writer = nil
	if r.loose > 0 {
		r.progress.dropped(r.table.table.Name, r.loose)
		r.loose = 0
	}
}

func (r *reader) flush() error {
	if r.rows.Rows() == 0 {
		return r.rows.Err()
	}
	batch, err := r.rows.Finish()
	if err != nil {
		return err
	}
	return ofSink(r.writer.Add(batch))
}

// chunk reads the rows at the front of a stretch. It tells whether there may be more.
func (r *reader) chunk(ctx context.Context, s *stretch) (more bool, err error) {
	t := s.table
	if s.rng.after != nil && s.rng.upTo == nil && s.last == nil {
		// Rows behind what is the last key now are of transactions behind P0: the stream brings them. Without this end, a
		// reader whose views move on could run after the writers for ever.
		if s.last, err = r.splitter(t).end(ctx, nil, true); err != nil {
			return false, err
		}
	}
	got, err := r.read(ctx, s, r.limit(t))
	if errors.Is(err, errNoPlace) {
		r.cfg.Logger.Warn("a key can't be named, and the rest of its stretch is read in one piece", "table", t.table.FullName())
		r.queue.change(func() { t.whole = true })
		r.abortWriter()
		if err := r.openWriter(t); err != nil {
			return false, err
		}
		got, err = r.read(ctx, s, 0)
	}
	if err != nil {
		return false, err
	}
	if err := r.letGoStrictly(ctx); err != nil {
		return false, err
	}
	return got.end != nil, r.finish(s, got, &note{Exact: r.exact, UpTo: got.end})
}

// limit is how many rows a chunk of the table may have: 0 for any number.
func (r *reader) limit(t *tableWork) (limit int64) {
	const inFlight, least = 40, 40_000
	const longest = 5 * time.Second // at a bounded rate
	r.queue.change(func() {
		if !t.chunked() {
			return
		}
		share := max(t.size.rows, t.rows) / inFlight / int64(r.cfg.Readers)
		limit = min(r.cfg.mostRows(t.rowBytes()), max(share, least))
	})
	if rate := r.cfg.RowsPerSecond; rate > 0 && limit > 0 {
		limit = min(limit, max(rate*int64(longest/time.Second)/int64(r.cfg.Readers), 1))
	}
	return limit
}

// finish makes a chunk durable.
func (r *reader) finish(s *stretch, got chunkRead, n *note) error {
	if err := r.flush(); err != nil {
		return err
	}
	t := s.table
	n.Place, n.Number, n.After, n.Rows, n.Table = []byte(s.place), s.number, s.rng.after, got.rows, r.origin.defs.identity(t.table.Name)
	if n.UpTo == nil {
		n.UpTo = s.rng.upTo
	}
	b, err := n.encode()
	if err != nil {
		return err
	}
	if err := r.writer.Done(b); err != nil {
		return ofSink(err)
	}
	r.loose = 0
	r.queue.finished(s, n, got.bytes)
	r.progress.chunk(t.table.Name)
	return nil
}

// split gives half of what is left of a stretch to the readers that wait.
func (r *reader) split(ctx context.Context, s *stretch) error {
	const pause = 4
	t := s.table
	limit := r.limit(t)
	s.patience = pause
	if limit == 0 || s.left >= 0 && s.left < 2*limit {
		return nil
	}
	k := r.splitter(t)
	first, last := s.rng.after, s.rng.upTo
	var err error
	if first == nil {
		if first, err = k.end(ctx, nil, false); err != nil {
			return err
		}
	}
	if last == nil {
		if s.last == nil {
			if s.last, err = k.end(ctx, nil, true); err != nil {
				return err
			}
		}
		last = s.last
	}
	h, err := k.middle(ctx, first, last)
	if err == nil {
		err = r.letGoStrictly(ctx)
	}
	if err != nil || h == nil {
		return err
	}
	r.queue.split(s, h.place, h.left, h.right)
	s.patience = 0
	return nil
}

func (r *reader) letGoStrictly(ctx context.Context) error {
	if !r.exact {
		return nil
	}
	return LetGo(ctx, r.conn)
}

func (r *reader) splitter(t *tableWork) *splitter {
	return &splitter{conn: r.conn, table: t.table, columns: t.key, least: max(r.limit(t)/2, 1)}
}
