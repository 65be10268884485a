package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// LockPlan says how the cut of a snapshot is made.
type LockPlan string

// The lock plans, from the strongest to the weakest. With each of them the copy is right; they differ in what they ask
// of the source, and in when the database becomes readable.
const (
	// LockGlobal is one brief FLUSH TABLES WITH READ LOCK, under which all readers open their read views and the position
	// is read: all tables stand at one point exactly (P0 = P1).
	LockGlobal LockPlan = "global"
	// LockTables is LOCK TABLES ... READ over the wanted base tables and no others (CLOUD-02), held for the same steps: no
	// transaction that wrote to one of them is between the binlog and the engine. Exact, too.
	LockTables LockPlan = "tables"
	// LockNone takes no lock: each table has a convergence window (P0, P1] of its own (design, section 4).
	LockNone LockPlan = "none"
	// LockAuto is a wish only: the strongest that is allowed.
	LockAuto LockPlan = "auto"
)

// ParseLockPlan reads a wish, in any letter case: auto, global, tables or none.
func ParseLockPlan(text string) (LockPlan, error) {
	p := LockPlan(strings.ToLower(text))
	switch p {
	case LockAuto, LockGlobal, LockTables, LockNone:
		return p, nil
	}
	return "", fmt.Errorf("%q is none of auto, global, tables, none", text)
}

// Plan is how a source is copied and followed. It is a value: it holds no connection.
type Plan struct {
	// Lock is how the cut is made; never LockAuto.
	Lock LockPlan
	// Weaker are the plans that may be taken, in this order, where the source denies Lock in spite of what it said of
	// the account's privileges. It is empty when Lock was asked for by name: then that is a refusal (SNAP-20).
	Weaker []LockPlan
	// Reasons say why Lock was chosen and what it means, a sentence each.
	Reasons []string
	// MayLockTables tells whether LOCK TABLES is allowed on the tables of the database, whatever Lock is: a single table
	// that needs an exact cut and can't be bracketed may be locked by itself.
	MayLockTables bool
	// NeedExact names the tables whose copy must have an exact cut, because their rows can't be told apart by a key.
	NeedExact []string
	// Database is the server's spelling of the name. Filter says which of its tables are wanted.
	Database string
	Filter   Filter
	// GTIDs tells whether a GTID set says where the source is; else file and position do.
	GTIDs bool
	// Status is the statement that gives the position on this server.
	Status string
	// AskXA tells whether the cut waits until no prepared XA transaction is open. Without the privilege to ask, an XA
	// COMMIT whose PREPARE is not known must stop the database.
	AskXA bool
	// Process tells whether the account has PROCESS. Without it the long statements of others can't be seen before the
	// lock is asked for, and InnoDB's ids of the tables can't be read.
	Process bool
	// Catalog is the definitions as they were when the plan was made.
	Catalog *Catalog
	// Warnings are what works, but may stop working.
	Warnings []string
}

// Wishes are what is asked of a source.
type Wishes struct {
	Database string
	Filter   Filter
	// ServerID is the id under which the binlog will be followed; 0: not chosen yet.
	ServerID uint32
	// Lock is the lock plan asked for (the setting snapshot_lock). LockAuto and "" take the strongest that is allowed;
	// any other is taken, or the source is refused.
	Lock LockPlan
}

// Problem is one reason why a source can't be materialized.
type Problem struct {
	// What is wrong and where, as a sentence; Do is what to do about it.
	What, Do string
}

func (p Problem) String() string {
	if p.Do == "" {
		return p.What
	}
	return p.What + "; " + p.Do
}

// ProblemsError is all problems at once.
type ProblemsError struct {
	Addr     string
	Problems []Problem
}

func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	if len(lines) == 1 {
		return fmt.Sprintf("MySQL at %s can't be materialized: %s", e.Addr, lines[0])
	}
	return fmt.Sprintf("MySQL at %s can't be materialized, for %d reasons:\n  - %s", e.Addr, len(lines), strings.Join(lines, "\n  - "))
}

// Check connects to a source and plans. The error is a *wire.ConnectError, a *ProblemsError with everything that has to
// be changed, or one of the connection.
func Check(ctx context.Context, cfg wire.Config, w Wishes) (*Source, *Plan, error) {
	c, s, err := Dial(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = c.Close() }() // everything is read by then
	// What else is asked below is not known to all of these servers.
	if problems := s.productProblems(); len(problems) > 0 {
		return s, nil, &ProblemsError{Addr: s.Addr, Problems: problems}
	}
	catalog, err := ReadCatalog(ctx, c, w.Database, w.Filter, nil)
	var problems []Problem
	var missing *NoDatabaseError
	if errors.As(err, &missing) {
		catalog = &Catalog{Database: w.Database}
		problems = append(problems, Problem{What: missing.Error(), Do: "check its name and GRANT SELECT ON " + wire.Identifier(w.Database) + ".*"})
	} else if err != nil {
		return s, nil, err
	}
	plan, more := NewPlan(s, catalog, w)
	if problems = append(problems, more...); len(problems) > 0 {
		return s, nil, &ProblemsError{Addr: s.Addr, Problems: problems}
	}
	return s, plan, nil
}

