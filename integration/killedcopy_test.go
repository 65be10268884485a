package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// TestLockPlans forces each lock plan once, with and without GTIDs, beside writers: the copy is made so, says so for good,
// and is right (SNAP-20).
func TestLockPlans(t *testing.T) {
	for mode, args := range map[string][]string{"GTIDs": nil, "positions": positionsOnly} {
		t.Run(mode, func(t *testing.T) {
			source := mysqltest.Start(t, mysqltest.Options{Own: true, Args: args})
			b := newBank(t, source)
			b.open(8, 1)
			tm := tidemarktest.Start(t, tidemarktest.Options{})
			for _, plan := range []string{"global", "tables", "none"} {
				b.copyOnce(tm, "by_"+plan, plan, func() {})
			}
			tm.VerifyStore()
		})
	}
}

// A killedCopy is a copy of one large table and the bank that is killed again and again.
type killedCopy struct {
	rows, kills int
	// most is the part of the rows that may be read twice; 0: no bound, since the chunks of a small table are a large part
	// of it.
	most float64
}

// TestKilledCopy kills tidemark serve at random moments of a copy, in all of its phases, beside writers. It goes on where it
// was: the chunks that were finished are not read again, whatever the plan, and the status says so; in the end the rows
// are the source's (SNAP-11). `make soak` does it with 10 M rows and counts those that were read twice.
func TestKilledCopy(t *testing.T) {
	c := killedCopy{rows: 200_000, kills: 6}
	if os.Getenv("TIDEMARK_SOAK") != "" {
		c = killedCopy{rows: 10_000_000, kills: 2, most: 0.05} // chunks in flight are at most a fortieth of a table
	}
	for _, plan := range []string{"none", "global"} {
		t.Run(plan, func(t *testing.T) { c.run(t, plan) })
	}
}

func (c killedCopy) run(t *testing.T, plan string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	b := newBank(t, source)
	script(t, source.Login, b.db, fmt.Sprintf(`SET cte_max_recursion_depth=100000000, SESSION binlog_row_image = FULL; CREATE TABLE big (id BIGINT PRIMARY KEY, v VARCHAR(80), n INT);
		INSERT INTO big WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i < 100000) SELECT i, SHA2(i, 256), 0 FROM s;`))
	for n := 100_000; n < c.rows; n += 100_000 {
		source.Exec(t, b.db, fmt.Sprintf("INSERT INTO big SELECT id + %d, v, n FROM big WHERE id <= 100000", n))
	}
	source.Exec(t, b.db, "ANALYZE TABLE big")
	b.open(4, seed)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	must(t, tm.Exec(tidemarktest.CreateStatement(source.Login, b.db, "shop", "snapshot_lock = '"+plan+"'")))
	kills, breaks, twice := c.killAll(t, tm, rnd)
	b.untilReadable(tm, "shop")
	b.gate.Lock()
	defer b.gate.Unlock()
	st := tm.CatchUp(source, "shop")
	allLive(t, st)
	verifyEqual(t, tm, "shop")
	if st.Snapshot == nil || st.Snapshot.Restarts != 0 || st.Snapshot.Breaks < breaks {
		t.Errorf("after %d kills, %d of them in the copy: %+v", kills, breaks, st.Snapshot)
	}
	share := float64(twice) / float64(c.rows)
	t.Logf("%d kills, %d of them in the copy; %d rows read twice, %.1f %%", kills, breaks, twice, 100*share)
	if c.most > 0 && share > c.most {
		t.Errorf("%.1f %% of the rows were read twice, more than %.0f %%", 100*share, 100*c.most)
	}
	tm.VerifyStore()
}

// killAll kills the server at random moments until the copy is complete or it has done so often enough. breaks counts the
// kills that hit the reading of rows, twice the rows that had been read and had to be read again.
func (c killedCopy) killAll(t *testing.T, tm *tidemarktest.Server, rnd *rand.Rand) (kills, breaks int, twice uint64) {
	t.Helper()
	for ; kills < c.kills; kills++ {
		time.Sleep(time.Duration(rnd.IntN(1+c.rows/300)) * time.Millisecond)
		before := tm.Status("shop")
		if before.State == "streaming" {
			return kills, breaks, twice
		}
		tm.Kill()
		tm.VerifyStoreOffline()
		tm.Start()
		if before.Copy == nil || before.Copy.Converging || before.Copy.Chunks == 0 {
			continue
		}
		after := tm.Await("shop", "the copy goes on", func(st tidemarktest.Status) bool {
			return st.State != "snapshot" || st.Copy != nil && st.Copy.Resumed
		})
		if after.State != "snapshot" || after.Copy.Converging {
			continue
		}
		breaks++
		if after.Copy.Chunks < before.Copy.Chunks || after.Copy.RowsTakenOver == 0 {
			t.Errorf("finished chunks are gone: %+v, then %+v", before.Copy, after.Copy)
		}
		twice += before.Copy.Rows - min(before.Copy.Rows, after.Copy.RowsTakenOver)
	}
	return kills, breaks, twice
}
