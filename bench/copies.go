package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// copyFactor is how many times the rows of the other parts are copied here: 5 M rows by default.
const copyFactor = 2.5

// copies measures the first copy with 1, 2 and 4 readers, and without any lock, against mysqldump of the same table and
// against mydumper with as many threads, where its package can be had. Each copy is made by a process of its own, so that
// its peak memory is known.
func (b *bench) copies(ctx context.Context) error {
	large := &bench{config: b.config, source: b.source}
	large.rows = int(copyFactor * float64(b.rows))
	if err := large.prepareLines(ctx, "copies"); err != nil {
		return err
	}
	dump, err := b.dump(ctx, "copies", "line_items")
	if err != nil {
		return err
	}
	b.report.line(fmt.Sprintf("mysqldump --single-transaction of %d rows to /dev/null", large.rows), fmt.Sprintf("%.2f s", dump.Seconds()), "", "")
	for _, c := range []struct {
		readers int
		plan    string
	}{{1, "auto"}, {2, "auto"}, {4, "auto"}, {4, "none"}} {
		if err := large.oneCopy(ctx, &b.report, c.readers, c.plan, dump); err != nil {
			return fmt.Errorf("%d readers, lock plan %s: %w", c.readers, c.plan, err)
		}
	}
	return nil
}

func (b *bench) oneCopy(ctx context.Context, report *report, readers int, plan string, dump time.Duration) (err error) {
	td, err := startTidemark(ctx, b.config.tidemark)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, td.close()) }()
	start := time.Now()
	err = td.create(ctx, b.source, "copies", fmt.Sprintf("snapshot_max_threads = %d", readers), fmt.Sprintf("snapshot_lock = '%s'", plan))
	if err != nil {
		return err
	}
	copied := time.Since(start)
	peak, err := td.peakMemory()
	if err != nil {
		return err
	}
	held, err := td.lockHeld(ctx, "copies")
	if err != nil {
		return err
	}
	report.line(fmt.Sprintf("copy with %d readers, lock plan %s: time against mysqldump", readers, plan), ratio(copied.Seconds(), dump.Seconds()),
		fmt.Sprintf("%.2f s, %.0f k rows/s, locked %s, peak %d MiB", copied.Seconds(), float64(b.rows)/copied.Seconds()/1e3, held, peak>>20), "<= 2.0 x, 1024 MiB")
	if plan != "auto" {
		return nil
	}
	other, err := b.mydumper(ctx, "copies", readers)
	if err != nil {
		report.line(fmt.Sprintf("the same against mydumper with %d threads", readers), "-", "mydumper can't be had: "+err.Error(), "")
		return nil
	}
	report.line(fmt.Sprintf("the same against mydumper with %d threads", readers), ratio(copied.Seconds(), other.Seconds()), fmt.Sprintf("mydumper %.2f s", other.Seconds()), "")
	return nil
}

// mydumper dumps a database to files, which it can't leave out.
func (b *bench) mydumper(ctx context.Context, database string, threads int) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "tidemark-bench-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd, err := mysqltest.PackageCommand(ctx, "mydumper", "mydumper", "--host="+b.source.Host, "--port="+strconv.Itoa(b.source.Port), "--user="+b.source.User,
		"--password="+b.source.Password, "--database="+database, "--threads="+strconv.Itoa(threads), "--rows=250000", "--outputdir="+dir)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return time.Since(start), nil
}

// lockHeld is how long the source was locked for the copy, as the event log has it.
func (t *tidemark) lockHeld(ctx context.Context, database string) (string, error) {
	var message string
	err := t.db.QueryRowContext(ctx, "SELECT message FROM system.materialized_mysql_log WHERE `database` = ? AND kind = 'copied' LIMIT 1", database).Scan(&message)
	if err != nil {
		return "", fmt.Errorf("the event of the copy's end: %w", err)
	}
	_, held, ok := strings.Cut(message, "locked for ")
	if !ok {
		return "not at all", nil
	}
	held, _, _ = strings.Cut(held, ",")
	return held, nil
}
