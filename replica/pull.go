package replica

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/wire"
)

// puller fills the relay of a running database from the source, beside whoever reads it: a lost source does not keep what
// is spooled from being applied, nor a long commit the source's log from being spooled.
type puller struct {
	d     *database
	relay *relay.Relay
	ctx   context.Context //nolint:containedctx // of the database's goroutine

	changes sync.Mutex         // one start or pause at a time
	cancel  context.CancelFunc // nil while nothing is pulled
	done    chan struct{}

	mu     sync.Mutex
	failed chan struct{} // closed when err is set: nothing more will be pulled
	err    error
	tried  chan struct{}           // closed when the source was asked, or could not be
	server gtid.UUID               // that is pulled from now; zero: none
	leave  context.CancelCauseFunc // ends pulling from it
}

func newPuller(ctx context.Context, d *database) (*puller, error) {
	open := d.openRelay
	if spec := d.spec(); spec.replays() {
		open = func(context.Context) (*relay.Relay, error) { return relay.OpenArchive(spec.Settings.BinlogDir) }
	}
	r, err := open(ctx)
	if err != nil {
		return nil, err
	}
	return &puller{d: d, relay: r, ctx: ctx, failed: make(chan struct{}), tried: make(chan struct{})}, nil
}

// close ends pulling and makes what was spooled durable.
func (p *puller) close() error {
	p.changes.Lock()
	defer p.changes.Unlock()
	p.stop()
	return p.relay.Close()
}

// stop waits for the end of pulling; changes is held.
func (p *puller) stop() {
	if p.cancel != nil {
		p.cancel()
		<-p.done
		p.cancel = nil
	}
}

// start lets the relay be filled, unless it is; changes is held.
func (p *puller) start() {
	if p.cancel != nil {
		return
	}
	p.mu.Lock()
	p.failed, p.err, p.tried = make(chan struct{}), nil, make(chan struct{})
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(p.ctx)
	p.cancel, p.done = cancel, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		p.run(ctx)
	}(p.done)
}

// begin empties the relay and fills it from a point on.
func (p *puller) begin(at gtid.Point) error {
	p.changes.Lock()
	defer p.changes.Unlock()
	p.stop()
	if err := p.relay.Reset(p.d.relayStart(at)); err != nil {
		return err
	}
	p.start()
	return nil
}

// cover makes sure that the relay has, or will have, everything behind a point: what is spooled stays where it reaches back
// to it. A relay that ends in front of the point (a power cut took its end) is of no use.
func (p *puller) cover(at gtid.Point) error {
	if spec := p.d.spec(); spec.replays() {
		if !p.relay.Covers(at) {
			return fmt.Errorf("the binlog files in %s do not reach back to %s", spec.Settings.BinlogDir, at)
		}
		p.asked() // there is nobody to ask
		return nil
	}
	start := p.d.relayStart(at)
	begin, ok := p.relay.Begin()
	behind := p.relay.Consumed(at) && !start.ByPosition && !p.relay.End().Set.Equal(at.Set)
	if !ok || behind || begin.ByPosition != start.ByPosition || !p.relay.Covers(at) {
		return p.begin(at)
	}
	p.changes.Lock()
	defer p.changes.Unlock()
	p.start()
	return nil
}

// renew empties a relay that turned out to be damaged.
func (p *puller) renew(at gtid.Point, cause error) error {
	p.d.log.Error("the spooled binlog is damaged; it is read from the source again", "error", cause)
	p.d.note(p.ctx, "relay", fmt.Sprintf("the spooled binlog is damaged, and is read from the source again from %s on: %v", at, cause))
	return p.begin(at)
}

// failure tells whether pulling has ended for good, and is closed when it does.
func (p *puller) failure() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// asked notes that the source was asked about what is spooled, or could not be.
func (p *puller) asked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.tried:
	default:
		close(p.tried)
	}
}

