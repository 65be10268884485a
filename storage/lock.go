package storage

import (
	"errors"
	"time"
)

// tableLock is the lock of one table. Who waits first gets it first.
type tableLock chan struct{}

func (l tableLock) Lock()   { l <- struct{}{} }
func (l tableLock) Unlock() { <-l }

// lockWithin tells whether the lock could be had in time.
func (l tableLock) lockWithin(d time.Duration) bool {
	select {
	case l <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case l <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// errTableBusy tells background work that a transaction keeps a table for long: other tables come first.
var errTableBusy = errors.New("a transaction keeps the table for long")

// How long the flush of a table waits for it, before it does anything and when the new home is written. It must not wait for
// ever: while the segments of other tables wait to be flushed, so do those who write to them.
const (
	tableFreeWithin    = 200 * time.Millisecond
	flushCommitsWithin = 5 * time.Second
)

// free tells whether the transactions of a table let others in between.
func (s *Store) free(id TableID) bool {
	l := s.tableLock(id)
	if !l.lockWithin(tableFreeWithin) {
		return false
	}
	l.Unlock()
	return true
}
