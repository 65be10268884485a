package storage

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage/part"
)

// Rows are given to the part writer, and gathered by a merge, in pieces of so many rows or bytes at most.
const (
	pieceRows  = 64 << 10
	pieceBytes = 16 << 20
)

func (t *Txn) addSegment(tt *txnTable, h home, puts *column.Batch) {
	seg := &newSegment{segmentState: newSegmentState(h, puts)}
	tt.rows.segments = append(tt.rows.segments, seg)
	t.jobs.run(func() (err error) {
		seg.encoded, err = encodeSegment(puts)
		return err
	})
}

func encodeSegment(rows *column.Batch) ([]byte, error) {
	encoded, err := part.EncodeSegment(rows)
	if err == nil {
		checkStored(rows, encoded)
	}
	return encoded, err
}

func (t *Txn) addPart(tt *txnTable, h home, puts *column.Batch) error {
	if err := t.s.checkSpace(); err != nil {
		return err
	}
	path, err := t.s.newPartPath(t.db, t.dbName, tt.id, tt.rec.Def.Name, h.id)
	if err != nil {
		return err
	}
	p := &partState{home: h, rec: partRecord{Path: path}}
	tt.rows.parts = append(tt.rows.parts, p)
	def := tt.rec.Def
	t.jobs.run(func() (err error) {
		p.rec.Info, err = t.s.writePart(path, def, puts)
		return err
	})
	return nil
}

// writePart writes rows in key order. The directory is not synced yet.
func (s *Store) writePart(path string, def *schema.Table, rows *column.Batch) (part.Info, error) {
	info, err := part.Write(context.Background(), s.path(path), def, pieces(rows), part.WriteOptions{FS: s.fs})
	if err != nil {
		return info, diskError(err)
	}
	return info, nil
}

// pieces cuts a batch without copying.
func pieces(b *column.Batch) []*column.Batch {
	rows := min(pieceRows, int(pieceBytes/rowBytes(b))+1)
	if b.Rows() <= rows {
		return []*column.Batch{b}
	}
	var out []*column.Batch
	for from := 0; from < b.Rows(); from += rows {
		out = append(out, b.Slice(from, min(from+rows, b.Rows())))
	}
	return out
}

// rowBytes is about the memory of a row of the batch, at least 1.
func rowBytes(b *column.Batch) int64 { return batchBytes(b)/int64(max(b.Rows(), 1)) + 1 }

// batchBytes is about the memory of a batch.
func batchBytes(b *column.Batch) int64 {
	n := int64(b.Keys.Bytes() + 8*b.Keys.Len())
	for i := range int(b.Record.NumCols()) {
		n += arrayBytes(b.Record.Column(i))
	}
	if b.Exact != nil {
		n += arrayBytes(b.Exact)
	}
	return n
}

func arrayBytes(a arrow.Array) int64 { return int64(a.Data().SizeInBytes()) }

// segmentMemory is about the memory of a segment, with what each costs however few rows it has.
func segmentMemory(b *column.Batch) int64 {
	const perSegment, perColumn = 1 << 10, 512
	return batchBytes(b) + perSegment + perColumn*b.Record.NumCols()
}

// jobs runs the encoding of parts and segments beside the caller, at most two at a time.
type jobs struct {
	slots chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	err   error
}

func newJobs() *jobs { return &jobs{slots: make(chan struct{}, 2)} }

// run starts a job; it waits while two are running.
func (j *jobs) run(job func() error) {
	j.slots <- struct{}{}
	j.wg.Go(func() {
		defer func() { <-j.slots }()
		if err := job(); err != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.err = firstError(j.err, err)
		}
	})
}

// wait waits for all jobs and gives the first error.
func (j *jobs) wait() error {
	j.wg.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}
