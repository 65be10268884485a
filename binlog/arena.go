package binlog

// arena hands out memory for events. Small events share chunks, so that a transaction of ten events costs one
// allocation and not ten; what is not kept is given back at once and used again.
type arena struct {
	chunk []byte
	used  int
	last  int
}

const (
	arenaChunk = 64 << 10
	arenaLarge = arenaChunk / 4
)

// alloc gives n bytes with room for nothing more.
func (a *arena) alloc(n int) []byte {
	a.last = 0
	if n > arenaLarge {
		return make([]byte, n)
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
	a.used -= a.last
	a.last = 0
}