// verified waits until the source was asked for the first time whether it still has what is spooled, or could not be asked.
func (p *puller) verified(ctx context.Context) error {
	p.mu.Lock()
	tried := p.tried
	p.mu.Unlock()
	select {
	case <-tried:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cause is why pulling has ended; nil while it has not.
func (p *puller) cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *puller) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	close(p.failed)
}

// run pulls until ctx ends or an error that no other try can mend.
func (p *puller) run(ctx context.Context) {
	tries := map[string]int{}
	pause := p.d.m.opt.FirstPause
	for {
		begun, end := time.Now(), p.relay.End()
		err := p.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRestart) {
			continue
		}
		p.asked()
		if !p.relay.End().Equal(end) || time.Since(begun) > steady {
			pause = p.d.m.opt.FirstPause
			// Two readers with one server id both get something done in turns, so that alone proves nothing.
			if time.Since(begun) > steady {
				clear(tries)
			}
		}
		v := judge(err)
		tries[v.kind]++
		if v.tries != forever && tries[v.kind] > v.tries {
			p.fail(err)
			return
		}
		p.d.sourceLost(ctx, v.explain(err), pause)
		if !sleep(ctx, pause+rand.N(pause/4+1)) {
			return
		}
		pause = min(2*pause, p.d.spec().Settings.MaxWaitTimeWhenMySQLUnavailable)
	}
}

// once finds a server, connects and pulls, until an error. errRestart: it is to be done again at once.
func (p *puller) once(ctx context.Context) error {
	err := p.d.each(ctx, func(ctx context.Context, number int, at wire.Address) (bool, error) {
		return p.from(ctx, number, at, false)
	})
	if binlog.ClassOf(err) != binlog.Rewound {
		return err
	}
	// No server has all that is spooled; one may have all that is applied.
	return p.d.each(ctx, func(ctx context.Context, number int, at wire.Address) (bool, error) {
		return p.from(ctx, number, at, true)
	})
}

// from pulls from one server until an error, if it may be the source. With drop, what is spooled and not applied may be
// given up for it.
func (p *puller) from(ctx context.Context, number int, at wire.Address, drop bool) (followed bool, err error) {
	source, reach, err := p.d.probeAt(ctx, at)
	if err != nil {
		return false, err
	}
	state, _, err := p.d.committed()
	if err != nil {
		return false, err
	}
	cfg := p.d.streamConfig(source, state)
	cfg.Source = reach
	if err = p.d.fits(source, state, p.relay.End()); err == nil {
		err = p.verify(ctx, cfg, state)
	}
	if err == nil {
		err = p.stay(ctx, source.UUID, func(ctx context.Context, stays func()) error {
			return p.relay.Pull(ctx, cfg, func() {
				followed = true
				p.asked()
				stays()
				p.d.moved(ctx, number, source)
				p.d.connected(ctx, source)
			})
		})
	}
	if drop && !followed && binlog.ClassOf(err) == binlog.Rewound {
		err = p.dropTail(ctx, cfg, err)
	}
	return followed, err
}

// verify makes sure that the source still has what was applied, and what was spooled behind it.
func (p *puller) verify(ctx context.Context, cfg binlog.Config, state replay.State) error {
	if err := p.d.verifyLast(ctx, cfg, state.Last); err != nil {
		return err
	}
	last := p.relay.Last()
	if last == state.Last {
		return nil
	}
	return p.d.verifyLast(ctx, cfg, last)
}

// dropTail takes back what was spooled and not applied, when the source has what was applied and nothing of that: a source
// that crashed before its log reached the disk. It gives errRestart then, else the cause.
func (p *puller) dropTail(ctx context.Context, cfg binlog.Config, cause error) error {
	err := p.d.gate.between(ctx, func() error {
		state, ok, err := p.d.committed()
		if err != nil {
			return err
		}
		if !ok || p.d.unserved() || state.Last.IsZero() || p.relay.Consumed(state.Point) || binlog.VerifyLast(ctx, cfg, state.Last) != nil || lostOf(cause, state.Point.Set) {
			return cause
		}
		end := p.relay.End()
		if err := p.relay.Cut(state.Point); err != nil {
			return err
		}
		p.d.log.Warn("the source has lost transactions that were spooled and not applied; what it has now is read instead", "from", state.Point.String(), "to", end.String(), "reason", cause)
		p.d.note(ctx, "relay", fmt.Sprintf("the source has lost transactions that were spooled and not applied, behind %s up to %s; what it has now is read instead: %v", state.Point, end, cause))
		p.d.gate.restart() // what was read ahead is void
		return nil
	})
	if err == nil {
		return errRestart
	}
	return err
}

