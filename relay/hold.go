package relay

import (
	"os"
	"path/filepath"

	"github.com/tidemarkdb/tidemark/gtid"
)

// Hold keeps what lies behind a point from being pruned.
type Hold struct {
	r  *Relay
	at gtid.Point
}

// Hold keeps everything behind p until it is moved or released. It does not bring back what was pruned before.
func (r *Relay) Hold(p gtid.Point) *Hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &Hold{r, p}
	r.holds[h] = true
	return h
}

// Move says that what lies in front of p is no longer needed, nor will be.
func (h *Hold) Move(p gtid.Point) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	h.at = p
	h.r.makeRoom()
}

// Release ends the hold. It may be called again.
func (h *Hold) Release() {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	delete(h.r.holds, h)
	h.r.makeRoom()
}

// Consumed tells whether p has everything that is spooled.
func (r *Relay) Consumed(p gtid.Point) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start != nil && r.isBehind(p)
}

// Covers tells whether everything behind p is, or will be, in the relay.
func (r *Relay) Covers(p gtid.Point) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start != nil && r.reachesBack(p)
}

// Prune says that everything up to a point is applied and durable elsewhere, and removes the files that nobody needs any
// more. The newest file stays.
func (r *Relay) Prune(upTo gtid.Point) error {
	if r.archive {
		return nil
	}
	for {
		f := r.prunable(upTo)
		if f == nil {
			return nil
		}
		if err := os.Remove(filepath.Join(r.cfg.Dir, f.name)); err != nil && !os.IsNotExist(err) {
			return local("remove a file that is no longer needed", err)
		}
	}
}

// prunable takes the oldest file out if nobody needs it.
func (r *Relay) prunable(upTo gtid.Point) *file {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.main = &Hold{r, upTo}
	r.makeRoom()
	if len(r.files) < 2 || !needless(r.files[1], upTo) {
		return nil
	}
	for h := range r.holds {
		if !needless(r.files[1], h.at) {
			return nil
		}
	}
	f := r.files[0]
	r.files = r.files[1:]
	r.bytes -= f.size
	r.start = &Start{Point: r.files[0].begin, ByPosition: r.start.ByPosition}
	return f
}

// needless tells whether somebody at p needs nothing of what lies in front of a file. By position the whole file in which
// p stands is kept: a table without GTIDs is copied from its start on.
func needless(next *file, p gtid.Point) bool {
	if next.log != "" {
		return p.Position.SameSeries(next.begin.Position) && p.Position.Compare(next.begin.Position) >= 0
	}
	return p.Set.Contains(next.begin.Set)
}
