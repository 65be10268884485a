package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// sample is a small relay of several files, with what it delivers.
type sample struct {
	dir   string
	start Start
	want  []string
	files []*file
}

// samples makes a relay by GTIDs and one by position.
func samples(t *testing.T, f func(t *testing.T, s sample)) {
	for name, args := range map[string][]string{"gtid": nil, "position": noGTIDs} {
		t.Run(name, func(t *testing.T) {
			src := server(t, args...)
			src.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t")
			r := started(t, src, Config{FileBytes: 1200})
			start, _ := r.Begin()
			src.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(100))", "INSERT INTO a VALUES (1, 'one')", "UPDATE a SET v = 'two'",
				"INSERT INTO a VALUES (3, 'three'), (4, 'four')", "FLUSH BINARY LOGS", "SET binlog_transaction_compression = ON", "DELETE FROM a WHERE id = 1", "INSERT INTO a VALUES (5, 'five')")
			pulled(t, r, src)
			s := sample{dir: r.cfg.Dir, start: start, want: stories(t, r, start.Point, ReadConfig{}), files: r.snapshot()}
			if len(s.want) != 6 || len(s.files) < 2 {
				t.Fatalf("%d transactions in %d files", len(s.want), len(s.files))
			}
			f(t, s)
		})
	}
}

