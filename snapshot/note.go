package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
)

// note says which rows a finished chunk holds, and all that a later Run has to know of it. Its form is the snapshot's own;
// a sink only keeps it.
type note struct {
	Version int `json:"v"`
	// Place and Number order the chunks of a table: chunks of a lower place come first, and within a place those of a
	// lower number. Only the server can compare keys.
	Place  []byte `json:"place,omitempty"`
	Number int    `json:"n"`
	// The chunk holds the rows behind After, up to and with UpTo. Without UpTo nothing behind it needs to be read.
	After boundary `json:"after,omitempty"`
	UpTo  boundary `json:"upTo,omitempty"`
	Rows  int64    `json:"rows"`
	// Exact tells that it was read in a view that shows the cut's point.
	Exact bool `json:"exact,omitempty"`
	// Table tells this table from one that took its name: its fingerprint and its id.
	Table string `json:"table"`
	// Bracket is of a table without a key that was read without a lock.
	Bracket *bracket `json:"bracket,omitempty"`
}

// bracket is the window of a table that was read in one view: opened after From, read to its end before To.
type bracket struct {
	From []byte `json:"from"` // gtid.Point
	To   []byte `json:"to"`   // gtid.Position
}

const noteVersion = 1

func newBracket(from gtid.Point, to gtid.Position) *bracket {
	return &bracket{From: from.AppendBinary(nil), To: to.AppendBinary(nil)}
}

func (b *bracket) decode() (from gtid.Point, to gtid.Position, err error) {
	from, rest, err := gtid.DecodePoint(b.From)
	if err != nil {
		return from, to, err
	}
	to, rest2, err := gtid.DecodePosition(b.To)
	if err == nil && len(rest)+len(rest2) > 0 {
		err = errNote
	}
	return from, to, err
}

func (n *note) encode() ([]byte, error) {
	n.Version = noteVersion
	return json.Marshal(n)
}

var errNote = errors.New("the note of a finished chunk is damaged")

func decodeNote(t *schema.Table, b []byte) (*note, error) {
	var n note
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		return nil, fmt.Errorf("%w: %w", errNote, err)
	}
	if n.Version != noteVersion {
		return nil, fmt.Errorf("the note of a finished chunk has version %d; this release knows %d", n.Version, noteVersion)
	}
	if len(n.After) > len(t.Key) || len(n.UpTo) > len(t.Key) || n.Rows < 0 || n.Number < 0 {
		return nil, errNote
	}
	if n.Bracket != nil {
		if _, _, err := n.Bracket.decode(); err != nil {
			return nil, errNote
		}
	}
	return &n, nil
}

// taken is what finished chunks hold of a table.
type taken struct {
	notes  []*note // in the order of their rows
	gaps   []gap
	rows   int64
	exact  bool // all chunks are
	chunks int64
}

// gap is a range that no chunk covers, and the place for those that will.
type gap struct {
	rng           keyRange
	place, behind string // behind is the place that follows
}

// takeOver orders a table's chunks and finds what is left to be read.
func takeOver(t *schema.Table, notes [][]byte) (*taken, error) {
	k := &taken{exact: true, chunks: int64(len(notes))}
	for _, b := range notes {
		n, err := decodeNote(t, b)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.FullName(), err)
		}
		k.notes = append(k.notes, n)
		k.rows += n.Rows
		k.exact = k.exact && n.Exact
	}
	slices.SortFunc(k.notes, func(a, b *note) int {
		return cmp.Or(bytes.Compare(a.Place, b.Place), cmp.Compare(a.Number, b.Number))
	})
	if !k.findGaps() {
		return nil, fmt.Errorf("table %s: %w", t.FullName(), errNote)
	}
	return k, nil
}

// findGaps fails for chunks that can't be of one copy.
func (k *taken) findGaps() bool {
	last, lastPlace := boundary(nil), ""
	for i, n := range k.notes {
		follows := i > 0 && slices.Equal(last, n.After)
		if i > 0 && (last == nil || n.After == nil || !follows && string(n.Place) == lastPlace) || len(n.Place) == 0 {
			return false
		}
		if !follows && n.After != nil {
			k.gaps = append(k.gaps, gap{keyRange{last, n.After}, between(lastPlace, string(n.Place)), string(n.Place)})
		}
		last, lastPlace = n.UpTo, string(n.Place)
	}
	if len(k.notes) == 0 || last != nil {
		k.gaps = append(k.gaps, gap{keyRange{after: last}, between(lastPlace, ""), ""})
	}
	return true
}

// between gives a place between two others, in the order of their bytes; "" as the higher one is the end. No place ends
// with a zero byte, so that there is always room.
func between(low, high string) string {
	var out []byte
	for i := 0; ; i++ {
		from, to := 0, 256
		if i < len(low) {
			from = int(low[i])
		}
		if high != "" {
			to = int(high[i])
		}
		if to-from > 1 {
			return string(append(out, byte((from+to)/2)))
		}
		out = append(out, byte(from))
		if from < to {
			high = ""
		}
	}
}
