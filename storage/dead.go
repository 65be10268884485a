package storage

import (
	"slices"
	"sync"

	"github.com/tidemarkdb/tidemark/uniquekey"
)

// deadRows holds which rows of one home died at which commit, for all versions at once.
//
// Invariants:
//  1. A row dies once: the deltas are disjoint, with each other and with the rows that flat had before them.
//  2. deltas has every delta newer than flatSeq, and every one newer than the oldest version that may still ask.
//  3. A flat set that was handed out is not changed while anyone holds it.
type deadRows struct {
	mu      sync.Mutex
	rows    int // of the home
	flat    *flatSet
	flatSeq CommitSeq
	deltas  []deadDelta // ascending seq
}

type deadDelta struct {
	seq  CommitSeq
	rows []uint32
}

// flatSet is a bitset with the number of versions that hold it.
type flatSet struct {
	bits uniquekey.Bitset
	refs int
}

// add records the rows that died at a commit newer than all before. Versions at or after floor may still ask.
func (d *deadRows) add(seq CommitSeq, rows []uint32, floor CommitSeq) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deltas = append(d.deltas, deadDelta{seq, rows})
	d.trim(floor)
}

// trim folds deltas into the flat set when they take more memory than it, and forgets those that nobody can ask for.
func (d *deadRows) trim(floor CommitSeq) {
	pending := 0
	for i := len(d.deltas) - 1; i >= 0 && d.deltas[i].seq > d.flatSeq; i-- {
		pending += len(d.deltas[i].rows)
	}
	if pending > 256+d.rows/64 || len(d.deltas) > 256 {
		d.advance(d.deltas[len(d.deltas)-1].seq)
	}
	floor = min(floor, d.flatSeq)
	keep := 0
	for keep < len(d.deltas) && d.deltas[keep].seq <= floor {
		keep++
	}
	if keep > 0 {
		d.deltas = slices.Clone(d.deltas[keep:])
	}
}

// advance brings the flat set to seq, which must not be before flatSeq.
func (d *deadRows) advance(seq CommitSeq) {
	writable := false
	for _, delta := range d.deltas {
		if delta.seq <= d.flatSeq || delta.seq > seq {
			continue
		}
		if !writable {
			d.own()
			writable = true
		}
		for _, r := range delta.rows {
			d.flat.bits.Set(r)
		}
	}
	d.flatSeq = max(d.flatSeq, seq)
}

// own makes the flat set one that may be changed.
func (d *deadRows) own() {
	switch {
	case d.flat == nil:
		d.flat = &flatSet{bits: uniquekey.NewBitset(d.rows)}
	case d.flat.refs > 0:
		d.flat = &flatSet{bits: slices.Clone(d.flat.bits)}
	}
}

// at gives the dead rows as of seq, nil when there are none. The set is held until release.
func (d *deadRows) at(seq CommitSeq) *flatSet {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flatSeq <= seq {
		d.advance(seq)
		if d.flat != nil {
			d.flat.refs++
		}
		return d.flat
	}
	var past *flatSet
	for _, delta := range d.deltas {
		if delta.seq <= seq || delta.seq > d.flatSeq {
			continue
		}
		if past == nil {
			past = &flatSet{bits: slices.Clone(d.flat.bits)}
		}
		for _, r := range delta.rows {
			past.bits.Clear(r)
		}
	}
	if past == nil {
		past = d.flat
	}
	if past != nil {
		past.refs++
	}
	return past
}

func (d *deadRows) release(f *flatSet) {
	if f == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f.refs--
	checkHeld("a set of dead rows", f.refs)
}

// since lists the rows that died after seq. The deltas must still be there: the caller holds a version at seq.
func (d *deadRows) since(seq CommitSeq) []uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rows []uint32
	for _, delta := range d.deltas {
		if delta.seq > seq {
			rows = append(rows, delta.rows...)
		}
	}
	return rows
}
