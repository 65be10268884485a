package storage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

func TestCommitIsThereAfterReopen(t *testing.T) {
	dir, opt := t.TempDir(), smallOptions(nil)
	s := openTest(t, dir, opt)
	def := testTable("items")
	db, ids := createTest(t, s, def)
	x := s.Begin(db)
	want := map[int64]row{1: {"one", 1, 0}, 2: {"two", 2, 0}}
	require.NoError(t, x.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, def, want), PutExpect: expectAll(MustNotExist, 2)}))
	x.SetPoint([]byte("gtid:1"))
	x.PutPendingXA("xid1", []byte("rows"))
	x.Log(Event{Kind: "test", Message: "hello"})
	seq, err := x.Commit(ctx)
	require.NoError(t, err)
	require.Equal(t, want, headContents(t, s, ids[0]))
	requireSound(t, s)
	_, err = Open(dir, opt)
	require.ErrorIs(t, err, ErrInUse)
	meta, err := os.Stat(filepath.Join(dir, metaName))
	require.NoError(t, err)
	require.Zero(t, meta.Mode().Perm()&0o077, "the metadata hold credentials")
	require.NoError(t, s.Close())

	s = openTest(t, dir, opt)
	require.Equal(t, want, headContents(t, s, ids[0]))
	info, err := s.Database("shop")
	require.NoError(t, err)
	require.Equal(t, []byte("gtid:1"), info.Point)
	require.Equal(t, seq, s.Seq())
	content, err := s.PendingXA(db, "xid1")
	require.NoError(t, err)
	require.Equal(t, []byte("rows"), content)
	events, err := s.Events(10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, "shop", events[0].Database)
	closeTest(t, s)
}

func TestUpsertDeleteAndExpectations(t *testing.T) {
	s := openTest(t, t.TempDir(), smallOptions(nil))
	def := testTable("items")
	db, ids := createTest(t, s, def)
	id := ids[0]
	apply := func(c *Changes) error {
		x := s.Begin(db)
		err := x.Apply(ctx, id, c)
		if err == nil {
			_, err = x.Commit(ctx)
		}
		require.NoError(t, x.Abort())
		return err
	}
	require.NoError(t, apply(&Changes{Puts: rowsOf(t, def, map[int64]row{1: {"a", 1, 0}, 2: {"b", 2, 0}, 3: {"c", 3, 0}})}))
	require.NoError(t, apply(&Changes{
		Puts: rowsOf(t, def, map[int64]row{1: {"A", 10, 0}}), PutExpect: []Expect{MustExist},
		Deletes: keysOf(t, def, 2), DeleteExpect: []Expect{MustExist},
		Checks: keysOf(t, def, 9), CheckExpect: []Expect{MustNotExist},
	}))
	want := map[int64]row{1: {"A", 10, 0}, 3: {"c", 3, 0}}
	require.Equal(t, want, headContents(t, s, id))

	var diverged *DivergenceError
	for name, c := range map[string]*Changes{
		"insert of a key that is there": {Puts: rowsOf(t, def, map[int64]row{1: {"x", 1, 0}}), PutExpect: []Expect{MustNotExist}},
		"update of a missing key":       {Puts: rowsOf(t, def, map[int64]row{2: {"x", 1, 0}}), PutExpect: []Expect{MustExist}},
		"delete of a missing key":       {Deletes: keysOf(t, def, 2), DeleteExpect: []Expect{MustExist}},
		"check of a key that is there":  {Checks: keysOf(t, def, 3), CheckExpect: []Expect{MustNotExist}},
	} {
		require.ErrorAs(t, apply(c), &diverged, name)
		c.Tolerant = true
		x := s.Begin(db)
		require.NoError(t, x.Apply(ctx, id, c), name)
		require.NoError(t, x.Abort())
	}
	require.ErrorIs(t, apply(&Changes{Puts: rowsOf(t, def, map[int64]row{7: {}}), Deletes: keysOf(t, def, 7)}), errTwice)
	require.Equal(t, want, headContents(t, s, id))
	closeTest(t, s)
}

func TestNewerFormatIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := openTest(t, "/data", smallOptions(fs))
	closeTest(t, s)
	require.NoError(t, replaceFile(fs, "/data", formatName, []byte("tidemark store format 3\n")))
	_, err := Open("/data", smallOptions(fs))
	require.ErrorIs(t, err, ErrNewerFormat)
	require.NoError(t, replaceFile(fs, "/data", formatName, []byte("something")))
	_, err = Open("/data", smallOptions(fs))
	var damage *DamageError
	require.True(t, errors.As(err, &damage), "%v", err)
}
