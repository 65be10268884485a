package replica

import (
	"context"
	"errors"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
)

const (
	// holdLimit bounds the time for which a job holds the stream: the lag that it adds to the other tables.
	holdLimit = time.Second
	// jobBatchBytes and maxBatchCount bound a batch of a job. Batches are small, so that few seconds of work are lost when
	// the bound of a hold ends one.
	jobBatchBytes = 4 << 20
	jobBudget     = 32 << 20
	// feedPatience is how long a job waits for the next transaction before it looks at where the stream is.
	feedPatience = 20 * time.Millisecond
	// longestApart bounds the pause behind a try to meet the stream that did not come to its end.
	longestApart = 10 * time.Second
)

// errNotMet ends a hold in which the job did not come to where the stream stands.
var errNotMet = errors.New("the new copy of a table did not meet the stream in time")

// follower applies the stream to a shadow, up to where the database stands.
//
// Invariant: everything up to the replayer's State is applied, and nothing of a transaction behind the point that
// advance was called for.
type follower struct {
	j          *job
	feed       feed
	r          *replay.Replayer
	next       *binlog.Transaction // in hand: behind the point of the last call
	byPosition bool
}

// follow applies the changes since P0 until the shadow has taken the table's place.
func (j *job) follow(ctx context.Context) error {
	pause := feedPatience
	for {
		f, err := j.openFollower(ctx)
		if err != nil {
			return err
		}
		err = f.meet(ctx)
		f.close()
		if !errors.Is(err, errNotMet) {
			return err
		}
		j.d.log.Info("a table's new copy tries again to meet the stream", "table", j.table, "in", pause, "reason", err)
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
		pause = min(2*pause, longestApart)
	}
}

// openFollower begins where the shadow stands.
func (j *job) openFollower(ctx context.Context) (*follower, error) {
	source, err := j.d.known(ctx)
	if err != nil {
		return nil, err
	}
	state, err := j.stateOf()
	if err != nil {
		return nil, err
	}
	cfg := replay.Config{Database: j.d.spec().SourceDatabase, Filter: func(t string) bool { return t == j.table }, Server: serverOf(source), XAUnknown: j.record.XAUnknown,
		ByPosition: j.d.byPosition(), Budget: jobBudget}
	if err := j.skipOld(ctx, cfg, &state); err != nil {
		return nil, err
	}
	f := &follower{j: j, byPosition: cfg.ByPosition}
	if f.feed, err = j.openFeed(ctx, state.Point); err != nil {
		return nil, err
	}
	f.r = replay.New(cfg, &shadowRows{j}, state)
	return f, nil
}

// stateOf gives what the shadow's record says.
func (j *job) stateOf() (replay.State, error) {
	state, err := decodePoint(j.record.State)
	if err != nil {
		return state, err
	}
	def, err := j.d.shadowDef(j.shadow)
	if err != nil {
		return state, err
	}
	t := replay.Table{Def: def, Live: true}
	if t.Window, err = j.record.Window.open(); err != nil {
		return state, err
	}
	state.Tables = map[string]replay.Table{j.table: t}
	return state, nil
}

// skipOld finds, by file and position, from where on the row events of the table follow its definition: behind the last
// statement that changed it before the copy read it. It is done once, before anything is applied.
func (j *job) skipOld(ctx context.Context, cfg replay.Config, state *replay.State) error {
	t := state.Tables[j.table]
	if !cfg.ByPosition || t.Window == nil || t.Window.Bracket || state.Point.Position.Offset > 4 {
		return nil
	}
	feed, err := j.openFeed(ctx, state.Point)
	if err != nil {
		return err
	}
	defer feed.close()
	ahead := replay.NewAhead(cfg, *state)
	for {
		tx, err := feed.next(ctx, time.Time{})
		if err != nil {
			return err
		}
		past := tx.End.Compare(j.record.Seen) > 0
		if !past {
			err = ahead.Take(tx)
		}
		if err := errors.Join(err, tx.Release()); err != nil {
			return err
		}
		if past || tx.End.Compare(j.record.Seen) == 0 {
			break
		}
	}
	t.Window.From = gtid.Point{Position: ahead.From(j.table)}
	return nil
}

