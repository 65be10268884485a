package gtid

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// formatVersion is the first byte of every binary form.
const formatVersion = 1

// ErrDecode is wrapped by every error of the Decode functions.
var ErrDecode = errors.New("gtid: damaged binary form")

// AppendBinary appends the compact binary form of the set.
func (s Set) AppendBinary(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, formatVersion), uint64(len(s.groups)))
	for _, g := range s.groups {
		dst = appendString(append(dst, g.source[:]...), g.tag)
		dst = binary.AppendUvarint(dst, uint64(len(g.spans)))
		prev := int64(-1)
		for _, sp := range g.spans {
			// Spans never touch, so the gap to the previous one is at least 2 and the first number at least 1.
			dst = binary.AppendUvarint(dst, uint64(sp.first-prev-2))
			dst = binary.AppendUvarint(dst, uint64(sp.last-sp.first))
			prev = sp.last
		}
	}
	return dst
}

// DecodeSet reads what Set.AppendBinary wrote and returns what follows it.
func DecodeSet(b []byte) (Set, []byte, error) {
	r := reader{b: b}
	r.version()
	s := r.set()
	return s, r.b, r.err
}

// AppendBinary appends the binary form of the position.
func (p Position) AppendBinary(dst []byte) []byte {
	dst = appendString(append(dst, formatVersion), p.File)
	return binary.AppendUvarint(dst, p.Offset)
}

// DecodePosition reads what Position.AppendBinary wrote and returns what follows it.
func DecodePosition(b []byte) (Position, []byte, error) {
	r := reader{b: b}
	r.version()
	p := r.position()
	return p, r.b, r.err
}

// AppendBinary appends the binary form of the point.
func (p Point) AppendBinary(dst []byte) []byte {
	return p.Position.AppendBinary(p.Set.AppendBinary(dst))
}

// DecodePoint reads what Point.AppendBinary wrote and returns what follows it.
func DecodePoint(b []byte) (Point, []byte, error) {
	set, b, err := DecodeSet(b)
	if err != nil {
		return Point{}, nil, err
	}
	pos, b, err := DecodePosition(b)
	return Point{set, pos}, b, err
}

// AppendBinary appends the binary form of the identity.
func (i Identity) AppendBinary(dst []byte) []byte {
	dst = append(append(dst, formatVersion), i.Source[:]...)
	dst = append(dst, i.GTID.Source[:]...)
	dst = binary.AppendUvarint(appendString(dst, i.GTID.Tag), uint64(i.GTID.Number))
	dst = binary.AppendUvarint(appendString(dst, i.Start.File), i.Start.Offset)
	dst = binary.AppendUvarint(dst, i.Committed)
	return binary.AppendUvarint(dst, uint64(i.FileCreated))
}

// DecodeIdentity reads what Identity.AppendBinary wrote and returns what follows it.
func DecodeIdentity(b []byte) (Identity, []byte, error) {
	r := reader{b: b}
	r.version()
	i := Identity{Source: r.uuid(), GTID: r.gtid(), Start: r.position(), Committed: r.uvarint()}
	created := r.uvarint()
	if created > 1<<32-1 {
		r.fail("file creation time %d", created)
	}
	i.FileCreated = uint32(created)
	return i, r.b, r.err
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// reader takes values from b. After the first fault it returns zero values and keeps the error.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrDecode, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

func (r *reader) version() {
	if v := r.take(1); len(v) == 1 && v[0] != formatVersion {
		r.fail("version %d is not known to this release", v[0])
	}
}

func (r *reader) take(n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.fail("ends early")
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("bad number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string { return string(r.take(r.uvarint())) }

func (r *reader) uuid() (u UUID) {
	copy(u[:], r.take(uint64(len(u))))
	return u
}

func (r *reader) tag() string {
	t := r.string()
	if !validTag(t) {
		r.fail("bad tag")
		return ""
	}
	return t
}

func (r *reader) gtid() GTID {
	g := GTID{Source: r.uuid(), Tag: r.tag()}
	n := r.uvarint()
	if n > MaxNumber || n == 0 && g != (GTID{}) {
		r.fail("transaction number %d", n)
		return GTID{}
	}
	g.Number = int64(n)
	return g
}

func (r *reader) position() Position { return Position{r.string(), r.uvarint()} }

func (r *reader) set() Set {
	var s Set
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		g := group{source: r.uuid(), tag: r.tag(), spans: r.spans()}
		if len(s.groups) > 0 && compareGroups(s.groups[len(s.groups)-1], g) >= 0 {
			r.fail("sources out of order")
		}
		s.groups = append(s.groups, g)
	}
	if r.err != nil {
		return Set{}
	}
	return s
}

func (r *reader) spans() []span {
	n := r.uvarint()
	if n == 0 {
		r.fail("source without numbers")
	}
	var out []span
	prev := int64(-1)
	for ; n > 0 && r.err == nil; n-- {
		gap, length := r.uvarint(), r.uvarint()
		room := uint64(MaxNumber - prev - 2)
		if prev > MaxNumber-2 || gap > room || length > room-gap {
			r.fail("transaction number beyond %d", int64(MaxNumber))
			break
		}
		first := prev + 2 + int64(gap)
		out = append(out, span{first, first + int64(length)})
		prev = first + int64(length)
	}
	return out
}

// DecodeMySQL reads what Set.AppendMySQL wrote, and a server: the whole of b is one set.
func DecodeMySQL(b []byte) (Set, error) {
	r := reader{b: b}
	n := r.u64()
	tagged := n>>56 == 1
	if tagged {
		n = n >> 8 & (1<<48 - 1)
	}
	var s Set
	for ; n > 0 && r.err == nil; n-- {
		g := group{source: r.uuid()}
		if tagged {
			g.tag = r.mysqlTag()
		}
		if g.spans = r.mysqlSpans(); r.err == nil && len(s.groups) > 0 && compareGroups(s.groups[len(s.groups)-1], g) >= 0 {
			r.fail("sources out of order")
		}
		s.groups = append(s.groups, g)
	}
	if len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return Set{}, r.err
	}
	return s, nil
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// mysqlTag reads a tag behind its length, which is doubled.
func (r *reader) mysqlTag() string {
	b := r.take(1)
	if b == nil {
		return ""
	}
	t := string(r.take(uint64(b[0] >> 1)))
	if b[0]&1 != 0 || !validTag(t) {
		r.fail("bad tag")
	}
	return t
}

// mysqlSpans reads intervals whose ends are not in them.
func (r *reader) mysqlSpans() []span {
	n := r.u64()
	if r.err == nil && (n == 0 || n > uint64(len(r.b))/16) {
		r.fail("source with %d intervals", n)
	}
	var out []span
	for last := int64(0); n > 0 && r.err == nil; n-- {
		first, end := r.u64(), r.u64()
		if first < uint64(last)+1 || len(out) > 0 && first < uint64(last)+2 || end <= first || end > MaxNumber+1 {
			r.fail("interval %d-%d", first, end)
			break
		}
		last = int64(end - 1)
		out = append(out, span{int64(first), last})
	}
	return out
}
