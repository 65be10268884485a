package binlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
)

// Operations of a difference of a JSON document (mysql-server, sql/json_diff.h). A column of a partial update has any
// number of them, one behind the other: the operation, a path, and but for a removal the binary form of a value, path
// and value with a length-encoded length in front. Each applies to what the ones before it made.
const (
	diffReplace = 0
	diffInsert  = 1
	diffRemove  = 2
)

var errDiff = errors.New("a difference of a JSON document does not fit the document")

// AppendJSONDiff appends what a JSON document becomes by the differences of a partial update. text is the document as the
// server prints it, and so is the result: what is not touched stays byte for byte. It fails if the differences are
// malformed, or were made for another document.
func AppendJSONDiff(dst, text, diffs []byte) ([]byte, error) {
	c := cursor{b: diffs}
	for len(c.b) > 0 {
		op := c.u8()
		path := c.take(c.length())
		var value []byte
		if op != diffRemove {
			value = c.take(c.length())
		}
		if c.err != nil {
			return nil, c.err
		}
		legs, err := parseJSONPath(path)
		if err != nil {
			return nil, err
		}
		if text, err = applyDiff(text, op, legs, value); err != nil {
			return nil, err
		}
	}
	return append(dst, text...), nil
}

// applyDiff gives a new text.
func applyDiff(text []byte, op byte, legs []jsonLeg, value []byte) ([]byte, error) {
	switch op {
	case diffReplace:
		at, err := findJSON(text, legs)
		if err != nil {
			return nil, err
		}
		return spliceJSON(text, at.start, at.end, "", value, "")
	case diffInsert:
		return insertJSON(text, legs, value)
	case diffRemove:
		return removeJSON(text, legs)
	}
	return nil, errDiff
}

// spliceJSON puts a binary value, with something in front and behind, in place of text[from:to].
func spliceJSON(text []byte, from, to int, before string, value []byte, behind string) ([]byte, error) {
	out := make([]byte, 0, len(text)+len(value)+len(before)+len(behind))
	out = append(append(out, text[:from]...), before...)
	out, err := appendJSON(out, value)
	if err != nil {
		return nil, err
	}
	return append(append(out, behind...), text[to:]...), nil
}

// insertJSON adds a member or an element, which moves those behind it.
func insertJSON(text []byte, legs []jsonLeg, value []byte) ([]byte, error) {
	if len(legs) == 0 {
		return nil, errDiff
	}
	parent, err := findJSON(text, legs[:len(legs)-1])
	if err != nil {
		return nil, err
	}
	leg := legs[len(legs)-1]
	items, err := openJSONItems(text, parent.start)
	if err != nil || items.object != leg.isKey {
		return nil, errors.Join(err, errDiff)
	}
	if leg.fromEnd {
		if leg, err = items.fromStart(leg); err != nil {
			return nil, err
		}
	}
	key := ""
	if leg.isKey {
		w := jsonWriter{budget: len(leg.key)}
		w.quoted([]byte(leg.key))
		if w.err != nil {
			return nil, w.err
		}
		key = string(w.out) + ": "
	}
	for items.next() {
		order, err := items.compare(leg)
		if err != nil || order == 0 && leg.isKey {
			return nil, errors.Join(err, errDiff)
		}
		if order >= 0 {
			return spliceJSON(text, items.item, items.item, key, value, ", ")
		}
	}
	if items.err != nil {
		return nil, items.err
	}
	if items.n > 0 {
		key = ", " + key
	}
	return spliceJSON(text, items.at, items.at, key, value, "")
}

func removeJSON(text []byte, legs []jsonLeg) ([]byte, error) {
	if len(legs) == 0 {
		return nil, errDiff
	}
	at, err := findJSON(text, legs)
	if err != nil {
		return nil, err
	}
	from, to := at.item, at.end
	switch {
	case bytes.HasPrefix(text[to:], []byte(", ")):
		to += len(", ")
	case bytes.HasSuffix(text[:from], []byte(", ")):
		from -= len(", ")
	}
	return append(append(make([]byte, 0, len(text)), text[:from]...), text[to:]...), nil
}

// jsonLeg is a step of a path: into a member of an object, or an element of an array.
type jsonLeg struct {
	isKey   bool
	key     string
	index   int
	fromEnd bool // index counts from the last element backwards
}

// parseJSONPath reads a path without wildcards, as differences have them: $.a."b c"[3].
func parseJSONPath(path []byte) ([]jsonLeg, error) {
	rest, ok := bytes.CutPrefix(path, []byte("$"))
	if !ok {
		return nil, errDiff
	}
	var legs []jsonLeg
	for len(rest) > 0 {
		var leg jsonLeg
		var err error
		switch rest[0] {
		case '.':
			leg, rest, err = parseJSONKey(rest[1:])
		case '[':
			leg, rest, err = parseJSONIndex(rest[1:])
		default:
			err = errDiff
		}
		if err != nil {
			return nil, err
		}
		legs = append(legs, leg)
	}
	return legs, nil
}

