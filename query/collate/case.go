package collate

import (
	"sort"
	"unicode"
	"unicode/utf8"
)

// Upper appends what UPPER() makes of the text.
func (c *Collation) Upper(dst, text []byte) []byte {
	return c.mapCase(dst, text, unicode.ToUpper, c.letterCase().upper)
}

// Lower appends what LOWER() makes of the text.
func (c *Collation) Lower(dst, text []byte) []byte {
	return c.mapCase(dst, text, unicode.ToLower, c.letterCase().lower)
}

// mapCase maps character by character. MySQL does it in place, in the bytes of the text: a letter whose other case is
// longer overwrites what follows it, which then is no character any more and ends the result.
func (c *Collation) mapCase(dst, text []byte, other func(rune) rune, unmapped ranges) []byte {
	start := len(dst)
	dst = append(dst, text...)
	if c.charset == "binary" {
		return dst
	}
	buf := dst[start:]
	out := 0
	for in := 0; in < len(buf); {
		r, n := utf8.DecodeRune(buf[in:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		in += n
		if !unmapped.has(r) {
			r = c.special(r, other(r))
		}
		if out+utf8.RuneLen(r) > len(buf) {
			break
		}
		out += utf8.EncodeRune(buf[out:], r)
	}
	return dst[:start+out]
}

// special puts right the one pair of letters that the older tables map in another way than Unicode does today.
func (c *Collation) special(from, to rune) rune {
	if from == 'ϲ' && to != from && c.letterCase() == &caseUnicode3 {
		return 'Σ'
	}
	return to
}

// ranges are pairs of first and last code points, in order.
type ranges [][2]rune

func (rs ranges) has(r rune) bool {
	if len(rs) == 0 || r < rs[0][0] {
		return false
	}
	i := sort.Search(len(rs), func(i int) bool { return rs[i][1] >= r })
	return i < len(rs) && rs[i][0] <= r
}

// letterCase is a version of MySQL's tables of letter case, as the letters that they leave alone though Unicode, as Go
// has it, has another case of them.
type letterCase struct{ upper, lower ranges }

func (c *Collation) letterCase() *letterCase {
	switch {
	case c.charset == "latin1":
		return &caseLatin1
	case c.charset == "ascii":
		return &caseASCII
	case c.id >= 255 && c.id <= 323: // the collations of Unicode 9.0
		return &caseUnicode9
	case c.id == 246:
		return &caseUnicode52
	default:
		return &caseUnicode3
	}
}

var (
	caseASCII  = letterCase{upper: ranges{{0x80, unicode.MaxRune}}, lower: ranges{{0x80, unicode.MaxRune}}}
	caseLatin1 = letterCase{upper: ranges{{0xB5, 0xB5}, {0xFF, unicode.MaxRune}}, lower: ranges{{0x100, unicode.MaxRune}}}

	caseUnicode9 = letterCase{
		upper: ranges{{0x0282, 0x0282}, {0x10D0, 0x10FF}, {0x1D8E, 0x1D8E}, {0x2C5F, 0x2C5F}, {0xA794, 0xA794}, {0xA7B9, 0xA7F6}, {0x10597, 0x105BC}, {0x16E60, 0x16E7F}},
		lower: ranges{{0x1C90, 0x1CBF}, {0x2C2F, 0x2C2F}, {0xA7B8, 0xA7F5}, {0x10570, 0x10595}, {0x16E40, 0x16E5F}},
	}
	caseUnicode52 = letterCase{
		upper: ranges{
			{0x025C, 0x025C}, {0x0261, 0x0261}, {0x0265, 0x0266}, {0x026A, 0x026A}, {0x026C, 0x026C}, {0x0282, 0x0282}, {0x0287, 0x0287}, {0x029D, 0x029E},
			{0x03F3, 0x03F3}, {0x0527, 0x052F}, {0x10D0, 0x1C88}, {0x1D8E, 0x1D8E}, {0x2C5F, 0x2C5F}, {0x2CF3, 0x2CF3}, {0x2D27, 0x2D2D}, {0xA661, 0xA661},
			{0xA699, 0xA69B}, {0xA791, 0xABBF}, {0x104D8, 0x1E943},
		},
		lower: ranges{
			{0x037F, 0x037F}, {0x0526, 0x052E}, {0x10C7, 0x1CBF}, {0x2C2F, 0x2C2F}, {0x2CF2, 0x2CF2}, {0xA660, 0xA660}, {0xA698, 0xA69A}, {0xA78D, 0xA7F5},
			{0x104B0, 0x1E921},
		},
	}
	caseUnicode3 = letterCase{
		upper: ranges{
			{0x0180, 0x0180}, {0x019A, 0x019E}, {0x023C, 0x0252}, {0x025C, 0x025C}, {0x0261, 0x0261}, {0x0265, 0x0266}, {0x026A, 0x026C}, {0x0271, 0x0271},
			{0x027D, 0x027D}, {0x0282, 0x0282}, {0x0287, 0x0287}, {0x0289, 0x0289}, {0x028C, 0x028C}, {0x029D, 0x029E}, {0x0371, 0x037D}, {0x03D7, 0x03D9},
			{0x03F3, 0x03FB}, {0x048B, 0x048B}, {0x04C6, 0x04C6}, {0x04CA, 0x04CA}, {0x04CE, 0x04CF}, {0x04F7, 0x04F7}, {0x04FB, 0x052F}, {0x10D0, 0x1D8E},
			{0x1EFB, 0x1EFF}, {0x214E, 0x214E}, {0x2184, 0x2184}, {0x2C30, 0xABBF}, {0x10428, 0x1E943},
		},
		lower: ranges{
			{0x0220, 0x0220}, {0x023A, 0x037F}, {0x03CF, 0x03D8}, {0x03F4, 0x03FF}, {0x048A, 0x048A}, {0x04C0, 0x04C0}, {0x04C5, 0x04C5}, {0x04C9, 0x04C9},
			{0x04CD, 0x04CD}, {0x04F6, 0x04F6}, {0x04FA, 0x052E}, {0x10A0, 0x1CBF}, {0x1E9E, 0x1E9E}, {0x1EFA, 0x1EFE}, {0x2132, 0x2132}, {0x2183, 0x2183},
			{0x2C00, 0xA7F5}, {0x10400, 0x1E921},
		},
	}
)
