package number

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

var edges = []string{
	"", " ", "0", "-0", "+0", "5", "+5", "-5", "--5", "+-5", "- 5", " 5", "\t5", "\n5", "\v5", "\f5", "\r5", " \t 5", "\u00a05", "5 ", "5 6", "5x", "x5", "5.", ".5", "-.5", ".", "-.", "+", "-", "5.5", "5.5.5", "5..5",
	"1e3", "1E3", "1e+3", "1e-3", "1e", "1e+", "1e-", "1ex", "e3", ".e3", "1.e3", "1.5e3x", "1e400", "-1e400", "1e-400", "1e99999999999", "1e-99999999999", "4.9e-324", "2e-324", "1e308", "1.8e308", "0e999",
	"0x1A", "0b1", "inf", "nan", "infinity", "1_000", "1,000", "９", "१",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "99999999999999999999", "-18446744073709551615", "-99999999999999999999",
	"000000000000000000000000000000012", "0.1000000000000000055511151231257827021181583404541015625", "9007199254740993", "123456789012345678901234567890",
	"1\x00", "\x001", "1abc", "2024-01-02", "12:34:56", "99.99%",
}

func random(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteByte("0123456789..--++eE \tx"[r.IntN(21)])
	}
	return b.String()
}

// QUERY-12: '1abc' is 1.
func TestNumbersAreMySQLs(t *testing.T) {
	s, name := mysqltest.FreshDatabase(t)
	db := s.DB(t, name)
	_, err := db.Exec("CREATE TABLE n (id INT PRIMARY KEY, a VARCHAR(100) CHARACTER SET utf8mb4)")
	require.NoError(t, err)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := edges
	for range 4000 {
		all = append(all, random(r))
	}
	var values []string
	var args []any
	for i, a := range all {
		values, args = append(values, "(?,?)"), append(args, i, a)
	}
	_, err = db.Exec("INSERT INTO n VALUES "+strings.Join(values, ","), args...)
	require.NoError(t, err)
	rows, err := db.Query("SELECT a, CAST(a AS SIGNED), CAST(a AS UNSIGNED), a + 0e0 FROM n")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var a string
		var signed int64
		var unsigned uint64
		var double float64
		require.NoError(t, rows.Scan(&a, &signed, &unsigned, &double))
		got := fmt.Sprint(Int([]byte(a)), Uint([]byte(a)), Double([]byte(a))+0)
		require.Equal(t, fmt.Sprint(signed, unsigned, double+0), got, "%q", a)
	}
	require.NoError(t, rows.Err())
}

func FuzzNumbers(f *testing.F) {
	for _, e := range edges {
		f.Add([]byte(e))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if v := Double(text); v != v {
			t.Errorf("%q is no number", text)
		}
		_, _ = Int(text), Uint(text)
	})
}
