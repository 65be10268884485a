// Package sqlerr has the one error type that a MySQL client sees: a code, a state and a message, with MySQL's own numbers
// and texts where MySQL has the same error.
package sqlerr

import (
	"errors"
	"fmt"
)

// Error is an error as MySQL's protocol carries it.
type Error struct {
	Code    uint16
	State   string // five characters
	Message string
	cause   error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the error behind it, if any.
func (e *Error) Unwrap() error { return e.cause }

// New makes an error with MySQL's state for the code. The format and its arguments follow [fmt.Errorf], %w included.
func New(code uint16, format string, args ...any) *Error {
	e := fmt.Errorf(format, args...)
	return &Error{Code: code, State: stateOf(code), Message: e.Error(), cause: errors.Unwrap(e)}
}

// From gives err as an Error: the one it wraps, with the text of the whole, or an error of code Unknown.
func From(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Code: Unknown, State: stateOf(Unknown), Message: err.Error(), cause: err}
	}
	if e.Message == err.Error() {
		return e
	}
	return &Error{Code: e.Code, State: e.State, Message: err.Error(), cause: err}
}

// The codes that are used, by MySQL's numbers.
const (
	CantLock              uint16 = 1015
	TooManyConnections    uint16 = 1040
	HandshakeError        uint16 = 1043
	AccessDenied          uint16 = 1045
	NoDatabase            uint16 = 1046
	UnknownCommand        uint16 = 1047
	DatabaseExists        uint16 = 1007
	DatabaseMissing       uint16 = 1008
	UnknownDatabase       uint16 = 1049
	UnknownTable          uint16 = 1051
	UnknownColumn         uint16 = 1054
	ServerShutdown        uint16 = 1053
	Parse                 uint16 = 1064
	EmptyQuery            uint16 = 1065
	NoSuchThread          uint16 = 1094
	Unknown               uint16 = 1105
	WrongDatabaseName     uint16 = 1102
	UnknownCharset        uint16 = 1115
	NoSuchTable           uint16 = 1146
	PacketTooLarge        uint16 = 1153
	UnknownVariable       uint16 = 1193
	WrongArguments        uint16 = 1210
	WrongValueForVar      uint16 = 1231
	WrongTypeForVar       uint16 = 1232
	NotSupportedYet       uint16 = 1235
	ReadOnlyVariable      uint16 = 1238
	GlobalVariable        uint16 = 1229
	LocalVariable         uint16 = 1228
	NoSuchUserIdentity    uint16 = 1141
	UnknownStatement      uint16 = 1243
	UnknownCollation      uint16 = 1273
	ReadOnlyOption        uint16 = 1290
	UnknownTimeZone       uint16 = 1298
	QueryInterrupted      uint16 = 1317
	TooManyPlaceholders   uint16 = 1390
	MalformedPacket       uint16 = 1835
	QueryTimeout          uint16 = 3024
	NotReadable           uint16 = 3168 // ER_SERVER_ISNT_AVAILABLE: a database whose first copy is not finished
	SecureTransport       uint16 = 3159
	TransactionReadOnly   uint16 = 1792
	SubqueryRows          uint16 = 1242
	OutOfRange            uint16 = 1690
	CollationMismatch     uint16 = 1253
	OutOfResources        uint16 = 1041
	DiskFull              uint16 = 1021
	WrongParametersToCall uint16 = 1318
)

var states = map[uint16]string{
	TooManyConnections: "08004", HandshakeError: "08S01", AccessDenied: "28000", NoDatabase: "3D000", UnknownCommand: "08S01",
	UnknownDatabase: "42000", UnknownTable: "42S02", UnknownColumn: "42S22", ServerShutdown: "08S01", Parse: "42000", EmptyQuery: "42000",
	WrongDatabaseName: "42000", UnknownCharset: "42000", NoSuchTable: "42S02", PacketTooLarge: "08S01", WrongValueForVar: "42000",
	WrongTypeForVar: "42000", NotSupportedYet: "42000", NoSuchUserIdentity: "42000", QueryInterrupted: "70100", TransactionReadOnly: "25006",
	SubqueryRows: "21000", OutOfRange: "22003", CollationMismatch: "42000", OutOfResources: "08004", 1140: "42000", 1055: "42000", 1052: "23000",
	1066: "42000", 1248: "42000", 1060: "42S21", 1305: "42000", 1222: "21000", 1241: "21000", 1582: "42000", 1292: "22007", 1365: "22012", 1056: "42000", 1109: "42S02",
}

func stateOf(code uint16) string {
	if s := states[code]; s != "" {
		return s
	}
	return "HY000"
}
