package snapshot

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
)

// The queue gives each stretch once; what is split off goes to those who wait.
func TestQueue(t *testing.T) {
	var read []string
	large := &tableWork{table: &schema.Table{Name: "large", Columns: make([]schema.Column, 1), Key: []int{0}}, size: size{rows: 100, rowBytes: 10}}
	small := &tableWork{table: &schema.Table{Name: "small", Columns: make([]schema.Column, 1), Key: []int{0}}, size: size{rows: 5, rowBytes: 1}}
	keyless := &tableWork{table: &schema.Table{Name: "keyless", Columns: make([]schema.Column, 1)}}
	for _, w := range []*tableWork{small, large, keyless} {
		w.addStretches(true)
	}
	q := newQueue([]*tableWork{small, large, keyless}, func(w *tableWork) { read = append(read, w.table.Name) })
	a, b, c := q.next(), q.next(), q.next()
	require.Equal(t, []string{"keyless", "large", "small"}, []string{a.table.table.Name, b.table.table.Name, c.table.table.Name})
	require.False(t, q.hungry())
	q.ended(a)
	q.ended(c)
	got := make(chan *stretch)
	go func() { got <- q.next() }()
	for !q.hungry() {
		time.Sleep(time.Millisecond)
	}
	q.finished(b, &note{Rows: 10, Exact: true, UpTo: boundary{"10"}}, 100)
	q.split(b, boundary{"50"}, 40, 50)
	d := <-got
	require.Equal(t, keyRange{boundary{"10"}, boundary{"50"}}, b.rng)
	require.Equal(t, keyRange{boundary{"50"}, nil}, d.rng)
	require.Less(t, b.place, d.place)
	q.split(b, boundary{"30"}, 20, 20)
	e := q.next()
	require.True(t, b.place < e.place && e.place < d.place)
	q.ended(d)
	q.ended(b)
	require.Equal(t, []string{"keyless", "small"}, read)
	q.ended(e)
	require.Equal(t, []string{"keyless", "small", "large"}, read)
	require.Nil(t, q.next())
}

// A reader that waits for a stretch goes home when the copy is stopped.
func TestQueueStop(t *testing.T) {
	w := &tableWork{table: &schema.Table{Name: "t"}}
	w.addStretches(false)
	q := newQueue([]*tableWork{w}, func(*tableWork) {})
	require.NotNil(t, q.next())
	ctx, cancel := context.WithCancel(t.Context())
	context.AfterFunc(ctx, q.stop)
	time.AfterFunc(10*time.Millisecond, cancel)
	require.Nil(t, q.next())
}

// TestBetween: there is room between any two places, however often.
func TestBetween(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	places := []string{between("", "")}
	for range 2000 {
		i := r.IntN(len(places) + 1)
		if r.IntN(2) == 0 {
			i = len(places) / 2
		}
		low, high := "", ""
		if i > 0 {
			low = places[i-1]
		}
		if i < len(places) {
			high = places[i]
		}
		p := between(low, high)
		require.True(t, p > low && (high == "" || p < high), "%x < %x < %x", low, p, high)
		places = slices.Insert(places, i, p)
	}
}

// Chunks are put in order, and the gaps between them found, however they come.
func TestTakeOver(t *testing.T) {
	table := &schema.Table{Key: []int{0}}
	encode := func(n *note) []byte {
		b, err := n.encode()
		require.NoError(t, err)
		return b
	}
	a, c := between("", ""), between(between("", ""), "")
	b := between(a, c)
	notes := [][]byte{
		encode(&note{Place: []byte(c), After: boundary{"70"}, UpTo: boundary{"80"}, Rows: 1}),
		encode(&note{Place: []byte(a), Number: 1, After: boundary{"10"}, UpTo: boundary{"20"}, Rows: 2}),
		encode(&note{Place: []byte(b), After: boundary{"40"}, UpTo: boundary{"70"}, Rows: 4}),
		encode(&note{Place: []byte(a), UpTo: boundary{"10"}, Rows: 8}),
	}
	k, err := takeOver(table, notes)
	require.NoError(t, err)
	require.EqualValues(t, 15, k.rows)
	require.Len(t, k.gaps, 2)
	require.Equal(t, keyRange{boundary{"20"}, boundary{"40"}}, k.gaps[0].rng)
	require.True(t, a < k.gaps[0].place && k.gaps[0].place < b)
	require.Equal(t, keyRange{boundary{"80"}, nil}, k.gaps[1].rng)
	require.Less(t, c, k.gaps[1].place)
	_, err = takeOver(table, append(notes, notes[0]))
	require.ErrorIs(t, err, errNote)
	k, err = takeOver(table, nil)
	require.NoError(t, err)
	require.Equal(t, []gap{{place: between("", "")}}, k.gaps)
}

func FuzzTakeOver(f *testing.F) {
	b, err := (&note{Place: []byte{128}, After: boundary{"10"}, UpTo: boundary{"20"}, Bracket: newBracket(gtid.Point{}, gtid.Position{})}).encode()
	require.NoError(f, err)
	f.Add(b, b)
	f.Add([]byte(`{"v":1,"place":"gA==","n":0,"rows":3,"table":""}`), []byte(`{"v":1,"place":"wA==","n":0,"after":["5"],"rows":3,"table":""}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		k, err := takeOver(&schema.Table{Key: []int{0}}, [][]byte{a, b})
		if err == nil && len(k.gaps) > 3 {
			t.Error(k.gaps)
		}
	})
}

// TestCutOffWhileWaiting: a copy whose context ends while its readers wait for work is not taken for a complete one.
func TestCutOffWhileWaiting(t *testing.T) {
	cfg := Config{Plan: &compat.Plan{}}.withDefaults()
	w := &tableWork{table: &schema.Table{Name: "t"}}
	w.addStretches(false)
	c := &copier{cfg: &cfg, queue: newQueue([]*tableWork{w}, func(*tableWork) {}), origin: &origin{}}
	require.NotNil(t, c.queue.next()) // whose reader never ends
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("the server stops")
	time.AfterFunc(10*time.Millisecond, func() { cancel(gone) })
	c.readers = []*reader{{copier: c}, {copier: c}, {copier: c}}
	require.ErrorIs(t, c.readAll(ctx), gone)
}

// TestChunkSizes: what is in flight is a small part of a large table, chunks of small tables are not tiny, and wide rows
// bound them by their bytes.
func TestChunkSizes(t *testing.T) {
	for _, c := range []struct {
		rows, rowBytes, read int64
		want                 int64
	}{
		{10_000_000, 100, 0, 62_500},
		{10_000_000_000, 100, 0, 500_000},
		{10_000_000_000, 1000, 0, 67_108},
		{1000, 100, 0, 40_000},
		{1000, 100, 40_000_000, 250_000}, // the estimate was wrong
		{1000, 30 << 20, 0, 2},
		{1000, 1 << 30, 0, 1},
	} {
		cfg := Config{}.withDefaults()
		w := &tableWork{table: &schema.Table{Name: "t"}, key: make([]keyColumn, 1), size: size{c.rows, c.rowBytes}, rows: c.read}
		r := &reader{copier: &copier{cfg: &cfg, queue: newQueue(nil, nil)}}
		require.Equal(t, c.want, r.limit(w), "%+v", c)
		cfg.RowsPerSecond = 1000
		require.Equal(t, min(c.want, 1250), r.limit(w), "%+v", c)
	}
}
