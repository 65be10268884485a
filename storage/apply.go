package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/column"
)

// Changes are the net changes of one table: each key appears at most once in Puts, Deletes and Checks together.
//
// In a table without a key (schema.Table.Multiset) rows are named by the hashes that column.Builder gives them, and equal
// ones may appear in Puts any number of times. Deletes then has each hash once, with its entry in Removals; a hash of
// which rows go is not in Puts. The expectations are not used.
type Changes struct {
	// Puts are rows that are there afterwards, in any order, with their keys; nil: none. PutExpect has one entry a row; nil
	// expects nothing of any.
	Puts      *column.Batch
	PutExpect []Expect
	// Deletes are the keys that are gone afterwards. A delete that expects MustNotExist only checks.
	Deletes      column.Keys
	DeleteExpect []Expect
	// Checks are keys with an expectation and no change, such as those inserted and deleted again.
	Checks      column.Keys
	CheckExpect []Expect
	// Removals has one entry for each of Deletes in a table without a key.
	Removals []Removal
	// Tolerant turns all expectations off (the convergence window of a copy taken without locks).
	Tolerant bool
}

// Removal is what happens to the equal rows of one hash in a table without a key.
type Removal struct {
	// Gone is the number of rows that are taken away; it does not matter which.
	Gone int
	// There is the number of rows that must be there before, at least Gone; if fewer are, the table has diverged.
	There int
}

// keySet is one of the three key lists of Changes while they are applied.
type keySet struct {
	keys   *column.Keys
	expect []Expect
	order  []int32
	found  []found
}

var errTwice = errors.New("a key appears twice in one set of changes")

func newKeySet(keys *column.Keys, expect []Expect) (*keySet, error) {
	if expect != nil && len(expect) != keys.Len() {
		return nil, fmt.Errorf("%d expectations for %d keys", len(expect), keys.Len())
	}
	order, unique := keyOrder(keys)
	if !unique {
		return nil, errTwice
	}
	return &keySet{keys: keys, expect: expect, order: order, found: make([]found, keys.Len())}, nil
}

func (k *keySet) diverged(table string) error {
	for i, e := range k.expect {
		exists := k.found[i].Home != 0
		if e == MustExist && !exists || e == MustNotExist && exists {
			return &DivergenceError{Table: table, Key: bytes.Clone(k.keys.At(i)), Expected: e}
		}
	}
	return nil
}

// expectsRows tells that most keys should be there; the first ones stand for all.
func (k *keySet) expectsRows() bool {
	n := min(len(k.expect), 16)
	return n > 0 && !slices.Contains(k.expect[:n], MustNotExist) && !slices.Contains(k.expect[:n], Any)
}

// disjoint tells whether two sets have no key in common.
func disjoint(a, b *keySet) bool {
	i, j := 0, 0
	for i < len(a.order) && j < len(b.order) {
		switch c := bytes.Compare(a.keys.At(int(a.order[i])), b.keys.At(int(b.order[j]))); {
		case c == 0:
			return false
		case c < 0:
			i++
		default:
			j++
		}
	}
	return true
}

// Apply adds changes of one table. It may be called several times for a table; later calls see the earlier ones. On a
// DivergenceError, and on an error before anything was changed, the transaction is as it was. Any other error makes it
// unusable: it must be aborted.
func (t *Txn) Apply(ctx context.Context, id TableID, c *Changes) error {
	if len(t.order) == 0 { // no table is locked yet
		if err := t.s.work.waitForRoom(ctx); err != nil {
			return err
		}
	}
	tt, err := t.table(id)
	if err != nil {
		return err
	}
	if err := tt.writable(); err != nil {
		return err
	}
	apply := t.apply
	if tt.rec.Def.Multiset() {
		apply = t.applyMultiset
	}
	if err := apply(ctx, tt, c); err != nil {
		return fmt.Errorf("table %s: %w", tt.rec.Def.FullName(), err)
	}
	return nil
}

func (t *Txn) apply(ctx context.Context, tt *txnTable, c *Changes) error {
	puts, expect, asPart, err := t.arrange(tt, c)
	if err != nil {
		return err
	}
	sets, err := t.sets(c, puts, expect)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if err := t.find(ctx, tt, set); err != nil {
			return err
		}
	}
	if !c.Tolerant {
		for _, set := range sets {
			if err := set.diverged(tt.rec.Def.FullName()); err != nil {
				return err
			}
		}
	}
	if err := t.change(tt, puts, sets[0], asPart); err != nil {
		return err
	}
	tt.rows.remove(sets[1])
	return t.spillIfMany(tt)
}

