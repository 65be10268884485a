package binlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/tidemarkdb/tidemark/gtid"
)

// Stream reads the transactions of one source over one connection. Next is for one goroutine; Close is for any.
type Stream struct {
	cfg    Config
	link   *link
	closed atomic.Bool
	source source

	reader reader
	last   gtid.Position
	err    error
}

// Open connects, checks that the source can serve what is asked for, and starts the stream. All its errors are *Error.
//
// ctx governs Open alone. When AutoPosition is set and the source lacks transactions of Start.Set the error is Rewound;
// when it has purged some that are not in Start.Set, PurgedLogs. Both name them. Whether the source still has the history
// that Start stands in, and not another one of the same names, is for VerifyLast to say: call it first.
func Open(ctx context.Context, cfg Config) (*Stream, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	l, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &Stream{cfg: cfg, link: l, last: cfg.Start.Position}
	if err := s.begin(ctx); err != nil {
		_ = l.close()
		return nil, err
	}
	return s, nil
}

func (s *Stream) begin(ctx context.Context) error {
	var err error
	if s.source, err = s.link.source(ctx); err != nil {
		return err
	}
	if err := s.link.checkServerID(ctx, s.cfg, s.source); err != nil {
		return err
	}
	if err := s.checkStart(ctx); err != nil {
		return err
	}
	if err := s.link.setup(ctx, s.cfg); err != nil {
		return err
	}
	if err := s.link.register(ctx, s.cfg); err != nil {
		return err
	}
	in, err := s.link.start(ctx, dump{serverID: s.cfg.ServerID, auto: s.cfg.AutoPosition, set: s.cfg.Start.Set, pos: s.cfg.Start.Position})
	if err != nil {
		return err
	}
	s.reader = reader{in: in, asm: newAssembler(s.cfg.Follow, s.cfg.SpillDir, s.cfg.SpillBytes)}
	s.reader.asm.source = s.source.uuid
	return nil
}

// commitWait is how long a source is given to finish commits that we have read already: a transaction is sent before it
// counts as executed.
const commitWait = 10 * time.Second

// checkStart finds out whether the source can go on where we are. The server's own check sees only lost transactions
// that bear its own UUID, and does not name purged ones in a form that can be read by a program.
func (s *Stream) checkStart(ctx context.Context) error {
	if !s.cfg.AutoPosition {
		return nil
	}
	if s.source.gtidMode != "ON" {
		return fault(Misconfigured, "the source has gtid_mode = %s, and is to be followed by GTIDs", s.source.gtidMode)
	}
	if missing := s.source.purged.Subtract(s.cfg.Start.Set); !missing.IsZero() {
		e := fault(PurgedLogs, "the source has purged transactions that are still needed: %s; a new snapshot is needed", missing)
		e.Missing = missing
		return e
	}
	missing, err := s.link.notExecuted(ctx, s.cfg.Start.Set)
	if err != nil || missing.IsZero() {
		return err
	}
	wait := min(commitWait, s.cfg.DeadAfter/2).Seconds()
	if _, err := s.link.row(ctx, fmt.Sprintf("SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', %g)", missing, wait)); err != nil {
		return err
	}
	if missing, err = s.link.notExecuted(ctx, s.cfg.Start.Set); err != nil || missing.IsZero() {
		return err
	}
	e := fault(Rewound, "the source does not have transactions that were read before: %s", missing)
	e.Missing = missing
	return e
}

// notExecuted gives the part of set that the source has not executed.
func (l *link) notExecuted(ctx context.Context, set gtid.Set) (gtid.Set, error) {
	r, err := l.row(ctx, "SELECT @@global.gtid_executed")
	if err != nil {
		return gtid.Set{}, err
	}
	executed, err := gtid.ParseSet(r[0])
	if err != nil {
		return gtid.Set{}, fault(Misconfigured, "gtid_executed of the source: %w", err)
	}
	return set.Subtract(executed), nil
}

// Source is the server_uuid of the server that the stream reads from.
func (s *Stream) Source() gtid.UUID { return s.source.uuid }

// Next waits for the next complete transaction, or for Progress: the source's position moved on, or it is idle and
// alive. The caller releases the transaction.
//
// The first error ends the stream and is returned again by every later call. Cancelling ctx ends it too, since half a
// packet can not be put back.
func (s *Stream) Next(ctx context.Context) (*Transaction, error) {
	if s.err != nil {
		return nil, s.err
	}
	stop := s.link.closeOn(ctx)
	tx, err := s.reader.next()
	if err != nil {
		stop()
		return nil, s.end(s.classify(ctx, err))
	}
	if !stop() {
		_ = s.end(&Error{Class: Cancelled, At: s.reader.asm.pos, Err: context.Cause(ctx)})
	}
	s.keepProgress(tx)
	return tx, nil
}