// NewPlan decides how the source is copied and followed. A plan comes only without problems.
func NewPlan(s *Source, c *Catalog, w Wishes) (*Plan, []Problem) {
	if problems := s.productProblems(); len(problems) > 0 {
		return nil, problems
	}
	problems := slices.Concat(s.binlogProblems(c.Database), s.serverIDProblems(w.ServerID), s.privilegeProblems(c), TableProblems(c), s.cascadeProblems(c))
	if len(problems) > 0 {
		return nil, problems
	}
	return &Plan{Lock: LockGlobal, Database: c.Database, Filter: w.Filter, GTIDs: s.GTIDs(), Status: s.Status, AskXA: s.MayRecoverXA,
		Process: s.Grants.HasGlobal("PROCESS"), Catalog: c, Warnings: s.warnings()}, nil
}

// oldest is the first version whose information_schema has all that is asked for.
const oldest = 80013

// productProblems refuses what is no MySQL, or too old a one.
func (s *Source) productProblems() []Problem {
	switch {
	case s.Flavour == Vitess:
		return []Problem{{What: fmt.Sprintf("the source is %s (%s), which gives no binlog", s.Flavour, s.Version), Do: "use the MySQL servers behind it as sources"}}
	case !s.isMySQL():
		return []Problem{{What: fmt.Sprintf("the source is %s (version %s), not MySQL", s.Flavour, s.Version), Do: "use a MySQL 8.0 or later server"}}
	case s.VersionNumber() < oldest:
		return []Problem{{What: "the source is MySQL " + s.Version + "; versions before 8.0.13 are not supported", Do: "upgrade the source"}}
	}
	return nil
}

func (s *Source) binlogProblems(database string) []Problem {
	if !s.LogBin {
		return []Problem{{What: "the source writes no binlog (log_bin is OFF)", Do: s.howToLog()}}
	}
	var out []Problem
	add := func(what, do string) { out = append(out, Problem{What: what, Do: do}) }
	if !strings.EqualFold(s.BinlogFormat, "ROW") {
		add("binlog_format is "+s.BinlogFormat+" on the source, and has to be ROW", s.howToSet("binlog_format", "ROW")+", then reconnect the applications")
	}
	if !strings.EqualFold(s.RowImage, "FULL") {
		add("binlog_row_image is "+s.RowImage+" on the source, and has to be FULL", s.howToSet("binlog_row_image", "FULL")+", then reconnect the applications")
	}
	if s.RowValueOpts != "" {
		add("binlog_row_value_options is "+s.RowValueOpts+" on the source, and has to be empty", s.howToSet("binlog_row_value_options", "''")+", then reconnect the applications")
	}
	if len(s.DoDB) > 0 && !slices.Contains(s.DoDB, database) {
		add("the source logs only databases "+strings.Join(s.DoDB, ", ")+" (binlog_do_db)", "add binlog_do_db="+database+" to its configuration, or take the option out")
	}
	if slices.Contains(s.IgnoreDB, database) {
		add("the source does not log database "+database+" (binlog_ignore_db)", "take the option out of its configuration")
	}
	if s.ReplicaOf && !s.LogReplicaUpdates {
		add("the source is a replica that does not log what it applies (log_replica_updates is OFF)", "switch log_replica_updates on and restart it, or use its own source")
	}
	return out
}

func (s *Source) managed() bool {
	switch s.Flavour {
	case RDS, Aurora, CloudSQL, Azure:
		return true
	}
	return false
}

func (s *Source) howToSet(name, value string) string {
	if s.managed() {
		return "set " + name + " to " + value + " in the server's parameters (" + string(s.Flavour) + ")"
	}
	return "SET PERSIST " + name + " = " + value
}

// howToLog says how the binlog is switched on, which differs by platform (CLOUD-04, CLOUD-06).
func (s *Source) howToLog() string {
	switch s.Flavour {
	case RDS:
		return "switch automated backups on (a retention above 0) for this instance"
	case Aurora:
		if s.ReadOnly {
			return "use the cluster's writer endpoint (readers write no binlog), with binlog_format = ROW in the cluster's parameter group"
		}
		return "set binlog_format = ROW in the cluster's parameter group and restart the writer"
	case CloudSQL:
		return "switch point-in-time recovery (binary logging) on for this instance"
	case Azure:
		return "switch binary logging on for this server, and use the primary and not a read replica"
	}
	return "start it with log_bin = binlog and a server_id (it is the default since 8.0; look for skip-log-bin)"
}

func (s *Source) serverIDProblems(wished uint32) []Problem {
	if wished == 0 || wished != s.ServerID && !slices.Contains(s.ServerIDs, wished) {
		return nil
	}
	owner := "another reader of the source"
	if wished == s.ServerID {
		owner = "the source itself"
	}
	return []Problem{{What: fmt.Sprintf("server_id %d is in use by %s", wished, owner), Do: "give another one"}}
}

