package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/uniquekey"
	"github.com/tidemarkdb/tidemark/verify"
)

// Verify compares every table of a database with its source, and reports each when it is done. ErrNotFound when there
// is no such database. The comparison needs the database to follow its source.
func (m *Manager) Verify(ctx context.Context, name string, report func(TableResult)) error {
	d, err := m.find(name)
	if err != nil {
		return err
	}
	cfg := verify.Config{Source: d.wire(), Database: d.spec().SourceDatabase, Filter: d.wanted, Logger: m.log}
	return verify.Run(ctx, cfg, &readable{d}, func(r verify.Result) {
		report(TableResult{Table: r.Table, Outcome: Outcome(r.Outcome), Rows: r.Rows, Keys: r.Keys, Note: r.Note})
	})
}

// readable is a database as package verify asks for it.
type readable struct{ d *database }

// lookAgain is the pause between looks at how far the stream is.
const lookAgain = 5 * time.Millisecond

func (r *readable) Pin(ctx context.Context, end gtid.Position) (verify.Version, error) {
	for {
		v, err := r.pin(end)
		if v != nil || err != nil {
			return v, err
		}
		if err := r.follows(); err != nil {
			return nil, err
		}
		if !sleep(ctx, lookAgain) {
			return nil, context.Cause(ctx)
		}
	}
}

// pin gives the newest version if it holds everything up to end, else nil.
func (r *readable) pin(end gtid.Position) (verify.Version, error) {
	v, err := r.d.m.store.Pin(r.d.id)
	if err != nil {
		return nil, err
	}
	if blob := v.Point(r.d.id); blob != nil {
		state, err := decodePoint(blob)
		if err != nil {
			v.Release()
			return nil, err
		}
		if state.Point.Position.Compare(end) >= 0 {
			return newVersion(v, r.d.id), nil
		}
	}
	v.Release()
	return nil, nil
}

// follows is an error when the database will not come any further by itself.
func (r *readable) follows() error {
	st := r.d.status()
	switch {
	case st.State == StateError:
		return errors.New(*st.Error)
	case st.State == StateStopped:
		return fmt.Errorf("database %s is stopped; start it first (SYSTEM START MATERIALIZEDMYSQL)", st.Name)
	case st.State == StateSnapshot, st.State == StateConverging:
		return fmt.Errorf("the first copy of database %s is not complete yet", st.Name)
	}
	return nil
}

// version is a pinned version with its tables by name.
type version struct {
	*storage.Version
	tables []verify.Table
	ids    map[string]storage.TableID
}

func newVersion(v *storage.Version, db storage.DatabaseID) *version {
	out := &version{Version: v, ids: map[string]storage.TableID{}}
	for _, t := range v.Tables(db) {
		row := verify.Table{Name: t.Def.Name, Def: t.Def}
		if t.State == storage.Quarantined {
			row.Quarantine = t.Reason
		}
		out.tables = append(out.tables, row)
		out.ids[row.Name] = t.ID
	}
	return out
}

func (v *version) Tables() []verify.Table { return v.tables }

func (v *version) Scan(ctx context.Context, table string, fn func(*column.Batch, uniquekey.Bitset) error) error {
	return v.Version.Scan(ctx, v.ids[table], fn)
}

func (v *version) Lookup(ctx context.Context, table string, keys column.Keys) (*column.Batch, error) {
	return v.Version.Lookup(ctx, v.ids[table], keys)
}
