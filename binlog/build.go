package binlog

import "github.com/tidemarkdb/tidemark/gtid"

// The functions below make events and transactions out of raw parts. Package binlogtest, on top of them, makes them
// out of tables and values.

// ParseTableMap reads the body of a TABLE_MAP event, which it keeps.
func ParseTableMap(body []byte) (*TableMap, error) { return parseTableMap(body) }

// NewRowsEvent makes a row event of a body as it stands behind the event's post-header: number of columns, bitmaps of
// present columns, rows.
func NewRowsEvent(m *TableMap, action Action, body []byte) *RowsEvent {
	return &RowsEvent{Table: m, Action: action, body: body}
}

// ParseStatement reads the body of a QUERY event, which it keeps; timestamp is that of the event's header.
func ParseStatement(body []byte, timestamp uint32) (*Statement, error) {
	return parseStatement(body, timestamp, false)
}

// NewTransaction makes a transaction of the given events, in memory.
func NewTransaction(kind Kind, g gtid.GTID, start, end gtid.Position, events ...Event) *Transaction {
	t := &Transaction{Kind: kind, GTID: g, Start: start, End: end}
	for _, e := range events {
		t.add(e)
	}
	return t
}
