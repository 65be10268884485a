package ddl

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/schema"
)

// Statement is a statement with the session state it was logged with, as package binlog reads it.
type Statement struct {
	SQL      string // in the character set of Client
	Database string // default database, may be empty
	SQLMode  uint64
	// Client is the collation id of character_set_client, ServerCollation collation_server, UTF8MB4Collation
	// default_collation_for_utf8mb4; 0: the event does not say.
	Client           uint16
	ServerCollation  uint16
	UTF8MB4Collation uint16
	// Time is NOW() of the statement; TimeZone the session's time zone, empty if the event does not say.
	Time     time.Time
	TimeZone string
	// ExplicitDefaults is explicit_defaults_for_timestamp.
	ExplicitDefaults bool
	// ErrorCode is the error that the statement ended with on the source.
	ErrorCode uint16
}

// Server is what the meaning of a statement depends on besides its session.
type Server struct {
	// Version is the server's version as in executable comments: 80046.
	Version int
	// FoldNames tells that names of databases and tables ignore case (lower_case_table_names is not 0); LowerNames that
	// they are stored in lower case (it is 1).
	FoldNames, LowerNames bool
	// NativeForeignKeys tells that the storage engine runs CASCADE and SET NULL by itself, so that the rows they change
	// are not in the binlog (all servers before 9.6).
	NativeForeignKeys bool
	// Location is the time zone SYSTEM; nil if it is not known.
	Location *time.Location
}

// Catalog is what is known at the statement's position.
type Catalog interface {
	// Database is the name of the followed database on the source.
	Database() string
	// Charset is the database's default character set and collation, empty after the database was dropped.
	Charset() (charset, collation string)
	// Follows tells whether the filters let a table of this name through.
	Follows(table string) bool
	// Table gives the definition of a followed table, by its exact name, and whether it is live. ok is false when there is
	// no such table. A table that is not live is quarantined, and def may be out of date or have no columns.
	Table(name string) (def *schema.Table, live, ok bool)
	// Tables lists the names of the followed tables, quarantined ones included.
	Tables() []string
}

// Op is what an effect does.
type Op uint8

// The effects.
const (
	// Create adds a table: Def. A quarantined table of that name is gone.
	Create Op = iota + 1
	// Drop removes a table.
	Drop
	// Truncate removes all its rows.
	Truncate
	// Alter gives the table the next version of its definition: Def.
	Alter
	// Quarantine says that the table can't be followed from here on, because of Reason. The table may be one that
	// is not known yet; Def then has what is known of it.
	Quarantine
	// Charset changes the default character set and collation of the database; both empty: the database was dropped.
	Charset
)

var opNames = [...]string{Create: "create", Drop: "drop", Truncate: "truncate", Alter: "alter", Quarantine: "quarantine", Charset: "charset"}

// String is the effect in a word.
func (o Op) String() string { return opNames[o] }

// Effect is one change of what is followed. Effects of one statement happen in order, all or none.
type Effect struct {
	Op     Op
	Table  string
	Def    *schema.Table
	Reason string
	// Exists tells that a Quarantine is for a table that was created although it is there already.
	Exists bool
	// Barrier tells that the source held the table for itself while it logged the statement: every transaction on it
	// that stands in front of the statement in the log had been committed before, also in the storage engine.
	Barrier bool
	// Charset and Collation are set for the effect Charset.
	Charset, Collation string
}

// UnknownError says that a statement may touch a followed table, and that it can't be told which.
type UnknownError struct {
	Statement string // shortened; empty where the text may hold secrets or row values
	Reason    string
}

func (e *UnknownError) Error() string {
	if e.Statement == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s: %s", e.Reason, e.Statement)
}

// Apply gives the effects of a statement. A statement without any effect on what is followed gives none. The error is
// an *UnknownError.
func Apply(st Statement, server Server, catalog Catalog) ([]Effect, error) {
	s := &statement{st: st, server: server, catalog: catalog}
	if err := s.read(); err != nil {
		return s.unreadable(err)
	}
	return s.apply()
}

// statement is a statement being looked at.
type statement struct {
	st      Statement
	server  Server
	catalog Catalog
	text    string // UTF-8, without comments
	tokens  []token
}

