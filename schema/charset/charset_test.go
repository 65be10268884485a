package charset

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

var update = flag.Bool("update", false, "write the tables that the server has")

// server is a session that may make long recursions.
func server(t *testing.T) *sql.Conn {
	s, _ := mysqltest.FreshDatabase(t)
	conn, err := s.DB(t, "").Conn(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.ExecContext(t.Context(), "SET cte_max_recursion_depth = 10000000")
	require.NoError(t, err)
	return conn
}

// each asks the server for an expression of i from 0 to count-1; it is not called for NULL.
func each(t *testing.T, conn *sql.Conn, count int, expression string, fn func(i uint32, value []byte)) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < %d) SELECT i, HEX(%s) FROM n", count-1, expression))
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var i uint32
		var text sql.NullString
		require.NoError(t, rows.Scan(&i, &text))
		if text.Valid {
			value, err := hex.DecodeString(text.String)
			require.NoError(t, err)
			fn(i, value)
		}
	}
	require.NoError(t, rows.Err())
}

// forth reads which characters the codes stand for.
func forth(t *testing.T, conn *sql.Conn, name string) []pair {
	var out []pair
	single := map[byte]bool{}
	read := func(count int, bytes, prefix string, code func(i uint32) uint32) {
		each(t, conn, count, fmt.Sprintf("CONVERT(CONVERT(CONCAT(%s, %s) USING %s) USING utf32)", prefix, bytes, name), func(i uint32, value []byte) {
			c := code(i)
			if len(value) != 4 || c > 0xFF && single[appendCode(nil, c)[0]] {
				return // two characters
			}
			if c <= 0xFF {
				single[byte(c)] = true
			}
			out = append(out, pair{c, rune(binary.BigEndian.Uint32(value))})
		})
	}
	same := func(i uint32) uint32 { return i }
	read(256, "UNHEX(LPAD(HEX(i), 2, '0'))", "x''", same)
	longest := tableCharsets[name]
	if longest >= 2 {
		read(0x8000, "UNHEX(LPAD(HEX(i + 32768), 4, '0'))", "x''", func(i uint32) uint32 { return i + 0x8000 })
	}
	if longest == 3 {
		read(0x10000, "UNHEX(LPAD(HEX(i), 4, '0'))", "x'8F'", func(i uint32) uint32 { return threeLead<<16 | i })
	}
	if longest == 4 {
		four := func(i uint32) uint32 { return binary.BigEndian.Uint32(appendFour(nil, int(i))) }
		read(39420, "UNHEX(CONCAT(HEX(129 + i DIV 12600), HEX(48 + i DIV 1260 % 10), HEX(129 + i DIV 10 % 126), HEX(48 + i % 10)))", "x''", four)
	}
	return out
}

// back reads the codes of the characters of the basic plane where newTable would not find them.
func back(t *testing.T, conn *sql.Conn, name string, forth []pair) []pair {
	plain := newTable(forth, nil)
	codes := map[rune]uint32{}
	each(t, conn, 0x10000, "CONVERT(CONVERT(UNHEX(LPAD(HEX(i), 8, '0')) USING utf32) USING "+name+")", func(i uint32, value []byte) {
		if len(value) == 1 && value[0] == '?' && i != '?' {
			return // has no code
		}
		var code uint32
		for _, b := range value {
			code = code<<8 | uint32(b)
		}
		codes[rune(i)] = code
	})
	var out []pair
	for r := rune(1); r <= 0xFFFF; r++ {
		found := uint32(0)
		if got, ok := plain.encode(nil, r); ok {
			for _, b := range got {
				found = found<<8 | uint32(b)
			}
		}
		if codes[r] != found {
			out = append(out, pair{codes[r], r})
		}
	}
	return out
}

