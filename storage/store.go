package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Store is an open data directory. Its methods may be called from several goroutines.
//
// Locks, in the order in which they may be taken together: the transaction lock of a database, a table's lock, commitMu,
// pinMu.
type Store struct {
	dir  string
	fs   vfs.FS
	opt  Options
	meta *meta
	lock io.Closer

	// head is the newest commit. Only the holder of commitMu stores it.
	head     atomic.Pointer[state]
	commitMu sync.Mutex
	closed   atomic.Bool
	// writers counts transactions, loads and relocations that may have files no commit names yet.
	writers atomic.Int64

	pinMu sync.Mutex
	pins  map[CommitSeq]int

	idMu         sync.Mutex
	lastID       uint64
	reservedID   uint64
	dirMu        sync.Mutex
	madeDirs     map[string]bool  // directories of parts whose names are durable
	dropped      map[TableID]bool // tables that may still have directories
	lockMu       sync.Mutex
	tableLocks   map[TableID]tableLock
	databaseLock map[DatabaseID]*sync.Mutex
	openLoads    map[Generation]bool

	events  eventLog
	witness *witness
	work    *maintenance
}

// Open opens the data directory, which is created when it is missing, brings the store back to its last commit, and
// removes what no commit refers to. It fails with ErrInUse, ErrNewerFormat or a DamageError; nothing is changed then.
func Open(dir string, opt Options) (*Store, error) {
	opt.setDefaults()
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if err := makeRoot(opt.FS, dir); err != nil {
		return nil, fmt.Errorf("creating data directory %s: %w", dir, err)
	}
	lock, err := lockDir(opt.FS, dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, fs: opt.FS, opt: opt, lock: lock, pins: map[CommitSeq]int{}, madeDirs: map[string]bool{},
		tableLocks: map[TableID]tableLock{}, databaseLock: map[DatabaseID]*sync.Mutex{}, openLoads: map[Generation]bool{}, dropped: map[TableID]bool{},
	}
	if err := s.open(); err != nil {
		if s.meta != nil {
			err = errors.Join(err, s.meta.close())
		}
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	if err := startFormat(s.fs, s.dir); err != nil {
		return err
	}
	for name, perm := range map[string]fs.FileMode{metaName: privateDir, partsName: openDir, loadName: privateDir} {
		if _, err := makeDirs(s.fs, perm, s.dir, name); err != nil {
			return fmt.Errorf("creating data directory %s: %w", s.dir, err)
		}
	}
	var err error
	if s.meta, err = openMeta(s.path(metaName), &s.opt); err != nil {
		return err
	}
	if err := endFormat(s.fs, s.dir); err != nil {
		return fmt.Errorf("creating data directory %s: %w", s.dir, diskError(err))
	}
	if err := s.recover(); err != nil {
		return fmt.Errorf("data directory %s: %w", s.dir, err)
	}
	if s.witness, err = openWitness(s.fs, s.dir, s.head.Load().seq); err != nil {
		return err
	}
	s.work = newMaintenance(s)
	if !s.opt.NoMaintenance {
		s.work.start()
	}
	return nil
}

// Close stops background work and closes the store. Versions must have been released and transactions ended.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.work.stop()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := s.Failed(); err != nil {
		return err // goroutines of the metadata store may still be there: only a new process may open the directory
	}
	return errors.Join(s.meta.close(), s.witness.close(), s.lock.Close())
}

// Failed gives the error that stopped the store (see FailedError), nil while it works.
func (s *Store) Failed() error { return s.meta.watch.failed() }

// Dir is the data directory.
func (s *Store) Dir() string { return s.dir }

// idBlock is the number of identities reserved by one durable write.
const idBlock = 1 << 16

// nextID gives a number that no identity had before, whatever crashes.
func (s *Store) nextID() (uint64, error) { return s.nextIDs(1) }

// nextIDs gives the first of n such numbers in a row.
func (s *Store) nextIDs(n int) (uint64, error) {
	s.idMu.Lock()
	defer s.idMu.Unlock()
	last := s.lastID + uint64(n)
	if last > s.reservedID {
		reserve := last + idBlock - 1
		b := s.meta.NewBatch()
		key := makeKey(kindIDs)
		value, err := frameJSON(key, idsRecord{Reserved: reserve})
		if err != nil {
			return 0, err
		}
		if err := firstError(b.Set(key, value, nil), s.meta.commit(b, true)); err != nil {
			return 0, fmt.Errorf("reserving identities: %w", err)
		}
		s.reservedID = reserve
	}
	first := s.lastID + 1
	s.lastID = last
	return first, nil
}