// copied copies a relay's directory; index says whether what is known to be durable goes along.
func copied(t testing.TB, dir string, index bool) string {
	t.Helper()
	to := t.TempDir()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == indexName && !index {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func openQuietly(dir string) (*Relay, error) {
	return Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
}

// prefix makes sure that got is how want begins.
func prefix(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(got) > len(want) {
		t.Fatalf("%s: %d transactions", what, len(got))
	}
	same(t, what, got, want[:len(got)])
}

// EXACT-18: a crash may leave the newest file at any length: whole transactions count, and what is torn is cut off. The
// end of the relay is where the last one ends.
func TestTornTail(t *testing.T) {
	samples(t, func(t *testing.T, s sample) {
		last := s.files[len(s.files)-1]
		whole, err := os.ReadFile(filepath.Join(s.dir, last.name))
		if err != nil {
			t.Fatal(err)
		}
		dir := copied(t, s.dir, false)
		counts := map[int]bool{}
		for n := len(whole); n >= 0; n-- {
			if err := os.WriteFile(filepath.Join(dir, last.name), whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := openQuietly(dir)
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			got := stories(t, r, s.start.Point, ReadConfig{})
			prefix(t, fmt.Sprintf("%d bytes", n), got, s.want)
			counts[len(got)] = true
			if id := r.Last(); len(got) > 0 && !bytes.Contains([]byte(got[len(got)-1]), []byte(id.Start.String())) {
				t.Fatalf("%d bytes: the last transaction is %+v, delivered was %s", n, id, got[len(got)-1])
			}
		}
		if len(counts) < 2 {
			t.Errorf("numbers of transactions: %v", counts)
		}
	})
}

// A tail of bytes that never reached the disk (zeros, or garbage) is cut off like a short one.
func TestTailOfZeros(t *testing.T) {
	samples(t, func(t *testing.T, s sample) {
		last := s.files[len(s.files)-1]
		whole, err := os.ReadFile(filepath.Join(s.dir, last.name))
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(whole); n += 7 {
			dir := copied(t, s.dir, false)
			torn := append(slices.Clone(whole[:n]), make([]byte, len(whole)-n+100)...)
			if err := os.WriteFile(filepath.Join(dir, last.name), torn, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := openQuietly(dir)
			if err != nil {
				t.Fatalf("zeros from %d on: %v", n, err)
			}
			prefix(t, "zeros", stories(t, r, s.start.Point, ReadConfig{}), s.want)
		}
	})
}

// EXACT-18: damage to what was durable is an error that says so, at Open or when it is read, and never an end.
func TestDamage(t *testing.T) {
	samples(t, func(t *testing.T, s sample) {
		dir := copied(t, s.dir, true)
		for _, f := range s.files {
			path := filepath.Join(dir, f.name)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damage := func(what string, b []byte) {
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := readThrough(dir, s.start.Point); !errors.As(err, new(*DamageError)) {
					t.Errorf("%s, %s: %v", f.name, what, err)
				}
			}
			for i := 0; i < len(whole); i++ {
				b := bytes.Clone(whole)
				b[i] ^= 1 << (i % 8)
				damage(fmt.Sprintf("byte %d", i), b)
			}
			for _, n := range []int{0, 1, 4, 100, len(whole) / 2, len(whole) - 1} {
				damage(fmt.Sprintf("%d bytes", n), whole[:n])
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := readThrough(dir, s.start.Point); f != s.files[0] && !errors.As(err, new(*DamageError)) {
				t.Errorf("%s is missing: %v", f.name, err)
			} else if f == s.files[0] && !errors.As(err, new(*NotSpooledError)) {
				t.Errorf("the first file is missing: %v", err)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := readThrough(dir, s.start.Point); err != io.EOF {
			t.Errorf("undamaged: %v", err)
		}
	})
}

// readThrough reads a relay from a point to its end, which is io.EOF.
func readThrough(dir string, from gtid.Point) error {
	r, err := openQuietly(dir)
	if err != nil {
		return err
	}
	return readAllOf(r, from)
}

func readAllOf(r *Relay, from gtid.Point) error {
	rd, err := r.Read(from, ReadConfig{})
	if err != nil {
		return err
	}
	defer rd.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		tx, err := rd.Next(ctx)
		if binlog.ClassOf(err) == binlog.Cancelled {
			return io.EOF
		}
		if err != nil {
			return err
		}
		if err := tx.Release(); err != nil {
			return err
		}
	}
}

// A file that lost its end without a trace, and of which nothing says how long it was, does not hide that transactions are
// missing: what comes behind it is dropped, at Open or when it is read.
func TestGap(t *testing.T) {
	samples(t, func(t *testing.T, s sample) {
		if s.start.ByPosition {
			return // a server that died leaves a file without an end, too
		}
		tried := 0
		for i := range s.files[:len(s.files)-1] {
			dir := copied(t, s.dir, false)
			r := openRelay(t, Config{Dir: dir})
			count := 0
			cut, err := r.scan(r.files[i], func(*binlog.Transaction) bool { count++; return count > 1 })
			if err != nil {
				t.Fatal(err)
			}
			if cut.size == r.files[i].size {
				continue // it has one transaction
			}
			tried++
			if err := os.Truncate(filepath.Join(dir, r.files[i].name), cut.size); err != nil {
				t.Fatal(err)
			}
			if err := readAllOf(r, s.start.Point); !errors.As(err, new(*DamageError)) {
				t.Errorf("%s cut while it is open: %v", r.files[i].name, err)
			}
			again := openRelay(t, Config{Dir: dir})
			got := stories(t, again, s.start.Point, ReadConfig{})
			prefix(t, "after a gap", got, s.want)
			if len(got) == len(s.want) {
				t.Errorf("%s cut: nothing is missing", r.files[i].name)
			}
		}
		if tried == 0 {
			t.Error("no file has two transactions")
		}
	})
}

// A relay without its list of what is durable, or with a torn one, opens all the same.
func TestIndexLost(t *testing.T) {
	samples(t, func(t *testing.T, s sample) {
		whole, err := os.ReadFile(filepath.Join(s.dir, indexName))
		if err != nil {
			t.Fatal(err)
		}
		if x, ok := decodeIndex(whole); !ok || len(x) != len(s.files) {
			t.Errorf("the list is %v, of %d files", x, len(s.files))
		}
		dir := copied(t, s.dir, false)
		for n := range whole {
			if err := os.WriteFile(filepath.Join(dir, indexName), whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			r := openRelay(t, Config{Dir: dir})
			same(t, "without a list", stories(t, r, s.start.Point, ReadConfig{}), s.want)
		}
	})
}

// After a crash anywhere, pulling goes on where the relay ends, and gives what there would have been.
func TestPullAfterTornTail(t *testing.T) {
	for name, args := range map[string][]string{"gtid": nil, "position": noGTIDs} {
		t.Run(name, func(t *testing.T) {
			src := server(t, args...)
			src.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t")
			r := started(t, src, Config{FileBytes: 2000})
			start, _ := r.Begin()
			src.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)", "INSERT INTO a VALUES (3)")
			pulled(t, r, src)
			dir := copied(t, r.cfg.Dir, false)
			src.Exec(t, "t", "INSERT INTO a VALUES (4)", "FLUSH BINARY LOGS", "INSERT INTO a VALUES (5)")
			pulled(t, r, src)
			want := stories(t, r, start.Point, ReadConfig{})
			files := r.snapshot()
			path := filepath.Join(dir, files[0].name)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for n := len(whole); n >= 0; n -= 97 {
				again := copied(t, dir, false)
				if err := os.Truncate(filepath.Join(again, files[0].name), int64(n)); err != nil {
					t.Fatal(err)
				}
				r := openRelay(t, Config{Dir: again, FileBytes: 2000})
				if _, ok := r.Begin(); !ok {
					if err := r.Reset(start); err != nil {
						t.Fatal(err)
					}
				}
				pulled(t, r, src)
				same(t, fmt.Sprintf("cut at %d", n), stories(t, r, start.Point, ReadConfig{}), want)
			}
		})
	}
}

// failing is a file on a disk that has room for so many bytes.
type failing struct {
	output
	room *int
}

var errNoSpace = errors.New("no space left on device")

func (f failing) Write(b []byte) (int, error) {
	n := min(len(b), *f.room)
	*f.room -= n
	if m, err := f.output.Write(b[:n]); err != nil || n == len(b) {
		return m, err
	}
	return n, errNoSpace
}

// RES-08: a disk that is full at any byte leaves a relay that ends behind a transaction, and can go on.
func TestDiskFull(t *testing.T) {
	samples(t, func(t *testing.T, s sample) {
		for room := 0; room < 1500; room += 53 {
			r := openRelay(t, Config{})
			if err := r.Reset(s.start); err != nil {
				t.Fatal(err)
			}
			left := room
			err := feed(t, r, s, func(o output) output { return failing{o, &left} })
			if left == 0 && (!errors.Is(err, errNoSpace) || binlog.ClassOf(err) != binlog.Local) {
				t.Fatalf("room for %d bytes: %v", room, err)
			}
			prefix(t, fmt.Sprintf("room for %d bytes", room), stories(t, r, s.start.Point, ReadConfig{}), s.want)
			again, err := openQuietly(r.cfg.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := again.Begin(); ok {
				same(t, "opened again", stories(t, again, s.start.Point, ReadConfig{}), stories(t, r, s.start.Point, ReadConfig{}))
			}
		}
	})
}

// feed writes the events of a sample into a relay as Pull does.
func feed(t testing.TB, r *Relay, s sample, disk func(output) output) error {
	t.Helper()
	w, err := r.newWriter(s.files[0].source)
	if err != nil {
		t.Fatal(err)
	}
	w.wrap = disk
	for _, f := range s.files {
		if err := feedFile(w, s, f); err != nil {
			return only(err, w.flush(), w.close()) // as Pull does
		}
	}
	return only(w.flush(), w.close())
}

func feedFile(w *writer, s sample, f *file) error {
	in, err := os.Open(filepath.Join(s.dir, f.name))
	if err != nil {
		return err
	}
	defer in.Close()
	walk, err := binlog.NewFileWalk(in, f.source, f.log)
	if err != nil {
		return err
	}
	if f.log != "" {
		if err := w.take(nil, binlog.Step{Mark: binlog.MarkSwitch, Position: f.begin.Position}); err != nil {
			return err
		}
	}
	for {
		raw, step, err := walk.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = w.take(raw, step)
		}
		if err == nil {
			err = w.flush()
		}
		if err != nil {
			return err
		}
	}
}

// Half a transaction that a dying connection leaves behind is never seen, and is overwritten.
func TestConnectionLostInATransaction(t *testing.T) {
	samples(t, func(t *testing.T, s sample) {
		r := openRelay(t, Config{})
		if err := r.Reset(s.start); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(filepath.Join(s.dir, s.files[0].name))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		walk, err := binlog.NewFileWalk(in, s.files[0].source, s.files[0].log)
		if err != nil {
			t.Fatal(err)
		}
		w, err := r.newWriter(s.files[0].source)
		if err != nil {
			t.Fatal(err)
		}
		if s.start.ByPosition {
			if err := w.take(nil, binlog.Step{Mark: binlog.MarkSwitch, Position: s.files[0].begin.Position}); err != nil {
				t.Fatal(err)
			}
		}
		for done := 0; done < 2 || !w.inside; {
			raw, step, err := walk.Next()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.take(raw, step); err != nil {
				t.Fatal(err)
			}
			if step.Transaction != nil {
				done++
			}
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "in a transaction", stories(t, r, s.start.Point, ReadConfig{}), s.want[:2])
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		again := openRelay(t, Config{Dir: r.cfg.Dir})
		same(t, "opened again", stories(t, again, s.start.Point, ReadConfig{}), s.want[:2])
	})
}

// A disk without room to spare ends pulling, at any place, and what was whole stays; with room it goes on.
func TestNoRoomToSpare(t *testing.T) {
	src := server(t)
	src.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t")
	var full atomic.Bool
	r := started(t, src, Config{FileBytes: 2000, Room: func() error {
		if full.Load() {
			return errNoSpace
		}
		return nil
	}})
	start, _ := r.Begin()
	src.Exec(t, "t", "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(2000))", "INSERT INTO a VALUES (1, REPEAT('x', 2000))")
	pulled(t, r, src)
	full.Store(true)
	if err := r.Pull(timeout(t), source(src), nil); !errors.Is(err, errNoSpace) || binlog.ClassOf(err) != binlog.Local {
		t.Errorf("without room: %v", err)
	}
	full.Store(false)
	src.Exec(t, "t", "INSERT INTO a VALUES (2, 'two')")
	pulled(t, r, src)
	same(t, "with room again", stories(t, r, start.Point, ReadConfig{}), streamed(t, src, start, here(t, src)))
}
