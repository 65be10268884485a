package binlog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// copyOf is the bytes of a log; open counts how many are not closed.
type copyOf struct {
	*bytes.Reader
	open *int
}

func (c copyOf) Close() error {
	*c.open--
	return nil
}

// A transaction that is too large for memory is read from its log again, with the very table maps of the first reading.
func TestReadAgain(t *testing.T) {
	for _, checksum := range []bool{true, false} {
		log, open := sample(t, checksum), 0
		dir := t.TempDir()
		again := func() (Bytes, error) { open++; return copyOf{bytes.NewReader(log), &open}, nil }
		r, err := NewLog(bytes.NewReader(log), LogConfig{SpillBytes: 1, SpillDir: dir, Again: again})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		maps := map[string]*TableMap{}
		for {
			tx, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			first := story(t, tx)
			if again := story(t, tx); again != first {
				t.Errorf("read again: %s, then %s", first, again)
			}
			for e := range tx.Events() {
				if rows, ok := e.(*RowsEvent); ok {
					if m := maps[rows.Table.Table]; m != nil && m != rows.Table {
						t.Error("another table map for the same table")
					}
					maps[rows.Table.Table] = rows.Table
				}
				break // an early end of the loop is none of the transaction
			}
			if tx.Spilled() != (tx.RowEvents+tx.StatementCount > 0) {
				t.Errorf("%s: spilled %t", first, tx.Spilled())
			}
			got = append(got, first)
			if err := tx.Release(); err != nil {
				t.Fatal(err)
			}
			if n := tx.RowEvents + tx.StatementCount; n > 0 && story(t, tx) != tx.Kind.String() {
				t.Error("a released transaction has events")
			}
		}
		if strings.Join(got, "|") != strings.Join(sampleStories, "|") || open != 0 {
			t.Errorf("checksum %t: %q, %d left open", checksum, got, open)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("spilled: %v, %v", left, err)
		}
	}
}

// What was changed between the first reading and the second is noticed.
func TestReadAgainDamaged(t *testing.T) {
	log, open := sample(t, true), 0
	damaged := bytes.Clone(log)
	again := func() (Bytes, error) { open++; return copyOf{bytes.NewReader(damaged), &open}, nil }
	r, err := NewLog(bytes.NewReader(log), LogConfig{SpillBytes: 1, Again: again})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	damaged[tx.at+headerSize+5] ^= 1
	for _, err := range tx.Events() {
		if ClassOf(err) != Corrupt {
			t.Errorf("error %v", err)
		}
	}
}

// A log that grows can be read on, and what is not wanted is not looked into.
func TestGrowingLog(t *testing.T) {
	whole := sample(t, true)
	grown := &bytes.Buffer{}
	grown.Write(whole[:len(fileMagic)])
	r, err := NewLog(grown, LogConfig{Name: "binlog.000001",
		Skip: func(tx *Transaction) bool { return tx.GTID.Number == 3 }})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rest := whole[len(fileMagic):]; len(rest) > 0; {
		h, err := parseHeader(rest)
		if err != nil {
			t.Fatal(err)
		}
		grown.Write(rest[:h.Size])
		rest = rest[h.Size:]
		tx, err := r.Next()
		if err == nil {
			got = append(got, story(t, tx))
		} else if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if want := strings.Join([]string{sampleStories[0], sampleStories[1], sampleStories[3]}, "|"); strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
	if r.Offset() != int64(len(whole)) || r.Position().Offset != uint64(len(whole)) {
		t.Errorf("at %d, %s, of %d", r.Offset(), r.Position(), len(whole))
	}
}
