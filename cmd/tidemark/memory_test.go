package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByteSize(t *testing.T) {
	for in, want := range map[string]string{"1GiB": "1GiB", "1g": "1GiB", "1536MiB": "1536MiB", "0.5 GiB": "512MiB", "1000": "1000", "1kB": "1000", "2 tib": "2048GiB"} {
		var b byteSize
		require.NoError(t, b.Set(in), in)
		require.Equal(t, want, b.String(), in)
	}
	for _, in := range []string{"", "x", "1x", "-1GiB", "1e30GiB", "GiB"} {
		var b byteSize
		require.Error(t, b.Set(in), in)
	}
}

func TestSplitMemory(t *testing.T) {
	_, err := splitMemory(100 * mib)
	require.Error(t, err)
	for _, total := range []int64{minMemory, gib, 16 * gib} {
		b, err := splitMemory(total)
		require.NoError(t, err)
		sum := b.engine + b.cache + 3*b.memTable + b.segments + 2*b.load
		require.Less(t, sum, total)
		require.Greater(t, sum, total*3/4)
	}
}
