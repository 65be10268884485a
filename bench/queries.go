package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the engine's own table, to compare with
)

// analytical are the five queries. All three systems run the same text.
var analytical = []struct{ name, sql string }{
	{"scan and group (Q1)", `SELECT return_flag, status, SUM(quantity), SUM(price), SUM(price * (1 - discount)), COUNT(*) FROM line_items WHERE ship_date <= '2026-09-02' GROUP BY return_flag, status ORDER BY return_flag, status`},
	{"filter (Q6)", `SELECT SUM(price * discount) FROM line_items WHERE ship_date >= '2022-01-01' AND ship_date < '2023-01-01' AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24`},
	{"by key", `SELECT id, price, note FROM line_items WHERE id = 123456`},
	{"many groups", `SELECT supplier_id, COUNT(*), MAX(price) FROM line_items GROUP BY supplier_id ORDER BY 2 DESC, 1 LIMIT 10`},
	{"like", `SELECT mode, COUNT(*) FROM line_items WHERE note LIKE '%bold requests%' GROUP BY mode ORDER BY mode`},
}

// repeats is how often a query runs; the best time counts, which on a busy machine takes some tries to come about.
const repeats = 25

// queries measures the five queries on the lines table after a tenth of its rows was updated.
func (b *bench) queries(ctx context.Context) (err error) {
	source, err := b.linesForQueries(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	ours, err := sql.Open("mysql", "root@tcp("+b.tidemark.addr+")/bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	duck, err := b.duckDB(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, duck.Close()) }()

	if err := b.tidemark.settle(); err != nil {
		return err
	}
	toDuck, toInnoDB := 0.0, 0.0
	for _, q := range analytical {
		o, err := best(ctx, ours, q.sql, repeats)
		if err != nil {
			return fmt.Errorf("%s on Tidemark: %w", q.name, err)
		}
		d, err := best(ctx, duck, q.sql, repeats)
		if err != nil {
			return fmt.Errorf("%s on DuckDB: %w", q.name, err)
		}
		i, err := best(ctx, source, q.sql, 1)
		if err != nil {
			return fmt.Errorf("%s on InnoDB: %w", q.name, err)
		}
		toDuck, toInnoDB = toDuck+math.Log(o/d), toInnoDB+math.Log(i/o)
		b.report.line("query: "+q.name, fmt.Sprintf("%.1f ms", o*1e3), fmt.Sprintf("DuckDB's table %.1f ms, InnoDB %.0f ms", d*1e3, i*1e3), "")
	}
	n := float64(len(analytical))
	b.report.line("queries: time against DuckDB's own table (geometric mean)", fmt.Sprintf("%.2f x", math.Exp(toDuck/n)), "10 % of the rows updated", "<= 2.5 x")
	b.report.line("queries: speed against InnoDB (geometric mean)", fmt.Sprintf("%.1f x", math.Exp(toInnoDB/n)), "", ">= 10 x")
	return nil
}

// linesForQueries gives the source's database with a tenth of the rows updated, followed up to there.
func (b *bench) linesForQueries(ctx context.Context) (*sql.DB, error) {
	db, err := b.source.Open("bench")
	if err != nil {
		return nil, err
	}
	var name string
	err = b.tidemark.db.QueryRowContext(ctx, "SHOW DATABASES LIKE 'bench'").Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		if err = b.prepareLines(ctx, "bench"); err == nil {
			err = b.tidemark.create(ctx, b.source, "bench")
		}
	}
	if err == nil {
		err = updateLines(ctx, db, b.rows)
	}
	if err == nil {
		err = b.tidemark.caughtUp(ctx, db, "bench")
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (b *bench) duckDB(ctx context.Context) (*sql.DB, error) {
	dir := filepath.Join(b.tidemark.dir, "duckdb")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	text := filepath.Join(dir, "lines.tsv")
	if err := writeLines(text, b.rows); err != nil {
		return nil, err
	}
	db, err := sql.Open("duckdb", filepath.Join(dir, "lines.db"))
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		fmt.Sprintf("SET threads = %d", runtime.NumCPU()),
		"CREATE TABLE line_items (id BIGINT, order_id INT, part_id INT, supplier_id INT, quantity DECIMAL(10,2), price DECIMAL(12,2), discount DECIMAL(4,2), tax DECIMAL(4,2), return_flag VARCHAR, status VARCHAR, ship_date DATE, mode VARCHAR, note VARCHAR)",
		fmt.Sprintf("COPY line_items FROM '%s' (DELIMITER '\t', HEADER false)", text),
		"CHECKPOINT",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, os.Remove(text)
}

func writeLines(path string, rows int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(allLines(w, rows), w.Flush(), f.Close())
}

// best gives the shortest of n runs, in seconds. All rows are read.
func best(ctx context.Context, db *sql.DB, query string, n int) (float64, error) {
	shortest := math.Inf(1)
	for range n {
		start := time.Now()
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return 0, err
		}
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return 0, err
		}
		shortest = min(shortest, time.Since(start).Seconds())
	}
	return shortest, nil
}
