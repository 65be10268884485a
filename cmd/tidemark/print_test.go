package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/replica"
)

func TestPrintStatus(t *testing.T) {
	lag, fault := 1.25, "the source does not answer; it is tried again"
	list := []replica.Status{
		{Name: "shop", Source: "db:3306/shop", State: replica.StateStreaming, File: "binlog.000001", Position: 157, LagSeconds: &lag, RowsApplied: 12,
			Tables: []replica.TableStatus{{Name: "orders", State: "live", Rows: 3}, {Name: "bad", State: "quarantined", Error: &fault}}},
		{Name: "zoo", Source: "db:3306/zoo", State: replica.StateSnapshot, Copy: &replica.CopyProgress{Rows: 50, TotalRows: 200}, Error: &fault},
	}
	var b bytes.Buffer
	require.NoError(t, printStatus(&b, list, true))
	require.Equal(t, `DATABASE  STATE         LAG      ROWS APPLIED  POINT              SOURCE
shop      streaming     1.2 s    12            binlog.000001:157  db:3306/shop
zoo       snapshot 25%  unknown  0             no point yet       db:3306/zoo

TABLE   STATE        ROWS
orders  live         3
bad     quarantined  0
shop.bad is in quarantine: the source does not answer; it is tried again
zoo: the source does not answer; it is tried again
`, b.String())
}

// Without a terminal the progress is a line now and then, and never claims to be complete.
func TestProgressWithoutTerminal(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	st := &replica.Status{Name: "shop", Copy: &replica.CopyProgress{}}
	p.show(st)
	st.Copy = &replica.CopyProgress{Rows: 210, TotalRows: 200, Tables: 1, TotalTables: 2}
	p.show(st) // too early for another line
	require.Equal(t, "shop: the copy begins\n", b.String())
	p.last = time.Time{}
	p.show(st)
	p.end()
	require.True(t, strings.HasSuffix(b.String(), "\nshop: 210 of about 200 rows (99 %), 1 of 2 tables\n"), b.String())
}

func TestProgressBar(t *testing.T) {
	var b bytes.Buffer
	p := &progress{out: &b, terminal: true}
	p.show(&replica.Status{Name: "shop", Copy: &replica.CopyProgress{Rows: 50, TotalRows: 100, TotalTables: 1}})
	require.Equal(t, "\r\x1b[K[############............] shop: 50 of about 100 rows (50 %), 0 of 1 tables", b.String())
	p.end()
	require.True(t, strings.HasSuffix(b.String(), "\r\x1b[K"))
}
