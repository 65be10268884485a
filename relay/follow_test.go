package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// nextOf waits for a transaction and leaves out progress.
func nextOf(t testing.TB, rd *Reader) *binlog.Transaction {
	t.Helper()
	for {
		tx, err := rd.Next(timeout(t))
		if err != nil {
			t.Fatal(err)
		}
		if tx.Kind != binlog.Progress {
			t.Cleanup(func() { tx.Release() })
			return tx
		}
	}
}

// Readers follow while the source writes and the connection is cut again and again: each gets everything, once, in order.
func TestManyReadersFollow(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		r := started(t, s, Config{FileBytes: 8 << 10})
		start, _ := r.Begin()
		s.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY, v TEXT)")
		const count = 300
		var wg sync.WaitGroup
		for i := range 3 {
			rd, err := r.Read(start.Point, ReadConfig{Follow: onlyT, SpillBytes: int64(1 + i*1000)})
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer rd.Close()
				for next := 0; next <= count; {
					tx, err := rd.Next(timeout(t))
					if err != nil {
						t.Error(err)
						return
					}
					if tx.Kind != binlog.Progress {
						want := fmt.Sprintf("/* %d */", next)
						if got := story(t, tx); next > 0 && tx.XID == 0 || next == 0 && tx.Kind != binlog.DDL {
							t.Errorf("%s: got %s", want, got)
						}
						next++
					}
					if err := tx.Release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range count {
				s.Exec(t, "t", fmt.Sprintf("INSERT INTO a VALUES (%d, REPEAT('x', %d))", i, i*7))
				if i%100 == 50 {
					s.Exec(t, "t", "FLUSH BINARY LOGS")
				}
			}
		}()
		for running := true; running; {
			stop := pulling(t, r, source(s))
			select {
			case <-done:
				running = false
				reached(t, r, here(t, s))
			case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
			}
			if err := stop(); binlog.ClassOf(err) != binlog.Cancelled {
				t.Fatal(err)
			}
		}
		wg.Wait()
		same(t, "in the end", stories(t, r, start.Point, ReadConfig{}), streamed(t, s, start, here(t, s)))
	})
}

// PROTO-09: an idle source gives signs of life, up to its own end; a silent one gives none.
func TestProgress(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		r := started(t, s, Config{})
		start, _ := r.Begin()
		s.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY)")
		stop := pulling(t, r, source(s))
		rd, err := r.Read(start.Point, ReadConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		nextOf(t, rd)
		s.Exec(t, "", "FLUSH BINARY LOGS")
		end := here(t, s)
		for range 3 {
			for {
				tx, err := rd.Next(timeout(t))
				if err != nil {
					t.Fatal(err)
				}
				if tx.Kind != binlog.Progress {
					t.Fatalf("got %s", story(t, tx))
				}
				if tx.End.File == end.Position.File {
					break
				}
			}
		}
		if err := stop(); binlog.ClassOf(err) != binlog.Cancelled {
			t.Fatal(err)
		}
		for { // what came before the stop
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err := rd.Next(ctx)
			cancel()
			if err != nil {
				if binlog.ClassOf(err) != binlog.Cancelled {
					t.Error(err)
				}
				break
			}
		}
		s.Exec(t, "t", "INSERT INTO a VALUES (1)")
		pulling(t, r, source(s))
		if tx := nextOf(t, rd); tx.Kind != binlog.Empty && tx.Kind != binlog.Rows { // Next may be called again after Cancelled
			t.Errorf("got %s", tx)
		}
	})
}

// write commits rows until the relay has so many bytes more to take than it may.
func write(t testing.TB, s *mysqltest.Server, count int) {
	t.Helper()
	for range count {
		s.Exec(t, "t", "INSERT INTO a (v) VALUES (REPEAT('x', 3000))")
	}
}

// waitFull waits until pulling pauses, or no longer does.
func waitFull(t testing.TB, r *Relay, full bool) {
	t.Helper()
	for ctx := timeout(t); r.Status().Full != full; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("full is %t, %+v", !full, r.Status())
		}
	}
}

