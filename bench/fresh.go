package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
)

const (
	freshSeconds = 10
	freshWriters = 4
)

// freshness measures the time from a commit on the source to its being visible, while the source commits at a steady rate.
func (b *bench) freshness(ctx context.Context) (err error) {
	source, err := b.source.Open("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	source.SetMaxIdleConns(freshWriters)
	for _, statement := range []string{"CREATE DATABASE fresh", "CREATE TABLE fresh.ticks (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL)"} {
		if _, err := source.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if err := b.tidemark.create(ctx, b.source, "fresh"); err != nil {
		return err
	}
	delays, committed, err := b.tick(ctx, source)
	if err != nil {
		return err
	}
	slices.Sort(delays)
	p := func(q float64) time.Duration { return delays[int(q*float64(len(delays)-1))].Round(time.Millisecond) }
	b.report.line("commit to visible, p99", p(0.99).String(), fmt.Sprintf("p50 %v, max %v, %d transactions/s", p(0.5), p(1), committed/freshSeconds), "<= 1 s")
	return nil
}

// tick commits single rows at the rate, and asks Tidemark all the time for the newest. The clock of each row is read
// after its commit returned.
func (b *bench) tick(ctx context.Context, source *sql.DB) (delays []time.Duration, committed int, err error) {
	total := b.rate * freshSeconds
	times := make([]atomic.Int64, total)
	var next atomic.Int64
	start := time.Now()
	g, writing := errgroup.WithContext(ctx)
	for range freshWriters {
		g.Go(func() error {
			for {
				n := next.Add(1) - 1
				due := start.Add(time.Duration(n) * time.Second / time.Duration(b.rate))
				if n >= int64(total) || time.Since(start) > freshSeconds*time.Second {
					return nil
				}
				time.Sleep(time.Until(due))
				if _, err := source.ExecContext(writing, fmt.Sprintf("INSERT INTO fresh.ticks VALUES (%d, 1)", n)); err != nil {
					return err
				}
				times[n].Store(time.Now().UnixNano())
			}
		})
	}
	written := make(chan error, 1)
	go func() { written <- g.Wait() }()
	seen := make([]bool, total)
	for {
		select {
		case err := <-written:
			for i := range times {
				if times[i].Load() != 0 {
					committed++
				}
			}
			if err == nil && len(delays) == 0 {
				err = errors.New("no row became visible")
			}
			return delays, committed, err
		default:
		}
		fresh, err := b.visible(ctx, seen, times)
		if err != nil {
			return nil, 0, err
		}
		delays = append(delays, fresh...)
	}
}

// visible notes the rows that can be seen now and could not before.
func (b *bench) visible(ctx context.Context, seen []bool, times []atomic.Int64) ([]time.Duration, error) {
	rows, err := b.tidemark.db.QueryContext(ctx, "SELECT id FROM fresh.ticks ORDER BY id DESC LIMIT 5000")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	now := time.Now().UnixNano()
	var delays []time.Duration
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if at := times[id].Load(); !seen[id] && at != 0 {
			delays = append(delays, time.Duration(max(now-at, 0)))
			seen[id] = true
		}
	}
	return delays, rows.Err()
}

// isDeadlock tells MySQL's errors after which a transaction is to be tried again.
func isDeadlock(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205 || e.Number == 1062)
}
