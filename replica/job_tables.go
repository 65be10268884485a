package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// NoTableError says that a database has no table of a name.
type NoTableError struct{ Database, Table string }

func (e *NoTableError) Error() string {
	return fmt.Sprintf("Table '%s.%s' doesn't exist here; a table of the source is taken in by the settings include_tables, exclude_tables and materialized_mysql_tables_list",
		e.Database, e.Table)
}

var errFirstCopy = errors.New("the first copy is not complete yet; it can be done once it is")

// Resync has one table copied anew beside the stream. It returns when that is durably registered. The copy that is there
// is served until the new one has met the stream. ErrNotFound when there is no such database, a *NoTableError when it
// has no such table.
func (m *Manager) Resync(ctx context.Context, name, table string) error {
	return m.change(ctx, name, func(d *database) error {
		info, err := m.store.Database(name)
		if err != nil {
			return err
		}
		if info.Point == nil {
			return fmt.Errorf("database %s: %w", name, errFirstCopy)
		}
		if d.spec().Settings.BinlogDir != "" {
			return fmt.Errorf("database %s is made of binlog files: there is no source to copy a table from", name)
		}
		if _, err := m.store.Table(d.id, table); err != nil {
			return &NoTableError{Database: name, Table: table}
		}
		err = d.update(ctx, func(c *config) error {
			c.editResync(table, func(r *resync) { *r = resync{Asked: true} })
			return nil
		})
		if err == nil {
			d.tableNote(ctx, table, "resync", "a new copy of the table was asked for")
			d.jobs.again(table)
		}
		return err
	})
}

// again lets a job that waits begin at once.
func (j *jobs) again(table string) {
	j.mu.Lock()
	delete(j.lost, table)
	j.mu.Unlock()
	j.wake()
}

// tableSettings say which tables there are.
var tableSettings = []string{"materialized_mysql_tables_list", "include_tables", "exclude_tables"}

// ModifySettings changes settings while the database runs; all of them or none. Tables that are not wanted any more are
// dropped here in the same commit. Those that are wanted now are quarantined from the start, and copied beside the
// stream; they can be read once that is done. That asks the source, and fails with all its problems.
func (m *Manager) ModifySettings(ctx context.Context, name string, values map[string]string) error {
	return m.change(ctx, name, func(d *database) error {
		before := d.spec()
		next, err := m.modified(before, values)
		if err != nil {
			return err
		}
		edit := func(c *config) {
			c.Spec = next
			c.Encrypted = c.Encrypted && slices.Equal(before.addresses(), next.addresses())
		}
		if sameTables(&before.Settings, &next.Settings) {
			err = d.update(ctx, func(c *config) error { edit(c); return nil })
		} else {
			err = d.changeTables(ctx, &next.Settings, edit)
		}
		if err == nil {
			d.reconnect(m.ctx, &before)
		}
		return err
	})
}

// modified gives a Spec with other settings, or all that is wrong with them.
func (m *Manager) modified(s Spec, values map[string]string) (Spec, error) {
	var errs []error
	for name, value := range values {
		errs = append(errs, s.modify(name, value))
	}
	c := &s.Settings.Connection
	return s, errors.Join(append(errs, m.opt.checkFiles(c), c.validate())...)
}

// sameTables tells whether two settings name the same tables by the same words.
func sameTables(a, b *Settings) bool {
	return !slices.ContainsFunc(tableSettings, func(name string) bool { return settings[name].get(a) != settings[name].get(b) })
}

// changeTables changes what is followed, between two batches of the stream.
func (d *database) changeTables(ctx context.Context, next *Settings, edit func(*config)) error {
	info, err := d.m.store.Database(d.spec().Name)
	if err != nil {
		return err
	}
	if info.Point == nil {
		return fmt.Errorf("the settings %s of database %s can't be changed now: %w", strings.Join(tableSettings, ", "), info.Name, errFirstCopy)
	}
	taken, err := d.newTables(ctx, next)
	if err != nil {
		return err
	}
	return d.gate.between(ctx, func() error {
		state, _, err := d.committed()
		if err != nil {
			return err
		}
		err = d.commitConfig(ctx, func(c *config) {
			edit(c)
			for _, t := range taken {
				c.editResync(t.Name, func(r *resync) { *r = resync{Asked: true} })
			}
		}, func(txn *storage.Txn) error {
			return errors.Join(d.takeOut(txn, next), d.takeIn(txn, taken, state))
		})
		if err != nil {
			return err
		}
		d.gate.restart() // the reader's filter is of the settings before
		d.jobs.wake()
		return nil
	})
}

// newTables lists the tables of the source that are wanted by other settings and are not here. What keeps one of them
// from being copied is an error.
func (d *database) newTables(ctx context.Context, next *Settings) ([]*schema.Table, error) {
	_, plan, err := compat.Check(ctx, d.wire(), compat.Wishes{Database: d.spec().SourceDatabase, Lock: compat.LockNone, Filter: func(table string) bool {
		_, err := d.m.store.Table(d.id, table)
		return err != nil && next.Wanted(table)
	}})
	if err != nil {
		return nil, err
	}
	return plan.Catalog.Tables, nil
}

// takeOut drops the tables that are not wanted, and what is begun of new copies of them.
func (d *database) takeOut(txn *storage.Txn, next *Settings) error {
	for _, t := range slices.Concat(d.m.store.Tables(d.id), d.m.store.Shadows(d.id)) {
		if next.Wanted(t.Def.Name) {
			continue
		}
		if err := txn.DropTable(t.ID); err != nil {
			return err
		}
		if !t.Shadow {
			txn.Log(storage.Event{Kind: "drop", Table: t.Def.Name, Message: "the table was taken out by the settings"})
		}
	}
	return nil
}

// takeIn adds tables of which nothing is here yet.
func (d *database) takeIn(txn *storage.Txn, tables []*schema.Table, at replay.State) error {
	for _, t := range tables {
		if err := d.addEmpty(txn, t.Name, "the table was taken in by the settings and is not copied yet", at); err != nil {
			return err
		}
	}
	return nil
}

// addEmpty adds a table of which nothing is known yet: without columns, so that it can't be read.
func (d *database) addEmpty(txn *storage.Txn, name, reason string, at replay.State) error {
	def := &schema.Table{Database: d.spec().SourceDatabase, Name: name, Version: 1, NextColumnID: 1}
	txn.Log(storage.Event{Kind: "quarantine", Table: name, Message: reason})
	_, err := txn.CreateQuarantined(def, reason, encodePoint(&replay.State{Point: at.Point}))
	return err
}
