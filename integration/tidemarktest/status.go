package tidemarktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// Status is an object of `tidemark sync status --json`.
type Status struct {
	Name       string   `json:"name"`
	Source     string   `json:"source"`
	State      string   `json:"state"`
	GTIDSet    string   `json:"gtid_set"`
	File       string   `json:"file"`
	Position   uint64   `json:"position"`
	LagSeconds *float64 `json:"lag_seconds"`
	Rows       uint64   `json:"rows_applied"`
	Error      *string  `json:"error"`
	Tables     []Table  `json:"tables"`
	// Copy is how far the first copy is, Snapshot how it was made.
	Copy     *Copy     `json:"copy"`
	Snapshot *Snapshot `json:"snapshot"`
}

// Copy is the progress of a first copy.
type Copy struct {
	Rows          uint64 `json:"rows"`
	TotalRows     uint64 `json:"total_rows"`
	Chunks        int    `json:"chunks"`
	Resumed       bool   `json:"resumed"`
	RowsTakenOver uint64 `json:"rows_taken_over"`
	Converging    bool   `json:"converging"`
}

// Snapshot is how a first copy was made.
type Snapshot struct {
	Lock      string `json:"lock"`
	Exact     bool   `json:"exact"`
	Guarantee string `json:"guarantee"`
	Breaks    int    `json:"breaks"`
	Restarts  int    `json:"restarts"`
}

// Table is a table of a Status.
type Table struct {
	Name  string  `json:"name"`
	State string  `json:"state"`
	Rows  int64   `json:"rows"`
	Error *string `json:"error"`
}

// Problem is the database's error, "" for none.
func (s Status) Problem() string { return deref(s.Error) }

// Problem is the table's error, "" for none.
func (t Table) Problem() string { return deref(t.Error) }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Table finds a table by name; the zero value when there is none.
func (s Status) Table(name string) Table {
	for _, t := range s.Tables {
		if t.Name == name {
			return t
		}
	}
	return Table{}
}

// String is the status for messages of failed tests.
func (s Status) String() string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Status asks for one database.
func (s *Server) Status(database string) Status {
	s.tb.Helper()
	r := s.Run("sync", "status", database, "--json")
	if r.Code != 0 {
		s.tb.Fatalf("sync status %s: code %d: %s%s", database, r.Code, r.Out, r.Err)
	}
	var all []Status
	if err := json.Unmarshal([]byte(r.Out), &all); err != nil {
		s.tb.Fatalf("sync status --json: %v in %q", err, r.Out)
	}
	if len(all) != 1 || all[0].Name != database {
		s.tb.Fatalf("sync status %s --json gave %s", database, r.Out)
	}
	return all[0]
}

// Await asks for the status until it is as wanted. A database in state error fails the test at once, unless that is what
// is waited for.
func (s *Server) Await(database, what string, reached func(Status) bool) Status {
	s.tb.Helper()
	deadline := time.Now().Add(patience)
	for {
		st := s.Status(database)
		if reached(st) {
			return st
		}
		if st.State == "error" || time.Now().After(deadline) {
			s.tb.Fatalf("waiting until %s, database %s is: %s", what, database, st)
		}
		time.Sleep(40 * time.Millisecond)
	}
}

// CatchUp waits until queries see all that the source has committed so far.
func (s *Server) CatchUp(source *mysqltest.Server, database string) Status {
	s.tb.Helper()
	db, err := source.Open("")
	s.check(err)
	defer db.Close()
	var mode, executed string
	s.check(db.QueryRowContext(s.tb.Context(), "SELECT @@gtid_mode, @@gtid_executed").Scan(&mode, &executed))
	if mode == "ON" {
		return s.Await(database, "it has "+executed, func(st Status) bool {
			var has bool
			s.check(db.QueryRowContext(s.tb.Context(), "SELECT GTID_SUBSET(?, ?)", executed, st.GTIDSet).Scan(&has))
			return has
		})
	}
	file, position := s.sourcePosition(source)
	return s.Await(database, fmt.Sprintf("it has %s:%d", file, position), func(st Status) bool {
		return st.File != "" && cmp.Or(cmp.Compare(fileNumber(st.File), fileNumber(file)), cmp.Compare(st.Position, position)) >= 0
	})
}

func (s *Server) sourcePosition(source *mysqltest.Server) (file string, position uint64) {
	s.tb.Helper()
	out, err := source.Client(s.tb.Context(), nil, "-N", "-e", "SHOW BINARY LOG STATUS")
	s.check(err)
	fields := strings.Fields(string(out))
	position, err = strconv.ParseUint(fields[1], 10, 64)
	s.check(err)
	return fields[0], position
}

func fileNumber(file string) int {
	n, err := strconv.Atoi(file[strings.LastIndexByte(file, '.')+1:])
	if err != nil {
		return -1
	}
	return n
}
