package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// ReadConfig says what a Reader keeps of transactions; see binlog.LogConfig. A transaction beyond SpillBytes is left in the
// relay's file and read from there again, for which it holds the file open until it is released.
type ReadConfig struct {
	Follow     func(database, table string) bool
	SpillBytes int64
}

// Mark is a place in a relay. Marks of one relay are in the order of its transactions, until it is emptied or cut.
type Mark struct {
	number uint64
	offset int64
}

// Compare is negative when m comes before n, 0 when they are the same.
func (m Mark) Compare(n Mark) int {
	return cmp.Or(cmp.Compare(m.number, n.number), cmp.Compare(m.offset, n.offset))
}

// Reader delivers the transactions of a relay from a point on. Next is for one goroutine.
type Reader struct {
	r     *Relay
	cfg   ReadConfig
	from  gtid.Point
	epoch int
	err   error

	file *file // nil before the first one
	in   *tail
	log  *binlog.Log
	// set is what lies in front of what comes next, by GTIDs.
	set gtid.Set
	// passed tells that a transaction of the first file was left out.
	passed bool
	end    gtid.Position // of the last transaction
	mark   Mark
	sign   uint64 // the last one that was passed on
}

// Read gives a Reader that begins behind a point, which the relay need not have reached yet. It is a *NotSpooledError
// when the relay does not reach back to it. By GTIDs the set counts; by position the position, which must be one between
// two transactions.
func (r *Relay) Read(from gtid.Point, cfg ReadConfig) (*Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rd := &Reader{r: r, cfg: cfg, from: from, epoch: r.epoch, end: from.Position, sign: r.sign.number}
	if r.start == nil {
		return nil, &NotSpooledError{From: from}
	}
	if !r.reachesBack(from) {
		return nil, &NotSpooledError{From: from, Begin: r.start.Point}
	}
	return rd, nil
}

// reachesBack tells whether everything behind p is, or will be, in the relay; mu is held.
func (r *Relay) reachesBack(p gtid.Point) bool {
	if r.start.ByPosition {
		begin := r.start.Point.Position
		return p.Position.SameSeries(begin) && p.Position.Compare(begin) >= 0
	}
	return p.Set.Contains(r.start.Point.Set)
}

// Next waits for the next transaction. When all that is spooled was delivered and the source gives a sign of life, it
// gives Progress instead, up to where the source says it is. The caller releases the transaction.
//
// Errors are *binlog.Error of class Cancelled, after which Next may be called again, Local, UnknownEvent or Incident;
// *DamageError; *GoneError after Reset and Cut; *NotSpooledError when what comes next was pruned. All but Cancelled end the
// reader. An archive ends in io.EOF, and what is wrong in it is a *binlog.Error of class Corrupt.
func (rd *Reader) Next(ctx context.Context) (*binlog.Transaction, error) {
	for rd.err == nil {
		tx, err := rd.read()
		if err == nil {
			rd.end, rd.mark = tx.End, Mark{rd.file.number, rd.log.Offset()}
			return tx, nil
		}
		if err == io.EOF {
			tx, err = rd.more(ctx)
		}
		if tx != nil {
			return tx, nil
		}
		if binlog.ClassOf(err) == binlog.Cancelled {
			return nil, err
		}
		rd.err = rd.damage(err)
	}
	return nil, rd.err
}

// damage says where in the relay something is wrong. An archive is not ours.
func (rd *Reader) damage(err error) error {
	var known *DamageError
	if binlog.ClassOf(err) != binlog.Corrupt || rd.r.archive || rd.file == nil || errors.As(err, &known) {
		return err
	}
	d := &DamageError{Path: filepath.Join(rd.r.cfg.Dir, rd.file.name), Err: err}
	if rd.log != nil {
		d.Offset = rd.log.Offset()
	}
	return d
}

