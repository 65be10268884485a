package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// bank is a database in which writers move amounts between accounts in several tables, so that the sum over all of them
// never changes: by updates, by deletes and inserts, by rows that move to other keys across the whole range, and by names
// that change their case only. One of the tables has no key.
type bank struct {
	t      *testing.T
	source *mysqltest.Server
	db     string
	pool   *sql.DB

	gate   sync.RWMutex // writers hold it for reading; whoever has it for writing sees no change
	cancel context.CancelFunc
	wg     sync.WaitGroup
	made   atomic.Int64
	slips  atomic.Int64 // when the table without a key was written to, in seconds
}

const (
	bankAccounts = 60_000 // of the large table, which is copied in several chunks
	bankNames    = 400
	bankGrid     = 300
	bankStart    = 1000 // the amount of each account
)

// bankSum asks for what never changes.
const bankSum = "SELECT (SELECT SUM(n) FROM account) + (SELECT SUM(n) FROM named) + (SELECT SUM(n) FROM grid) + (SELECT SUM(n) FROM entry) + (SELECT SUM(n) FROM slip)"

func newBank(t *testing.T, source *mysqltest.Server) *bank {
	b := &bank{t: t, source: source, db: source.FreshDatabase(t)}
	script(t, source.Login, b.db, fmt.Sprintf(`SET cte_max_recursion_depth=1000000;
		CREATE TABLE account (id INT PRIMARY KEY, n BIGINT NOT NULL, pad VARCHAR(60));
		INSERT INTO account WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i < %[1]d) SELECT i*10, %[4]d, SHA2(i, 224) FROM s;
		CREATE TABLE named (name VARCHAR(40) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, n BIGINT NOT NULL);
		INSERT INTO named WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i < %[2]d) SELECT CONCAT('Name', i), %[4]d FROM s;
		CREATE TABLE grid (x INT, y INT, n BIGINT NOT NULL, PRIMARY KEY (x, y));
		INSERT INTO grid WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i+1 FROM s WHERE i < %[3]d) SELECT i, i*7, %[4]d FROM s;
		CREATE TABLE entry (id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT NOT NULL); INSERT INTO entry (n) VALUES (0), (0);
		CREATE TABLE slip (n BIGINT NOT NULL, note VARCHAR(20)); INSERT INTO slip VALUES (0, 'a'), (0, 'a'), (0, NULL);
		ANALYZE TABLE account;`, bankAccounts, bankNames, bankGrid, bankStart))
	b.pool = source.DB(t, b.db)
	b.pool.SetMaxIdleConns(100)
	return b
}

