package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
)

// session is what a connection carries from statement to statement. One goroutine uses it.
type session struct {
	server   *Server
	conn     *conn
	user     string
	database string
	// values are the system variables that this session set, users the @variables.
	values map[string]string
	users  map[string]translate.Value
	// warnings are those of the last statement that was not SHOW WARNINGS or the like.
	warnings []result.Warning
	prepared map[string]*statement // by PREPARE
	// snapshot is what the transaction under way reads; nil before its first read and outside of one.
	snapshot      *query.Snapshot
	foundRows     uint64 // rows of the last result
	inTransaction bool
	now           time.Time // of the statement
	parser        *translate.Parser

	// from variables, kept since every row needs them
	clientCharset, resultCharset string
	resultCollationID            uint16
	location                     *time.Location
	locationName                 string
}

func newSession(s *Server, c *conn) *session {
	se := &session{server: s, conn: c}
	se.reset()
	return se
}

// reset makes the session as it was after login, the default database excepted (COM_RESET_CONNECTION).
func (s *session) reset() {
	s.endTransaction()
	s.values, s.users, s.prepared = map[string]string{}, map[string]translate.Value{}, map[string]*statement{}
	s.warnings = nil
	s.parser = translate.NewParser()
	s.parser.Hide = hidden
	s.applyVariables()
}

func (s *session) close() { s.endTransaction() }

// login takes over what the client said when it connected.
func (s *session) login(l login) error {
	s.user = l.user
	if c := query.CollationByID(int(l.charset)); c != nil {
		s.setNames(c.Charset, c.Name)
	}
	s.database = ""
	if l.database != "" {
		return s.use(l.database)
	}
	return nil
}

func (s *session) use(name string) error {
	canonical, err := s.server.queries.CheckDatabase(name)
	if err != nil {
		return err
	}
	s.database = canonical
	return nil
}

func (s *session) setNames(charset, collation string) {
	s.values["character_set_client"] = charset
	s.values["character_set_results"] = charset
	s.values["character_set_connection"] = charset
	s.values["collation_connection"] = collation
	s.applyVariables()
}

// text gives the value of a variable in this session.
func (s *session) text(name string) string {
	v := variableByName[name].canonical()
	if v.scope&inSession != 0 {
		if text, ok := s.values[v.name]; ok {
			return text
		}
	}
	text := s.server.globals.get(v)
	if v.name == "time_zone" && text == systemZone {
		return sourceZone(s.server.manager.Brief(), s.database)
	}
	return text
}

func (s *session) isOn(name string) bool { return s.text(name) == "ON" }

func (s *session) number(name string) int64 {
	n, _ := strconv.ParseInt(s.text(name), 10, 64)
	return n
}

// applyVariables brings what is derived from variables up to date.
func (s *session) applyVariables() {
	s.clientCharset = s.text("character_set_client")
	s.resultCharset = s.text("character_set_results")
	if s.resultCharset == nullText || s.resultCharset == "binary" {
		s.resultCharset = "utf8mb4"
	}
	s.resultCollationID = field.UTF8MB4
	if c := query.CharsetByName(s.resultCharset); c != nil {
		s.resultCollationID = uint16(query.CollationByName(c.Collation).ID)
	}
	if connection := query.CollationByName(s.text("collation_connection")); connection != nil && connection.Charset == s.resultCharset {
		s.resultCollationID = uint16(connection.ID)
	}
	if s.conn != nil && s.conn.out != nil {
		s.conn.out.timeout = time.Duration(s.number("net_write_timeout")) * time.Second
	}
}

func (s *session) status() uint16 {
	var st uint16
	if s.isOn("autocommit") {
		st |= statusAutocommit
	}
	if s.inTransaction {
		st |= statusInTransaction
		if s.isOn("transaction_read_only") {
			st |= statusInReadOnly
		}
	}
	if strings.Contains(s.text("sql_mode"), "NO_BACKSLASH_ESCAPES") {
		st |= statusNoBackslashEscapes
	}
	return st
}

