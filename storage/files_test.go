package storage

import (
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestReplaceFileKeepsTheOldOneOnFaults: a file that can't be written or synced takes the place of none.
func TestReplaceFileKeepsTheOldOneOnFaults(t *testing.T) {
	for _, op := range []string{"create", "write", "sync", "rename"} {
		fs := &faultFS{FS: vfs.NewMem()}
		require.NoError(t, replaceFile(fs, "", "FORMAT", []byte("old")))
		fs.set(func(o, path string) error {
			if o == op && strings.HasPrefix(path, "FORMAT") {
				return errNoSpace
			}
			return nil
		})
		require.ErrorIs(t, replaceFile(fs, "", "FORMAT", []byte("new")), ErrDiskFull, op)
		f, err := fs.Open("FORMAT")
		require.NoError(t, err)
		content, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, "old", string(content), op)
		require.NoError(t, f.Close())
	}
}

// TestForeignFilesAmongParts: what somebody put beside the parts does not keep the store from opening.
func TestForeignFilesAmongParts(t *testing.T) {
	fs := &faultFS{FS: vfs.NewMem()}
	s := openTest(t, "/data", smallOptions(fs))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	want := numbered(0, 200, "a")
	require.NoError(t, upsertRows(t, s, db, ids[0], def, want))
	v, err := s.Pin(db)
	require.NoError(t, err)
	table, err := v.Table(db, "items")
	require.NoError(t, err)
	require.NotEmpty(t, table.Parts)
	dir := fs.PathDir(table.Parts[0].Path)
	v.Release()
	closeTest(t, s)

	foreign := []string{"/data/parts/README", fs.PathJoin(fs.PathDir(dir), "notes.txt"), fs.PathJoin(dir, "notes.txt")}
	for _, path := range foreign {
		f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	s = openTest(t, "/data", smallOptions(fs))
	requireRows(t, want, headContents(t, s, ids[0]))
	closeTest(t, s)
	for _, path := range foreign {
		_, err := fs.Stat(path)
		require.NoError(t, err, path)
	}
}
