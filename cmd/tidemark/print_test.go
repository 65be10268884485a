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
	failure, next := "no room", time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	list := []replica.Status{
		{Name: "shop", Source: "db:3306/shop", State: replica.StateStreaming, File: "binlog.000001", Position: 157, LagSeconds: &lag, RowsApplied: 12,
			Tables: []replica.TableStatus{{Name: "orders", State: "live", Rows: 3}, {Name: "bad", State: "quarantined", Error: &fault,
				Resync: &replica.ResyncStatus{State: replica.ResyncWaiting, Tries: 2, NextTry: &next, Error: &failure}}}},
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
a new copy of shop.bad: waiting: no room, next try at 2026-05-04 03:02:01
zoo: the source does not answer; it is tried again
`, b.String())
}

// A copy that is under way shows a bar a table, what was taken over, and how far the convergence is. SNAP-11
func TestPrintCopy(t *testing.T) {
	left := 90.0
	st := replica.Status{Name: "shop", State: replica.StateSnapshot, Copy: &replica.CopyProgress{
		Rows: 50, TotalRows: 200, TotalTables: 2, RowsPerSecond: 1234.5, LeftSeconds: &left, Resumed: true, RowsTakenOver: 40, Slowed: "63 threads run",
	}, Tables: []replica.TableStatus{
		{Name: "orders", State: "copying", Copy: &replica.TableCopy{Rows: 50, TotalRows: 100, RowsPerSecond: 10}}, {Name: "late", State: "copying"},
	}}
	var b bytes.Buffer
	require.NoError(t, printStatus(&b, []replica.Status{st}, true))
	require.Contains(t, b.String(), `
shop: 50 of about 200 rows (25 %), 0 of 2 tables, 1234 rows/s, 1m30s left; resumed behind 40 rows; slower for the source: 63 threads run

TABLE   STATE    ROWS  COPY
orders  copying  50    [############............] 50%, 10 rows/s
late    copying  0     
`)
	st.State, st.Copy = replica.StateConverging, &replica.CopyProgress{Converging: true, Tables: 1, TotalTables: 2, Position: "b.1:4", Until: "b.1:9", Again: []string{"late"}}
	require.Equal(t, "shop: all rows are here; the stream is at b.1:4 and has to pass b.1:9; 1 of 2 tables stand at its point, and 1 have to be copied again", copyText(&st))
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

func TestRelayText(t *testing.T) {
	require.Empty(t, relayText(nil))
	require.Equal(t, "1.5 MiB of the source's log are spooled, up to binlog.000002:157\n", relayText(&replica.RelayStatus{Bytes: 3 << 19, File: "binlog.000002", Position: 157}))
	require.Equal(t, "2.0 MiB of the source's log are spooled, up to a:1-5,b:1-7; no more is read from the source until some of it is applied (relay_max_bytes)\n",
		relayText(&replica.RelayStatus{Bytes: 2 << 20, GTIDSet: "a:1-5,\nb:1-7", Full: true}))
}

func TestReplayStatement(t *testing.T) {
	got, err := replayStatement("shop", "", "/b", "", []string{"exclude_tables=x"})
	require.NoError(t, err)
	require.Equal(t, "CREATE DATABASE IF NOT EXISTS `shop` ENGINE = MaterializedMySQL('files', 'shop', '-', '') SETTINGS `binlog_dir` = '/b', `exclude_tables` = 'x'", got)
	_, err = replayStatement("shop", "mysql://a:b@c/d", "/b", "", nil)
	require.Error(t, err)
}
