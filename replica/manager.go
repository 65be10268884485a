package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/storage"
)

// Options tune the machinery for all databases. The zero value of each field means its default.
type Options struct {
	// Readers is the number of parallel connections of a copy; 0: package snapshot's default.
	Readers int
	// SpillDir takes the temporary files of large transactions; empty: the folder spill in the data directory.
	SpillDir string
	// FirstPause is the pause before the first new try to reach a lost source; it doubles up to the setting
	// max_wait_time_when_mysql_unavailable. 0: 200 ms.
	FirstPause time.Duration
	// ResyncPause is the pause behind the first failed copy of a table beside the stream, and between two that came; it
	// doubles up to an hour. 0: 10 s.
	ResyncPause time.Duration
	// RetentionEvery is how often a source is asked for how long it still keeps what is needed. 0: a minute.
	RetentionEvery time.Duration
	// RoleEvery is how often a server that is followed is looked at, whether it is still the source. 0: half a minute.
	RoleEvery time.Duration
	// CredentialsDir has the files with passwords, certificates and keys, and the programs that print a password, that settings
	// may name; empty: they may name none.
	CredentialsDir string
}

// Manager runs the materialized databases of a store. Its methods may be called from several goroutines.
type Manager struct {
	store *storage.Store
	log   *slog.Logger
	opt   Options
	ctx   context.Context //nolint:containedctx // of the databases' goroutines; ended by Close
	end   context.CancelFunc

	admin sync.Mutex // one management statement at a time
	mu    sync.Mutex
	dbs   map[string]*database
}

// NewManager starts the databases that the store has, but those that were stopped. The store must outlive the manager.
func NewManager(store *storage.Store, logger *slog.Logger, opt Options) (*Manager, error) {
	if opt.SpillDir == "" {
		opt.SpillDir = filepath.Join(store.Dir(), "spill")
	}
	opt.RoleEvery = cmp.Or(opt.RoleEvery, roleEvery)
	if opt.FirstPause == 0 {
		opt.FirstPause = 200 * time.Millisecond
	}
	if opt.ResyncPause == 0 {
		opt.ResyncPause = 10 * time.Second
	}
	if opt.RetentionEvery == 0 {
		opt.RetentionEvery = retentionEvery
	}
	if err := os.MkdirAll(opt.SpillDir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder for large transactions: %w", err)
	}
	m := &Manager{store: store, log: logger, opt: opt, dbs: map[string]*database{}}
	m.ctx, m.end = context.WithCancel(context.Background())
	if err := m.sweepRelays(); err != nil {
		return nil, err
	}
	for _, info := range store.Databases() {
		cfg, err := decodeConfig(info.Config)
		if err != nil {
			m.Close()
			return nil, fmt.Errorf("database %s: %w", info.Name, err)
		}
		d := m.add(info.ID, cfg)
		if cfg.Stopped {
			d.state = StateStopped
			continue
		}
		d.start(m.ctx)
	}
	return m, nil
}

// Close stops all databases, without a change of what they do at the next start.
func (m *Manager) Close() {
	m.end()
	for _, d := range m.all() {
		d.stop()
		d.watch.Wait()
	}
}

