package relay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/gtid"
)

// syncEvery is how often what was written becomes durable: what a power cut may take.
const syncEvery = time.Second

// Pull connects to the source at the relay's end and appends what it sends until an error comes or ctx ends; connected, if
// not nil, is called when the stream has begun. Errors are *binlog.Error, of class Local where the disk is at fault; what
// was whole until then is kept. Of cfg, Start and AutoPosition are set here. Whether the source still has the history that
// the relay ends in is to be asked first (binlog.VerifyLast).
//
// When the files have MaxBytes, Pull pauses between two transactions until Prune makes room, or until everything spooled
// has been applied and all holds have moved to the end: so a transaction larger than MaxBytes passes, and, by position, a
// file of the source larger than MaxBytes. The connection stays open meanwhile. When Config.Room refuses, Pull ends with an
// error of class Local.
func (r *Relay) Pull(ctx context.Context, cfg binlog.Config, connected func()) error {
	r.pull.Lock()
	defer r.pull.Unlock()
	if _, ok := r.Begin(); !ok || r.archive {
		return &binlog.Error{Class: binlog.Misconfigured, Err: errors.New("the relay has no start")}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg.AutoPosition, cfg.Start = !r.kind(), r.askFor()
	dump, err := binlog.OpenDump(ctx, cfg)
	if err != nil {
		return err
	}
	defer dump.Close()
	w, err := r.newWriter(dump.Source())
	if err != nil {
		return err
	}
	if connected != nil {
		connected()
	}
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		r.syncLoop(ctx, cancel)
	}()
	err = w.run(ctx, dump)
	cancel(err)
	<-synced
	var disk *syncError
	if errors.As(context.Cause(ctx), &disk) {
		err = disk.err
	}
	r.mu.Lock()
	r.full = false
	r.mu.Unlock()
	return only(err, w.close(), r.syncFiles())
}

// only joins errors, and leaves a lone one as it is.
func only(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// askFor is where the source is asked to begin. A set says all; its position may be one of another server.
func (r *Relay) askFor() gtid.Point {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start.ByPosition {
		at := r.spooled.point.Position
		if at.Offset > 1<<32-1 { // which can't be asked for; what is here already is passed over
			at.Offset = logStart
		}
		return gtid.Point{Position: at}
	}
	return gtid.Point{Set: r.spooled.point.Set}
}

func (w *writer) run(ctx context.Context, dump *binlog.Dump) error {
	for {
		if !w.inside {
			if err := w.r.waitForRoom(ctx, w); err != nil {
				return err
			}
			if err := w.checkDisk(); err != nil {
				return only(err, w.flush())
			}
		}
		raw, step, err := dump.Next(ctx)
		if err == nil {
			err = w.take(raw, step)
		}
		if err != nil {
			return only(err, w.flush())
		}
		if !dump.More() {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
}

// askEvery is how much is written between two looks at the disk.
const askEvery = 4 << 20

// checkDisk looks whether the disk has room to spare, which others need to apply what is spooled.
func (w *writer) checkDisk() error {
	if w.r.cfg.Room == nil || w.asked > 0 && w.off >= w.asked && w.off < w.asked+askEvery {
		return nil
	}
	if err := w.r.cfg.Room(); err != nil {
		return local("leave room on the disk", err)
	}
	w.asked = max(w.off, 1)
	return nil
}

// waitForRoom waits while the relay is full.
func (r *Relay) waitForRoom(ctx context.Context, w *writer) error {
	for {
		r.mu.Lock()
		unseen := int64(0)
		if w.file != nil {
			unseen = w.size - w.file.size
		}
		full := r.bytes+unseen >= r.cfg.MaxBytes
		r.full = r.full && full
		r.mu.Unlock()
		if !full {
			return nil
		}
		if err := w.flush(); err != nil {
			return err
		}
		room := r.pause()
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return &binlog.Error{Class: binlog.Cancelled, Err: context.Cause(ctx)}
		}
	}
}

// pause says whether pulling has to pause: the channel is closed when that is to be asked again, nil when it need not.
func (r *Relay) pause() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = r.bytes >= r.cfg.MaxBytes && !r.consumed()
	if !r.full {
		return nil
	}
	return r.room
}

// consumed tells whether nobody has anything left to read; mu is held.
func (r *Relay) consumed() bool {
	if r.main == nil || !r.isBehind(r.main.at) {
		return false
	}
	for h := range r.holds {
		if !r.isBehind(h.at) {
			return false
		}
	}
	return true
}

// isBehind tells whether p has everything that is spooled; mu is held.
func (r *Relay) isBehind(p gtid.Point) bool {
	if r.start.ByPosition {
		return p.Position.Compare(r.spooled.behind) >= 0
	}
	return p.Set.Contains(r.spooled.point.Set)
}

// syncError is why a Pull was ended.
type syncError struct{ err error }

func (e *syncError) Error() string { return e.err.Error() }

// syncLoop makes what is written durable, now and then. After an error of the disk nothing may be added: what it has taken
// is not known.
func (r *Relay) syncLoop(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.syncFiles(); err != nil {
			cancel(&syncError{err})
			return
		}
	}
}

// syncFiles makes everything that is visible durable.
func (r *Relay) syncFiles() error {
	r.sync.Lock()
	defer r.sync.Unlock()
	sizes, fresh := r.unsynced()
	if len(fresh) == 0 || r.unsure {
		return nil
	}
	for _, name := range fresh {
		if err := syncFile(filepath.Join(r.cfg.Dir, name)); err != nil {
			r.unsure = true // another sync may succeed and prove nothing; the next Open looks at the bytes
			return err
		}
	}
	if len(sizes) != len(r.index) || sizes[len(sizes)-1].number != r.index[len(r.index)-1].number {
		if err := syncDir(r.cfg.Dir); err != nil {
			return err
		}
	}
	r.index = sizes
	return r.index.write(r.cfg.Dir, false)
}

// unsynced gives the sizes of all files, and the names of those that grew since they were durable.
func (r *Relay) unsynced() (sizes index, fresh []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.files {
		sizes = append(sizes, entry{f.number, uint64(f.size)})
		if r.index.durable(f.number) < f.size {
			fresh = append(fresh, f.name)
		}
	}
	return sizes, fresh
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // pruned meanwhile
	}
	if err != nil {
		return local("sync", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return local("sync", err)
	}
	return nil
}
