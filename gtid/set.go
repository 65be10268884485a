package gtid

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of GTIDs. The zero Set is empty.
//
// Invariants: groups are sorted by (source, tag) and have at least one span; the spans of a group are sorted and
// neither overlap nor touch. No slice is changed once a Set that holds it has been handed out.
type Set struct {
	groups []group
}

// group is all transactions of one (source, tag).
type group struct {
	source UUID
	tag    string
	spans  []span
}

// span is the transaction numbers first..last, both included.
type span struct {
	first, last int64
}

// ParseSet reads MySQL's text form: sources separated by commas, each uuid[:tag]:first[-last][:..]..., white space
// and line breaks anywhere between the parts, spans in any order. An interval whose end is before its start is
// empty, as in MySQL. The empty string is the empty set.
func ParseSet(s string) (Set, error) {
	var out Set
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		source, err := parseSource(part)
		if err != nil {
			return Set{}, err
		}
		out = out.Union(source)
	}
	return out, nil
}

// parseSource reads uuid followed by tags and intervals.
func parseSource(s string) (Set, error) {
	fields := strings.Split(s, ":")
	uuid, err := ParseUUID(strings.TrimSpace(fields[0]))
	if err != nil {
		return Set{}, err
	}
	byTag := map[string][]span{}
	tag, seen := "", false
	for _, f := range fields[1:] {
		f = strings.TrimSpace(f)
		if f != "" && (f[0] < '0' || f[0] > '9') {
			if tag, err = parseTag(f); err != nil {
				return Set{}, err
			}
			seen = false
			continue
		}
		sp, err := parseSpan(f)
		if err != nil {
			return Set{}, fmt.Errorf("%w in %q", err, s)
		}
		byTag[tag], seen = append(byTag[tag], sp), true
	}
	if !seen {
		return Set{}, fmt.Errorf("gtid: %q has no transaction numbers", s)
	}
	var out Set
	for t, spans := range byTag {
		out.groups = appendGroup(out.groups, uuid, t, normalize(spans))
	}
	slices.SortFunc(out.groups, compareGroups)
	return out, nil
}

func parseSpan(s string) (span, error) {
	from, to, isRange := strings.Cut(s, "-")
	first, err := parseNumber(strings.TrimSpace(from))
	if err != nil {
		return span{}, err
	}
	if !isRange {
		return span{first, first}, nil
	}
	last, err := parseNumber(strings.TrimSpace(to))
	if err != nil {
		return span{}, err
	}
	return span{first, last}, nil
}

// normalize sorts spans, drops empty ones and joins those that overlap or touch.
func normalize(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var out []span
	for _, s := range spans {
		out = appendSpan(out, s)
	}
	return out
}

// appendSpan adds s, which starts at or after the start of the last span of dst.
func appendSpan(dst []span, s span) []span {
	if s.last < s.first {
		return dst
	}
	if n := len(dst); n > 0 && s.first <= dst[n-1].last+1 {
		dst[n-1].last = max(dst[n-1].last, s.last)
		return dst
	}
	return append(dst, s)
}

func appendGroup(dst []group, source UUID, tag string, spans []span) []group {
	if len(spans) == 0 {
		return dst
	}
	return append(dst, group{source, tag, spans})
}

func compareGroups(a, b group) int { return compareSource(a, b.source, b.tag) }

func compareSource(g group, source UUID, tag string) int {
	if c := bytes.Compare(g.source[:], source[:]); c != 0 {
		return c
	}
	return strings.Compare(g.tag, tag)
}

// String is MySQL's canonical form, byte for byte what @@gtid_executed prints: sources in order, separated by a comma
// and a line break, the tags of a source behind its untagged intervals.
func (s Set) String() string {
	var b []byte
	for i, g := range s.groups {
		switch {
		case i == 0:
			b = append(b, g.source.String()...)
		case g.source != s.groups[i-1].source:
			b = append(b, ",\n"...)
			b = append(b, g.source.String()...)
		}
		if g.tag != "" {
			b = append(append(b, ':'), g.tag...)
		}
		b = g.appendSpans(b)
	}
	return string(b)
}

func (g group) appendSpans(b []byte) []byte {
	for _, sp := range g.spans {
		b = strconv.AppendInt(append(b, ':'), sp.first, 10)
		if sp.last > sp.first {
			b = strconv.AppendInt(append(b, '-'), sp.last, 10)
		}
	}
	return b
}

// IsZero reports whether the set is empty.
func (s Set) IsZero() bool { return len(s.groups) == 0 }

// Count is the number of GTIDs in the set, at most 1<<64-1.
func (s Set) Count() uint64 {
	var n uint64
	for _, g := range s.groups {
		for _, sp := range g.spans {
			sum := n + uint64(sp.last-sp.first) + 1
			if sum < n {
				return 1<<64 - 1
			}
			n = sum
		}
	}
	return n
}

func (s Set) find(source UUID, tag string) (int, bool) {
	return slices.BinarySearchFunc(s.groups, source, func(g group, u UUID) int { return compareSource(g, u, tag) })
}

// Has reports whether g is in the set. The zero GTID is in no set.
func (s Set) Has(g GTID) bool {
	i, ok := s.find(g.Source, g.Tag)
	return ok && covers(s.groups[i].spans, span{g.Number, g.Number})
}