func (m *Manager) add(id storage.DatabaseID, cfg *config) *database {
	d := &database{m: m, id: id, cfg: cfg, gate: newGate(), jobs: newJobs(), log: m.log.With("database", cfg.Spec.Name)}
	ctx, cancel := context.WithCancel(m.ctx)
	d.endWatch = cancel
	d.watch.Go(func() { d.watchRetention(ctx) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dbs[cfg.Spec.Name] = d
	return d
}

// all lists the databases by name.
func (m *Manager) all() []*database {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*database
	for _, d := range m.dbs {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *database) int { return strings.Compare(a.cfg.Spec.Name, b.cfg.Spec.Name) })
	return out
}

func (m *Manager) find(name string) (*database, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.dbs[name]
	if !ok {
		return nil, fmt.Errorf("database %s: %w", name, storage.ErrNotFound)
	}
	return d, nil
}

// Create checks the source, registers the database durably, and returns; the copy runs behind. All problems of the
// source are in one error. It is storage.ErrExists when the name is taken, unless ifNotExists.
func (m *Manager) Create(ctx context.Context, spec Spec, ifNotExists bool) error {
	if err := m.free(spec.Name); err != nil {
		if ifNotExists {
			return nil
		}
		return err
	}
	if spec.replays() {
		return m.createReplay(ctx, spec)
	}
	if err := m.opt.checkFiles(&spec.Settings.Connection); err != nil {
		return err
	}
	report, err := check(ctx, spec, m.opt.file)
	if err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	source := report.Source
	if len(spec.Others) > 0 && !source.GTIDs() {
		return fmt.Errorf("the source has gtid_mode = %s: several addresses need GTIDs, since files and positions are those of one server", source.GTIDMode)
	}
	if source.ReadOnly { // it is meant to be a replica
		spec.Settings.Connection.AllowReadOnly = true
	}
	spec.SourceDatabase = report.Plan.Database
	return m.register(ctx, &config{Version: configVersion, Spec: spec, ServerID: m.newServerID(source), TimeZone: zoneOf(source)})
}

// free is an error when the name is taken.
func (m *Manager) free(name string) error {
	if _, err := m.find(name); err == nil {
		return fmt.Errorf("database %s: %w", name, storage.ErrExists)
	}
	return nil
}

// register makes a database of a configuration whose source was checked. The check may have taken long, so that the name
// may be taken by now.
func (m *Manager) register(ctx context.Context, cfg *config) error {
	m.admin.Lock()
	defer m.admin.Unlock()
	encoded, err := cfg.encode()
	if err != nil {
		return err
	}
	id, err := m.store.CreateDatabase(ctx, cfg.Spec.Name, encoded)
	if err != nil {
		return err
	}
	d := m.add(id, cfg)
	d.note(ctx, "create", "the database was created from "+cfg.Spec.Source())
	d.start(m.ctx)
	return nil
}

// validate reports all faults of a Spec at once.
func (s *Spec) validate() error {
	var errs []error
	for what, missing := range map[string]bool{"no database name": s.Name == "", "no host": s.Host == "", "no database of the source": s.SourceDatabase == "", "no user": s.User == ""} {
		if missing {
			errs = append(errs, errors.New(what))
		}
	}
	if s.Port < 1 || s.Port > 65535 {
		errs = append(errs, fmt.Errorf("port %d is not between 1 and 65535", s.Port))
	}
	return errors.Join(append(errs, s.Settings.Validate())...)
}

// newServerID picks an id that no server of the source's topology is known to have. It is in the upper half of the range,
// where nobody numbers servers by hand.
func (m *Manager) newServerID(source *compat.Source) uint32 {
	taken := map[uint32]bool{source.ServerID: true}
	for _, id := range source.ServerIDs {
		taken[id] = true
	}
	for _, d := range m.all() {
		taken[d.serverID()] = true
	}
	for {
		if id := 1<<31 + rand.Uint32N(1<<31-1); !taken[id] {
			return id
		}
	}
}

// Start lets a stopped database go on, or one that stands in an error try again.
func (m *Manager) Start(ctx context.Context, name string) error {
	return m.change(ctx, name, func(d *database) error {
		if err := d.update(ctx, func(c *config) error { c.Stopped = false; return nil }); err != nil {
			return err
		}
		d.start(m.ctx)
		return nil
	})
}

// Stop ends following the source, and stays so over restarts. The database keeps answering from where it stands.
func (m *Manager) Stop(ctx context.Context, name string) error {
	return m.change(ctx, name, func(d *database) error {
		if err := d.update(ctx, func(c *config) error { c.Stopped = true; return nil }); err != nil {
			return err
		}
		d.stop()
		d.mu.Lock()
		d.state, d.message, d.lost = StateStopped, "", false
		d.mu.Unlock()
		return nil
	})
}

// change carries out one management statement.
func (m *Manager) change(_ context.Context, name string, do func(*database) error) error {
	m.admin.Lock()
	defer m.admin.Unlock()
	d, err := m.find(name)
	if err != nil {
		return err
	}
	return do(d)
}

// update changes the durable configuration.
func (d *database) update(ctx context.Context, edit func(*config) error) error {
	d.changes.Lock()
	defer d.changes.Unlock()
	next := d.config()
	if err := edit(&next); err != nil {
		return err
	}
	encoded, err := next.encode()
	if err != nil {
		return err
	}
	if err := d.m.store.UpdateConfig(ctx, d.id, encoded); err != nil {
		return err
	}
	d.setConfig(&next)
	return nil
}

func (d *database) config() config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.cfg
}

func (d *database) setConfig(c *config) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cfg = c
	if d.puller != nil {
		d.puller.relay.SetMaxBytes(c.Spec.Settings.RelayMaxBytes)
	}
}

// Drop takes a database away with all its tables. ErrNotFound when there is none, unless ifExists.
func (m *Manager) Drop(ctx context.Context, name string, ifExists bool) error {
	m.admin.Lock()
	defer m.admin.Unlock()
	d, err := m.find(name)
	if err != nil {
		if ifExists {
			return nil
		}
		return err
	}
	d.stop()
	d.endWatch()
	d.watch.Wait()
	if err := m.store.DropDatabase(ctx, d.id); err != nil {
		return err
	}
	if err := m.sweepRelays(); err != nil {
		d.log.Warn("the spooled binlog could not be removed; it will be at the next start", "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.dbs, name)
	return nil
}

// Status tells of all databases, by name.
func (m *Manager) Status() []Status {
	var out []Status
	for _, d := range m.all() {
		out = append(out, d.status())
	}
	return out
}

// Log gives the newest entries of the event log, newest first.
func (m *Manager) Log(limit int) []LogEntry {
	events, err := m.store.Events(limit)
	if err != nil {
		m.log.Warn("the event log can't be read", "error", err)
	}
	return events
}
