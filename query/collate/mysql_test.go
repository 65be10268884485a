package collate

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

// in gives a column of utf8mb4 text in the character set and collation c.
func in(c *Collation, column string) string {
	if c.name == "binary" {
		return "CAST(" + column + " AS BINARY)"
	}
	return fmt.Sprintf("CONVERT(%s USING %s) COLLATE %s", column, c.charset, c.name)
}

// sayable tells whether the collation's character set has all characters of the text.
func sayable(c *Collation, text string) bool {
	if c.charset == "ascii" && strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return false
	}
	b, ok := schema.FromUTF8(c.charset, []byte(text))
	if !ok {
		return false
	}
	_, ok = schema.ToUTF8(c.charset, b)
	return ok
}

func fill(t *testing.T, db *sql.DB, table string, width int, rows [][]any) {
	t.Helper()
	one := "(?" + strings.Repeat(",?", width-1) + ")"
	const batch = 2000
	for len(rows) > 0 {
		n := min(batch, len(rows))
		var args []any
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		_, err := db.Exec("INSERT INTO "+table+" VALUES "+one+strings.Repeat(","+one, n-1), args...)
		require.NoError(t, err)
		rows = rows[n:]
	}
}

// QUERY-09: the weights of every character of the basic plane, and of every 97th of the others, are the server's.
func TestWeightsAreMySQLs(t *testing.T) {
	s, name := mysqltest.FreshDatabase(t)
	db := s.DB(t, name)
	_, err := db.Exec("CREATE TABLE chars (cp INT PRIMARY KEY, c VARCHAR(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
	require.NoError(t, err)
	var rows [][]any
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) && (r < 0x10000 || r%97 == 0 || r < 0x10100 || r&^0xFFF == 0x1F000) {
			rows = append(rows, []any{int(r), string(r)})
		}
	}
	fill(t, db, "chars", 2, rows)
	for _, c := range All() {
		if c.unit == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) { compareWeights(t, db, c) })
	}
}

func compareWeights(t *testing.T, db *sql.DB, c *Collation) {
	c.load()
	rows, err := db.Query("SELECT cp, c, HEX(WEIGHT_STRING(" + in(c, "c") + ")) FROM chars")
	require.NoError(t, err)
	defer rows.Close()
	checked, differ := 0, 0
	for rows.Next() {
		var cp int
		var char, weight string
		require.NoError(t, rows.Scan(&cp, &char, &weight))
		if !sayable(c, char) {
			continue
		}
		checked++
		got := strings.ToUpper(hex.EncodeToString(c.appendWeights(nil, []byte(char))))
		if got != weight {
			if differ++; differ <= 20 {
				t.Errorf("U+%04X: weight %s, MySQL has %s", cp, got, weight)
			}
		}
	}
	require.NoError(t, rows.Err())
	require.GreaterOrEqual(t, checked, 128)
	if differ > 0 {
		t.Errorf("%d of %d characters differ", differ, checked)
	}
}

// words are what collations are known to treat in a way of their own.
var words = []string{
	"", " ", "  ", "a", "A", "b", "ab", "a b", "a  b", "a ", "a  ", " a", "a\t", "a\x01", "a \t", "a \x01", "a\n", "a!", "a !", "a  !", "a\u00a0", "a\u3000", "\t", "\x00", "a\x00", "a\x00b", "\x7f",
	"ß", "ss", "SS", "ẞ", "s", "straße", "STRASSE", "bEa", "BÉA", "é", "e\u0301", "e", "E", "è", "æ", "ae", "Æ", "œ", "oe", "ö", "oe", "Ö", "o\u0308", "å", "Å", "\u212b", "ü", "y", "Y", "ÿ", "Ÿ",
	"þ", "th", "ð", "d", "đ", "ł", "l", "ñ", "n", "n\u0303", "ij", "ĳ", "ﬁ", "fi", "ﬃ", "ffi", "Ⅷ", "viii", "½", "1⁄2", "²", "2", "①", "1", "10", "9", "٣", "3", "３",
	"😀", "😁", "👍", "👍🏽", "🇩🇪", "a😀", "\U0001f468\u200d\U0001f469", "日本", "日", "本", "中文", "中", "한국", "한", "ᄒ", "ᄒ\u1161", "\u1112\u1161\u11ab", "กา", "เก", "ก", "แก", "ไก", "โก", "ᄀ", "가",
	"あ", "ア", "ｱ", "ァ", "が", "か", "か\u3099", "ー", "アー", "ああ", "Σ", "σ", "ς", "Α", "α", "ά", "ё", "е", "Ё", "й", "и\u0306", "и", "א", "א\u05b0", "ا", "أ", "\u0627\u0654", "I", "i", "İ", "ı", "ﬀ",
	"\u200b", "a\u200b", "\u00ad", "a\u00adb", "\ufeff", "\u0301", "a\u0301", "\u0300\u0301", "\u0301\u0300", "a-b", "a_b", "a%b", "a.b", "_", "%", "-", ".", "\\", "'", "\"", "€", "‚", "™", "\u0081",
	"abc", "abcd", "ABC", "áb", "Zz", "zZ", "z", "Z", "[", "^", "`", "{", "~", "\u4e00\u4e01", "\U00020000", "\U0002a6d6", "\uffff", "\ufffd", "\U0010ffff",
}

