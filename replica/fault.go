package replica

import (
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/replay"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/wire"
)

// verdict says what to do about an error.
type verdict struct {
	// tries is how often in a row the same kind of error is met with another try; forever, or 0: never.
	tries int
	// kind tells errors apart that are counted on their own.
	kind string
	// advice is what to do, for people; may be empty where the error says it.
	advice string
}

const forever = -1

// The kinds of errors that are about what a server has.
const (
	kindRewound = "rewound"
	kindPurged  = "purged"
	kindOther   = "other"
)

// judge decides from the error's type, never from its text.
func judge(err error) verdict {
	var refused *wire.ConnectError
	var lock *snapshot.LockError
	var problems *compat.ProblemsError
	var stop *replay.StopError
	var spooled *relay.DamageError
	var other *otherServerError
	var none *noSourceError
	var role *roleError
	var behind *behindError
	var failed *storage.FailedError
	var damage *storage.DamageError
	switch {
	case errors.As(err, &none):
		return none.verdict()
	case errors.As(err, &role), errors.As(err, &behind):
		return verdict{tries: forever, kind: "role"}
	case errors.As(err, &stop):
		return verdict{kind: "stop", advice: "what it did has to be known before the database can go on: drop the database here and create it anew"}
	case errors.As(err, &other):
		return verdict{kind: kindOther, advice: copyAll}
	case errors.As(err, &spooled):
		return verdict{tries: forever, kind: "relay", advice: "it is read from the source again"}
	case errors.As(err, &problems):
		return verdict{kind: "source"}
	case errors.As(err, &refused):
		if refused.Denied && !refused.Renewed {
			return verdict{kind: "denied"}
		}
		return verdict{tries: forever, kind: "lost"}
	case errors.As(err, &lock):
		return verdict{tries: lockTries(lock.Obstacle), kind: "lock"}
	case errors.Is(err, snapshot.ErrSchemaChanged):
		return verdict{tries: 5, kind: "changed", advice: "start it again when nobody changes table definitions on the source"}
	case errors.Is(err, storage.ErrDiskFull):
		return verdict{tries: forever, kind: "disk", advice: "free space; it goes on by itself"}
	case errors.As(err, &failed), errors.As(err, &damage), errors.Is(err, storage.ErrClosed):
		return verdict{kind: "store"}
	case binlog.ClassOf(err) != 0:
		return judgeStream(binlog.ClassOf(err))
	}
	return judgeServer(wire.Code(err))
}

func lockTries(o snapshot.Obstacle) int {
	switch o {
	case snapshot.Busy, snapshot.PreparedXA, snapshot.TooSlow:
		return 3
	case snapshot.Denied, snapshot.Unfit:
	}
	return 0
}

const copyAll = "a new copy is needed: drop the database here and create it anew"

// copyAgain says what is to be done about one table that can't be used any more. d.mu is held.
func (d *database) copyAgain() string {
	if d.cfg.Spec.Settings.AutoResync {
		return "it is copied anew by itself (auto_resync)"
	}
	return "SYSTEM RESYNC MATERIALIZEDMYSQL TABLE copies it anew"
}

func judgeStream(c binlog.Class) verdict {
	switch c {
	case binlog.ConnectionLost:
		return verdict{tries: forever, kind: "lost"}
	case binlog.Local:
		return verdict{tries: forever, kind: "local", advice: "free space in the data directory; it goes on by itself"}
	case binlog.Corrupt:
		return verdict{tries: 3, kind: "corrupt", advice: "check the source's binlog with mysqlbinlog --verify-binlog-checksum"}
	case binlog.DuplicateServerID:
		return verdict{tries: 3, kind: "duplicate", advice: "find the other reader of the source (SHOW REPLICAS there) and give it another server id"}
	case binlog.AuthFailed:
		return verdict{kind: "denied", advice: "check the account's password and its REPLICATION SLAVE privilege, then start it again"}
	case binlog.PurgedLogs:
		return verdict{kind: kindPurged, advice: "ALTER DATABASE ... MODIFY SETTING auto_resync = 1, and then SYSTEM START MATERIALIZEDMYSQL, " +
			"copy the tables anew one by one while the old rows are served; and let the source keep its binlogs longer (binlog_expire_logs_seconds)"}
	case binlog.Rewound:
		return verdict{kind: kindRewound, advice: copyAll}
	case binlog.UnknownEvent, binlog.Incident, binlog.TooLarge:
		return verdict{kind: "event", advice: copyAll}
	case binlog.Misconfigured:
		return verdict{kind: "source", advice: "put it right on the source, then start it again"}
	case binlog.UnknownIdentity, binlog.Cancelled:
	}
	return verdict{kind: c.String()}
}

// judgeServer deals with errors of the source's SQL interface, and those that have no code: connections that broke.
func judgeServer(code uint16) verdict {
	const serverShutdown, queryInterrupted, clientInteraction = 1053, 1317, 4031
	switch code {
	case 0, serverShutdown, queryInterrupted, clientInteraction:
		return verdict{tries: forever, kind: "lost"}
	}
	return verdict{tries: 3, kind: "server"}
}

// explain gives the error with what to do.
func (v verdict) explain(err error) string {
	if v.advice == "" {
		return err.Error()
	}
	return fmt.Sprintf("%v; %s", err, v.advice)
}
