package collate

import "bytes"

// SortKey appends the sort key of a text to dst. Keys compare by their bytes as MySQL compares the texts, and are equal
// when MySQL finds the texts equal. Keys of different collations do not compare.
//
// For NO PAD collations the key is the text's weights. For PAD SPACE collations MySQL compares as if the shorter
// text went on with spaces, so that 'a' = 'a ' and 'a\t' < 'a' < 'ab'. The key then ends in an end mark, and what may
// stand against it is marked too: with _ for the weight of a space,
//
//	_ 01   begins a run of spaces followed by a weight below _
//	_ 02   is the end, trailing spaces left out
//	_ 03   begins a run of spaces followed by a weight above _
//
// The other spaces of a run are a bare _. Weights have a fixed size, so that marks are never compared with weights.
func (c *Collation) SortKey(dst, text []byte) []byte {
	c.load()
	if c.Identity() {
		return append(dst, text...)
	}
	if !c.pad {
		return c.appendWeights(dst, text)
	}
	var room [256]byte
	return c.appendPadded(dst, c.appendWeights(room[:0], text))
}

const (
	runBelow = 1
	end      = 2
	runAbove = 3
)

func (c *Collation) appendPadded(dst, w []byte) []byte {
	n := len(c.space)
	for bytes.HasSuffix(w, c.space) {
		w = w[:len(w)-n]
	}
	inRun := false
	for i := 0; i < len(w); i += n {
		unit := w[i:min(i+n, len(w))]
		dst = append(dst, unit...)
		isSpace := bytes.Equal(unit, c.space)
		if isSpace && !inRun {
			dst = append(dst, c.runMark(w[i:]))
		}
		inRun = isSpace
	}
	return append(append(dst, c.space...), end)
}

// runMark tells how the weight after a run of spaces, which is never the last, compares with a space.
func (c *Collation) runMark(w []byte) byte {
	for bytes.HasPrefix(w, c.space) {
		w = w[len(c.space):]
	}
	if bytes.Compare(w[:min(len(w), len(c.space))], c.space) < 0 {
		return runBelow
	}
	return runAbove
}

// ASCII is what it takes to handle texts of ASCII characters only, one character at a time, without this package.
type ASCII struct {
	// Keys tells that sort keys of such texts can be made from Weights. Where it is false the key is more than the weights
	// of the characters one after the other.
	Keys bool
	// AnyByte tells that the weights of all texts are their bytes.
	AnyByte bool
	// Unit is the number of bytes of a weight, 1 or 2.
	Unit int
	// Weights are the characters' weights; NoWeight for a character that adds nothing to a key.
	Weights [128]uint16
	// Pad tells that the key is marked and ended as SortKey says, with Space as the weight of a space.
	Pad   bool
	Space uint16
	// Fold gives for each character the least one that LIKE takes for equal to it.
	Fold [128]uint8
}

// NoWeight is no character's weight.
const NoWeight = 0xFFFF

// ASCII gives the tables of the collation.
func (c *Collation) ASCII() ASCII {
	c.load()
	t := ASCII{Keys: c.plain, AnyByte: c.unit == 0 && c.charset != "latin1", Unit: len(c.space), Pad: c.pad}
	for i := range t.Weights {
		t.Weights[i] = c.weightASCII(byte(i))
		for c.classOf(rune(t.Fold[i])) != c.classOf(rune(i)) {
			t.Fold[i]++
		}
	}
	t.Space = t.Weights[' ']
	return t
}

func (c *Collation) weightASCII(b byte) uint16 {
	switch w := c.appendWeights(nil, []byte{b}); len(w) {
	case 1:
		return uint16(w[0])
	case 2:
		return uint16(w[0])<<8 | uint16(w[1])
	default:
		return NoWeight
	}
}
