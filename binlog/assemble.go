package binlog

import (
	"errors"
	"fmt"

	"github.com/tidemarkdb/tidemark/gtid"
)

// phase is where an assembler stands.
type phase uint8

const (
	phaseIdle   phase = iota // between transactions
	phaseHeaded              // behind a GTID event
	phaseOpen                // behind BEGIN
	phaseXA                  // behind XA START
)

// assembler makes transactions out of events. It does no I/O but spilling.
//
// Invariant: tx is nil exactly in phaseIdle.
type assembler struct {
	follow     func(database, table string) bool
	spillDir   string
	spillBytes int64
	source     gtid.UUID
	// skip tells, at the head of a transaction, whether its events are not wanted; nil: all are.
	skip func(*Transaction) bool
	// again gives the log's bytes once more, for transactions that are too large for memory; nil: they are spilled.
	again func() (Bytes, error)
	at    int64 // offset of the event in hand among them
	// emit takes the events of a second reading, of which interned has all maps that are followed; nil: it is the first.
	emit func(Event) error

	phase     phase
	tx        *Transaction
	pos       gtid.Position // behind the last event seen in the file
	formatted bool          // whether a format description was seen, without which nothing can be read
	checksum  bool
	sealed    bool // an event is larger by its checksum than on the source
	created   uint32
	interned  map[string]*TableMap
	current   map[uint64]*TableMap // of the running statement; nil for a table that is not followed
	kept      bool                 // whether the event's memory is in use after step
}

// maxInterned bounds the table maps that are remembered. A source with more tables in use gets new pointers for old
// descriptions now and then.
const maxInterned = 4096

func newAssembler(follow func(database, table string) bool, dir string, limit int64) *assembler {
	return &assembler{follow: follow, spillDir: dir, spillBytes: limit,
		interned: map[string]*TableMap{}, current: map[uint64]*TableMap{}}
}

// step takes the next event from the log; raw is the whole event with its checksum. It returns a transaction when
// one is complete, or Progress.
func (a *assembler) step(e event, raw []byte) (*Transaction, error) {
	a.kept = false
	if !a.formatted && e.Type != evFormatDescription && e.Type != evRotate {
		return nil, fmt.Errorf("event type %d in front of the format description", e.Type)
	}
	start := a.advance(e.header)
	switch e.Type {
	case evFormatDescription:
		return nil, a.format(e, raw)
	case evRotate:
		return a.rotate(e)
	case evHeartbeat, evHeartbeatV2:
		return a.heartbeat(e)
	case evStop, evPreviousGTIDs:
		return nil, nil
	case evGTID, evAnonymousGTID, evGTIDTagged:
		return nil, a.begin(e, start)
	case evTransactionPayload:
		return nil, errors.New("transaction payload inside a transaction payload")
	}
	return a.content(e, start)
}

// advance moves the position behind the event and returns where the event starts. The header has the low 32 bits of
// the offset only, and one transaction can make a file longer than 4 GiB.
func (a *assembler) advance(h header) gtid.Position {
	if !h.inFile() || h.Type == evHeartbeat || h.Type == evHeartbeatV2 {
		return a.pos
	}
	end := a.pos.Offset&^(1<<32-1) | uint64(h.LogPos)
	if end < a.pos.Offset {
		end += 1 << 32
	}
	a.pos.Offset = end
	size := uint64(h.Size)
	if a.sealed {
		size -= checksumSize
	}
	return gtid.Position{File: a.pos.File, Offset: end - min(end, size)}
}

func (a *assembler) format(e event, raw []byte) error {
	f, err := parseFormatDescription(e, raw)
	if err != nil {
		return err
	}
	if a.tx != nil {
		if !f.Restart {
			return errors.New("a new file begins in the middle of a transaction")
		}
		// The server died while it wrote the transaction, which therefore never committed.
		if err := a.drop(); err != nil {
			return err
		}
	}
	a.formatted, a.checksum, a.created, a.sealed = true, f.Checksum, f.Created, f.Sealed
	clear(a.current)
	return nil
}

// drop forgets a transaction that will not be completed.
func (a *assembler) drop() error {
	tx := a.tx
	a.tx, a.phase = nil, phaseIdle
	if tx == nil {
		return nil
	}
	return tx.Release()
}

// rotate follows the log into another file. The event that the dump thread makes up names the file that it reads now;
// neither kind is an end of a transaction.
func (a *assembler) rotate(e event) (*Transaction, error) {
	next, err := parseRotate(e.body)
	if err != nil {
		return nil, err
	}
	a.pos = next
	if a.tx != nil {
		return nil, nil // format decides whether this is a crash of the source
	}
	return a.progress(), nil
}

