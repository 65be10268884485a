package relay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// found is what a walk through a file saw.
type found struct {
	begin gtid.Point // in front of the file
	// end is behind the last transaction, or what stands between two; size is the offset of it.
	end    spooled
	size   int64
	format []byte // the format description
	// bad is what is wrong at size, or behind it; nil: the file ends there.
	bad error
}

// scan walks through a file as far as it makes sense, and up to the first transaction for which stop is true. An error is
// one of the disk.
func (r *Relay) scan(f *file, stop func(*binlog.Transaction) bool) (*found, error) {
	in, err := os.Open(filepath.Join(r.cfg.Dir, f.name))
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	defer in.Close()
	s := &found{begin: f.begin}
	w, err := binlog.NewFileWalk(in, f.source, f.log)
	if err != nil {
		s.bad = err
		return s, nil
	}
	s.bad = s.walk(w, f.log == "", stop)
	var path *os.PathError
	if errors.As(s.bad, &path) {
		return nil, fmt.Errorf("relay: %w", s.bad)
	}
	return s, nil
}

func (s *found) walk(w *binlog.FileWalk, bySet bool, stop func(*binlog.Transaction) bool) error {
	headed := !bySet
	for {
		raw, step, err := w.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !step.Checksum {
			return errors.New("an event has no checksum")
		}
		switch step.Mark {
		case binlog.MarkFormat:
			s.format = append([]byte(nil), raw...)
		case binlog.MarkPrevious:
			if bySet {
				s.begin.Set = step.Previous
				s.end.point.Set = step.Previous
			}
		case binlog.MarkSwitch:
			if bySet {
				headed = true
				s.begin.Position = step.Position
				s.end.behind = step.Position
			}
		case binlog.MarkNone, binlog.MarkSign:
		}
		if t := step.Transaction; t != nil {
			if stop != nil && stop(t) {
				return nil
			}
			s.end.last, s.end.behind = t.Identity(), t.End
			if bySet {
				s.end.point.Set = s.end.point.Set.Add(t.GTID)
			}
		}
		if headed && !step.Inside {
			s.size, s.end.point.Position = w.Offset(), step.Position
		}
	}
}

// head reads what lies in front of a file from its first events.
func (r *Relay) head(f *file) error {
	in, err := os.Open(filepath.Join(r.cfg.Dir, f.name))
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	defer in.Close()
	w, err := binlog.NewFileWalk(in, f.source, f.log)
	for err == nil {
		var step binlog.Step
		if _, step, err = w.Next(); err != nil {
			break
		}
		switch step.Mark {
		case binlog.MarkPrevious:
			f.begin.Set = step.Previous
		case binlog.MarkSwitch:
			f.begin.Position = step.Position
			return nil
		case binlog.MarkFormat:
		default:
			err = errors.New("it does not say what lies in front of it")
		}
	}
	return &DamageError{Path: filepath.Join(r.cfg.Dir, f.name), Offset: logStart, Err: err}
}
