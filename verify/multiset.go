package verify

import (
	"context"
	"fmt"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// count counts the rows of some hashes on both sides of a table without a key. Neither side can be asked for them: the
// table is read as a whole.
func (v *verifier) count(ctx context.Context, p *pair, def, theirs *schema.Table, keys []*suspect, l *look) error {
	wanted := &[buckets]bool{}
	names := make(map[string]bool, len(keys))
	for _, k := range keys {
		wanted[k.bucket], names[k.key] = true, true
	}
	mine, source := newCounter(wanted, names), newCounter(wanted, names)
	err := v.read(ctx, p, def, theirs, mine, source)
	if err == nil {
		l.mine, err = mine.sideRows()
	}
	if err == nil {
		l.source, err = source.sideRows()
	}
	return err
}

// counter counts the rows of some hashes, and keeps one of each.
type counter struct {
	wanted  *[buckets]bool
	names   map[string]bool
	at      map[string]int
	samples []*column.Batch
	counts  []uint64
}

func newCounter(wanted *[buckets]bool, names map[string]bool) *counter {
	return &counter{wanted: wanted, names: names, at: map[string]int{}}
}

func (c *counter) add(h *hasher, b *column.Batch, dead uniquekey.Bitset) error {
	if _, _, err := h.rows(b); err != nil {
		return err
	}
	some, err := h.inBuckets(b, dead, c.wanted)
	if some == nil || err != nil {
		return err
	}
	for i := range some.Rows() {
		id := name(some, i)
		if !c.names[id] {
			continue
		}
		at, known := c.at[id]
		if !known {
			at = len(c.counts)
			c.at[id], c.counts, c.samples = at, append(c.counts, 0), append(c.samples, some.Take([]int{i}))
		}
		c.counts[at]++
	}
	return nil
}

func (c *counter) sideRows() (sideRows, error) {
	s := sideRows{at: c.at, hashes: c.counts}
	if len(c.samples) == 0 {
		return s, nil
	}
	var err error
	s.batch, err = column.Concat(c.samples)
	return s, err
}

// describeCounts names a row of a table without a key and says how often each side has it.
func (l *look) describeCounts(k *suspect) string {
	mine, source := l.mine.hash(k.key), l.source.hash(k.key)
	var row string
	if i, ok := l.mine.at[k.key]; ok {
		row = keyNames(l.mine.batch, i)
	} else {
		row = keyNames(l.source.batch, l.source.at[k.key])
	}
	switch {
	case mine == 0:
		return row + ": missing here"
	case source == 0:
		return row + ": not on the source"
	}
	return fmt.Sprintf("%s: %d times here, %d times on the source", row, mine, source)
}
