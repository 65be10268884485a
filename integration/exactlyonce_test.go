package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/shop"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// kills is how often tidemark is killed in `make test`; `make soak` goes on for the time in TIDEMARK_SOAK.
const kills = 20

// killsOfCopy are those of them that may hit the first copy.
const killsOfCopy = 3

// TestExactlyOnce kills tidemark serve with SIGKILL at random moments under a mixed load: inserts, updates, deletes,
// changed keys, transactions over several tables, XA transactions, large transactions, DDL. After each kill the store
// is checked; all the time an invariant is asked for; in the end every row is compared (EXACT-01, EXACT-02, EXACT-04,
// DDL-22, PROTO-03).
func TestExactlyOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	l := newLoad(t, source, seed)
	tidemark := tidemarktest.New(t, tidemarktest.Options{})
	tidemark.Start()
	require.NoError(t, tidemark.Exec(tidemarktest.CreateStatement(source.Login, l.db, l.db)))
	l.start()
	reader := watch(t, tidemark, l)
	enough := enoughKills(t)
	for n := 1; !enough(n); n++ {
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		tidemark.Kill()
		tidemark.VerifyStoreOffline()
		tidemark.Start()
		if n == killsOfCopy { // else each kill lets the copy begin anew, and there would be nothing but copies
			tidemark.Await(l.db, "the copy", func(s tidemarktest.Status) bool { return s.GTIDSet != "" })
		}
	}
	reader.stop()
	l.stop()
	tidemark.Await(l.db, "the stream", func(s tidemarktest.Status) bool { return s.State == "streaming" && s.Problem() == "" })
	tidemark.CatchUp(source, l.db)
	tables := l.tables()
	for _, table := range tables {
		require.Equal(t, "live", tidemark.Status(l.db).Table(table).State, "table %s: %s", table, tidemark.Status(l.db).Table(table).Problem())
	}
	tidemarktest.SameTables(t, source.Login, tidemark.Login, l.db, tables...)
	verified := tidemark.Run("verify", l.db)
	require.Zero(t, verified.Code, "%s%s", verified.Out, verified.Err)
	tidemark.VerifyStore()
	t.Logf("%d transactions of the shop, %d answers of the invariant while it was killed", l.made(), reader.answers)
	require.NotZero(t, reader.answers)
}

// enoughKills tells when to end: after a number, or after a time.
func enoughKills(t *testing.T) func(n int) bool {
	soak := os.Getenv("TIDEMARK_SOAK")
	if soak == "" {
		return func(n int) bool { return n > kills }
	}
	d, err := time.ParseDuration(soak)
	require.NoError(t, err, "TIDEMARK_SOAK")
	end := time.Now().Add(d)
	return func(int) bool { return time.Now().After(end) }
}

// load is what happens on the source meanwhile.
type load struct {
	t       *testing.T
	source  *mysqltest.Server
	db      string
	seed    uint64
	size    shop.Size
	traders []*shop.Trader
	cancel  context.CancelFunc
	workers sync.WaitGroup
}

const pieces, accounts = 6000, 20

func newLoad(t *testing.T, source *mysqltest.Server, seed uint64) *load {
	l := &load{t: t, source: source, db: source.FreshDatabase(t), seed: seed, size: shop.SizeOf(pieces)}
	db := source.DB(t, l.db)
	require.NoError(t, shop.Create(t.Context(), db))
	require.NoError(t, shop.Fill(t.Context(), db, l.size, 1, nil))
	source.Exec(t, l.db,
		"CREATE TABLE pot_a (id INT PRIMARY KEY, n INT NOT NULL)", "CREATE TABLE pot_b (id INT PRIMARY KEY, n INT NOT NULL)",
		"CREATE TABLE mix (id INT PRIMARY KEY, v VARCHAR(40), d DECIMAL(12,4), t TIMESTAMP(6) NULL, j JSON)",
		"CREATE TABLE words (w VARCHAR(40) COLLATE utf8mb4_0900_ai_ci, n INT, v BLOB, PRIMARY KEY (w, n))",
		"CREATE TABLE growing (id INT PRIMARY KEY AUTO_INCREMENT, c0 INT)")
	for i := range accounts {
		source.Exec(t, l.db, fmt.Sprintf("INSERT INTO pot_a VALUES (%d, 1000)", i), fmt.Sprintf("INSERT INTO pot_b VALUES (%d, 1000)", i))
	}
	return l
}

// invariants are queries whose answer never changes.
func (l *load) invariants() []string {
	return []string{shop.Pieces, "SELECT (SELECT SUM(n) FROM pot_a) + (SELECT SUM(n) FROM pot_b) AS pots"}
}

