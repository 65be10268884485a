package binlog

// arena hands out memory for events. Small events share chunks, so that a transaction of ten events costs one
// allocation and not ten; what is not kept is given back at once and used again.
type arena struct {
	chunk []byte
	used  int
	last  int
	large []byte // what alloc gave last, if it was too large for a chunk
	spare []byte // the same, given back
}

const (
	arenaChunk = 64 << 10
	arenaLarge = arenaChunk / 4
	arenaSpare = 4 << 20 // larger ones are not held for the next event
)

// alloc gives n bytes with room for nothing more.
func (a *arena) alloc(n int) []byte {
	a.forget()
	if n > arenaLarge {
		// A spare one that is much larger would be held by an event that is kept.
		if a.large = a.spare; len(a.large) < n || len(a.large) > 2*n {
			a.large = make([]byte, n)
		} else {
			a.spare = nil
		}
		return a.large[:n:n]
	}
	if len(a.chunk)-a.used < n {
		a.chunk, a.used = make([]byte, arenaChunk), 0
	}
	b := a.chunk[a.used : a.used+n : a.used+n]
	a.used, a.last = a.used+n, n
	return b
}

// undo takes back what the last alloc gave.
func (a *arena) undo() {
	if a.large != nil && len(a.large) <= arenaSpare {
		a.spare = a.large
	}
	a.used -= a.last
	a.forget()
}

// forget leaves what the last alloc gave to its user.
func (a *arena) forget() { a.last, a.large = 0, nil }