func (s *session) warningCount() uint16 { return uint16(min(len(s.warnings), 65535)) }

func (s *session) warn(level string, code uint16, format string, args ...any) {
	s.warnings = append(s.warnings, result.Warning{Level: level, Code: code, Message: fmt.Sprintf(format, args...)})
}

// resultCollation is the collation id that text columns are announced with.
func (s *session) resultCollation() uint16 { return s.resultCollationID }

// resultLength gives a column's length in bytes of the results' character set; fields have it for four-byte characters.
func (s *session) resultLength(f *field.Field) uint32 {
	if f.Charset == field.Binary || f.Length == 1<<32-1 {
		return f.Length
	}
	if f.Type == field.Blob && s.text("character_set_results") == nullText {
		return f.Length / 4 // drivers tell TINYTEXT from TEXT by the length, which is in the column's bytes then
	}
	if c := query.CharsetByName(s.resultCharset); c != nil {
		return f.Length / 4 * uint32(c.MaxBytes)
	}
	return f.Length
}

func (s *session) sendsUTF8() bool { return s.resultCharset == "utf8mb4" }

// encodeText converts UTF-8 to the results' character set; what it has no character for becomes a question mark.
func (s *session) encodeText(b []byte) []byte {
	if s.sendsUTF8() {
		return b
	}
	if out, ok := encodeCharset(s.resultCharset, b); ok {
		return out
	}
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if one, ok := encodeCharset(s.resultCharset, []byte(string(r))); ok {
			out = append(out, one...)
		} else {
			out = append(out, '?')
		}
	}
	return out
}

func encodeCharset(charset string, b []byte) ([]byte, bool) {
	if charset != "utf8mb3" {
		return schema.FromUTF8(charset, b)
	}
	return b, !slices.ContainsFunc(b, func(c byte) bool { return c >= 0xF0 })
}

// translation gives what a statement's meaning depends on.
func (s *session) translation() *query.Session {
	return &query.Session{
		Session: translate.Session{
			Database:          s.database,
			SQLMode:           translationMode(s.text("sql_mode")),
			Location:          s.timeZone(),
			Collation:         s.text("collation_connection"),
			BinaryCollation:   s.text("tidemark_collation") == "binary",
			Now:               s.now,
			GroupConcatMaxLen: int(s.number("group_concat_max_len")),
			Function:          s.function,
			SystemVariable:    s.systemVariable,
			UserVariable:      func(name string) translate.Value { return s.users[strings.ToLower(name)] },
		},
		MixedPoints: s.isOn("tidemark_mixed_points"),
	}
}

// timeZone is the session's; reading a zone's file for every statement would cost more than many statements.
func (s *session) timeZone() *time.Location {
	name := s.text("time_zone")
	if s.location == nil || s.locationName != name {
		location, err := loadLocation(name)
		if err != nil {
			location = time.UTC
		}
		s.location, s.locationName = location, name
	}
	return s.location
}

func translationMode(modes string) translate.SQLMode {
	has := func(m string) bool { return slices.Contains(strings.Split(modes, ","), m) }
	return translate.SQLMode{
		ANSIQuotes: has("ANSI_QUOTES"), PipesAsConcat: has("PIPES_AS_CONCAT"), NoBackslashEscapes: has("NO_BACKSLASH_ESCAPES"),
		HighNotPrecedence: has("HIGH_NOT_PRECEDENCE"), IgnoreSpace: has("IGNORE_SPACE"), OnlyFullGroupBy: has("ONLY_FULL_GROUP_BY"),
		NoUnsignedSubtraction: has("NO_UNSIGNED_SUBTRACTION"), RealAsFloat: has("REAL_AS_FLOAT"), PadCharToFullLength: has("PAD_CHAR_TO_FULL_LENGTH"),
	}
}

