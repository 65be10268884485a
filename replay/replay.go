package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/replay/ddl"
	"github.com/tidemarkdb/tidemark/schema"
)

// Config is what a Replayer needs to know.
type Config struct {
	// Database is the followed database's name on the source.
	Database string
	// Filter says which of its tables are followed; nil: all.
	Filter Filter
	// Server is what DDL depends on.
	Server ddl.Server
	// ByPosition tells that file and position alone say where the database stands, and no set of GTIDs: the source had
	// none when the copy was made. GTIDs that it may have by now do not count, since those before them are not known.
	ByPosition bool
	// XAUnknown tells that nobody could ask whether XA transactions were prepared when the first read of a copy began. An
	// XA COMMIT of one whose PREPARE was not seen ends the stream then, also inside the windows.
	XAUnknown bool
	// Budget is the memory of decoded rows, in bytes, beyond which they go to the target before the commit is complete;
	// 0: 64 MiB.
	Budget int
	// Quarantined is told of each table that is set aside, once that is committed; may be nil.
	Quarantined func(Quarantine)
}

const defaultBudget = 64 << 20

// StopError says that the database can't be followed beyond a transaction. Everything in front of it is committed.
type StopError struct {
	Transaction string
	Reason      string
}

func (e *StopError) Error() string { return fmt.Sprintf("%s (%s)", e.Reason, e.Transaction) }

// Replayer carries out transactions. It is for one goroutine.
type Replayer struct {
	cfg    Config
	source Source
	// state is what was carried out, committed what of it is durable; they differ while a commit runs.
	state, committed State
	running          *running
	folds            map[string]*fold // by table; kept for their memory and decoders
}

// running is a commit that has not ended yet.
type running struct {
	ended chan struct{}
	err   error // once ended
}

// New gives a replayer that goes on at a committed state.
func New(cfg Config, source Source, state State) *Replayer {
	if cfg.Filter == nil {
		cfg.Filter = func(string) bool { return true }
	}
	if cfg.Budget == 0 {
		cfg.Budget = defaultBudget
	}
	state.measure()
	return &Replayer{cfg: cfg, source: source, state: state, committed: state, folds: map[string]*fold{}}
}

// State is what is committed, or is being committed by a Start that has returned.
func (r *Replayer) State() State { return r.state }

// Apply carries out transactions, in one commit if nothing is wrong with any of them, else in several. The caller
// releases them. An error is a *StopError, or comes from the source or the target; it may be tried again from State on.
func (r *Replayer) Apply(ctx context.Context, txs []*binlog.Transaction) error {
	if err := r.Start(ctx, txs, nil); err != nil {
		return err
	}
	return r.Wait()
}

// Start is Apply, but may return while the last commit still runs, so that the next call can decode meanwhile; that call
// waits for it before it writes, and fails with its error. The transactions may be released once Start has returned.
// committed, if not nil, is called with the state behind them when all of them are durable, on another goroutine. An error
// comes when no commit runs any more.
func (r *Replayer) Start(ctx context.Context, txs []*binlog.Transaction, committed func(State)) error {
	err := r.start(ctx, txs, committed)
	if err != nil {
		err = errors.Join(err, r.Wait())
	}
	return err
}

// Wait waits for the commit that Start left running, and gives its error. After an error State is what is committed.
func (r *Replayer) Wait() error {
	if r.running == nil {
		return nil
	}
	<-r.running.ended
	err := r.running.err
	r.running = nil
	if err != nil {
		r.state = r.committed
	} else {
		r.committed = r.state
	}
	return err
}

func (r *Replayer) start(ctx context.Context, txs []*binlog.Transaction, committed func(State)) error {
	n := len(txs) // transactions of the next commit
	for len(txs) > 0 {
		n = min(n, len(txs))
		at, err := r.try(ctx, txs[:n], nil, onlyIf(n == len(txs), committed))
		var f *fault
		switch {
		case err == nil:
			txs = txs[n:]
		case at > 0: // the ones in front have a commit of their own; what is wrong comes up again behind it
			n = at
		case !errors.As(err, &f):
			return err
		case at == unknown && n > 1:
			n = (n + 1) / 2
		default:
			if err := r.without(ctx, txs[:1], f, onlyIf(len(txs) == 1, committed)); err != nil {
				return err
			}
			txs = txs[1:]
			n = len(txs)
		}
	}
	return nil
}

func onlyIf(last bool, committed func(State)) func(State) {
	if last {
		return committed
	}
	return nil
}

// without carries out one transaction without the tables that are at fault.
func (r *Replayer) without(ctx context.Context, tx []*binlog.Transaction, f *fault, committed func(State)) error {
	condemned := map[string]string{}
	for {
		if _, again := condemned[f.table]; again {
			return fmt.Errorf("table %s: still at fault after it was set aside: %w", f.table, f.cause)
		}
		condemned[f.table] = f.cause.Error()
		_, err := r.try(ctx, tx, condemned, committed)
		if err == nil || !errors.As(err, &f) {
			return err
		}
	}
}

// maxFolds bounds the tables whose builders are kept for the next batch, so that a database of many thousand tables does
// not hold memory for each one that ever changed.
const maxFolds = 256

// unknown stands for the number of the transaction that is at fault where it is not certain.
const unknown = -1

// try carries out transactions in one commit, which it leaves running. If one of them is at fault, at is its number, or
// unknown.
func (r *Replayer) try(ctx context.Context, txs []*binlog.Transaction, condemned map[string]string, committed func(State)) (at int, err error) {
	b := newBatch(r, condemned)
	if at, err = r.build(ctx, b, txs); err != nil {
		return at, errors.Join(err, b.abort())
	}
	if len(r.folds) > maxFolds {
		clear(r.folds)
	}
	if b.target == nil { // signs of life of an idle source
		if err := r.Wait(); err != nil {
			return unknown, err
		}
		if committed != nil {
			committed(r.state)
		}
		return unknown, nil
	}
	r.commit(ctx, b, committed)
	return unknown, nil
}

// commit lets the commit of a batch run. Its target is open, so none runs now.
func (r *Replayer) commit(ctx context.Context, b *batch, committed func(State)) {
	run := &running{ended: make(chan struct{})}
	r.running, r.state = run, b.cat.State
	go func() {
		defer close(run.ended)
		if run.err = b.commit(ctx); run.err != nil {
			return
		}
		if r.cfg.Quarantined != nil {
			for _, q := range b.setAside {
				r.cfg.Quarantined(q)
			}
		}
		if committed != nil {
			committed(b.cat.State)
		}
	}()
}

func (r *Replayer) build(ctx context.Context, b *batch, txs []*binlog.Transaction) (at int, err error) {
	if err := b.condemn(ctx, txs[0]); err != nil {
		return unknown, err
	}
	for i, tx := range txs {
		if err := b.add(ctx, tx); err != nil {
			return pinned(err, i), err
		}
	}
	return unknown, b.complete(ctx)
}

// pinned gives the number of the transaction that is at fault if that is certain.
func pinned(err error, number int) int {
	var f *fault
	var stop *StopError
	if errors.As(err, &stop) || errors.As(err, &f) && f.certain {
		return number
	}
	return unknown
}

// fold gives the fold of a table's definition, the one used before if it still fits.
func (r *Replayer) fold(def *schema.Table) *fold {
	f := r.folds[def.Name]
	if f == nil || f.def != def {
		f = newFold(def)
		r.folds[def.Name] = f
	}
	return f
}

func sameFold(a, b string) bool { return strings.EqualFold(a, b) }
