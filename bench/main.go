// Command bench measures Tidemark side by side with what a user would pick instead, in one run on one machine, and
// prints ratios: the snapshot against mysqldump, replay against a MySQL replica that applies the same binary log and
// against pulling that log with mysqlbinlog, analytical queries against InnoDB and against DuckDB's own append-only
// table; then the time from commit to visible, the size on disk and the peak memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

type config struct {
	tidemark     string
	rows         int
	transactions int
	rate         int
	only         []string
}

func main() {
	var c config
	flag.StringVar(&c.tidemark, "tidemark", "bin/tidemark", "the tidemark binary")
	flag.IntVar(&c.rows, "rows", 2_000_000, "rows of the 13-column table, for the snapshot, the bulk replay and the queries")
	flag.IntVar(&c.transactions, "transactions", 20_000, "transactions of the OLTP mix")
	flag.IntVar(&c.rate, "rate", 2_000, "transactions a second while freshness is measured")
	only := flag.String("only", "", "comma-separated parts to run: snapshot,copies,bulk,oltp,queries,fresh,memory (empty: all but memory)")
	flag.Parse()
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// wants tells whether a part runs. That of the memory takes long and needs much room on the disk, so it has to be asked for.
func (c *config) wants(part string) bool {
	if len(c.only) == 0 {
		return part != "memory"
	}
	return slices.Contains(c.only, part)
}

// bench is one run: the source, the Tidemark server that follows it, and what was measured.
type bench struct {
	config
	source   *mysqltest.Server
	tidemark *tidemark
	report   report
}

func run(ctx context.Context, c config) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	source, err := mysqltest.StartServer(ctx, mysqltest.Options{Own: true, Logger: log, Args: []string{
		"--local-infile=ON", "--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=1G", "--max-binlog-size=1G", "--server-id=1",
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	td, err := startTidemark(ctx, c.tidemark)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, td.close()) }()
	b := &bench{config: c, source: source, tidemark: td}
	fmt.Printf("%d cores, MySQL %s (%s), %d rows, %d transactions\n\n", runtime.NumCPU(), source.Version(), source.Kind(), c.rows, c.transactions)
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"snapshot", b.snapshot}, {"copies", b.copies}, {"bulk", b.bulk}, {"oltp", b.oltp}, {"queries", b.queries}, {"fresh", b.freshness}, {"memory", b.memory}} {
		if !c.wants(part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if peak, err := td.peakMemory(); err == nil {
		b.report.line("peak memory of the tidemark process", fmt.Sprintf("%d MiB", peak>>20), "", "<= 1536 MiB")
	}
	return nil
}

// report prints results as they come.
type report struct{ started bool }

func (r *report) line(what, result, against, budget string) {
	if !r.started {
		fmt.Printf("%-58s %14s  %-44s %s\n", "what", "result", "measured", "budget")
		r.started = true
	}
	fmt.Printf("%-58s %14s  %-44s %s\n", what, result, against, budget)
}

func ratio(a, b float64) string { return fmt.Sprintf("%.2f x", a/b) }
