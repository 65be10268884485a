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
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// fault is an error that concerns one table. It is certain if the transaction in hand is its cause, and not one before it
// in the batch.
type fault struct {
	table   string
	certain bool
	cause   error
}

func (f *fault) Error() string { return f.cause.Error() }
func (f *fault) Unwrap() error { return f.cause }

// batch is one commit in the making.
type batch struct {
	r      *Replayer
	cat    *catalog
	target Target              // nil until something has to go there
	tx     *binlog.Transaction // in hand
	before gtid.Point          // in front of it
	// touched are the tables that the batch changed, in rows or definition.
	touched map[string]bool
	// condemned are tables that are quarantined before the first transaction, with the reason.
	condemned map[string]string
	// prepared are XA transactions prepared in this batch; nil: decided in it.
	prepared map[string][]byte
	byMap    map[*binlog.TableMap]*fold
	pending  map[string]*fold
	bytes    int
	setAside []Quarantine
}

func newBatch(r *Replayer, condemned map[string]string) *batch {
	cat := &catalog{State: r.state, database: r.cfg.Database, filter: r.cfg.Filter, shared: true}
	return &batch{r: r, cat: cat, touched: map[string]bool{}, condemned: condemned, prepared: map[string][]byte{},
		byMap: map[*binlog.TableMap]*fold{}, pending: map[string]*fold{}}
}

// open gives the target, once the commit in front of it has ended.
func (b *batch) open(ctx context.Context) (Target, error) {
	if b.target != nil {
		return b.target, nil
	}
	if err := b.r.Wait(); err != nil {
		return nil, err
	}
	var err error
	b.target, err = b.r.source.Begin(ctx)
	return b.target, err
}

