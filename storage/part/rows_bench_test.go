package part

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
)

// One row out of a row group: what completing a partial row image costs.
func BenchmarkReadRow(b *testing.B) {
	tbl := allTypes()
	path := filepath.Join(b.TempDir(), "p.parquet")
	_, err := Write(context.Background(), path, tbl, []*column.Batch{fill(b, tbl, 0, 122_000, false)}, WriteOptions{})
	require.NoError(b, err)
	r, err := Open(nil, path)
	require.NoError(b, err)
	defer r.Close()
	for b.Loop() {
		_, err := r.ReadRows(context.Background(), tbl, []uint32{60_000})
		require.NoError(b, err)
	}
}
