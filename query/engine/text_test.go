package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/query/collate"
	"github.com/tidemarkdb/tidemark/schema"
)

// collect gives the chunks' rows one by one.
func collect(t testing.TB, e *Engine, sql string, row func(c *Chunk, i int)) {
	t.Helper()
	rows, err := e.Query(context.Background(), sql)
	require.NoError(t, err)
	defer rows.Close()
	for {
		c, err := rows.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		for i := range c.Len() {
			row(c, i)
		}
	}
}

// texts makes a table of two text columns, c1 and c2.
func texts(t testing.TB, e *Engine, pairs [][2]string) *Scan {
	table := &schema.Table{Database: "d", Name: "t", Columns: []schema.Column{{ID: 1, Name: "a", Type: schema.Text}, {ID: 2, Name: "b", Type: schema.Text}}}
	b := array.NewRecordBuilder(memory.DefaultAllocator, table.ArrowSchema())
	for _, p := range pairs {
		b.Field(0).(*array.StringBuilder).Append(p[0])
		b.Field(1).(*array.StringBuilder).Append(p[1])
	}
	return scan(t, e, Table{Schema: table, Segments: []Segment{{Record: b.NewRecordBatch()}}})
}

func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomText is ASCII in five of six cases.
func randomText(r *rand.Rand, alphabet string) string {
	var b strings.Builder
	ascii := r.IntN(6) > 0
	for range r.IntN(30) {
		switch {
		case !ascii && r.IntN(4) == 0:
			b.WriteRune([]rune("éßæ日😀\u0301Ω가\u00a0\u3000ﬁ€")[r.IntN(12)])
		case r.IntN(3) == 0:
			b.WriteByte(byte(r.IntN(128)))
		default:
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
	}
	return b.String() + strings.Repeat(" ", r.IntN(3)*r.IntN(3))
}

// The table-driven keys in C are those of the collations, byte for byte.
func TestSortKey(t *testing.T) {
	e := open(t)
	r := seeded(t)
	pairs := [][2]string{{"", ""}, {" ", ""}, {strings.Repeat("x ", 5000), ""}, {"\x00", ""}, {"a \x01 ", ""}}
	for range 5000 {
		pairs = append(pairs, [2]string{randomText(r, "aAbB  \t!\x00\x01"), ""})
	}
	s := texts(t, e, pairs)
	for _, c := range collate.All() {
		n := 0
		collect(t, e, fmt.Sprintf("SELECT c1, tm_sortkey(c1, %d) FROM %s", c.ID(), s.SQL()), func(chunk *Chunk, i int) {
			n++
			text := chunk.Vector(0).Bytes(i)
			require.Equal(t, c.SortKey([]byte{}, text), chunk.Vector(1).Bytes(i), "%s of %q", c.Name(), text)
		})
		require.Equal(t, len(pairs), n)
	}
}

func TestEqual(t *testing.T) {
	e := open(t)
	r := seeded(t)
	pairs := [][2]string{{"", ""}, {"", " "}, {"a", "A "}, {"é", "E"}, {"ß", "ss"}, {"a\x01", "a"}, {"a \x01", "a"}, {" ", "\x00"}}
	for range 5000 {
		text := randomText(r, "aA  \t\x00")
		other := randomText(r, "aA  \t\x00")
		if r.IntN(2) == 0 {
			other = strings.ToUpper(text) + strings.Repeat(" ", r.IntN(2)) + strings.Repeat("\x01", r.IntN(2))
		}
		pairs = append(pairs, [2]string{text, other})
	}
	s := texts(t, e, pairs)
	for _, c := range collate.All() {
		equal := 0
		collect(t, e, fmt.Sprintf("SELECT c1, c2, tm_equal(c1, c2, %d) FROM %s", c.ID(), s.SQL()), func(chunk *Chunk, i int) {
			a, b := chunk.Vector(0).Bytes(i), chunk.Vector(1).Bytes(i)
			want := bytes.Equal(c.SortKey(nil, a), c.SortKey(nil, b))
			require.Equal(t, want, chunk.Vector(2).Bools()[i], "%s: %q = %q", c.Name(), a, b)
			if want {
				equal++
			}
		})
		require.Greater(t, equal, 50, c.Name())
	}
}

func TestLike(t *testing.T) {
	e := open(t)
	r := seeded(t)
	pairs := [][2]string{{"", ""}, {"", "%"}, {"a", `\`}, {"ab", `a\b`}, {"%", `\%`}, {"é", "_"}, {"e", "é"}, {strings.Repeat("ab", 3000), strings.Repeat("%b", 50)}}
	for range 5000 {
		text := randomText(r, "aAbB  \t!\x00\x01")
		pairs = append(pairs, [2]string{text, likePattern(r, text)})
	}
	s := texts(t, e, pairs)
	for _, c := range collate.All() {
		for _, escape := range []string{`\`, "", "é", "b"} {
			rune := collate.EmptyEscape
			if escape != "" {
				rune = []int32(escape)[0]
			}
			collect(t, e, fmt.Sprintf("SELECT c1, c2, tm_like(c1, c2, %s, %d) FROM %s", Quote(escape), c.ID(), s.SQL()), func(chunk *Chunk, i int) {
				text, pattern := chunk.Vector(0).Bytes(i), chunk.Vector(1).Bytes(i)
				require.Equal(t, c.Like(text, pattern, rune), chunk.Vector(2).Bools()[i], "%s: %q LIKE %q ESCAPE %q", c.Name(), text, pattern, escape)
			})
		}
	}
}

func likePattern(r *rand.Rand, text string) string {
	var b strings.Builder
	for _, c := range text {
		switch r.IntN(6) {
		case 0:
			b.WriteByte("%_"[r.IntN(2)])
		case 1:
			b.WriteString("%" + strings.ToUpper(string(c)))
		case 2:
			b.WriteString(`\` + string(c))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func TestTextFunctionsWithNullsAndLiterals(t *testing.T) {
	e := open(t)
	require.Equal(t, []string{"NULL|NULL|NULL"}, ask(t, e, "SELECT tm_sortkey(NULL, 255), tm_like(NULL, 'a', '', 255), tm_equal(NULL, 'a', 255)"))
	require.Equal(t, []string{"true|false|true|true"}, ask(t, e, `SELECT tm_like('É', 'e', '\', 255), tm_like('É', 'e', '\', 46), tm_sortkey('straße', 255) = tm_sortkey('STRASSE', 255), tm_sortkey('a ', 45) = tm_sortkey('A', 45)`))
	require.Equal(t, []string{"true|false|true|NULL"}, ask(t, e, `SELECT tm_like_bytes('\xFF\x00'::BLOB, '\xFF_'::BLOB, '', 63), tm_like_bytes('\xC3\xA9'::BLOB, '_'::BLOB, '', 63), tm_like('é', '_', '', 46), tm_like('a', NULL, '', 46)`))
	require.Equal(t, []string{"2024-01-02 03:04:05"}, ask(t, e, "SELECT tm_utc(TIMESTAMPTZ '2024-01-02 03:04:05+00')"))
	for _, sql := range []string{"SELECT tm_sortkey('é', 999)", "SELECT tm_sortkey('a', 999)", "SELECT tm_like('a', 'a', '', 999)", "SELECT tm_like('a', 'a', 'xy', 255)"} {
		_, err := try(e, sql)
		require.Error(t, err, sql)
	}
	require.Equal(t, []string{"333|667"}, ask(t, e, "SELECT count(tm_sortkey(x, 255)), count(*) - count(tm_sortkey(x, 255)) FROM (SELECT CASE WHEN range % 3 = 1 THEN 'a' || range END AS x FROM range(1000))"))
}

func TestOwnFunctions(t *testing.T) {
	double := ScalarFunction{Name: "doubled", Args: []Type{{ID: Varchar}}, Result: Type{ID: Varchar}, Call: func(args []Vector, result *Result) error {
		for i := range args[0].Len() {
			if !args[0].Valid(i) {
				result.SetNull(i)
				continue
			}
			result.SetText(i, args[0].Text(i)+args[0].Text(i))
		}
		return nil
	}}
	failing := ScalarFunction{Name: "failing", Args: []Type{{ID: BigInt}}, Result: Type{ID: Decimal, Width: 9, Scale: 2}, Call: func(args []Vector, result *Result) error {
		for i, n := range args[0].Int64s() {
			if n == 3 {
				return fmt.Errorf("three is not allowed")
			}
			result.Int32s()[i] = int32(args[0].Int64s()[100*(n/4)]) // panics on 4
		}
		return nil
	}}
	e, err := Open(Options{Functions: []ScalarFunction{double, failing}})
	require.NoError(t, err)
	defer e.Close()
	require.Equal(t, []string{"0 is a long enough text0 is a long enough text|NULL", "1 is a long enough text1 is a long enough text|NULL"},
		ask(t, e, "SELECT doubled(range || ' is a long enough text'), doubled(NULL) FROM range(2)"))
	require.Equal(t, []string{"0.01"}, ask(t, e, "SELECT failing(1)"))
	_, err = try(e, "SELECT failing(3)")
	require.ErrorContains(t, err, "three is not allowed")
	_, err = try(e, "SELECT failing(4)")
	require.ErrorContains(t, err, "failing")
	require.NotErrorIs(t, err, ErrBroken)
}
