package replica

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/storage"
)

// resync is what the configuration of a database keeps of the new copies of one table.
type resync struct {
	// Asked tells that people want one, which has not come yet.
	Asked bool `json:",omitempty"`
	// Tries counts those that failed since the last that did not, Error is why the last one did.
	Tries int    `json:",omitempty"`
	Error string `json:",omitempty"`
	// Copies counts those that came, one soon after the other; Done is when the last one did.
	Copies int       `json:",omitempty"`
	Done   time.Time `json:",omitzero"`
	// Next is when the next one may begin.
	Next time.Time `json:",omitzero"`
}

const (
	// longestPause bounds the pause between two copies of one table.
	longestPause = time.Hour
	// settled is how long a table must have been without need for earlier copies to be forgotten.
	settled = time.Hour
)

// backoff is the pause behind the nth failure or copy in a row.
func backoff(first time.Duration, n int) time.Duration {
	pause := first
	for range n - 1 {
		if pause >= longestPause {
			break
		}
		pause *= 2
	}
	return min(pause, longestPause)
}

func (r *resync) failed(text string, first time.Duration) {
	r.Tries++
	r.Error = text
	r.Next = time.Now().Add(backoff(first, r.Tries+r.Copies))
}

func (r *resync) succeeded(first time.Duration) {
	now := time.Now()
	copies := r.Copies
	if now.Sub(r.Done) > settled {
		copies = 0
	}
	*r = resync{Copies: copies + 1, Done: now}
	r.Next = now.Add(backoff(first, r.Copies))
}

// idle tells that nothing is worth keeping.
func (r *resync) idle() bool {
	return !r.Asked && r.Tries == 0 && time.Since(r.Done) > settled
}

// remember changes what is kept of a table's new copies. What can't be written is tried again by the next copy.
func (d *database) remember(ctx context.Context, table string, edit func(*resync)) {
	err := d.update(context.WithoutCancel(ctx), func(c *config) error {
		c.editResync(table, edit)
		return nil
	})
	if err != nil {
		d.log.Warn("what became of a table's new copy can't be kept", "table", table, "error", err)
	}
}

// editResync changes the record of a table in a configuration that nobody else sees yet.
func (c *config) editResync(table string, edit func(*resync)) {
	next := maps.Clone(c.Resyncs)
	if next == nil {
		next = map[string]resync{}
	}
	r := next[table]
	edit(&r)
	next[table] = r
	maps.DeleteFunc(next, func(_ string, r resync) bool { return r.idle() })
	c.Resyncs = next
}

// need is a table that is to be copied anew.
type need struct {
	table storage.TableInfo
	due   time.Time // zero: at once
	asked bool
	tries int
}

// needs lists the tables to be copied anew: those that people asked for first, then those that wait longest.
func (d *database) needs() []need {
	cfg := d.config()
	begun := d.begunShadows()
	var out []need
	for _, t := range d.m.store.Tables(d.id) {
		r := cfg.Resyncs[t.Def.Name]
		if !r.Asked && !begun[t.ID] && !(cfg.Spec.Settings.AutoResync && unfit(&t)) {
			continue
		}
		out = append(out, need{table: t, due: r.Next, asked: r.Asked, tries: r.Tries})
	}
	slices.SortStableFunc(out, func(a, b need) int {
		if a.asked != b.asked {
			return cmp.Compare(b2i(b.asked), b2i(a.asked))
		}
		return a.due.Compare(b.due)
	})
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unfit tells a table that stays as it is, or can't be read.
func unfit(t *storage.TableInfo) bool { return t.State == storage.Quarantined || t.Damage != nil }

// jobsLeft tells whether a table that is in quarantine has a new copy to come. One whose copies keep failing is not
// waited for: it stays in quarantine while the others become readable.
func (d *database) jobsLeft() bool {
	const patience = 5
	return slices.ContainsFunc(d.needs(), func(n need) bool { return n.table.State == storage.Quarantined && n.tries < patience })
}

// jobVersion is the version of the record below.
const jobVersion = 1

// jobRecord is kept with the shadow of a job, as JSON, in the commits that it is about. See docs/format/job.md.
type jobRecord struct {
	Version int
	// Old is the table whose place the shadow is to take.
	Old storage.TableID
	// Server is the server_uuid of the server that the rows are read from.
	Server string
	// P0 is where the copy begins (docs/format/gtid.md: point); Seen is an end of the source's binlog behind it, from
	// before the definition was read, or zero.
	P0   []byte
	Seen gtid.Position
	// Charset and Collation are the database's defaults at P0.
	Charset, Collation string
	// XAUnknown tells that the account could not ask whether XA transactions were prepared at P0.
	XAUnknown bool `json:",omitempty"`
	// State is how far changes are applied (docs/format/point.md); nil while rows are copied.
	State []byte `json:",omitempty"`
	// Window is open while the rows stand at no one point.
	Window *jobWindow `json:",omitempty"`
}

// jobWindow is the durable form of a [replay.Window].
type jobWindow struct {
	// From is a point (docs/format/gtid.md); nil: the zero one.
	From    []byte `json:",omitempty"`
	To      gtid.Position
	Bracket bool `json:",omitempty"`
}

func (r *jobRecord) encode() ([]byte, error) { return json.Marshal(r) }

// point is where the job stands.
func (r *jobRecord) point() (gtid.Point, error) {
	if r.State == nil {
		p, _, err := gtid.DecodePoint(r.P0)
		return p, err
	}
	s, err := decodePoint(r.State)
	return s.Point, err
}

var errJob = errors.New("the record of a table's new copy can't be read")

func decodeJob(b []byte) (jobRecord, error) {
	var r jobRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errJob, err)
	}
	if r.Version != jobVersion {
		return r, fmt.Errorf("%w: %w: version %d", errJob, storage.ErrNewerFormat, r.Version)
	}
	return r, nil
}

// begunShadows gives the tables whose new copy is begun.
func (d *database) begunShadows() map[storage.TableID]bool {
	out := map[storage.TableID]bool{}
	for _, t := range d.m.store.Shadows(d.id) {
		if r, err := decodeJob(t.Point); err == nil {
			out[r.Old] = true
		}
	}
	return out
}
