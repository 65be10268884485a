package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// witness is a file outside the metadata store that has the number of the newest acknowledged commit. Pebble takes a
// damaged record of its newest log for the torn end that a power cut leaves and drops what follows; only a witness can
// tell that acknowledged commits went with it. It is written after each commit without a sync: it may be behind after a
// power cut, but never ahead, unless the log was damaged.
type witness struct {
	path string
	file vfs.File
}

const (
	witnessName  = "ACKED"
	witnessMagic = "TMAK"
	witnessSlot  = 16 // magic, commit as 8 bytes big-endian, CRC-32C; two slots, written in turn
)

func witnessEntry(seq CommitSeq) []byte {
	b := binary.BigEndian.AppendUint64([]byte(witnessMagic), uint64(seq))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeWitness gives the newer commit of the two slots; 0 when there is none that is whole.
func decodeWitness(b []byte) CommitSeq {
	var newest CommitSeq
	for ; len(b) >= witnessSlot; b = b[witnessSlot:] {
		seq := CommitSeq(binary.BigEndian.Uint64(b[len(witnessMagic):]))
		if string(b[:witnessSlot]) == string(witnessEntry(seq)) {
			newest = max(newest, seq)
		}
	}
	return newest
}

// openWitness reads the witness, which may be missing, and opens it for writing.
func openWitness(fsys vfs.FS, dir string, head CommitSeq) (*witness, error) {
	w := &witness{path: fsys.PathJoin(dir, witnessName)}
	if _, err := fsys.Stat(w.path); isNotExist(err) {
		if err := replaceFile(fsys, dir, witnessName, make([]byte, 2*witnessSlot)); err != nil {
			return nil, fmt.Errorf("creating %s: %w", w.path, err)
		}
	}
	f, err := fsys.OpenReadWrite(w.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", w.path, diskError(err))
	}
	w.file = f
	content, err := io.ReadAll(io.NewSectionReader(f, 0, 2*witnessSlot))
	if err != nil {
		return nil, firstError(fmt.Errorf("reading %s: %w", w.path, err), f.Close())
	}
	if acked := decodeWitness(content); acked > head {
		return nil, firstError(damaged(fsys.PathJoin(dir, metaName), fmt.Sprintf(
			"commits %d to %d were acknowledged and are gone, so its log must have been cut; the store is whole at commit %d: to go on from there, "+
				"if the source still has its binary log from that position on, remove %s", head+1, acked, head, w.path)), f.Close())
	}
	return w, nil
}

// note writes the number of an acknowledged commit.
func (w *witness) note(seq CommitSeq) error {
	_, err := w.file.WriteAt(witnessEntry(seq), int64(seq%2)*witnessSlot)
	return err
}

func (w *witness) close() error { return firstError(w.file.Sync(), w.file.Close()) }
