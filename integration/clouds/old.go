package clouds

import (
	"regexp"
	"strings"
)

var (
	noSuchStatement = Error{1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '' at line 1"}
	integerType     = regexp.MustCompile(`^(tinyint|smallint|mediumint|int|bigint)( |$)`)
	widths          = map[string]string{"tinyint": "(4)", "smallint": "(6)", "mediumint": "(9)", "int": "(11)", "bigint": "(20)"}
)

// MySQL57 gives the rules of a 5.7 server, from the manual of MySQL 5.7: the statements that it does not know yet and those
// that only it knows, and how its information_schema shows a definition. What its binlog looks like is not imitated.
func MySQL57() []Rule {
	return []Rule{
		Variables(map[string]string{"version": "5.7.44-log", "version_comment": "MySQL Community Server (GPL)", "log_slave_updates": "ON", "expire_logs_days": "10", "have_ssl": "DISABLED"},
			"log_replica_updates", "binlog_expire_logs_seconds", "binlog_expire_logs_auto_purge", "binlog_row_value_options", "binlog_row_metadata", "innodb_native_foreign_keys",
			"replica_parallel_workers", "replica_preserve_commit_order"),
		Refuse(`^\s*SHOW\s+(BINARY\s+LOG\s+STATUS|REPLICAS|REPLICA\s+STATUS)`, noSuchStatement),
		Instead(`^\s*SHOW\s+MASTER\s+STATUS`, "SHOW BINARY LOG STATUS"),
		Instead(`^\s*SHOW\s+SLAVE\s+HOSTS`, "SHOW REPLICAS"),
		Instead(`^\s*SHOW\s+SLAVE\s+STATUS`, "SHOW REPLICA STATUS"),
		Refuse(`SET\s+ROLE`, noSuchStatement),
		Refuse(`SET\s+SESSION\s+(show_gipk|information_schema_stats)`, Error{1193, "HY000", "Unknown system variable"}),
		Refuse(`SELECT.*\b(IS_VISIBLE|EXPRESSION)\b.*FROM\s+information_schema\.STATISTICS`, Error{1054, "42S22", "Unknown column 'IS_VISIBLE' in 'field list'"}),
		Refuse(`information_schema\.INNODB_TABLES`, Error{1109, "42S02", "Unknown table 'INNODB_TABLES' in information_schema"}),
		{Statement: statement(`information_schema\.INNODB_SYS_TABLES`), Run: func(s string) string { return strings.ReplaceAll(s, "INNODB_SYS_TABLES", "INNODB_TABLES") }},
		{Statement: statement(`FROM\s+information_schema\.COLUMNS`), Edit: oldColumns},
	}
}

// oldColumns shows widths of integers, the old name of utf8mb3, and no sign that a default is an expression.
func oldColumns(_ string, r *Rows) {
	for _, row := range r.Cells {
		each(row, r.Column("COLUMN_TYPE"), func(v string) string {
			return integerType.ReplaceAllStringFunc(v, func(m string) string {
				name := strings.TrimSpace(m)
				return name + widths[name] + strings.TrimPrefix(m, name)
			})
		})
		each(row, r.Column("EXTRA"), func(v string) string { return strings.TrimPrefix(strings.TrimPrefix(v, "DEFAULT_GENERATED"), " ") })
		each(row, r.Column("CHARACTER_SET_NAME"), func(v string) string { return strings.Replace(v, "utf8mb3", "utf8", 1) })
		each(row, r.Column("COLLATION_NAME"), func(v string) string { return strings.Replace(v, "utf8mb3_", "utf8_", 1) })
	}
}

func each(row []*string, column int, change func(string) string) {
	if column < 0 || row[column] == nil {
		return
	}
	changed := change(*row[column])
	row[column] = &changed
}
