package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay/ddl"
)

// Window is the convergence window of a table whose rows were not all read at the point where the stream begins, but
// piece by piece while the stream went on. Its rows stand at one point as soon as the stream has passed To. Until then
// what the stream does to them is done tolerantly: a row that is put may be there, one that is deleted may not. See
// docs/convergence.md for why that gives the source's rows.
//
// A statement that changes the table's definition inside the window makes the copy worthless, as does anything else that
// quarantines the table there: it keeps its Window then, which tells it from a table that stands at a good point.
// DROP TABLE and TRUNCATE do no harm, and neither does the CREATE TABLE of a table that was copied after it.
type Window struct {
	// From is a lower bound of what each of the copy's reads saw, as far as it concerns the table: the transactions of its
	// set, or without one those that begin in front of its position, are left out. Zero: none is. See [Ahead].
	From gtid.Point
	// To is an upper bound of what any of the reads saw.
	To gtid.Position
	// Bracket is for a table that was read at one unknown point of the window, and whose rows can't be changed
	// tolerantly, since they have no key: no row may change inside the window, else the copy is worthless.
	Bracket bool
}

// saw tells whether the whole copy has what a transaction did to the table.
func (w *Window) saw(tx *binlog.Transaction) bool {
	if !w.From.Set.IsZero() {
		return w.From.Set.Has(tx.GTID)
	}
	return tx.Start.Compare(w.From.Position) < 0
}

// Quarantine tells of a table that was set aside.
type Quarantine struct {
	Table, Reason string
	// Copy says that the table never stood at one point, so that there is nothing of it to read.
	Copy bool
}

// again ends the reason of a quarantine inside a window.
const again = "what was copied of the table is of no use, and it has to be copied again"

var errSeries = errors.New("the source's binlog has another name now, so it can't be told when the copy of the table is passed")

// measure finds the ends of the windows.
func (s *State) measure() {
	s.edge, s.until = gtid.Position{}, gtid.Position{}
	for _, t := range s.Tables {
		if t.Window == nil {
			continue
		}
		if t.Live && (s.edge.IsZero() || t.Window.To.Compare(s.edge) < 0) {
			s.edge = t.Window.To
		}
		if t.Window.To.Compare(s.until) > 0 {
			s.until = t.Window.To
		}
	}
}

// converging tells whether some table's copy may have seen more than what stands in front of a position.
func (s *State) converging(at gtid.Position) bool {
	return !s.until.IsZero() && at.SameSeries(s.until) && at.Compare(s.until) < 0
}

// reach ends the windows that end at a position or in front of it. What the batch has of their tables is handed over
// first, tolerantly; what follows is strict again.
func (b *batch) reach(ctx context.Context, at gtid.Position) error {
	state := &b.cat.State
	if state.edge.IsZero() || at.IsZero() || at.SameSeries(state.edge) && at.Compare(state.edge) < 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(state.Tables)) {
		t := state.Tables[name]
		if !t.Live || t.Window == nil {
			continue
		}
		if !at.SameSeries(t.Window.To) {
			return &fault{name, true, errSeries}
		}
		if at.Compare(t.Window.To) < 0 {
			continue
		}
		if err := b.close(ctx, name); err != nil {
			return err
		}
	}
	state.measure()
	return nil
}

func (b *batch) close(ctx context.Context, name string) error {
	if f := b.pending[name]; f != nil {
		if err := b.apply(ctx, name, f); err != nil {
			return err
		}
	}
	t, err := b.open(ctx)
	if err != nil {
		return err
	}
	clear(b.byMap)
	b.touched[name] = true
	b.cat.own()
	table := b.cat.State.Tables[name]
	table.Window = nil
	b.cat.State.Tables[name] = table
	return t.SetWindow(name, nil)
}

// windowRows decides how a row event of a live table is taken. skip tells that it is left out.
func (b *batch) windowRows(f *fold) (skip bool, err error) {
	var w *Window
	if !b.cat.State.until.IsZero() {
		w = b.cat.State.Tables[f.def.Name].Window
	}
	f.tolerant = w != nil
	switch {
	case w != nil && w.saw(b.tx):
		return true, nil
	case w != nil && (w.Bracket || f.def.Multiset()):
		return false, &fault{f.def.Name, true, errors.New("rows of the table changed while its copy was read, and it has no key by which that could be put right")}
	}
	return false, nil
}

// windowEffect decides about the effect of a statement on a live table that has a window. done tells that nothing is
// left to do.
func (b *batch) windowEffect(e ddl.Effect, w *Window) (done bool, err error) {
	switch {
	case w.saw(b.tx), e.Exists:
		return true, nil
	case e.Op == ddl.Alter:
		return false, &fault{e.Table, true, errors.New("the table's definition was changed while it was copied, or shortly before")}
	}
	return false, nil
}

// Adopt takes a table that was made by somebody else at the point of State, in place of the one of that name if there is
// one. It waits for the commit that runs, and fails with its error.
func (r *Replayer) Adopt(name string, t Table) error {
	if err := r.Wait(); err != nil {
		return err
	}
	cat := &catalog{State: r.state, shared: true}
	cat.set(name, t)
	cat.State.measure()
	delete(r.folds, name)
	r.state, r.committed = cat.State, cat.State
	return nil
}

// Ahead reads the stream in front of a Replayer, up to a position that was read before the definitions of the copied
// tables were. It finds what all reads of the copy saw for certain: whatever stands in front of a statement that held the
// table for itself. Where a copy's lower bound is the start of a binlog file, old statements stand in it often.
type Ahead struct {
	cfg  Config
	cat  *catalog
	from map[string]gtid.Position
}

// NewAhead begins with the tables as they were copied.
func NewAhead(cfg Config, state State) *Ahead {
	if cfg.Filter == nil {
		cfg.Filter = func(string) bool { return true }
	}
	return &Ahead{cfg: cfg, cat: &catalog{State: state, database: cfg.Database, filter: cfg.Filter, shared: true}, from: map[string]gtid.Position{}}
}

// Take reads a transaction. The caller releases it.
func (a *Ahead) Take(tx *binlog.Transaction) error {
	for e, err := range tx.Events() {
		if err != nil {
			return fmt.Errorf("reading %s ahead: %w", tx, err)
		}
		s, ok := e.(*binlog.Statement)
		if !ok || s.Kind != binlog.StatementOther {
			continue
		}
		effects, err := ddl.Apply(statementOf(s), a.cfg.Server, a.cat)
		if err != nil {
			continue // the Replayer meets it, too, and stops with the reason
		}
		for _, e := range effects {
			if e.Barrier {
				a.from[e.Table] = tx.End
			}
		}
	}
	return nil
}

// From gives the end of the last such statement on a table; zero: there is none.
func (a *Ahead) From(table string) gtid.Position { return a.from[table] }
