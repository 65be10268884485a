package replica

import (
	"fmt"
	"strings"

	"github.com/tidemarkdb/tidemark/storage"
)

// State is what a database does.
type State string

// The states. A database that has data is readable in every state.
const (
	StateSnapshot  State = "snapshot"  // the first copy is under way
	StateStreaming State = "streaming" // follows the source; it may be lost for the moment, see Status.Error
	StateStopped   State = "stopped"   // by SYSTEM STOP
	StateError     State = "error"     // cannot go on by itself
)

// Status is what there is to know of a database at one moment. Its JSON form is that of sync status --json.
type Status struct {
	Name   string `json:"name"`
	Source string `json:"source"` // host:port/database
	State  State  `json:"state"`
	// GTIDSet, File and Position are the point that a query started now would see; empty until the database is readable.
	GTIDSet  string `json:"gtid_set"`
	File     string `json:"file"`
	Position uint64 `json:"position"`
	// LagSeconds is how far that point is behind the source; nil when it is not known.
	LagSeconds  *float64 `json:"lag_seconds"`
	RowsApplied uint64   `json:"rows_applied"`
	// Error says what is wrong and what to do; nil when nothing is.
	Error  *string       `json:"error"`
	Tables []TableStatus `json:"tables"`
	// Copy is the progress of the first copy; nil when none is under way.
	Copy *CopyProgress `json:"copy,omitempty"`
	// Retention is how far the source is from removing binlog that is still needed; nil until it was looked at.
	Retention *Retention `json:"retention"`
	// TimeZone is the source's: a name or an offset such as +05:30; empty until it is known. It is the default of sessions.
	TimeZone string `json:"-"`
	// User and Settings are those of the Spec, for [Status.CreateStatement].
	User     string   `json:"-"`
	Settings Settings `json:"-"`
}

// TableStatus is one table of a database.
type TableStatus struct {
	Name  string `json:"name"`
	State string `json:"state"` // copying, live or quarantined
	Rows  int64  `json:"rows"`
	// Error is why the table is in quarantine; nil when it is not.
	Error *string `json:"error"`
}

// CopyProgress is how far a first copy is.
type CopyProgress struct {
	Rows uint64 `json:"rows"`
	// TotalRows is the source's estimate, which may be off.
	TotalRows   uint64 `json:"total_rows"`
	Tables      int    `json:"tables"` // copied completely
	TotalTables int    `json:"total_tables"`
}

// CreateStatement gives the statement that makes the database, with '...' in place of the password.
func (s *Status) CreateStatement() string {
	address, database, _ := strings.Cut(s.Source, "/")
	text := fmt.Sprintf("CREATE DATABASE `%s` ENGINE = MaterializedMySQL(%s, %s, %s, '...')",
		strings.ReplaceAll(s.Name, "`", "``"), quote(address), quote(database), quote(s.User))
	if changed := s.Settings.Changed(); len(changed) > 0 {
		text += " SETTINGS " + strings.Join(changed, ", ")
	}
	return text
}

// LogEntry is an entry of system.materialized_mysql_log.
type LogEntry = storage.Event

// Outcome is what comparing a table with its source gave.
type Outcome string

// The outcomes.
const (
	Equal     Outcome = "equal"
	Different Outcome = "different"
	Undecided Outcome = "undecided"
)

// TableResult is the comparison of one table.
type TableResult struct {
	Table   string
	Outcome Outcome
	Rows    int64 // compared
	// Keys are the first keys that differ, in a form for people.
	Keys []string
	Note string
}