// end makes err what every later call returns.
func (s *Stream) end(err error) error {
	s.err = err
	s.reader.close()
	_ = s.link.close() // it is broken or of no more use
	return err
}

// keepProgress keeps the reported position from falling behind where the stream started: a source that is asked by
// GTIDs begins at the start of a file.
func (s *Stream) keepProgress(tx *Transaction) {
	if tx.Kind == Progress && s.cfg.AutoPosition && tx.End.SameSeries(s.last) && tx.End.Compare(s.last) < 0 {
		tx.Start, tx.End = s.last, s.last
		return
	}
	s.last = tx.End
}

// Close ends the stream and wakes a Next that waits.
func (s *Stream) Close() error {
	s.closed.Store(true)
	return s.link.close()
}

func (s *Stream) classify(ctx context.Context, err error) *Error {
	at := s.reader.asm.pos
	if ctx.Err() != nil {
		return &Error{Class: Cancelled, At: at, Err: context.Cause(ctx)}
	}
	if s.closed.Load() {
		return &Error{Class: Cancelled, At: at, Err: errors.New("the stream was closed")}
	}
	var own *Error
	if errors.As(err, &own) {
		own.At = at
		return own
	}
	var my *mysql.MyError
	if errors.As(err, &my) {
		return &Error{Class: classOfCode(my.Code, my.Message), At: at, Err: my}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the source ended the stream")
	}
	return &Error{Class: ConnectionLost, At: at, Err: err}
}

// eventSource is where a reader gets its events from: packets or a file.
type eventSource interface {
	next() ([]byte, error)
	offset() int64 // behind the last event
	giveBack()     // the memory of the last event
}

func (p *packets) offset() int64 { return 0 }
func (p *packets) giveBack()     { p.arena.undo() }

// reader joins an event source, the unpacking of payloads, and the assembler.
type reader struct {
	in     eventSource
	asm    *assembler
	unpack unpacker
}

// next reads up to the end of a transaction. Errors of the source come back as they are, faults of the data as *Error.
func (r *reader) next() (*Transaction, error) {
	for {
		r.asm.at = r.in.offset()
		raw, err := r.in.next()
		if err != nil {
			return nil, err
		}
		e, err := parseEvent(raw, r.asm.checksum)
		if err != nil {
			return nil, corrupt(err)
		}
		tx, err := r.step(e, raw)
		if err != nil {
			return nil, corrupt(err)
		}
		if !r.asm.kept {
			r.in.giveBack()
		}
		if tx != nil {
			return tx, nil
		}
	}
}

func corrupt(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return &Error{Class: Corrupt, Err: err}
}

func (r *reader) step(e event, raw []byte) (*Transaction, error) {
	if e.Type != evTransactionPayload {
		return r.asm.step(e, raw)
	}
	if r.asm.phase != phaseHeaded {
		return nil, errors.New("transaction payload that no GTID event announces")
	}
	start := r.asm.advance(e.header)
	if r.asm.tx.skipped {
		return r.asm.finish(Rows)
	}
	p, err := parsePayload(e.body)
	if err != nil {
		return nil, fmt.Errorf("transaction payload: %w", err)
	}
	tx, err := r.payload(p, start)
	r.asm.kept = false
	if err != nil {
		return nil, fmt.Errorf("transaction payload: %w", err)
	}
	return tx, nil
}

// payload takes a whole transaction out of a compressed event.
func (r *reader) payload(p payload, start gtid.Position) (*Transaction, error) {
	events, err := r.unpack.open(p)
	if err != nil {
		return nil, err
	}
	var tx *Transaction
	for {
		raw, err := events.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if tx != nil {
			return nil, errors.New("goes on behind the end of its transaction")
		}
		e, err := parseEvent(raw, false)
		if err != nil {
			return nil, err
		}
		r.asm.kept = false
		if tx, err = r.asm.content(e, start); err != nil {
			return nil, err
		}
		if !r.asm.kept {
			events.arena.undo()
		}
	}
	if tx == nil {
		return nil, errors.New("ends before its transaction does")
	}
	return tx, nil
}

// close frees what an unfinished transaction holds.
func (r *reader) close() {
	r.unpack.close()
	_ = r.asm.drop() // a temporary file without a name is gone whatever Close says
}
