package query

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

func TestCivil(t *testing.T) {
	check := func(day int64) {
		want := time.Unix(day*86_400, 0).UTC()
		y, m, d := civil(day)
		require.Equal(t, []int{want.Year(), int(want.Month()), want.Day()}, []int{y, m, d}, "day %d", day)
	}
	const first, last = -719_528, 2_932_896 // 0000-01-01 and 9999-12-31
	for _, day := range []int64{first, first + 1, first + 59, first + 60, -1, 0, 1, 59, 60, 11_016, 11_017, last} {
		check(day)
	}
	for range 10_000 {
		check(first + rand.Int64N(last-first+1))
	}
}

func TestAppendMoment(t *testing.T) {
	for us, want := range map[int64]string{
		0: "1970-01-01 00:00:00.000000", -1: "1969-12-31 23:59:59.999999", 1_709_209_801_123_456: "2024-02-29 12:30:01.123456",
	} {
		require.Equal(t, want, string(appendMoment(nil, us, 6)))
	}
	require.Equal(t, "1970-01-01 00:00:00", string(appendMoment(nil, 999_999, 0)))
}

func TestAppendScaled(t *testing.T) {
	for _, c := range []struct {
		digits string
		scale  int
		want   string
	}{
		{"0", 0, "0"}, {"0", 2, "0.00"}, {"5", 2, "0.05"}, {"-5", 2, "-0.05"}, {"150", 2, "1.50"}, {"-12345", 4, "-1.2345"}, {"12", 2, "0.12"},
		{"99999999999999999999999999999999999999", 10, "9999999999999999999999999999.9999999999"},
	} {
		require.Equal(t, "x"+c.want, string(appendScaled([]byte("x"), []byte(c.digits), c.scale)))
	}
}

func TestEnginesErrorsHaveMySQLsNumbers(t *testing.T) {
	require.ErrorContains(t, valueError("Out of Range Error: Overflow in addition of INT64 (1 + 2)"), "BIGINT value is out of range")
	require.ErrorContains(t, valueError("Conversion Error: Type INT128 with value 1 can't be cast because the value is out of range for the destination type UINT64"), "BIGINT UNSIGNED value is out of range")
	require.ErrorContains(t, valueError("Invalid Input Error: DOUBLE value is out of range in 'exp(a)'"), "DOUBLE value is out of range in 'exp(a)'")
	require.ErrorContains(t, valueError("Out of Range Error: Overflow in negation of integer!"), "BIGINT value is out of range")
	require.ErrorContains(t, valueError("Invalid Input Error: a format of %U is not supported yet"), "doesn't yet support")
	require.ErrorContains(t, valueError("Overflow in multiplication of DECIMAL(38)"), "more than 38 digits")
}

// What SHOW CREATE TABLE prints is compared with a server in package server; here is what needs none.
func TestQuoteText(t *testing.T) {
	require.Equal(t, `'it''s \\ \n\0'`, quoteText("it's \\ \n\x00"))
	require.Equal(t, "`a``b`", quoteName("a`b"))
	c := schema.Column{Name: "a", Type: schema.Int, ColumnType: "int", Comment: "x'y"}
	require.Equal(t, "`a` int NOT NULL COMMENT 'x''y'", (&Table{Def: &schema.Table{}}).columnLine(&c))
}
