package storage

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrameFindsDamage(t *testing.T) {
	key := makeKey(kindTable, 7)
	good := frame(key, []byte("payload"))
	payload, err := unframe(key, good)
	require.NoError(t, err)
	require.Equal(t, "payload", string(payload))
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			_, err := unframe(key, bad)
			require.Error(t, err, "byte %d, bit %d", i, bit)
		}
	}
	_, err = unframe(makeKey(kindTable, 8), good)
	require.Error(t, err, "the value of another key")
	newer := frame(key, nil)
	newer[1] = recordVersion + 1
	newer = appendSum(key, newer[:2])
	_, err = unframe(key, newer)
	require.ErrorIs(t, err, ErrNewerFormat)
}

func appendSum(key, body []byte) []byte {
	sum := recordSum(key, body)
	return append(body, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
}

func FuzzUnframe(f *testing.F) {
	key := makeKey(kindPart, 1, 2)
	f.Add(key, frame(key, []byte(`{"Path":"x"}`)))
	f.Add([]byte("h"), []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		payload, err := unframe(key, value)
		if err == nil && !bytes.Equal(frame(key, payload), value) {
			t.Fatal("a value that frame does not make was taken")
		}
		var rec partRecord
		_ = unframeJSON(key, value, &rec)
		_, _ = keyNumbers(key, 2)
	})
}

func TestWitness(t *testing.T) {
	both := append(witnessEntry(8), witnessEntry(7)...)
	require.EqualValues(t, 8, decodeWitness(both))
	both[5] ^= 1
	require.EqualValues(t, 7, decodeWitness(both), "the torn slot does not count")
	require.Zero(t, decodeWitness(make([]byte, 2*witnessSlot)))
	require.Zero(t, decodeWitness(nil))
}

func FuzzDecodeWitness(f *testing.F) {
	f.Add(witnessEntry(3))
	f.Fuzz(func(t *testing.T, b []byte) { decodeWitness(b) })
}

func TestNamesInPaths(t *testing.T) {
	// OPS-09: what a query engine or a shell could take for more than a letter.
	require.Equal(t, "3-a_b_x_y___", safeName(3, "a.b x=y*[é"))
	require.Equal(t, "3-", safeName(3, ""))
	require.LessOrEqual(t, len(safeName(3, string(bytes.Repeat([]byte("n"), 300)))), 50)
}
