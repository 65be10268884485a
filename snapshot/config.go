package snapshot

import (
	"log/slog"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/wire"
)

// Config says what to copy and how gently. Zero values mean the defaults.
type Config struct {
	Source wire.Config
	// Plan is compat's, with the database, the filter and the kind of lock.
	Plan *compat.Plan
	// Tables are the only ones of the plan that are copied; nil: all. A table that the source does not have is an error.
	Tables []string
	// Resume goes on with a copy that broke off; nil begins one.
	Resume *Resume
	// Readers is the number of parallel readers, each one connection; 1..16, default 4.
	Readers int
	// BatchRows and BatchBytes bound the batches given to the sink; defaults 65536 rows, 8 MiB. A reader holds one batch.
	BatchRows  int
	BatchBytes int
	// ChunkRows and ChunkBytes bound a chunk: what one statement reads, for how long it holds a metadata lock, and what is
	// read again when the copy breaks off in it. Defaults 500000 rows, 64 MiB. Chunks of smaller tables are smaller: those
	// that are in flight are together not more than a fortieth of the table, but for at least 40000 rows each.
	ChunkRows  int64
	ChunkBytes int64
	// LockWait bounds the wait for a lock, in whole seconds; default 3 s. While it waits, others queue behind it.
	LockWait time.Duration
	// LongStatement is the running time from which a statement of others keeps us from asking for the lock; default 1 s.
	LongStatement time.Duration
	// LockPatience bounds all tries to get the lock with no XA transaction prepared; default 5 min.
	LockPatience time.Duration
	// HoldLimit bounds the time for which the lock is held; default 5 s. Beyond it the lock is let go and Run fails.
	HoldLimit time.Duration
	// Retry bounds how long one chunk is tried again, and the source is called again, after connections were lost;
	// default 5 min.
	Retry time.Duration
	// RowsPerSecond bounds what all readers read together; 0: no bound (the setting snapshot_max_rows_per_second).
	RowsPerSecond int64
	// Limits are of the source's load.
	Limits Limits
	// Logger hears what happens; nil discards it.
	Logger *slog.Logger
	// Waiting is called with what keeps the cut from being made, at each try, and with "" when it is made; may be nil.
	Waiting func(reason string)
	// Slowed is called with why the copy is slower than it could be, and with "" when it goes at full pace again; may be
	// nil.
	Slowed func(reason string)
	// Progress is called after each batch and chunk, one call at a time; may be nil.
	Progress func(Progress)
}

// Limits say from where on the source is busy: then one reader works at a time, and pauses after each chunk for as long
// as the chunk took. Zero means the default, a negative value no limit.
type Limits struct {
	// ThreadsRunning is of the server's Threads_running, our own readers left out; default 64.
	ThreadsRunning int
	// ReplicaLag is of Seconds_Behind_Source, where the source is a replica itself; default 1 min.
	ReplicaLag time.Duration
	// HistoryLength is of InnoDB's history list length: undo records that can't be purged; default 1 million. It is seen
	// with PROCESS only. The read views of an exact cut are given up at it, since they may be what keeps the records.
	HistoryLength int64
	// ViewAge is from when on the read views of an exact cut are given up, whatever is seen; default 1 h.
	ViewAge time.Duration
	// LockWaits is for how long a statement of others may wait for a metadata lock of ours until the statement that holds
	// it is ended and its rest read later; default 3 s. Without PROCESS waits can't be seen, and a chunk's own bounds count.
	LockWaits time.Duration
}

const (
	defaultReaders = 4
	maxReaders     = 16
)

func (c Config) withDefaults() Config {
	orElse(&c.Readers, defaultReaders)
	c.Readers = min(c.Readers, maxReaders)
	orElse(&c.BatchRows, 65536)
	orElse(&c.BatchBytes, 8<<20)
	orElse(&c.ChunkRows, 500_000)
	orElse(&c.ChunkBytes, 64<<20)
	orElse(&c.LockWait, 3*time.Second)
	orElse(&c.LongStatement, time.Second)
	orElse(&c.LockPatience, 5*time.Minute)
	orElse(&c.HoldLimit, 5*time.Second)
	orElse(&c.Retry, 5*time.Minute)
	c.Limits = c.Limits.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for _, fn := range []*func(string){&c.Waiting, &c.Slowed} {
		if *fn == nil {
			*fn = func(string) {}
		}
	}
	return c
}

func (l Limits) withDefaults() Limits {
	unset(&l.ThreadsRunning, 64)
	unset(&l.ReplicaLag, time.Minute)
	unset(&l.HistoryLength, 1_000_000)
	unset(&l.ViewAge, time.Hour)
	unset(&l.LockWaits, 3*time.Second)
	return l
}

// orElse replaces what is no number of something.
func orElse[T int | int64 | time.Duration](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}

func unset[T int | int64 | time.Duration](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// mostRows is how many rows of about a size a chunk has at most.
func (c *Config) mostRows(rowBytes int64) int64 {
	rows := c.ChunkRows
	if rowBytes > 0 {
		rows = min(rows, c.ChunkBytes/rowBytes)
	}
	return max(rows, 1)
}
