package binlog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// StatementKind tells the statements that steer a transaction from the others.
type StatementKind uint8

// The kinds of statements that a transaction can hold. BEGIN, COMMIT, ROLLBACK and the XA statements are not among
// them: they show in the transaction's Kind.
const (
	// StatementOther is DDL, or a change logged as text (statement format).
	StatementOther StatementKind = iota
	// StatementSavepoint, StatementRollbackTo and StatementRelease set, go back to, and drop a savepoint. The source
	// logs a rollback, instead of not logging what was undone, if a table without transactions was changed meanwhile.
	StatementSavepoint
	StatementRollbackTo
	StatementRelease
)

// Statement is a statement of the source together with the session state that it was logged with.
type Statement struct {
	Kind     StatementKind
	SQL      string    // in the character set of CharsetClient
	Database string    // default database, may be empty
	Time     time.Time // NOW() of the statement, to the microsecond if it used it, UTC
	ThreadID uint32
	// ErrorCode is the error that the statement ended with on the source, 0 for none.
	ErrorCode uint16
	SQLMode   uint64
	// Flags2 is the session's OPTION_ flags (foreign_key_checks, unique_checks, sql_auto_is_null, autocommit).
	Flags2 uint32
	// Collation ids of the session. 0 if the event does not say.
	CharsetClient       uint16
	CollationConnection uint16
	CollationServer     uint16
	// CollationDatabase is the default database's, logged only where it matters.
	CollationDatabase uint16
	// DefaultCollationUTF8MB4 is the session's default_collation_for_utf8mb4.
	DefaultCollationUTF8MB4 uint16
	TimeZone                string // empty if the statement does not depend on it
	// ExplicitDefaults is explicit_defaults_for_timestamp; true (the default) if the event does not say.
	ExplicitDefaults bool
	// DDLXID is the number under which the source commits an atomic DDL statement, 0 for others.
	DDLXID uint64

	raw       []byte // body of the event, for spilling
	timestamp uint32
	load      bool
}

func (*Statement) event() {}

func (s *Statement) size() int { return len(s.raw) }

// parseStatement reads a QUERY event or, with load set, an EXECUTE_LOAD_QUERY event.
func parseStatement(b []byte, timestamp uint32, load bool) (*Statement, error) {
	s := &Statement{ExplicitDefaults: true, raw: b, timestamp: timestamp, load: load}
	c := cursor{b: b}
	s.ThreadID = c.u32()
	c.u32() // execution time
	dbLen := int(c.u8())
	s.ErrorCode = c.u16()
	vars := int(c.u16())
	if load {
		c.take(4 + 4 + 4 + 1) // file id, where the file name stands in the text, duplicate handling
	}
	status := c.take(vars)
	s.Database = string(c.take(dbLen))
	if c.u8() != 0 && c.err == nil {
		c.fail(errors.New("database name does not end with a zero byte"))
	}
	if c.err != nil {
		return nil, c.err
	}
	micros, err := s.parseStatus(status)
	if err != nil {
		return nil, err
	}
	s.SQL = string(c.b)
	s.Time = time.Unix(int64(timestamp), int64(micros)*1000).UTC()
	s.Kind = statementKind(s.SQL)
	return s, nil
}

// parseStatus reads the status variables. They are written in growing order of code, so that a reader stops at the
// first one it does not know (mysql-server, Query_event). It returns the microseconds of the statement's time.
func (s *Statement) parseStatus(b []byte) (uint32, error) {
	var micros uint32
	c := cursor{b: b}
	for len(c.b) > 0 && c.err == nil {
		switch code := c.u8(); code {
		case 0:
			s.Flags2 = c.u32()
		case 1:
			s.SQLMode = c.u64()
		case 2:
			c.take(int(c.u8()) + 1)
		case 3, 10:
			c.u32()
		case 4:
			s.CharsetClient, s.CollationConnection, s.CollationServer = c.u16(), c.u16(), c.u16()
		case 5:
			s.TimeZone = string(c.take(int(c.u8())))
		case 6:
			c.take(int(c.u8()))
		case 7:
			c.u16()
		case 8:
			s.CollationDatabase = c.u16()
		case 9:
			c.u64()
		case 11:
			c.take(int(c.u8()))
			c.take(int(c.u8()))
		case 12:
			c.skipNames()
		case 13:
			micros = uint32(c.uint(3))
		case 16:
			s.ExplicitDefaults = c.u8() != 0
		case 17:
			s.DDLXID = c.u64()
		case 18:
			s.DefaultCollationUTF8MB4 = c.u16()
		case 19, 20:
			c.u8()
		default:
			c.b = nil
		}
	}
	if c.err != nil {
		return 0, fmt.Errorf("status variables of a statement: %w", c.err)
	}
	return micros, nil
}

