package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configure a store. The zero value of each field means its default. The defaults keep the store's own memory
// (Pebble's cache and memtables, segments, buffers of loads, flushes and merges) under 512 MiB with two loading writers.
type Options struct {
	// FS is where everything lives; default: the operating system's files.
	FS vfs.FS
	// Logger gets what an operator should see; default: nothing is logged.
	Logger *slog.Logger
	// CacheBytes is Pebble's block cache; default 160 MiB. A larger one helps upserts at random on large tables.
	CacheBytes int64
	// MemTableBytes is the size of one Pebble memtable; up to three may exist; default 32 MiB.
	MemTableBytes int64
	// ReserveBytes is the free disk space below which nothing is written any more (ErrDiskFull); default 256 MiB. It
	// leaves Pebble room to stay consistent and to clean up.
	ReserveBytes int64
	// Retention is how long files that no commit refers to any more stay on disk for readers outside the process;
	// default one minute, negative: none. Pinned versions keep their files regardless.
	Retention time.Duration
	// SegmentRows and SegmentBytes (memory) bound the rows of one Apply that become a segment; more become a part at
	// once. Defaults 65536 and 16 MiB.
	SegmentRows  int
	SegmentBytes int64
	// FlushSegments, FlushRows and FlushBytes (memory) are the bounds of a table's segments beyond which they are flushed
	// into a part (or, if they hold few rows, joined to one segment). Defaults 64, 512 Ki and 48 MiB.
	FlushSegments int
	FlushRows     int
	FlushBytes    int64
	// SegmentMemory bounds the memory of the segments of all tables; default 128 MiB.
	SegmentMemory int64
	// PartMinRows is the number of rows from which a flush writes a part instead of a segment; default 16384.
	PartMinRows int
	// MergeRows and MergeBytes (file size) bound the outcome of a merge; default 4 Mi rows, 256 MiB. Parts of a 16th of
	// either are merged no further while a table has few parts, parts of half of it never.
	MergeRows  int64
	MergeBytes int64
	// LoadRows and LoadBytes (memory) bound the buffer of one loading writer, hence the size of loaded parts; defaults 1 Mi
	// rows and 64 MiB.
	LoadRows  int
	LoadBytes int64
	// SpillKeys is the number of keys one transaction may hold in memory for a table before its index entries are
	// written ahead of the commit; default 512 Ki.
	SpillKeys int
	// Events bounds the event log; default 10000.
	Events int
	// NoMaintenance turns background work off; Maintain then does it on request. For tests.
	NoMaintenance bool
	// Now is the clock; default time.Now.
	Now func() time.Time

	// Set by tests only, so that small data meet every path.
	settleRows     int           // index entries that background work writes while commits wait
	settleRemaps   int           // remaps of a table from which its index is settled at once,
	settleAfter    time.Duration // or after so long without a change
	deltasPerBase  int           // deltas of dead rows a home may have before they become a base,
	deltaRowsFloor int           // and rows in them that never do
	deadFloor      int           // dead rows from which a part may be rewritten alone
	spillBytes     int           // size of the batches of index entries written ahead of a commit
}

func defaulted[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	defaulted(&o.CacheBytes, 160<<20)
	defaulted(&o.MemTableBytes, 32<<20)
	defaulted(&o.ReserveBytes, 256<<20)
	defaulted(&o.Retention, time.Minute)
	defaulted(&o.SegmentRows, 64<<10)
	defaulted(&o.SegmentBytes, 16<<20)
	defaulted(&o.FlushSegments, 64)
	defaulted(&o.FlushRows, 512<<10)
	defaulted(&o.FlushBytes, 48<<20)
	defaulted(&o.SegmentMemory, 128<<20)
	defaulted(&o.PartMinRows, 16<<10)
	defaulted(&o.MergeRows, 4<<20)
	defaulted(&o.MergeBytes, 256<<20)
	defaulted(&o.LoadRows, 1<<20)
	defaulted(&o.LoadBytes, 64<<20)
	defaulted(&o.SpillKeys, 512<<10)
	defaulted(&o.Events, 10000)
	defaulted(&o.settleRows, 4096)
	defaulted(&o.settleRemaps, 4096)
	defaulted(&o.settleAfter, 3*time.Second)
	defaulted(&o.deltasPerBase, 512)
	defaulted(&o.deltaRowsFloor, 8192)
	defaulted(&o.deadFloor, 8192)
	defaulted(&o.spillBytes, 4<<20)
}

// Validate reports every field that makes no sense.
func (o *Options) Validate() error {
	var errs []error
	check := func(name string, v int64) {
		if v < 0 {
			errs = append(errs, fmt.Errorf("storage option %s is negative", name))
		}
	}
	check("CacheBytes", o.CacheBytes)
	check("MemTableBytes", o.MemTableBytes)
	check("ReserveBytes", o.ReserveBytes)
	check("SegmentRows", int64(o.SegmentRows))
	check("SegmentBytes", o.SegmentBytes)
	check("FlushSegments", int64(o.FlushSegments))
	check("FlushRows", int64(o.FlushRows))
	check("FlushBytes", o.FlushBytes)
	check("SegmentMemory", o.SegmentMemory)
	check("PartMinRows", int64(o.PartMinRows))
	check("MergeRows", o.MergeRows)
	check("MergeBytes", o.MergeBytes)
	check("LoadRows", int64(o.LoadRows))
	check("LoadBytes", o.LoadBytes)
	check("SpillKeys", int64(o.SpillKeys))
	check("Events", int64(o.Events))
	return errors.Join(errs...)
}