// At the bound pulling pauses; nothing is lost, and as much as was applied makes room again. RES-02
func TestBound(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		r := started(t, s, Config{MaxBytes: 40 << 10, FileBytes: 8 << 10})
		start, _ := r.Begin()
		s.Exec(t, "t", "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
		write(t, s, 40)
		pulling(t, r, source(s))
		waitFull(t, r, true)
		if n := r.Status().Bytes; n < 40<<10 || n > 50<<10 {
			t.Errorf("%d bytes", n)
		}
		rd, err := r.Read(start.Point, ReadConfig{Follow: onlyT})
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		p := start.Point
		for range 41 {
			tx := nextOf(t, rd)
			if p.Position = tx.End; !start.ByPosition {
				p.Set = p.Set.Add(tx.GTID)
			}
			if err := r.Prune(p); err != nil {
				t.Fatal(err)
			}
			if n := r.Status().Bytes; !start.ByPosition && n > 50<<10 {
				t.Errorf("%d bytes", n)
			}
		}
		reached(t, r, here(t, s))
		if files := r.snapshot(); !start.ByPosition && len(files) > 2 {
			t.Errorf("%d files are left", len(files))
		}
		if begin, _ := r.Begin(); !r.Consumed(p) || !start.ByPosition && begin.Point.Set.Equal(start.Point.Set) {
			t.Errorf("begins at %s, read to %s", begin.Point, p)
		}
	})
}

// One transaction larger than the bound passes.
func TestTransactionBeyondTheBound(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		r := started(t, s, Config{MaxBytes: 20 << 10, FileBytes: 8 << 10})
		start, _ := r.Begin()
		s.Exec(t, "t", "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)", "INSERT INTO a (v) VALUES (REPEAT('x', 60000)), (REPEAT('y', 60000))", "INSERT INTO a (v) VALUES ('behind')")
		pulling(t, r, source(s))
		rd, err := r.Read(start.Point, ReadConfig{Follow: onlyT})
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		p := start.Point
		for range 3 {
			tx := nextOf(t, rd)
			if p.Position = tx.End; !start.ByPosition {
				p.Set = p.Set.Add(tx.GTID)
			}
			if err := r.Prune(p); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A hold keeps files, and pulling pauses for it at the bound until it moves.
func TestHold(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		r := started(t, s, Config{MaxBytes: 40 << 10, FileBytes: 8 << 10})
		start, _ := r.Begin()
		s.Exec(t, "t", "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
		hold := r.Hold(start.Point)
		pulling(t, r, source(s))
		write(t, s, 40)
		waitFull(t, r, true)
		if err := r.Prune(r.End()); err != nil {
			t.Fatal(err)
		}
		if begin, _ := r.Begin(); !begin.Point.Equal(start.Point) && !start.ByPosition || !r.Status().Full {
			t.Errorf("what is held was pruned, or more was pulled: %+v, %+v", begin, r.Status())
		}
		rd, err := r.Read(start.Point, ReadConfig{Follow: onlyT})
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		for p := start.Point; !p.Set.Contains(here(t, s).Set) || start.ByPosition && p.Position.Compare(here(t, s).Position) < 0; {
			tx := nextOf(t, rd)
			if p.Position = tx.End; !start.ByPosition {
				p.Set = p.Set.Add(tx.GTID)
			}
			hold.Move(p)
			if err := r.Prune(r.End()); err != nil {
				t.Fatal(err)
			}
		}
		hold.Release()
		hold.Release()
		if err := r.Prune(r.End()); err != nil {
			t.Fatal(err)
		}
		if n := len(r.snapshot()); n > 2 {
			t.Errorf("%d files are left", n)
		}
	})
}

// Cut takes the tail back, at any transaction, and what comes then is read on.
func TestCut(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		r := started(t, s, Config{FileBytes: 1000})
		start, _ := r.Begin()
		s.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO a VALUES (3)", "INSERT INTO a VALUES (4)")
		pulled(t, r, s)
		want := stories(t, r, start.Point, ReadConfig{})
		rd, err := r.Read(start.Point, ReadConfig{Follow: onlyT})
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		points := []gtid.Point{start.Point}
		for range want {
			tx := nextOf(t, rd)
			p := gtid.Point{Set: points[len(points)-1].Set, Position: tx.End}
			if !start.ByPosition {
				p.Set = p.Set.Add(tx.GTID)
			}
			points = append(points, p)
		}
		for i := len(points) - 1; i >= 0; i-- {
			if err := r.Cut(points[i]); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("cut behind %d", i), stories(t, r, start.Point, ReadConfig{}), want[:i])
			if id := r.Last(); i > 0 && (id.IsZero() || !strings.Contains(want[i-1], id.Start.String())) {
				t.Errorf("cut behind %d: the last one is %+v", i, r.Last())
			}
			again := openRelay(t, Config{Dir: r.cfg.Dir})
			if _, ok := again.Begin(); ok {
				same(t, "opened again", stories(t, again, start.Point, ReadConfig{}), want[:i])
			}
		}
		var gone *GoneError
		if _, err := rd.Next(timeout(t)); !errors.As(err, &gone) {
			t.Errorf("a reader beyond the cut: %v", err)
		}
		pulled(t, r, s)
		same(t, "pulled again", stories(t, r, start.Point, ReadConfig{}), want)
	})
}

