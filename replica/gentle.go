package replica

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tidemarkdb/tidemark/snapshot"
)

// Gentle is how much a copy may ask of the source. 0 is no bound. The names in comments are those of SQL.
type Gentle struct {
	// MaxThreads is the number of parallel readers, each one connection (snapshot_max_threads, 4; at most 16).
	MaxThreads int64
	// MaxRowsPerSecond is for all readers together (snapshot_max_rows_per_second, 0).
	MaxRowsPerSecond int64
	// MaxThreadsRunning, MaxReplicaLag and MaxHistoryLength are what makes the copy go slowly: other statements that run at
	// once on the source, seconds that it is behind its own source, and undo records that InnoDB can't purge
	// (snapshot_max_threads_running, 64; snapshot_max_replica_lag, 60; snapshot_max_history_length, 1000000).
	MaxThreadsRunning int64
	MaxReplicaLag     int64
	MaxHistoryLength  int64
}

func defaultGentle() Gentle {
	return Gentle{MaxThreads: 4, MaxThreadsRunning: 64, MaxReplicaLag: 60, MaxHistoryLength: 1_000_000}
}

// apply puts the bounds into the configuration of a copy.
func (g Gentle) apply(cfg *snapshot.Config) {
	if cfg.Readers == 0 {
		cfg.Readers = int(g.MaxThreads)
	}
	cfg.RowsPerSecond = g.MaxRowsPerSecond
	cfg.Limits.ThreadsRunning = int(orNone(g.MaxThreadsRunning))
	cfg.Limits.ReplicaLag = time.Duration(orNone(g.MaxReplicaLag)) * time.Second
	cfg.Limits.HistoryLength = orNone(g.MaxHistoryLength)
}

// orNone gives a limit in package snapshot's form, where a negative one is none.
func orNone(limit int64) int64 {
	if limit == 0 {
		return -1
	}
	return limit
}

// bound is a number, 0 for none.
func bound(field func(*Settings) *int64) setting {
	return setting{
		set: func(s *Settings, value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || n > maxMilliseconds/1000 {
				return fmt.Errorf("%q is not a number from 0 on (0: no bound)", value)
			}
			*field(s) = n
			return nil
		},
		get: func(s *Settings) string { return strconv.FormatInt(*field(s), 10) },
	}
}
