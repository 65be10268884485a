package compat

import (
	"fmt"
	"slices"
	"strings"
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
	Warnings []Problem
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

// NewPlan decides how the source is copied and followed, as a pure function. It says what it would do even where problems
// keep it from being done; only without problems may it be carried out.
func NewPlan(s *Source, c *Catalog, w Wishes) (*Plan, []Problem) {
	plan := &Plan{Database: c.Database, Filter: w.Filter, GTIDs: s.GTIDs(), Status: s.Status, AskXA: s.MayRecoverXA,
		Process: s.Grants.HasGlobal("PROCESS"), MayLockTables: s.mayLockTables(c), Catalog: c}
	for _, t := range c.Tables {
		if t.Multiset() {
			plan.NeedExact = append(plan.NeedExact, t.Name)
		}
	}
	if problems := s.productProblems(); len(problems) > 0 {
		return plan, problems
	}
	lock := plan.chooseLock(s.lockChoices(c), w.Lock)
	problems := slices.Concat(s.binlogProblems(c.Database), s.serverIDProblems(w.ServerID), s.privilegeProblems(c), s.dumpProblem(), lock,
		TableProblems(c), s.cascadeProblems(c))
	plan.Warnings = slices.Concat(s.warnings(plan.Lock), plan.exactWarnings(s))
	return plan, problems
}

// exactWarnings names tables without a key where no lock is to be had for them: a bracket (design, section 4) succeeds only
// while nobody writes to the table.
func (p *Plan) exactWarnings(s *Source) []Problem {
	if p.Lock != LockNone || p.MayLockTables {
		return nil
	}
	var out []Problem
	for _, name := range p.NeedExact {
		out = append(out, Problem{Code: "no_key", Table: name,
			What: fmt.Sprintf("table %s.%s has no key, so that its copy must stand at one point; without a lock that succeeds only if nobody writes to it during its copy", p.Database, name),
			Do:   "give it a primary key, or let the account lock it", Statements: []string{s.grant([]string{"LOCK TABLES"}, allTables(p.Database))}})
	}
	return out
}
