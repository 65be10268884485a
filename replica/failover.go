package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/wire"
)

// A database may have several addresses: servers of one history, of which one is the source at a time. Each connect looks
// its name up anew. A server is followed when it
//
//  1. answers, and lets us in;
//  2. has the role of a source: it writes a binlog, and it is not read-only (unless allow_read_only says that it may be);
//  3. has everything that was read before: its GTID set contains ours, and its last transaction that we know is the same
//     one, committed at the same moment (its GTID alone proves nothing after a reset or a restore).
//
// The first one that does, from the one that is the source now, is the source from then on. Positions in files mean
// nothing on another server, so a database that is followed by them has one address, and its server is known by its UUID.

// roleError is a server that answers and is no source at the moment.
type roleError struct{ addr, what, advice string }

func (e *roleError) Error() string {
	return fmt.Sprintf("MySQL at %s %s; %s", e.addr, e.what, e.advice)
}

// checkRole looks whether a server is a source, and not what has become of one. CLOUD-19
func (d *database) checkRole(s *compat.Source) error {
	allow := d.spec().Settings.Connection.AllowReadOnly
	switch {
	case !s.LogBin:
		return &roleError{s.Addr, "writes no binlog (log_bin)", "it is looked at again"}
	case s.ReadOnly && !allow:
		return &roleError{s.Addr, "is read-only, and was not when the database was created: it may be a former primary",
			"the name is looked up again; to follow a server that is read-only: ALTER DATABASE ... MODIFY SETTING allow_read_only = 1"}
	}
	return nil
}

// behindError is a replica that has not come as far as we have, or never will.
type behindError struct {
	addr    string
	missing gtid.Set
}

func (e *behindError) Error() string {
	return fmt.Sprintf("MySQL at %s is a replica that does not have transactions which were read before: %s; it may get them yet", e.addr, e.missing)
}

// checkHistory looks whether another server than the one that was read from has all of a set.
func checkHistory(s *compat.Source, set gtid.Set, last gtid.Identity) error {
	missing := set.Subtract(s.Executed)
	if last.IsZero() || last.Source == s.UUID || missing.IsZero() {
		return nil // of the same server binlog.Open knows more: it sends transactions before they count as executed
	}
	if s.ReadOnly && s.ReplicaOf {
		return &behindError{s.Addr, missing}
	}
	return &binlog.Error{Class: binlog.Rewound, Missing: missing,
		Err: fmt.Errorf("MySQL at %s does not have transactions that were read before (from %s): %s", s.Addr, last.Source, missing)}
}

// attempt is what became of one address.
type attempt struct {
	addr string
	err  error
}

// noSourceError says that none of several addresses can be followed.
type noSourceError struct{ tried []attempt }

func (e *noSourceError) Error() string {
	lines := make([]string, len(e.tried))
	for i, a := range e.tried {
		lines[i] = fmt.Sprintf("\n  - %s: %v", a.addr, a.err)
	}
	return fmt.Sprintf("none of the %d servers can be followed:%s", len(e.tried), strings.Join(lines, ""))
}

// Unwrap gives the error that decides: another history, else one that passes by itself, else the first.
func (e *noSourceError) Unwrap() error {
	for _, decides := range []func(verdict) bool{verdict.history, func(v verdict) bool { return v.tries != 0 }} {
		for _, a := range e.tried {
			if decides(judge(a.err)) {
				return a.err
			}
		}
	}
	return e.tried[0].err
}

// history tells an error that is about what the server has, not about how it is reached.
func (v verdict) history() bool {
	return v.tries == 0 && (v.kind == kindRewound || v.kind == kindPurged || v.kind == kindOther)
}

// triesWhileAway is how often servers are looked at again when one of them has another history, and another one does not
// answer: it may come back.
const triesWhileAway = 8

// verdict joins those of the addresses.
func (e *noSourceError) verdict() verdict {
	v := judge(e.Unwrap())
	if !v.history() {
		return v
	}
	for _, a := range e.tried {
		if judge(a.err).tries != 0 {
			v.tries = triesWhileAway
		}
	}
	return v
}

// hosts gives the addresses, from the one that is the source now, with their numbers.
func (d *database) hosts() (all []wire.Address, first int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all = d.cfg.Spec.addresses()
	return all, d.host % len(all)
}

