package storage

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
)

// Rows of a table without a key (schema.Table.Multiset) are named by a hash of their values, and equal rows by the same
// one. The store gives each row a number when it comes in, which stays with it; hash and number are the row's key, so
// that everything below the lookup of rows that go works on them as on any other key. Numbers come from the counter of
// identities: inserts look nothing up, and copies of ranges that hold equal rows never meet.

// number gives rows that come in their numbers.
func (s *Store) number(b *column.Batch) (*column.Batch, error) {
	if err := checkHashes(&b.Keys); err != nil {
		return nil, err
	}
	first, err := s.nextIDs(b.Rows())
	if err != nil {
		return nil, err
	}
	return b.Numbered(int64(first)), nil
}

func checkHashes(keys *column.Keys) error {
	for i := range keys.Len() {
		if len(keys.At(i)) != column.RowHashLen {
			return fmt.Errorf("a row of a table without a key is named by %d bytes instead of %d", len(keys.At(i)), column.RowHashLen)
		}
	}
	return nil
}

// keepsHashes tells whether rows of a table without a key have the same hashes under another definition.
func keepsHashes(before, after *schema.Table) bool {
	return !before.Multiset() || !slices.ContainsFunc(before.Columns, func(c schema.Column) bool { return after.ColumnByID(c.ID) < 0 })
}

// numberedRow is a row of some hash: its number, as in its key, and where it is.
type numberedRow struct {
	number [8]byte
	at     found
}

// applyMultiset is apply for a table without a key. Rows that go are looked for before those that come are added.
func (t *Txn) applyMultiset(ctx context.Context, tt *txnTable, c *Changes) error {
	if len(c.Removals) != c.Deletes.Len() || c.Checks.Len() > 0 {
		return fmt.Errorf("%d removals for %d keys, %d checks, in a table without a key", len(c.Removals), c.Deletes.Len(), c.Checks.Len())
	}
	puts := c.Puts
	if puts != nil && puts.Rows() > 0 {
		var err error
		if puts, err = t.s.number(puts); err != nil {
			return err
		}
	}
	puts, _, asPart, err := t.arrange(tt, &Changes{Puts: puts})
	if err != nil {
		return err
	}
	going, err := t.findRemovals(ctx, tt, c)
	if err != nil {
		return err
	}
	tt.rows.take(&c.Deletes, going)
	if err := t.change(tt, puts, &keySet{}, asPart); err != nil {
		return err
	}
	return t.spillIfMany(tt)
}

// removal is which rows of a hash go.
type removal struct {
	rows []numberedRow
	own  int // the last so many were added by the transaction and are in memory only
}

// findRemovals gives the rows that go, by the number of their hash in Deletes.
func (t *Txn) findRemovals(ctx context.Context, tt *txnTable, c *Changes) ([]removal, error) {
	hashes := &c.Deletes
	if err := checkHashes(hashes); err != nil || hashes.Len() == 0 {
		return nil, err
	}
	order, unique := keyOrder(hashes)
	if !unique {
		return nil, errTwice
	}
	there := make([][]numberedRow, hashes.Len())
	wanted := func(i int32) int { return max(c.Removals[i].There, c.Removals[i].Gone) }
	tt.rows.overlayNumbered()
	if x := tt.searched(); x != nil {
		look := hashLookup{hashes: hashes, wanted: wanted, skip: tt.rows.isGone, out: there}
		snapshot := t.s.meta.NewSnapshot()
		err := x.lookupHashes(ctx, snapshot, &look, order)
		if err := firstError(err, snapshot.Close()); err != nil {
			return nil, err
		}
	}
	going := make([]removal, len(there))
	for i, rows := range there {
		hash, n := hashes.At(i), wanted(int32(i))
		indexed := len(rows)
		rows = append(rows, tt.rows.addedOf(hash, n-indexed)...)
		if len(rows) < n && !c.Tolerant {
			return nil, &DivergenceError{Table: tt.rec.Def.FullName(), Key: bytes.Clone(hash), Expected: MustExist}
		}
		rows = rows[:min(c.Removals[i].Gone, len(rows))]
		going[i] = removal{rows, max(0, len(rows)-indexed)}
	}
	return going, nil
}

// numberedOverlay is what a transaction did to rows of a table without a key and has in memory only.
type numberedOverlay struct {
	added map[string][]numberedRow // rows by hash
	gone  map[string]bool          // keys
}