// lostOf tells whether the transactions that an error names are among those of a set.
func lostOf(err error, set gtid.Set) bool {
	var own *binlog.Error
	return errors.As(err, &own) && !own.Missing.Subtract(set).Equal(own.Missing)
}

// sourceLost shows why nothing is pulled at the moment.
func (d *database) sourceLost(ctx context.Context, text string, pause time.Duration) {
	d.mu.Lock()
	first := d.away == ""
	d.away, d.caughtUp = text, false
	d.mu.Unlock()
	d.log.Warn("trying again", "in", pause.Round(time.Millisecond), "error", text)
	if first {
		d.note(ctx, "lost", text)
	}
}

// connected notes that the source is there, and what it is now.
func (d *database) connected(ctx context.Context, source *compat.Source) {
	d.mu.Lock()
	lost := d.away != ""
	d.away = ""
	d.mu.Unlock()
	if lost {
		d.note(ctx, "reconnected", fmt.Sprintf("the source %s answers again", source.Addr))
	}
	d.log.Info("following the binlog", "source", source.Addr, "server_uuid", source.UUID.String(), "version", source.Version, "encrypted", source.TLS.Used)
	if err := d.learn(ctx, source); err != nil && ctx.Err() == nil {
		d.log.Warn("what the source is now could not be noted", "error", err)
	}
}

// facts is what applying a source's log depends on besides the log, kept so that what is spooled can be applied while the
// source is away.
type facts struct {
	Version             string
	Major, Minor, Patch int
	LowerCaseTableNames int    `json:",omitempty"`
	NativeForeignKeys   bool   `json:",omitempty"`
	SystemTimeZone      string `json:",omitempty"`
}

func factsOf(s *compat.Source) *facts {
	return &facts{Version: s.Version, Major: s.Major, Minor: s.Minor, Patch: s.Patch, LowerCaseTableNames: s.LowerCaseTableNames,
		NativeForeignKeys: s.NativeForeignKeys, SystemTimeZone: s.SystemTimeZone}
}

func (f *facts) source() *compat.Source {
	return &compat.Source{Version: f.Version, Major: f.Major, Minor: f.Minor, Patch: f.Patch, LowerCaseTableNames: f.LowerCaseTableNames,
		NativeForeignKeys: f.NativeForeignKeys, SystemTimeZone: f.SystemTimeZone}
}

// known is what is known of the source; it is asked when nothing is.
func (d *database) known(ctx context.Context) (*compat.Source, error) {
	if f := d.config().Facts; f != nil {
		return f.source(), nil
	}
	source, err := d.probe(ctx)
	if err != nil {
		return nil, err
	}
	return source, d.learn(ctx, source)
}

// learn keeps what the source is now. When it is another version, the stream begins anew with it.
func (d *database) learn(ctx context.Context, source *compat.Source) error {
	was, now, zone := d.config(), factsOf(source), zoneOf(source)
	encrypted := was.Encrypted || source.TLS.Used
	changed := was.Facts != nil && *was.Facts != *now
	if was.Facts != nil && !changed && was.TimeZone == zone && was.Encrypted == encrypted {
		return nil
	}
	err := d.update(ctx, func(c *config) error { c.TimeZone, c.Facts, c.Encrypted = zone, now, encrypted; return nil })
	if err != nil || !changed {
		return err
	}
	return d.gate.between(ctx, func() error { d.gate.restart(); return nil })
}
