package snapshot

import (
	"context"
	"fmt"
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

// splitter finds the middle of a range of a table's key. It reads the first and the last key of it, and asks the optimizer
// for estimates, which looks at a few pages of the index for each: no rows are walked over.
type splitter struct {
	conn    *wire.Conn
	table   *schema.Table
	columns []keyColumn
	// least is the estimate of rows that each half must have to be worth it.
	least int64
}

// halves are the estimates of what lies on both sides of a place.
type halves struct {
	place       boundary
	left, right int64
}

// even tells halves of which none is more than three times the other.
func (h halves) even() bool { return max(h.left, h.right) <= 3*min(h.left, h.right) }

// middle gives a place in the range whose ends are known, none when there is none that is worth it.
func (k *splitter) middle(ctx context.Context, first, last boundary) (*halves, error) {
	prefix := boundary{}
	for at := range k.columns {
		if at >= len(first) || at >= len(last) {
			return nil, nil
		}
		if first[at] == last[at] {
			prefix = append(prefix, first[at])
			continue
		}
		h, heavy, err := k.bisect(ctx, prefix, first[at], last[at])
		if err != nil || h != nil && min(h.left, h.right) >= k.least {
			return h, err
		}
		if heavy == "" || at+1 == len(k.columns) {
			return nil, nil
		}
		// Nearly all rows have this value: they are split by the next column.
		prefix = append(prefix, heavy)
		if first, last, err = k.ends(ctx, prefix); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// bisect looks for the value of one column, between two others, that has as many rows on one side as on the other. When
// nearly all rows have one value, there is none, and heavy is that value.
func (k *splitter) bisect(ctx context.Context, prefix boundary, first, last string) (best *halves, heavy string, err error) {
	c := k.columns[len(prefix)]
	s, err := newScale(ctx, k.conn, c.Column, first, last)
	if err != nil {
		return nil, "", err
	}
	low, ok1 := s.number(first)
	high, ok2 := s.number(last)
	if !ok1 || !ok2 {
		return nil, "", nil
	}
	if c.desc {
		low, high = high, low
	}
	one := big.NewInt(1)
	const most = 100 // 64 bits and what bends the way
	for range most {
		if low.Cmp(high) >= 0 {
			break
		}
		m := new(big.Int).Add(low, high)
		m.Rsh(m, 1)
		value, ok := s.literal(m)
		if !ok {
			return best, "", nil
		}
		h, err := k.at(ctx, prefix, first, value, last)
		if err != nil {
			return nil, "", err
		}
		if best == nil || min(h.left, h.right) > min(best.left, best.right) {
			best = h
		}
		if h.even() {
			return h, "", nil
		}
		if (h.left < h.right) != c.desc {
			low = m.Add(m, one)
		} else {
			high = m
		}
	}
	heavy, _ = s.literal(high)
	return best, heavy, nil
}

// at asks for the estimates of both sides of a place.
func (k *splitter) at(ctx context.Context, prefix boundary, first, middle, last string) (*halves, error) {
	c := k.columns[len(prefix)]
	h := &halves{place: append(append(boundary{}, prefix...), middle)}
	var common []string
	for i, v := range prefix {
		common = append(common, k.columns[i].equals(v))
	}
	var err error
	if h.left, err = k.estimate(ctx, common, c.compares('>', true, first), c.compares('<', true, middle)); err != nil {
		return nil, err
	}
	h.right, err = k.estimate(ctx, common, c.compares('>', false, middle), c.compares('<', true, last))
	return h, err
}

func (k *splitter) estimate(ctx context.Context, common []string, more ...string) (int64, error) {
	conditions := append(append([]string{}, common...), more...)
	r, err := k.conn.Query(ctx, "EXPLAIN FORMAT=TRADITIONAL SELECT 1"+fromBy(k.table, "USE")+where(conditions))
	if err != nil || r.Rows() == 0 {
		return 0, err
	}
	rows, _ := strconv.ParseInt(r.Named(0, "rows"), 10, 64)
	return rows, nil
}

// ends gives the first and the last key of the rows that begin with a prefix of the key.
func (k *splitter) ends(ctx context.Context, prefix boundary) (first, last boundary, err error) {
	var conditions []string
	for i, v := range prefix {
		conditions = append(conditions, k.columns[i].equals(v))
	}
	if first, err = k.end(ctx, conditions, false); err != nil {
		return nil, nil, err
	}
	last, err = k.end(ctx, conditions, true)
	return first, last, err
}

// end gives the first or the last key, nil when there is no row or the key has no literal.
func (k *splitter) end(ctx context.Context, conditions []string, last bool) (boundary, error) {
	keys := keysOf(k.table)
	query := "SELECT " + wire.SelectList(keys) + fromBy(k.table, "FORCE") + where(conditions) + order(k.columns, last) + " LIMIT 1"
	var found boundary
	l := newLiterals(keys)
	err := eachRow(ctx, k.conn, keys, query, column.NewBuilder(memory.DefaultAllocator, keys), func(_ *wire.Rows, d *wire.Decoder, row []byte) (err error) {
		found, err = l.of(d, row)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for an end of the key: %w", err)
	}
	return found, nil
}

// keysOf gives a table of the key's columns alone.
func keysOf(t *schema.Table) *schema.Table {
	keys := &schema.Table{Database: t.Database, Name: t.Name}
	for i, k := range t.Key {
		keys.Columns = append(keys.Columns, t.Columns[k])
		keys.Key = append(keys.Key, i)
	}
	return keys
}
