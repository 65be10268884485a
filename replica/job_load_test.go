package replica

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// bank is two tables between which amounts move, so that their sum is the same at every point in time.
type bank struct {
	f    *fixture
	rows int
	done atomic.Bool
	all  sync.WaitGroup
}

const opening = 1000 // of each row

func openBank(f *fixture, rows int) *bank {
	f.exec("CREATE TABLE accounts (id INT PRIMARY KEY, n INT NOT NULL, note VARCHAR(100))", "CREATE TABLE pots (name VARCHAR(40) PRIMARY KEY, n INT NOT NULL, id INT NOT NULL) COLLATE utf8mb4_0900_ai_ci",
		"CREATE TABLE ticks (id INT AUTO_INCREMENT PRIMARY KEY, t INT)", "SET cte_max_recursion_depth = 1000000")
	db := f.source.DB(f.t, f.db)
	for from := 0; from < rows; from += 500 {
		var a, p []string
		for i := from; i < min(from+500, rows); i++ {
			a = append(a, fmt.Sprintf("(%d, %d, REPEAT('x', 50))", i, opening))
			p = append(p, fmt.Sprintf("('Pot %d', %d, %d)", i, opening, i))
		}
		_, err := db.Exec("INSERT INTO accounts VALUES " + strings.Join(a, ","))
		require.NoError(f.t, err)
		_, err = db.Exec("INSERT INTO pots VALUES " + strings.Join(p, ","))
		require.NoError(f.t, err)
	}
	return &bank{f: f, rows: rows}
}

// trade lets writers move amounts, rows and keys until close.
func (b *bank) trade(writers int) {
	db := b.f.source.DB(b.f.t, b.f.db)
	for range writers {
		b.all.Go(func() {
			for !b.done.Load() {
				_ = b.move(db) // deadlocks and such: the next one
			}
		})
	}
}

func (b *bank) move(db *sql.DB) error {
	ctx := context.Background()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	from, to, k := rand.IntN(b.rows), rand.IntN(b.rows), rand.IntN(10)
	for _, s := range []string{
		fmt.Sprintf("UPDATE accounts SET n = n - %d WHERE id = %d", k, from),
		fmt.Sprintf("UPDATE pots SET n = n + %d, name = IF(RAND() < 0.5, UPPER(name), LOWER(name)) WHERE id = %d", k, to),
		fmt.Sprintf("DELETE FROM accounts WHERE id = %d AND %d = 7", to, k),
		fmt.Sprintf("INSERT INTO accounts SELECT %d, %d - COALESCE((SELECT SUM(n) FROM accounts), 0) - (SELECT SUM(n) FROM pots), 'again' FROM DUAL WHERE %d = 7", to, 2*b.rows*opening, k),
		fmt.Sprintf("INSERT INTO ticks (t) VALUES (%d)", k),
	} {
		if strings.HasPrefix(s, "DELETE") && k == 7 { // nobody else may move anything between the sum and its commit
			if _, err := tx.ExecContext(ctx, "SELECT n FROM accounts FOR UPDATE"); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "SELECT n FROM pots FOR UPDATE"); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (b *bank) close() {
	b.done.Store(true)
	b.all.Wait()
}

// audit gives the sum and the number of rows of both tables at one point, and the rows of ticks there.
func (f *fixture) audit() (sum int64, rows, ticks int64) {
	f.t.Helper()
	info, err := f.store.Database("shop")
	require.NoError(f.t, err)
	v, err := f.store.Pin(info.ID)
	require.NoError(f.t, err)
	defer v.Release()
	for _, t := range v.Tables(info.ID) {
		require.Equal(f.t, storage.Live, t.State, "%s: %s", t.Def.Name, t.Reason)
		if t.Def.Name == "ticks" {
			ticks = t.Rows
			continue
		}
		err := v.Scan(f.t.Context(), t.ID, func(b *column.Batch, dead uniquekey.Bitset) error {
			n := b.Record.Column(1).(*array.Int32)
			for i := range b.Rows() {
				if !dead.Has(uint32(i)) {
					sum += int64(n.Value(i))
					rows++
				}
			}
			return nil
		})
		require.NoError(f.t, err)
	}
	return sum, rows, ticks
}

// OPS-04: new copies of tables that change all the time. Whoever reads sees the one copy or the other, never a mixture, and
// both tables at one point; the table that is not copied goes on; a restart goes on where the copy was.
func TestResyncUnderLoad(t *testing.T) {
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := automatic(t, args...)
			f.exec("DROP TABLE a, b")
			b := openBank(f, 3000)
			f.caughtUp()
			b.trade(4)
			defer b.close()
			_, _, last := f.audit()
			for round := range 4 {
				require.NoError(t, f.manager.Resync(t.Context(), "shop", "accounts"))
				require.NoError(t, f.manager.Resync(t.Context(), "shop", "pots"))
				restarts := round % 2 * 4
				for deadline := time.Now().Add(time.Minute); ; {
					sum, rows, ticks := f.audit()
					require.EqualValues(t, 2*b.rows*opening, sum)
					require.EqualValues(t, 2*b.rows, rows)
					require.GreaterOrEqual(t, ticks, last)
					last = ticks
					if f.table("accounts").Resync == nil && f.table("pots").Resync == nil {
						break
					}
					require.True(t, time.Now().Before(deadline), "%+v %+v", f.table("accounts").Resync, f.table("pots").Resync)
					if restarts > 0 && rand.IntN(20) == 0 {
						restarts--
						f.restart()
					}
				}
			}
			b.close()
			f.caughtUp()
			f.equal("accounts", "pots", "ticks")
			f.settled()
		})
	}
}
