package replica

import (
	"context"

	"github.com/tidemarkdb/tidemark/compat"
)

// Check looks at a source as Create does, and changes nothing. What is wrong with the source is in the report; the error is
// about the Spec, or a source that does not answer.
func Check(ctx context.Context, spec Spec) (*compat.Report, error) { return check(ctx, spec, nil) }

// check takes the files that settings name from where file says.
func check(ctx context.Context, spec Spec, file func(string) (string, error)) (*compat.Report, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	cfg := spec.wire(spec.addresses()[0])
	cfg.File = file
	report, err := compat.Examine(ctx, cfg, spec.wishes())
	if err != nil || report.Plan == nil {
		return report, err
	}
	for _, at := range spec.Others {
		other := spec.wire(at)
		other.File = file
		warnings, err := compat.ExamineStandby(ctx, other, report.Source, spec.wishes())
		if err != nil {
			return nil, err
		}
		report.Plan.Warnings = append(report.Plan.Warnings, warnings...)
	}
	return report, nil
}

// wishes is what is asked of the source.
func (s *Spec) wishes() compat.Wishes {
	return compat.Wishes{Database: s.SourceDatabase, Filter: s.Settings.Wanted, Lock: s.Settings.SnapshotLock}
}

// wishes is what is asked of the source now: later changes of the filter count at once.
func (d *database) wishes() compat.Wishes {
	s := d.spec()
	w := s.wishes()
	w.Filter = d.wanted
	return w
}