func (s *Store) tableLock(id TableID) tableLock {
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	l := s.tableLocks[id]
	if l == nil {
		l = make(tableLock, 1)
		s.tableLocks[id] = l
	}
	return l
}

func (s *Store) transactionLock(id DatabaseID) *sync.Mutex {
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	l := s.databaseLock[id]
	if l == nil {
		l = new(sync.Mutex)
		s.databaseLock[id] = l
	}
	return l
}

// CheckSpace is ErrDiskFull when the disk has less than the reserve and so many bytes more: for what else is written beside
// the store, which must leave it room.
func (s *Store) CheckSpace(more int64) error { return s.checkReserve(s.opt.ReserveBytes + more) }

// checkSpace refuses to write when the disk is nearly full.
func (s *Store) checkSpace() error { return s.checkReserve(s.opt.ReserveBytes) }

func (s *Store) checkReserve(reserve int64) error {
	usage, err := s.fs.GetDiskUsage(s.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking for the free space of %s: %w", s.dir, err)
	}
	if usage.AvailBytes < uint64(reserve) {
		return fmt.Errorf("%w: %s has %d MiB left, %d MiB are kept in reserve; free some space, then work goes on by itself",
			ErrDiskFull, s.dir, usage.AvailBytes>>20, reserve>>20)
	}
	return nil
}

// commitment is one commit in the making: the next state, the batch that makes it durable, and the rows that die by it.
type commitment struct {
	s      *Store
	ed     *editor
	batch  *pebble.Batch
	deaths []death
}

type death struct {
	home *home
	rows []uint32
}

// commit makes what fill puts into the commitment durable and visible, all or nothing. fill runs under commitMu and must
// not block.
func (s *Store) commit(ctx context.Context, fill func(*commitment) error) (CommitSeq, error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := s.writable(ctx); err != nil {
		return 0, err
	}
	c := &commitment{s: s, ed: edit(s.head.Load()), batch: s.meta.NewBatch()}
	seq := c.ed.next.seq
	key := makeKey(kindHead)
	if err := firstError(fill(c), c.putJSON(key, headRecord{Seq: seq})); err != nil {
		return 0, errors.Join(err, c.batch.Close())
	}
	if err := s.meta.commit(c.batch, true); err != nil {
		return 0, fmt.Errorf("commit %d: %w", seq, err)
	}
	if err := s.witness.note(seq); err != nil {
		// The commit stands; only the damage that the witness is for might go unseen.
		s.opt.Logger.Warn("storage: the number of the newest commit could not be written beside it", "path", s.witness.path, "error", err)
	}
	floor := s.oldestPin()
	for _, d := range c.deaths {
		d.home.dead.add(seq, d.rows, floor)
	}
	s.head.Store(&c.ed.next)
	s.noteDropped(c.ed)
	s.work.touched(&c.ed.next, slices.Collect(maps.Keys(c.ed.tables)))
	return seq, nil
}

// writable tells why nothing can be committed now.
func (s *Store) writable(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Failed(); err != nil {
		return err
	}
	return s.checkSpace()
}

// exclusive writes index entries that change nothing a reader sees, unsynced: a later synced commit makes them durable
// first. No commit happens meanwhile, so that fill may rely on the head.
func (s *Store) exclusive(ctx context.Context, fill func(*state, *pebble.Batch) error) error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := firstError(ctx.Err(), s.Failed()); err != nil {
		return err
	}
	b := s.meta.NewBatch()
	if err := fill(s.head.Load(), b); err != nil {
		return errors.Join(err, b.Close())
	}
	return s.meta.commit(b, false)
}

// pinHead gives the newest state and keeps it until unpin.
func (s *Store) pinHead() *state {
	s.pinMu.Lock()
	defer s.pinMu.Unlock()
	st := s.head.Load()
	s.pins[st.seq]++
	return st
}

func (s *Store) unpin(seq CommitSeq) {
	s.pinMu.Lock()
	defer s.pinMu.Unlock()
	s.pins[seq]--
	checkHeld("a commit", s.pins[seq])
	if s.pins[seq] == 0 {
		delete(s.pins, seq)
	}
}

// oldestPin gives the oldest commit that someone reads or may yet pin.
func (s *Store) oldestPin() CommitSeq {
	s.pinMu.Lock()
	defer s.pinMu.Unlock()
	oldest := CommitSeq(math.MaxUint64)
	if st := s.head.Load(); st != nil {
		oldest = st.seq
	}
	for seq := range s.pins {
		oldest = min(oldest, seq)
	}
	return oldest
}
