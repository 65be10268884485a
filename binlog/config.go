package binlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// Config says which source to read, from where, and what to keep.
type Config struct {
	// Source is how to reach it. The account needs REPLICATION SLAVE; REPLICATION CLIENT makes some errors more precise.
	// Its ReadTimeout is not used; see DeadAfter.
	Source wire.Config

	// ServerID names this reader among all readers and servers of the replication topology; never 0. It is kept for life.
	ServerID uint32
	// ReplicaUUID tells a second reader with the same ServerID from this one. Zero derives it from ServerID: two such
	// readers then cut each other's connection and both see DuplicateServerID.
	ReplicaUUID gtid.UUID

	// AutoPosition asks for all transactions that are not in Start.Set; Start.Position is then only what Progress
	// never falls behind of (leave it zero for another server than the one it was read from). Without it reading
	// begins at Start.Position.
	AutoPosition bool
	Start        gtid.Point

	// Follow says which tables' row events to keep. It is called inside Next. It must decide by name: the stream runs
	// ahead of whoever applies it, so a table need not exist yet.
	Follow func(database, table string) bool

	// SpillDir takes the temporary files of large transactions; empty is os.TempDir.
	SpillDir string
	// SpillBytes is what a transaction may hold in memory, 0 means 32 MiB. Less memory, more disk traffic.
	SpillBytes int64

	// Heartbeat is how often an idle source gives a sign of life and its position, 0 means 5 s.
	Heartbeat time.Duration
	// DeadAfter is how long the connection may be silent before it counts as lost, 0 means 3 times Heartbeat. It must be
	// longer than Heartbeat.
	DeadAfter time.Duration
}

// DefaultHeartbeat is that of [Config].
const DefaultHeartbeat = 5 * time.Second

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.SpillBytes == 0 {
		c.SpillBytes = 32 << 20
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.DeadAfter == 0 {
		c.DeadAfter = 3 * c.Heartbeat
	}
	if c.Follow == nil {
		c.Follow = func(string, string) bool { return true }
	}
	if c.ReplicaUUID.IsZero() {
		c.ReplicaUUID = derivedUUID(c.ServerID)
	}
	return c
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	d := c.withDefaults()
	var errs []error
	if err := c.Source.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.ServerID == 0 {
		errs = append(errs, errors.New("the server id must not be 0"))
	}
	if !c.AutoPosition && c.Start.Position.IsZero() {
		errs = append(errs, errors.New("no start position"))
	}
	if !c.AutoPosition && c.Start.Position.Offset > 1<<32-1 {
		errs = append(errs, errors.New("the start position is beyond 4 GiB, which a source without GTIDs can not be asked for"))
	}
	if d.DeadAfter <= d.Heartbeat {
		errs = append(errs, errors.New("DeadAfter must be longer than Heartbeat"))
	}
	if len(errs) > 0 {
		return &Error{Class: Misconfigured, Err: errors.Join(errs...)}
	}
	return nil
}

// derivedUUID makes the same UUID for the same server id at all times.
func derivedUUID(serverID uint32) gtid.UUID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte("tidemark replica "), serverID))
	return gtid.UUID(sum[:16])
}
