package uniquekey

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocatorRoundTrip(t *testing.T) {
	for _, l := range []Locator{{1, 0}, {1, 1 << 31}, {1<<63 + 5, 4294967295}, {127, 127}, {128, 128}} {
		got, err := DecodeLocator(AppendLocator(nil, l))
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
	for _, bad := range [][]byte{nil, {0, 1}, {1}, {1, 1, 1}, {1, 0xff, 0xff, 0xff, 0xff, 0x7f}, {0x80}} {
		_, err := DecodeLocator(bad)
		require.Error(t, err, "% x", bad)
	}
}

func FuzzDecodeLocator(f *testing.F) {
	f.Add([]byte{1, 0})
	f.Add(AppendLocator(nil, Locator{Home: 1 << 40, Row: 77}))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLocator(b)
		if err != nil {
			return
		}
		again, err := DecodeLocator(AppendLocator(nil, l))
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}

func TestRowSetRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 63, 64, 65, 5000, 200_000} {
		set := NewBitset(n)
		for range n / 3 {
			set.Set(uint32(rng.IntN(n)))
		}
		rows := set.Rows()
		require.Equal(t, set.Count(), len(rows))
		require.True(t, slices.IsSorted(rows))
		b, err := EncodeRows(rows)
		require.NoError(t, err)
		got, err := DecodeRows(b, n)
		require.NoError(t, err)
		require.Equal(t, len(rows), len(got))
		require.True(t, slices.Equal(rows, got))
		if len(rows) > 0 {
			_, err = DecodeRows(b, int(rows[len(rows)-1]))
			require.Error(t, err)
		}
		_, err = DecodeRows(append(b, 0), n)
		require.Error(t, err)
	}
}

func TestBitset(t *testing.T) {
	b := NewBitset(130)
	b.Set(0)
	b.Set(129)
	require.True(t, b.Has(0) && b.Has(129) && !b.Has(1) && !b.Has(100000))
	b.Clear(0)
	require.Equal(t, []uint32{129}, b.Rows())
}

func FuzzDecodeRows(f *testing.F) {
	for _, rows := range [][]uint32{nil, {1}, {1, 2, 3, 70000}} {
		b, err := EncodeRows(rows)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := DecodeRows(b, 100_000)
		if err == nil && len(rows) > 0 {
			require.Less(t, rows[len(rows)-1], uint32(100_000))
		}
	})
}