func (l *load) tables() []string {
	rows, err := l.source.DB(l.t, l.db).Query("SHOW TABLES")
	require.NoError(l.t, err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name string
		require.NoError(l.t, rows.Scan(&name))
		out = append(out, name)
	}
	require.NoError(l.t, rows.Err())
	return out
}

func (l *load) made() (n int64) {
	for _, tr := range l.traders {
		n += tr.Made()
	}
	return n
}

func (l *load) start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	db := l.source.DB(l.t, l.db)
	for i := range 2 {
		trader := shop.NewTrader(db, l.size, i, l.seed)
		l.traders = append(l.traders, trader)
		l.work(ctx, func(context.Context, *rand.Rand) error { return trader.Trade(ctx) })
	}
	l.work(ctx, func(ctx context.Context, r *rand.Rand) error { return mixed(ctx, db, r) })
	l.work(ctx, func(ctx context.Context, r *rand.Rand) error { return xa(ctx, db, r) })
	l.work(ctx, func(ctx context.Context, r *rand.Rand) error { return words(ctx, db, r) })
	columns, made := 1, 0
	l.work(ctx, func(ctx context.Context, r *rand.Rand) error { return grow(ctx, db, r, &columns, &made) })
}

// work repeats something until the load stops. What another session got in the way of is done again.
func (l *load) work(ctx context.Context, do func(context.Context, *rand.Rand) error) {
	r := rand.New(rand.NewPCG(l.seed, rand.Uint64()))
	l.workers.Go(func() {
		for ctx.Err() == nil {
			err := do(ctx, r)
			if err != nil && ctx.Err() == nil && !passing(err) {
				l.t.Errorf("the load: %v", err)
				return
			}
			time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
		}
	})
}

// passing tells deadlocks and lock waits.
func passing(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && (my.Number == 1213 || my.Number == 1205 || my.Number == 1614)
}

// stop ends the load, and decides what XA transactions are left.
func (l *load) stop() {
	l.cancel()
	l.workers.Wait()
	db := l.source.DB(l.t, "")
	rows, err := db.Query("XA RECOVER")
	require.NoError(l.t, err)
	defer rows.Close()
	var left []string
	for rows.Next() {
		var format, gtrid, bqual int
		var data string
		require.NoError(l.t, rows.Scan(&format, &gtrid, &bqual, &data))
		left = append(left, data)
	}
	for i, id := range left {
		statement := "XA COMMIT '" + id + "'"
		if i%2 == 1 {
			statement = "XA ROLLBACK '" + id + "'"
		}
		l.source.Exec(l.t, "", statement)
	}
}

