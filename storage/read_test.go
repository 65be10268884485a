package storage

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
)

// TestReadInPieces: rows of many bytes come in pieces, also those of parts that the transaction itself wrote, whatever it
// changes meanwhile.
func TestReadInPieces(t *testing.T) {
	s := openTest(t, "/data", Options{FS: &faultFS{FS: vfs.NewMem()}, NoMaintenance: true, Retention: -1, ReserveBytes: 1, SegmentBytes: 1 << 20})
	def := testTable("items")
	db, ids := createTest(t, s, def)
	large := func(from, to int64) map[int64]row {
		rows := map[int64]row{}
		for i := from; i < to; i++ {
			rows[i] = row{name: fmt.Sprint(i, strings.Repeat("x", 1<<18)), n: i}
		}
		return rows
	}
	require.NoError(t, upsertRows(t, s, db, ids[0], def, large(0, 150)))
	x := s.Begin(db)
	require.NoError(t, x.Apply(ctx, ids[0], &Changes{Puts: rowsOf(t, def, large(100, 250))}))
	require.NoError(t, x.Alter(ids[0], widened(def)))
	var keys []int64
	for i := range int64(260) {
		keys = append(keys, i)
	}
	asked := keysOf(t, def, keys...)
	pieces, rows := 0, 0
	require.NoError(t, x.Read(ctx, ids[0], &asked, func(b *column.Batch) error {
		require.Len(t, b.Table.Columns, 4)
		require.Less(t, batchBytes(b), int64(3*pieceBytes))
		rows += len(rowsOfBatch(t, b, nil, nil))
		pieces++
		gone := keysOf(t, def, int64(pieces), int64(200+pieces))
		return x.Apply(ctx, ids[0], &Changes{Deletes: gone})
	}))
	require.Equal(t, 250, rows)
	require.Greater(t, pieces, 2)
	failed := errors.New("no")
	require.ErrorIs(t, x.Read(ctx, ids[0], &asked, func(*column.Batch) error { return failed }), failed)
	_, err := x.Commit(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 250-2*pieces, s.Tables(db)[0].Rows)

	id := TableID(0)
	inTxn(t, s, db, func(x *Txn) (err error) {
		id, err = x.CreateTable(keylessTable("log"))
		return err
	})
	x = s.Begin(db)
	require.Error(t, x.Read(ctx, id, &asked, nil))
	require.ErrorIs(t, x.Read(ctx, 1<<40, &asked, nil), ErrNotFound)
	require.NoError(t, x.Abort())
	closeTest(t, s)
}
