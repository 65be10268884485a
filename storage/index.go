package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// The key index of a generation is its base entries (key -> locator), under the layers of its table, which hold the
// newer entries of large transactions until a background pass has moved them into the base. An empty value in a layer
// says that the key is gone. A locator of a retired home is resolved by key through the layer that its remap names.
//
// Invariants:
//  1. The newest layer that has a key, else the base, says where its live row is.
//  2. A small commit writes the base and takes its keys out of all layers, so that 1 holds.
//  3. Remaps lead to live homes: when the home that a remap leads to is retired itself, the remap is taken on to the home
//     that its rows moved to. So one remap is enough.

func baseKey(dst []byte, g Generation, key []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, kindBase), uint64(g))
	return append(dst, key...)
}

func layerKey(dst []byte, l LayerID, key []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, kindLayer), uint64(l))
	return append(dst, key...)
}

const indexPrefixLen = 9

// index looks keys up in one table as of a Pebble snapshot.
type index struct {
	gen Generation
	// present tells that the keys are expected to be there, so that filters are not worth reading.
	present bool
	layers  []LayerID // newest first
	remaps  map[HomeID]LayerID
}

func newIndex(gen Generation, rec *indexRecord) *index {
	x := &index{gen: gen, layers: slices.Clone(rec.Layers), remaps: map[HomeID]LayerID{}}
	slices.Reverse(x.layers)
	for _, r := range rec.Remaps {
		x.remaps[r.Old] = r.Layer
	}
	return x
}

// found is where a key's live row is; the zero value says that there is none.
type found = uniquekey.Locator

// lookupShard is the number of keys from which another core joins a lookup.
const lookupShard = 2048

// lookup finds the keys whose numbers are listed in order, which must be ascending by key. out has one entry a key,
// by its number.
func (x *index) lookup(ctx context.Context, r pebble.Reader, keys *column.Keys, order []int32, out []found) error {
	return onShards(order, func(order []int32) error {
		c := newCursor(r, x)
		err := c.findAll(ctx, keys, order, out)
		return firstError(err, c.close())
	})
}

