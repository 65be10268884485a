package compat

import (
	"context"
	"errors"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// Report is everything there is to say of a source: what it is, what would be done with it, and what is in the way.
type Report struct {
	Source *Source
	// Plan is what would be done. It may be carried out when there are no Problems. It is nil for a product that can't be
	// a source at all.
	Plan     *Plan
	Problems []Problem
}

// Err is a *ProblemsError with all problems, nil when there are none.
func (r *Report) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	return &ProblemsError{Addr: r.Source.Addr, Problems: r.Problems}
}

// Examine connects to a source, asks and tries everything that matters, and plans. An error is a *wire.ConnectError or one
// of the connection; what is wrong with the source is in the report.
func Examine(ctx context.Context, cfg wire.Config, w Wishes) (*Report, error) {
	c, s, err := Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // everything is read by then
	report := &Report{Source: s}
	// What else is asked below is not known to all of these servers.
	if report.Problems = s.productProblems(); len(report.Problems) > 0 {
		return report, nil
	}
	catalog, err := ReadCatalog(ctx, c, w.Database, w.Filter, nil)
	var missing *NoDatabaseError
	switch {
	case errors.As(err, &missing):
		catalog = &Catalog{Database: w.Database}
		report.Problems = append(report.Problems, Problem{Code: "database", What: missing.Error(), Do: "check its name, or let the account see it", Statements: []string{s.grant([]string{"SELECT"}, allTables(w.Database))}})
	case err != nil:
		return nil, err
	}
	if err := s.tryLock(ctx, c); err != nil {
		return nil, err
	}
	s.tryDump(ctx, cfg)
	var more []Problem
	report.Plan, more = NewPlan(s, catalog, w)
	report.Problems = append(report.Problems, more...)
	return report, nil
}

// Check examines a source and gives the plan. The error is a *wire.ConnectError, a *ProblemsError with everything that has
// to be changed, or one of the connection.
func Check(ctx context.Context, cfg wire.Config, w Wishes) (*Source, *Plan, error) {
	r, err := Examine(ctx, cfg, w)
	if err != nil {
		return nil, nil, err
	}
	if err := r.Err(); err != nil {
		return r.Source, nil, err
	}
	return r.Source, r.Plan, nil
}

// dumpConfig is how the binlog is asked for by who asks with cfg.
func dumpConfig(cfg wire.Config, auto bool, at gtid.Point) binlog.Config {
	return binlog.Config{Source: cfg, AutoPosition: auto, Start: at}
}