// spillIfMany keeps the memory of a table's staged index entries bounded.
func (t *Txn) spillIfMany(tt *txnTable) error {
	if tt.rows.layer == 0 && tt.rows.keys <= t.s.opt.SpillKeys {
		return nil
	}
	if err := tt.rows.spill(t.s); err != nil {
		t.failed = err
		return err
	}
	return nil
}

// arrange decides whether the puts become a part, whose rows must stand in key order.
func (t *Txn) arrange(tt *txnTable, c *Changes) (puts *column.Batch, expect []Expect, asPart bool, err error) {
	puts, expect = c.Puts, c.PutExpect
	if puts == nil || puts.Rows() == 0 {
		return nil, nil, false, nil
	}
	if puts.Table.Version != tt.rec.Def.Version {
		return nil, nil, false, fmt.Errorf("rows follow version %d of the definition, the table has version %d", puts.Table.Version, tt.rec.Def.Version)
	}
	if puts.Keys.Len() != puts.Rows() {
		return nil, nil, false, fmt.Errorf("%d keys for %d rows", puts.Keys.Len(), puts.Rows())
	}
	checkRows(puts)
	opt := &t.s.opt
	many := tt.rows.rows+puts.Rows() > 2*opt.SegmentRows
	if puts.Rows() <= opt.SegmentRows && !many && batchBytes(puts) <= opt.SegmentBytes {
		return puts, expect, false, nil
	}
	sorted := puts.SortByKey()
	if sorted != puts && expect != nil {
		order, _ := keyOrder(&puts.Keys)
		permuted := make([]Expect, len(expect))
		for i, o := range order {
			permuted[i] = expect[o]
		}
		expect = permuted
	}
	return sorted, expect, true, nil
}

func (t *Txn) sets(c *Changes, puts *column.Batch, expect []Expect) ([3]*keySet, error) {
	var sets [3]*keySet
	var err error
	putKeys := new(column.Keys)
	if puts != nil {
		putKeys = &puts.Keys
	}
	if sets[0], err = newKeySet(putKeys, expect); err != nil {
		return sets, err
	}
	if sets[1], err = newKeySet(&c.Deletes, c.DeleteExpect); err != nil {
		return sets, err
	}
	if sets[2], err = newKeySet(&c.Checks, c.CheckExpect); err != nil {
		return sets, err
	}
	if !disjoint(sets[0], sets[1]) || !disjoint(sets[0], sets[2]) || !disjoint(sets[1], sets[2]) {
		return sets, errTwice
	}
	return sets, nil
}

// find looks the keys up in what the transaction has of the table so far.
func (t *Txn) find(ctx context.Context, tt *txnTable, set *keySet) error {
	if len(set.order) == 0 {
		return nil
	}
	if x := tt.searched(); x != nil {
		x.present = set.expectsRows()
		snapshot := t.s.meta.NewSnapshot()
		err := x.lookup(ctx, snapshot, set.keys, set.order, set.found)
		if err := firstError(err, snapshot.Close()); err != nil {
			return err
		}
	}
	tt.rows.lookupStaged(set.keys, set.found)
	return nil
}

// searched gives the lookup structure of the rows that are not in memory only, nil when there can be none.
func (tt *txnTable) searched() *index {
	if tt.fresh && tt.load == nil && tt.rows.layer == 0 {
		return nil
	}
	var x *index
	if tt.fresh {
		x = newIndex(tt.rec.Generation, new(indexRecord))
	} else {
		if tt.committed == nil {
			tt.committed = newIndex(tt.rec.Generation, &tt.old.idx)
		}
		x = tt.committed
	}
	adapted := *x
	if tt.rows.layer != 0 {
		adapted.layers = append([]LayerID{tt.rows.layer}, x.layers...)
	}
	return &adapted
}

// change adds the puts as a new home.
func (t *Txn) change(tt *txnTable, puts *column.Batch, set *keySet, asPart bool) error {
	if puts == nil {
		return nil
	}
	id, err := t.s.nextID()
	if err != nil {
		return err
	}
	h := home{id: HomeID(id), dead: &deadRows{rows: puts.Rows()}}
	if asPart {
		err = t.addPart(tt, h, puts)
	} else {
		t.addSegment(tt, h, puts)
	}
	if err != nil {
		return err
	}
	for _, loc := range set.found {
		if loc.Home != 0 {
			tt.rows.kill(loc)
		}
	}
	tt.rows.stage(staged{keys: &puts.Keys, home: h.id})
	tt.rows.rows += puts.Rows()
	return nil
}

// remove takes away the rows of the keys that were found.
func (r *rowChanges) remove(set *keySet) {
	var gone []int32
	for _, i := range set.order {
		if loc := set.found[i]; loc.Home != 0 {
			r.kill(loc)
			gone = append(gone, i)
		}
	}
	if len(gone) > 0 {
		r.stage(staged{keys: set.keys, only: gone})
	}
}