// read gives the next transaction of the file in hand, or io.EOF when it has none yet.
func (rd *Reader) read() (*binlog.Transaction, error) {
	if rd.file == nil {
		return nil, io.EOF
	}
	if rd.log == nil {
		if err := rd.open(); err != nil {
			return nil, err
		}
	}
	tx, err := rd.log.Next()
	if err != nil || !rd.passed {
		return tx, err
	}
	rd.passed = false
	if tx.Start == rd.from.Position {
		return tx, nil
	}
	return nil, only(&binlog.Error{Class: binlog.Corrupt, At: rd.from.Position, Err: errors.New("no transaction begins there")}, tx.Release())
}

// open begins to read the file in hand.
func (rd *Reader) open() error {
	f, err := os.Open(filepath.Join(rd.r.cfg.Dir, rd.file.name))
	if err != nil {
		return local("read", err)
	}
	in := newTail(f)
	rd.grow(in)
	cfg := binlog.LogConfig{Name: rd.file.log, Source: rd.file.source, Follow: rd.cfg.Follow, SpillBytes: rd.cfg.SpillBytes, Again: in.again, Skip: rd.skip}
	if rd.log, err = binlog.NewLog(in, cfg); err != nil {
		return only(err, in.Close())
	}
	rd.in, rd.set = in, rd.file.begin.Set
	return nil
}

// skip leaves out what lies in front of the point that was asked for.
func (rd *Reader) skip(tx *binlog.Transaction) bool {
	if rd.file.log != "" {
		out := tx.Start.Compare(rd.from.Position) < 0
		rd.passed = rd.passed || out
		return out
	}
	rd.set = rd.set.Add(tx.GTID)
	return rd.from.Set.Has(tx.GTID)
}

// grow lets the reader see what became visible.
func (rd *Reader) grow(in *tail) bool {
	rd.r.mu.Lock()
	defer rd.r.mu.Unlock()
	return in.extend(rd.file.size)
}

// more waits until there is more to read. It gives Progress for a sign of life.
func (rd *Reader) more(ctx context.Context) (*binlog.Transaction, error) {
	for {
		next, moved, err := rd.look()
		switch {
		case err != nil:
			return nil, err
		case next != nil:
			return nil, rd.turn(next)
		case moved == nil:
			return nil, nil
		}
		if tx := rd.progress(); tx != nil {
			return tx, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, &binlog.Error{Class: binlog.Cancelled, At: rd.end, Err: context.Cause(ctx)}
		}
	}
}

// look finds what there is behind what was read: more in the file in hand (everything is nil), a next file, or nothing
// until moved is closed.
func (rd *Reader) look() (next *file, moved <-chan struct{}, err error) {
	r := rd.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if rd.epoch != r.epoch {
		return nil, nil, &GoneError{}
	}
	if rd.file == nil {
		if next, err = r.firstFor(rd.from); next != nil || err != nil {
			return next, nil, err
		}
		return nil, r.moved, nil
	}
	if rd.in.extend(rd.file.size) {
		return nil, nil, nil
	}
	for _, f := range r.files {
		if f.number > rd.file.number {
			return f, nil, nil
		}
	}
	if r.archive {
		return nil, nil, rd.archiveEnd()
	}
	return nil, r.moved, nil
}

// archiveEnd is io.EOF, unless the last file is not whole.
func (rd *Reader) archiveEnd() error {
	if rd.log.Inside() {
		return &binlog.Error{Class: binlog.Corrupt, At: rd.log.Position(), Err: fmt.Errorf("%s ends within a transaction", rd.file.name)}
	}
	return io.EOF
}

// firstFor finds the file in which a point lies; nil when it is not there yet. mu is held.
func (r *Relay) firstFor(p gtid.Point) (*file, error) {
	for i := len(r.files) - 1; i >= 0; i-- {
		if reaches(p, r.files[i]) {
			return r.files[i], nil
		}
	}
	if len(r.files) > 0 {
		return nil, &NotSpooledError{From: p, Begin: r.start.Point}
	}
	return nil, nil
}

