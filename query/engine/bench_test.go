package engine

import (
	"path/filepath"
	"testing"
)

// Many small segments, as a busy source makes them between two flushes.
func BenchmarkSegments(b *testing.B) {
	e := open(b)
	table := Table{Schema: items()}
	for i := range 1000 {
		table.Segments = append(table.Segments, Segment{Record: itemRecord(b, items(), i*50, (i+1)*50)})
	}
	for _, q := range []struct{ name, sql string }{
		{"all columns", "SELECT * FROM "},
		{"one column", "SELECT sum(c1) FROM "},
		{"count", "SELECT count(*) FROM "},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				s, err := e.Scan(table)
				if err != nil {
					b.Fatal(err)
				}
				run(b, e, q.sql+s.SQL(), s)
			}
		})
	}
}

func BenchmarkDeletedRows(b *testing.B) {
	dir := b.TempDir()
	e := open(b, dir)
	part := writePart(b, filepath.Join(dir, "p.parquet"), itemRecord(b, items(), 0, 200_000))
	holed := part
	holed.Dead = dead(200_000, third)
	for name, p := range map[string]Part{"none": part, "a third": holed} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := e.Scan(Table{Schema: items(), Parts: []Part{p}})
				if err != nil {
					b.Fatal(err)
				}
				run(b, e, "SELECT sum(c3), max(c9) FROM "+s.SQL(), s)
			}
		})
	}
}

func run(b *testing.B, e *Engine, sql string, scans ...*Scan) {
	rows, err := e.Query(b.Context(), sql, scans...)
	if err != nil {
		b.Fatal(err)
	}
	for err == nil {
		_, err = rows.Next()
	}
	rows.Close()
}
