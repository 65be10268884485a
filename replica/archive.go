package replica

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/storage"
)

// A database may be made of binlog files alone (the setting binlog_dir): it begins empty, its tables come by their CREATE
// statements, and it ends in StateEnded behind the last file. SYSTEM START looks for more files.

// errEnded says that the given binlog files were applied to their end.
var errEnded = errors.New("all binlog files are applied")

// replays tells whether the database is made of binlog files, without a source.
func (s *Spec) replays() bool { return s.Settings.BinlogDir != "" }

// createReplay registers a database that is made of binlog files.
func (m *Manager) createReplay(ctx context.Context, spec Spec) error {
	var errs []error
	if spec.Name == "" || spec.SourceDatabase == "" {
		errs = append(errs, errors.New("no database name"))
	}
	if !filepath.IsAbs(spec.Settings.BinlogDir) {
		errs = append(errs, fmt.Errorf("setting binlog_dir: %s is not an absolute path", spec.Settings.BinlogDir))
	}
	if err := errors.Join(append(errs, spec.Settings.Validate())...); err != nil {
		return err
	}
	files, err := relay.OpenArchive(spec.Settings.BinlogDir)
	if err != nil {
		return err
	}
	version, err := files.Server()
	if err != nil {
		return err
	}
	spec.Settings.AutoResync = false // there is nowhere to copy from
	return m.register(ctx, &config{Version: configVersion, Spec: spec, ByPosition: true, Facts: factsOf(compat.OfVersion(version))})
}

// beginReplay sets an empty database in front of the first file.
func (d *database) beginReplay(ctx context.Context) error {
	begin, _ := d.puller.relay.Begin()
	err := d.commit(ctx, func(txn *storage.Txn) error {
		txn.SetPoint(encodePoint(&replay.State{Point: begin.Point})) // without a character set: CREATE DATABASE is still to come
		txn.Log(storage.Event{Kind: "replay", Message: "the binlog files in " + d.spec().Settings.BinlogDir + " are applied, from " + begin.Point.Position.File + " on"})
		return nil
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = d.running()
	return err
}

// ended notes that there are no more files.
func (d *database) ended(ctx context.Context) {
	text := fmt.Sprintf("all binlog files are applied, up to %s", d.puller.relay.End().Position)
	d.log.Info("all binlog files are applied", "dir", d.spec().Settings.BinlogDir, "up to", d.puller.relay.End().Position.String())
	d.note(ctx, "ended", text)
}
