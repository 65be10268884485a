package storage

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

var flagEveryCrash = flag.Bool("every-crash", false, "crash before every write of the scenario, not before a sample of them")

// shown is what a store shows: rows by table name, shadows as "shadow NAME", the point, and by such a name what it has
// beside rows: state, window, own point, notes and rows of a bulk load.
type shown struct {
	point  string
	rows   map[string]map[int64]row
	beside map[string]string
}

func nothing() shown { return shown{rows: map[string]map[int64]row{}, beside: map[string]string{}} }

func (s shown) with(change func(*shown)) shown {
	n := shown{s.point, map[string]map[int64]row{}, maps.Clone(s.beside)}
	for name, rows := range s.rows {
		n.rows[name] = maps.Clone(rows)
	}
	change(&n)
	return n
}

func (s shown) equal(o shown) bool {
	return s.point == o.point && maps.Equal(s.beside, o.beside) &&
		maps.EqualFunc(s.rows, o.rows, func(a, b map[int64]row) bool { return maps.Equal(a, b) })
}

func (s shown) String() string {
	text := "point " + s.point
	for name, rows := range s.rows {
		text += fmt.Sprintf(", %s: %d rows (%s)", name, len(rows), s.beside[name])
	}
	return text
}

// besides is the text for a table in shown.
func besides(info TableInfo, loaded int64, notes []string) string {
	text := fmt.Sprintf("%v %s %s", info.State, info.Window, info.Point)
	if notes != nil {
		text += fmt.Sprintf(" load %d %v", loaded, notes)
	}
	return text
}

func show(t testing.TB, s *Store) shown {
	out := nothing()
	d, err := s.Database("shop")
	if err != nil {
		return out
	}
	out.point = string(d.Point)
	for _, table := range s.Tables(d.ID) {
		if table.Def.Multiset() {
			out.rows[table.Def.Name] = headBag(t, s, table.ID).counts()
			continue
		}
		out.rows[table.Def.Name] = headContents(t, s, table.ID)
		out.beside[table.Def.Name] = showBesides(t, s, table)
	}
	for _, table := range s.Shadows(d.ID) {
		out.rows["shadow "+table.Def.Name] = shadowContents(t, s, table.ID)
		out.beside["shadow "+table.Def.Name] = showBesides(t, s, table)
	}
	return out
}

func showBesides(t testing.TB, s *Store, info TableInfo) string {
	l, notes, err := s.ResumeLoad(info.ID)
	if errors.Is(err, ErrNotFound) {
		return besides(info, 0, nil)
	}
	if errors.Is(err, ErrLoadOpen) { // the scenario's own
		load := s.head.Load().tables[info.ID].load
		rows := int64(0)
		for _, c := range load.checkpoints {
			notes = append(notes, c.Note)
			for _, p := range c.Pieces {
				rows += p.Info.Rows
			}
		}
		return besides(info, rows, notesOf(notes))
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return besides(info, l.Rows(), notesOf(notes))
}

// crasher takes, before operations of the file system that change something, a copy of what a power cut at that moment
// would leave, and checks that a store opened on it is sound and shows the last acknowledged commit or the one in flight.
type crasher struct {
	t       *testing.T
	fs      *faultFS
	mem     *vfs.MemFS
	rng     *rand.Rand
	every   int // one in so many operations
	crashes int
	ops     int

	mu       sync.Mutex
	acked    shown
	inFlight *shown
	checking bool
}

func (c *crasher) hook(op, path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops++
	if c.checking || c.rng.IntN(c.every) > 0 {
		return nil
	}
	c.crashes++
	// Nothing unsynced survives, or some, or all of it (kill -9).
	unsynced := []int{0, 50, 100}[c.rng.IntN(3)]
	clone := c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: c.rng})
	c.check(clone, fmt.Sprintf("crash %d, before %s %s, %d %% of unsynced data kept", c.ops, op, path, unsynced))
	return nil
}

func (c *crasher) check(fs *vfs.MemFS, where string) {
	opt := smallOptions(&faultFS{FS: fs})
	s, err := Open("/data", opt)
	if !assertNoError(c.t, err, where) {
		return
	}
	got := show(c.t, s)
	if !got.equal(c.acked) && (c.inFlight == nil || !got.equal(*c.inFlight)) {
		c.t.Errorf("%s: the store shows %v; acknowledged is %v, in flight %v", where, got, c.acked, c.inFlight)
	}
	report, err := s.Verify(ctx)
	assertNoError(c.t, err, where)
	if !report.OK() {
		c.t.Errorf("%s: %s", where, report.String())
	}
	assertNoError(c.t, s.Maintain(ctx), where)
	report, err = s.Verify(ctx)
	assertNoError(c.t, err, where)
	if !report.OK() || !show(c.t, s).equal(got) {
		c.t.Errorf("%s, after maintenance: %s", where, report.String())
	}
	c.finishLoads(s, where)
	assertNoError(c.t, s.Close(), where)
}

// finishLoads makes what a crash left of bulk loads current.
func (c *crasher) finishLoads(s *Store, where string) {
	d, err := s.Database("shop")
	if err != nil {
		return
	}
	for _, info := range append(s.Tables(d.ID), s.Shadows(d.ID)...) {
		l, _, err := s.ResumeLoad(info.ID)
		if errors.Is(err, ErrNotFound) || !assertNoError(c.t, err, where) {
			continue
		}
		assertNoError(c.t, l.Finish(ctx), where)
		x := s.Begin(d.ID)
		assertNoError(c.t, x.SwapLoad(info.ID, l), where)
		_, err = x.Commit(ctx)
		assertNoError(c.t, err, where)
		after, err := s.TableByID(info.ID)
		assertNoError(c.t, err, where)
		if after.Rows != l.Rows() {
			c.t.Errorf("%s: %d rows of a copy, %d were durable", where, after.Rows, l.Rows())
		}
		report, err := s.Verify(ctx)
		assertNoError(c.t, err, where)
		if !report.OK() {
			c.t.Errorf("%s, after a copy went on: %s", where, report.String())
		}
	}
}

func assertNoError(t *testing.T, err error, where string) bool {
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	return err == nil
}

// step does one thing that changes what the store shows to next.
func (c *crasher) step(next shown, do func() error) {
	c.mu.Lock()
	c.inFlight = &next
	c.mu.Unlock()
	require.NoError(c.t, do())
	c.mu.Lock()
	c.acked, c.inFlight = next, nil
	c.mu.Unlock()
}

// TestCrashAnywhere (EXACT-01, EXACT-02, EXACT-04): load, commits, flush, merge, spilled transactions, DDL, drop, with a
// power cut before each write.
func TestCrashAnywhere(t *testing.T) {
	seed := *flagSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Log("seed", seed)
	mem := vfs.NewCrashableMem()
	c := &crasher{t: t, mem: mem, fs: &faultFS{FS: mem}, rng: rand.New(rand.NewPCG(seed, 2)), every: 12}
	if *flagEveryCrash {
		c.every = 1
	}
	c.acked = nothing()
	c.fs.set(c.hook)
	s := openTest(t, "/data", smallOptions(c.fs))
	sc := &scenario{c: c, s: s, tables: map[string]TableID{}, defs: map[string]*schema.Table{}}
	sc.run()
	c.fs.set(nil)
	require.True(t, show(t, s).equal(c.acked))
	closeTest(t, s)
	t.Logf("%d operations, %d crashes", c.ops, c.crashes)
}
