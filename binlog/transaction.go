package binlog

import (
	"fmt"
	"iter"

	"github.com/tidemarkdb/tidemark/gtid"
)

// Kind says what a transaction is.
type Kind uint8

// The kinds of what a stream delivers.
const (
	// Progress is no transaction: the source has nothing more up to End. GTID is zero.
	Progress Kind = iota + 1
	// Empty is a transaction of which no event was kept: it touched nothing that is followed.
	Empty
	// Rows is a committed transaction with row events, statements, or both. CREATE TABLE .. SELECT is one: the
	// CREATE statement comes first and the rows follow.
	Rows
	// DDL is a statement that stands alone and commits by itself. It may be any statement that the source logs so,
	// not only a definition; see Statement.SQL.
	DDL
	// XAPrepare holds the events of an XA transaction whose outcome is open. XA tells its id.
	XAPrepare
	// XACommit and XARollback decide an XA transaction prepared earlier. They have no events.
	XACommit
	XARollback
	// RolledBack is a transaction that ended in ROLLBACK and is logged nevertheless, because it changed tables that
	// can not roll back. What it did to tables that can must not be applied.
	RolledBack
)

var kindNames = [...]string{
	Progress: "progress", Empty: "empty", Rows: "rows", DDL: "ddl", XAPrepare: "xa prepare", XACommit: "xa commit",
	XARollback: "xa rollback", RolledBack: "rolled back",
}

// String is the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Transaction is one complete transaction of the source, in the order in which the source logged it.
type Transaction struct {
	Kind Kind
	// GTID is zero with gtid_mode = OFF and for Progress. It counts as executed only together with the effect of the
	// transaction.
	GTID gtid.GTID
	// Start is the place of the first event, End the place behind the last one. Reading can begin again at End.
	Start, End gtid.Position
	// OriginalCommit is when the first server of the replication chain committed it, ImmediateCommit when the source
	// did; microseconds since 1970, 0 if not known (servers before 8.0).
	OriginalCommit, ImmediateCommit uint64
	// Timestamp is the header's, seconds since 1970: when its first statement began.
	Timestamp uint32
	// Source and FileCreated complete the transaction's Identity.
	Source      gtid.UUID
	FileCreated uint32
	// XID is the number under which the source's storage engine committed it, 0 if it did not say.
	XID uint64
	// XA is the id of an XA transaction, for the XA kinds.
	XA XID
	// RowEvents and StatementCount count the kept events, Skipped the row events of tables that are not followed.
	RowEvents, StatementCount, Skipped int

	mem     []Event
	size    int64
	spill   *spill
	reread  *reread
	skipped bool  // its events were not wanted
	at      int64 // offset of its first event in the bytes that a Log reads
}

// Event is a *RowsEvent or a *Statement.
type Event interface {
	event()
	size() int
}

// Action is what a row event does.
type Action uint8

// The actions of row events.
const (
	Insert Action = iota + 1
	Update
	Delete
	// PartialUpdate is an update of whose JSON columns the differences are logged (binlog_row_value_options = PARTIAL_JSON).
	// Decoder.DecodePartial reads it.
	PartialUpdate
)

var actionNames = [...]string{Insert: "insert", Update: "update", Delete: "delete", PartialUpdate: "partial update"}

// String is the action in words.
func (a Action) String() string { return actionNames[a] }

// RowsEvent is the change of one or more rows of one followed table, not yet decoded; see [Decoder].
type RowsEvent struct {
	Table  *TableMap
	Action Action

	body []byte // from the number of columns on
}

func (*RowsEvent) event() {}

func (r *RowsEvent) size() int { return len(r.body) }

// Identity is what is kept to recognise the transaction on its source.
func (t *Transaction) Identity() gtid.Identity {
	return gtid.Identity{Source: t.Source, GTID: t.GTID, Start: t.Start, Committed: t.OriginalCommit, FileCreated: t.FileCreated}
}

// Size is the number of bytes of the kept events, in memory or spilled.
func (t *Transaction) Size() int64 { return t.size }

// Spilled reports whether the events are not in memory, but in a temporary file or in the log file that they come from.
func (t *Transaction) Spilled() bool { return t.spill != nil || t.reread != nil }

// Events gives the kept events in order. It may be called again. A spilled transaction has one event in memory at a
// time: what an event holds is then valid until the next one is asked for. An error ends the sequence: of class Local, or
// Corrupt where the events are read from their log file a second time.
func (t *Transaction) Events() iter.Seq2[Event, error] {
	if t.spill != nil {
		return t.spill.events()
	}
	if t.reread != nil {
		return t.reread.events()
	}
	return func(yield func(Event, error) bool) {
		for _, e := range t.mem {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Release frees the memory and the temporary file. The transaction has no events afterwards.
func (t *Transaction) Release() error {
	t.mem = nil
	switch {
	case t.spill != nil:
		err := t.spill.close()
		t.spill = &spill{}
		return err
	case t.reread != nil:
		return t.reread.close()
	}
	return nil
}

// add keeps an event in memory.
func (t *Transaction) add(e Event) {
	t.count(e)
	t.mem = append(t.mem, e)
}

func (t *Transaction) count(e Event) {
	if _, ok := e.(*RowsEvent); ok {
		t.RowEvents++
	} else {
		t.StatementCount++
	}
	t.size += int64(e.size())
}

// keep adds an event. Beyond the limit of memory all events move to a file, or are left where they can be read again.
// kept tells whether e's memory is still in use.
func (t *Transaction) keep(e Event, a *assembler) (kept bool, err error) {
	if !t.Spilled() && t.size+int64(e.size()) <= a.spillBytes {
		t.add(e)
		return true, nil
	}
	t.count(e)
	if !t.Spilled() {
		if err := t.outgrow(a); err != nil {
			return false, err
		}
	}
	if t.reread != nil {
		t.reread.meet(e)
		return false, nil
	}
	return false, t.spill.add(e)
}

// outgrow takes the events out of memory.
func (t *Transaction) outgrow(a *assembler) error {
	if a.again == nil {
		return t.startSpill(a.spillDir)
	}
	var err error
	if t.reread, err = newReread(a, t); err != nil {
		return err
	}
	t.mem = nil
	return nil
}

// startSpill moves the events from memory to a file.
func (t *Transaction) startSpill(dir string) error {
	var err error
	if t.spill, err = newSpill(dir); err != nil {
		return err
	}
	for _, e := range t.mem {
		if err := t.spill.add(e); err != nil {
			return err
		}
	}
	t.mem = nil
	return nil
}

// String names the transaction for messages.
func (t *Transaction) String() string {
	if t.GTID.IsZero() {
		return fmt.Sprintf("%s at %s", t.Kind, t.Start)
	}
	return fmt.Sprintf("%s %s at %s", t.Kind, t.GTID, t.Start)
}