func (a *assembler) heartbeat(e event) (*Transaction, error) {
	p, err := parseHeartbeat(e)
	if err != nil || a.tx != nil {
		return nil, err
	}
	if p.File != a.pos.File {
		return nil, fmt.Errorf("heartbeat of file %q while reading %q", p.File, a.pos.File)
	}
	if e.Type == evHeartbeat {
		p.Offset |= a.pos.Offset &^ (1<<32 - 1)
	}
	if p.Offset > a.pos.Offset {
		a.pos = p
	}
	return a.progress(), nil
}

func (a *assembler) progress() *Transaction {
	return &Transaction{Kind: Progress, Start: a.pos, End: a.pos, Source: a.source, FileCreated: a.created}
}

// begin opens a transaction with its GTID event.
func (a *assembler) begin(e event, start gtid.Position) error {
	if a.tx != nil {
		return fmt.Errorf("a transaction begins inside transaction %s", a.tx)
	}
	var g gtidEvent
	var err error
	if e.Type == evGTIDTagged {
		g, err = parseTaggedGTID(e.body)
	} else {
		g, err = parseGTID(e.body, e.Type == evAnonymousGTID)
	}
	if err != nil {
		return fmt.Errorf("GTID event: %w", err)
	}
	a.open(e, start)
	a.tx.GTID, a.tx.ImmediateCommit, a.tx.OriginalCommit = g.GTID, g.ImmediateCommit, g.OriginalCommit
	a.headed()
	return nil
}

func (a *assembler) open(e event, start gtid.Position) {
	a.tx = &Transaction{Start: start, Timestamp: e.Timestamp, Source: a.source, FileCreated: a.created, at: a.at}
}

// headed notes that the head of the transaction is complete.
func (a *assembler) headed() {
	a.phase = phaseHeaded
	a.tx.skipped = a.skip != nil && a.skip(a.tx)
}

// content takes the events that make up a transaction, whether they stand in the log or in a compressed payload.
func (a *assembler) content(e event, start gtid.Position) (*Transaction, error) {
	switch e.Type {
	case evQuery, evExecuteLoadQuery:
		return a.statement(e, start)
	case evXID:
		return a.xid(e)
	case evXAPrepare:
		return a.xaPrepare(e)
	case evTableMap:
		return nil, a.tableMap(e)
	case evWriteRows, evWriteRowsV1:
		return nil, a.rows(e, Insert)
	case evUpdateRows, evUpdateRowsV1:
		return nil, a.rows(e, Update)
	case evDeleteRows, evDeleteRowsV1:
		return nil, a.rows(e, Delete)
	case evPartialUpdateRows:
		return nil, a.rows(e, PartialUpdate)
	case evIncident:
		return nil, fault(Incident, "the source logged a lost-events incident: %q", incidentMessage(e.body))
	case evIntVar, evRand, evUserVar, evAppendBlock, evDeleteFile, evBeginLoadQuery:
		return nil, nil // context of a statement, which is kept
	case evRowsQuery, evIgnorable, evTransactionContext, evViewChange:
		return nil, nil
	}
	if e.Flags&flagIgnorable != 0 {
		return nil, nil
	}
	return nil, fault(UnknownEvent, "event type %d is not known to this release", e.Type)
}

// incidentMessage is the text of an INCIDENT event: u16 number, u8 length, text.
func incidentMessage(b []byte) string {
	c := cursor{b: b}
	c.u16()
	return string(c.take(int(c.u8())))
}

func (a *assembler) statement(e event, start gtid.Position) (*Transaction, error) {
	st, err := parseStatement(e.body, e.Timestamp, e.Type == evExecuteLoadQuery)
	if err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	if a.tx == nil { // a server without GTID events
		a.open(e, start)
		a.headed()
	}
	what := boundaryNone
	if e.Type == evQuery {
		what = statementBoundary(st.SQL)
	}
	if a.phase == phaseHeaded {
		return a.firstStatement(st, what)
	}
	return a.innerStatement(st, what)
}

