package charset

import (
	"bytes"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed tables/*.zst
var tableFiles embed.FS

// tableCharsets are the character sets that have a table, with the bytes of their longest character.
var tableCharsets = map[string]int{
	"armscii8": 1, "cp1250": 1, "cp1251": 1, "cp1256": 1, "cp1257": 1, "cp850": 1, "cp852": 1, "cp866": 1, "dec8": 1, "geostd8": 1, "greek": 1, "hebrew": 1,
	"hp8": 1, "keybcs2": 1, "koi8r": 1, "koi8u": 1, "latin1": 1, "latin2": 1, "latin5": 1, "latin7": 1, "macce": 1, "macroman": 1, "swe7": 1, "tis620": 1,
	"big5": 2, "cp932": 2, "euckr": 2, "gb2312": 2, "gbk": 2, "sjis": 2, "eucjpms": 3, "ujis": 3, "gb18030": 4,
}

// tableCodec is a character set by its table, which is read when it is first needed.
type tableCodec struct {
	name string
	once sync.Once
	t    *table
}

func (c *tableCodec) table() *table {
	c.once.Do(func() {
		t, err := readTable(c.name)
		if err != nil {
			panic(fmt.Sprintf("the program's own table of character set %s: %v", c.name, err))
		}
		c.t = t
	})
	return c.t
}

func (c *tableCodec) decode(b []byte) (rune, int)              { return c.table().decode(b) }
func (c *tableCodec) encode(dst []byte, r rune) ([]byte, bool) { return c.table().encode(dst, r) }

// pair is one code and its character.
type pair struct {
	code uint32 // the bytes of the code, the first one the most significant
	r    rune
}

// table is a character set's mapping. Codes of one to three bytes and the characters of the basic plane are in the arrays;
// gb18030's codes of four bytes follow a rule beyond the basic plane.
type table struct {
	one   [256]int32        // -1: no character
	pages [256]*[256]int32  // by the first byte of a code of two bytes
	three [256]*[256]int32  // by the second byte of a code of three bytes behind threeLead
	four  []int32           // by the number of gb18030's code of four bytes
	back  [256]*[256]uint32 // codes of the basic plane's characters; 0: none (U+0000 is its own code everywhere)
	// injective tells that each code is the one of its character.
	injective bool
}

// threeLead begins the codes of three bytes, which only ujis and eucjpms have.
const threeLead = 0x8F

func (t *table) decode(b []byte) (rune, int) {
	if r := t.one[b[0]]; r >= 0 {
		return r, 1
	}
	if len(b) < 2 {
		return 0, 0
	}
	if r := at(t.pages[b[0]], b[1]); r >= 0 {
		return r, 2
	}
	if len(b) >= 3 && b[0] == threeLead {
		if r := at(t.three[b[1]], b[2]); r >= 0 {
			return r, 3
		}
	}
	if len(b) >= 4 && t.four != nil {
		if r := t.fourBytes(b); r >= 0 {
			return r, 4
		}
	}
	return 0, 0
}

func at(page *[256]int32, b byte) int32 {
	if page == nil {
		return -1
	}
	return page[b]
}

// GB 18030: codes of four bytes are numbered row by row; from number supplementary on they are the characters from U+10000.
const supplementary = (0x90 - 0x81) * 12600

func fourNumber(b []byte) int {
	if b[0] < 0x81 || b[0] > 0xFE || b[1] < 0x30 || b[1] > 0x39 || b[2] < 0x81 || b[2] > 0xFE || b[3] < 0x30 || b[3] > 0x39 {
		return -1
	}
	return ((int(b[0]-0x81)*10+int(b[1]-0x30))*126+int(b[2]-0x81))*10 + int(b[3]-0x30)
}

func appendFour(dst []byte, n int) []byte {
	return append(dst, 0x81+byte(n/12600), 0x30+byte(n/1260%10), 0x81+byte(n/10%126), 0x30+byte(n%10))
}

func (t *table) fourBytes(b []byte) rune {
	n := fourNumber(b)
	switch {
	case n < 0:
		return -1
	case n < len(t.four):
		return t.four[n]
	case n >= supplementary && n < supplementary+0x100000:
		return rune(n - supplementary + 0x10000)
	}
	return unmapped
}

func (t *table) encode(dst []byte, r rune) ([]byte, bool) {
	if r == 0 {
		return append(dst, 0), true
	}
	if r > 0xFFFF {
		if t.four == nil {
			return nil, false
		}
		return appendFour(dst, int(r)-0x10000+supplementary), true
	}
	page := t.back[r>>8]
	if page == nil || page[r&0xFF] == 0 {
		return nil, false
	}
	return appendCode(dst, page[r&0xFF]), true
}

func appendCode(dst []byte, code uint32) []byte {
	switch {
	case code > 0xFFFFFF:
		return append(dst, byte(code>>24), byte(code>>16), byte(code>>8), byte(code))
	case code > 0xFFFF:
		return append(dst, byte(code>>16), byte(code>>8), byte(code))
	case code > 0xFF:
		return append(dst, byte(code>>8), byte(code))
	}
	return append(dst, byte(code))
}

// A table's file is zstd over two lists: the characters by code, then by character the codes that the server gives where
// they are not the lowest of those that decode to it (code 0: none). Each is a uvarint count and that many pairs, the code as
// uvarint and the character as varint, each as the difference to the one before.

func readTable(name string) (*table, error) {
	f, err := tableFiles.Open("tables/" + name + ".zst")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	b, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	forth, b, err := readPairs(b)
	if err != nil {
		return nil, err
	}
	back, b, err := readPairs(b)
	if err != nil {
		return nil, err
	}
	if len(b) > 0 {
		return nil, errTable
	}
	return newTable(forth, back), nil
}

var errTable = errors.New("the table is damaged")

func readPairs(b []byte) ([]pair, []byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, nil, errTable
	}
	b = b[n:]
	out := make([]pair, count)
	var last pair
	for i := range out {
		code, n := binary.Varint(b)
		if n <= 0 {
			return nil, nil, errTable
		}
		r, m := binary.Varint(b[n:])
		if m <= 0 {
			return nil, nil, errTable
		}
		last = pair{code: uint32(int64(last.code) + code), r: rune(int64(last.r) + r)}
		out[i], b = last, b[n+m:]
	}
	return out, b, nil
}

func newTable(forth, exceptions []pair) *table {
	t := &table{}
	for i := range t.one {
		t.one[i] = -1
	}
	for _, p := range forth {
		t.setForth(p)
		if p.r != unmapped || p.code == unmapped {
			t.setBack(p, false)
		}
	}
	for _, p := range exceptions {
		t.setBack(p, true)
	}
	t.injective = !slices.ContainsFunc(forth, func(p pair) bool {
		code, ok := t.encode(nil, p.r)
		return !ok || !bytes.Equal(code, appendCode(nil, p.code))
	})
	return t
}

func (t *table) setForth(p pair) {
	switch {
	case p.code <= 0xFF:
		t.one[p.code] = p.r
	case p.code <= 0xFFFF:
		set(&t.pages[p.code>>8], byte(p.code), p.r)
	case p.code <= 0xFFFFFF:
		set(&t.three[p.code>>8&0xFF], byte(p.code), p.r)
	default:
		n := fourNumber(appendCode(nil, p.code))
		for len(t.four) <= n {
			t.four = append(t.four, unmapped)
		}
		t.four[n] = p.r
	}
}

func set(page **[256]int32, low byte, r rune) {
	if *page == nil {
		*page = &[256]int32{}
		for i := range *page {
			(*page)[i] = -1
		}
	}
	(*page)[low] = r
}

// setBack sets the code of a character; the lowest one stays unless the new one overrides it.
func (t *table) setBack(p pair, override bool) {
	page := &t.back[p.r>>8]
	if *page == nil {
		*page = &[256]uint32{}
	}
	if override || (*page)[p.r&0xFF] == 0 {
		(*page)[p.r&0xFF] = p.code
	}
}
