package storage

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The names in the data directory.
const (
	lockName     = "LOCK"
	formatName   = "FORMAT"
	creatingName = "CREATING"
	metaName     = "meta"
	partsName    = "parts"
	loadName     = "load" // sorted index files until they are ingested
)

// Parts are for other engines to read as well; the metadata have the sources' credentials.
const (
	openDir    fs.FileMode = 0o755
	privateDir fs.FileMode = 0o700
)

const (
	formatMagic   = "tidemark store format "
	formatVersion = 2
)

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// diskError marks errors that come from a full disk.
func diskError(err error) error {
	if err != nil && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) && !errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return err
}

// replaceFile is the one way in which a file that others rely on gets new content: temporary file, sync, rename, sync of
// the directory.
func replaceFile(fsys vfs.FS, dir, name string, content []byte) error {
	temporary, final := fsys.PathJoin(dir, name+".tmp"), fsys.PathJoin(dir, name)
	f, err := fsys.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return diskError(err)
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err = firstError(err, f.Close()); err == nil {
		err = fsys.Rename(temporary, final)
	}
	if err == nil {
		err = syncDir(fsys, dir)
	}
	return diskError(err)
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return firstError(err, d.Close())
}

// makeDirs creates a directory below root and syncs every directory on the way, so that it is there after a crash. One that
// is there already may have been made just before a kill, so its name is synced as well.
func makeDirs(fsys vfs.FS, perm fs.FileMode, root string, below ...string) (string, error) {
	dir := root
	for _, name := range below {
		parent := dir
		dir = fsys.PathJoin(dir, name)
		if err := fsys.MkdirAll(dir, perm); err != nil {
			return "", diskError(err)
		}
		if err := syncDir(fsys, parent); err != nil {
			return "", diskError(err)
		}
	}
	return dir, nil
}

// makeRoot creates the data directory. The names of a new one and of new directories above it are synced, so that a crash
// can't take the whole store away.
func makeRoot(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(fsys.PathJoin(dir, metaName)); err == nil {
		return nil
	}
	parents := []string{fsys.PathDir(dir)}
	for top := parents[0]; ; {
		above := fsys.PathDir(top)
		if _, err := fsys.Stat(top); err == nil || above == top {
			break
		}
		parents = append(parents, above)
		top = above
	}
	if err := fsys.MkdirAll(dir, openDir); err != nil {
		return diskError(err)
	}
	for _, parent := range parents {
		if err := syncDir(fsys, parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return diskError(err)
		}
	}
	return nil
}

// startFormat checks the format of an existing directory. In a new one it begins the creation, which a crash may cut off
// anywhere: until endFormat there is a file that says so, and what is there then is thrown away.
func startFormat(fsys vfs.FS, dir string) error {
	path := fsys.PathJoin(dir, formatName)
	if _, err := readFormat(fsys, dir); err == nil || !isNotExist(err) {
		return err
	}
	_, begun := fsys.Stat(fsys.PathJoin(dir, creatingName))
	_, store := fsys.Stat(fsys.PathJoin(dir, metaName))
	switch {
	case begun == nil:
		if err := fsys.RemoveAll(fsys.PathJoin(dir, metaName)); err != nil {
			return err
		}
		return syncDir(fsys, dir)
	case store == nil:
		return damaged(path, "it is missing, but the directory holds a store")
	}
	return replaceFile(fsys, dir, creatingName, []byte("a store is being created here\n"))
}

// readFormat gives the format of a directory that this version can read.
func readFormat(fsys vfs.FS, dir string) (version int, err error) {
	path := fsys.PathJoin(dir, formatName)
	f, err := fsys.Open(path)
	if err != nil {
		return 0, err
	}
	content, err := io.ReadAll(f)
	if err := firstError(err, f.Close()); err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(string(content), formatMagic+"%d\n", &version); err != nil || version < 1 {
		return 0, damaged(path, "it is not a tidemark format file")
	}
	if version > formatVersion {
		return 0, fmt.Errorf("%w: %s has format %d, this version reads %d; use the newer version", ErrNewerFormat, dir, version, formatVersion)
	}
	return version, nil
}

// endFormat ends the creation of a store. A directory of an earlier format, all of which can be read, gets the present
// one before anything is written that earlier versions would misread.
func endFormat(fsys vfs.FS, dir string) error {
	creating := fsys.PathJoin(dir, creatingName)
	_, begun := fsys.Stat(creating)
	if isNotExist(begun) {
		if version, err := readFormat(fsys, dir); err != nil || version == formatVersion {
			return err
		}
	}
	err := replaceFile(fsys, dir, formatName, fmt.Appendf(nil, "%s%d\n", formatMagic, formatVersion))
	if err == nil && begun == nil {
		err = firstError(fsys.Remove(creating), syncDir(fsys, dir))
	}
	return err
}

// lockDir takes the directory for this process.
func lockDir(fsys vfs.FS, dir string) (io.Closer, error) {
	l, err := fsys.Lock(fsys.PathJoin(dir, lockName))
	if err == nil {
		return l, nil
	}
	if errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "lock held by current process") {
		return nil, fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	return nil, fmt.Errorf("locking data directory %s: %w", dir, err)
}

// safeName makes a database or table name part of a path: what a query engine or a shell could take for more than a
// letter becomes an underscore. The identity in front keeps names apart.
func safeName(id uint64, name string) string {
	const most = 40
	out := []byte(fmt.Sprintf("%d-", id))
	for _, r := range name {
		switch {
		case len(out) > most:
			return string(out)
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			out = append(out, byte(r))
		default:
			out = append(out, '_')
		}
	}
	return string(out)
}

// newPartPath gives a path, relative to the data directory, for a new part of a table; its directory is there then.
func (s *Store) newPartPath(db DatabaseID, dbName string, table TableID, tableName string, id PartID) (string, error) {
	var salt [4]byte
	_, _ = rand.Read(salt[:]) // never fails
	dbDir, tableDir := safeName(uint64(db), dbName), safeName(uint64(table), tableName)
	s.dirMu.Lock()
	defer s.dirMu.Unlock()
	dir := s.fs.PathJoin(partsName, dbDir, tableDir)
	if !s.madeDirs[dir] {
		if _, err := makeDirs(s.fs, openDir, s.dir, partsName, dbDir, tableDir); err != nil {
			return "", fmt.Errorf("creating the directory of table %s.%s: %w", dbName, tableName, err)
		}
		s.madeDirs[dir] = true
	}
	return s.fs.PathJoin(dir, fmt.Sprintf("%d-%s.parquet", id, hex.EncodeToString(salt[:]))), nil
}

// path gives the full path of a file of the store.
func (s *Store) path(relative string) string { return s.fs.PathJoin(s.dir, relative) }

// removeFile removes a file that may be gone already. After a failed write nothing is removed: it is not known which
// commit is durable, and so which files it names. The next open knows.
func (s *Store) removeFile(path string) error {
	if s.Failed() != nil {
		return nil //nolint:nilerr // the next open removes it
	}
	if err := s.fs.Remove(path); err != nil && !isNotExist(err) {
		return err
	}
	return nil
}