// firstStatement takes the statement that decides what a transaction is.
func (a *assembler) firstStatement(st *Statement, what boundary) (*Transaction, error) {
	switch what {
	case boundaryBegin:
		a.phase = phaseOpen
		return nil, nil
	case boundaryXAStart:
		a.phase = phaseXA
		return nil, nil
	case boundaryXACommit, boundaryXARollback:
		id, err := parseXAStatement(st.SQL)
		if err != nil {
			return nil, err
		}
		a.tx.XA = id
		if what == boundaryXACommit {
			return a.finish(XACommit)
		}
		return a.finish(XARollback)
	case boundaryCommit, boundaryRollback:
		return a.finish(Empty)
	}
	if err := a.keep(st); err != nil {
		return nil, err
	}
	return a.finish(DDL)
}

func (a *assembler) innerStatement(st *Statement, what boundary) (*Transaction, error) {
	switch what {
	case boundaryCommit:
		return a.finish(Rows)
	case boundaryRollback:
		return a.finish(RolledBack)
	case boundaryXAEnd:
		return nil, nil
	case boundaryBegin, boundaryXAStart, boundaryXACommit, boundaryXARollback:
		return nil, fmt.Errorf("statement %q inside transaction %s", st.SQL, a.tx)
	}
	return nil, a.keep(st)
}

func (a *assembler) xid(e event) (*Transaction, error) {
	c := cursor{b: e.body}
	n := c.u64()
	if c.err != nil || a.phase != phaseOpen {
		return nil, errors.New("XID event outside a transaction")
	}
	a.tx.XID = n
	return a.finish(Rows)
}

func (a *assembler) xaPrepare(e event) (*Transaction, error) {
	id, onePhase, err := parseXAPrepare(e.body)
	if err != nil || a.phase != phaseXA {
		return nil, errors.Join(errors.New("XA PREPARE event outside an XA transaction"), err)
	}
	a.tx.XA = id
	if onePhase {
		return a.finish(Rows)
	}
	return a.finish(XAPrepare)
}

// finish hands the transaction over. The events of a compressed payload leave pos behind the payload.
func (a *assembler) finish(kind Kind) (*Transaction, error) {
	tx := a.tx
	a.tx, a.phase = nil, phaseIdle
	clear(a.current)
	tx.Kind, tx.End = kind, a.pos
	if tx.RowEvents+tx.StatementCount == 0 && (kind == Rows || kind == RolledBack) {
		tx.Kind = Empty
	}
	if tx.spill != nil {
		if err := tx.spill.finish(); err != nil {
			return nil, errors.Join(err, tx.Release())
		}
	}
	return tx, nil
}

func (a *assembler) keep(e Event) error {
	if a.tx.skipped {
		return nil
	}
	if a.emit != nil {
		return a.emit(e)
	}
	var err error
	a.kept, err = a.tx.keep(e, a)
	return err
}

func (a *assembler) tableMap(e event) error {
	c := cursor{b: e.body}
	id, db, table := c.tableName()
	if c.err != nil {
		return fmt.Errorf("table map: %w", c.err)
	}
	if a.phase < phaseOpen {
		return errors.New("table map outside a transaction")
	}
	if a.tx.skipped {
		return nil
	}
	m := a.interned[string(e.body)]
	if a.emit != nil {
		a.current[id] = m
		return nil
	}
	if !a.follow(string(db), string(table)) {
		a.current[id] = nil
		return nil
	}
	if m == nil {
		key := string(e.body)
		var err error
		if m, err = parseTableMap([]byte(key)); err != nil {
			return err
		}
		if len(a.interned) >= maxInterned {
			clear(a.interned)
		}
		a.interned[key] = m
	}
	a.current[id] = m
	return nil
}

// dummyTableID marks a row event that has no rows and only ends a statement.
const dummyTableID = 0xffffff

func (a *assembler) rows(e event, action Action) error {
	const endOfStatement = 1
	if a.phase < phaseOpen {
		return errors.New("row event outside a transaction")
	}
	if a.tx.skipped {
		a.tx.Skipped++
		return nil
	}
	c := cursor{b: e.body}
	id, flags := c.uint(6), c.u16()
	if e.Type >= evWriteRows {
		c.take(int(c.u16()) - 2) // extra data, its own length included
	}
	if c.err != nil {
		return fmt.Errorf("row event: %w", c.err)
	}
	m, known := a.current[id]
	if flags&endOfStatement != 0 {
		clear(a.current)
	}
	switch {
	case id == dummyTableID && !known:
		return nil
	case !known:
		return fmt.Errorf("row event of table id %d, which no table map describes", id)
	case m == nil:
		a.tx.Skipped++
		return nil
	}
	return a.keep(&RowsEvent{Table: m, Action: action, body: c.b})
}
