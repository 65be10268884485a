package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// snapshot measures the first copy of the lines table against mysqldump of it to /dev/null, and the sizes on disk.
func (b *bench) snapshot(ctx context.Context) error {
	if err := b.prepareLines(ctx, "bench"); err != nil {
		return err
	}
	dump, err := b.dump(ctx, "bench", "line_items")
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.tidemark.create(ctx, b.source, "bench"); err != nil {
		return err
	}
	copied := time.Since(start)
	b.report.line("snapshot: time against mysqldump to /dev/null", ratio(copied.Seconds(), dump.Seconds()),
		fmt.Sprintf("%.2f s, mysqldump %.2f s, %.0f k rows/s", copied.Seconds(), dump.Seconds(), float64(b.rows)/copied.Seconds()/1e3), "<= 2.0 x")
	return b.diskSize(ctx)
}

func (b *bench) diskSize(ctx context.Context) error {
	db, err := b.source.Open("bench")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var innodb int64
	if err := db.QueryRowContext(ctx, "SELECT FILE_SIZE FROM information_schema.INNODB_TABLESPACES WHERE NAME = 'bench/line_items'").Scan(&innodb); err != nil {
		return err
	}
	ours, err := size(filepath.Join(b.tidemark.dir, "parts"))
	if err != nil {
		return err
	}
	meta, err := size(filepath.Join(b.tidemark.dir, "meta"))
	if err != nil {
		return err
	}
	b.report.line("disk: parts and index against InnoDB's .ibd", ratio(float64(ours+meta), float64(innodb)),
		fmt.Sprintf("parts %d MiB, meta %d MiB, .ibd %d MiB", ours>>20, meta>>20, innodb>>20), "<= 0.35 x")
	return nil
}

// prepareLines makes a database with a filled lines table on the source.
func (b *bench) prepareLines(ctx context.Context, database string) error {
	if err := b.emptyLines(ctx, database); err != nil {
		return err
	}
	db, err := b.source.Open(database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := loadLines(ctx, db, b.rows); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "ANALYZE TABLE line_items")
	return err
}

func (b *bench) emptyLines(ctx context.Context, database string) error {
	if err := b.createDatabase(ctx, database); err != nil {
		return err
	}
	db, err := b.source.Open(database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, linesTable)
	return err
}

func (b *bench) createDatabase(ctx context.Context, database string) error {
	db, err := b.source.Open("")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+database)
	return err
}

func (b *bench) dump(ctx context.Context, database, table string) (time.Duration, error) {
	program, err := mysqltest.Program(ctx, "mysqldump")
	if err != nil {
		return 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	dump := exec.CommandContext(ctx, program, "--host="+b.source.Host, fmt.Sprintf("--port=%d", b.source.Port), "--user="+b.source.User, "--password="+b.source.Password,
		"--single-transaction", "--set-gtid-purged=OFF", "--no-tablespaces", database, table)
	dump.Stdout = null
	start := time.Now()
	if out := dump.Run(); out != nil {
		return 0, fmt.Errorf("mysqldump: %w", out)
	}
	return time.Since(start), nil
}