// transact runs statements in one transaction.
func transact(ctx context.Context, db *sql.DB, statements ...string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// mixed makes a transaction of several changes of few keys, so that they meet each other in one batch.
func mixed(ctx context.Context, db *sql.DB, r *rand.Rand) error {
	var do []string
	for range 1 + r.IntN(6) {
		a, b := r.IntN(60), r.IntN(60)
		switch r.IntN(7) {
		case 0:
			do = append(do, fmt.Sprintf("REPLACE INTO mix VALUES (%d, 'v%d', %d.5, NOW(6), '{\"a\": %d}')", a, r.IntN(1000), r.IntN(1000), a))
		case 1:
			do = append(do, fmt.Sprintf("INSERT INTO mix (id, v) VALUES (%d, 'new') ON DUPLICATE KEY UPDATE v = CONCAT('again', id), d = NULL", a))
		case 2:
			do = append(do, fmt.Sprintf("DELETE FROM mix WHERE id = %d", a))
		case 3:
			do = append(do, fmt.Sprintf("DELETE FROM mix WHERE id = %d", b), fmt.Sprintf("UPDATE mix SET id = %d, v = 'moved' WHERE id = %d", b, a))
		case 4: // a swap through a third key
			do = append(do, "DELETE FROM mix WHERE id = -1", fmt.Sprintf("UPDATE mix SET id = -1 WHERE id = %d", a), fmt.Sprintf("UPDATE mix SET id = %d WHERE id = %d", a, b),
				fmt.Sprintf("UPDATE mix SET id = %d WHERE id = -1", b))
		case 5:
			do = append(do, fmt.Sprintf("UPDATE mix SET d = d + 1, t = NOW(6) WHERE id BETWEEN %d AND %d", a, a+10))
		case 6:
			do = append(do, "UPDATE mix SET id = id + 100 WHERE id >= 50 ORDER BY id DESC", "DELETE FROM mix WHERE id > 300")
		}
	}
	return transact(ctx, db, do...)
}

// xa moves something between two tables in an XA transaction, whose outcome comes at once or later.
func xa(ctx context.Context, db *sql.DB, r *rand.Rand) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
	id := fmt.Sprintf("'x%d'", r.Uint64())
	n := r.IntN(50)
	for _, s := range []string{"XA START " + id, fmt.Sprintf("UPDATE pot_a SET n = n - %d WHERE id = %d", n, r.IntN(accounts)),
		fmt.Sprintf("UPDATE pot_b SET n = n + %d WHERE id = %d", n, r.IntN(accounts)), "XA END " + id, "XA PREPARE " + id} {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
	outcome := "XA COMMIT " + id
	if r.IntN(3) == 0 {
		outcome = "XA ROLLBACK " + id
	}
	_, err = conn.ExecContext(context.WithoutCancel(ctx), outcome)
	return err
}

// words changes text keys, also in nothing but their case.
func words(ctx context.Context, db *sql.DB, r *rand.Rand) error {
	w := strings.Repeat([]string{"a", "ä", "ß", "x\\'", "日"}[r.IntN(5)], 1+r.IntN(3))
	n := r.IntN(5)
	switch r.IntN(6) {
	case 0, 4, 5:
		return transact(ctx, db, fmt.Sprintf("REPLACE INTO words VALUES ('%s', %d, x'00ff%02x')", w, n, r.IntN(256)))
	case 1:
		return transact(ctx, db, fmt.Sprintf("UPDATE words SET w = UPPER(w) WHERE w = '%s' AND n = %d", w, n), fmt.Sprintf("UPDATE words SET w = LOWER(w) WHERE n = %d", n+1))
	case 2:
		return transact(ctx, db, fmt.Sprintf("DELETE FROM words WHERE w = '%s'", w))
	default:
		return transact(ctx, db, "INSERT INTO words SELECT * FROM (SELECT w AS x, n + 10 AS y, v AS z FROM words WHERE n < 10) q ON DUPLICATE KEY UPDATE v = REVERSE(v)", "DELETE FROM words WHERE n > 10 AND RAND() < 0.5")
	}
}

// grow changes definitions, makes and drops tables, and now and then a transaction of many rows.
func grow(ctx context.Context, db *sql.DB, r *rand.Rand, columns, made *int) error {
	exec := func(format string, args ...any) error {
		_, err := db.ExecContext(ctx, fmt.Sprintf(format, args...))
		return err
	}
	time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	switch r.IntN(6) {
	case 0:
		if *columns > 30 {
			return nil
		}
		*columns++
		return exec("ALTER TABLE growing ADD c%d %s %s", *columns, []string{"INT", "VARCHAR(9) NOT NULL DEFAULT 'x'", "DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)"}[r.IntN(3)], []string{"", "FIRST", "AFTER id"}[r.IntN(3)])
	case 1:
		*made++
		err := errors.Join(exec("CREATE TABLE made%d (id INT PRIMARY KEY, v VARCHAR(9))", *made), exec("INSERT INTO made%d VALUES (1, 'a'), (2, 'b')", *made))
		if *made > 20 {
			err = errors.Join(err, exec("DROP TABLE IF EXISTS made%d", *made-20))
		}
		return err
	case 2:
		if *made%4 == 3 {
			return errors.Join(exec("TRUNCATE made%d", *made), exec("DROP TABLE IF EXISTS made%d", *made-1))
		}
		return nil
	case 3:
		return exec("INSERT INTO growing (c0) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n")
	case 4:
		return exec("DELETE FROM growing WHERE id %% 7 = %d", r.IntN(7))
	default:
		return exec("UPDATE growing SET c0 = c0 + 1 WHERE id %% 5 = %d", r.IntN(5))
	}
}

// watcher asks for the invariants all the time.
type watcher struct {
	cancel  context.CancelFunc
	done    chan struct{}
	answers int
}

// watch starts asking. Errors are those of a server that is being killed, or of a copy that is not complete; an answer
// must be the right one.
func watch(t *testing.T, tidemark *tidemarktest.Server, l *load) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{cancel: cancel, done: make(chan struct{})}
	queries := l.invariants()
	want := make([]string, len(queries))
	for i, q := range queries {
		require.NoError(t, l.source.DB(t, l.db).QueryRow(q).Scan(&want[i]))
	}
	db := tidemark.DB(l.db)
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			for i, q := range queries {
				var got string
				if err := db.QueryRowContext(ctx, q).Scan(&got); err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				w.answers++
				if got != want[i] {
					t.Errorf("%s: the answer is %s and has to be %s", q, got, want[i])
				}
			}
		}
	}()
	return w
}

func (w *watcher) stop() {
	w.cancel()
	<-w.done
}
