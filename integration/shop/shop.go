// Package shop is a small web shop's database: its schema, rows to fill it with, and customers who keep ordering. The
// demo, the benchmarks and the end-to-end tests run on it.
//
// Every transaction that Trade makes keeps one sum constant: pieces in stock plus pieces in orders. A reader that sees
// it broken has seen a part of a transaction (Pieces is the query).
package shop

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Tables are the shop's tables, in the order in which they are filled.
var Tables = []string{"customers", "products", "orders", "order_items"}

// Pieces is the sum that every transaction keeps: one row, one column.
const Pieces = "SELECT (SELECT SUM(stock) FROM products) + (SELECT SUM(quantity) FROM order_items) AS pieces"

// Revenue is the analytical query of the demo: all four tables joined and grouped.
const Revenue = `SELECT c.country, p.category, COUNT(*) AS positions, SUM(i.quantity * i.price) AS revenue
FROM order_items i
JOIN orders o ON o.id = i.order_id
JOIN customers c ON c.id = o.customer_id
JOIN products p ON p.id = i.product_id
WHERE o.status IN ('paid', 'shipped')
GROUP BY c.country, p.category
ORDER BY revenue DESC, c.country, p.category
LIMIT 10`

// schema are the statements that create the tables.
var schema = []string{
	`CREATE TABLE customers (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  name VARCHAR(80) NOT NULL,
  email VARCHAR(120) CHARACTER SET latin1 NOT NULL,
  country CHAR(2) NOT NULL,
  segment ENUM('consumer', 'business', 'public') NOT NULL,
  birthday DATE,
  registered DATETIME(3) NOT NULL,
  preferences JSON,
  KEY (country)
)`,
	`CREATE TABLE products (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  sku VARCHAR(16) CHARACTER SET ascii NOT NULL,
  title VARCHAR(120) NOT NULL,
  category VARCHAR(40) NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  weight DOUBLE,
  labels SET('new', 'sale', 'bulky', 'fragile') NOT NULL,
  stock INT NOT NULL,
  UNIQUE KEY (sku)
)`,
	`CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  customer_id INT UNSIGNED NOT NULL,
  status ENUM('placed', 'paid', 'shipped', 'returned') NOT NULL,
  placed TIMESTAMP(6) NOT NULL,
  total DECIMAL(12,2) NOT NULL,
  note VARCHAR(200),
  KEY (customer_id), KEY (placed)
)`,
	`CREATE TABLE order_items (
  order_id BIGINT UNSIGNED NOT NULL,
  line SMALLINT UNSIGNED NOT NULL,
  product_id INT UNSIGNED NOT NULL,
  quantity INT NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  PRIMARY KEY (order_id, line),
  KEY (product_id)
)`,
}

// Size is the number of rows of each table.
type Size struct{ Customers, Products, Orders, Items int }

// SizeOf divides a total number of rows over the tables as in a real shop.
func SizeOf(total int) Size {
	s := Size{Customers: max(1, total*5/100), Products: max(1, total/100), Orders: max(1, total*24/100)}
	s.Items = max(s.Orders, total-s.Customers-s.Products-s.Orders)
	return s
}

// Total is the number of all rows.
func (s Size) Total() int { return s.Customers + s.Products + s.Orders + s.Items }

// Create creates the empty tables in the connection's database.
func Create(ctx context.Context, db *sql.DB) error {
	for i, statement := range schema {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("creating table %s: %w", Tables[i], err)
		}
	}
	return nil
}

// Fill inserts the rows. The same size and seed give the same rows. progress (may be nil) hears how many rows a table
// has so far.
func Fill(ctx context.Context, db *sql.DB, size Size, seed uint64, progress func(table string, rows int)) error {
	if progress == nil {
		progress = func(string, int) {}
	}
	g := &generator{random: rand.New(rand.NewPCG(seed, 1)), size: size}
	for _, part := range []struct {
		table string
		rows  int
		row   func(i int) string
	}{
		{"customers", size.Customers, g.customer},
		{"products", size.Products, g.product},
		{"orders", size.Orders, g.order},
		{"order_items", size.Items, g.item},
	} {
		report := func(rows int) { progress(part.table, rows) }
		if err := insert(ctx, db, part.table, part.rows, part.row, report); err != nil {
			return err
		}
	}
	return nil
}

// insert sends rows a thousand at a time, each batch a transaction.
func insert(ctx context.Context, db *sql.DB, table string, rows int, row func(int) string, progress func(int)) error {
	const batch = 1000
	var statement strings.Builder
	for from := 0; from < rows; from += batch {
		to := min(rows, from+batch)
		statement.Reset()
		statement.WriteString("INSERT INTO " + table + " VALUES ")
		for i := from; i < to; i++ {
			if i > from {
				statement.WriteByte(',')
			}
			statement.WriteString(row(i))
		}
		if _, err := db.ExecContext(ctx, statement.String()); err != nil {
			return fmt.Errorf("filling table %s: %w", table, err)
		}
		progress(to)
	}
	return nil
}
