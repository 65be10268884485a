// Package query answers SELECTs over pinned versions of the store: it resolves the tables of a statement, has the
// statement translated, checks that everything it reads stands at one point in time, and runs it on the engine.
//
// Beside the materialized databases there are two of its own: information_schema, made of the pinned definitions, and
// those whose tables the caller supplies (see [Options.System]). Their tables are small relations in memory, so that
// any SELECT works on them.
package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/field"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
	"github.com/tidemarkdb/tidemark/storage"
)

// Options configure a processor. Store and Engine are required.
type Options struct {
	Store  *storage.Store
	Engine *engine.Engine
	// System has the tables of databases that are not materialized, by database and table in lower case. A function is
	// called when a statement reads the table.
	System map[string]map[string]func() *result.Table
	// ProcessList gives information_schema.PROCESSLIST, with the columns of [ProcessListFields]. nil: it is empty.
	ProcessList func() *result.Table
	// Readable says why a database with data must not be read now, nil when it may. nil: every database may.
	Readable func(database string) error
	// Progress describes how far the first copy of a database is, for the error of those who come too early. nil: nobody
	// knows.
	Progress func(database string) string
}

// Processor answers SELECTs. It is safe for concurrent use.
type Processor struct{ o Options }

// New makes a processor.
func New(o Options) *Processor { return &Processor{o: o} }

// Session is what a statement's meaning depends on.
type Session struct {
	translate.Session
	// MixedPoints allows statements whose tables stand at different points in time.
	MixedPoints bool
}

// Result is a running SELECT.
type Result struct {
	Rows     result.Rows
	Warnings []result.Warning
}

// Snapshot is the store at one commit, for several statements. It lives until it is released and the last result that
// reads it is closed.
type Snapshot struct {
	version *storage.Version
	users   atomic.Int64
}

// Release lets the snapshot go.
func (s *Snapshot) Release() {
	if s.users.Add(-1) == 0 {
		s.version.Release()
	}
}

// Pin gives the newest commit. It must be released.
func (p *Processor) Pin() (*Snapshot, error) {
	v, err := p.o.Store.Pin()
	if err != nil {
		return nil, err
	}
	s := &Snapshot{version: v}
	s.users.Store(1)
	return s, nil
}

// Select runs a SELECT, a set operation, TABLE or VALUES. It reads the snapshot, or, when that is nil, the newest
// commit, which it then holds until the rows are closed. When ctx ends, the statement stops.
func (p *Processor) Select(ctx context.Context, stmt ast.StmtNode, session *Session, params []translate.Value, snapshot *Snapshot) (*Result, error) {
	c, err := p.open(session, snapshot)
	if err != nil {
		return nil, err
	}
	r, err := c.run(ctx, stmt, params)
	if err != nil {
		c.close()
		return nil, err
	}
	return r, nil
}

// Describe gives the columns that a statement would return. params nil means that they are not known yet.
func (p *Processor) Describe(stmt ast.StmtNode, session *Session, params []translate.Value, snapshot *Snapshot) ([]field.Field, error) {
	c, err := p.open(session, snapshot)
	if err != nil {
		return nil, err
	}
	defer c.close()
	translated, err := translate.Select(stmt, &session.Session, c, params)
	if err != nil {
		return nil, err
	}
	return fieldsOf(translated.Columns), nil
}

func fieldsOf(columns []translate.ResultColumn) []field.Field {
	fields := make([]field.Field, len(columns))
	for i := range columns {
		fields[i] = columns[i].Field
	}
	return fields
}

func (p *Processor) open(session *Session, snapshot *Snapshot) (*catalog, error) {
	if snapshot != nil {
		snapshot.users.Add(1)
	} else {
		var err error
		if snapshot, err = p.Pin(); err != nil {
			return nil, err
		}
	}
	return &catalog{p: p, session: session, snapshot: snapshot, version: snapshot.version, tables: map[tableName]*source{}}, nil
}

// Filter gives the rows of t for which a condition over its columns holds, with MySQL's meaning: the WHERE of SHOW.
func (p *Processor) Filter(ctx context.Context, t *result.Table, where ast.ExprNode, session *Session) (*Result, error) {
	c, err := p.open(session, nil)
	if err != nil {
		return nil, err
	}
	c.shown = t
	name := &ast.TableName{Name: ast.NewCIStr(shownTable), Schema: ast.NewCIStr(shownTable)}
	stmt := &ast.SelectStmt{
		SelectStmtOpts: &ast.SelectStmtOpts{SQLCache: true}, Kind: ast.SelectStmtKindSelect,
		From:   &ast.TableRefsClause{TableRefs: &ast.Join{Left: &ast.TableSource{Source: name}}},
		Fields: &ast.FieldList{Fields: []*ast.SelectField{{WildCard: &ast.WildCardField{}}}},
		Where:  where,
	}
	r, err := c.run(ctx, stmt, nil)
	if err != nil {
		c.close()
		return nil, err
	}
	return r, nil
}

// run translates and starts the statement. On success the rows own everything the catalog holds.
func (c *catalog) run(ctx context.Context, stmt ast.StmtNode, params []translate.Value) (*Result, error) {
	c.equal = translate.Equalities(stmt, params)
	r, err := c.start(ctx, stmt, params, &c.session.Session)
	if err != nil && isNarrowOverflow(err) {
		wide := c.session.Session
		wide.WideDecimals = true
		r, err = c.start(ctx, stmt, params, &wide)
	}
	return r, engineError(err)
}