// turn goes on with another file, which must begin where the one in hand ends.
func (rd *Reader) turn(next *file) error {
	if rd.file != nil {
		if err := rd.check(next); err != nil {
			return err
		}
	}
	rd.closeFile()
	rd.file, rd.passed = next, false
	return nil
}

func (rd *Reader) check(next *file) error {
	bad := error(nil)
	switch {
	case next.number != rd.file.number+1:
		return &NotSpooledError{From: gtid.Point{Set: rd.set, Position: rd.end}, Begin: next.begin}
	case rd.log == nil:
		return nil
	case rd.log.Inside():
		bad = errHalf
	case next.log == "" && !rd.set.Equal(next.begin.Set):
		bad = fmt.Errorf("transactions are missing: it ends at %s, and %s begins at %s", rd.set, next.name, next.begin.Set)
	default:
		return nil
	}
	return &binlog.Error{Class: binlog.Corrupt, At: rd.log.Position(), Err: bad}
}

// progress tells of a sign of life that came since the last one.
func (rd *Reader) progress() *binlog.Transaction {
	rd.r.mu.Lock()
	defer rd.r.mu.Unlock()
	s := rd.r.sign
	if s.number == rd.sign || rd.file == nil && len(rd.r.files) > 0 || rd.file != nil && rd.log == nil {
		return nil
	}
	if rd.file != nil && rd.in.behind(rd.file.size) {
		return nil
	}
	rd.sign = s.number
	if !s.at.SameSeries(rd.end) || s.at.Compare(rd.end) > 0 {
		rd.end = s.at
	}
	return &binlog.Transaction{Kind: binlog.Progress, Start: rd.end, End: rd.end, Source: rd.r.spooled.last.Source, FileCreated: rd.r.spooled.last.FileCreated}
}

// Mark is the place behind the transaction that was delivered last, zero before the first one.
func (rd *Reader) Mark() Mark { return rd.mark }

// AtEnd tells whether everything that is spooled was delivered. It is for the goroutine that calls Next.
func (rd *Reader) AtEnd() bool {
	rd.r.mu.Lock()
	defer rd.r.mu.Unlock()
	n := len(rd.r.files)
	if n == 0 || rd.epoch != rd.r.epoch {
		return true
	}
	return rd.file == rd.r.files[n-1] && rd.log != nil && rd.log.Offset() >= rd.file.size
}

// Close ends the reader; transactions that it delivered stay readable. No Next may be running.
func (rd *Reader) Close() error {
	rd.closeFile()
	if rd.err == nil {
		rd.err = &binlog.Error{Class: binlog.Cancelled, Err: errors.New("the reader was closed")}
	}
	return nil
}

func (rd *Reader) closeFile() {
	if rd.log == nil {
		return
	}
	rd.log.Close()
	_ = rd.in.Close() // only read from
	rd.log, rd.in = nil, nil
}

// tail reads a file up to a limit that grows. The file is open until all who use it have closed it.
type tail struct {
	file  *shared
	off   int64
	limit int64
}

// shared is a file that several close.
type shared struct {
	*os.File
	users atomic.Int32
}

func (s *shared) Close() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	return s.File.Close()
}

func newTail(f *os.File) *tail {
	t := &tail{file: &shared{File: f}}
	t.file.users.Store(1)
	return t
}

// extend is true when there is more to read than before.
func (t *tail) extend(size int64) bool {
	more := size > t.limit
	t.limit = max(t.limit, size)
	return more
}

// behind tells whether something up to size was not read.
func (t *tail) behind(size int64) bool { return t.off < size }

func (t *tail) Read(b []byte) (int, error) {
	if t.off >= t.limit {
		return 0, io.EOF
	}
	n, err := t.file.ReadAt(b[:min(int64(len(b)), t.limit-t.off)], t.off)
	t.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Left is how many bytes there are yet.
func (t *tail) Left() int64 { return t.limit - t.off }

func (t *tail) again() (binlog.Bytes, error) {
	t.file.users.Add(1)
	return t.file, nil
}

func (t *tail) Close() error { return t.file.Close() }