// skipNames passes over the list of databases that a statement changed; 254 stands for "too many to list".
func (c *cursor) skipNames() {
	n := int(c.u8())
	if n == 254 {
		return
	}
	for range n {
		i := bytes.IndexByte(c.b, 0)
		if i < 0 {
			c.fail(errShort)
			return
		}
		c.b = c.b[i+1:]
	}
}

func statementKind(sql string) StatementKind {
	switch {
	case hasWords(sql, "SAVEPOINT"):
		return StatementSavepoint
	case hasWords(sql, "ROLLBACK TO"):
		return StatementRollbackTo
	case hasWords(sql, "RELEASE SAVEPOINT"):
		return StatementRelease
	}
	return StatementOther
}

// hasWords reports whether sql starts with words, in any case, and a space. The server writes these statements
// itself, so they have no comments and no other white space.
func hasWords(sql, words string) bool {
	return len(sql) > len(words) && sql[len(words)] == ' ' && strings.EqualFold(sql[:len(words)], words)
}

// boundary is what a statement does to the transaction it stands in.
type boundary uint8

const (
	boundaryNone boundary = iota
	boundaryBegin
	boundaryCommit
	boundaryRollback
	boundaryXAStart
	boundaryXAEnd
	boundaryXACommit
	boundaryXARollback
)

// statementBoundary recognises the statements with which the server itself frames transactions in the log.
func statementBoundary(sql string) boundary {
	if len(sql) > 512 {
		return boundaryNone
	}
	trimmed := strings.TrimRight(strings.TrimSpace(sql), ";")
	switch {
	case strings.EqualFold(trimmed, "BEGIN"):
		return boundaryBegin
	case strings.EqualFold(trimmed, "COMMIT"):
		return boundaryCommit
	case strings.EqualFold(trimmed, "ROLLBACK"):
		return boundaryRollback
	case hasWords(sql, "XA START"), hasWords(sql, "XA BEGIN"):
		return boundaryXAStart
	case hasWords(sql, "XA END"):
		return boundaryXAEnd
	case hasWords(sql, "XA COMMIT"):
		return boundaryXACommit
	case hasWords(sql, "XA ROLLBACK"):
		return boundaryXARollback
	}
	return boundaryNone
}

// String is the form that the server logs: X'6731',X”,1.
func (x XID) String() string {
	return fmt.Sprintf("X'%x',X'%x',%d", x.GTRID, x.BQUAL, x.FormatID)
}

// parseXAStatement reads the id out of XA COMMIT X'..',X'..',n and XA ROLLBACK, the form that the server logs.
func parseXAStatement(sql string) (XID, error) {
	bad := fmt.Errorf("XA id of %q can not be read", sql)
	rest := sql
	var parts [2]string
	for i := range parts {
		_, after, ok := strings.Cut(rest, "X'")
		hexDigits, tail, closed := strings.Cut(after, "'")
		if !ok || !closed {
			return XID{}, bad
		}
		b, err := decodeHex(hexDigits)
		if err != nil {
			return XID{}, bad
		}
		parts[i], rest = b, tail
	}
	number, _, _ := strings.Cut(strings.TrimLeft(rest, ", "), " ")
	format, err := strconv.ParseInt(strings.TrimRight(number, ";"), 10, 64)
	if err != nil || format < -1 || format > 1<<32-1 {
		return XID{}, bad
	}
	return XID{FormatID: uint32(format), GTRID: parts[0], BQUAL: parts[1]}, nil
}
