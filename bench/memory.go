package main

import (
	"context"
	"fmt"
	"time"
)

// memoryFactor is how many times the rows of the other parts the memory is measured with: 10 M rows by default.
const memoryFactor = 5

// memory measures the peak memory of the server over the snapshot of a large table and one transaction of all its rows.
func (b *bench) memory(ctx context.Context) error {
	large := &bench{config: b.config, source: b.source, tidemark: b.tidemark}
	large.rows *= memoryFactor
	if err := large.prepareLines(ctx, "memory"); err != nil {
		return err
	}
	start := time.Now()
	if err := b.tidemark.create(ctx, b.source, "memory"); err != nil {
		return err
	}
	copied := time.Since(start)
	afterCopy, err := b.tidemark.peakMemory()
	if err != nil {
		return err
	}
	source, err := b.source.Open("memory")
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	if _, err := source.ExecContext(ctx, "CREATE TABLE again LIKE line_items"); err != nil {
		return err
	}
	if _, err := source.ExecContext(ctx, "INSERT INTO again SELECT * FROM line_items"); err != nil {
		return err
	}
	start = time.Now()
	if err := b.tidemark.caughtUp(ctx, source, "memory"); err != nil {
		return err
	}
	applied := time.Since(start)
	peak, err := b.tidemark.peakMemory()
	if err != nil {
		return err
	}
	b.report.line(fmt.Sprintf("peak memory: snapshot of %d rows, then as many in one transaction", large.rows), fmt.Sprintf("%d MiB", peak>>20),
		fmt.Sprintf("%d MiB after the snapshot (%.0f s); applied in %.0f s", afterCopy>>20, copied.Seconds(), applied.Seconds()), "<= 1536 MiB")
	return nil
}
