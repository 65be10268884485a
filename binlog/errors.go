package binlog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// Class says what kind of fault ended a stream, and so what its owner should do.
type Class uint8

// The classes of faults.
const (
	// ConnectionLost: the network, or the server going down. Open again, after a pause.
	ConnectionLost Class = iota + 1
	// AuthFailed: wrong user or password, or a missing privilege. Somebody has to change something.
	AuthFailed
	// Misconfigured: the source or the request can not work as it is (no binlog, GTIDs off, a server id of 0).
	Misconfigured
	// PurgedLogs: the source no longer has transactions that are needed. A new snapshot is needed.
	PurgedLogs
	// DuplicateServerID: another reader of the same source uses this server id.
	DuplicateServerID
	// Rewound: the source has lost transactions that were read from it: reset, restored, or another server.
	Rewound
	// UnknownIdentity: the last transaction can not be read back (purged), so nothing is known about a rewind.
	UnknownIdentity
	// Corrupt: bytes from the source that do not make sense, or a wrong checksum.
	Corrupt
	// UnknownEvent: an event that this release does not know and that may not be ignored.
	UnknownEvent
	// Incident: the source says that it lost events.
	Incident
	// TooLarge: the source refuses to send an event that is larger than it can send.
	TooLarge
	// Local: a fault on our side, such as a full disk while spilling.
	Local
	// Cancelled: the context was cancelled or the stream was closed.
	Cancelled
)

var classNames = [...]string{
	ConnectionLost: "connection lost", AuthFailed: "access denied", Misconfigured: "source can not be followed as configured",
	PurgedLogs: "binary logs purged", DuplicateServerID: "server id in use", Rewound: "source was rewound or replaced",
	UnknownIdentity: "last transaction can not be read back", Corrupt: "damaged binlog data", UnknownEvent: "unknown event",
	Incident: "source lost events", TooLarge: "event too large for the source to send", Local: "local fault", Cancelled: "cancelled",
}

// String is the class in words.
func (c Class) String() string { return classNames[c] }

// Error is how every function of this package that talks to a source fails.
type Error struct {
	Class   Class
	At      gtid.Position // where in the source's binlog, if known
	Missing gtid.Set      // PurgedLogs and Rewound: the transactions in question, if known
	Err     error
}

// Error says what, where, and for a refused or lost source why.
func (e *Error) Error() string {
	s := "binlog: " + e.Class.String()
	if !e.At.IsZero() {
		s += " at " + e.At.String()
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether opening the stream again, with nothing changed, can succeed.
func (e *Error) Temporary() bool { return e.Class == ConnectionLost }

// ClassOf gives the class of an error of this package, 0 for any other.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return 0
}

func fault(c Class, format string, args ...any) *Error {
	return &Error{Class: c, Err: fmt.Errorf(format, args...)}
}

// connectionError classifies what came back from connecting or from a query.
func connectionError(ctx context.Context, doing string, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil {
		return fault(Cancelled, "%s: %w", doing, context.Cause(ctx))
	}
	var refused *wire.ConnectError
	if errors.As(err, &refused) {
		return &Error{Class: classOfConnect(refused), Err: refused}
	}
	if my := wire.ServerError(err); my != nil {
		return &Error{Class: classOfCode(my.Code, my.Message), Err: fmt.Errorf("%s: %w", doing, my)}
	}
	return fault(ConnectionLost, "%s: %w", doing, err)
}

func classOfConnect(e *wire.ConnectError) Class {
	switch {
	case e.Denied:
		return AuthFailed
	case e.Setup:
		return Misconfigured
	}
	return ConnectionLost
}

// errClientInteraction is the server's word for a client that it gave up, which go-mysql does not name.
const errClientInteraction = 4031

func classOfCode(code uint16, message string) Class {
	switch code {
	case mysql.ER_ACCESS_DENIED_ERROR, mysql.ER_DBACCESS_DENIED_ERROR, mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR,
		mysql.ER_MUST_CHANGE_PASSWORD:
		return AuthFailed
	case mysql.ER_MASTER_FATAL_ERROR_READING_BINLOG:
		return classOfDumpError(message)
	case mysql.ER_SERVER_SHUTDOWN, mysql.ER_CON_COUNT_ERROR, mysql.ER_QUERY_INTERRUPTED, mysql.ER_NORMAL_SHUTDOWN,
		mysql.ER_TOO_MANY_USER_CONNECTIONS, mysql.ER_USER_LIMIT_REACHED, mysql.ER_NEW_ABORTING_CONNECTION, errClientInteraction,
		mysql.ER_NET_READ_INTERRUPTED, mysql.ER_NET_READ_ERROR, mysql.ER_NET_ERROR_ON_WRITE, mysql.ER_NET_WRITE_INTERRUPTED:
		return ConnectionLost
	}
	return Misconfigured
}

// classOfDumpError tells the causes apart that a server puts under the one error code 1236. The wording changed from
// master and slave to source and replica in 8.0.26, so only words common to both are looked for.
func classOfDumpError(message string) Class {
	m := strings.ToLower(message)
	for _, c := range []struct {
		words string
		class Class
	}{
		{"same server_uuid/server_id", DuplicateServerID},
		{"more gtids than", Rewound},
		{"position > file size", Rewound},
		{"impossible position", Rewound},
		{"purged required binary logs", PurgedLogs},
		{"could not find first log file name", PurgedLogs},
		{"could not find next log", PurgedLogs},
		{"max_allowed_packet", TooLarge},
		{"gtid_mode", Misconfigured},
		{"server_id", Misconfigured},
		{"binary log is not open", Misconfigured},
	} {
		if strings.Contains(m, c.words) {
			return c.class
		}
	}
	return Corrupt
}
