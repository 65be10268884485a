package replica

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/replay"
)

// Whoever waits for the gate has it after the batch in hand, however fast the stream takes it again.
func TestGateIsFair(t *testing.T) {
	g := newGate()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		for {
			if err := g.enter(ctx); err != nil {
				ended <- err
				return
			}
			g.leave()
		}
	}()
	for range 1000 {
		require.NoError(t, g.hold(t.Context(), func() error { return nil }))
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// What a holder learns of the stream's commit is the stream's end, and no other batch is begun.
func TestGateTellsTheStream(t *testing.T) {
	g := newGate()
	boom := errors.New("boom")
	g.follow(replay.New(replay.Config{}, nil, replay.State{}), nil)
	require.NoError(t, g.hold(t.Context(), func() error { g.failed = boom; return nil }))
	require.ErrorIs(t, g.hold(t.Context(), func() error { return nil }), errEnding)
	require.ErrorIs(t, g.enter(t.Context()), boom)
	g.follow(nil, nil) // the next stream
	require.NoError(t, g.enter(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.hold(ctx, func() error { return nil }), context.Canceled)
	g.leave()
}
