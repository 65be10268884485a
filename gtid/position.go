package gtid

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Position is a place in a server's binlog: the file's name and the byte offset in it. The zero Position is unset.
type Position struct {
	File   string
	Offset uint64
}

// ParsePosition reads the form that String writes: file:offset.
func ParsePosition(s string) (Position, error) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return Position{}, fmt.Errorf("gtid: %q is not a binlog position of the form file:offset", s)
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 64)
	if err != nil {
		return Position{}, fmt.Errorf("gtid: %q is not a binlog position of the form file:offset", s)
	}
	return Position{s[:i], n}, nil
}

// IsZero reports whether p is unset.
func (p Position) IsZero() bool { return p == Position{} }

// String is file:offset; the zero Position prints as the empty string.
func (p Position) String() string {
	if p.IsZero() {
		return ""
	}
	return p.File + ":" + strconv.FormatUint(p.Offset, 10)
}

// Series splits the file's name into its base and its number: binlog.000042 is ("binlog", 42). ok is false if the
// name has no number.
func (p Position) Series() (base string, number uint64, ok bool) {
	i := strings.LastIndexByte(p.File, '.')
	if i < 0 {
		return p.File, 0, false
	}
	n, err := strconv.ParseUint(p.File[i+1:], 10, 64)
	if err != nil {
		return p.File, 0, false
	}
	return p.File[:i], n, true
}

// SameSeries reports whether both files bear the same base name, without which Compare says nothing about time.
func (p Position) SameSeries(q Position) bool {
	a, _, _ := p.Series()
	b, _, _ := q.Series()
	return a == b
}

// Compare orders positions of one server as the server wrote them: by the file's number (binlog.999999 comes before
// binlog.1000000), then by offset. The zero Position comes first.
func (p Position) Compare(q Position) int {
	if p.File == q.File {
		return cmp.Compare(p.Offset, q.Offset)
	}
	baseP, numP, _ := p.Series()
	baseQ, numQ, _ := q.Series()
	if c := strings.Compare(baseP, baseQ); c != 0 {
		return c
	}
	if c := cmp.Compare(numP, numQ); c != 0 {
		return c
	}
	return strings.Compare(p.File, q.File)
}

// Point is where a commit stands in the source's history: every transaction up to it is in, none after it. With
// gtid_mode = OFF the set is empty and the position alone counts; otherwise the set counts and the position tells
// where the server that was followed has it.
type Point struct {
	Set      Set
	Position Position
}

// IsZero reports whether p is unset.
func (p Point) IsZero() bool { return p.Set.IsZero() && p.Position.IsZero() }

// Equal reports whether both points have the same set and position.
func (p Point) Equal(q Point) bool { return p.Position == q.Position && p.Set.Equal(q.Set) }

// String shows the set, if any, and the position.
func (p Point) String() string {
	switch {
	case p.Set.IsZero():
		return p.Position.String()
	case p.Position.IsZero():
		return p.Set.String()
	}
	return p.Set.String() + " (" + p.Position.String() + ")"
}

// Identity is what one transaction looks like on its source, kept to recognise that transaction later. A source that
// was reset or restored can hold another transaction under the same GTID or at the same offset; it can not have
// committed it in the same microsecond to a file created in the same second.
type Identity struct {
	Source      UUID     // server_uuid of the server it was read from
	GTID        GTID     // zero with gtid_mode = OFF
	Start       Position // of the transaction's first event
	Committed   uint64   // original_commit_timestamp, microseconds since 1970
	FileCreated uint32   // when the binlog file was created, seconds since 1970
}

// IsZero reports whether i describes no transaction.
func (i Identity) IsZero() bool { return i == Identity{} }