var patterns = []string{
	"", "%", "_", "__", "a%", "%a", "%a%", "a_", "_b", "a_b", "a%b", "%%", "%_", "_%", "ss", "s_", "ß", "%ß%", "é", "e", "É%", "%e%", "a ", "a", "\\%", "\\_", "a\\_b", "a\\%b", "\\", "\\\\", "a\\", "\\a", "😀", "_😀", "%😀%",
	"\x00", "\x01", "%\x00%", "\u0301", "_\u0301", "%\u0301", "日_", "日%", "%本", "가", "ᄀ%", "ก%", "ae", "a%c%d", "%a%b%c%d%", "|%", "a|_b", "\u200b", "a\u200b", " ", "% ", "Σ", "i", "İ", "\u3000",
	strings.Repeat("%a", 40), strings.Repeat("_", 3),
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(5) {
		switch r.IntN(6) {
		case 0:
			b.WriteString(words[r.IntN(len(words))])
		case 1:
			b.WriteByte(byte(r.IntN(128)))
		case 2:
			b.WriteByte(" \t!ab"[r.IntN(5)])
		case 3:
			b.WriteRune(rune(0x80 + r.IntN(0x200)))
		case 4:
			b.WriteRune(rune(0x300 + r.IntN(0x70)))
		default:
			b.WriteByte("aAbBzZ"[r.IntN(6)])
		}
	}
	return b.String()
}

// pairs lists each word with its neighbours, each word with itself in other spaces, and random texts.
func pairs(r *rand.Rand) [][2]string {
	var out [][2]string
	for i, a := range words {
		for j := range 24 {
			out = append(out, [2]string{a, words[(i+j)%len(words)]})
		}
		out = append(out, [2]string{a, a + " "}, [2]string{a, a + "\t"}, [2]string{a + " ", a + "  x"}, [2]string{a + " \x01", a})
	}
	for range 6000 {
		a, b := randomText(r), randomText(r)
		if r.IntN(4) == 0 {
			b = a + b
		}
		out = append(out, [2]string{a, b})
	}
	return out
}

