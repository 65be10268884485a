package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// oldest is the first version that is carried: from the manual, MySQL 5.7, "transaction_isolation" is known from 5.7.20 on,
// and our sessions set it.
const oldest = 50720

// productProblems refuses what is no MySQL, or too old a one.
func (s *Source) productProblems() []Problem {
	if q := s.quirk(); q.refused != "" {
		return []Problem{{Code: "product", What: fmt.Sprintf("the source is %s (version %s), %s", s.Flavour, s.Version, q.refused), Do: q.instead}}
	}
	if s.VersionNumber() < oldest {
		return []Problem{{Code: "version", What: "the source is MySQL " + s.Version + "; versions before 5.7.20 are not supported", Do: "upgrade the source"}}
	}
	return nil
}

func (s *Source) binlogProblems(database string) []Problem {
	if !s.LogBin {
		return []Problem{problem("log_bin", "the source writes no binlog (log_bin is OFF)", s.quirk().logOff(s))}
	}
	if s.Reader && !s.quirk().readersLog {
		return []Problem{problem("log_bin", "the source is a reader, which writes no binlog", s.quirk().logOff(s))}
	}
	var out []Problem
	if s.Status != "" && s.Position.IsZero() { // CLOUD-04
		out = append(out, Problem{Code: "log_bin", What: "the source says log_bin = ON and has no binlog file yet",
			Do: "wait some minutes: a binlog that was just switched on shows before its first file is there; else: " + s.quirk().logOff(s).do})
	}
	out = append(out, s.formatProblems()...)
	return slices.Concat(out, s.filterProblems(database), s.upstreamProblems())
}

// formatProblems checks that rows are logged, and not statements. What of the rows is logged (binlog_row_image,
// binlog_row_value_options) does not matter.
func (s *Source) formatProblems() []Problem {
	if strings.EqualFold(s.BinlogFormat, "ROW") {
		return nil
	}
	r := s.quirk().setting(s, "binlog_format", "ROW")
	if r.do != "" {
		r.do += ", and "
	}
	r.do += "let the applications connect anew afterwards, as sessions keep what they began with"
	return []Problem{problem("binlog_format", fmt.Sprintf("binlog_format is %s on the source, and has to be ROW", s.BinlogFormat), r)}
}

// filterProblems refuses a database that the server keeps out of its log (PROTO-23).
func (s *Source) filterProblems(database string) []Problem {
	var out []Problem
	if len(s.DoDB) > 0 && !slices.Contains(s.DoDB, database) {
		out = append(out, Problem{Code: "binlog_do_db", What: "the source logs only databases " + strings.Join(s.DoDB, ", ") + " (binlog_do_db)",
			Do: "add binlog_do_db=" + database + " to its configuration, or take the option out, and restart it"})
	}
	if slices.Contains(s.IgnoreDB, database) {
		out = append(out, Problem{Code: "binlog_ignore_db", What: "the source does not log database " + database + " (binlog_ignore_db)",
			Do: "take the option out of its configuration and restart it"})
	}
	return out
}

// upstreamProblems refuses a server that applies what others wrote and does not log it (PROTO-21).
func (s *Source) upstreamProblems() []Problem {
	if s.LogReplicaUpdates || !s.ReplicaOf && s.Cluster == "" {
		return nil
	}
	what := "the source is a replica that does not log what it applies (log_replica_updates is OFF)"
	if s.Cluster != "" {
		what = "the source is a member of a cluster (" + s.Cluster + ") and does not log what other members wrote (log_replica_updates is OFF)"
	}
	return []Problem{{Code: "log_replica_updates", What: what, Do: "start it with log_replica_updates=ON (before 8.0.26: log_slave_updates=ON), or use its own source"}}
}

func (s *Source) serverIDProblems(wished uint32) []Problem {
	if wished == 0 || wished != s.ServerID && !slices.Contains(s.ServerIDs, wished) {
		return nil
	}
	owner := "another reader of the source"
	if wished == s.ServerID {
		owner = "the source itself"
	}
	return []Problem{{Code: "server_id", What: fmt.Sprintf("server_id %d is in use by %s", wished, owner), Do: "give another one"}}
}

// privilege is one that we need and why. What the lock plans need is their own affair.
type privilege struct{ name, purpose string }

var globalPrivileges = []privilege{
	{"REPLICATION SLAVE", "to read the binlog"},
	{"REPLICATION CLIENT", "to read its position"},
}

// privilegeProblems names everything that is missing in one problem, with the statements that give it.
func (s *Source) privilegeProblems(c *Catalog) []Problem {
	var names, reasons, grants []string
	for _, p := range globalPrivileges {
		if !s.Grants.HasGlobal(p.name) {
			names, reasons = append(names, p.name), append(reasons, p.name+" ("+p.purpose+")")
		}
	}
	if len(names) > 0 {
		grants = append(grants, s.grant(names, "*.*"))
	}
	if !s.Grants.HasOnDatabase("SELECT", c.Database) {
		reasons = append(reasons, "SELECT on all tables of database "+c.Database)
		grants = append(grants, s.grant([]string{"SELECT"}, allTables(c.Database)))
	}
	if len(reasons) == 0 {
		return nil
	}
	return []Problem{{Code: "privileges", What: "account " + s.Grants.Account + " lacks " + strings.Join(reasons, ", "), Statements: grants}}
}

// TableProblems lists what keeps tables from being materialized. Package replica also asks for tables that a CREATE
// TABLE of the stream brings.
func TableProblems(c *Catalog) []Problem {
	var out []Problem
	byLower := map[string]string{}
	for _, t := range c.Tables {
		for _, p := range OneTableProblems(t) {
			out = append(out, tableProblem(t, p))
		}
		lower := strings.ToLower(t.Name)
		if other, ok := byLower[lower]; ok {
			out = append(out, Problem{Code: "table_names", Table: t.Name, What: fmt.Sprintf("tables %s and %s of database %s differ in letter case only", other, t.Name, c.Database),
				Do: "leave one of them out with exclude_tables"})
		}
		byLower[lower] = t.Name
	}
	return out
}

func tableProblem(t *schema.Table, what string) Problem {
	p := Problem{Code: "table", Table: t.Name, What: what, Do: "leave the table out with exclude_tables, or change it"}
	if t.Engine != "" && !strings.EqualFold(t.Engine, "InnoDB") { // SNAP-09
		p.Statements = []string{"ALTER TABLE " + wire.Identifier(t.Database) + "." + wire.Identifier(t.Name) + " ENGINE = InnoDB"}
	}
	return p
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
		out = append(out, Problem{Code: "foreign_key", Table: k.Table,
			What: fmt.Sprintf("table %s.%s: foreign key %s has %s, and MySQL %s does not log what it changes", c.Database, k.Table, k.Constraint, k.Action, s.Version),
			Do:   "leave the table out with exclude_tables, give the key the action RESTRICT, or use MySQL 9.6 or later with innodb_native_foreign_keys = OFF",
		})
	}
	return out
}
