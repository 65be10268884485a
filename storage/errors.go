package storage

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tidemarkdb/tidemark/storage/part"
)

var (
	// ErrInUse: another process has the data directory open.
	ErrInUse = errors.New("data directory is in use by another process")
	// ErrNewerFormat: the directory was written by a newer version.
	ErrNewerFormat = errors.New("data directory was written by a newer version of tidemark")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrDiskFull: free space is below the reserve. Nothing was changed; the same commit may be tried again once there is
	// space.
	ErrDiskFull = errors.New("disk is full")
	// ErrNotFound: no such database, table or entry.
	ErrNotFound = errors.New("not found")
	// ErrExists: a database or table of that name is there already.
	ErrExists = errors.New("already exists")
	// ErrLoadOpen: the bulk load is in use already.
	ErrLoadOpen = errors.New("the bulk load is in use")
	// ErrQuarantined: the table takes no changes.
	ErrQuarantined = errors.New("table is quarantined")
)

// FailedError says that the metadata store could not write and has stopped, so that nothing more can be committed. What
// was committed before is safe; whether the commit that met the error is durable will be known after the store is
// opened again. Reads of pinned versions go on.
type FailedError struct{ Cause error }

func (e *FailedError) Error() string {
	return fmt.Sprintf("the store has stopped after a write error: %v; nothing committed is lost; fix the disk and restart", e.Cause)
}

func (e *FailedError) Unwrap() error { return e.Cause }

// DamageError names a file or a record whose content is not what was written.
type DamageError = part.DamageError

// Expect is what an operation expects of its key.
type Expect uint8

const (
	// Any expects nothing.
	Any Expect = iota
	// MustExist expects a live row with the key.
	MustExist
	// MustNotExist expects none.
	MustNotExist
)

// DivergenceError says that a change does not fit the rows that are there: the table no longer follows its source.
type DivergenceError struct {
	Table    string
	Key      []byte // key bytes; not printed, since they are data
	Expected Expect
}

func (e *DivergenceError) Error() string {
	what := "inserts a row whose key is already there"
	if e.Expected == MustExist {
		what = "changes a row that is not there"
	}
	return fmt.Sprintf("table %s has diverged from its source: an event %s (key hash %08x)", e.Table, what, crc32.ChecksumIEEE(e.Key))
}

// DuplicateKeyError says that a bulk load was given two rows of one key.
type DuplicateKeyError struct {
	Table string
	Key   []byte
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("table %s: the copy holds two rows of one key (key hash %08x)", e.Table, crc32.ChecksumIEEE(e.Key))
}

func damaged(what, reason string) error { return &DamageError{Path: what, Reason: reason} }
