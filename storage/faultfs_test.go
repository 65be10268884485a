package storage

import (
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// faultFS calls hook before each operation that changes the file system; an error from it becomes the operation's. It
// copies what is written, because MemFS scrambles the buffer under the race detector, and the Parquet library keeps its
// buffers.
type faultFS struct {
	vfs.FS
	mu   sync.Mutex
	hook func(op, path string) error
	free uint64 // free disk space, when not 0
}

func (f *faultFS) set(hook func(op, path string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

func (f *faultFS) before(op, path string) error {
	f.mu.Lock()
	hook := f.hook
	f.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(op, path)
}

func (f *faultFS) file(file vfs.File, path string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: f, path: path}, nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.before("create", name); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name, c)
	return f.file(file, name, err)
}

func (f *faultFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.before("reuse", name); err != nil {
		return nil, err
	}
	file, err := f.FS.ReuseForWrite(old, name, c)
	return f.file(file, name, err)
}

func (f *faultFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, opts...)
	return f.file(file, name, err)
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	return f.file(file, name, err)
}

func (f *faultFS) Link(old, name string) error {
	if err := f.before("link", name); err != nil {
		return err
	}
	return f.FS.Link(old, name)
}

func (f *faultFS) Remove(name string) error {
	if err := f.before("remove", name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *faultFS) Rename(old, name string) error {
	if err := f.before("rename", name); err != nil {
		return err
	}
	return f.FS.Rename(old, name)
}

func (f *faultFS) MkdirAll(dir string, perm os.FileMode) error {
	if err := f.before("mkdir", dir); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir, perm)
}

func (f *faultFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.free > 0 {
		return vfs.DiskUsage{AvailBytes: f.free}, nil
	}
	return f.FS.GetDiskUsage(path)
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

type faultFile struct {
	vfs.File
	fs   *faultFS
	path string
}

func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.fs.before("write", f.path); err != nil {
		return 0, err
	}
	return f.File.Write(append([]byte(nil), p...))
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.before("write", f.path); err != nil {
		return 0, err
	}
	return f.File.WriteAt(append([]byte(nil), p...), off)
}

func (f *faultFile) Sync() error {
	if err := f.fs.before("sync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error {
	if err := f.fs.before("sync", f.path); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *faultFile) SyncTo(n int64) (bool, error) {
	if err := f.fs.before("sync", f.path); err != nil {
		return false, err
	}
	return f.File.SyncTo(n)
}