// covers reports whether one of spans holds all of sp.
func covers(spans []span, sp span) bool {
	i, _ := slices.BinarySearchFunc(spans, sp.first, func(s span, n int64) int { return cmp.Compare(s.last, n) })
	return i < len(spans) && spans[i].first <= sp.first && sp.last <= spans[i].last
}

// Add returns the set with g in it; adding the zero GTID changes nothing. The usual case, the next number of a
// known source, costs two small allocations whatever the numbers are.
func (s Set) Add(g GTID) Set {
	if g.IsZero() || s.Has(g) {
		return s
	}
	i, ok := s.find(g.Source, g.Tag)
	if !ok {
		one := group{g.Source, g.Tag, []span{{g.Number, g.Number}}}
		return Set{slices.Concat(s.groups[:i], []group{one}, s.groups[i:])}
	}
	groups := slices.Clone(s.groups)
	groups[i].spans = addNumber(groups[i].spans, g.Number)
	return Set{groups}
}

// addNumber returns a copy of spans with n in it; n is in none of them.
func addNumber(spans []span, n int64) []span {
	i, _ := slices.BinarySearchFunc(spans, n, func(s span, n int64) int { return cmp.Compare(s.first, n) })
	joinsLeft := i > 0 && spans[i-1].last+1 == n
	joinsRight := i < len(spans) && spans[i].first == n+1
	out := make([]span, 0, len(spans)+1)
	switch {
	case joinsLeft && joinsRight:
		out = append(append(out, spans[:i]...), spans[i+1:]...)
		out[i-1].last = spans[i].last
	case joinsLeft:
		out = append(out, spans...)
		out[i-1].last = n
	case joinsRight:
		out = append(out, spans...)
		out[i].first = n
	default:
		out = append(append(append(out, spans[:i]...), span{n, n}), spans[i:]...)
	}
	return out
}

// Contains reports whether every GTID of t is in s.
func (s Set) Contains(t Set) bool {
	for _, g := range t.groups {
		i, ok := s.find(g.source, g.tag)
		if !ok {
			return false
		}
		for _, sp := range g.spans {
			if !covers(s.groups[i].spans, sp) {
				return false
			}
		}
	}
	return true
}

// Equal reports whether both sets hold the same GTIDs.
func (s Set) Equal(t Set) bool {
	return slices.EqualFunc(s.groups, t.groups, func(a, b group) bool {
		return a.source == b.source && a.tag == b.tag && slices.Equal(a.spans, b.spans)
	})
}

// Union returns the GTIDs that are in s, in t, or in both.
func (s Set) Union(t Set) Set {
	return s.merge(t, func(a, b []span) []span { return normalize(slices.Concat(a, b)) })
}

// Subtract returns the GTIDs of s that are not in t.
func (s Set) Subtract(t Set) Set { return s.merge(t, subtractSpans) }

// merge walks the groups of both sets in order and keeps what combine makes of their spans.
func (s Set) merge(t Set, combine func(a, b []span) []span) Set {
	var out []group
	a, b := s.groups, t.groups
	for len(a) > 0 || len(b) > 0 {
		order := -1
		switch {
		case len(a) == 0:
			order = 1
		case len(b) > 0:
			order = compareGroups(a[0], b[0])
		}
		switch {
		case order < 0:
			out = appendGroup(out, a[0].source, a[0].tag, combine(a[0].spans, nil))
			a = a[1:]
		case order > 0:
			out = appendGroup(out, b[0].source, b[0].tag, combine(nil, b[0].spans))
			b = b[1:]
		default:
			out = appendGroup(out, a[0].source, a[0].tag, combine(a[0].spans, b[0].spans))
			a, b = a[1:], b[1:]
		}
	}
	return Set{out}
}

func subtractSpans(a, b []span) []span {
	var out []span
	for _, sp := range a {
		for _, cut := range b {
			if cut.last < sp.first || sp.last < cut.first {
				continue
			}
			out = appendSpan(out, span{sp.first, cut.first - 1})
			sp.first = cut.last + 1
		}
		out = appendSpan(out, sp)
	}
	return out
}

// hasTags reports whether a GTID of the set has a tag.
func (s Set) hasTags() bool {
	return slices.ContainsFunc(s.groups, func(g group) bool { return g.tag != "" })
}

// AppendMySQL appends the form in which MySQL itself encodes a set: in COM_BINLOG_DUMP_GTID and in a
// PREVIOUS_GTIDS event (mysql-server, Gtid_set::encode). The form with tags, which servers before 8.3 do not know,
// is used only if the set has tags.
func (s Set) AppendMySQL(dst []byte) []byte {
	n := uint64(len(s.groups))
	if !s.hasTags() {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	} else {
		// Tagged: byte 7 and byte 0 hold the format (1), bytes 1..6 the number of groups.
		dst = binary.LittleEndian.AppendUint64(dst, n<<8|1|1<<56)
	}
	for _, g := range s.groups {
		dst = append(dst, g.source[:]...)
		if s.hasTags() {
			dst = append(append(dst, byte(len(g.tag)<<1)), g.tag...)
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(len(g.spans)))
		for _, sp := range g.spans {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(sp.first))
			dst = binary.LittleEndian.AppendUint64(dst, uint64(sp.last)+1)
		}
	}
	return dst
}
