package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
	"github.com/tidemarkdb/tidemark/schema"
)

// charsets are all of the server's that are not in the tests of types already.
var charsets = []string{"armscii8", "ascii", "big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk",
	"geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32", "utf8mb3"}

// charsetLiteral gives text of up to n random characters that a character set has, in its own bytes.
func charsetLiteral(r *rand.Rand, charset string, n int) string {
	var stored []byte
	for range 1 + r.IntN(n) {
		for range 20 {
			one := rune(r.IntN(0x250))
			if r.IntN(2) == 0 {
				one = rune(r.IntN(0x11000))
			}
			if !utf8.ValidRune(one) {
				continue
			}
			if b, ok := schema.FromUTF8(charset, []byte(string(one))); ok {
				stored = append(stored, b...)
				break
			}
		}
	}
	return fmt.Sprintf("_%s X'%X'", charset, stored)
}

// TestEveryCharset (TYPE-13): text of each character set in columns, keys, labels and defaults, by the copy and by the stream.
func TestEveryCharset(t *testing.T) {
	t.Parallel()
	source, r := sharedSource(t, abroad...), newRandom(t)
	db := source.FreshDatabase(t)
	before, after := lenient, lenient
	var names []string
	for _, cs := range charsets {
		label := "a"
		if b, ok := schema.ToUTF8(cs, []byte{0xC1}); ok && utf8.Valid(b) && len(b) > 1 {
			label = string(b)
		}
		keyed, plain := "k_"+cs, "p_"+cs
		names = append(names, keyed, plain)
		before += fmt.Sprintf("CREATE TABLE %s (k VARCHAR(20) CHARACTER SET %s PRIMARY KEY, v INT);\n", keyed, cs)
		before += fmt.Sprintf("CREATE TABLE %s (id INT PRIMARY KEY, c CHAR(10), v VARCHAR(40) DEFAULT '%s', t TEXT, e ENUM('%s','x'), s SET('%s','y z'), l LONGTEXT) CHARACTER SET %s;\n", plain, label, label, label, cs)
		insert := func(from int) string {
			var b strings.Builder
			for id := from; id < from+12; id++ {
				value := func() string { return charsetLiteral(r, cs, 10) }
				fmt.Fprintf(&b, "INSERT INTO %s (id, c, t, e, s, l) VALUES (%d, %s, %s, %d, %d, CONCAT(%s, ' '));\n", plain, id, value(), value(), r.IntN(3), r.IntN(4), value())
				fmt.Fprintf(&b, "UPDATE %s SET v = %s WHERE id = %d;\n", plain, value(), id-r.IntN(3))
				fmt.Fprintf(&b, "INSERT IGNORE INTO %s VALUES (%s, %d);\n", keyed, value(), id)
			}
			return b.String()
		}
		before += insert(100)
		after += insert(200)
		after += fmt.Sprintf("UPDATE IGNORE %s SET k = %s WHERE v %% 7 = 0; UPDATE %s SET v = v + 1; DELETE FROM %s WHERE v %% 5 = 0;\n", keyed, charsetLiteral(r, cs, 10), keyed, keyed)
		after += fmt.Sprintf("ALTER TABLE %s ADD COLUMN added VARCHAR(9) DEFAULT '%s'; INSERT INTO %s (id) VALUES (1);\n", plain, label, plain)
	}
	script(t, source.Login, db, before)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	script(t, source.Login, db, after)
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	sameDefinitions(t, source.Login, tm.Login, db, names...)
	verifyEqual(t, tm, db)
	tm.Restart()
	script(t, source.Login, db, "UPDATE k_cp932 SET v = 0; UPDATE p_gbk SET v = NULL;")
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, names...)
	tm.VerifyStore()
}

// TestCodesThatLookAlike: several codes of a character set stand for one character, and some for none. They stay apart as keys,
// also when keys are computed again.
func TestCodesThatLookAlike(t *testing.T) {
	t.Parallel()
	source := sharedSource(t, abroad...)
	db := source.FreshDatabase(t)
	script(t, source.Login, db, `CREATE TABLE twice (k VARCHAR(9) CHARACTER SET cp932 COLLATE cp932_bin PRIMARY KEY, v INT);
		INSERT INTO twice VALUES (_cp932 X'8790',1),(_cp932 X'81E0',2),(_cp932 X'ED40',3),(_cp932 X'FA5C',4);
		CREATE TABLE none (k VARCHAR(9) CHARACTER SET gbk COLLATE gbk_bin PRIMARY KEY, v INT); INSERT INTO none VALUES (_gbk X'A2A0',1),(_gbk X'A2A1',2),(_gbk X'AAA1',3),('?',4);`)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	change := "UPDATE twice SET v=v+10 WHERE v%2=0; DELETE FROM twice WHERE v=3; INSERT INTO twice VALUES (_cp932 X'FA5D',5); UPDATE none SET v=v+10; DELETE FROM none WHERE v=11; INSERT INTO none VALUES (_gbk X'AAA2',9);"
	script(t, source.Login, db, change)
	allLive(t, tm.CatchUp(source, db))
	queries := slices.Concat(tidemarktest.AllRows("twice", "none"))
	tidemarktest.Same(t, source.Login, tm.Login, db, queries...)
	tm.Restart()
	script(t, source.Login, db, "UPDATE twice SET v=v+100; UPDATE none SET v=v+100;")
	allLive(t, tm.CatchUp(source, db))
	tidemarktest.Same(t, source.Login, tm.Login, db, queries...)
	verifyEqual(t, tm, db)
	tm.VerifyStore()
}
