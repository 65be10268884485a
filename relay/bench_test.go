package relay

import (
	"bytes"
	"io"
	"log/slog"
	"testing"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// script is a log's events and what a Walker says of them.
type script struct {
	raw   [][]byte
	steps []binlog.Step
	bytes int64
}

// playing gives so many transactions of one event of size bytes each.
func playing(b *testing.B, transactions, size int) *script {
	b.Helper()
	log := aFile()
	walk, err := binlog.NewFileWalk(bytes.NewReader(log), gtid.UUID{1}, "binlog.000001")
	if err != nil {
		b.Fatal(err)
	}
	s := &script{raw: [][]byte{nil}, steps: []binlog.Step{{Mark: binlog.MarkSwitch, Position: gtid.Position{File: "binlog.000001", Offset: 4}}}}
	for range 3 { // what a file begins with
		raw, step, err := walk.Next()
		if err != nil {
			b.Fatal(err)
		}
		s.raw, s.steps = append(s.raw, bytes.Clone(raw)), append(s.steps, step)
	}
	walker := binlog.NewWalker(gtid.UUID{1}, gtid.Position{File: "binlog.000001", Offset: 500})
	if _, err := walker.Step(s.raw[1]); err != nil {
		b.Fatal(err)
	}
	for i := range transactions {
		head := make([]byte, 19, 100)
		head[4], head[5] = 33, 1
		number := []byte{byte(i + 1), byte((i + 1) >> 8), byte((i + 1) >> 16), 0, 0, 0, 0, 0}
		query := make([]byte, 19, size+100)
		query[4], query[5] = 2, 1
		for _, raw := range [][]byte{event(head, append(append([]byte{0}, make([]byte, 16)...), number...)), large(query, append(make([]byte, 14), append([]byte("DROP TABLE a"), make([]byte, size)...)...))} {
			step, err := walker.Step(raw)
			if err != nil {
				b.Fatal(err)
			}
			s.raw, s.steps, s.bytes = append(s.raw, raw), append(s.steps, step), s.bytes+int64(len(raw))
		}
	}
	return s
}

// large is event for a body of more than 255 bytes.
func large(head, body []byte) []byte {
	raw := append(head, body...)
	raw[9], raw[10], raw[11] = byte(len(raw)), byte(len(raw)>>8), byte(len(raw)>>16)
	return binlog.Sealed(raw, false)
}

func benchRelay(b *testing.B) *Relay {
	b.Helper()
	r, err := Open(Config{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = r.Reset(Start{Point: gtid.Point{Position: gtid.Position{File: "binlog.000001", Offset: 4}}})
	}
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkSpool writes transactions of 8 KiB, and reads them while they are written.
func BenchmarkSpool(b *testing.B) {
	s := playing(b, 5000, 8000)
	b.SetBytes(s.bytes)
	for b.Loop() {
		r := benchRelay(b)
		rd, err := r.Read(gtid.Point{}, ReadConfig{})
		if err != nil {
			b.Fatal(err)
		}
		done := make(chan error)
		go func() {
			for range 5000 {
				tx, err := rd.Next(b.Context())
				if err != nil {
					done <- err
					return
				}
				_ = tx.Release()
			}
			done <- nil
		}()
		w, err := r.newWriter(gtid.UUID{1})
		if err != nil {
			b.Fatal(err)
		}
		for i := range s.raw {
			if i == 2 || i == 3 { // ours stand in their place
				continue
			}
			if err := w.take(s.raw[i], s.steps[i]); err != nil {
				b.Fatal(err)
			}
		}
		if err := only(w.flush(), <-done, w.close(), rd.Close()); err != nil && err != io.EOF {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandOver is the time from the source's last byte of a small transaction to the one who waits for it.
func BenchmarkHandOver(b *testing.B) {
	s := playing(b, 1<<16, 200)
	r := benchRelay(b)
	rd, err := r.Read(gtid.Point{}, ReadConfig{})
	if err != nil {
		b.Fatal(err)
	}
	w, err := r.newWriter(gtid.UUID{1})
	for i := range 2 {
		if err == nil {
			err = w.take(s.raw[i], s.steps[i])
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	got := make(chan error)
	go func() {
		for {
			tx, err := rd.Next(b.Context())
			if err == nil {
				err = tx.Release()
			}
			select {
			case got <- err:
			case <-b.Context().Done():
				return
			}
		}
	}()
	at := 4
	for b.Loop() {
		if at+2 > len(s.raw) {
			b.Fatal("too many rounds")
		}
		for i := at; i < at+2; i++ {
			if err := w.take(s.raw[i], s.steps[i]); err != nil {
				b.Fatal(err)
			}
		}
		at += 2
		if err := only(w.flush(), <-got); err != nil {
			b.Fatal(err)
		}
	}
}