func (s *statement) read() error {
	text, err := decode(s.st.SQL, s.st.Client)
	if err != nil {
		return err
	}
	if s.text, err = stripComments(strings.TrimRight(text, "\x00"), s.server.Version, s.st.SQLMode); err != nil {
		return err
	}
	s.tokens, err = lex(s.text, s.st.SQLMode)
	return err
}

// unreadable deals with a text that can't even be cut into tokens: it is passed over only if the bytes of it show
// that it can't concern the followed database.
func (s *statement) unreadable(cause error) ([]Effect, error) {
	text := strings.ToLower(s.st.SQL)
	if !s.sameDatabase(s.st.Database) && !strings.Contains(text, strings.ToLower(s.catalog.Database())) && isASCII(s.catalog.Database()) {
		return nil, nil
	}
	return nil, &UnknownError{Reason: "a statement can't be read: " + cause.Error()}
}

// sameDatabase tells whether a database name is that of the followed database.
func (s *statement) sameDatabase(name string) bool { return s.sameName(name, s.catalog.Database()) }

func (s *statement) sameName(a, b string) bool {
	if s.server.FoldNames {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// tableName is a table as a statement names it.
type tableName struct{ database, table string }

// followed tells whether the name is in the followed database and let through by the filters.
func (s *statement) followed(n tableName) bool {
	return s.sameDatabase(n.database) && s.catalog.Follows(n.table)
}

// lookup finds a followed table. name is its exact name.
func (s *statement) lookup(n tableName) (name string, def *schema.Table, live, ok bool) {
	if !s.followed(n) {
		return n.table, nil, false, false
	}
	if def, live, ok = s.catalog.Table(n.table); ok || !s.server.FoldNames {
		return n.table, def, live, ok
	}
	for _, t := range s.catalog.Tables() {
		if strings.EqualFold(t, n.table) {
			def, live, ok = s.catalog.Table(t)
			return t, def, live, ok
		}
	}
	return n.table, nil, false, false
}

// newName gives the name under which the source stores a new table.
func (s *statement) newName(name string) string {
	if s.server.LowerNames {
		return strings.ToLower(name)
	}
	return name
}

// quarantine gives the effect on a table that the statement names, if it is known. A table that is quarantined
// already keeps its first reason.
func (s *statement) quarantine(n tableName, format string, args ...any) []Effect {
	if name, _, live, ok := s.lookup(n); ok && live {
		return []Effect{{Op: Quarantine, Table: name, Reason: fmt.Sprintf(format, args...) + ": " + s.quote()}}
	}
	return nil
}

// placeholder gives the effect of a table that came by a statement which does not say what is in it.
func (s *statement) placeholder(n tableName, format string, args ...any) []Effect {
	if !s.followed(n) {
		return nil
	}
	name := s.newName(n.table)
	def := &schema.Table{Database: s.catalog.Database(), Name: name, Version: 1, NextColumnID: 1}
	return []Effect{{Op: Quarantine, Table: name, Def: def, Reason: fmt.Sprintf(format, args...) + ": " + s.quote()}}
}

const maxQuoted = 300

// quote gives the statement for messages, on one line and not too long.
func (s *statement) quote() string {
	text := strings.Join(strings.Fields(s.text), " ")
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + " ..."
	}
	return text
}

// unknown deals with a statement that is not understood. If it names followed tables, they are the ones it can touch.
func (s *statement) unknown(reason string) ([]Effect, error) {
	if !s.mentionsDatabase() {
		return nil, nil
	}
	var out []Effect
	for _, t := range s.mentioned() {
		out = append(out, s.quarantine(tableName{s.catalog.Database(), t}, "%s", reason)...)
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, &UnknownError{Statement: s.quote(), Reason: reason + ", and it can't be told which tables it touches"}
}

// mentionsDatabase tells whether the statement can concern the followed database: it is the default database, or its
// name occurs.
func (s *statement) mentionsDatabase() bool {
	if s.sameDatabase(s.st.Database) {
		return true
	}
	for _, t := range s.tokens {
		if (t.isName() || t.kind == tokString) && strings.EqualFold(t.text, s.catalog.Database()) {
			return true
		}
	}
	return false
}

// mentioned lists the followed tables whose names occur.
func (s *statement) mentioned() []string {
	var out []string
	for _, name := range s.catalog.Tables() {
		for _, t := range s.tokens {
			if t.isName() && (t.text == name || s.server.FoldNames && strings.EqualFold(t.text, name)) {
				out = append(out, name)
				break
			}
		}
	}
	return out
}
