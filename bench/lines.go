package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// linesTable is the 13-column table of all measures but the OLTP mix.
const linesTable = `CREATE TABLE line_items (
	id BIGINT NOT NULL PRIMARY KEY,
	order_id INT NOT NULL,
	part_id INT NOT NULL,
	supplier_id INT NOT NULL,
	quantity DECIMAL(10,2) NOT NULL,
	price DECIMAL(12,2) NOT NULL,
	discount DECIMAL(4,2) NOT NULL,
	tax DECIMAL(4,2) NOT NULL,
	return_flag CHAR(1) COLLATE utf8mb4_bin NOT NULL,
	status CHAR(1) COLLATE utf8mb4_bin NOT NULL,
	ship_date DATE NOT NULL,
	mode VARCHAR(10) COLLATE utf8mb4_bin NOT NULL,
	note VARCHAR(60) COLLATE utf8mb4_bin NOT NULL)`

var (
	modes = []string{"AIR", "SHIP", "RAIL", "TRUCK", "MAIL", "FOB", "REG AIR"}
	words = []string{"carefully", "final", "deposits", "sleep", "quickly", "bold", "requests", "among", "express", "ideas"}
)

// scramble is a cheap hash, so that row i has the same values wherever it is made.
func scramble(i int) uint64 {
	x := uint64(i) * 0x9E3779B97F4A7C15
	x ^= x >> 29
	x *= 0xBF58476D1CE4E5B9
	return x ^ x>>32
}

// appendLine appends row i as a line of tab-separated text. Updated rows have another quantity.
func appendLine(dst []byte, i int, updated bool) []byte {
	h := scramble(i)
	quantity := int(h%50) + 1
	price := (90000 + int(h>>8%110000)) * quantity
	if updated {
		quantity++
	}
	shipped := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(h>>12%2500)).Format(time.DateOnly)
	dst = fmt.Appendf(dst, "%d\t%d\t%d\t%d\t%d.00\t%d.%02d\t0.%02d\t0.%02d\t", i, i/4, h>>16%200000, h>>20%10000, quantity, price/100, price%100, h>>24%11, h>>28%9)
	dst = append(dst, "ANR"[h>>32%3], '\t', "OF"[h>>36%2], '\t')
	dst = append(dst, shipped...)
	dst = append(dst, '\t')
	dst = append(dst, modes[h>>40%7]...)
	dst = append(dst, '\t')
	for n := range 3 {
		dst = append(dst, words[h>>(44+4*n)%10]...)
		dst = append(dst, ' ')
	}
	dst = strconv.AppendUint(dst, h%100000, 10)
	return append(dst, '\n')
}

// lineReader reads rows first..end-1 as text.
func lineReader(first, end int) io.Reader {
	r, w := io.Pipe()
	go func() {
		buf := make([]byte, 0, 1<<20)
		for i := first; i < end; i++ {
			if buf = appendLine(buf, i, false); len(buf) > 1<<19 {
				if _, err := w.Write(buf); err != nil {
					return
				}
				buf = buf[:0]
			}
		}
		_, err := w.Write(buf)
		_ = w.CloseWithError(err)
	}()
	return r
}

// loadLines fills the table in transactions of 50,000 rows.
func loadLines(ctx context.Context, db *sql.DB, rows int) error {
	const batch = 50_000
	for first := 0; first < rows; first += batch {
		name := "lines" + strconv.Itoa(first)
		mysql.RegisterReaderHandler(name, func() io.Reader { return lineReader(first, min(first+batch, rows)) })
		_, err := db.ExecContext(ctx, "LOAD DATA LOCAL INFILE 'Reader::"+name+"' INTO TABLE line_items")
		mysql.DeregisterReaderHandler(name)
		if err != nil {
			return err
		}
	}
	return nil
}

// updateLines changes every tenth row.
func updateLines(ctx context.Context, db *sql.DB, rows int) error {
	const batch = 200_000
	for first := 0; first < rows; first += batch {
		if _, err := db.ExecContext(ctx, "UPDATE line_items SET quantity = quantity + 1 WHERE id >= ? AND id < ? AND id % 10 = 0", first, first+batch); err != nil {
			return err
		}
	}
	return nil
}

// allLines is the table's content after updateLines, as tab-separated text.
func allLines(w io.Writer, rows int) error {
	var buf bytes.Buffer
	line := []byte(nil)
	for i := range rows {
		line = appendLine(line[:0], i, i%10 == 0)
		buf.Write(line)
		if buf.Len() > 1<<20 {
			if _, err := buf.WriteTo(w); err != nil {
				return err
			}
		}
	}
	_, err := buf.WriteTo(w)
	return err
}
