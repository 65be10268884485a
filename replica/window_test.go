package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
)

func TestWindowRoundTrip(t *testing.T) {
	at := gtid.Position{File: "binlog.000007", Offset: 1 << 33}
	for _, w := range []*replay.Window{nil, {To: at}, {From: somePoint(t).Point, To: at, Bracket: true}} {
		b := encodeWindow(w)
		got, err := decodeWindow(b)
		require.NoError(t, err)
		require.Equal(t, w, got)
		for n := 1; n < len(b); n++ {
			_, err := decodeWindow(b[:n])
			require.ErrorIs(t, err, errWindow, "%d of %d bytes", n, len(b))
		}
		if w != nil {
			_, err = decodeWindow(append(b, 0))
			require.ErrorIs(t, err, errWindow)
		}
	}
}

func FuzzDecodeWindow(f *testing.F) {
	f.Add(encodeWindow(&replay.Window{To: gtid.Position{File: "binlog.000007", Offset: 4}}))
	f.Add([]byte{windowVersion, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if w, err := decodeWindow(b); err == nil && w != nil {
			_, err := decodeWindow(encodeWindow(w))
			require.NoError(t, err)
		}
	})
}
