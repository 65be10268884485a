package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// snapshots is how many copies each mode of TestCopiesWithoutLock takes in `make test`; `make soak` takes those in
// TIDEMARK_SNAPSHOTS.
func snapshots(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TIDEMARK_SNAPSHOTS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// positionsOnly are the options of a source without GTIDs.
var positionsOnly = []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}

// TestCopiesWithoutLock takes copy after copy of accounts between which 64 writers move amounts, on a source that syncs its
// binlog at every commit. Each copy refuses every query until all of its tables stand at one point; from then on the sum is
// constant in every query, and the rows are the source's (SNAP-01, SNAP-04, SNAP-20, QUERY-14).
func TestCopiesWithoutLock(t *testing.T) {
	for mode, args := range map[string][]string{"GTIDs": nil, "positions": positionsOnly} {
		t.Run(mode, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			source := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true, Args: append([]string{"--sync-binlog=1", "--max-connections=200"}, args...)})
			b := newBank(t, source)
			b.open(64, seed)
			tm := tidemarktest.Start(t, tidemarktest.Options{})
			for n := range snapshots(t) {
				b.copyOnce(tm, fmt.Sprintf("copy%d", n), "none", func() {
					time.Sleep(time.Duration(rnd.IntN(600)) * time.Millisecond)
					b.alter(n)
				})
				if t.Failed() {
					t.Fatalf("copy %d", n)
				}
			}
			tm.VerifyStore()
			t.Logf("%d transfers", b.made.Load())
		})
	}
}

// alter changes the definition of a table, back and forth.
func (b *bank) alter(n int) {
	statement := "ALTER TABLE grid ADD COLUMN extra INT NOT NULL DEFAULT 5"
	if n%2 == 1 {
		statement = "ALTER TABLE grid DROP COLUMN extra"
	}
	b.source.Exec(b.t, b.db, statement)
}

// copyOnce copies the database under a name, compares it with its source, and drops it. meanwhile happens during the copy.
func (b *bank) copyOnce(tm *tidemarktest.Server, name, plan string, meanwhile func()) {
	b.t.Helper()
	must(b.t, tm.Exec(tidemarktest.CreateStatement(b.source.Login, b.db, name, "snapshot_lock = '"+plan+"'")))
	done := make(chan struct{})
	go func() {
		defer close(done)
		meanwhile()
	}()
	b.untilReadable(tm, name)
	b.gate.Lock() // nobody changes anything now
	tm.CatchUp(b.source, name)
	b.constant(tm, name)
	verifyEqual(b.t, tm, name)
	st := tm.Status(name)
	b.gate.Unlock()
	<-done
	allLive(b.t, st)
	if st.Snapshot == nil || st.Snapshot.Lock != plan || st.Snapshot.Exact != (plan != "none") {
		b.t.Errorf("the copy was made so: %+v", st.Snapshot)
	}
	must(b.t, tm.Exec("DROP DATABASE "+name))
}

// codeNotReadable is the error of a database whose first copy is not complete.
const codeNotReadable = 3168

// untilReadable asks for the sum until there is an answer, and then a few times more.
func (b *bank) untilReadable(tm *tidemarktest.Server, name string) {
	b.t.Helper()
	db := tm.DB("")
	use := strings.ReplaceAll(bankSum, "FROM ", "FROM "+name+".")
	refusals, texts := 0, map[string]bool{}
	for deadline := time.Now().Add(5 * time.Minute); ; refusals++ {
		var sum string
		err := db.QueryRowContext(b.t.Context(), use).Scan(&sum)
		var refused *mysql.MySQLError
		if err == nil {
			if sum != b.total() {
				b.t.Errorf("the first answer of %s is %s instead of %s", name, sum, b.total())
			}
			break
		}
		if !errors.As(err, &refused) || refused.Number != codeNotReadable || !strings.Contains(refused.Message, name) {
			b.t.Errorf("a database that is not readable yet answers: %v", err)
		}
		texts[refused.Message] = true
		if st := tm.Status(name); st.State == "error" || time.Now().After(deadline) {
			b.t.Fatalf("it does not get readable: %s\n%.3000s", st, tm.Log())
		}
	}
	b.t.Logf("%s: readable after %d refusals (%d texts)", name, refusals, len(texts))
	for range 5 {
		b.constant(tm, name)
	}
}

// constant asks for the sum.
func (b *bank) constant(tm *tidemarktest.Server, name string) {
	b.t.Helper()
	if got := value(b.t, tm.Login, "%s", strings.ReplaceAll(bankSum, "FROM ", "FROM "+name+".")); got != b.total() {
		b.t.Errorf("the sum of %s is %s instead of %s", name, got, b.total())
	}
}
