package clouds

import (
	"fmt"
	"regexp"
	"strings"
)

// Rule changes the answers to some statements. The first rule that matches counts. Exactly one of Error, Run and Edit is set.
type Rule struct {
	// Statement is looked for in the text of statements, prepared ones too. nil is for requests for the binlog.
	Statement *regexp.Regexp
	// Error is answered at once, without asking the server.
	Error *Error
	// Run gives the statement that the server gets in place of this one.
	Run func(statement string) string
	// Edit changes a result of the server; it is not called for errors, and not for prepared statements.
	Edit func(statement string, r *Rows)
}

// matches tells whether the rule is about a command.
func (r *Rule) matches(command byte, statement string) bool {
	switch command {
	case comQuery, comPrepare:
		return r.Statement != nil && r.Statement.MatchString(statement)
	case comDump, comDumpGTID:
		return r.Statement == nil
	}
	return false
}

// Error is an error of the server.
type Error struct {
	Code    uint16
	State   string // five characters
	Message string
}

// Rows is a result in text form. Its columns can't be changed.
type Rows struct {
	Columns []string
	Cells   [][]*string
}

// Column gives the number of a column, -1 when there is none.
func (r *Rows) Column(name string) int {
	for i, c := range r.Columns {
		if strings.EqualFold(c, name) {
			return i
		}
	}
	return -1
}

func (e *Error) packet() packet {
	b := append([]byte{errHeader, byte(e.Code), byte(e.Code >> 8), '#'}, e.State...)
	return packet{seq: 1, payload: append(b, e.Message...)}
}

// collector takes the packets of one result, until it is complete.
type collector struct {
	statement string
	edit      func(string, *Rows)
	packets   []packet
	columns   int // as announced
	eofs      int
}

// maxColumns is MySQL's own limit.
const maxColumns = 4096

// take adds a packet; done tells that it was the last one.
func (c *collector) take(p packet) (done bool) {
	c.packets = append(c.packets, p)
	if len(c.packets) == 1 {
		n, null, _, err := lengthEncoded(p.payload)
		c.columns = int(n)
		return err != nil || null || n > maxColumns || p.kind() == okHeader || p.kind() == errHeader
	}
	if p.kind() == errHeader && c.eofs > 0 {
		return true
	}
	if p.isEOF() && len(c.packets) > 1+c.columns {
		c.eofs++
	}
	return c.eofs == 2
}

// answer gives the packets for the client.
func (c *collector) answer() ([]packet, error) {
	if c.eofs < 2 {
		return c.packets, nil
	}
	head, body, tail := c.packets[:2+c.columns], c.packets[2+c.columns:len(c.packets)-1], c.packets[len(c.packets)-1]
	rows := Rows{}
	for _, p := range head[1 : 1+c.columns] {
		name, err := columnName(p.payload)
		if err != nil {
			return nil, err
		}
		rows.Columns = append(rows.Columns, name)
	}
	for _, p := range body {
		row, err := cells(p.payload, c.columns)
		if err != nil {
			return nil, err
		}
		rows.Cells = append(rows.Cells, row)
	}
	c.edit(c.statement, &rows)
	out := append([]packet(nil), head...)
	for _, row := range rows.Cells {
		out = append(out, packet{payload: encode(row)})
	}
	out = append(out, tail)
	for i := range out {
		out[i].seq = byte(i + 1)
	}
	return out, nil
}

// columnName reads the fifth text of a column's description.
func columnName(b []byte) (string, error) {
	for range 4 {
		_, rest, err := text(b)
		if err != nil {
			return "", fmt.Errorf("a column's description: %w", err)
		}
		b = rest
	}
	name, _, err := text(b)
	if err != nil || name == nil {
		return "", fmt.Errorf("a column's name: %w", errShort)
	}
	return *name, nil
}

func cells(b []byte, n int) ([]*string, error) {
	row := make([]*string, n)
	for i := range row {
		var err error
		if row[i], b, err = text(b); err != nil {
			return nil, fmt.Errorf("a row: %w", err)
		}
	}
	return row, nil
}

func encode(row []*string) []byte {
	var b []byte
	for _, v := range row {
		if v == nil {
			b = append(b, nullCell)
			continue
		}
		b = append(appendLength(b, uint64(len(*v))), *v...)
	}
	return b
}
