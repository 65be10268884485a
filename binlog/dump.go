package binlog

import (
	"context"

	"github.com/tidemarkdb/tidemark/gtid"
)

// Dump is the raw form of a Stream: the events as the source sends them, for somebody who keeps the log. It never looks
// into transactions further than a Walker. It is for one goroutine.
type Dump struct {
	s    *Stream
	in   *packets
	walk *Walker
	stop func() bool
}

// OpenDump is Open for a Dump. Unlike there, ctx governs the Dump for its whole life; its end ends a Next that waits.
func OpenDump(ctx context.Context, cfg Config) (*Dump, error) {
	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Dump{s: s, in: s.reader.in.(*packets), walk: NewWalker(s.source.uuid, s.last), stop: s.link.closeOn(ctx)}, nil
}

// Source is the server_uuid of the server that the dump reads from.
func (d *Dump) Source() gtid.UUID { return d.s.source.uuid }

// Next waits for the next event, verified. Its bytes are valid until the next call. The first error, an *Error, ends the
// dump; ctx is the one of OpenDump.
func (d *Dump) Next(ctx context.Context) ([]byte, Step, error) {
	d.in.giveBack()
	d.s.reader.asm.pos = d.walk.r.asm.pos // for the errors of Stream
	raw, err := d.in.next()
	if err != nil {
		return nil, Step{}, d.s.classify(ctx, err)
	}
	step, err := d.walk.Step(raw)
	if err != nil {
		return nil, Step{}, err
	}
	return raw, step, nil
}

// More tells that Next has something at hand already, so that it need not wait for the network.
func (d *Dump) More() bool { return d.in.r.Buffered() > 0 }

// Close ends the dump.
func (d *Dump) Close() error {
	d.stop()
	return d.s.Close()
}
