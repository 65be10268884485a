package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// minMemory is the least with which everything still works.
const minMemory = 256 * mib

// byteSize is a flag for a number of bytes: 768MiB, 2GiB, 1g, 1073741824.
type byteSize int64

// String gives the size in the largest unit that divides it.
func (b *byteSize) String() string {
	switch n := int64(*b); {
	case n >= gib && n%gib == 0:
		return fmt.Sprintf("%dGiB", n/gib)
	case n%mib == 0:
		return fmt.Sprintf("%dMiB", n/mib)
	default:
		return strconv.FormatInt(n, 10)
	}
}

// Type names the flag's values in --help.
func (b *byteSize) Type() string { return "size" }

var sizeUnits = map[string]float64{
	"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "kb": 1e3, "m": mib, "mib": mib, "mb": 1e6, "g": gib, "gib": gib, "gb": 1e9, "t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// Set reads a size.
func (b *byteSize) Set(s string) error {
	digits := strings.TrimRight(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz ")
	factor, ok := sizeUnits[strings.TrimSpace(strings.ToLower(s[len(digits):]))]
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || n < 0 || n*factor > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size such as 768MiB or 2GiB", s)
	}
	*b = byteSize(n * factor)
	return nil
}

// budget splits the memory of the server process.
type budget struct {
	engine   int64 // DuckDB, which spills beyond it
	cache    int64 // Pebble's block cache
	memTable int64 // one Pebble memtable, of which there may be three
	segments int64 // rows not yet in parts
	load     int64 // the buffer of one writer of a first copy
	goLimit  int64 // of the garbage-collected heap, which segments and loads are part of
}

// splitMemory gives every part its share. With 1 GiB these are DuckDB 448 MiB, cache 96, memtables 3 x 32, segments 128, two
// loads of 64; the rest is what Go and the connections need.
func splitMemory(total int64) (budget, error) {
	if total < minMemory {
		return budget{}, fmt.Errorf("--memory: %d MiB is too little; the least is %d MiB", total/mib, minMemory/mib)
	}
	share := func(sixtyFourths int64) int64 { return total / 64 * sixtyFourths }
	return budget{
		engine: share(28), cache: share(6), memTable: share(2), segments: share(8), load: share(4), goLimit: share(30),
	}, nil
}
