package relay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// aFile is a small relay file by GTIDs, made without a server.
func aFile() []byte {
	format := []byte{0xe8, 0x03, 0, 0, 15, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0}
	format = append(format, "9.7.4"...)
	format = append(format, make([]byte, 45+4)...)
	format = append(format, 19)
	post := make([]byte, 42)
	post[1], post[18], post[29] = 13, 8, 10
	format = append(append(format, post...), 0, 0, 0, 0, 0)
	format[9] = byte(len(format))
	format[13] = byte(len(format) + logStart)
	b := append([]byte{0xfe, 'b', 'i', 'n'}, binlog.Sealed(format, false)...)
	b = append(b, binlog.PreviousEvent(gtid.Set{}.Add(gtid.GTID{Source: gtid.UUID{1}, Number: 7}))...)
	b = append(b, binlog.SwitchEvent(gtid.Position{File: "binlog.000001", Offset: 500})...)
	for number := range 3 {
		head := make([]byte, 19, 100)
		head[4], head[5], head[13], head[14] = 33, 1, byte(100*number), 2
		body := append([]byte{0}, append([]byte{1}, make([]byte, 15)...)...)
		body = append(body, byte(8+number), 0, 0, 0, 0, 0, 0, 0)
		b = append(b, event(head, body)...)
		query := make([]byte, 19, 100)
		query[4], query[5], query[13], query[14] = 2, 1, byte(100*number+50), 2
		b = append(b, event(query, append(make([]byte, 14), "DROP TABLE a"...))...)
	}
	return b
}

func event(head, body []byte) []byte {
	raw := append(head, body...)
	raw[9] = byte(len(raw))
	return binlog.Sealed(raw, false)
}

// FuzzOpen opens and reads a relay of two files whose bytes are anything. Whatever comes out must come out again.
func FuzzOpen(f *testing.F) {
	whole := aFile()
	f.Add(whole, []byte{}, false)
	f.Add(whole[:len(whole)-20], whole, true)
	f.Add([]byte{}, index{{1, uint64(len(whole))}}.encode(), false)
	f.Fuzz(func(t *testing.T, first, second []byte, byPosition bool) {
		dir := t.TempDir()
		names := []string{"000001", "000002"}
		if byPosition {
			names = []string{"binlog.000001", "binlog.000002"}
		}
		for i, b := range [][]byte{first, second} {
			if len(b) == 0 {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, fileName(gtid.UUID{5}, names[i])), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := openQuietly(dir)
		if err != nil {
			if !errors.As(err, new(*DamageError)) {
				t.Fatal(err)
			}
			return
		}
		begin, ok := r.Begin()
		if !ok {
			return
		}
		err = readThrough(dir, begin.Point)
		if err != io.EOF && !errors.As(err, new(*DamageError)) {
			t.Fatalf("read: %v", err)
		}
		again, failed := openQuietly(dir)
		if failed != nil {
			t.Fatalf("opened again: %v", failed)
		}
		if !again.End().Equal(r.End()) || again.Last() != r.Last() {
			t.Fatalf("opened again it ends at %s, %+v, and ended at %s, %+v", again.End(), again.Last(), r.End(), r.Last())
		}
	})
}

// The sample that the fuzzing starts from is whole.
func TestFuzzSample(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName(gtid.UUID{5}, "000001")), aFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := openQuietly(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin, ok := r.Begin()
	if got := len(stories(t, r, begin.Point, ReadConfig{})); !ok || got != 3 || r.End().Set.String() != "01000000-0000-0000-0000-000000000000:7-10" {
		t.Errorf("%d transactions, ends at %s", got, r.End())
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(index{{1, 5}, {2, 7}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		x, ok := decodeIndex(b)
		if !ok {
			return
		}
		if again, ok := decodeIndex(x.encode()); !ok || len(again) != len(x) {
			t.Fatalf("%v became %v", x, again)
		}
	})
}
