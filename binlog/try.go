package binlog

import (
	"context"
	"errors"
	"io"
)

// Try opens a dump as Open would, reads the first event that comes out of a file of the source, and closes it. It proves
// that the account may read the binlog, that there is one, and that Start is still there (CLOUD-09). Nobody else's dump is
// ended by it: it asks with server id 0, as mysqlbinlog does, so that ServerID need not be set.
func Try(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	cfg.ServerID = 0
	l, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = l.close() }() // only read from
	if err := l.setup(ctx, cfg); err != nil {
		return err
	}
	in, err := l.start(ctx, dump{nonBlock: true, auto: cfg.AutoPosition, set: cfg.Start.Set, pos: cfg.Start.Position})
	if err != nil {
		return err
	}
	stop := l.closeOn(ctx)
	defer stop()
	for {
		raw, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return fault(Misconfigured, "the source's binlog has nothing, not even the head of a file")
		case err != nil:
			return dumpError(ctx, err)
		}
		h, err := parseHeader(raw)
		if err != nil {
			return corrupt(err)
		}
		if h.Type == evFormatDescription { // every file begins with one; what comes before it is made up
			return nil
		}
	}
}