func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// QUERY-09: sort keys compare as STRCMP does, trailing spaces included.
func TestSortKeysCompareAsMySQL(t *testing.T) {
	s, name := mysqltest.FreshDatabase(t)
	db := s.DB(t, name)
	_, err := db.Exec("CREATE TABLE pairs (id INT PRIMARY KEY, a VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, b VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
	require.NoError(t, err)
	all := pairs(seeded(t))
	var rows [][]any
	for i, p := range all {
		rows = append(rows, []any{i, p[0], p[1]})
	}
	fill(t, db, "pairs", 3, rows)
	for _, c := range All() {
		t.Run(c.name, func(t *testing.T) { compareKeys(t, db, c, all) })
	}
}

func compareKeys(t *testing.T, db *sql.DB, c *Collation, all [][2]string) {
	rows, err := db.Query(fmt.Sprintf("SELECT id, STRCMP(%s, %s) FROM pairs", in(c, "a"), in(c, "b")))
	require.NoError(t, err)
	defer rows.Close()
	checked, differ := 0, 0
	for rows.Next() {
		var id, want int
		require.NoError(t, rows.Scan(&id, &want))
		a, b := all[id][0], all[id][1]
		if !sayable(c, a) || !sayable(c, b) {
			continue
		}
		checked++
		got := bytes.Compare(c.SortKey(nil, []byte(a)), c.SortKey(nil, []byte(b)))
		if got != want {
			if differ++; differ <= 20 {
				t.Errorf("%+q against %+q: %d, MySQL has %d", a, b, got, want)
			}
		}
	}
	require.NoError(t, rows.Err())
	require.Greater(t, checked, 500)
	if differ > 0 {
		t.Errorf("%d of %d pairs differ", differ, checked)
	}
}

// QUERY-09: LIKE goes character by character and counts trailing spaces.
func TestLikeIsMySQLs(t *testing.T) {
	s, name := mysqltest.FreshDatabase(t)
	db := s.DB(t, name)
	_, err := db.Exec("CREATE TABLE likes (id INT PRIMARY KEY, a VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, p VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
	require.NoError(t, err)
	all := likes(seeded(t))
	var rows [][]any
	for i, p := range all {
		rows = append(rows, []any{i, p[0], p[1]})
	}
	fill(t, db, "likes", 3, rows)
	for _, c := range All() {
		t.Run(c.name, func(t *testing.T) {
			compareLikes(t, db, c, all, `\`)
			compareLikes(t, db, c, all, "|")
			compareLikes(t, db, c, all, "")
		})
	}
}

func likes(r *rand.Rand) [][2]string {
	var out [][2]string
	for _, w := range words {
		for _, p := range patterns {
			out = append(out, [2]string{w, p})
		}
	}
	for range 4000 {
		text := randomText(r)
		out = append(out, [2]string{text, randomPattern(r, text)})
	}
	return out
}

// randomPattern makes a pattern that has a chance to match.
func randomPattern(r *rand.Rand, text string) string {
	var b strings.Builder
	for _, c := range text {
		switch r.IntN(8) {
		case 0:
			b.WriteByte('%')
		case 1:
			b.WriteByte('_')
		case 2:
			b.WriteString("%" + string(c))
		case 3:
			b.WriteString(strings.ToUpper(string(c)))
		case 4:
			b.WriteString(`\` + string(c))
		case 5:
			if r.IntN(3) > 0 {
				b.WriteRune(c)
			}
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func compareLikes(t *testing.T, db *sql.DB, c *Collation, all [][2]string, escape string) {
	rows, err := db.Query(fmt.Sprintf("SELECT id, %s LIKE %s ESCAPE '%s' FROM likes", in(c, "a"), in(c, "p"), strings.ReplaceAll(escape, `\`, `\\`)))
	require.NoError(t, err)
	defer rows.Close()
	esc := EmptyEscape
	if escape != "" {
		esc = rune(escape[0])
	}
	checked, differ := 0, 0
	for rows.Next() {
		var id int
		var want bool
		require.NoError(t, rows.Scan(&id, &want))
		a, p := all[id][0], all[id][1]
		if !sayable(c, a) || !sayable(c, p) {
			continue
		}
		checked++
		if got := c.Like([]byte(a), []byte(p), esc); got != want {
			if differ++; differ <= 20 {
				t.Errorf("%+q LIKE %+q ESCAPE %q: %v, MySQL has %v", a, p, escape, got, want)
			}
		}
	}
	require.NoError(t, rows.Err())
	require.Greater(t, checked, 500)
	if differ > 0 {
		t.Errorf("%d of %d differ", differ, checked)
	}
}

func TestLetterCaseIsMySQLs(t *testing.T) {
	s, name := mysqltest.FreshDatabase(t)
	db := s.DB(t, name)
	_, err := db.Exec("CREATE TABLE cases (id INT PRIMARY KEY, a VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
	require.NoError(t, err)
	texts := append([]string(nil), words...)
	for r := rune(0); r < 0x20000; r++ {
		if other := unicode.ToUpper(r); other != r || unicode.ToLower(r) != r {
			texts = append(texts, string(r), "a"+string(r)+"b"+string(r)+"éz")
		}
	}
	var rows [][]any
	for i, text := range texts {
		rows = append(rows, []any{i, text})
	}
	fill(t, db, "cases", 2, rows)
	for _, c := range All() {
		t.Run(c.name, func(t *testing.T) { compareCase(t, db, c) })
	}
}

func compareCase(t *testing.T, db *sql.DB, c *Collation) {
	a := in(c, "a")
	rows, err := db.Query(fmt.Sprintf("SELECT a, CONVERT(UPPER(%s) USING utf8mb4), CONVERT(LOWER(%s) USING utf8mb4) FROM cases", a, a))
	require.NoError(t, err)
	defer rows.Close()
	differ := 0
	for rows.Next() {
		var text, upper, lower string
		require.NoError(t, rows.Scan(&text, &upper, &lower))
		if !sayable(c, text) {
			continue
		}
		gotUpper, gotLower := string(c.Upper(nil, []byte(text))), string(c.Lower(nil, []byte(text)))
		if gotUpper != upper || gotLower != lower {
			if differ++; differ < 20 {
				t.Errorf("%+q: %+q %+q, MySQL has %+q %+q", text, gotUpper, gotLower, upper, lower)
			}
		}
	}
	require.NoError(t, rows.Err())
}
