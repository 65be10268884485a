package snapshot

import (
	"io"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
)

// discard is a sink that costs nothing.
type discard struct{}

func (discard) Begin(Cut) error                    { return nil }
func (discard) Open(*schema.Table) (Writer, error) { return discard{}, nil }
func (discard) Add(*column.Batch) error            { return nil }
func (discard) Done([]byte) error                  { return nil }
func (discard) Close() error                       { return nil }
func (discard) Abort()                             {}

// BenchmarkRun copies a table of 13 columns to nowhere, and has mysqldump do the same, in one run.
func BenchmarkRun(b *testing.B) {
	const rows = 500_000
	s := mysqltest.Start(b, mysqltest.Options{Own: true})
	s.Exec(b, "", "CREATE DATABASE bench", "SET cte_max_recursion_depth = 10000000",
		"CREATE TABLE bench.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, product INT UNSIGNED NOT NULL, quantity SMALLINT, price DECIMAL(12,2), discount DECIMAL(4,2),"+
			" status ENUM('new','paid','sent'), flags SET('a','b','c'), note VARCHAR(60), created DATETIME(3), changed TIMESTAMP NULL, weight DOUBLE, day DATE)",
		"INSERT INTO bench.t SELECT i + 1, i * 7919 % 100000, i % 5000, i % 50, i % 100000 / 7, i % 30, 1 + i % 3, i % 8, CONCAT('note of order ', i), '2024-01-01' + INTERVAL i SECOND,"+
			" '2024-01-01' + INTERVAL i SECOND, i / 3, '2024-01-01' + INTERVAL i % 700 DAY FROM "+numbers(rows), "ANALYZE TABLE bench.t")
	_, plan, err := compat.Check(b.Context(), sourceConfig(s.Login), compat.Wishes{Database: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	var ours, theirs time.Duration
	for b.Loop() {
		begun := time.Now()
		r, err := Run(b.Context(), Config{Source: sourceConfig(s.Login), Plan: plan}, discard{})
		if err != nil || r.Rows != rows {
			b.Fatal(r, err)
		}
		ours += time.Since(begun)
		begun = time.Now()
		dump, err := s.Command(b.Context(), "mysqldump", "--single-transaction", "--set-gtid-purged=OFF", "bench", "t")
		if err != nil {
			b.Fatal(err)
		}
		dump.Stdout = io.Discard
		if err := dump.Run(); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(begun)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/ours.Seconds(), "rows/s")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "x-mysqldump")
}
