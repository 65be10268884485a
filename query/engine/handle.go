package engine

/*
#include <stdlib.h>
#include "scan.h"
*/
import "C"

import (
	"errors"
	"math/bits"
	"runtime"
	"unsafe"
)

const (
	aliveFunction    = "tidemark_alive"
	segmentsFunction = "tidemark_segments"
)

var errMemory = errors.New("out of memory")

// handle is an entry of the C registry, with the Go memory that C may read through it.
type handle struct {
	engine *Engine
	id     uint64
	pins   runtime.Pinner
}

// aliveHandle registers the bitsets of the parts of one read_parquet call, in the order of its files.
func (s *Scan) aliveHandle(parts []*Part) (*handle, error) {
	h := &handle{engine: s.engine}
	bitsets := newBitsets(len(parts))
	if bitsets == nil {
		return nil, errMemory
	}
	for i, p := range parts {
		unsafe.Slice(bitsets, len(parts))[i] = bitset(&h.pins, p.Dead, p.Rows)
	}
	return h, s.register(h, bitsets, len(parts))
}

func newBitsets(n int) *C.tm_bitset {
	return (*C.tm_bitset)(C.calloc(C.size_t(n+1), C.size_t(unsafe.Sizeof(C.tm_bitset{}))))
}

func (s *Scan) register(h *handle, bitsets *C.tm_bitset, n int) error {
	h.id = uint64(C.tm_register(s.engine.registry, bitsets, C.uint64_t(n)))
	if h.id == 0 {
		h.pins.Unpin()
		C.free(unsafe.Pointer(bitsets))
		return errMemory
	}
	s.handles = append(s.handles, h)
	return nil
}

func (h *handle) release() {
	h.engine.dropSegments(h.id)
	C.tm_release(h.engine.registry, C.uint64_t(h.id))
	h.pins.Unpin()
}

func bitset(pins *runtime.Pinner, words []uint64, rows int64) C.tm_bitset {
	b := C.tm_bitset{nwords: C.uint64_t(len(words)), rows: C.uint64_t(rows)}
	if len(words) > 0 {
		pins.Pin(&words[0])
		b.words = (*C.uint64_t)(unsafe.Pointer(&words[0]))
	}
	return b
}

// countDead counts the marked rows among the first n.
func countDead(words []uint64, n int64) int64 {
	var count int64
	for i, w := range words {
		left := n - int64(i)*64
		if left <= 0 {
			break
		}
		if left < 64 {
			w &= 1<<left - 1
		}
		count += int64(bits.OnesCount64(w))
	}
	return count
}
