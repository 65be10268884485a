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

// ASCII is what makes the sort keys of texts that have ASCII characters only, one weight a character.
type ASCII struct {
	// Unit is the number of bytes of a weight, 1 or 2.
	Unit int
	// Weights are the characters' weights. Characters of weight 0 add nothing to a key of two-byte weights.
	Weights [128]uint16
	// Pad tells that the key is marked and ended as SortKey says, with Space as the weight of a space.
	Pad   bool
	Space uint16
}

// ASCII gives the table of the collation's weights for ASCII characters. ok is false when the keys of such texts cannot
// be made one character at a time.
func (c *Collation) ASCII() (t ASCII, ok bool) {
	c.load()
	if !c.plain {
		return t, false
	}
	t.Unit, t.Pad = len(c.space), c.pad
	for i := range t.Weights {
		for _, b := range c.appendWeights(nil, []byte{byte(i)}) {
			t.Weights[i] = t.Weights[i]<<8 | uint16(b)
		}
	}
	t.Space = t.Weights[' ']
	return t, true
}
