package compat

import (
	"fmt"
	"strings"
)

// warnings are what works now and may stop working, or may not be what is meant.
func (s *Source) warnings(lock LockPlan) []Problem {
	var out []Problem
	add := func(code, what, do string, statements ...string) {
		out = append(out, Problem{Code: code, What: what, Do: do, Statements: statements})
	}
	if s.LogBin {
		out = append(out, s.retentionWarnings()...)
	}
	if !s.Grants.HasGlobal("PROCESS") {
		what := "without PROCESS it can't be seen when two tables of the same definition change names during a copy"
		if lock == LockGlobal {
			what += ", nor long statements of others before the copy's brief lock, which then waits for them for up to a second at each try"
		}
		add("process", what, "", s.grant([]string{"PROCESS"}, "*.*"))
	}
	if !s.MayRecoverXA {
		add("xa_recover", "without XA_RECOVER_ADMIN nobody can tell whether prepared XA transactions are open; the commit of one that was prepared before the snapshot will stop the database",
			"", s.grant([]string{"XA_RECOVER_ADMIN"}, "*.*"))
	}
	if s.LogBin && (s.SyncBinlog != 1 || s.FlushAtCommit != 1) {
		out = append(out, problem("sync_binlog", fmt.Sprintf("sync_binlog is %d and innodb_flush_log_at_trx_commit %d: if the source's machine crashes, it may lose transactions that were read from it, which stops the database as rewound",
			s.SyncBinlog, s.FlushAtCommit), s.both("sync_binlog", "1", "innodb_flush_log_at_trx_commit", "1")))
	}
	if s.LogBin && !s.GTIDs() {
		out = append(out, problem("gtid_mode", "gtid_mode is "+s.GTIDMode+": the source is followed by file and position, which end with a fail-over to another server",
			s.switchGTIDs().or("where that matters, switch GTIDs on before the copy, and wait between the steps until Ongoing_anonymous_transaction_count is 0")))
	}
	return append(append(out, s.replicaWarnings()...), s.sessionWarnings()...)
}

func (s *Source) retentionWarnings() []Problem {
	r := s.Retention
	var out []Problem
	remedy := s.quirk().keepLogs(s)
	switch {
	case !r.Known():
		out = append(out, problem("binlog_retention", "it can't be seen for how long the source keeps its binlogs (the account may not read mysql.rds_configuration); unless told otherwise, "+
			string(s.Flavour)+" removes them within minutes", remedy.or("let the account see it (GRANT SELECT ON mysql.rds_configuration TO "+s.Grants.Account+"), or be sure of")))
	case r.Forever, r.Keep >= day:
	case r.Keep == 0:
		out = append(out, problem("binlog_retention", "the source removes binlog files as soon as it does not need them ("+r.Setting+"); any pause may need a new copy", remedy))
	default:
		out = append(out, problem("binlog_retention", fmt.Sprintf("the source keeps its binlog for %s only (%s); a longer pause needs a new copy", r.Keep, r.Setting), remedy))
	}
	if r.Limit != "" {
		out = append(out, Problem{Code: "binlog_limit", What: "the source also removes binlog files by " + r.Limit + ", whatever their age", Do: "make sure that this holds a day's changes"})
	}
	return out
}

// replicaWarnings are about a source that is a replica itself (PROTO-21). What it applies is in its log as it applied it, so
// that the copy equals the replica.
func (s *Source) replicaWarnings() []Problem {
	var out []Problem
	if len(s.ReplicaFilters) > 0 {
		out = append(out, Problem{Code: "replica_filter", What: "the source is a replica that applies only a part of what its own source has (" + strings.Join(s.ReplicaFilters, "; ") + "); the copy has what the replica has"})
	}
	if s.ReplicaOf && !s.PreservesOrder {
		out = append(out, Problem{Code: "replica_order", What: "the source is a replica that commits in another order than its own source (replica_preserve_commit_order is OFF); the copy passes through the states of the replica, which its source never had",
			Do: "to see the states of the source only", Statements: s.quirk().setting(s, "replica_preserve_commit_order", "ON").statements})
	}
	return out
}

func (s *Source) sessionWarnings() []Problem {
	var out []Problem
	if s.TLS.Offered && !s.TLS.Used && !isLoopback(s.Addr) {
		out = append(out, Problem{Code: "tls", What: "the connection to the source is not encrypted, though the source offers it"})
	}
	if strings.EqualFold(s.TimeZone, "SYSTEM") && ambiguousZone(s.SystemTimeZone) {
		p := problem("time_zone", fmt.Sprintf("the source calls its time zone %s, which does not tell when summer begins; sessions here show TIMESTAMP columns with its present offset, %s, unless they set time_zone",
			s.SystemTimeZone, offset(s.UTCOffset)), s.quirk().setting(s, "time_zone", "'Europe/Berlin'"))
		p.Do = strings.TrimPrefix(p.Do+"; give the zone by its name, as in", "; ")
		out = append(out, p)
	}
	return out
}
