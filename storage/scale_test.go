package storage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkManyTables (RES-10): commits of one row and opening, with 20000 tables.
func BenchmarkManyTables(b *testing.B) {
	dir := b.TempDir()
	s := openTest(b, dir, Options{})
	db, err := s.CreateDatabase(ctx, "shop", nil)
	require.NoError(b, err)
	x := s.Begin(db)
	var ids []TableID
	for i := range 20_000 {
		id, err := x.CreateTable(testTable(fmt.Sprint("t", i)))
		require.NoError(b, err)
		ids = append(ids, id)
	}
	_, err = x.Commit(ctx)
	require.NoError(b, err)
	def := testTable("t7")
	b.Run("commit", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, upsertRows(b, s, db, ids[7], def, numbered(0, 1, "x")))
		}
	})
	b.Run("pin", func(b *testing.B) {
		for b.Loop() {
			v, err := s.Pin(db)
			require.NoError(b, err)
			_, err = v.Table(db, "t7")
			require.NoError(b, err)
			v.Release()
		}
	})
	require.NoError(b, s.Close())
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			s := openTest(b, dir, Options{})
			require.NoError(b, s.Close())
		}
	})
}