// open lets writers work until the test ends or close is called.
func (b *bank) open(writers int, seed uint64) {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.cancel = cancel
	for i := range writers {
		b.wg.Go(func() { b.write(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	b.t.Cleanup(b.close)
}

func (b *bank) close() {
	b.cancel()
	b.wg.Wait()
}

func (b *bank) write(ctx context.Context, rnd *rand.Rand) {
	for ctx.Err() == nil {
		b.gate.RLock()
		err := b.transfer(ctx, rnd)
		b.gate.RUnlock()
		var refused *mysql.MySQLError
		switch {
		case err == nil:
			b.made.Add(1)
		case ctx.Err() != nil, errors.Is(err, errTaken), errors.As(err, &refused): // deadlocks, keys that are taken
		default:
			b.t.Errorf("a transfer: %v", err)
			return
		}
	}
}

// errTaken says that a row was not there any more.
var errTaken = errors.New("the row is not there")

// transfer moves an amount in one transaction, and moves a row to another key now and then.
func (b *bank) transfer(ctx context.Context, rnd *rand.Rand) error {
	tx, err := b.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	amount := 1 + rnd.IntN(20)
	if err := b.put(ctx, tx, rnd, -amount); err != nil {
		return err
	}
	if err := b.put(ctx, tx, rnd, amount); err != nil {
		return err
	}
	if err := b.move(ctx, tx, rnd); err != nil {
		return err
	}
	return tx.Commit()
}

// slipTurn lets somebody write to the table without a key every third second: without a lock it can be copied only while
// nobody does.
func (b *bank) slipTurn() bool {
	now, last := time.Now().Unix(), b.slips.Load()
	return now >= last+3 && b.slips.CompareAndSwap(last, now)
}

// put adds an amount to a row of some table.
func (b *bank) put(ctx context.Context, tx *sql.Tx, rnd *rand.Rand, amount int) error {
	switch n := rnd.IntN(60); {
	case n < 20, n < 30 && n >= 28 && !b.slipTurn():
		return one(tx.ExecContext(ctx, "UPDATE account SET n = n + ? WHERE id >= ? ORDER BY id LIMIT 1", amount, 10*rnd.IntN(bankAccounts)))
	case n < 28:
		return one(tx.ExecContext(ctx, "UPDATE named SET n = n + ? WHERE name = ?", amount, fmt.Sprintf("nAmE%d", 1+rnd.IntN(bankNames))))
	case n < 40:
		return one(tx.ExecContext(ctx, "UPDATE grid SET n = n + ? WHERE x >= ? ORDER BY x LIMIT 1", amount, rnd.IntN(bankGrid)))
	case n < 50:
		return one(tx.ExecContext(ctx, "INSERT INTO entry (n) VALUES (?)", amount))
	case n == 28:
		return one(tx.ExecContext(ctx, "INSERT INTO slip VALUES (?, 'a')", amount))
	case n == 29: // one of equal rows goes
		if err := one(tx.ExecContext(ctx, "DELETE FROM slip WHERE n = ? LIMIT 1", amount)); err != nil {
			return err
		}
		return one(tx.ExecContext(ctx, "UPDATE account SET n = n + ? WHERE id >= ? ORDER BY id LIMIT 1", 2*amount, 10*rnd.IntN(bankAccounts)))
	default: // a row goes, and what it had goes to another one
		var id, n int
		err := tx.QueryRowContext(ctx, "SELECT id, n FROM entry WHERE id >= ? ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", rnd.IntN(1000)).Scan(&id, &n)
		if errors.Is(err, sql.ErrNoRows) {
			return errTaken
		}
		if err != nil {
			return err
		}
		if err := one(tx.ExecContext(ctx, "DELETE FROM entry WHERE id = ?", id)); err != nil {
			return err
		}
		return one(tx.ExecContext(ctx, "UPDATE account SET n = n + ? WHERE id >= ? ORDER BY id LIMIT 1", n+amount, 10*rnd.IntN(bankAccounts)))
	}
}

// move gives a row another key, anywhere in the table.
func (b *bank) move(ctx context.Context, tx *sql.Tx, rnd *rand.Rand) error {
	switch rnd.IntN(6) {
	case 0:
		return one(tx.ExecContext(ctx, "UPDATE account SET id = ? WHERE id >= ? ORDER BY id LIMIT 1", 1+rnd.IntN(10*bankAccounts), rnd.IntN(10*bankAccounts)))
	case 1:
		name := []byte(fmt.Sprintf("name%d", 1+rnd.IntN(bankNames)))
		for i := range 4 {
			if rnd.IntN(2) == 0 {
				name[i] -= 'a' - 'A'
			}
		}
		return one(tx.ExecContext(ctx, "UPDATE named SET name = ? WHERE name = ?", string(name), string(name)))
	case 2:
		return one(tx.ExecContext(ctx, "UPDATE grid SET x = ?, y = ? WHERE x >= ? ORDER BY x LIMIT 1", 1+rnd.IntN(bankGrid), rnd.IntN(7*bankGrid), rnd.IntN(bankGrid)))
	}
	return nil
}

// one wants a statement to have changed its row.
func one(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		return errors.Join(err, errTaken)
	}
	return nil
}

// total is what the sum is and stays.
func (b *bank) total() string { return fmt.Sprint((bankAccounts + bankNames + bankGrid) * bankStart) }
