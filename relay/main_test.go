package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

func TestMain(m *testing.M) {
	code := mysqltest.Run(m)
	for _, s := range others {
		s.Close()
	}
	os.Exit(code)
}

// patience bounds every wait of the tests for a server.
const patience = 2 * time.Minute

func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// others are the package's servers besides the shared one, by their options.
var others = map[string]*mysqltest.Server{}

func server(t testing.TB, args ...string) *mysqltest.Server {
	t.Helper()
	if len(args) == 0 {
		return mysqltest.Shared(t)
	}
	key := strings.Join(args, " ")
	if others[key] == nil {
		s, err := mysqltest.StartServer(context.WithoutCancel(t.Context()), mysqltest.Options{Args: args})
		if errors.Is(err, mysqltest.ErrNotOwn) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		others[key] = s
	}
	return others[key]
}

var noGTIDs = []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}

// kinds runs a test with all the ways in which a source may write its log.
func kinds(t *testing.T, f func(t *testing.T, s *mysqltest.Server)) {
	for name, args := range map[string][]string{
		"gtid": nil, "position": noGTIDs, "gtid, no checksums": {"--binlog-checksum=NONE"},
		"position, no checksums": append([]string{"--binlog-checksum=NONE"}, noGTIDs...),
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t, args...)
			s.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t")
			f(t, s)
		})
	}
}

// here is the source's present end.
func here(t testing.TB, s *mysqltest.Server) gtid.Point {
	t.Helper()
	var file, doDB, ignoreDB, set string
	var offset uint64
	if err := s.DB(t, "").QueryRow("SHOW BINARY LOG STATUS").Scan(&file, &offset, &doDB, &ignoreDB, &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := gtid.ParseSet(set)
	if err != nil {
		t.Fatal(err)
	}
	return gtid.Point{Set: parsed, Position: gtid.Position{File: file, Offset: offset}}
}

func byPosition(t testing.TB, s *mysqltest.Server) bool {
	t.Helper()
	var mode string
	if err := s.DB(t, "").QueryRow("SELECT @@global.gtid_mode").Scan(&mode); err != nil {
		t.Fatal(err)
	}
	return mode != "ON"
}

// startHere is a Start at the present end; by position at the head of a fresh file.
func startHere(t testing.TB, s *mysqltest.Server) Start {
	t.Helper()
	if byPosition(t, s) {
		s.Exec(t, "", "FLUSH BINARY LOGS")
		p := here(t, s)
		p.Position.Offset = logStart
		return Start{Point: gtid.Point{Position: p.Position}, ByPosition: true}
	}
	return Start{Point: here(t, s)}
}

func source(s *mysqltest.Server) binlog.Config {
	return binlog.Config{Source: wire.Config{Host: s.Host, Port: s.Port, User: s.User, Password: s.Password}, ServerID: 4_000_000_001, Heartbeat: 100 * time.Millisecond, DeadAfter: time.Minute}
}

// recorder keeps what is logged.
func quiet(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, nil))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}

func openRelay(t testing.TB, cfg Config) *Relay {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	cfg.Logger = quiet(t)
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// started gives a relay that begins at the source's present end.
func started(t testing.TB, s *mysqltest.Server, cfg Config) *Relay {
	t.Helper()
	r := openRelay(t, cfg)
	if err := r.Reset(startHere(t, s)); err != nil {
		t.Fatal(err)
	}
	return r
}

// pulling runs Pull until the result is called, which gives its error.
func pulling(t testing.TB, r *Relay, cfg binlog.Config) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Pull(ctx, cfg, nil) }()
	stopped := false
	stop = func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		return <-ended
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// reached waits until the relay has everything up to a point.
func reached(t testing.TB, r *Relay, p gtid.Point) {
	t.Helper()
	ctx := timeout(t)
	for {
		r.mu.Lock()
		moved, end := r.moved, r.spooled.point
		done := end.Position.Compare(p.Position) >= 0
		if !r.byPosition() {
			done = end.Set.Contains(p.Set)
		}
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			t.Fatalf("the relay is at %s and not at %s", end, p)
		}
	}
}

