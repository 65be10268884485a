package clouds

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// Kind is a kind of account, and what the server looks like to it.
type Kind string

// The kinds of accounts with which everything must work.
const (
	// All is the test server's own account, which may do everything.
	All Kind = "all"
	// RDSLike sees Amazon RDS: no SUPER, RELOAD in SHOW GRANTS but FLUSH TABLES WITH READ LOCK refused, LOCK TABLES allowed.
	RDSLike Kind = "rds"
	// Least has SELECT, REPLICATION SLAVE and REPLICATION CLIENT, and nothing else.
	Least Kind = "least"
	// CloudSQLLike sees Cloud SQL: privileges through a role, the global lock refused.
	CloudSQLLike Kind = "cloudsql"
)

// Kinds lists them all.
var Kinds = []Kind{All, RDSLike, Least, CloudSQLLike}

// Login gives an account of a kind on a server, through a proxy where one is needed. It ends with the test.
func Login(tb testing.TB, s *mysqltest.Server, kind Kind) mysqltest.Login {
	tb.Helper()
	switch kind {
	case All:
		return s.Login
	case RDSLike:
		return RDS(tb, s)
	case Least:
		return Account(tb, s, "SELECT, REPLICATION SLAVE, REPLICATION CLIENT")
	case CloudSQLLike:
		return CloudSQL(tb, s)
	}
	tb.Fatalf("clouds: no kind of account is called %q; there are %q", kind, Kinds)
	return mysqltest.Login{}
}

var numbers atomic.Int64

// password has what a password policy asks for.
const password = "Cloud-Secret-1"

// Account creates an account with privileges on *.* and drops it with the test.
func Account(tb testing.TB, s *mysqltest.Server, privileges string) mysqltest.Login {
	tb.Helper()
	l := bare(tb, s)
	s.Exec(tb, "", "GRANT "+privileges+" ON *.* TO '"+l.User+"'@'%'")
	return l
}

// bare creates an account that may do nothing.
func bare(tb testing.TB, s *mysqltest.Server) mysqltest.Login {
	tb.Helper()
	l := s.Login
	l.User, l.Password = fmt.Sprintf("cloud_%d", numbers.Add(1)), password
	s.Exec(tb, "", "CREATE USER '"+l.User+"'@'%' IDENTIFIED BY '"+password+"'")
	tb.Cleanup(func() { drop(tb, s, "USER '"+l.User+"'@'%'") })
	return l
}

// drop takes something away, unless the server has ended meanwhile.
func drop(tb testing.TB, s *mysqltest.Server, what ...string) {
	tb.Helper()
	db, err := s.Open("")
	if err != nil {
		tb.Error(err)
		return
	}
	defer db.Close()
	if db.Ping() != nil {
		return
	}
	for _, w := range what {
		if _, err := db.Exec("DROP " + w); err != nil && !strings.Contains(err.Error(), "doesn't exist") {
			tb.Errorf("DROP %s: %v", w, err)
		}
	}
}
