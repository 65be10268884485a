package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/gtid"
)

// VerifyLast reads the transaction that id describes back from the source and compares. It returns nil if it is the
// same one, an *Error of class Rewound if the source has something else or nothing in its place, and of class
// UnknownIdentity if the source has purged it, so that nothing can be said. Other classes tell that the source could
// not be asked.
//
// The server that it was read from is asked by file and offset, another one (after a fail-over) by GTID. Of cfg the
// connection settings are used. The zero Identity is always found.
func VerifyLast(ctx context.Context, cfg Config, id gtid.Identity) error {
	if id.IsZero() {
		return nil
	}
	cfg = cfg.withDefaults()
	cfg.ServerID = 0 // as mysqlbinlog does: the source does not wait at the end, and ends no other dump
	l, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = l.close() }()
	src, err := l.source(ctx)
	if err != nil {
		return err
	}
	if err := l.setup(ctx, cfg); err != nil {
		return err
	}
	v := verifier{link: l, src: src, id: id}
	if src.uuid == id.Source && id.Start.Offset < 1<<32 {
		return v.byPosition(ctx)
	}
	return v.byGTID(ctx)
}

type verifier struct {
	link *link
	src  source
	id   gtid.Identity
}

func (v *verifier) rewound(format string, args ...any) error {
	return &Error{Class: Rewound, At: v.id.Start, Err: fmt.Errorf(format, args...)}
}

func (v *verifier) unknown(format string, args ...any) error {
	return &Error{Class: UnknownIdentity, At: v.id.Start, Err: fmt.Errorf(format, args...)}
}

func (v *verifier) byPosition(ctx context.Context) error {
	if err := v.checkFile(ctx); err != nil {
		if ClassOf(err) == UnknownIdentity && !v.id.GTID.IsZero() {
			return v.byGTID(ctx)
		}
		return err
	}
	found, err := v.read(ctx, dump{nonBlock: true, pos: v.id.Start})
	switch ClassOf(err) {
	case Rewound, Corrupt, TooLarge, UnknownEvent:
		// A transaction began at this offset, so whatever does not make sense there was written later.
		return v.rewound("the last transaction that was read is no longer there: %w", err)
	case PurgedLogs:
		return v.unknown("%w", err)
	}
	if err != nil {
		return err
	}
	if found == v.id {
		return nil
	}
	return v.rewound("the source has another transaction (%s) where %s was read", describe(found), describe(v.id))
}

func describe(id gtid.Identity) string {
	name := "an anonymous transaction"
	if !id.GTID.IsZero() {
		name = id.GTID.String()
	}
	return fmt.Sprintf("%s, committed at %d µs, in a file created at %d s", name, id.Committed, id.FileCreated)
}

// checkFile tells a file that was purged from one that the source does not have any more because it started anew.
func (v *verifier) checkFile(ctx context.Context) error {
	rows, err := v.link.rows(ctx, "SHOW BINARY LOGS")
	if ClassOf(err) == AuthFailed {
		return nil // without REPLICATION CLIENT: the dump itself must tell
	}
	if err != nil {
		return err
	}
	older, newer := false, false
	for _, r := range rows {
		file := gtid.Position{File: r[0]}
		if !file.SameSeries(v.id.Start) {
			return v.unknown("the source names its binlog files in another way than when the last transaction was read")
		}
		switch c := file.Compare(gtid.Position{File: v.id.Start.File}); {
		case c == 0:
			return nil
		case c < 0:
			older = true
		default:
			newer = true
		}
	}
	if newer && !older {
		return v.unknown("the source has purged the binlog file of the last transaction that was read")
	}
	return v.rewound("the source does not have the binlog file of the last transaction that was read")
}

func (v *verifier) byGTID(ctx context.Context) error {
	if v.id.GTID.IsZero() {
		return v.unknown("the last transaction that was read has no GTID, and this is another server")
	}
	one := gtid.Set{}.Add(v.id.GTID)
	if v.src.purged.Contains(one) {
		return v.unknown("the source has purged the last transaction that was read, %s", v.id.GTID)
	}
	r, err := v.link.row(ctx, "SELECT @@global.gtid_executed")
	if err != nil {
		return err
	}
	executed, err := gtid.ParseSet(r[0])
	if err != nil {
		return fault(Misconfigured, "gtid_executed of the source: %w", err)
	}
	if !executed.Contains(one) {
		return v.rewound("the source does not have the last transaction that was read, %s", v.id.GTID)
	}
	found, err := v.read(ctx, dump{nonBlock: true, auto: true, set: executed.Subtract(one)})
	if err != nil {
		return err
	}
	if found.GTID != v.id.GTID || found.Committed != v.id.Committed {
		return v.rewound("the source has another transaction (%s) where %s was read", describe(found), describe(v.id))
	}
	return nil
}

// read gives the identity of the first transaction of a dump.
func (v *verifier) read(ctx context.Context, d dump) (gtid.Identity, error) {
	stop := v.link.closeOn(ctx)
	defer stop()
	in, err := v.link.start(ctx, d)
	if err != nil {
		return gtid.Identity{}, err
	}
	asm := newAssembler(func(string, string) bool { return false }, "", 0)
	asm.source = v.src.uuid
	for asm.tx == nil {
		raw, err := in.next()
		if err != nil {
			return gtid.Identity{}, dumpError(ctx, err)
		}
		e, err := parseEvent(raw, asm.checksum)
		if err != nil {
			return gtid.Identity{}, corrupt(err)
		}
		if tx, err := asm.step(e, raw); err != nil {
			return gtid.Identity{}, corrupt(err)
		} else if tx != nil && tx.Kind != Progress {
			return tx.Identity(), nil
		}
	}
	return asm.tx.Identity(), nil
}

// dumpError classifies how a dump ended.
func dumpError(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) {
		return fault(Rewound, "the binlog ends there")
	}
	var my *mysql.MyError
	if errors.As(err, &my) {
		return &Error{Class: classOfCode(my.Code, my.Message), Err: my}
	}
	return connectionError(ctx, "read the binlog", err)
}
