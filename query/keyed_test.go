package query

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// keyedProcessor has the rows (k, u) for k from -20 to 19 in steps of 2 and u = 3k+100, as one part and some segments, two of them moved.
func keyedProcessor(t *testing.T) *Processor {
	def := &schema.Table{Database: "d", Name: "t", Version: 1, Key: []int{1, 0}, KeyName: "PRIMARY", NextColumnID: 4}
	for i, c := range [][2]string{{"U", "bigint unsigned"}, {"k", "int"}, {"v", "int"}} {
		col, err := schema.ParseColumnType(c[1])
		require.NoError(t, err)
		col.ID, col.Name = uint32(i+1), c[0]
		def.Columns = append(def.Columns, col)
	}
	dir := t.TempDir()
	store, err := storage.Open(dir, storage.Options{NoMaintenance: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	db, err := store.CreateDatabase(t.Context(), "d", nil)
	require.NoError(t, err)
	txn := store.Begin(db)
	id, err := txn.CreateTable(def)
	require.NoError(t, err)
	txn.SetPoint([]byte("point"))
	_, err = txn.Commit(t.Context())
	require.NoError(t, err)
	for first := -20; first < 20; first += 10 {
		b := column.NewBuilder(memory.DefaultAllocator, def)
		for k := first; k < first+10; k += 2 {
			b.Column(0).Uint(uint64(3*k + 100))
			b.Column(1).Int(int64(k))
			b.Column(2).Int(int64(k * k))
			b.EndRow()
		}
		rows, err := b.Finish()
		require.NoError(t, err)
		txn := store.Begin(db)
		require.NoError(t, txn.Apply(t.Context(), id, &storage.Changes{Puts: rows}))
		_, err = txn.Commit(t.Context())
		require.NoError(t, err)
		if first == -20 {
			require.NoError(t, store.Flush(t.Context(), id))
		}
	}
	// The row of -18 moves from the part to a segment, that of -8 from one segment to another.
	b := column.NewBuilder(memory.DefaultAllocator, def)
	for _, k := range []int64{-18, -8} {
		b.Column(0).Uint(uint64(3*k + 100))
		b.Column(1).Int(k)
		b.Column(2).Int(k * k)
		b.EndRow()
	}
	moved, err := b.Finish()
	require.NoError(t, err)
	txn = store.Begin(db)
	require.NoError(t, txn.Apply(t.Context(), id, &storage.Changes{Puts: moved}))
	_, err = txn.Commit(t.Context())
	require.NoError(t, err)
	e, err := engine.Open(engine.Options{PartDirs: []string{dir}, TempDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return New(Options{Store: store, Engine: e})
}

func askKeyed(t *testing.T, p *Processor, sql string, params ...translate.Value) string {
	session := &Session{Session: translate.Session{Database: "d", Location: time.UTC}}
	stmts, err := translate.NewParser().Parse(sql, session.SQLMode)
	require.NoError(t, err)
	r, err := p.Select(t.Context(), stmts[0], session, params, nil)
	require.NoError(t, err)
	defer r.Rows.Close()
	var out []string
	for {
		block, err := r.Rows.Next()
		if err == io.EOF {
			return strings.Join(out, " ")
		}
		require.NoError(t, err)
		for i := range block.Len() {
			text, _ := block.Text(nil, i, 0)
			out = append(out, string(text))
		}
	}
}

// A WHERE that names a key is answered from the parts and segments that may have it, and as if from all.
func TestLookupByKey(t *testing.T) {
	p := keyedProcessor(t)
	for k := -23; k < 23; k++ {
		want := ""
		if k%2 == 0 && k >= -20 && k < 20 {
			want = fmt.Sprint(k * k)
		}
		u := 3*k + 100
		require.Equal(t, want, askKeyed(t, p, fmt.Sprintf("SELECT v FROM t WHERE u = %d AND (%d = t.K)", u, k)), "%d", k)
		require.Equal(t, want, askKeyed(t, p, "SELECT x.v FROM t AS x WHERE k = ? AND u = ? AND v >= 0",
			translate.Value{Kind: translate.IntValue, Int: int64(k)}, translate.Value{Kind: translate.UintValue, Uint: uint64(u)}), "%d", k)
		require.Equal(t, want, askKeyed(t, p, fmt.Sprintf("SELECT v FROM t WHERE k = %d", k)), "%d", k)
		require.Empty(t, askKeyed(t, p, fmt.Sprintf("SELECT v FROM t WHERE u = %d AND k = %d AND k = 1000", u, k)))
	}
	require.Equal(t, "20", askKeyed(t, p, "SELECT COUNT(*) FROM t WHERE k = 2 AND u = 106 OR k <> 2"))
	require.Equal(t, "20", askKeyed(t, p, "SELECT (SELECT COUNT(*) FROM t) FROM t WHERE k = 2 AND u = 106"))
	require.Equal(t, "20", askKeyed(t, p, "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.k = 2 WHERE a.k = 2 AND a.u = 106"))
	require.Equal(t, "0", askKeyed(t, p, "SELECT COUNT(*) FROM t WHERE k = 2 AND u = -1"))
	require.Equal(t, "0", askKeyed(t, p, "SELECT COUNT(*) FROM t WHERE k = 18446744073709551615 AND u = 106"))
}

// Only as much is read as has to be.
func TestWithKeyLeavesOut(t *testing.T) {
	p := keyedProcessor(t)
	s, err := p.Pin()
	require.NoError(t, err)
	defer s.Release()
	tv, err := s.version.Table(p.o.Store.Databases()[0].ID, "t")
	require.NoError(t, err)
	require.Len(t, tv.Segments, 4)
	require.Len(t, tv.Parts, 1)
	of := func(k int64, u int64) *storage.TableVersion {
		key := keyOf(tv.Def, map[string]translate.Value{"k": {Kind: translate.IntValue, Int: k}, "u": {Kind: translate.IntValue, Int: u}})
		require.NotNil(t, key)
		return withKey(tv, key)
	}
	require.Len(t, of(-16, 52).Parts, 1)
	require.Empty(t, of(-16, 52).Segments)
	require.Empty(t, of(4, 112).Parts)
	require.Len(t, of(4, 112).Segments, 1)
	require.Equal(t, 1, of(4, 112).Segments[0].Batch.Rows())
	require.Empty(t, of(5, 115).Segments)
	require.Empty(t, of(1000, 1).Parts)
	require.Nil(t, keyOf(tv.Def, map[string]translate.Value{"k": {Kind: translate.IntValue, Int: 1}}))
	require.Nil(t, keyOf(tv.Def, nil))
}