// overlayNumbered brings the overlay up to what is staged.
func (r *rowChanges) overlayNumbered() {
	if len(r.staged) > r.overlaid && r.numbered == nil {
		r.numbered = &numberedOverlay{added: map[string][]numberedRow{}, gone: map[string]bool{}}
	}
	for ; r.overlaid < len(r.staged); r.overlaid++ {
		_ = r.staged[r.overlaid].each(func(key []byte, at found) error {
			if at.Home == 0 {
				r.numbered.gone[string(key)] = true
				return nil
			}
			hash := string(key[:column.RowHashLen])
			r.numbered.added[hash] = append(r.numbered.added[hash], numberedRow{[8]byte(key[column.RowHashLen:]), at})
			return nil
		})
	}
}

func (r *rowChanges) isGone(key []byte) bool {
	return r.numbered != nil && r.numbered.gone[string(key)]
}

// addedOf gives up to n rows of a hash that the transaction added, the newest first.
func (r *rowChanges) addedOf(hash []byte, n int) []numberedRow {
	if r.numbered == nil || n <= 0 {
		return nil
	}
	rows := r.numbered.added[string(hash)]
	rows = slices.Clone(rows[len(rows)-min(n, len(rows)):])
	slices.Reverse(rows)
	return rows
}

// take takes rows away, given by the number of their hash.
func (r *rowChanges) take(hashes *column.Keys, going []removal) {
	keys := new(column.Keys)
	var key []byte
	for i, g := range going {
		for _, row := range g.rows {
			key = append(append(key[:0], hashes.At(i)...), row.number[:]...)
			keys.Append(key)
			r.kill(row.at)
		}
		if g.own > 0 {
			hash := string(hashes.At(i))
			added := r.numbered.added[hash]
			r.numbered.added[hash] = added[:len(added)-g.own]
		}
	}
	r.stage(staged{keys: keys})
}

// hashLookup asks for rows of hashes, all of which differ.
type hashLookup struct {
	hashes *column.Keys
	wanted func(i int32) int     // how many rows of a hash at most
	skip   func(key []byte) bool // keys that do not count; called from several goroutines
	out    [][]numberedRow       // by the number of the hash
}

// lookupHashes finds rows of the hashes whose numbers are listed in order, which must be ascending by hash.
func (x *index) lookupHashes(ctx context.Context, r pebble.Reader, l *hashLookup, order []int32) error {
	return onShards(order, func(order []int32) error {
		c := newCursor(r, x)
		err := c.findHashes(ctx, l, order)
		return firstError(err, c.close())
	})
}

func (c *cursor) findHashes(ctx context.Context, l *hashLookup, order []int32) error {
	var sources []*seeker // newest first
	for i := range c.layers {
		sources = append(sources, &c.layers[i])
	}
	sources = append(sources, &c.base)
	for n, i := range order {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rows, err := c.findHash(sources, l.hashes.At(int(i)), l.wanted(i), l.skip)
		if err != nil {
			return err
		}
		l.out[i] = rows
	}
	return nil
}

// findHash walks along the entries of a hash in all sources at once; of a key the newest entry counts.
func (c *cursor) findHash(sources []*seeker, hash []byte, wanted int, skip func([]byte) bool) ([]numberedRow, error) {
	heads := make([][]byte, len(sources)) // the keys at which the sources are; nil: none of the hash is left
	for i, s := range sources {
		key, ok, err := s.next(c.r, hash)
		if err != nil {
			return nil, fmt.Errorf("key index: %w", err)
		}
		if ok && bytes.HasPrefix(key, hash) {
			heads[i] = key
		}
	}
	var rows []numberedRow
	var key, value []byte
	for len(rows) < wanted {
		newest := -1
		for i, head := range heads {
			if head != nil && (newest < 0 || bytes.Compare(head, heads[newest]) < 0) {
				newest = i
			}
		}
		if newest < 0 {
			break
		}
		v, err := sources[newest].it.ValueAndErr()
		if err != nil {
			return nil, fmt.Errorf("key index: %w", err)
		}
		key, value = append(key[:0], heads[newest]...), append(value[:0], v...)
		if err := step(sources, heads, hash, key); err != nil {
			return nil, err
		}
		if len(value) == 0 || skip(key) {
			continue
		}
		at, err := c.resolve(key, value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, numberedRow{[8]byte(key[len(hash):]), at})
	}
	return rows, nil
}

// step moves the sources that stand at a key to their next one.
func step(sources []*seeker, heads [][]byte, hash, key []byte) error {
	for i, s := range sources {
		if heads[i] == nil || !bytes.Equal(heads[i], key) {
			continue
		}
		heads[i] = nil
		if s.it.Next() {
			if k := s.it.Key()[indexPrefixLen:]; bytes.HasPrefix(k, hash) {
				heads[i] = k
			}
		} else if err := s.it.Error(); err != nil {
			return fmt.Errorf("key index: %w", err)
		}
	}
	return nil
}
