package replay

import (
	"strings"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/replay/ddl"
)

// statementOf hands a statement of the binlog to package ddl.
func statementOf(s *binlog.Statement) ddl.Statement {
	return ddl.Statement{SQL: s.SQL, Database: s.Database, SQLMode: s.SQLMode, Client: s.CharsetClient, ServerCollation: s.CollationServer,
		UTF8MB4Collation: s.DefaultCollationUTF8MB4, Time: s.Time, TimeZone: s.TimeZone, ExplicitDefaults: s.ExplicitDefaults, ErrorCode: s.ErrorCode}
}

// undone tells which events of a transaction were rolled back, by their number. It is nil if none was. The source logs
// what was rolled back only if a table without transactions was changed, too.
func undone(tx *binlog.Transaction) (map[int]bool, error) {
	if tx.Kind != binlog.RolledBack && tx.StatementCount == 0 {
		return nil, nil
	}
	out := map[int]bool{}
	savepoints := map[string]int{}
	n := 0
	for e, err := range tx.Events() {
		if err != nil {
			return nil, err
		}
		if tx.Kind == binlog.RolledBack {
			out[n] = true
		}
		if s, ok := e.(*binlog.Statement); ok {
			name := savepointName(s.SQL)
			from, known := savepoints[name]
			switch {
			case s.Kind == binlog.StatementSavepoint:
				savepoints[name] = n
			case s.Kind == binlog.StatementRollbackTo && known:
				for i := from; i < n; i++ {
					out[i] = true
				}
			}
		}
		n++
	}
	return out, nil
}

// savepointName gives the name in SAVEPOINT `x` and ROLLBACK TO `x`, as the server writes them.
func savepointName(sql string) string {
	for _, words := range []string{"SAVEPOINT ", "ROLLBACK TO "} {
		if len(sql) > len(words) && strings.EqualFold(sql[:len(words)], words) {
			return strings.ToLower(strings.TrimSpace(sql[len(words):]))
		}
	}
	return ""
}
