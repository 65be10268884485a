package shop

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

func ask(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var answer string
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&answer))
	return answer
}

// TestShop fills a shop and lets customers in: the sum of all pieces never changes, and every kind of transaction
// has left a trace.
func TestShop(t *testing.T) {
	server, name := mysqltest.FreshDatabase(t)
	db := server.DB(t, name)
	size := SizeOf(4000)
	require.Equal(t, 4000, size.Total())
	require.NoError(t, Create(t.Context(), db))
	last := map[string]int{}
	require.NoError(t, Fill(t.Context(), db, size, 1, func(table string, rows int) { last[table] = rows }))
	require.Equal(t, map[string]int{"customers": size.Customers, "products": size.Products, "orders": size.Orders, "order_items": size.Items}, last)

	pieces := ask(t, db, Pieces)
	var group sync.WaitGroup
	for number := range 3 {
		trader := NewTrader(db, size, number, 7)
		group.Go(func() {
			for range 200 {
				if err := trader.Trade(context.Background()); err != nil {
					t.Error(err)
					return
				}
			}
			if trader.Made() != 200 {
				t.Errorf("made %d transactions", trader.Made())
			}
		})
	}
	group.Wait()
	require.Equal(t, pieces, ask(t, db, Pieces))
	require.NotEqual(t, "0", ask(t, db, "SELECT COUNT(*) FROM orders WHERE id > 1 << 40"))
	require.NotEqual(t, ask(t, db, "SELECT COUNT(*) FROM orders"), ask(t, db, "SELECT COUNT(DISTINCT order_id) FROM order_items"), "nothing was returned")

	rows, err := db.QueryContext(t.Context(), Revenue)
	require.NoError(t, err)
	defer rows.Close()
	n := 0
	for rows.Next() {
		n++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, 10, n)
}

// TestFillRepeats: the same seed gives the same rows.
func TestFillRepeats(t *testing.T) {
	server, one := mysqltest.FreshDatabase(t)
	two := server.FreshDatabase(t)
	var sums []string
	for _, name := range []string{one, two} {
		db := server.DB(t, name)
		require.NoError(t, Create(t.Context(), db))
		require.NoError(t, Fill(t.Context(), db, SizeOf(500), 42, nil))
		sums = append(sums, ask(t, db, "SELECT SUM(CRC32(CONCAT_WS('|', id, name, email, country, segment, birthday, registered, preferences))) FROM customers"))
	}
	require.Equal(t, sums[0], sums[1])
}
