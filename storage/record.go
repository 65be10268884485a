package storage

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/tidemarkdb/tidemark/storage/part"
)

// The kinds of metadata keys; the first byte of each key. docs/format/meta.md has them to the byte.
const (
	kindHead      = 'h'
	kindIDs       = 'i'
	kindDatabase  = 'd'
	kindPoint     = 'o'
	kindTable     = 't'
	kindIndex     = 'x'
	kindPart      = 'p'
	kindSegment   = 's'
	kindDeadBase  = 'b'
	kindDeadDelta = 'c'
	kindGarbage   = 'g'
	kindXA        = 'a'
	kindEvent     = 'e'
	kindBase      = 'k'
	kindLayer     = 'l'
	kindLoad      = 'u'
)

// recordVersion is the version of the record frame and of all payloads.
const recordVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame gives the durable form of a record: kind, version, payload, and a CRC-32C over key and all of that, so that
// neither a flipped bit nor a value under the wrong key goes unseen.
func frame(key, payload []byte) []byte {
	v := make([]byte, 0, len(payload)+6)
	v = append(v, key[0], recordVersion)
	v = append(v, payload...)
	return binary.LittleEndian.AppendUint32(v, recordSum(key, v))
}

func recordSum(key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body)
}

// unframe gives the payload, which points into value.
func unframe(key, value []byte) ([]byte, error) {
	what := fmt.Sprintf("metadata record %q", key)
	if len(value) < 6 || len(key) == 0 {
		return nil, damaged(what, "it is too short")
	}
	body := value[:len(value)-4]
	if recordSum(key, body) != binary.LittleEndian.Uint32(value[len(body):]) {
		return nil, damaged(what, "its checksum does not match")
	}
	if body[0] != key[0] {
		return nil, damaged(what, "it has another kind")
	}
	if body[1] != recordVersion {
		return nil, fmt.Errorf("%w: metadata record %q has version %d", ErrNewerFormat, key, body[1])
	}
	return body[2:], nil
}

func frameJSON(key []byte, v any) ([]byte, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("metadata record %q: %w", key, err)
	}
	return frame(key, payload), nil
}

func unframeJSON(key, value []byte, v any) error {
	payload, err := unframe(key, value)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return damaged(fmt.Sprintf("metadata record %q", key), err.Error())
	}
	return nil
}

// makeKey gives kind, then each number as 8 bytes big-endian.
func makeKey(kind byte, numbers ...uint64) []byte {
	key := make([]byte, 1, 1+8*len(numbers))
	key[0] = kind
	for _, n := range numbers {
		key = binary.BigEndian.AppendUint64(key, n)
	}
	return key
}

// keyNumbers reads the numbers that follow the kind in a key made by makeKey.
func keyNumbers(key []byte, want int) ([]uint64, error) {
	if len(key) != 1+8*want {
		return nil, damaged(fmt.Sprintf("metadata key %q", key), "it has a wrong length")
	}
	numbers := make([]uint64, want)
	for i := range numbers {
		numbers[i] = binary.BigEndian.Uint64(key[1+8*i:])
	}
	return numbers, nil
}

// prefixEnd gives the smallest key greater than all keys with the prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// The records of the catalog.
type (
	headRecord struct {
		Seq CommitSeq
	}
	idsRecord struct {
		Reserved uint64 // identities up to and including this one may have been used
	}
	databaseRecord struct {
		Name   string
		Stream StreamID
		Config []byte `json:",omitempty"`
	}
	indexRecord struct {
		// KeyEncoding is the version of the key bytes of the generation.
		KeyEncoding int
		// Layers lie over the base entries, oldest first.
		Layers []LayerID `json:",omitempty"`
		// Remaps resolve locators of retired homes.
		Remaps []remap `json:",omitempty"`
	}
	// remap says that rows of the home Old moved to the home New; the layer has the locators by key.
	remap struct {
		Old, New HomeID
		Layer    LayerID
	}
	// checkpointRecord is what one checkpoint adds to a durable load.
	checkpointRecord struct {
		KeyEncoding int
		Note        []byte        `json:",omitempty"`
		Pieces      []pieceRecord `json:",omitempty"`
	}
	// pieceRecord is a part of a load with its index entries in a sorted file, both relative to the data directory.
	pieceRecord struct {
		Part       HomeID
		Path       string
		Info       part.Info
		Index      uint64 // identity of the index file
		IndexPath  string
		IndexBytes int64
	}
	garbageRecord struct {
		Path    string
		Seq     CommitSeq // the first commit that does not refer to the file
		Removed int64     // when, in Unix seconds
	}
)
