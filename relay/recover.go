package relay

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// Open finds what the relay has. It reads the newest files to their end; what a crash left there is cut off: half a
// transaction, or bytes that never reached the disk. A *DamageError says that bytes which had reached it are not there
// any more, or are others.
func Open(cfg Config) (*Relay, error) {
	r := newRelay(cfg)
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	var err error
	if r.index, err = readIndex(cfg.Dir); err != nil {
		return nil, err
	}
	if r.files, err = list(cfg.Dir, parseName); err != nil {
		return nil, err
	}
	if err := r.recover(); err != nil {
		return nil, err
	}
	return r, nil
}

// recover decides what of the files counts.
func (r *Relay) recover() error {
	if err := r.checkSizes(); err != nil {
		return err
	}
	first := r.firstToScan()
	for i := range r.files[:first] {
		if r.files[i].log == "" {
			if err := r.head(r.files[i]); err != nil {
				return err
			}
		}
	}
	for i := first; i < len(r.files); i++ {
		whole, err := r.recoverFile(i, i > first)
		if err != nil {
			return err
		}
		if !whole {
			if err := r.dropFiles(i + 1); err != nil {
				return err
			}
		}
	}
	if err := r.findLast(r.files[:min(first, len(r.files))], &r.spooled); err != nil {
		return err
	}
	if len(r.files) > 0 {
		r.start = &Start{Point: r.files[0].begin, ByPosition: r.files[0].log != ""}
	}
	r.count()
	return nil
}

// checkSizes compares the files with what is known to be durable. Files older than the oldest one that is there were
// pruned.
func (r *Relay) checkSizes() error {
	for _, e := range r.index {
		i := slices.IndexFunc(r.files, func(f *file) bool { return f.number == e.number })
		switch {
		case i >= 0 && r.files[i].size < int64(e.size):
			return &DamageError{Path: r.path(i), Offset: r.files[i].size, Err: fmt.Errorf("it ends there, and had %d bytes", e.size)}
		case i < 0 && len(r.files) > 0 && e.number > r.files[0].number:
			return &DamageError{Path: filepath.Join(r.cfg.Dir, r.files[0].name), Err: fmt.Errorf("file number %d behind it is missing", e.number)}
		}
	}
	return nil
}

func (r *Relay) path(i int) string { return filepath.Join(r.cfg.Dir, r.files[i].name) }

// firstToScan is the first file of which not all is known to be durable, and the newest one in any case.
func (r *Relay) firstToScan() int {
	for i, f := range r.files {
		if i == len(r.files)-1 || r.index.durable(f.number) < f.size {
			return i
		}
	}
	return 0
}

// recoverFile reads a file to its end, or to where it stops to make sense, and cuts it off there. It is whole when it ends
// behind a transaction. joined tells that the file in front of it was read, too.
func (r *Relay) recoverFile(i int, joined bool) (whole bool, err error) {
	f := r.files[i]
	s, err := r.scan(f, nil)
	if err != nil {
		return false, err
	}
	if durable := r.index.durable(f.number); s.size < durable {
		if s.bad == nil {
			s.bad = errHalf
		}
		return false, &DamageError{Path: r.path(i), Offset: s.size, Err: s.bad}
	}
	if s.size > 0 && joined && f.log == "" && !r.spooled.point.Set.Equal(s.begin.Set) {
		s.size, s.bad = 0, fmt.Errorf("transactions are missing in front of it: it goes on at %s, and %s ends at %s", s.begin.Set, r.files[i-1].name, r.spooled.point.Set)
	}
	whole = s.size == f.size
	if !whole {
		r.cfg.Logger.Warn("the end of the spooled binlog was cut off; it is read from the source again", "file", r.path(i), "size", f.size, "kept", s.size, "reason", s.bad)
	}
	if s.size == 0 {
		return false, r.dropFiles(i)
	}
	if !whole {
		if err := os.Truncate(r.path(i), s.size); err != nil {
			return false, fmt.Errorf("relay: %w", err)
		}
	}
	f.begin, f.size = s.begin, s.size
	r.reach(s.end)
	return whole, nil
}

