package mysqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// cacheDir returns a folder below the cache, made if it is not there.
func cacheDir(elem ...string) (string, error) {
	base := os.Getenv(envCache)
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil { // no HOME: a bare CI account
			user = filepath.Join(os.TempDir(), fmt.Sprintf("cache-%d", os.Getuid()))
		}
		base = filepath.Join(user, "tidemark")
	}
	dir := filepath.Join(append([]string{base, "mysql"}, elem...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cache folder (set %s to have another): %w", envCache, err)
	}
	return dir, nil
}

// fileLock is a lock between processes. It goes with the process that holds it.
type fileLock struct{ file *os.File }

// tryLock returns nil without an error when somebody else holds the lock.
func tryLock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &fileLock{f}, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

func lock(ctx context.Context, path string) (*fileLock, error) {
	for {
		l, err := tryLock(path)
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another process's lock %s: %w", path, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l *fileLock) unlock() { _ = l.file.Close() }

// once makes dir by calling fill with an empty folder beside it, which then gets dir's name. Of several processes one
// does it and the others wait. A folder that fill left unfinished is handed to the next fill as it is.
func once(ctx context.Context, dir string, fill func(unfinished string) error) error {
	if exists(dir) {
		return nil
	}
	l, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer l.unlock()
	if exists(dir) {
		return nil
	}
	unfinished := dir + ".unfinished"
	if err := os.MkdirAll(unfinished, 0o700); err != nil {
		return err
	}
	if err := fill(unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runDir is the folder of one running server. A lock in it tells whether the process that made it still lives.
type runDir struct {
	path  string
	owner *fileLock
}

var sweepOnce sync.Once

func newRunDir(ctx context.Context) (*runDir, error) {
	base, err := cacheDir("run")
	if err != nil {
		return nil, err
	}
	// Held while a folder is made, so that a sweep never sees one whose owner has not locked it yet.
	l, err := lock(ctx, base+".lock")
	if err != nil {
		return nil, err
	}
	defer l.unlock()
	sweepOnce.Do(func() { err = sweepRunDirs(base) })
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(base, "")
	if err != nil {
		return nil, err
	}
	owner, err := tryLock(filepath.Join(path, "owner"))
	if err != nil {
		return nil, err
	}
	return &runDir{path: path, owner: owner}, nil
}

// sweepRunDirs deletes the folders of servers whose test process died before it could.
func sweepRunDirs(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(base, entry.Name())
		l, err := tryLock(filepath.Join(path, "owner"))
		if l == nil || err != nil {
			continue
		}
		err = os.RemoveAll(path)
		l.unlock()
		if err != nil {
			return fmt.Errorf("left from an earlier run: %w", err)
		}
	}
	return nil
}

func (d *runDir) remove() error {
	defer d.owner.unlock()
	return os.RemoveAll(d.path)
}
