package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

const (
	// collectRows is about how many rows of each side are kept to find the keys that differ.
	collectRows = 200_000
	// collectTries bounds how often rows are read again to find them.
	collectTries = 3
	// askKeys is the number of keys asked for at once.
	askKeys = 200
	// askTries bounds how often a key is asked for.
	askTries = 16
	// stableTries is the number of pairs over which both sides have to stay as they are for a difference to be proven on
	// a source that is never quiet: a row that merely goes to and fro would have to be met eight times in the same state.
	stableTries = 8
	// namedKeys is the number of differing keys that a result names.
	namedKeys = 10
)

// taker is what reads rows: sums or a collection.
type taker interface {
	add(h *hasher, b *column.Batch, dead uniquekey.Bitset) error
}

// rows compares the rows of a table of equal definitions, first at pair p.
func (v *verifier) rows(ctx context.Context, p *pair, def, theirs *schema.Table, r *Result) error {
	mine, source := &sums{}, &sums{}
	if err := v.read(ctx, p, def, theirs, mine, source); err != nil {
		return err
	}
	r.Rows = mine.rows
	left := differing(mine, source)
	for range collectTries {
		if len(left) == 0 {
			r.Outcome = Equal
			return nil
		}
		now := min(len(left), max(1, int(collectRows*buckets/max(mine.rows, source.rows, 1))))
		if err := v.buckets(ctx, def.Name, left[:now], r); err != nil || r.Outcome != Equal {
			return err
		}
		left = left[now:]
	}
	if len(left) > 0 {
		r.Outcome, r.Note = Undecided, "too many rows changed while the table was compared"
	}
	return nil
}

// read reads the table once on both sides, at the same time.
func (v *verifier) read(ctx context.Context, p *pair, def, theirs *schema.Table, mine, source taker) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		h := v.hash.clone()
		return p.version.Scan(ctx, def.Name, func(b *column.Batch, dead uniquekey.Bitset) error { return mine.add(h, b, dead) })
	})
	g.Go(func() error {
		h := v.hash.clone()
		return snapshot.Scan(ctx, p.conn, asOurs(def, theirs), func(b *column.Batch) error { return source.add(h, b, nil) })
	})
	return g.Wait()
}

// asOurs is our definition under the source's names, so that both sides' rows have the same column ids.
func asOurs(def, theirs *schema.Table) *schema.Table {
	t := def.Clone()
	t.Database, t.Name, t.KeyName, t.Indexes = theirs.Database, theirs.Name, theirs.KeyName, theirs.Indexes
	return t
}

// buckets finds the keys of differing buckets that differ at a later pair, and asks for them.
func (v *verifier) buckets(ctx context.Context, table string, which []int, r *Result) error {
	asked, err := v.suspects(ctx, table, which)
	if err != nil {
		return err
	}
	r.Outcome = Equal
	undecided := 0
	for chunk := range slices.Chunk(asked, askKeys) {
		open, err := v.ask(ctx, table, chunk, r)
		if err != nil || r.Outcome == Different {
			return err
		}
		undecided += open
	}
	if undecided > 0 {
		r.Outcome, r.Note = Undecided, fmt.Sprintf("%d rows changed each time they were looked at", undecided)
	}
	return nil
}