// moved notes that another address is the source now.
func (d *database) moved(ctx context.Context, number int, source *compat.Source) {
	d.mu.Lock()
	was := d.host
	d.host = number
	d.mu.Unlock()
	if was == number {
		return
	}
	d.log.Warn("another server is the source now", "address", source.Addr, "server_uuid", source.UUID.String(), "version", source.Version)
	d.note(ctx, "failover", fmt.Sprintf("MySQL at %s (server_uuid %s) is the source now: it has everything that was read before", source.Addr, source.UUID))
}

// each tries the addresses in turn until one is followed; try tells whether it was. The error is that of the one that was,
// or of all.
func (d *database) each(ctx context.Context, try func(context.Context, int, wire.Address) (followed bool, err error)) error {
	all, first := d.hosts()
	if d.unserved() { // positions of the copy's windows are those of its server
		all, first = all[first:first+1], 0
	}
	var failed noSourceError
	for i := range all {
		number := (first + i) % len(all)
		followed, err := try(ctx, number, all[number])
		if followed || ctx.Err() != nil || errors.Is(err, errRestart) || len(all) == 1 {
			return err
		}
		failed.tried = append(failed.tried, attempt{all[number].String(), err})
	}
	return &failed
}

// probeAt asks one server what it is.
func (d *database) probeAt(ctx context.Context, at wire.Address) (*compat.Source, wire.Config, error) {
	d.mu.Lock()
	cfg := d.wireTo(at)
	d.mu.Unlock()
	c, source, err := compat.Dial(ctx, cfg)
	if err != nil {
		return nil, cfg, err
	}
	return source, cfg, c.Close()
}

// fits looks whether a server may be followed. What was read last is for the caller to compare.
func (d *database) fits(source *compat.Source, state replay.State, spooled gtid.Point) error {
	if err := d.checkRole(source); err != nil {
		return err
	}
	if err := d.sameServer(source, state.Last); err != nil {
		return err
	}
	if d.byPosition() {
		return nil
	}
	return checkHistory(source, state.Point.Set.Union(spooled.Set), state.Last)
}

// roleEvery is how often a server that is followed is looked at, unless Options say otherwise.
const roleEvery = 30 * time.Second

// watchRole ends streams from servers that are the source no more until ctx ends: a stream from a former primary may stay
// open for ever, with nothing coming. CLOUD-19
func (d *database) watchRole(ctx context.Context) {
	for sleep(ctx, d.m.opt.RoleEvery) {
		d.mu.Lock()
		p := d.puller
		d.mu.Unlock()
		if p == nil {
			continue
		}
		server, ok := p.following()
		if !ok {
			continue
		}
		if err := d.lookAtRole(ctx, server); err != nil {
			p.end(server, err)
		}
	}
}

// lookAtRole gives a roleError when the server of a stream is not the source any more. Where it can't be asked, the stream
// itself will tell.
func (d *database) lookAtRole(ctx context.Context, server gtid.UUID) error {
	cfg, allow := d.wire(), d.spec().Settings.Connection.AllowReadOnly
	c, err := wire.Dial(ctx, cfg)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	defer func() { _ = c.Close() }() // only read from
	r, err := c.Query(ctx, "SELECT @@global.server_uuid, @@global.read_only OR @@global.innodb_read_only")
	if err != nil || r.Rows() != 1 {
		return nil //nolint:nilerr // see above
	}
	all, _ := d.hosts()
	if is := r.Text(0, 0); !strings.EqualFold(is, server.String()) {
		return &roleError{cfg.Addr(), fmt.Sprintf("is another server now (server_uuid %s instead of %s)", is, server), "the stream is opened anew there"}
	}
	if r.Int(0, 1) != 0 && !allow && len(all) > 1 && !d.unserved() {
		return &roleError{cfg.Addr(), "has become read-only", "the other addresses are looked at"}
	}
	return nil
}

// stay runs pull, whose context end may end.
func (p *puller) stay(ctx context.Context, server gtid.UUID, pull func(ctx context.Context, stays func()) error) error {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	err := pull(ctx, func() { p.onto(server, leave) })
	p.onto(gtid.UUID{}, nil)
	var role *roleError
	if errors.As(context.Cause(ctx), &role) {
		return role
	}
	return err
}

func (p *puller) onto(server gtid.UUID, leave context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server, p.leave = server, leave
}

// following is the server that is pulled from now.
func (p *puller) following() (gtid.UUID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server, p.leave != nil
}

// end ends pulling from a server, if it is that one still.
func (p *puller) end(server gtid.UUID, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leave != nil && p.server == server {
		p.leave(cause)
	}
}
