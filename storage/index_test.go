package storage

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

// Looks that skip ranges without keys find what looks at each key find: dense and sparse ranges, layers with new, moved
// and removed keys, keys behind all others.
func TestLookupOfAbsentKeysSkipsGaps(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	defer s.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	key := func(n int) []byte { return []byte{byte(n >> 16), byte(n >> 8), byte(n)} }
	b := s.meta.NewBatch()
	value := func(n int) []byte { return uniquekey.AppendLocator(nil, found{Home: 1 + uint64(n%3), Row: uint32(n)}) }
	for n := 0; n < 60_000; n++ {
		if n/10_000%2 == 0 && rng.IntN(3) > 0 { // every other range of 10,000 has no key in the base
			require.NoError(t, b.Set(baseKey(nil, 7, key(n)), value(n), nil))
		}
		switch rng.IntN(400) {
		case 0:
			require.NoError(t, b.Set(layerKey(nil, 8, key(n)), nil, nil))
		case 1:
			require.NoError(t, b.Set(layerKey(nil, 9, key(n)), value(n+1), nil))
		}
	}
	require.NoError(t, s.meta.commit(b, false))

	var keys column.Keys
	var order []int32
	for n := 0; n < 70_000; n += 1 + rng.IntN(4) {
		order = append(order, int32(keys.Len()))
		keys.Append(key(n))
	}
	x := newIndex(7, &indexRecord{Layers: []LayerID{8, 9}})
	skipping := make([]found, keys.Len())
	require.NoError(t, x.lookup(ctx, s.meta, &keys, order, skipping))
	x.present = true // looks at each key
	plain := make([]found, keys.Len())
	require.NoError(t, x.lookup(ctx, s.meta, &keys, order, plain))
	require.Equal(t, plain, skipping)
	require.Contains(t, plain, found{})
}