// suspects reads the rows of some buckets at a new pair and gives the keys that differ there, in key order.
func (v *verifier) suspects(ctx context.Context, table string, which []int) ([]*suspect, error) {
	p, err := v.pair(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	def, theirs, err := p.bothDefinitions(table)
	if err != nil {
		return nil, err
	}
	var wanted [buckets]bool
	for _, b := range which {
		wanted[b] = true
	}
	mine, source := &collection{&wanted, map[string]row{}}, &collection{&wanted, map[string]row{}}
	if err := v.read(ctx, p, def, theirs, mine, source); err != nil {
		return nil, err
	}
	return suspects(mine.rows, source.rows), nil
}

// bothDefinitions gives a table's definitions at a pair at which they are expected to be equal.
func (p *pair) bothDefinitions(table string) (def, theirs *schema.Table, err error) {
	if p.version == nil {
		return nil, nil, &unreachedError{p.failure}
	}
	mine, here := p.table(table)
	theirs = p.catalog.Table(table)
	if !here || theirs == nil || mine.Quarantine != "" || definitionDiffers(mine.Def, theirs) != "" {
		return nil, nil, fmt.Errorf("%w: table %s", snapshot.ErrSchemaChanged, table)
	}
	return mine.Def, theirs, nil
}

// unreachedError says why there is no version of ours to compare with.
type unreachedError struct{ reason string }

func (e *unreachedError) Error() string { return e.reason }

// suspect is a key that differed at a pair.
type suspect struct {
	key    string
	where  string
	bucket int
	// hashes of the last look, 0 for a missing row, and for how many looks in a row both have been the same
	mine, source uint64
	stable       int
}

func suspects(mine, source map[string]row) []*suspect {
	var out []*suspect
	for key, m := range mine {
		if s, ok := source[key]; !ok || s.hash != m.hash {
			out = append(out, &suspect{key: key, where: m.where, bucket: m.bucket})
		}
	}
	for key, s := range source {
		if _, ok := mine[key]; !ok {
			out = append(out, &suspect{key: key, where: s.where, bucket: s.bucket})
		}
	}
	slices.SortFunc(out, func(a, b *suspect) int { return strings.Compare(a.key, b.key) })
	return out
}

// ask looks at keys again and again, until all are equal, or some are proven to differ. It gives the number of those
// that stay undecided.
func (v *verifier) ask(ctx context.Context, table string, open []*suspect, r *Result) (undecided int, err error) {
	var last gtid.Position
	for try := range askTries {
		if try > 0 {
			if err := v.wait(ctx, try); err != nil {
				return 0, err
			}
		}
		look, err := v.look(ctx, table, open)
		if err != nil {
			return 0, err
		}
		// Nothing happened between the last view and this one: our version lay between them.
		quiet := try > 0 && look.before == last
		last = look.end
		var proven []*suspect
		open, proven = look.judge(open, quiet)
		if len(open) == 0 {
			return 0, nil
		}
		if len(proven) > 0 && (len(proven) == len(open) || len(proven) >= namedKeys || try == askTries-1) {
			look.report(proven, r)
			return 0, nil
		}
	}
	return len(open), nil
}

// look is the state of some keys at one pair.
type look struct {
	before, end  gtid.Position // of the source's binlog before the view was opened, and after
	mine, source sideRows
}

// sideRows are the rows of one side by key; in a table without a key one of the equal ones stands for all, and its hash
// is their number.
type sideRows struct {
	batch  *column.Batch
	at     map[string]int
	hashes []uint64
}

func (v *verifier) look(ctx context.Context, table string, keys []*suspect) (*look, error) {
	before, err := v.now(ctx)
	if err != nil {
		return nil, err
	}
	p, err := v.pair(ctx)
	if err != nil {
		return nil, err
	}
	defer p.close()
	def, theirs, err := p.bothDefinitions(table)
	if err != nil {
		return nil, err
	}
	l := &look{before: before, end: p.end}
	if def.Multiset() {
		return l, v.count(ctx, p, def, theirs, keys, l)
	}
	var named column.Keys
	wheres := make([]string, len(keys))
	for i, k := range keys {
		named.Append([]byte(k.key))
		wheres[i] = "(" + k.where + ")"
	}
	source, err := snapshot.Select(ctx, p.conn, asOurs(def, theirs), strings.Join(wheres, " OR "))
	if err != nil {
		return nil, err
	}
	mine, err := p.version.Lookup(ctx, table, named)
	if err != nil {
		return nil, err
	}
	if l.mine, err = v.sideRows(mine); err != nil {
		return nil, err
	}
	l.source, err = v.sideRows(source)
	return l, err
}

// now is the end of the source's binlog before a view is opened.
func (v *verifier) now(ctx context.Context) (gtid.Position, error) {
	if v.idle == nil {
		return gtid.Position{}, nil
	}
	return v.position(ctx, v.idle)
}

func (v *verifier) sideRows(b *column.Batch) (sideRows, error) {
	s := sideRows{at: map[string]int{}}
	if b == nil || b.Rows() == 0 {
		return s, nil
	}
	b, err := b.WithKeys()
	if err != nil {
		return s, err
	}
	_, hashes, err := v.hash.clone().rows(b)
	if err != nil {
		return s, err
	}
	s.batch, s.hashes = b, slices.Clone(hashes)
	for i := range b.Rows() {
		s.at[string(b.Keys.At(i))] = i
	}
	return s, nil
}

// hash gives that of a key's row, 0 when there is none.
func (s *sideRows) hash(key string) uint64 {
	if i, ok := s.at[key]; ok {
		return s.hashes[i]
	}
	return 0
}

// judge drops the keys that are equal now, and gives those that are left and, of them, those that are proven to differ.
func (l *look) judge(keys []*suspect, quiet bool) (open, proven []*suspect) {
	for _, k := range keys {
		mine, source := l.mine.hash(k.key), l.source.hash(k.key)
		if mine == source {
			continue
		}
		if mine == k.mine && source == k.source {
			k.stable++
		} else {
			k.mine, k.source, k.stable = mine, source, 1
		}
		open = append(open, k)
		if k.stable >= stableTries || quiet && k.stable >= 2 {
			proven = append(proven, k)
		}
	}
	return open, proven
}

// report makes the result that of a table with these differences.
func (l *look) report(proven []*suspect, r *Result) {
	r.Outcome, r.Note = Different, fmt.Sprintf("at least %d rows differ", len(proven))
	if len(proven) == 1 {
		r.Note = "at least one row differs"
	}
	for _, k := range proven[:min(len(proven), namedKeys)] {
		r.Keys = append(r.Keys, l.describe(k))
	}
}

// describe names a key and what differs.
func (l *look) describe(k *suspect) string {
	m, here := l.mine.at[k.key]
	s, there := l.source.at[k.key]
	if b := cmp.Or(l.mine.batch, l.source.batch); b.Table.Multiset() {
		return l.describeCounts(k)
	}
	switch {
	case !here:
		return keyNames(l.source.batch, s) + ": missing here"
	case !there:
		return keyNames(l.mine.batch, m) + ": not on the source"
	}
	var names []string
	for c := range l.mine.batch.Table.Columns {
		if !sameValue(l.mine.batch, m, l.source.batch, s, c) {
			names = append(names, l.mine.batch.Table.Columns[c].Name)
		}
	}
	return keyNames(l.mine.batch, m) + ": " + strings.Join(names, ", ") + " differ"
}

func sameValue(a *column.Batch, i int, b *column.Batch, j, c int) bool {
	return a.Record.Column(c).IsNull(i) == b.Record.Column(c).IsNull(j) && bytes.Equal(appendValue(nil, a, i, c), appendValue(nil, b, j, c))
}