// isNarrowOverflow tells that decimals of 18 digits, with which the engine computes fast, were not enough.
func isNarrowOverflow(err error) bool {
	e, ok := errors.AsType[*engine.Error](err)
	return ok && strings.Contains(e.Message, "of DECIMAL(18)")
}

func (c *catalog) start(ctx context.Context, stmt ast.StmtNode, params []translate.Value, session *translate.Session) (*Result, error) {
	translated, err := translate.Select(stmt, session, c, params)
	if err != nil {
		return nil, err
	}
	used := make([]*source, len(translated.Tables))
	for i := range used {
		used[i] = c.byDefinition(translated.Tables[i].Table)
	}
	warnings, err := c.checkPoints(used)
	if err != nil {
		return nil, err
	}
	sql := translated.Render(func(i int) string {
		read := &translated.Tables[i]
		return used[i].scan.SQLOf(read.Columns, read.Exact)
	})
	running, err := c.p.o.Engine.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	r, err := newRows(running, translated.Columns, c)
	if err != nil {
		running.Close()
		return nil, err
	}
	return &Result{Rows: r, Warnings: warnings}, nil
}

// checkPoints refuses a statement that would mix points in time (guarantee 1).
func (c *catalog) checkPoints(used []*source) ([]result.Warning, error) {
	var first *source
	var mixed []string
	var warnings []result.Warning
	for _, s := range used {
		if s.point == "" { // not of a materialized database
			continue
		}
		if s.info.State == storage.Quarantined {
			warnings = append(warnings, result.Warning{Level: "Warning", Code: sqlerr.Unknown, Message: fmt.Sprintf(
				"Table '%s.%s' is in quarantine and stays as it was before: %s", s.database, s.info.Def.Name, s.info.Reason)})
		}
		if first == nil {
			first = s
		} else if s.point != first.point {
			mixed = append(mixed, first.difference(s))
		}
	}
	if len(mixed) == 0 {
		return warnings, nil
	}
	slices.Sort(mixed)
	reason := strings.Join(slices.Compact(mixed), "; ")
	if !c.session.MixedPoints {
		return nil, sqlerr.New(sqlerr.Unknown, "The tables of this statement stand at different points in time: %s. "+
			"Read them one by one, or SET tidemark_mixed_points = 1 to read them as they are", reason)
	}
	return append(warnings, result.Warning{Level: "Warning", Code: sqlerr.Unknown, Message: "Points in time are mixed: " + reason}), nil
}

// difference says why two tables stand at different points.
func (s *source) difference(o *source) string {
	for _, q := range []*source{s, o} {
		if q.info.State == storage.Quarantined {
			return fmt.Sprintf("table '%s.%s' is in quarantine (%s)", q.database, q.info.Def.Name, q.info.Reason)
		}
	}
	return fmt.Sprintf("databases '%s' and '%s' follow their sources independently", s.database, o.database)
}

// engineError gives an error of the engine its MySQL number.
func engineError(err error) error {
	var e *engine.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Kind == engine.KindInterrupted:
		return fmt.Errorf("%w", e.Unwrap())
	case strings.Contains(e.Message, "More than one row returned by a subquery"):
		return sqlerr.New(sqlerr.SubqueryRows, "Subquery returns more than 1 row")
	case e.Kind == engine.KindMemory:
		return sqlerr.New(sqlerr.OutOfResources, "The statement needs more memory or temporary space than it may have: %s", e.Message)
	case e.Kind == engine.KindFile:
		return sqlerr.New(sqlerr.Unknown, "A file of the store cannot be read: %s; check the store with SYSTEM VERIFY STORE", e.Message)
	case e.Kind == engine.KindValue:
		return valueError(e.Message)
	case e.Kind == engine.KindSyntax, e.Kind == engine.KindUnresolved, e.Kind == engine.KindNotSupported:
		// the translation made something that the engine does not take
		return sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support this statement: %s", e.Error())
	}
	return sqlerr.New(sqlerr.Unknown, "%s", e.Error())
}

// valueError names what a value was too large for, as far as the engine's text tells.
func valueError(message string) error {
	switch {
	case strings.Contains(message, "not supported yet"):
		return sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support this statement: %s", message)
	case strings.Contains(message, "DOUBLE value is out of range"):
		return sqlerr.New(sqlerr.OutOfRange, "%s", message)
	case strings.Contains(message, "Overflow in negation"):
		return sqlerr.New(sqlerr.OutOfRange, "BIGINT value is out of range in the statement")
	case strings.Contains(message, "DECIMAL"):
		return sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support 'a DECIMAL result of more than 38 digits'")
	case strings.Contains(message, "UINT64"):
		return sqlerr.New(sqlerr.OutOfRange, "BIGINT UNSIGNED value is out of range in the statement")
	case strings.Contains(message, "INT64"), strings.Contains(message, "INT128"):
		return sqlerr.New(sqlerr.OutOfRange, "BIGINT value is out of range in the statement")
	}
	return sqlerr.New(sqlerr.Unknown, "%s", message)
}
