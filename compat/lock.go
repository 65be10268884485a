package compat

import (
	"fmt"
	"strings"
)

// lockChoice is whether a lock plan may be taken, and why or why not.
type lockChoice struct {
	plan    LockPlan
	allowed bool
	reason  string
	// do and statements say how it could be had.
	do         string
	statements []string
}

// lockChoices lists the plans from the strongest to the weakest.
func (s *Source) lockChoices(c *Catalog) []lockChoice {
	return []lockChoice{s.globalChoice(), s.tablesChoice(c), s.noneChoice()}
}

func (s *Source) mayReload() bool {
	return s.Grants.HasGlobal("RELOAD") || s.Grants.HasGlobal("FLUSH_TABLES")
}

func (s *Source) globalChoice() lockChoice {
	l := lockChoice{plan: LockGlobal}
	switch {
	case !s.mayReload():
		l.reason = "the account has neither RELOAD nor FLUSH_TABLES, which FLUSH TABLES WITH READ LOCK needs"
		l.statements = []string{s.grant([]string{"RELOAD"}, "*.*")}
	case s.Locking.Refused():
		l.reason = fmt.Sprintf("%s refuses FLUSH TABLES WITH READ LOCK although RELOAD is granted (%v); the password is not the matter", s.Flavour, s.Locking.Err)
		l.do = "there is nothing to grant; take another lock plan"
	default:
		l.allowed = true
		l.reason = "FLUSH TABLES WITH READ LOCK is allowed: all tables are copied at one point, under a lock of some milliseconds"
		if s.quirk().blindLock && !s.Locking.Tried {
			l.reason += fmt.Sprintf(" (%s often refuses it; it was not tried, for %s; if it is refused, the next plan is taken)", s.Flavour, s.Locking.Reason)
		}
	}
	return l
}

func (s *Source) tablesChoice(c *Catalog) lockChoice {
	l := lockChoice{plan: LockTables}
	switch {
	case s.StrictCluster:
		l.reason = "this Galera member refuses LOCK TABLES (pxc_strict_mode)"
		l.do = "take another lock plan"
	case !s.mayLockTables(c):
		l.reason = "the account lacks LOCK TABLES on database " + c.Database
		l.statements = []string{s.grant([]string{"LOCK TABLES"}, allTables(c.Database))}
	default:
		l.allowed = true
		l.reason = "LOCK TABLES is allowed: all tables are copied at one point, under read locks on them alone, held until the read views are open"
	}
	return l
}

func (s *Source) mayLockTables(c *Catalog) bool {
	return !s.StrictCluster && s.Grants.HasOnDatabase("LOCK TABLES", c.Database) && s.Grants.HasOnDatabase("SELECT", c.Database)
}

func (s *Source) noneChoice() lockChoice {
	l := lockChoice{plan: LockNone}
	if why := s.orderProblem(); why != "" {
		l.reason = "a copy without a lock is not safe here: " + why
		l.do = "grant LOCK TABLES, or switch aurora_enhanced_binlog off"
		return l
	}
	l.allowed = true
	l.reason = "no lock is taken: each table has its own window of the binlog, and the database becomes readable when the stream has passed them all"
	return l
}

// chooseLock fills in the lock part of a plan. A wish that can't be had is a problem, never a weaker plan (SNAP-20).
func (p *Plan) chooseLock(choices []lockChoice, wish LockPlan) []Problem {
	for _, l := range choices {
		switch {
		case wish != LockAuto && wish != "":
			if l.plan != wish {
				continue
			}
			p.Lock, p.Reasons = wish, []string{fmt.Sprintf("snapshot_lock = %s was asked for", wish), l.reason}
			if l.allowed {
				return nil
			}
			return []Problem{{Code: "snapshot_lock", What: fmt.Sprintf("snapshot_lock = %s was asked for, and can't be had: %s", wish, l.reason), Do: l.do, Statements: l.statements}}
		case !l.allowed && p.Lock == "":
			p.Reasons = append(p.Reasons, "not "+string(l.plan)+": "+l.reason)
		case l.allowed && p.Lock == "":
			p.Lock, p.Reasons = l.plan, append(p.Reasons, string(l.plan)+": "+l.reason)
		case l.allowed:
			p.Weaker = append(p.Weaker, l.plan)
		}
	}
	if p.Lock != "" {
		return nil
	}
	var reasons []string
	for _, l := range choices {
		reasons = append(reasons, l.reason)
	}
	last := choices[len(choices)-1]
	return []Problem{{Code: "snapshot_lock", What: "there is no way to make a consistent copy: " + strings.Join(reasons, "; "), Do: last.do, Statements: choices[1].statements}}
}
