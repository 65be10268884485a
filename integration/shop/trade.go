package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// Trader makes the shop's transactions: new orders, payments, returns, price changes, renumbered orders.
// One Trader belongs to one goroutine. Traders of one shop have different numbers, so that their order ids differ.
type Trader struct {
	db     *sql.DB
	random *rand.Rand
	size   Size
	nextID uint64
	made   atomic.Int64
}

// NewTrader returns the trader with a number (0, 1, ...) of a shop that was filled with the size.
func NewTrader(db *sql.DB, size Size, number int, seed uint64) *Trader {
	return &Trader{
		db:     db,
		random: rand.New(rand.NewPCG(seed, uint64(number)+2)),
		size:   size,
		nextID: uint64(number+1) << 40,
	}
}

// Made is how many transactions were committed; it may be asked from another goroutine.
func (t *Trader) Made() int64 { return t.made.Load() }

// Trade makes one transaction. A deadlock with another trader is tried again.
func (t *Trader) Trade(ctx context.Context) error {
	kind := t.kind()
	for {
		err := t.attempt(ctx, kind)
		var refused *mysql.MySQLError
		if errors.As(err, &refused) && (refused.Number == 1213 || refused.Number == 1205) {
			continue
		}
		if err == nil {
			t.made.Add(1)
		}
		return err
	}
}

// kind chooses what to do next, in the proportions of a shop.
func (t *Trader) kind() func(context.Context, *sql.Tx) error {
	switch n := t.random.IntN(100); {
	case n < 45:
		return t.placeOrder
	case n < 75:
		return t.advanceOrder
	case n < 85:
		return t.returnItems
	case n < 95:
		return t.changePrice
	default:
		return t.renumberOrder
	}
}

func (t *Trader) attempt(ctx context.Context, work func(context.Context, *sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// placeOrder moves pieces from the stock to the items of a new order.
func (t *Trader) placeOrder(ctx context.Context, tx *sql.Tx) error {
	t.nextID++
	id, total := t.nextID, 0
	for line := range 1 + t.random.IntN(4) {
		product, quantity, price := 1+t.random.IntN(t.size.Products), 1+t.random.IntN(5), 99+t.random.IntN(50000)
		total += quantity * price
		if err := exec(ctx, tx, "UPDATE products SET stock = stock - ? WHERE id = ?", quantity, product); err != nil {
			return err
		}
		if err := exec(ctx, tx, "INSERT INTO order_items VALUES (?, ?, ?, ?, ?)", id, line+1, product, quantity, cents(price)); err != nil {
			return err
		}
	}
	var note any
	if t.random.IntN(5) == 0 {
		note = notes[t.random.IntN(len(notes))]
	}
	return exec(ctx, tx, "INSERT INTO orders VALUES (?, ?, 'placed', CURRENT_TIMESTAMP(6), ?, ?)", id, 1+t.random.IntN(t.size.Customers), cents(total), note)
}

// someOrder is an order that may exist: one of the first filling, or one of this trader's.
func (t *Trader) someOrder() uint64 {
	first := t.nextID >> 40 << 40
	if mine := t.nextID - first; mine > 0 && t.random.IntN(2) == 0 {
		return first + 1 + t.random.Uint64N(mine)
	}
	return 1 + t.random.Uint64N(uint64(t.size.Orders))
}

func (t *Trader) advanceOrder(ctx context.Context, tx *sql.Tx) error {
	return exec(ctx, tx, "UPDATE orders SET status = IF(status = 'placed', 'paid', 'shipped') WHERE id = ? AND status IN ('placed', 'paid')", t.someOrder())
}

// returnItems moves an order's pieces back to the stock and deletes its items.
func (t *Trader) returnItems(ctx context.Context, tx *sql.Tx) error {
	id := t.someOrder()
	// The lock on the order keeps a second return of it waiting, so that no piece is counted twice.
	if err := exec(ctx, tx, "UPDATE orders SET status = 'returned' WHERE id = ?", id); err != nil {
		return err
	}
	for _, statement := range []string{
		"UPDATE products p JOIN (SELECT product_id, SUM(quantity) AS n FROM order_items WHERE order_id = ? GROUP BY product_id) i ON i.product_id = p.id SET p.stock = p.stock + i.n",
		"DELETE FROM order_items WHERE order_id = ?",
	} {
		if err := exec(ctx, tx, statement, id); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trader) changePrice(ctx context.Context, tx *sql.Tx) error {
	return exec(ctx, tx, "UPDATE products SET price = price * 1.01, labels = IF(labels = '', 'sale', '') WHERE id = ?", 1+t.random.IntN(t.size.Products))
}

// renumberOrder gives an order of this trader another key, in two tables.
func (t *Trader) renumberOrder(ctx context.Context, tx *sql.Tx) error {
	from := t.someOrder()
	t.nextID++
	for _, statement := range []string{"UPDATE orders SET id = ? WHERE id = ?", "UPDATE order_items SET order_id = ? WHERE order_id = ?"} {
		if err := exec(ctx, tx, statement, t.nextID, from); err != nil {
			return err
		}
	}
	return nil
}

func exec(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
