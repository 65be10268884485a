//go:build invariants

package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/storage/part"
)

// TestInvariantsBite keeps the checks from going blind: each must catch what it is meant to catch.
func TestInvariantsBite(t *testing.T) {
	def := testTable("items")
	good, other := rowsOf(t, def, numbered(0, 5, "a")), rowsOf(t, def, numbered(10, 15, "a"))
	checkRows(good)
	swapped := *good
	swapped.Keys = other.Keys
	require.PanicsWithValue(t, `storage: table shop.items, row 0: key 810a was given, its values have key 80`, func() { checkRows(&swapped) })
	short := *good
	short.Keys = good.Keys.Slice(0, 4)
	require.Panics(t, func() { checkRows(&short) })

	encoded, err := part.EncodeSegment(good)
	require.NoError(t, err)
	checkStored(good, encoded)
	require.Panics(t, func() { checkStored(other, encoded) })
	require.Panics(t, func() { checkStored(good, encoded[:len(encoded)-1]) })

	h := &home{id: 7, dead: &deadRows{rows: 100}}
	h.dead.add(3, []uint32{4}, 3)
	checkAlive(h, 3, []uint32{1, 2, 99})
	require.Panics(t, func() { checkAlive(h, 3, []uint32{1, 4}) })
	require.Panics(t, func() { checkAlive(h, 3, []uint32{1, 1}) })
	require.Panics(t, func() { checkHeld("it", -1) })
	require.Panics(t, func() { checkMoved("items", []uint32{1, gone}) })
}

// TestReleasedTwice: a pin that is let go twice is seen.
func TestReleasedTwice(t *testing.T) {
	s := openTest(t, "/data", smallOptions(vfs.NewMem()))
	st := s.pinHead()
	s.unpin(st.seq)
	require.Panics(t, func() { s.unpin(st.seq) })
	s.pins = map[CommitSeq]int{}
	closeTest(t, s)
}