// condemn quarantines the tables that are known to be at fault. Those that are not there yet follow when they come.
func (b *batch) condemn(ctx context.Context, tx *binlog.Transaction) error {
	b.tx, b.before = tx, b.cat.State.Point
	for _, table := range slices.Sorted(maps.Keys(b.condemned)) {
		reason := b.condemned[table]
		if t, ok := b.cat.State.Tables[table]; ok && t.Live {
			if err := b.quarantine(ctx, table, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// add takes a transaction. After an error the batch must be aborted.
func (b *batch) add(ctx context.Context, tx *binlog.Transaction) error {
	b.tx, b.before = tx, b.cat.State.Point
	if err := b.checkNew(tx); err != nil {
		return err
	}
	err := b.reach(ctx, tx.Start)
	if err != nil {
		return err
	}
	switch tx.Kind {
	case binlog.XAPrepare:
		err = b.prepare(ctx, tx)
	case binlog.XACommit, binlog.XARollback:
		err = b.decide(ctx, tx)
	case binlog.Rows, binlog.DDL, binlog.RolledBack:
		err = b.events(ctx, tx)
	case binlog.Progress, binlog.Empty:
	}
	if err != nil {
		return err
	}
	b.advance(tx)
	return b.reach(ctx, tx.End)
}

// checkNew makes sure that nothing is applied twice, whatever the source sends.
func (b *batch) checkNew(tx *binlog.Transaction) error {
	p := &b.cat.State.Point
	again := p.Set.Has(tx.GTID)
	if (tx.GTID.IsZero() || b.r.cfg.ByPosition) && tx.Kind != binlog.Progress {
		again = p.Position.SameSeries(tx.Start) && tx.Start.Compare(p.Position) < 0
	}
	if again {
		return &StopError{Transaction: tx.String(), Reason: "the source sent a transaction again that is applied already"}
	}
	return nil
}

func (b *batch) advance(tx *binlog.Transaction) {
	p := &b.cat.State.Point
	if !b.r.cfg.ByPosition {
		p.Set = p.Set.Add(tx.GTID)
	}
	p.Position = tx.End
	if tx.Kind != binlog.Progress {
		b.cat.State.Last = tx.Identity()
	}
}

// events takes the events of a transaction in order.
func (b *batch) events(ctx context.Context, tx *binlog.Transaction) error {
	skip, err := undone(tx)
	if err != nil {
		return err
	}
	n := -1
	for e, err := range tx.Events() {
		if err != nil {
			return err
		}
		n++
		switch e := e.(type) {
		case *binlog.RowsEvent:
			err = b.rows(ctx, e, skip[n])
		case *binlog.Statement:
			err = b.statement(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows takes a row event. undone tells that the transaction took it back.
func (b *batch) rows(ctx context.Context, e *binlog.RowsEvent, undone bool) error {
	f, ok := b.byMap[e.Table]
	if !ok {
		var err error
		if f, err = b.foldOf(ctx, e.Table); err != nil {
			return err
		}
		if f != nil || !b.converging() { // else the answer is another one behind the windows
			b.byMap[e.Table] = f
		}
	}
	if f == nil || undone && transactional(f.def) {
		return nil
	}
	skip, err := b.windowRows(f)
	if skip || err != nil {
		return err
	}
	b.pending[f.def.Name] = f // also after an error, so that it is forgotten with the batch
	size := f.bytes()
	n, err := f.add(e)
	if err != nil {
		return &fault{f.def.Name, true, err}
	}
	b.cat.State.Rows += uint64(n)
	b.touched[f.def.Name] = true
	if b.bytes += f.bytes() - size; b.bytes > b.r.cfg.Budget {
		return b.flush(ctx)
	}
	return nil
}

// converging tells whether the transaction in hand is inside a window of some table.
func (b *batch) converging() bool { return b.cat.State.converging(b.tx.Start) }

func transactional(def *schema.Table) bool { return def.Engine == "" || def.Engine == "InnoDB" }

// foldOf finds where a table's rows go: nil for a table that is set aside.
func (b *batch) foldOf(ctx context.Context, m *binlog.TableMap) (*fold, error) {
	name := b.tableName(m)
	t, ok := b.cat.State.Tables[name]
	switch {
	case ok && !t.Live:
		return nil, nil
	case ok:
		return b.r.fold(t.Def), nil
	case !b.cat.filter(m.Table):
		return nil, nil
	case b.converging(): // it was gone before the tables to copy were listed, or else it is created further on
		return nil, nil
	}
	def := &schema.Table{Database: b.r.cfg.Database, Name: m.Table, Version: 1, NextColumnID: 1}
	return nil, b.quarantineNew(ctx, def, "rows of the table came although no statement that creates it was seen")
}

// tableName gives the name under which a table is known that the source calls by a name of other letter case.
func (b *batch) tableName(m *binlog.TableMap) string {
	if _, ok := b.cat.State.Tables[m.Table]; ok || !b.r.cfg.Server.FoldNames {
		return m.Table
	}
	for name := range b.cat.State.Tables {
		if sameFold(name, m.Table) {
			return name
		}
	}
	return m.Table
}

// statement takes a statement that stands in the log as text.
func (b *batch) statement(ctx context.Context, s *binlog.Statement) error {
	if s.Kind != binlog.StatementOther {
		return nil
	}
	effects, err := ddl.Apply(statementOf(s), b.r.cfg.Server, b.cat)
	var untold *ddl.UnknownError
	if errors.As(err, &untold) {
		return &StopError{Transaction: b.tx.String(), Reason: untold.Error()}
	}
	if err != nil {
		return err
	}
	for _, e := range effects {
		if err := b.effect(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// effect carries out what a statement does to one table. It is a barrier for the table's rows.
func (b *batch) effect(ctx context.Context, e ddl.Effect) error {
	clear(b.byMap)
	if e.Op == ddl.Charset {
		b.cat.State.Charset, b.cat.State.Collation = e.Charset, e.Collation
		return nil
	}
	if t := b.cat.State.Tables[e.Table]; t.Live && t.Window != nil {
		if done, err := b.windowEffect(e, t.Window); done || err != nil {
			return err
		}
	}
	if e.Op == ddl.Quarantine {
		return b.effectQuarantine(ctx, e)
	}
	if reason, ok := b.condemned[e.Table]; ok && e.Op == ddl.Create {
		return b.quarantineNew(ctx, e.Def, reason)
	}
	if err := b.settle(ctx, e); err != nil {
		return err
	}
	t, err := b.open(ctx)
	if err != nil {
		return err
	}
	b.touched[e.Table] = true
	switch e.Op {
	case ddl.Create:
		b.cat.set(e.Table, Table{Def: e.Def, Live: true})
		return t.Create(e.Def)
	case ddl.Drop:
		b.cat.remove(e.Table)
		return t.Drop(e.Table)
	case ddl.Truncate:
		return t.Truncate(e.Table)
	case ddl.Alter:
		b.cat.set(e.Table, Table{Def: e.Def, Live: true})
		return t.Alter(e.Def)
	}
	return fmt.Errorf("replay: effect %s is not known", e.Op)
}

// settle deals with the rows in front of a barrier: those of a table that goes or is emptied are forgotten, others are
// applied under the definition that they follow.
func (b *batch) settle(ctx context.Context, e ddl.Effect) error {
	f := b.pending[e.Table]
	if f == nil {
		return nil
	}
	if e.Op == ddl.Drop || e.Op == ddl.Truncate {
		b.forget(e.Table)
		return nil
	}
	return b.apply(ctx, e.Table, f)
}

func (b *batch) forget(table string) {
	if f := b.pending[table]; f != nil {
		b.bytes -= f.bytes()
		f.discard()
		delete(b.pending, table)
	}
}

// effectQuarantine sets a table aside. If the batch has changed it already, the table shall keep what the transactions in
// front of this one did, and nothing of this one: the batch is done again in other pieces.
func (b *batch) effectQuarantine(ctx context.Context, e ddl.Effect) error {
	if _, known := b.cat.State.Tables[e.Table]; !known {
		return b.quarantineNew(ctx, e.Def, e.Reason)
	}
	if b.touched[e.Table] {
		return &fault{e.Table, true, errors.New(e.Reason)}
	}
	return b.quarantine(ctx, e.Table, e.Reason)
}

// wayOut ends every reason of a quarantine.
const wayOut = "the table stays readable as it was before; to follow it again, it has to be copied anew, which auto_resync does by itself, and SYSTEM RESYNC MATERIALIZEDMYSQL TABLE at once"

// aside notes that a table is set aside, and gives the whole reason.
func (b *batch) aside(table, cause string, w *Window) string {
	out := wayOut
	if w != nil {
		out = again
	}
	reason := fmt.Sprintf("%s (in %s); %s", cause, b.tx, out)
	b.setAside = append(b.setAside, Quarantine{Table: table, Reason: reason, Copy: w != nil})
	return reason
}

// quarantine sets a table aside as the last commit left it.
func (b *batch) quarantine(ctx context.Context, table, cause string) error {
	t, err := b.open(ctx)
	if err != nil {
		return err
	}
	was := b.cat.State.Tables[table]
	reason := b.aside(table, cause, was.Window)
	b.forget(table)
	b.cat.set(table, Table{Def: was.Def, Window: was.Window})
	return t.Quarantine(table, reason, b.before)
}

// quarantineNew adds a table that is not followed from its beginning.
func (b *batch) quarantineNew(ctx context.Context, def *schema.Table, cause string) error {
	t, err := b.open(ctx)
	if err != nil {
		return err
	}
	reason := b.aside(def.Name, cause, nil)
	b.touched[def.Name] = true
	b.cat.set(def.Name, Table{Def: def})
	return t.CreateQuarantined(def, reason, b.before)
}

// apply hands the changes of one table to the target.
func (b *batch) apply(ctx context.Context, table string, f *fold) error {
	delete(b.pending, table)
	b.bytes -= f.bytes()
	changes, rest, err := f.changes()
	if err != nil {
		return &fault{table, false, err}
	}
	t, err := b.open(ctx)
	if err != nil {
		return err
	}
	if rest != nil {
		err = rest.apply(ctx, t, changes)
	} else {
		err = t.Apply(ctx, table, changes)
	}
	var diverged *storage.DivergenceError
	if errors.As(err, &diverged) {
		return &fault{table, false, diverged}
	}
	return err
}

// flush hands everything to the target.
func (b *batch) flush(ctx context.Context) error {
	for _, table := range slices.Sorted(maps.Keys(b.pending)) {
		if err := b.apply(ctx, table, b.pending[table]); err != nil {
			return err
		}
	}
	return nil
}

// complete hands the last rows over. The target stays nil if the batch does nothing at all.
func (b *batch) complete(ctx context.Context) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	if b.target == nil && b.cat.State.Point.Equal(b.r.state.Point) {
		return nil
	}
	_, err := b.open(ctx)
	return err
}

// commit ends a complete batch.
func (b *batch) commit(ctx context.Context) error {
	if err := b.target.Commit(ctx, b.cat.State); err != nil {
		return errors.Join(err, b.target.Abort())
	}
	return nil
}

// abort takes the batch back.
func (b *batch) abort() error {
	for table := range b.pending {
		b.forget(table)
	}
	if b.target == nil {
		return nil
	}
	return b.target.Abort()
}
