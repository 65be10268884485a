package server

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkRows sends rows of five columns in the text protocol to a client that throws them away.
func BenchmarkRows(b *testing.B) {
	f := newFixture(b)
	const n = 100_000
	f.fill("shop", n, "things")
	for b.Loop() {
		nc, err := net.Dial("tcp", f.addr.String())
		require.NoError(b, err)
		c := logIn(b, nc)
		c.send(0, append([]byte{comQuery}, "SELECT * FROM shop.things"...))
		c.send(0, []byte{comQuit})
		sent, err := io.Copy(io.Discard, c.r)
		require.NoError(b, err)
		b.SetBytes(sent)
		_ = nc.Close()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
