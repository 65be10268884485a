package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/uniquekey"
	"github.com/tidemarkdb/tidemark/wire"
)

// Outcome is what the comparison of a table says.
type Outcome string

// The outcomes.
const (
	Equal     Outcome = "equal"
	Different Outcome = "different"
	Undecided Outcome = "undecided"
)

// Result is the comparison of one table.
type Result struct {
	Table   string
	Outcome Outcome
	// Rows is the number of our rows that were compared.
	Rows int64
	// Keys names the first rows that differ, in key order, each with what differs; values of other columns are not shown.
	Keys []string
	// Note says why, for all that is not simply equal.
	Note string
}

// Ours is the side that is compared with the source.
type Ours interface {
	// Pin waits until the copy holds every transaction that ends at or before end in the source's binlog, and pins a
	// version then. ctx bounds the wait. An error leaves the tables undecided, with its text.
	Pin(ctx context.Context, end gtid.Position) (Version, error)
}

// Version is one version of the copy. It does not change until Release.
type Version interface {
	Tables() []Table
	// Scan calls fn for the rows of a table in pieces, with the dead rows of each piece (nil: none), in any order.
	Scan(ctx context.Context, table string, fn func(rows *column.Batch, dead uniquekey.Bitset) error) error
	// Lookup gives the live rows that have one of the keys, in any order.
	Lookup(ctx context.Context, table string, keys column.Keys) (*column.Batch, error)
	Release()
}

// Table is a table of the copy. Quarantine is why it is in quarantine, "" when it is not.
type Table struct {
	Name       string
	Def        *schema.Table
	Quarantine string
}

// Config says what to compare.
type Config struct {
	Source wire.Config
	// Database is the source's database, Filter its wanted tables (nil: all).
	Database string
	Filter   compat.Filter
	// Wait bounds each wait for the copy to come up to the source; default 60 s.
	Wait time.Duration
	// Pause is the first pause before a key is asked for again; it doubles with each try. Default 100 ms.
	Pause time.Duration
	// Logger hears what happens; nil discards it.
	Logger *slog.Logger
}

const (
	defaultWait  = time.Minute
	defaultPause = 100 * time.Millisecond
	// definitionTries bounds the pairs at which a table is looked at whose definition, or being there, differs.
	definitionTries = 4
)

// Run compares all tables, and reports each as soon as it is done. An error is one of the connection or of our store:
// what was reported before it stands.
func Run(ctx context.Context, cfg Config, ours Ours, report func(Result)) error {
	if cfg.Wait <= 0 {
		cfg.Wait = defaultWait
	}
	if cfg.Pause <= 0 {
		cfg.Pause = defaultPause
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	v := &verifier{cfg: cfg, ours: ours, hash: newHasher()}
	defer v.close()
	first, err := v.pair(ctx)
	if err != nil {
		return err
	}
	defer first.close()
	for _, name := range first.names() {
		r, ok, err := v.table(ctx, first, name)
		if err != nil {
			return fmt.Errorf("comparing table %s.%s: %w", cfg.Database, name, err)
		}
		if ok {
			cfg.Logger.Info("table is compared with its source", "database", cfg.Database, "table", name, "outcome", r.Outcome, "rows", r.Rows, "note", r.Note)
			report(r)
		}
	}
	return nil
}

// verifier is one run.
type verifier struct {
	cfg    Config
	ours   Ours
	hash   *hasher
	status string     // the statement that gives the position
	idle   *wire.Conn // a session that no pair uses
}

func (v *verifier) close() {
	if v.idle != nil {
		_ = v.idle.Close()
	}
}

// pair is a read view on the source and a version of ours that holds all that the view has, and perhaps more.
type pair struct {
	v       *verifier
	conn    *wire.Conn
	end     gtid.Position // of the source's binlog, after the view was opened
	catalog *compat.Catalog
	version Version // nil when there is none: see failure
	failure string
}

// pair opens a pair. The definitions are read after the view: a table that was altered meanwhile is looked at again.
func (v *verifier) pair(ctx context.Context) (*pair, error) {
	p := &pair{v: v, conn: v.idle}
	v.idle = nil
	var err error
	if p.conn == nil {
		if p.conn, err = wire.Dial(ctx, v.cfg.Source); err != nil {
			return nil, err
		}
	}
	if err := p.open(ctx); err != nil {
		_ = p.conn.Close()
		return nil, err
	}
	return p, nil
}

func (p *pair) open(ctx context.Context) error {
	if err := snapshot.OpenView(ctx, p.conn); err != nil {
		return err
	}
	var err error
	if p.end, err = p.v.position(ctx, p.conn); err != nil {
		return err
	}
	p.catalog, err = compat.ReadCatalog(ctx, p.conn, p.v.cfg.Database, p.v.cfg.Filter, nil)
	var gone *compat.NoDatabaseError
	if errors.As(err, &gone) {
		p.catalog, err = &compat.Catalog{Database: p.v.cfg.Database}, nil
	}
	if err == nil {
		err = snapshot.LetGo(ctx, p.conn)
	}
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, p.v.cfg.Wait, fmt.Errorf("the copy did not come up to %s within %s", p.end, p.v.cfg.Wait))
	defer cancel()
	version, err := p.v.ours.Pin(waiting, p.end)
	switch {
	case err == nil:
		p.version = version
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case waiting.Err() != nil:
		p.failure = context.Cause(waiting).Error()
	default:
		p.failure = err.Error()
	}
	return nil
}