// function gives the value of a function of the session.
func (s *session) function(name string) (translate.Value, bool) {
	text := func(t string) (translate.Value, bool) {
		return translate.Value{Kind: translate.TextValue, Text: t}, true
	}
	switch name {
	case "DATABASE", "SCHEMA":
		if s.database == "" {
			return translate.Value{}, true
		}
		return text(s.database)
	case "VERSION":
		return text(s.server.config.Version)
	case "USER", "SESSION_USER", "SYSTEM_USER":
		return text(s.user + "@" + s.conn.host())
	case "CURRENT_USER":
		return text(s.user + "@%")
	case "CONNECTION_ID":
		return translate.Value{Kind: translate.UintValue, Uint: uint64(s.conn.id)}, true
	case "FOUND_ROWS":
		return translate.Value{Kind: translate.UintValue, Uint: s.foundRows}, true
	case "LAST_INSERT_ID":
		return translate.Value{Kind: translate.UintValue}, true
	case "ROW_COUNT":
		return translate.Value{Kind: translate.IntValue, Int: -1}, true
	}
	return translate.Value{}, false
}

// systemVariable gives the value of @@name, @@session.name or @@global.name.
func (s *session) systemVariable(scope, name string) (translate.Value, error) {
	v, err := findVariable(name)
	if err != nil {
		return translate.Value{}, err
	}
	switch {
	case scope == "global" && v.scope&inGlobal == 0:
		return translate.Value{}, sqlerr.New(sqlerr.ReadOnlyVariable, "Variable '%s' is a SESSION variable", name)
	case scope == "session" && v.scope&inSession == 0:
		return translate.Value{}, sqlerr.New(sqlerr.ReadOnlyVariable, "Variable '%s' is a GLOBAL variable", name)
	}
	return v.typed(s.show(v, scope == "global")), nil
}

// show gives a variable's text, computed where it is not kept.
func (s *session) show(v *variable, global bool) string {
	v = v.canonical()
	switch v.name {
	case "error_count":
		return strconv.Itoa(s.errorCount())
	case "warning_count":
		return strconv.Itoa(len(s.warnings))
	case "pseudo_thread_id":
		return strconv.FormatUint(uint64(s.conn.id), 10)
	case "timestamp":
		return fmt.Sprintf("%d.%06d", s.now.Unix(), s.now.Nanosecond()/1000)
	case "gtid_executed":
		return s.server.executedSet()
	}
	if !global {
		return s.text(v.name)
	}
	return s.server.globals.get(v)
}

func (s *session) errorCount() int {
	n := 0
	for _, w := range s.warnings {
		if w.Level == "Error" {
			n++
		}
	}
	return n
}

// variables lists what SHOW VARIABLES shows, by name.
func (s *session) variables(global bool) *result.Table {
	t := result.NewTable(result.Name("Variable_name"), result.Text("Value"))
	for _, name := range slices.Sorted(maps.Keys(variableByName)) {
		v := variableByName[name]
		if global && v.scope&inGlobal == 0 {
			continue
		}
		t.Add(name, s.show(v, global))
	}
	return t
}

// begin starts a transaction: all its reads see one point. The point is taken at once when snapshot is set, else at its
// first read, as MySQL does.
func (s *session) begin(ctx context.Context, snapshot bool) error {
	s.endTransaction()
	s.inTransaction = true
	if !snapshot {
		return nil
	}
	_, err := s.pin(ctx)
	return err
}

func (s *session) endTransaction() {
	s.inTransaction = false
	if s.snapshot != nil {
		s.snapshot.Release()
		s.snapshot = nil
	}
}

// pin gives the snapshot that the statement reads; nil: the newest, of its own.
func (s *session) pin(context.Context) (*query.Snapshot, error) {
	if !s.inTransaction && s.isOn("autocommit") || strings.HasPrefix(s.text("transaction_isolation"), "READ-") {
		return nil, nil
	}
	if s.snapshot == nil {
		snapshot, err := s.server.queries.Pin()
		if err != nil {
			return nil, err
		}
		s.snapshot, s.inTransaction = snapshot, true
	}
	return s.snapshot, nil
}
