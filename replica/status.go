package replica

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/storage"
)

// State is what a database does.
type State string

// The states. A database that has data is readable in every state.
const (
	StateSnapshot   State = "snapshot"   // the first copy is under way
	StateConverging State = "converging" // all rows are copied; the stream brings the tables to one point, and nothing is readable before
	StateStreaming  State = "streaming"  // follows the source; it may be lost for the moment, see Status.Error
	StateStopped    State = "stopped"    // by SYSTEM STOP
	StateEnded      State = "ended"      // all given binlog files are applied
	StateError      State = "error"      // cannot go on by itself
)

// States are all states.
var States = []State{StateSnapshot, StateConverging, StateStreaming, StateStopped, StateEnded, StateError}

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
	// Snapshot is how the first copy was made; nil before it has begun, and for one of a version that did not keep it.
	Snapshot *SnapshotStatus `json:"snapshot"`
	// Relay is how much of the source's log is spooled here; nil while the database is stopped.
	Relay *RelayStatus `json:"relay"`
	// Retention is how far the source is from removing binlog that is still needed; nil until it was looked at.
	Retention *Retention `json:"retention"`
	// Transactions counts those applied since the process started. PointTime is when the source committed what queries see, or
	// when that was last all there is; zero when it is not known.
	Transactions uint64    `json:"-"`
	PointTime    time.Time `json:"-"`
	// TimeZone is the source's: a name or an offset such as +05:30; empty until it is known. It is the default of sessions.
	TimeZone string `json:"-"`
	// User and Settings are those of the Spec, for [Status.CreateStatement].
	User     string   `json:"-"`
	Settings Settings `json:"-"`
}

// RelayStatus is how much of the source's log is spooled.
type RelayStatus struct {
	Bytes int64 `json:"bytes"`
	// GTIDSet, File and Position are up to where it is.
	GTIDSet  string `json:"gtid_set"`
	File     string `json:"file"`
	Position uint64 `json:"position"`
	// Full tells that nothing is read from the source until what is spooled has been applied (relay_max_bytes).
	Full bool `json:"full"`
}

func relayStatus(s relay.Status) *RelayStatus {
	return &RelayStatus{Bytes: s.Bytes, GTIDSet: s.End.Set.String(), File: s.End.Position.File, Position: s.End.Position.Offset, Full: s.Full}
}

// TableStatus is one table of a database.
type TableStatus struct {
	Name  string `json:"name"`
	State string `json:"state"` // copying, live or quarantined
	Rows  int64  `json:"rows"`
	// Error is why the table is in quarantine; nil when it is not.
	Error *string `json:"error"`
	// Resync tells of the new copy of the table that is made beside the stream; nil when none is made or due.
	Resync *ResyncStatus `json:"resync,omitempty"`
	// Copy is the progress of the table in the first copy; nil when none is under way.
	Copy *TableCopy `json:"copy,omitempty"`
}

// TableCopy is how far the copy of one table is.
type TableCopy struct {
	Rows uint64 `json:"rows"` // that are here
	// TotalRows is the source's estimate, which may be off.
	TotalRows uint64 `json:"total_rows"`
	// Bytes came over the network, RowsPerSecond too, since the process started.
	Bytes         uint64   `json:"bytes"`
	RowsPerSecond float64  `json:"rows_per_second"`
	LeftSeconds   *float64 `json:"left_seconds"` // at the same pace; nil when it is not known
	Chunks        int      `json:"chunks"`       // that are durable
	TotalChunks   int      `json:"total_chunks"` // about
	// RowsTakenOver were copied before the copy broke off, and are not read again. RowsReadAgain were read, dropped with a
	// chunk that was cut off, and read again, since the process started.
	RowsTakenOver uint64 `json:"rows_taken_over"`
	RowsReadAgain uint64 `json:"rows_read_again"`
}

// ResyncStatus is how far a new copy of one table is.
type ResyncStatus struct {
	State ResyncState `json:"state"`
	// Rows are those copied so far, TotalRows the source's estimate of all.
	Rows      uint64 `json:"rows"`
	TotalRows uint64 `json:"total_rows"`
	// Tries counts those that failed, NextTry is when the next one begins; nil: as soon as one of the jobs is free.
	Tries   int        `json:"tries"`
	NextTry *time.Time `json:"next_try"`
	// Error is why the last try failed, or what the copy waits for; nil: nothing.
	Error *string `json:"error"`
}

// ResyncState is what a new copy of a table is at.
type ResyncState string

// The states of a new copy, in their order.
const (
	ResyncWaiting  ResyncState = "waiting"  // for its turn, or for the time of its next try
	ResyncCopying  ResyncState = "copying"  // rows are read from the source
	ResyncCatching ResyncState = "catching" // changes since then are applied, until it meets the stream
)

// CopyProgress is how far a first copy is.
type CopyProgress struct {
	Rows uint64 `json:"rows"`
	// TotalRows is the source's estimate, which may be off.
	TotalRows   uint64 `json:"total_rows"`
	Tables      int    `json:"tables"` // copied completely; while converging, those that stand at the stream's point
	TotalTables int    `json:"total_tables"`
	// The following are as for one table.
	Bytes         uint64   `json:"bytes"`
	RowsPerSecond float64  `json:"rows_per_second"`
	LeftSeconds   *float64 `json:"left_seconds"`
	Chunks        int      `json:"chunks"`
	TotalChunks   int      `json:"total_chunks"`
	RowsTakenOver uint64   `json:"rows_taken_over"`
	RowsReadAgain uint64   `json:"rows_read_again"`
	// Resumed tells that the copy broke off and goes on.
	Resumed bool `json:"resumed"`
	// Slowed says why the copy spares the source now.
	Slowed string `json:"slowed,omitempty"`
	// Converging tells that all rows are here. The stream is at Position, and has to pass Until. The tables in Again turned
	// out to be worthless, and are copied again beside it.
	Converging bool     `json:"converging"`
	Position   string   `json:"position,omitempty"`
	Until      string   `json:"until,omitempty"`
	Again      []string `json:"again,omitempty"`
}

// SnapshotStatus is how a first copy was made.
type SnapshotStatus struct {
	Lock string `json:"lock"` // the plan: global, tables or none
	// Exact tells that all rows were read at Point. Otherwise the stream brought the tables to one point, before anything
	// was readable. Guarantee says it in words.
	Exact       bool      `json:"exact"`
	Guarantee   string    `json:"guarantee"`
	Point       string    `json:"point"` // from which on the stream is applied
	Begun       time.Time `json:"begun"`
	LockSeconds float64   `json:"lock_seconds"` // for how long the source was locked
	// Breaks counts how often the copy broke off and went on, Restarts how often it began anew.
	Breaks   int `json:"breaks"`
	Restarts int `json:"restarts"`
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