// TestTablesAreTheServers compares every code and every character of the basic plane with the server's.
func TestTablesAreTheServers(t *testing.T) {
	conn := server(t)
	for _, name := range slices.Sorted(maps.Keys(tableCharsets)) {
		t.Run(name, func(t *testing.T) {
			f := forth(t, conn, name)
			b := back(t, conn, name, f)
			if *update {
				require.NoError(t, os.WriteFile(filepath.Join("tables", name+".zst"), tableFile(t, f, b), 0o644))
				return
			}
			want, got := newTable(f, b), ByName(name).codec.(*tableCodec).table()
			require.Equal(t, want, got)
		})
	}
}

func tableFile(t *testing.T, lists ...[]pair) []byte {
	var raw []byte
	for _, list := range lists {
		raw = binary.AppendUvarint(raw, uint64(len(list)))
		var last pair
		for _, p := range list {
			raw = binary.AppendVarint(raw, int64(p.code)-int64(last.code))
			raw = binary.AppendVarint(raw, int64(p.r)-int64(last.r))
			last = p
		}
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	require.NoError(t, err)
	return z.EncodeAll(raw, nil)
}

// names are all character sets but binary, which has no characters, and the alias utf8.
func names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(byName)), func(n string) bool { return n == "utf8" })
}

func TestEveryCharsetOfTheServer(t *testing.T) {
	rows, err := server(t).QueryContext(t.Context(), "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME <> 'binary'")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	count := 0
	for rows.Next() {
		var name string
		var bytes int
		require.NoError(t, rows.Scan(&name, &bytes))
		require.NotNil(t, ByName(name), name)
		require.Equal(t, bytes, ByName(name).Bytes(), name)
		count++
	}
	require.NoError(t, rows.Err())
	require.Len(t, names(), count)
}

func TestCollationsOfTheServer(t *testing.T) {
	rows, err := server(t).QueryContext(t.Context(), "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id uint16
		var name string
		require.NoError(t, rows.Scan(&id, &name))
		require.Equal(t, name, NameOf(int(id)), id)
		if name == "binary" {
			require.Nil(t, ByCollation(id))
		} else {
			require.Equal(t, name, ByCollation(id).Name(), id)
		}
	}
	require.NoError(t, rows.Err())
}

