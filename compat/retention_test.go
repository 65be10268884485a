package compat

import (
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func set(t *testing.T, text string) gtid.Set {
	t.Helper()
	s, err := gtid.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMargin(t *testing.T) {
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	server, err := gtid.ParseUUID(uuid)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	files := []LogFile{{"binlog.000007", 1000}, {"binlog.000008", 500}, {"binlog.000009", 200}}
	day2 := Retention{Setting: "x", Keep: 48 * time.Hour}
	at := func(file string, offset uint64, age time.Duration) Held {
		return Held{Server: server, Time: now.Add(-age), Point: gtid.Point{Position: gtid.Position{File: file, Offset: offset}, Set: set(t, uuid+":1-50")}}
	}
	for _, tc := range []struct {
		name  string
		logs  Logs
		held  Held
		left  time.Duration // -1: not known
		older int
		ahead uint64
		code  string
	}{
		{"up to date", Logs{Files: files, Retention: day2}, at("binlog.000009", 200, 0), 48 * time.Hour, 2, 0, ""},
		{"a day behind", Logs{Files: files, Retention: day2}, at("binlog.000008", 100, 24*time.Hour), 24 * time.Hour, 1, 600, ""},
		{"nearly too late", Logs{Files: files, Retention: day2}, at("binlog.000008", 100, 40*time.Hour), 8 * time.Hour, 1, 600, "tight"},
		{"a clock that goes ahead", Logs{Files: files, Retention: day2}, at("binlog.000009", 200, -time.Hour), 48 * time.Hour, 2, 0, ""},
		{"in the oldest file", Logs{Files: files, Retention: Retention{Setting: "x", Forever: true}}, at("binlog.000007", 4, time.Hour), -1, 0, 1696, "oldest"},
		{"in the first file ever", Logs{Files: []LogFile{{"binlog.000001", 10}, {"binlog.000002", 10}}, Retention: day2}, at("binlog.000001", 4, 0), 48 * time.Hour, 0, 16, ""},
		{"in the only file", Logs{Files: files[2:], Retention: day2}, at("binlog.000009", 200, 0), 48 * time.Hour, 0, 0, ""},
		{"the file is gone", Logs{Files: files, Retention: day2}, at("binlog.000006", 100, time.Hour), 47 * time.Hour, -1, 0, "gone"},
		{"nothing is kept", Logs{Files: files, Retention: Retention{Setting: "x"}}, at("binlog.000009", 200, 0), 0, 2, 0, "none"},
		{"nothing is known", Logs{Files: files}, at("binlog.000009", 200, 0), -1, 2, 0, ""},
		{"the time is not known", Logs{Files: files, Retention: day2}, Held{Server: server, Point: gtid.Point{Position: gtid.Position{File: "binlog.000009", Offset: 200}}}, -1, 2, 0, ""},
	} {
		tc.logs.Server = server
		m := tc.logs.Margin(tc.held, now)
		if m.Known != (tc.left >= 0) || m.Known && m.Left != tc.left || m.Older != tc.older || m.Ahead != tc.ahead || m.Code != tc.code || (m.Code == "") != (m.Warning == "") {
			t.Errorf("%s: %+v", tc.name, m)
		}
	}

	// By GTIDs it is the purged set that counts, on another server too.
	logs := Logs{Server: server, Files: files, Retention: day2, Purged: set(t, uuid+":1-50")}
	held := at("other.000001", 4, 0)
	held.GTIDs, held.Server = true, gtid.UUID{1}
	if m := logs.Margin(held, now); m.Gone || m.Older != -1 || m.Code != "" {
		t.Errorf("%+v", m)
	}
	logs.Purged = set(t, uuid+":1-51")
	if m := logs.Margin(held, now); !m.Gone || m.Code != "gone" {
		t.Errorf("%+v", m)
	}
}

func TestReadLogs(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "SET GLOBAL binlog_expire_logs_seconds = 7200", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
	c := dial(t, s.Login)
	before, err := ReadLogs(t.Context(), c)
	if err != nil || len(before.Files) < 3 || before.Files[0].Size == 0 || before.Retention.Keep != 2*time.Hour || before.Server.IsZero() || !before.Purged.IsZero() {
		t.Fatalf("%+v %v", before, err)
	}
	s.Exec(t, "", "CREATE DATABASE more", "FLUSH BINARY LOGS")
	now, err := ReadLogs(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "", "PURGE BINARY LOGS TO '"+now.Files[len(now.Files)-1].Name+"'")
	after, err := ReadLogs(t.Context(), c)
	if err != nil || len(after.Files) != 1 || after.Purged.IsZero() || !after.everRemoved() || before.everRemoved() {
		t.Fatalf("%+v %v", after, err)
	}
	held := Held{Server: before.Server, GTIDs: true, Time: time.Now(), Point: gtid.Point{Position: gtid.Position{File: before.Files[0].Name, Offset: 4}}}
	if m := after.Margin(held, time.Now()); !m.Gone {
		t.Errorf("%+v", m)
	}
}
