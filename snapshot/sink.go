package snapshot

import (
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
)

// Cut is where a copy begins.
type Cut struct {
	// Point is P0: every row that is read holds at least the transactions up to it. When the copy is exact and does not
	// break off, no row holds more. Without a lock its position is the start of the binlog file that was written then,
	// with GTIDs, too: only the set says exactly where P0 is.
	Point gtid.Point
	// Exact tells that a lock was held while the read views were opened: tables that are read in these views to their end
	// stand at Point.
	Exact bool
	// Lock is the plan that made the cut: that of the compat.Plan, or a weaker one that it allows.
	Lock compat.LockPlan
	// Server is the source's server_uuid.
	Server gtid.UUID
	// Tables are the definitions, in the order of their names.
	Tables []*schema.Table
	// LockHeld is how long the source was locked.
	LockHeld time.Duration
	// Listed is the end of the source's binlog, read behind Point and before the definitions were; zero when they were
	// read at Point. What changed a definition in front of it is in Tables.
	Listed gtid.Position
}

// Resume is what is left of a copy that broke off. Its tables are copied with P0 as it was; what no finished chunk
// covers is read anew, without a lock.
type Resume struct {
	// Cut is the one that Begin got then. Exact, Lock and LockHeld may be left out.
	Cut Cut
	// Chunks are the notes of Writer.Done by table name, in any order. Two notes never cover the same rows.
	Chunks map[string][][]byte
}

// Result is a finished copy.
type Result struct {
	Cut
	// Rows and Bytes count what was read; bytes as they came over the network. Chunks taken over are not in it.
	Rows, Bytes int64
	// Tables has one element for each of the cut's Tables, in their order (which are to be had as Cut.Tables).
	Tables  []TableResult
	Elapsed time.Duration
}

// TableResult is what has become of one table. Its rows stand in the window (From, To].
type TableResult struct {
	Name string
	// Rows is the number of rows of all chunks, those taken over included.
	Rows int64
	// To is P1: no row that was read holds a transaction that ends behind it. The zero Position says that the table
	// stands exactly at the cut's Point.
	To gtid.Position
	// Bracket says that the table was read in one view that was opened after From: it is right only if no row event of
	// the table lies in (From, To]. Row events up to From are in the copy.
	Bracket bool
	// From is the cut's Point, or with Bracket a later one (as exact as the cut's Point of a copy without a lock).
	From gtid.Point
	// Changed says why the copy of this table is worthless; "" says that it is not. Its definition changed, or it is gone.
	// To and From are zero then.
	Changed string
}

// Sink takes the copy. When Run fails, the chunks that are finished can be taken over by a later one: see Resume.
type Sink interface {
	// Begin is called once, when the cut is made and before any row is read, also by a Run that goes on with a copy. The
	// binlog must be pulled from Cut.Point on. An error ends the copy.
	Begin(Cut) error
	// Open gives a writer for rows of a table. Several goroutines call it at the same time, also for the same table.
	Open(t *schema.Table) (Writer, error)
}

// Writer takes rows of one table from one reader, chunk by chunk. Chunks mostly follow one another in the order in which
// MySQL sorts the key. Any error of it ends the copy.
type Writer interface {
	// Add takes rows. The batch belongs to the writer then.
	Add(*column.Batch) error
	// Done ends a chunk: the rows added since the last Done are all rows of the range that the note describes. When it
	// returns, they and the note are durable, in one step, if the sink is one that survives. The note is opaque and below
	// 16 KiB. A chunk may have no rows.
	Done(note []byte) error
	// Close is called after the last Done; nothing was added since.
	Close() error
	// Abort ends a writer: rows added since the last Done must go, they will come again through another writer. Finished
	// chunks stay.
	Abort()
}