// privilege is one that we need, why, and how to tell that it is there.
type privilege struct{ name, purpose string }

var globalPrivileges = []privilege{
	{"REPLICATION SLAVE", "to read the binlog"},
	{"REPLICATION CLIENT", "to read its position"},
	{"RELOAD", "for the brief lock of the snapshot"},
}

// privilegeProblems names everything that is missing in one problem, with the statements that give it.
func (s *Source) privilegeProblems(c *Catalog) []Problem {
	var names, reasons []string
	for _, p := range globalPrivileges {
		if s.Grants.HasGlobal(p.name) || p.name == "RELOAD" && s.Grants.HasGlobal("FLUSH_TABLES") {
			continue
		}
		names, reasons = append(names, p.name), append(reasons, p.name+" ("+p.purpose+")")
	}
	var grants []string
	if len(names) > 0 {
		grants = append(grants, "GRANT "+strings.Join(names, ", ")+" ON *.* TO "+s.Grants.Account)
	}
	if !s.Grants.HasOnDatabase("SELECT", c.Database) {
		reasons = append(reasons, "SELECT on all tables of database "+c.Database)
		grants = append(grants, "GRANT SELECT ON "+wire.Identifier(c.Database)+".* TO "+s.Grants.Account)
	}
	if len(reasons) == 0 {
		return nil
	}
	do := strings.Join(grants, "; ")
	if len(s.Grants.Roles) > 0 && (s.Grants.ActiveRoles == "NONE" || strings.Count(s.Grants.ActiveRoles, "`@`") < len(s.Grants.Roles)) {
		do += "; or, where one of its roles has them: SET DEFAULT ROLE ALL TO " + s.Grants.Account
	}
	return []Problem{{What: "account " + s.Grants.Account + " lacks " + strings.Join(reasons, ", "), Do: do}}
}

// TableProblems lists what keeps tables from being materialized. Package replica also asks for tables that a CREATE
// TABLE of the stream brings.
func TableProblems(c *Catalog) []Problem {
	var out []Problem
	byLower := map[string]string{}
	for _, t := range c.Tables {
		for _, p := range OneTableProblems(t) {
			out = append(out, Problem{What: p, Do: "leave the table out with exclude_tables, or change it"})
		}
		lower := strings.ToLower(t.Name)
		if other, ok := byLower[lower]; ok {
			out = append(out, Problem{What: fmt.Sprintf("tables %s and %s of database %s differ in letter case only", other, t.Name, c.Database),
				Do: "leave one of them out with exclude_tables"})
		}
		byLower[lower] = t.Name
	}
	return out
}

// OneTableProblems are the table's own problems and those that only its source's engine has.
func OneTableProblems(t *schema.Table) []string {
	out := t.Problems()
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Charset != "utf8mb4" {
			continue
		}
		// information_schema can't show characters beyond U+FFFF and puts a question mark in their place.
		if slices.ContainsFunc(c.Elements, func(label string) bool { return strings.Contains(label, "?") }) {
			out = append(out, fmt.Sprintf("table %s: column %s has a label with '?', which MySQL also shows for characters that it can't show; such labels are not supported yet", t.FullName(), c.Name))
		}
	}
	return out
}

// cascadeProblems refuses foreign keys whose actions the binlog does not have (DDL-24): up to 9.5, and later with
// innodb_native_foreign_keys, the rows of the child change and nothing says so.
func (s *Source) cascadeProblems(c *Catalog) []Problem {
	if !s.NativeForeignKeys {
		return nil
	}
	var out []Problem
	for _, k := range c.Cascades {
		out = append(out, Problem{
			What: fmt.Sprintf("table %s.%s: foreign key %s has %s, and MySQL %s does not log what it changes", c.Database, k.Table, k.Constraint, k.Action, s.Version),
			Do:   "leave the table out with exclude_tables, give the key the action RESTRICT, or use MySQL 9.6 or later with innodb_native_foreign_keys = OFF",
		})
	}
	return out
}

const day = 24 * 60 * 60

func (s *Source) warnings() []string {
	var out []string
	if s.ExpireSeconds > 0 && s.ExpireSeconds < day {
		out = append(out, fmt.Sprintf("the source keeps its binlog for %d s only (binlog_expire_logs_seconds); a longer pause needs a new snapshot", s.ExpireSeconds))
	}
	if s.Flavour == RDS {
		out = append(out, "Amazon RDS removes binlog files within minutes unless told otherwise: CALL mysql.rds_set_configuration('binlog retention hours', 24)")
	}
	if !s.Grants.HasGlobal("PROCESS") {
		out = append(out, "without PROCESS long statements of others can't be seen before the snapshot's brief lock, which then waits for them for up to a second at each try; nor can it be seen when two tables of the same definition change names during the snapshot")
	}
	if !s.MayRecoverXA {
		out = append(out, "without XA_RECOVER_ADMIN nobody can tell whether prepared XA transactions are open; the commit of one that was prepared before the snapshot will stop the database")
	}
	return out
}
