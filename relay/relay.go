package relay

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tidemarkdb/tidemark/gtid"
)

// Config says where a relay is and how large it may become.
type Config struct {
	// Dir is the relay's own; it is made where it is missing.
	Dir string
	// MaxBytes bounds the files; see Relay.Pull. 0: 16 GiB.
	MaxBytes int64
	// FileBytes is when a new file is begun, in between two transactions; 0: 64 MiB. It has no effect by position.
	FileBytes int64
	// Room is asked before more is written, now and then: an error, which says that the disk has no room to spare, ends Pull.
	// nil: there is always room.
	Room func() error
	// Logger is told of tails that were cut off. It must not be nil.
	Logger *slog.Logger
}

// DefaultMaxBytes bounds a relay for which nothing else is said.
const DefaultMaxBytes = 16 << 30

const defaultFileBytes = 64 << 20

// Start is where a relay begins.
type Start struct {
	Point gtid.Point
	// ByPosition tells that file and position count, and not the set: the source has no GTIDs. The position must then be at
	// the start of a file, offset 4.
	ByPosition bool
}

// Relay is the spooled log of one source. Its methods may be called from several goroutines.
type Relay struct {
	cfg Config

	pull  sync.Mutex // held by who changes files: Pull, Reset, Cut
	sync  sync.Mutex // one sync at a time; taken after pull, before mu
	index index      // what is durable; guarded by sync
	// unsure tells that a sync failed, so that what is durable is not known; guarded by sync.
	unsure bool

	mu      sync.Mutex
	start   *Start // nil: it never began
	files   []*file
	spooled spooled
	bytes   int64
	sign    sign
	epoch   int           // grows when readers become invalid
	moved   chan struct{} // closed, and made anew, when there is something new for readers
	room    chan struct{} // the same for Pull when it waits for room
	main    *Hold         // what Prune was told last; nil: nothing since Open
	holds   map[*Hold]bool
	full    bool
	archive bool // files of somebody else, which don't grow
}

// spooled says how far a relay reaches.
type spooled struct {
	point gtid.Point
	last  gtid.Identity
	// behind is where the last transaction ends, in front of a change of files that may follow.
	behind gtid.Position
}

// sign is the last sign of life of an idle source.
type sign struct {
	number uint64
	at     gtid.Position
}

func newRelay(cfg Config) *Relay {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.FileBytes == 0 {
		cfg.FileBytes = defaultFileBytes
	}
	return &Relay{cfg: cfg, moved: make(chan struct{}), room: make(chan struct{}), holds: map[*Hold]bool{}}
}

// Close makes what was spooled durable. Pull must have ended; readers need not.
func (r *Relay) Close() error {
	if r.archive {
		return nil
	}
	return r.syncFiles()
}

// Begin is where the relay begins; false when it is empty and was not Reset since it was opened. Nothing is kept of an
// empty one.
func (r *Relay) Begin() (Start, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start == nil {
		return Start{}, false
	}
	return *r.start, true
}

// End is how far the relay reaches: every transaction of the source up to there is in it.
func (r *Relay) End() gtid.Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spooled.point
}

// Last identifies the last transaction, zero when there is none.
func (r *Relay) Last() gtid.Identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spooled.last
}

// Status is what there is to know of a relay at one moment.
type Status struct {
	Bytes int64      // of all files
	End   gtid.Point // everything up to here is spooled
	// Full tells that pulling pauses because of MaxBytes.
	Full bool
}

// Status tells how the relay is.
func (r *Relay) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Status{Bytes: r.bytes, End: r.spooled.point, Full: r.full}
}

// SetMaxBytes changes the bound; 0: the default.
func (r *Relay) SetMaxBytes(n int64) {
	if n == 0 {
		n = DefaultMaxBytes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.MaxBytes = n
	r.makeRoom()
}

// Reset empties the relay, which begins at a point from now on. Readers that are open get a *GoneError. Pull must not run.
func (r *Relay) Reset(s Start) error {
	if s.ByPosition && s.Point.Position.Offset != logStart {
		return fmt.Errorf("relay: position %s is not the start of a file", s.Point.Position)
	}
	if r.archive {
		return errArchive
	}
	r.pull.Lock()
	defer r.pull.Unlock()
	return r.reset(s)
}

// reset is Reset; pull is held.
func (r *Relay) reset(s Start) error {
	if err := r.removeBehind(nil); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start, r.spooled, r.sign, r.main = &s, spooled{point: s.Point, behind: s.Point.Position}, sign{}, nil
	if s.ByPosition {
		r.spooled.point.Set = gtid.Set{}
	}
	return nil
}

// removeBehind removes all files behind one, nil: all; pull is held.
func (r *Relay) removeBehind(keep *file) error {
	r.sync.Lock()
	defer r.sync.Unlock()
	doomed := r.detach(keep)
	if len(doomed) == 0 {
		return nil
	}
	// In front of the files, so that their absence is not damage.
	r.index.cut(doomed[0].number, 0)
	if err := r.index.write(r.cfg.Dir, true); err != nil {
		return err
	}
	for _, f := range slices.Backward(doomed) {
		if err := os.Remove(filepath.Join(r.cfg.Dir, f.name)); err != nil && !os.IsNotExist(err) {
			return local("remove a file", err)
		}
	}
	return nil
}

// detach takes the files behind one out, which ends all readers.
func (r *Relay) detach(keep *file) []*file {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := slices.Index(r.files, keep) + 1
	doomed := r.files[n:]
	r.files = r.files[:n:n]
	r.epoch++
	r.count()
	r.signal()
	return doomed
}

// count adds up the files' sizes; mu is held.
func (r *Relay) count() {
	r.bytes = 0
	for _, f := range r.files {
		r.bytes += f.size
	}
}

// signal wakes readers; mu is held.
func (r *Relay) signal() {
	close(r.moved)
	r.moved = make(chan struct{})
}

// snapshot gives the files as they are now.
func (r *Relay) snapshot() []*file {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.files)
}

// makeRoom wakes a Pull that waits for room; mu is held.
func (r *Relay) makeRoom() {
	close(r.room)
	r.room = make(chan struct{})
}

// byPosition tells the kind of the relay; mu is held.
func (r *Relay) byPosition() bool { return r.start != nil && r.start.ByPosition }

// kind is byPosition for those who do not hold mu. It changes by a reset only.
func (r *Relay) kind() (byPosition bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byPosition()
}
