package storage

import (
	"fmt"

	"github.com/tidemarkdb/tidemark/schema"
)

// The identities of the store come from one counter and are never reused, so that a number found in a file name, a log
// or a locator means one thing for ever.
type (
	// StreamID is a source server that is followed. At present each database has its own.
	StreamID uint64
	// DatabaseID is a materialized database.
	DatabaseID uint64
	// TableID is one table of a database, from its CREATE to its DROP.
	TableID uint64
	// Generation is one copy of a table's rows: TRUNCATE and a new bulk load start another.
	Generation uint64
	// HomeID is where rows live: a part or a segment. Locators name rows by home and row number.
	HomeID uint64
	// PartID is the HomeID of a part.
	PartID = HomeID
	// SegmentID is the HomeID of a segment.
	SegmentID = HomeID
	// LayerID is a set of index entries that lies over a generation's base entries, or resolves the rows of a retired
	// home.
	LayerID uint64
	// CommitSeq numbers the commits of the store, from 1, without gaps.
	CommitSeq uint64
)

// TableState says what a table's rows are worth. The numbers are stored and never change.
type TableState uint8

const (
	// Copying: a copy is under way, or has not met the others yet; the table is not readable, but takes changes.
	Copying TableState = 1
	// Live: the table stands at the database's point.
	Live TableState = 2
	// Quarantined: the table stays at an earlier point, for the reason given; nothing is applied to it.
	Quarantined TableState = 3
)

func (s TableState) String() string {
	switch s {
	case Copying:
		return "copying"
	case Live:
		return "live"
	case Quarantined:
		return "quarantined"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// DatabaseInfo describes a database at one commit.
type DatabaseInfo struct {
	ID     DatabaseID
	Stream StreamID
	Name   string
	// Config is the owner's own settings, opaque to the store.
	Config []byte
	// Point is the source position that the rows stand at, opaque to the store; nil before the first copy is complete.
	Point []byte
}

// TableInfo describes a table at one commit.
type TableInfo struct {
	ID         TableID
	Database   DatabaseID
	Generation Generation
	Def        *schema.Table
	State      TableState
	// Reason says why the table is quarantined; empty otherwise.
	Reason string
	// Point is the position at which the table stands when that is not the database's: of a quarantined table and of a
	// shadow. Opaque.
	Point []byte
	// Window is its owner's note that the rows stand at no one point yet (see [Txn.SetWindow]). Opaque.
	Window []byte
	// Shadow tells that the table is a copy in the making, which no reader sees (see [Txn.CreateShadow]).
	Shadow bool
	// Rows counts the live rows.
	Rows int64
	// Parts and Segments count the homes that hold them, Bytes the size of the parts' files.
	Parts, Segments int
	Bytes           int64
	// Damage is set when a file of the table was found missing or damaged since the store was opened. Such a table can't
	// be read; it needs a new copy.
	Damage error
}
