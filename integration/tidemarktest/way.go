package tidemarktest

import (
	"os"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/clouds"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// The environment lets the same tests run in other ways: with an account on the source that may do less (one of
// clouds.Kinds), and with a lock plan forced.
const (
	envAccount = "TIDEMARK_TEST_ACCOUNT"
	envLock    = "TIDEMARK_TEST_SNAPSHOT_LOCK"
)

// Way is how databases reach their sources and are copied in this run.
type Way struct {
	Account clouds.Kind
	Lock    string // a value of the setting snapshot_lock
}

// Chosen is the way of this run.
func Chosen() Way {
	w := Way{Account: clouds.All, Lock: "auto"}
	if kind := os.Getenv(envAccount); kind != "" {
		w.Account = clouds.Kind(kind)
	}
	if plan := os.Getenv(envLock); plan != "" {
		w.Lock = plan
	}
	return w
}

// Account gives the account of this run's way on a source, for tests that need it before Create makes one.
func Account(tb testing.TB, source mysqltest.Login) mysqltest.Login {
	tb.Helper()
	return Chosen().login(tb, source)
}

// login gives the account for Tidemark on a source that a test has the root account of.
func (w Way) login(tb testing.TB, source mysqltest.Login) mysqltest.Login {
	tb.Helper()
	if w.Account == clouds.All || source.User != "root" {
		return source
	}
	return clouds.Login(tb, &mysqltest.Server{Login: source}, w.Account)
}

// settings adds the lock plan, unless the test has its own.
func (w Way) settings(source mysqltest.Login, own []string) []string {
	for _, s := range own {
		if strings.HasPrefix(s, "snapshot_lock") {
			return own
		}
	}
	if w.Lock == "auto" || source.User != "root" { // an account of the test's own may not be allowed to
		return own
	}
	return append([]string{"snapshot_lock = '" + w.Lock + "'"}, own...)
}