// Events larger than a packet, and transactions that are not held in memory.
func TestLargeEvents(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		r := started(t, s, Config{})
		start, _ := r.Begin()
		s.Exec(t, "", "SET GLOBAL max_allowed_packet = 1073741824")
		s.Exec(t, "t", "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)", "INSERT INTO a (v) VALUES (REPEAT('x', 17000000))", "INSERT INTO a (v) VALUES (REPEAT('y', 16777216 - 80))",
			"SET binlog_transaction_compression = ON", "INSERT INTO a (v) VALUES (REPEAT('z', 17000000))", "SET binlog_transaction_compression = OFF", "UPDATE a SET v = CONCAT(v, '!') WHERE id = 1")
		pulled(t, r, s)
		spill := t.TempDir()
		want := streamed(t, s, start, here(t, s))
		same(t, "the relay", stories(t, r, start.Point, ReadConfig{}), want)
		same(t, "the relay, nothing in memory", stories(t, r, start.Point, ReadConfig{SpillBytes: 1}), want)
		if left, err := os.ReadDir(spill); err != nil || len(left) > 0 {
			t.Errorf("spilled: %v, %v", left, err)
		}
	})
}

// A transaction that was delivered stays readable when its file is pruned and its reader closed.
func TestLargeTransactionOutlivesItsFile(t *testing.T) {
	s := server(t)
	s.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t")
	r := started(t, s, Config{FileBytes: 100})
	start, _ := r.Begin()
	s.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)", "INSERT INTO a VALUES (3)")
	pulled(t, r, s)
	rd, err := r.Read(start.Point, ReadConfig{Follow: onlyT, SpillBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	nextOf(t, rd)
	tx := nextOf(t, rd)
	if err := rd.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Prune(r.End()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.snapshot()); n != 1 {
		t.Errorf("%d files", n)
	}
	if got := story(t, tx); !strings.Contains(got, "insert a") || !tx.Spilled() {
		t.Errorf("got %s", got)
	}
}

// An archive is a server's own directory, and is left as it is.
func TestArchive(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Own: true})
	s.Exec(t, "", "CREATE DATABASE t", "CREATE DATABASE other")
	busy(t, s)
	end := here(t, s)
	r, err := OpenArchive(s.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	begin, _ := r.Begin()
	want := streamed(t, s, Start{}, end)
	got := stories(t, r, begin.Point, ReadConfig{})
	for i := range got { // files do not say whose they are
		got[i] = strings.Replace(got[i], gtid.UUID{}.String(), r0(want[i]), 1)
	}
	same(t, "the archive", got, want)

	dir := t.TempDir()
	if _, err := OpenArchive(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no files: %v", err)
	}
	whole, err := os.ReadFile(filepath.Join(s.DataDir(), "binlog.000001"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "binlog.000001"), whole[:len(whole)-10], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := readArchive(t, dir); binlog.ClassOf(err) != binlog.Corrupt {
		t.Errorf("a file that ends within an event: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "binlog.000003"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArchive(dir); err == nil || !strings.Contains(err.Error(), "is missing") || errors.As(err, new(*DamageError)) {
		t.Errorf("a file is missing: %v", err)
	}
}

// r0 is the source in a story.
func r0(story string) string { return strings.Split(story, "; ")[4] }

func readArchive(t testing.TB, dir string) error {
	t.Helper()
	r, err := OpenArchive(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin, _ := r.Begin()
	rd, err := r.Read(begin.Point, ReadConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	for {
		tx, err := rd.Next(timeout(t))
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
