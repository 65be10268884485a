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
	DatabaseExists      uint16 = 1007
	DatabaseMissing     uint16 = 1008
	TooManyConnections  uint16 = 1040
	OutOfResources      uint16 = 1041
	HandshakeError      uint16 = 1043
	AccessDenied        uint16 = 1045
	NoDatabase          uint16 = 1046
	UnknownCommand      uint16 = 1047
	UnknownDatabase     uint16 = 1049
	ServerShutdown      uint16 = 1053
	Parse               uint16 = 1064
	EmptyQuery          uint16 = 1065
	NoSuchThread        uint16 = 1094
	WrongDatabaseName   uint16 = 1102
	Unknown             uint16 = 1105
	UnknownCharset      uint16 = 1115
	NoSuchTable         uint16 = 1146
	PacketTooLarge      uint16 = 1153
	UnknownVariable     uint16 = 1193
	WrongArguments      uint16 = 1210
	LocalVariable       uint16 = 1228
	GlobalVariable      uint16 = 1229
	WrongValueForVar    uint16 = 1231
	WrongTypeForVar     uint16 = 1232
	NotSupportedYet     uint16 = 1235
	ReadOnlyVariable    uint16 = 1238
	SubqueryRows        uint16 = 1242
	UnknownStatement    uint16 = 1243
	CollationMismatch   uint16 = 1253
	UnknownCollation    uint16 = 1273
	ReadOnlyOption      uint16 = 1290
	UnknownTimeZone     uint16 = 1298
	QueryInterrupted    uint16 = 1317
	TooManyPlaceholders uint16 = 1390
	OutOfRange          uint16 = 1690
	MalformedPacket     uint16 = 1835
	QueryTimeout        uint16 = 3024
	NotReadable         uint16 = 3168 // ER_SERVER_ISNT_AVAILABLE: a database whose first copy is not finished
)

// states has the states of the codes for which it is not HY000.
var states = map[uint16]string{
	TooManyConnections: "08004", OutOfResources: "08004", 1251: "08004",
	HandshakeError: "08S01", UnknownCommand: "08S01", ServerShutdown: "08S01", PacketTooLarge: "08S01",
	SubqueryRows: "21000", OutOfRange: "22003", AccessDenied: "28000", NoDatabase: "3D000", QueryInterrupted: "70100",
	NoSuchTable: "42S02", 1109: "42S02",
	UnknownDatabase: "42000", Parse: "42000", EmptyQuery: "42000", WrongDatabaseName: "42000", UnknownCharset: "42000",
	WrongValueForVar: "42000", WrongTypeForVar: "42000", NotSupportedYet: "42000", CollationMismatch: "42000", 1044: "42000", 1305: "42000", 1461: "42000",
}

func stateOf(code uint16) string {
	if s := states[code]; s != "" {
		return s
	}
	return "HY000"
}
