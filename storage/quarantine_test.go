package storage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

// A table of which nothing but the name is known is quarantined from the start, takes no rows, and can be dropped.
func TestCreateQuarantined(t *testing.T) {
	dir, opt := t.TempDir(), smallOptions(nil)
	s := openTest(t, dir, opt)
	db, _ := createTest(t, s, testTable("items"))
	def := &schema.Table{Database: "shop", Name: "renamed", Version: 1, NextColumnID: 1}
	x := s.Begin(db)
	_, err := x.CreateQuarantined(def, "it came by a renaming", []byte("gtid:1"))
	require.NoError(t, err)
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	requireSound(t, s)
	require.NoError(t, s.Close())

	s = openTest(t, dir, opt)
	info, err := s.Table(db, "renamed")
	require.NoError(t, err)
	require.Equal(t, Quarantined, info.State)
	require.Equal(t, "it came by a renaming", info.Reason)
	require.Equal(t, []byte("gtid:1"), info.Point)
	x = s.Begin(db)
	require.ErrorIs(t, x.Apply(ctx, info.ID, &Changes{}), ErrQuarantined)
	require.NoError(t, x.DropTable(info.ID))
	_, err = x.Commit(ctx)
	require.NoError(t, err)
	requireSound(t, s)
	closeTest(t, s)
}