func parseJSONKey(b []byte) (jsonLeg, []byte, error) {
	if len(b) == 0 {
		return jsonLeg{}, nil, errDiff
	}
	if b[0] != '"' {
		n := bytes.IndexAny(b, ".[")
		if n < 0 {
			n = len(b)
		}
		return jsonLeg{isKey: true, key: string(b[:n])}, b[n:], nil
	}
	n, ok := skipJSONString(b, 0)
	if !ok {
		return jsonLeg{}, nil, errDiff
	}
	key, err := unquoteJSON(b[:n])
	return jsonLeg{isKey: true, key: string(key)}, b[n:], err
}

func parseJSONIndex(b []byte) (jsonLeg, []byte, error) {
	n := bytes.IndexByte(b, ']')
	if n < 0 {
		return jsonLeg{}, nil, errDiff
	}
	text, leg := string(b[:n]), jsonLeg{}
	if rest, ok := bytes.CutPrefix(b[:n], []byte("last")); ok {
		leg.fromEnd, text = true, string(bytes.TrimPrefix(rest, []byte("-")))
		if text == "" {
			text = "0"
		}
	}
	index, err := strconv.ParseUint(text, 10, 31)
	leg.index = int(index)
	return leg, b[n+1:], err
}

// jsonPlace is where a value stands in a text. item is where its member starts, with the key; the value itself elsewhere.
type jsonPlace struct{ item, start, end int }

func findJSON(text []byte, legs []jsonLeg) (jsonPlace, error) {
	p := jsonPlace{end: len(text)}
	for _, leg := range legs {
		items, err := openJSONItems(text, p.start)
		if err != nil {
			return p, err
		}
		if leg.fromEnd {
			if leg, err = items.fromStart(leg); err != nil {
				return p, err
			}
		}
		if p, err = items.find(leg); err != nil {
			return p, err
		}
	}
	return p, nil
}

// jsonItems goes through the members of an object or the elements of an array.
type jsonItems struct {
	text        []byte
	object      bool
	at          int // behind the last item; in the end where the bracket closes
	n           int // items passed, the present one too
	item, value int // where the present item, and its value, start
	err         error
}

func openJSONItems(text []byte, start int) (*jsonItems, error) {
	if start >= len(text) || text[start] != '{' && text[start] != '[' {
		return nil, errDiff
	}
	return &jsonItems{text: text, object: text[start] == '{', at: start + 1}, nil
}

func (x *jsonItems) fail() bool {
	x.err = errDiff
	return false
}

// next goes to the next item. It is false at the end and on an error.
func (x *jsonItems) next() bool {
	if x.err != nil || x.at >= len(x.text) {
		return x.fail()
	}
	if c := x.text[x.at]; c == ']' || c == '}' {
		return false
	}
	if x.n > 0 {
		if !bytes.HasPrefix(x.text[x.at:], []byte(", ")) {
			return x.fail()
		}
		x.at += len(", ")
	}
	x.n++
	x.item, x.value = x.at, x.at
	if x.object {
		end, ok := skipJSONString(x.text, x.at)
		if !ok || !bytes.HasPrefix(x.text[end:], []byte(": ")) {
			return x.fail()
		}
		x.value = end + len(": ")
	}
	end, ok := skipJSON(x.text, x.value)
	if !ok {
		return x.fail()
	}
	x.at = end
	return true
}

// compare tells where the present item stands relative to a leg: members go by the length of their keys, then by bytes.
func (x *jsonItems) compare(leg jsonLeg) (int, error) {
	if !x.object {
		return cmp.Compare(x.n-1, leg.index), nil
	}
	key, err := unquoteJSON(x.text[x.item : x.value-len(": ")])
	if err != nil {
		return 0, err
	}
	return cmp.Or(cmp.Compare(len(key), len(leg.key)), cmp.Compare(string(key), leg.key)), nil
}

func (x *jsonItems) find(leg jsonLeg) (jsonPlace, error) {
	if x.object != leg.isKey {
		return jsonPlace{}, errDiff
	}
	for x.next() {
		order, err := x.compare(leg)
		if err != nil {
			return jsonPlace{}, err
		}
		if order == 0 {
			return jsonPlace{x.item, x.value, x.at}, nil
		}
	}
	return jsonPlace{}, errDiff
}

// fromStart turns an index that counts from the end around. One in front of the first element is the first, as for the
// server ([last] of an empty array is where its first element comes).
func (x *jsonItems) fromStart(leg jsonLeg) (jsonLeg, error) {
	count := *x
	for count.next() {
	}
	return jsonLeg{index: max(count.n-1-leg.index, 0)}, count.err
}

// skipJSON gives the place behind the value that starts at i.
func skipJSON(text []byte, i int) (end int, ok bool) {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			if i, ok = skipJSONString(text, i); !ok {
				return 0, false
			}
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ':
			i++
			continue
		default:
			n := bytes.IndexAny(text[i:], ",]}")
			if n < 0 {
				n = len(text) - i
			}
			i += n
		}
		if depth <= 0 {
			return i, depth == 0
		}
	}
	return 0, false
}

// skipJSONString gives the place behind the string that starts at i.
func skipJSONString(text []byte, i int) (end int, ok bool) {
	if i >= len(text) || text[i] != '"' {
		return 0, false
	}
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return 0, false
}

func unquoteJSON(quoted []byte) ([]byte, error) {
	inner := quoted[1 : len(quoted)-1]
	if !bytes.ContainsRune(inner, '\\') {
		return inner, nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return nil, errDiff
	}
	return []byte(s), nil
}