// close ends the pair; its session is kept for the next one.
func (p *pair) close() {
	if p.version != nil {
		p.version.Release()
	}
	if p.v.idle != nil {
		_ = p.conn.Close()
		return
	}
	p.v.idle = p.conn
}

// position is the end of the source's binlog.
func (v *verifier) position(ctx context.Context, c *wire.Conn) (gtid.Position, error) {
	if v.status == "" {
		var err error
		if v.status, err = compat.StatusStatement(ctx, c); err != nil {
			return gtid.Position{}, err
		}
	}
	r, err := c.Query(ctx, v.status)
	if err != nil {
		return gtid.Position{}, fmt.Errorf("reading the source's position: %w", err)
	}
	if r.Rows() != 1 {
		return gtid.Position{}, errors.New("the source has no binlog position: its binlog is off")
	}
	return gtid.Position{File: r.Named(0, "File"), Offset: uint64(r.Int(0, r.Find("Position")))}, nil
}

// names lists the tables of either side.
func (p *pair) names() []string {
	var names []string
	for _, t := range p.catalog.Tables {
		names = append(names, t.Name)
	}
	if p.version != nil {
		for _, t := range p.version.Tables() {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p *pair) table(name string) (Table, bool) {
	if p.version == nil {
		return Table{}, false
	}
	tables := p.version.Tables()
	i := slices.IndexFunc(tables, func(t Table) bool { return t.Name == name })
	if i < 0 {
		return Table{}, false
	}
	return tables[i], true
}

// errAgain wraps a result that a later pair may change: a definition was on its way from one side to the other.
var errAgain = errors.New("to be looked at again")

// table compares one table, first at the given pair. ok is false when neither side has the table any more.
func (v *verifier) table(ctx context.Context, first *pair, name string) (r Result, ok bool, err error) {
	r, ok, err = v.at(ctx, first, name)
	for try := 1; try < definitionTries && errors.Is(err, errAgain); try++ {
		if err := v.wait(ctx, try); err != nil {
			return r, false, err
		}
		p, err2 := v.pair(ctx)
		if err2 != nil {
			return r, false, err2
		}
		r, ok, err = v.at(ctx, p, name)
		p.close()
	}
	if errors.Is(err, errAgain) {
		err = nil
	}
	return r, ok, err
}

// wait pauses before the given try, from 1.
func (v *verifier) wait(ctx context.Context, try int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(v.cfg.Pause << min(try-1, 5)):
		return nil
	}
}

// at compares a table at a pair.
func (v *verifier) at(ctx context.Context, p *pair, name string) (Result, bool, error) {
	r := Result{Table: name}
	if p.version == nil {
		r.Outcome, r.Note = Undecided, p.failure
		return r, true, nil
	}
	mine, here := p.table(name)
	theirs := p.catalog.Table(name)
	if here && mine.Quarantine != "" {
		r.Outcome, r.Note = Undecided, "the table is in quarantine: "+mine.Quarantine
		return r, true, nil
	}
	r.Outcome = Different
	switch {
	case !here && theirs == nil:
		return r, false, nil
	case !here:
		r.Note = "the table is missing here"
		return r, true, errAgain
	case theirs == nil:
		r.Note = "the source has no such table"
		return r, true, errAgain
	}
	if r.Note = definitionDiffers(mine.Def, theirs); r.Note != "" {
		return r, true, errAgain
	}
	err := v.rows(ctx, p, mine.Def, theirs, &r)
	var unreached *unreachedError
	if errors.As(err, &unreached) {
		r.Outcome, r.Note = Undecided, unreached.reason
		return r, true, nil
	}
	if errors.Is(err, snapshot.ErrSchemaChanged) {
		r.Outcome, r.Note = Undecided, "the table was altered while it was compared"
		return r, true, errAgain
	}
	return r, true, err
}

// definitionDiffers says in which column two definitions differ, as far as rows are concerned.
func definitionDiffers(ours, theirs *schema.Table) string {
	for i := range max(len(ours.Columns), len(theirs.Columns)) {
		switch {
		case i >= len(ours.Columns):
			return "column " + theirs.Columns[i].Name + " is missing here"
		case i >= len(theirs.Columns):
			return "the source has no column " + ours.Columns[i].Name
		}
		a, b := &ours.Columns[i], &theirs.Columns[i]
		if a.Name != b.Name || a.ColumnType != b.ColumnType || a.Charset != b.Charset {
			return fmt.Sprintf("column %d is %s %s here and %s %s on the source", i+1, a.Name, a.ColumnType, b.Name, b.ColumnType)
		}
	}
	if !slices.Equal(ours.Key, theirs.Key) {
		return "the source has another key"
	}
	return ""
}
