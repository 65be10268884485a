package replica

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/wire"
)

func somePoint(t testing.TB) replay.State {
	set, err := gtid.ParseSet("aa000000-0000-0000-0000-000000000001:1-5:7,aa000000-0000-0000-0000-000000000001:tag:3")
	require.NoError(t, err)
	at := gtid.Position{File: "binlog.000007", Offset: 1 << 33}
	return replay.State{Point: gtid.Point{Set: set, Position: at}, Rows: 1 << 40, Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci",
		Last: gtid.Identity{GTID: gtid.GTID{Source: gtid.UUID{1}, Number: 7}, Start: at, Committed: 1796054735344677, FileCreated: 1796054735}}
}

func TestPointRoundTrip(t *testing.T) {
	for _, s := range []replay.State{{}, somePoint(t)} {
		b := encodePoint(&s)
		got, err := decodePoint(b)
		require.NoError(t, err)
		require.Equal(t, s, got)
		for n := range len(b) {
			_, err := decodePoint(b[:n])
			require.Error(t, err, "%d of %d bytes", n, len(b))
		}
		_, err = decodePoint(append(b, 0))
		require.ErrorIs(t, err, errPoint)
	}
}

func FuzzDecodePoint(f *testing.F) {
	s := somePoint(f)
	f.Add(encodePoint(&s))
	f.Add([]byte{pointVersion})
	f.Add([]byte{2})
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = decodePoint(b) })
}

func TestConfigRoundTrip(t *testing.T) {
	c := &config{Version: configVersion, Spec: Spec{Name: "shop", Host: "h", Port: 3306, SourceDatabase: "db", User: "u", Password: "p", Settings: DefaultSettings()}, ServerID: 7, TimeZone: "+05:30"}
	b, err := c.encode()
	require.NoError(t, err)
	got, err := decodeConfig(b)
	require.NoError(t, err)
	require.Equal(t, c, got)
	// Settings that a later version adds have their defaults.
	got, err = decodeConfig([]byte(`{"Version": 1, "Spec": {"Name": "shop", "Settings": {"MaxRowsInBuffer": 5}}}`))
	require.NoError(t, err)
	require.EqualValues(t, 5, got.Spec.Settings.MaxRowsInBuffer)
	require.Equal(t, DefaultSettings().MaxFlushDataTime, got.Spec.Settings.MaxFlushDataTime)
	_, err = decodeConfig([]byte(`{"Version": 2}`))
	require.ErrorIs(t, err, storage.ErrNewerFormat)
	_, err = decodeConfig([]byte(`{`))
	require.Error(t, err)
}

// What is tried again, what is tried a few times, and what is left to people (OPS-07).
func TestJudge(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("while at it: %w", err) }
	class := func(c binlog.Class) error { return &binlog.Error{Class: c, Err: errors.New("x")} }
	for _, c := range []struct {
		err   error
		tries int
	}{
		{&wire.ConnectError{Err: errors.New("refused")}, forever},
		{&wire.ConnectError{Full: true, Err: errors.New("too many")}, forever},
		{&wire.ConnectError{Denied: true, Err: errors.New("denied")}, 0},
		{class(binlog.ConnectionLost), forever},
		{class(binlog.Local), forever},
		{class(binlog.Corrupt), 3},
		{class(binlog.DuplicateServerID), 3},
		{class(binlog.AuthFailed), 0},
		{class(binlog.PurgedLogs), 0},
		{class(binlog.Rewound), 0},
		{class(binlog.UnknownEvent), 0},
		{class(binlog.Incident), 0},
		{class(binlog.TooLarge), 0},
		{class(binlog.Misconfigured), 0},
		{storage.ErrDiskFull, forever},
		{&storage.FailedError{Cause: errors.New("x")}, 0},
		{&storage.DamageError{}, 0},
		{&compat.ProblemsError{}, 0},
		{&replay.StopError{}, 0},
		{snapshot.ErrSchemaChanged, 5},
		{&snapshot.LockError{Obstacle: snapshot.Busy}, 3},
		{&snapshot.LockError{Obstacle: snapshot.Denied}, 0},
		{errors.New("the connection broke"), forever},
	} {
		require.Equal(t, c.tries, judge(wrap(c.err)).tries, "%T %v", c.err, c.err)
	}
}

func TestQueue(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tx := func() *binlog.Transaction {
		return binlogtest.Transaction(binlog.Empty, gtid.GTID{}, gtid.Position{}, gtid.Position{})
	}
	q := newQueue(2 * perTransaction)
	a, b := tx(), tx()
	require.True(t, q.push(ctx, a))
	require.True(t, q.push(ctx, b))
	pushed := make(chan bool)
	go func() { pushed <- q.push(ctx, tx()) }()
	select {
	case <-pushed:
		t.Fatal("there was no room")
	default:
	}
	got, err := q.pop(ctx, time.Time{})
	require.NoError(t, err)
	require.Same(t, a, got)
	require.True(t, <-pushed)
	broken := errors.New("the stream broke")
	q.close(broken)
	require.False(t, q.push(ctx, tx()))
	for range 2 { // what came before the end is still there
		_, err := q.pop(ctx, time.Time{})
		require.NoError(t, err)
	}
	_, err = q.pop(ctx, time.Time{})
	require.ErrorIs(t, err, broken)

	q = newQueue(1)
	require.True(t, q.push(ctx, tx())) // larger than the bound, alone
	go func() { pushed <- q.push(ctx, tx()) }()
	_, err = q.pop(ctx, time.Time{})
	require.NoError(t, err)
	require.True(t, <-pushed)
	_, err = q.pop(ctx, time.Time{})
	require.NoError(t, err)
	got, err = q.pop(ctx, time.Now())
	require.NoError(t, err)
	require.Nil(t, got)
	cancel()
	_, err = q.pop(ctx, time.Time{})
	require.ErrorIs(t, err, context.Canceled)
}