// TestRandomText: what the server stores and sends, longer texts with characters of all planes.
func TestRandomText(t *testing.T) {
	conn := server(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range names() {
		var fields []string
		var texts []string
		for range 200 {
			text := randomText(r, ByName(name))
			texts = append(texts, text)
			fields = append(fields, fmt.Sprintf("HEX(CONVERT(_utf8mb4 x'%x' USING %s))", text, name))
		}
		got := make([]string, len(fields))
		into := make([]any, len(fields))
		for i := range got {
			into[i] = &got[i]
		}
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT "+strings.Join(fields, ", ")).Scan(into...))
		for i, text := range texts {
			stored, ok := ByName(name).FromUTF8([]byte(text))
			require.True(t, ok, "%s: %q", name, text)
			require.Equal(t, got[i], strings.ToUpper(hex.EncodeToString(stored)), "%s: %q", name, text)
			again, ok := ByName(name).ToUTF8(stored)
			require.True(t, ok)
			var shown string
			require.NoError(t, conn.QueryRowContext(t.Context(), fmt.Sprintf("SELECT CONVERT(_%s x'%s' USING utf8mb4)", name, got[i])).Scan(&shown))
			require.Equal(t, shown, string(again), "%s: %q", name, text)
			if len(shown) > 0 && i > 20 {
				break // one by one is slow; the tables are compared as a whole
			}
		}
	}
}

// randomText has characters that the character set has.
func randomText(r *rand.Rand, c *Charset) string {
	var b strings.Builder
	for b.Len() < 30 {
		var one rune
		switch r.IntN(4) {
		case 0:
			one = rune(1 + r.IntN(0x7E))
		case 1:
			one = rune(r.IntN(0x600))
		case 2:
			one = rune(r.IntN(0x10000))
		default:
			one = rune(0x10000 + r.IntN(0x100000))
		}
		if one == 0 || !utf8.ValidRune(one) {
			continue
		}
		if _, ok := c.FromUTF8([]byte(string(one))); ok {
			b.WriteRune(one)
		}
	}
	return b.String()
}

// TestCharactersWithoutUnicode: the server shows them as a question mark.
func TestCharactersWithoutUnicode(t *testing.T) {
	conn := server(t)
	for _, c := range []struct{ charset, code string }{{"gbk", "A2A041"}, {"cp1250", "8142"}, {"sjis", "EFFC"}, {"gb18030", "8431A530"}, {"tis620", "DB"}} {
		stored, err := hex.DecodeString(c.code)
		require.NoError(t, err)
		got, ok := ByName(c.charset).ToUTF8(stored)
		require.True(t, ok, c)
		var shown string
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT CONVERT(_"+c.charset+" x'"+c.code+"' USING utf8mb4)").Scan(&shown))
		require.Equal(t, shown, string(got), c)
	}
}

func TestInvalid(t *testing.T) {
	for _, c := range []struct{ charset, code, want string }{
		{"utf8mb4", "41FF42", "A\uFFFDB"}, {"utf8mb3", "F09F9880", "\uFFFD\uFFFD\uFFFD\uFFFD"}, {"ascii", "4180", "A\uFFFD"}, {"gbk", "81", "\uFFFD"},
		{"utf16", "0041D800", "A\uFFFD\uFFFD"}, {"utf16le", "410000", "A\uFFFD"}, {"utf32", "00110000", "\uFFFD\uFFFD\uFFFD\uFFFD"}, {"ucs2", "D800", "\uFFFD\uFFFD"},
	} {
		stored, err := hex.DecodeString(c.code)
		require.NoError(t, err)
		got, ok := ByName(c.charset).ToUTF8(stored)
		require.False(t, ok, c)
		require.Equal(t, c.want, string(got), c)
	}
	for _, c := range []struct{ charset, text string }{{"ascii", "é"}, {"latin1", "Ж"}, {"utf8mb3", "😀"}, {"ucs2", "😀"}, {"gbk", "😀"}, {"utf8mb4", "\xff"}, {"swe7", "["}} {
		_, ok := ByName(c.charset).FromUTF8([]byte(c.text))
		require.False(t, ok, strconv.Quote(c.text))
	}
}

func TestDamagedTable(t *testing.T) {
	good := tableFile(t, []pair{{'A', 'A'}, {0x80, 0x20AC}}, nil)
	z, err := zstd.NewReader(nil)
	require.NoError(t, err)
	raw, err := z.DecodeAll(good, nil)
	require.NoError(t, err)
	for n := range len(raw) - 1 {
		_, rest, err := readPairs(raw[:n])
		if err == nil {
			_, _, err = readPairs(rest)
		}
		require.ErrorIs(t, err, errTable)
	}
}

// FuzzRoundTrip: nothing that comes in may do more than be refused, and valid UTF-8 that a character set has survives it.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\x81\x30\x81\x30\x8f\xa2\xaf"), "añ日本😀")
	f.Fuzz(func(t *testing.T, stored []byte, text string) {
		for _, name := range names() {
			c := ByName(name)
			out, _ := c.ToUTF8(stored)
			if !utf8.Valid(out) {
				t.Fatalf("%s: %x became %x", name, stored, out)
			}
			there, ok := c.FromUTF8([]byte(text))
			if !ok {
				continue
			}
			back, ok := c.ToUTF8(there)
			if !ok {
				t.Fatalf("%s: %q became %x, which is not valid there", name, text, there)
			}
			if again, _ := c.FromUTF8(back); !bytes.Equal(again, there) {
				t.Fatalf("%s: %q became %x, then %x", name, text, there, again)
			}
		}
	})
}