// pulled lets a relay catch up with the source.
func pulled(t testing.TB, r *Relay, s *mysqltest.Server) {
	t.Helper()
	stop := pulling(t, r, source(s))
	reached(t, r, here(t, s))
	if err := stop(); binlog.ClassOf(err) != binlog.Cancelled {
		t.Fatal(err)
	}
}

// story tells a transaction in one line.
func story(t testing.TB, tx *binlog.Transaction) string {
	t.Helper()
	parts := []string{tx.Kind.String(), tx.GTID.String(), tx.Start.String(), tx.End.String(), tx.Source.String(), fmt.Sprint(tx.FileCreated, tx.OriginalCommit, tx.XID, tx.Skipped)}
	rows := 0
	for e, err := range tx.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *binlog.RowsEvent:
			rows++
			part := fmt.Sprintf("%s %s", e.Action, e.Table.Table)
			if parts[len(parts)-1] != part {
				parts = append(parts, part)
			}
		case *binlog.Statement:
			parts = append(parts, e.SQL)
		}
	}
	return strings.Join(append(parts, fmt.Sprint(rows, tx.Size())), "; ")
}

func onlyT(db, _ string) bool { return db == "t" }

// stories reads a relay from a point to its present end.
func stories(t testing.TB, r *Relay, from gtid.Point, cfg ReadConfig) []string {
	t.Helper()
	if cfg.Follow == nil {
		cfg.Follow = onlyT
	}
	rd, err := r.Read(from, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	return readAll(t, rd)
}

func readAll(t testing.TB, rd *Reader) []string {
	t.Helper()
	var out []string
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // at the end it does not wait
	for {
		tx, err := rd.Next(ctx)
		if err == io.EOF || binlog.ClassOf(err) == binlog.Cancelled {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if tx.Kind != binlog.Progress {
			out = append(out, story(t, tx))
		}
		if err := tx.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// streamed gives what a Stream delivers from a point to another.
func streamed(t testing.TB, s *mysqltest.Server, start Start, end gtid.Point) []string {
	t.Helper()
	cfg := source(s)
	cfg.Follow, cfg.AutoPosition, cfg.Start, cfg.SpillDir = onlyT, !start.ByPosition, start.Point, t.TempDir()
	if cfg.AutoPosition {
		cfg.Start.Position = gtid.Position{}
	}
	st, err := binlog.Open(timeout(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var out []string
	set := start.Point.Set
	for {
		tx, err := st.Next(timeout(t))
		if err != nil {
			t.Fatal(err)
		}
		if tx.Kind != binlog.Progress {
			out = append(out, story(t, tx))
		}
		set = set.Add(tx.GTID)
		done := tx.End.Compare(end.Position) >= 0 && set.Contains(end.Set)
		if err := tx.Release(); err != nil {
			t.Fatal(err)
		}
		if done {
			return out
		}
	}
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("%s, transaction %d of %d:\ngot  %.500s\nwant %.500s", what, i, len(want), g, w)
		}
	}
}

// busy writes a bit of everything.
func busy(t testing.TB, s *mysqltest.Server) {
	t.Helper()
	s.Exec(t, "t", "DROP TABLE IF EXISTS a", "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)", "INSERT INTO a (v) VALUES ('one'), ('two')",
		"UPDATE a SET v = 'three' WHERE v = 'two'", "SET binlog_transaction_compression = ON", "INSERT INTO a (v) SELECT REPEAT('c', 5000) FROM a", "SET binlog_transaction_compression = OFF",
		"FLUSH BINARY LOGS", "DELETE FROM a WHERE v = 'one'", "CREATE TABLE IF NOT EXISTS other.x (i INT)", "INSERT INTO other.x VALUES (1)",
		"XA START 'x'", "INSERT INTO a (v) VALUES ('xa')", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'", "ALTER TABLE a ADD c INT")
}
