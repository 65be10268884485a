package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// OpenArchive opens a directory of a server's own binlog files, or of what mysqlbinlog --raw wrote, to be read by
// position as a relay that does not grow. Other files in it (the server's index) are left aside; the binlog files must be
// of one series without a gap. Nothing in it is changed.
func OpenArchive(dir string) (*Relay, error) {
	r := newRelay(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	r.archive = true
	var err error
	if r.files, err = list(dir, parseForeign); err != nil {
		var gap *DamageError
		if errors.As(err, &gap) { // which nobody can mend from here
			return nil, fmt.Errorf("relay: %s: %w", gap.Path, gap.Err)
		}
		return nil, err
	}
	if len(r.files) == 0 {
		return nil, fmt.Errorf("relay: there are no binlog files in %s: %w", dir, os.ErrNotExist)
	}
	last := r.files[len(r.files)-1]
	r.start = &Start{Point: r.files[0].begin, ByPosition: true}
	r.spooled.point.Position = gtid.Position{File: last.log, Offset: uint64(last.size)}
	r.spooled.behind = r.spooled.point.Position
	r.count()
	return r, nil
}

// Server is the version of the server that wrote the first file.
func (r *Relay) Server() (string, error) {
	files := r.snapshot()
	if len(files) == 0 {
		return "", os.ErrNotExist
	}
	in, err := os.Open(filepath.Join(r.cfg.Dir, files[0].name))
	if err != nil {
		return "", fmt.Errorf("relay: %w", err)
	}
	defer in.Close()
	w, err := binlog.NewFileWalk(in, files[0].source, files[0].log)
	if err != nil {
		return "", err
	}
	raw, step, err := w.Next()
	if err == nil && step.Mark != binlog.MarkFormat {
		err = errors.New("it does not begin with a format description")
	}
	if err != nil {
		return "", fmt.Errorf("relay: %s: %w", files[0].name, err)
	}
	return binlog.FormatServer(raw), nil
}

// parseForeign is false for what does not bear the name of a server's binlog file.
func parseForeign(name string) (*file, bool) {
	p := gtid.Position{File: name, Offset: logStart}
	_, n, ok := p.Series()
	return &file{name: name, number: n, log: name, begin: gtid.Point{Position: p}}, ok
}
