package relay

import (
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// DamageError says that files which were on disk for good are not as they were written. The relay can't be used; its
// directory is to be removed, and what it had is to be read from the source again.
type DamageError struct {
	Path   string
	Offset int64
	Err    error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("relay: %s is damaged at offset %d: %v", e.Path, e.Offset, e.Err)
}

// Unwrap gives the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// NotSpooledError says that the relay does not reach back to a point that was asked for.
type NotSpooledError struct {
	From  gtid.Point
	Begin gtid.Point // zero: the relay is empty
}

func (e *NotSpooledError) Error() string {
	if e.Begin.IsZero() {
		return fmt.Sprintf("relay: nothing is spooled, %s was asked for", e.From)
	}
	return fmt.Sprintf("relay: %s was asked for, and the spooled log begins at %s", e.From, e.Begin)
}

// GoneError says that what a reader was at is no longer part of the relay, which was emptied or cut. Begin again at the
// last point that is durable.
type GoneError struct{}

func (*GoneError) Error() string {
	return "relay: the spooled log was cut off in front of what was read"
}

var errArchive = errors.New("relay: an archive is only read")

// local is a fault of this machine, such as a full disk.
func local(doing string, err error) error {
	return &binlog.Error{Class: binlog.Local, Err: fmt.Errorf("spool the binlog: %s: %w", doing, err)}
}
