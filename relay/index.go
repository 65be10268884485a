package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// indexName is the file that says how much of each file is on disk for good, by which a torn tail is told from damage. Its
// form is in docs/format/relay.md.
const indexName = "synced"

const (
	indexMagic   = "TMRELAY\x00"
	indexVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry says that the first size bytes of a file are durable.
type entry struct{ number, size uint64 }

// index is in the order of the files. It may be behind what is durable, never ahead.
type index []entry

// readIndex gives nothing for an index that is not there or not whole: it is overwritten in place, and a power cut may
// tear it.
func readIndex(dir string) (index, error) {
	b, err := os.ReadFile(filepath.Join(dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	x, _ := decodeIndex(b)
	return x, nil
}

func decodeIndex(b []byte) (index, bool) {
	const head = len(indexMagic) + 1 + 4
	if len(b) < head+4 || string(b[:len(indexMagic)]) != indexMagic || b[len(indexMagic)] != indexVersion {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint32(b[len(indexMagic)+1:]))
	if n > (len(b)-head-4)/16 {
		return nil, false
	}
	end := head + 16*n
	if binary.LittleEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return nil, false
	}
	x := make(index, n)
	for i := range x {
		x[i] = entry{binary.LittleEndian.Uint64(b[head+16*i:]), binary.LittleEndian.Uint64(b[head+16*i+8:])}
	}
	return x, true
}

func (x index) encode() []byte {
	b := append([]byte(indexMagic), indexVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x)))
	for _, e := range x {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, e.number), e.size)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// write replaces the index in place. Without sync it becomes durable some time later, which does no harm while files
// only grow.
func (x index) write(dir string, sync bool) error {
	f, err := os.OpenFile(filepath.Join(dir, indexName), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return local("the list of what is durable", err)
	}
	_, err = f.WriteAt(x.encode(), 0)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return local("the list of what is durable", err)
	}
	return nil
}

// durable gives the durable size of a file, 0 if nothing is known.
func (x index) durable(number uint64) int64 {
	for _, e := range x {
		if e.number == number {
			return int64(e.size)
		}
	}
	return 0
}

// cut forgets what lies behind the first size bytes of a file.
func (x *index) cut(number uint64, size uint64) {
	*x = slices.DeleteFunc(*x, func(e entry) bool { return e.number > number || e.number == number && size == 0 })
	for i := range *x {
		if (*x)[i].number == number {
			(*x)[i].size = min((*x)[i].size, size)
		}
	}
}

// syncDir makes names durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return local("sync the folder", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return local("sync the folder", err)
	}
	return nil
}
