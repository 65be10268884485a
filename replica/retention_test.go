package replica

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func TestEnds(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 30, 12, minute, 0, 0, time.UTC) }
	look := func(server byte, size uint64) *compat.Logs {
		return &compat.Logs{Server: gtid.UUID{server}, Files: []compat.LogFile{{Name: "binlog.000001", Size: 9}, {Name: "binlog.000002", Size: size}}}
	}
	pos := func(offset uint64) gtid.Position { return gtid.Position{File: "binlog.000002", Offset: offset} }
	var e ends
	require.True(t, e.reached(pos(100)).IsZero())
	e.see(look(1, 100), at(1))
	e.see(look(1, 200), at(2))
	e.see(look(1, 300), at(3))
	require.True(t, e.reached(pos(99)).IsZero())
	require.Equal(t, at(2), e.reached(pos(299)))
	e.see(look(1, 300), at(8)) // idle
	require.Equal(t, at(8), e.reached(pos(300)))
	require.True(t, e.reached(gtid.Position{File: "other.000009", Offset: 4}).IsZero())
	e.see(look(2, 50), at(9))
	require.Equal(t, at(9), e.reached(pos(60)))
	for i := range 3 * maxEnds {
		e.see(look(2, uint64(1000+i)), at(10).Add(time.Duration(i)*time.Second))
	}
	require.LessOrEqual(t, len(e.seen), maxEnds)
	require.False(t, e.reached(pos(100_000)).IsZero())
}

// The margin is in the status, gets tight when the reader is away, and what happens is in the log. SNAP-07, OPS-12
func TestRetentionWatch(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY)", "SET GLOBAL binlog_expire_logs_seconds = 7200", "FLUSH BINARY LOGS")
	f.create()
	f.streaming()
	kept := func(what string, cond func(*Retention) bool) {
		t.Helper()
		var last Retention
		defer func() {
			if t.Failed() {
				t.Logf("%s: %+v, %v files older", what, last, last.OlderFiles)
			}
		}()
		f.wait(what, func(st Status) bool {
			if st.Retention == nil {
				return false
			}
			last = *st.Retention
			return cond(st.Retention)
		})
	}
	kept("two hours", func(r *Retention) bool {
		return r.Setting == "binlog_expire_logs_seconds = 7200" && r.HoursLeft != nil && *r.HoursLeft > 1.9 && *r.Hours == 2 && r.OlderFiles != nil && *r.OlderFiles > 0 && r.Warning == nil
	})
	// Only what is foreign is written, in file after file: the position moves on. OPS-12
	f.exec("CREATE DATABASE foreign_db", "FLUSH BINARY LOGS", "DROP DATABASE foreign_db", "FLUSH BINARY LOGS")
	kept("the newest file", func(r *Retention) bool { return *r.OlderFiles >= 3 && r.BytesAhead == 0 })
	f.exec("SET GLOBAL binlog_expire_logs_seconds = 0")
	kept("no end", func(r *Retention) bool { return r.Forever && r.HoursLeft == nil && r.Hours == nil })
	// It is looked at while nobody reads, too.
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	f.exec("SET GLOBAL binlog_expire_logs_seconds = 4", "INSERT INTO a VALUES (1)")
	kept("little time", func(r *Retention) bool {
		return r.Warning != nil && strings.Contains(*r.Warning, "is there for") && r.BytesAhead > 0
	})
	require.Contains(t, logged(f, "retention"), "what is needed next is there for")
	f.exec("SET GLOBAL binlog_expire_logs_seconds = 7200")
	kept("enough", func(r *Retention) bool { return r.Warning == nil })
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	f.caughtUp()
	require.Equal(t, "1", f.rows("a"))
}

func logged(f *fixture, kind string) string {
	text := ""
	for _, e := range f.manager.Log(1000) {
		if e.Kind == kind {
			text += e.Message + "\n"
		}
	}
	return text
}