// onShards shares the keys listed in order out among the cores, in runs.
func onShards(order []int32, run func(order []int32) error) error {
	shards := min(runtime.GOMAXPROCS(0), 1+len(order)/lookupShard)
	if shards == 1 {
		return run(order)
	}
	errs := make([]error, shards)
	var wg sync.WaitGroup
	for i := range shards {
		part := order[len(order)*i/shards : len(order)*(i+1)/shards]
		wg.Go(func() { errs[i] = run(part) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cursor) findAll(ctx context.Context, keys *column.Keys, order []int32, out []found) error {
	g := gap{c: c, every: minGapEvery}
	for i, n := range order {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		absent, err := g.has(keys.At(int(n)))
		if err == nil && !absent {
			out[n], err = c.find(keys.At(int(n)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cursor finds keys one after the other, fastest in ascending order.
type cursor struct {
	x      *index
	r      pebble.Reader
	layers []seeker
	base   seeker
	remaps map[LayerID]*seeker
}

// gap knows a range in which the index has no key. New rows mostly have keys behind all others, or between two neighbours;
// then one look at what follows the first of them answers for all, where each would cost a look of its own.
type gap struct {
	c *cursor
	// until is the first key behind the range; end: there is none.
	until []byte
	end   bool
	// wait counts down to the next try to find a range. A try that does not pay doubles every, the distance of tries.
	wait, every int
}

const (
	minGapEvery = 16
	maxGapEvery = 4096
)

// has tells whether the key, which is greater than all asked for before, stands in a range without keys.
func (g *gap) has(key []byte) (bool, error) {
	if g.c.x.present {
		return false, nil
	}
	if g.inside(key) {
		g.every = minGapEvery
		return true, nil
	}
	if g.wait > 0 {
		g.wait--
		return false, nil
	}
	g.wait, g.every = g.every, min(2*g.every, maxGapEvery)
	err := g.find(key)
	return err == nil && g.inside(key), err
}

func (g *gap) inside(key []byte) bool { return g.end || bytes.Compare(key, g.until) < 0 }

// find looks for the first entry at or behind the key. One that says that its key is gone bounds the range as well.
func (g *gap) find(key []byte) error {
	g.until, g.end = g.until[:0], true
	for i := range g.c.layers {
		if err := g.bound(&g.c.layers[i], key); err != nil {
			return err
		}
	}
	return g.bound(&g.c.base, key)
}

func (g *gap) bound(s *seeker, key []byte) error {
	next, ok, err := s.next(g.c.r, key)
	if err != nil {
		return fmt.Errorf("key index: %w", err)
	}
	if ok && (g.end || bytes.Compare(next, g.until) < 0) {
		g.until, g.end = append(g.until[:0], next...), false
	}
	return nil
}

// seeker is an iterator over one prefix, opened when it is first needed.
type seeker struct {
	it  *pebble.Iterator
	key []byte // starts with the prefix
}

func newCursor(r pebble.Reader, x *index) *cursor {
	c := &cursor{x: x, r: r, base: seeker{key: baseKey(nil, x.gen, nil)}}
	for _, l := range x.layers {
		c.layers = append(c.layers, seeker{key: layerKey(nil, l, nil)})
	}
	return c
}

func (s *seeker) open(r pebble.Reader, filter bool) (err error) {
	if s.it == nil {
		lower := bytes.Clone(s.key[:indexPrefixLen])
		s.it, err = r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(lower), UseL6Filters: filter})
	}
	return err
}

// next gives the first key from key on. It is valid until the next call.
func (s *seeker) next(r pebble.Reader, key []byte) (next []byte, ok bool, err error) {
	if err := s.open(r, true); err != nil {
		return nil, false, err
	}
	s.key = append(s.key[:indexPrefixLen], key...)
	if !s.it.SeekGE(s.key) {
		return nil, false, s.it.Error()
	}
	return s.it.Key()[indexPrefixLen:], true, nil
}

func (s *seeker) find(r pebble.Reader, key []byte, filter bool) (value []byte, ok bool, err error) {
	if err := s.open(r, filter); err != nil {
		return nil, false, err
	}
	s.key = append(s.key[:indexPrefixLen], key...)
	if !s.it.SeekPrefixGE(s.key) {
		return nil, false, s.it.Error()
	}
	value, err = s.it.ValueAndErr()
	return value, true, err
}

func (s *seeker) close() error {
	if s.it == nil {
		return nil
	}
	return s.it.Close()
}

// find gives where the key's row is, with remaps resolved.
func (c *cursor) find(key []byte) (found, error) {
	v, err := c.raw(key)
	if err != nil || len(v) == 0 {
		return found{}, err
	}
	return c.resolve(key, v)
}

// resolve gives where a key's row is by the key's newest entry.
func (c *cursor) resolve(key, entry []byte) (found, error) {
	loc, err := decodeEntry(entry)
	if err != nil {
		return found{}, err
	}
	layer, retired := c.x.remaps[HomeID(loc.Home)]
	if !retired {
		return loc, nil
	}
	s := c.remaps[layer]
	if s == nil {
		s = &seeker{key: layerKey(nil, layer, nil)}
		if c.remaps == nil {
			c.remaps = map[LayerID]*seeker{}
		}
		c.remaps[layer] = s
	}
	v, ok, err := s.find(c.r, key, false)
	if err != nil {
		return found{}, fmt.Errorf("key index: %w", err)
	}
	if !ok {
		return found{}, damaged("key index", fmt.Sprintf("a key of retired home %d is missing in layer %d", loc.Home, layer))
	}
	return decodeEntry(v)
}

// raw gives the newest entry of the key, nothing when there is none or it says that the key is gone.
func (c *cursor) raw(key []byte) ([]byte, error) {
	for i := range c.layers {
		v, ok, err := c.layers[i].find(c.r, key, true)
		if err != nil {
			return nil, fmt.Errorf("key index: %w", err)
		}
		if ok {
			return v, nil
		}
	}
	v, _, err := c.base.find(c.r, key, !c.x.present)
	if err != nil {
		return nil, fmt.Errorf("key index: %w", err)
	}
	return v, nil
}

func decodeEntry(v []byte) (found, error) {
	loc, err := uniquekey.DecodeLocator(v)
	if err != nil {
		return found{}, damaged("key index", err.Error())
	}
	return loc, nil
}

func (c *cursor) close() error {
	err := c.base.close()
	for i := range c.layers {
		err = firstError(err, c.layers[i].close())
	}
	for _, s := range c.remaps {
		err = firstError(err, s.close())
	}
	return err
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// keyOrder lists the numbers of the keys in ascending order of the keys. It fails when two are equal.
func keyOrder(keys *column.Keys) ([]int32, bool) {
	order := make([]int32, keys.Len())
	sorted := true
	for i := range order {
		order[i] = int32(i)
		if i > 0 && sorted && bytes.Compare(keys.At(i-1), keys.At(i)) >= 0 {
			sorted = false
		}
	}
	if sorted {
		return order, true
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(keys.At(int(a)), keys.At(int(b))) })
	for i := 1; i < len(order); i++ {
		if bytes.Equal(keys.At(int(order[i-1])), keys.At(int(order[i]))) {
			return order, false
		}
	}
	return order, true
}
