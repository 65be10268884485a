package relay

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// What a Reader delivers is what a Stream does, whatever the source writes, and again after a restart.
func TestSameAsStream(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE DATABASE IF NOT EXISTS other")
		r := started(t, s, Config{FileBytes: 4 << 10})
		begin, _ := r.Begin()
		busy(t, s)
		pulled(t, r, s)
		busy(t, s)
		pulled(t, r, s)
		want := streamed(t, s, begin, here(t, s))
		same(t, "the relay", stories(t, r, begin.Point, ReadConfig{}), want)
		if n := len(r.snapshot()); n < 3 {
			t.Errorf("%d files", n)
		}
		last := r.Last()
		again := openRelay(t, Config{Dir: r.cfg.Dir})
		if !again.End().Equal(r.End()) || again.Last() != last {
			t.Errorf("opened again: %s, %+v; was %s, %+v", again.End(), again.Last(), r.End(), last)
		}
		same(t, "the relay opened again", stories(t, again, begin.Point, ReadConfig{SpillBytes: 1}), want)
		if err := binlog.VerifyLast(timeout(t), source(s), again.Last()); err != nil {
			t.Errorf("the last transaction is not the source's: %v", err)
		}
	})
}

// A Reader begins behind any transaction.
func TestReadFromAnywhere(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE DATABASE IF NOT EXISTS other")
		r := started(t, s, Config{FileBytes: 4 << 10})
		start, _ := r.Begin()
		busy(t, s)
		pulled(t, r, s)
		all := stories(t, r, start.Point, ReadConfig{})
		rd, err := r.Read(start.Point, ReadConfig{Follow: onlyT})
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		p, mark := start.Point, rd.Mark()
		for i := range all {
			tx, err := rd.Next(timeout(t))
			if err != nil {
				t.Fatal(err)
			}
			if p.Position = tx.End; !start.ByPosition {
				p.Set = p.Set.Add(tx.GTID)
			}
			same(t, "from "+p.String(), stories(t, r, p, ReadConfig{}), all[i+1:])
			if rd.Mark().Compare(mark) <= 0 || rd.AtEnd() != (i == len(all)-1) {
				t.Errorf("transaction %d: mark %v behind %v, at the end: %t", i, rd.Mark(), mark, rd.AtEnd())
			}
			mark = rd.Mark()
		}
		if start.ByPosition {
			within(t, r, start.Point)
		}
		var unspooled *NotSpooledError
		if _, err := r.Read(gtid.Point{Position: gtid.Position{File: "binlog.000000", Offset: 4}}, ReadConfig{}); !errors.As(err, &unspooled) {
			t.Errorf("in front of the relay: %v", err)
		}
	})
}

// within begins in the middle of a transaction, which is refused.
func within(t *testing.T, r *Relay, from gtid.Point) {
	t.Helper()
	rd, err := r.Read(from, ReadConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	first, second := nextOf(t, rd), nextOf(t, rd)
	if first.End != second.Start {
		t.Fatalf("%s is not followed by %s", first, second)
	}
	from.Position = first.End
	from.Position.Offset--
	bad, err := r.Read(from, ReadConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if tx, err := bad.Next(timeout(t)); binlog.ClassOf(err) != binlog.Corrupt {
		t.Errorf("within a transaction: %v, %v", tx, err)
	}
}

// By position a file is the source's, byte for byte, where the source has checksums.
func TestFilesOfTheSource(t *testing.T) {
	s := server(t, noGTIDs...)
	s.Exec(t, "", "DROP DATABASE IF EXISTS t", "CREATE DATABASE t", "CREATE DATABASE IF NOT EXISTS other")
	r := started(t, s, Config{})
	busy(t, s)
	pulled(t, r, s) // in the middle of a file
	busy(t, s)
	s.Exec(t, "", "FLUSH BINARY LOGS")
	pulled(t, r, s)
	files := r.snapshot()
	for _, f := range files[:len(files)-1] {
		theirs, err := os.ReadFile(filepath.Join(s.DataDir(), f.log))
		if err != nil {
			t.Fatal(err)
		}
		ours, err := os.ReadFile(filepath.Join(r.cfg.Dir, f.name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s has %d bytes, %s %d", f.name, len(ours), f.log, len(theirs))
		}
	}
	if len(files) < 4 {
		t.Errorf("%d files", len(files))
	}
}

// MySQL's own mysqlbinlog reads the files, and finds their checksums right.
func TestMysqlbinlogReadsTheFiles(t *testing.T) {
	kinds(t, func(t *testing.T, s *mysqltest.Server) {
		s.Exec(t, "", "CREATE DATABASE IF NOT EXISTS other")
		r := started(t, s, Config{FileBytes: 4 << 10})
		busy(t, s)
		pulled(t, r, s)
		args := []string{"--verify-binlog-checksum", "--verbose", "--base64-output=DECODE-ROWS"}
		for _, f := range r.snapshot() {
			args = append(args, filepath.Join(r.cfg.Dir, f.name))
		}
		out := mysqlbinlog(t, args...)
		for _, want := range []string{"### INSERT INTO `t`.`a`", "### DELETE FROM `t`.`a`", "ALTER TABLE a ADD c INT", "XA COMMIT X'78',X'',1"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%.3000s", want, out)
			}
		}
	})
}

func mysqlbinlog(t testing.TB, args ...string) string {
	t.Helper()
	cmd, err := mysqltest.Login{}.Command(timeout(t), "mysqlbinlog", args...)
	if err != nil {
		t.Fatal(err)
	}
	// Login's own arguments name a server, which is not asked when files are given.
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("mysqlbinlog: %v\n%s", err, errs.String())
	}
	if strings.Contains(errs.String(), "ERROR") {
		t.Errorf("mysqlbinlog: %s", errs.String())
	}
	return out.String()
}
