package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// ErrSchemaChanged says that a table is not as its definition says. Scan and Select fail with it; Run tells it of the one
// table in TableResult.Changed.
var ErrSchemaChanged = errors.New("a table's definition changed during the snapshot")

// changedCodes are the server's errors by which a changed definition shows.
var changedCodes = []uint16{wire.CodeTableChanged, wire.CodeNoSuchTable, wire.CodeUnknownColumn, wire.CodeNoSuchKey, mysql.ER_BAD_DB_ERROR}

// changed tells the errors that say that the table is another one.
func changed(err error) bool {
	var mismatch *wire.MismatchError
	return errors.As(err, &mismatch) || errors.Is(err, ErrSchemaChanged) || slices.Contains(changedCodes, wire.Code(err))
}

// schemaError makes ErrSchemaChanged of the errors by which a changed definition shows.
func schemaError(t *schema.Table, err error) error {
	if err == nil || errors.Is(err, ErrSchemaChanged) {
		return err
	}
	if changed(err) || wire.Code(err) == wire.CodeLockTimeout {
		return fmt.Errorf("%w: table %s: %w", ErrSchemaChanged, t.FullName(), err)
	}
	return fmt.Errorf("copying table %s: %w", t.FullName(), err)
}

// passingCodes are the server's errors after which the same rows may come when they are asked for again: the statement
// was killed or timed out, somebody holds the table, the session or the server is ended, memory is short.
var passingCodes = []uint16{
	mysql.ER_QUERY_INTERRUPTED, codeQueryTimeout, mysql.ER_LOCK_WAIT_TIMEOUT, mysql.ER_NEED_REPREPARE,
	mysql.ER_SERVER_SHUTDOWN, codeSessionKilled, codeIdle, mysql.ER_NET_READ_ERROR, mysql.ER_NET_READ_INTERRUPTED,
	mysql.ER_NET_ERROR_ON_WRITE, mysql.ER_NET_WRITE_INTERRUPTED, mysql.ER_OUTOFMEMORY, mysql.ER_OUT_OF_RESOURCES,
}

const (
	codeQueryTimeout  = 3024 // ER_QUERY_TIMEOUT
	codeSessionKilled = 3169 // ER_SESSION_WAS_KILLED
	codeIdle          = 4031 // ER_CLIENT_INTERACTION_TIMEOUT
)

// passing tells errors of the way to the source: the connection was lost, or is not to be had, or the statement was cut
// off, or others are in the way.
func passing(err error) bool {
	var obstacle *LockError
	if errors.As(err, &obstacle) {
		return obstacle.Obstacle == Busy
	}
	if wire.ServerError(err) != nil {
		return full(err) || slices.Contains(passingCodes, wire.Code(err))
	}
	var refused *wire.ConnectError
	if errors.As(err, &refused) {
		return !refused.Denied
	}
	return lost(err)
}

// full tells that the server has no connection left.
func full(err error) bool {
	var refused *wire.ConnectError
	return errors.As(err, &refused) && refused.Full
}

// lost tells that the connection is of no use any more.
func lost(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, mysql.ErrBadConn) || errors.Is(err, mysql.ErrMalformPacket)
}

// sinkError is an error of the sink, which no other try cures.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// ofSink marks errors of the sink.
func ofSink(err error) error {
	if err == nil {
		return nil
	}
	return &sinkError{err}
}

func isSinks(err error) bool {
	var e *sinkError
	return errors.As(err, &e)
}

// stopped gives the reason why ctx ended, nil while it has not.
func stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
