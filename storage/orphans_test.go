package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestDirectoriesOfDroppedTablesGo: once they are empty, of tables and of databases, in the same process and at the next
// start; what others put there stays.
func TestDirectoriesOfDroppedTablesGo(t *testing.T) {
	mem := vfs.NewMem()
	s := openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
	db, ids := createTest(t, s, testTable("a"), testTable("b"), testTable("c"))
	for i, name := range []string{"a", "b", "c"} {
		require.NoError(t, upsertRows(t, s, db, ids[i], testTable(name), numbered(0, 90, "x")))
	}
	dirs := func() []string {
		names, err := mem.List("/data/parts/1-shop")
		if isNotExist(err) {
			return nil
		}
		require.NoError(t, err)
		return names
	}
	foreign := "/data/parts/1-shop/99-foreign"
	require.NoError(t, replaceFile(mem, "/data/parts/1-shop", "99-foreign", nil))
	require.Len(t, dirs(), 4)
	v, err := s.Pin(db)
	require.NoError(t, err)
	inTxn(t, s, db, func(x *Txn) error { return x.DropTable(ids[0]) })
	require.NoError(t, s.Maintain(ctx))
	require.Len(t, dirs(), 4, "a reader has its files")
	v.Release()
	require.NoError(t, s.Maintain(ctx))
	require.Len(t, dirs(), 3)
	require.NoError(t, upsertRows(t, s, db, ids[1], testTable("b"), numbered(0, 90, "y")))

	inTxn(t, s, db, func(x *Txn) error { return x.DropTable(ids[1]) })
	require.NoError(t, s.Close())
	s = openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
	require.NoError(t, s.Maintain(ctx))
	require.NoError(t, s.Close())
	s = openTest(t, "/data", smallOptions(&faultFS{FS: mem}))
	require.Len(t, dirs(), 2)
	require.NoError(t, mem.Remove(foreign))
	require.NoError(t, s.DropDatabase(ctx, db))
	require.NoError(t, s.Maintain(ctx))
	require.Empty(t, dirs())
	names, err := mem.List("/data/parts")
	require.NoError(t, err)
	require.Empty(t, names)
	closeTest(t, s)
}
