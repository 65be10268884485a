package replica

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/replay"
)

// gate lets somebody work on a database between two batches of its stream: a table copy job that swaps its table in, a
// change of what is followed. It is a fair lock: whoever waits gets it after the batch in hand, however fast batches
// follow each other.
//
// Invariant: the Replayer and the names of its tables are touched by whoever has the gate, and by nobody else.
type gate struct {
	turn chan struct{} // full while somebody has it
	// The rest belongs to whoever has the gate.
	replayer *replay.Replayer // nil while the stream does not run
	rows     *rows
	failed   error // of a commit, seen by a holder: the stream's end
}

func newGate() *gate { return &gate{turn: make(chan struct{}, 1)} }

// errRestart ends a stream that is to be opened anew, because what it follows has changed.
var errRestart = errors.New("the stream is to be opened anew")

// enter takes the gate for the stream. The error is that of a commit that a holder has waited for.
func (g *gate) enter(ctx context.Context) error {
	if err := g.take(ctx); err != nil {
		return err
	}
	if g.failed != nil {
		defer g.leave()
		return g.failed
	}
	return nil
}

func (g *gate) take(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) leave() { <-g.turn }

// follow says that a stream runs now; nil: none.
func (g *gate) follow(r *replay.Replayer, names *rows) {
	g.turn <- struct{}{} // holders are bounded
	defer g.leave()
	g.replayer, g.rows, g.failed = r, names, nil
}

// settle waits for the commit that is under way.
func (g *gate) settle(ctx context.Context, r *replay.Replayer) error {
	if err := g.enter(ctx); err != nil {
		return err
	}
	defer g.leave()
	return r.Wait()
}

// errEnding is the error of a hold for which there is no time any more: the stream is about to end.
var errEnding = errors.New("the stream is about to end")

// between is hold, but waits for the next stream when one is about to end.
func (g *gate) between(ctx context.Context, do func() error) error {
	for {
		err := g.hold(ctx, do)
		if !errors.Is(err, errEnding) {
			return err
		}
		if !sleep(ctx, lookAgain) {
			return context.Cause(ctx)
		}
	}
}

// restart ends the stream that runs, so that it is opened anew. The gate is held.
func (g *gate) restart() {
	if g.replayer != nil {
		g.failed = errRestart
	}
}

// hold runs do while the stream stands between two batches and no commit of it is under way. do sees in g.replayer what
// is committed, and must be brief: everything else of the database waits.
func (g *gate) hold(ctx context.Context, do func() error) error {
	if err := g.take(ctx); err != nil {
		return err
	}
	defer g.leave()
	if g.replayer != nil && g.failed == nil {
		g.failed = g.replayer.Wait()
	}
	if g.replayer != nil && g.failed != nil {
		return fmt.Errorf("%w: %w", errEnding, g.failed)
	}
	return do()
}