// reach notes how far the files go; a file without a transaction leaves the last one as it is.
func (r *Relay) reach(end spooled) {
	if end.last.IsZero() {
		end.last, end.behind = r.spooled.last, cmp.Or(r.spooled.behind, end.behind)
	}
	r.spooled = end
}

// dropFiles removes files[n] and all behind it, newest first.
func (r *Relay) dropFiles(n int) error {
	for len(r.files) > n {
		last := len(r.files) - 1
		if err := os.Remove(r.path(last)); err != nil {
			return fmt.Errorf("relay: %w", err)
		}
		r.files = r.files[:last]
	}
	return nil
}

// findLast looks for the last transaction in files when there is none behind them, and for the end when there is nothing
// behind them.
func (r *Relay) findLast(files []*file, end *spooled) error {
	for _, f := range slices.Backward(files) {
		if !end.last.IsZero() {
			return nil
		}
		s, err := r.scan(f, nil)
		if err != nil {
			return err
		}
		if s.bad != nil || s.size != f.size {
			return &DamageError{Path: filepath.Join(r.cfg.Dir, f.name), Offset: s.size, Err: cmp.Or(s.bad, errHalf)}
		}
		if end.point.IsZero() {
			*end = s.end
			continue
		}
		end.last, end.behind = s.end.last, cmp.Or(s.end.behind, end.behind)
	}
	return nil
}

var errHalf = errors.New("a transaction has no end")

// Cut drops what lies behind a point: transactions that the source does not have any more. Readers that are open get a
// *GoneError. A point in front of the relay empties it; one that the relay does not reach leaves it as it is. Pull must
// not run.
func (r *Relay) Cut(p gtid.Point) error {
	if r.archive {
		return errArchive
	}
	r.pull.Lock()
	defer r.pull.Unlock()
	if _, ok := r.Begin(); !ok {
		return nil
	}
	files := r.snapshot()
	n := len(files) - 1
	for n >= 0 && !reaches(p, files[n]) { // the last file that begins in p
		n--
	}
	if n < 0 {
		return r.reset(Start{Point: startOf(p, r.kind()), ByPosition: r.kind()})
	}
	s, err := r.scan(files[n], r.beyond(p))
	if err != nil {
		return err
	}
	if s.bad != nil {
		return &DamageError{Path: filepath.Join(r.cfg.Dir, files[n].name), Offset: s.size, Err: s.bad}
	}
	if s.size == files[n].size && n == len(files)-1 {
		return nil
	}
	if err := r.findLast(files[:n], &s.end); err != nil {
		return err
	}
	if err := r.removeBehind(files[n]); err != nil {
		return err
	}
	return r.shorten(files[n], s)
}

// startOf gives a place where a relay can begin that has everything behind p.
func startOf(p gtid.Point, byPosition bool) gtid.Point {
	if byPosition {
		p.Position.Offset = logStart
	}
	return p
}

// beyond tells of a transaction whether it lies behind p.
func (r *Relay) beyond(p gtid.Point) func(*binlog.Transaction) bool {
	if r.kind() {
		return func(t *binlog.Transaction) bool { return t.Start.Compare(p.Position) >= 0 }
	}
	return func(t *binlog.Transaction) bool { return !p.Set.Has(t.GTID) }
}

// reaches tells whether everything in front of a file is in p, so that what lies behind p is in it or in later ones.
func reaches(p gtid.Point, f *file) bool {
	if f.log != "" {
		return p.Position.SameSeries(f.begin.Position) && f.begin.Position.Compare(gtid.Position{File: p.Position.File, Offset: logStart}) <= 0
	}
	return p.Set.Contains(f.begin.Set)
}

// shorten cuts a file off, which is the last one.
func (r *Relay) shorten(f *file, s *found) error {
	r.sync.Lock()
	defer r.sync.Unlock()
	r.index.cut(f.number, uint64(s.size))
	if err := r.index.write(r.cfg.Dir, true); err != nil {
		return err
	}
	if err := os.Truncate(filepath.Join(r.cfg.Dir, f.name), s.size); err != nil {
		return local("cut off the tail", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f.size = s.size
	r.spooled, r.sign = s.end, sign{}
	r.count()
	r.signal()
	return nil
}