func (f *follower) close() {
	if f.next != nil {
		_ = f.next.Release() // read again by the next one
	}
	f.feed.close()
}

// meet follows the stream until the shadow has taken the table's place. errNotMet: begin anew where the shadow stands.
func (f *follower) meet(ctx context.Context) error {
	for {
		at, _, err := f.j.d.committed()
		if err != nil {
			return err
		}
		if !f.j.current() {
			return errGone
		}
		if server, ok := f.j.d.puller.following(); ok && f.j.record.Window != nil && server.String() != f.j.record.Server {
			return errOtherServer
		}
		if err := f.advance(ctx, at.Point); err != nil {
			return err
		}
		if f.at(at.Point) && f.converged() {
			if err := f.swap(ctx); !errors.Is(err, errElsewhere) {
				return err
			}
		}
		if !sleep(ctx, feedPatience) {
			return context.Cause(ctx)
		}
	}
}

// converged tells whether the shadow stands at one point.
func (f *follower) converged() bool { return f.r.State().Tables[f.j.table].Window == nil }

// at tells whether nothing lies between the shadow and a point of the stream.
func (f *follower) at(p gtid.Point) bool {
	here := f.r.State().Point
	if !f.byPosition {
		return here.Set.Equal(p.Set)
	}
	return here.Position.Compare(p.Position) >= 0 || f.next != nil && f.beyond(f.next, p)
}

// beyond tells whether a transaction lies behind a point of the stream. Signs of life lie nowhere.
func (f *follower) beyond(tx *binlog.Transaction, p gtid.Point) bool {
	switch {
	case tx.Kind == binlog.Progress:
		return false
	case f.byPosition || tx.GTID.IsZero():
		return tx.End.Compare(p.Position) > 0
	}
	return !p.Set.Has(tx.GTID)
}

// advance applies what lies in front of a point of the stream, as far as it has come.
func (f *follower) advance(ctx context.Context, to gtid.Point) error {
	for !f.at(to) || !f.converged() {
		txs, err := f.gather(ctx, to)
		if err == nil && len(txs) > 0 {
			err = f.r.Apply(ctx, txs)
		}
		for _, tx := range txs {
			_ = tx.Release() // the commit holds what counts
		}
		if err != nil {
			return f.judge(err)
		}
		if len(txs) == 0 {
			return nil
		}
		f.j.d.jobs.moveHold(f.j.table, f.r.State().Point)
	}
	return nil
}

// judge makes what stops the replayer of one table the end of the job's use.
func (f *follower) judge(err error) error {
	var stop *replay.StopError
	if errors.As(err, &stop) {
		return &worthlessError{stop.Error()}
	}
	return err
}

// gather takes transactions in front of a point, as many as a batch may have; none: nothing has come.
func (f *follower) gather(ctx context.Context, to gtid.Point) ([]*binlog.Transaction, error) {
	var txs []*binlog.Transaction
	var bytes int64
	deadline := time.Now().Add(feedPatience)
	for len(txs) < maxBatchCount && bytes < jobBatchBytes {
		tx, err := f.take(ctx, deadline)
		if err != nil || tx == nil {
			return txs, err
		}
		if f.beyond(tx, to) {
			f.next = tx
			break
		}
		txs = append(txs, tx)
		bytes += tx.Size()
		deadline = time.Now()
		if err := f.sameServer(tx); err != nil {
			return txs, err
		}
	}
	return txs, nil
}

func (f *follower) take(ctx context.Context, deadline time.Time) (*binlog.Transaction, error) {
	if tx := f.next; tx != nil {
		f.next = nil
		return tx, nil
	}
	return f.feed.next(ctx, deadline)
}

var errOtherServer = &worthlessError{"the source is another server now, and the copy of the table may hold what it never had"}

// sameServer refuses the transactions of another server while the rows may hold what it never had.
func (f *follower) sameServer(tx *binlog.Transaction) error {
	if f.j.record.Window == nil || tx.Source == (gtid.UUID{}) || tx.Source.String() == f.j.record.Server {
		return nil
	}
	return errOtherServer
}
