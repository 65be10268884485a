package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/storage"
)

// relayRoot is the folder of all relays.
func (m *Manager) relayRoot() string { return filepath.Join(m.store.Dir(), "relay") }

func (m *Manager) relayDir(s storage.StreamID) string {
	return filepath.Join(m.relayRoot(), strconv.FormatUint(uint64(s), 10))
}

// sweepRelays removes the relays of databases that are no longer there.
func (m *Manager) sweepRelays() error {
	entries, err := os.ReadDir(m.relayRoot())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the folder of spooled binlogs: %w", err)
	}
	known := map[string]bool{}
	for _, info := range m.store.Databases() {
		known[filepath.Base(m.relayDir(info.Stream))] = true
	}
	for _, e := range entries {
		if known[e.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(m.relayRoot(), e.Name())); err != nil {
			return fmt.Errorf("the spooled binlog of a database that was dropped: %w", err)
		}
	}
	return nil
}

// openRelay opens the database's relay. A damaged one is emptied: what it had and is still needed is read from the source
// again, or the source says that it no longer has it.
func (d *database) openRelay(ctx context.Context) (*relay.Relay, error) {
	spec := d.spec()
	info, err := d.m.store.Database(spec.Name)
	if err != nil {
		return nil, err
	}
	cfg := relay.Config{Dir: d.m.relayDir(info.Stream), MaxBytes: spec.Settings.RelayMaxBytes, Room: d.roomToSpool, Logger: d.log}
	r, err := relay.Open(cfg)
	var damage *relay.DamageError
	if !errors.As(err, &damage) {
		return r, err
	}
	d.log.Error("the spooled binlog is damaged; it is read from the source again", "error", err)
	d.note(ctx, "relay", fmt.Sprintf("the spooled binlog is damaged, and is read from the source again: %v", err))
	if err := os.RemoveAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("remove a damaged spooled binlog: %w", err)
	}
	return relay.Open(cfg)
}

// spoolReserve is what spooled binlog leaves on the disk besides the store's reserve: what is spooled can be applied, and
// removed then, only if the store still has room.
const spoolReserve = 64 << 20

func (d *database) roomToSpool() error { return d.m.store.CheckSpace(spoolReserve) }

// relayStart is where a relay has to begin so that everything behind a point is in it. By position a relay has whole
// files.
func (d *database) relayStart(p gtid.Point) relay.Start {
	s := relay.Start{Point: p, ByPosition: d.byPosition()}
	if s.ByPosition {
		s.Point = gtid.Point{Position: gtid.Position{File: p.Position.File, Offset: 4}}
	}
	return s
}

// committed is the durable state of the database without its tables; before the first copy is complete, the transaction
// by which the copy knows its source again. ok is false when there is neither.
func (d *database) committed() (s replay.State, ok bool, err error) {
	info, err := d.m.store.Database(d.spec().Name)
	if err != nil {
		return s, false, err
	}
	c := d.config()
	switch phaseOf(&c, info) {
	case converging, complete:
		s, err = decodePoint(info.Point)
		return s, err == nil, err
	case copying:
		begun, err := c.Copy.start()
		return replay.State{Point: begun.point, Last: begun.anchor}, err == nil, err
	}
	return s, false, nil
}

// prune lets the relay drop what is committed.
func (d *database) prune(p gtid.Point) {
	if err := d.puller.relay.Prune(p); err != nil {
		d.log.Warn("spooled binlog that is no longer needed could not be removed", "error", err)
	}
}
