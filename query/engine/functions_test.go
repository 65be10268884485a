package engine

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumberFunctions(t *testing.T) {
	e := open(t)
	require.Equal(t, []string{"12.5|1|-1|18446744073709551615|NULL"},
		ask(t, e, "SELECT tm_str_to_double(' 12.5abc'), tm_str_to_int('1.9'), tm_str_to_int('18446744073709551615'), tm_str_to_uint('-1'), tm_str_to_int(NULL)"))
	require.Equal(t, []string{"1e15|0.1|16777200|-0|NULL"},
		ask(t, e, "SELECT tm_double_to_str(1e15), tm_double_to_str(0.1::DOUBLE), tm_float_to_str(16777216::FLOAT), tm_double_to_str(-0.0::DOUBLE), tm_double_to_str(NULL)"))
	require.Equal(t, []string{"ÉSS ß|éss ß|É"}, ask(t, e, "SELECT tm_upper('ÉsS ß', 255), tm_lower('ÉsS ß', 45), tm_upper('é', 8)"))
	_, err := try(e, "SELECT tm_upper('a', 1)")
	require.ErrorContains(t, err, "collation 1 is not supported")
}

func TestShiftZone(t *testing.T) {
	e := open(t)
	shift := func(at, zone string) string {
		return ask(t, e, fmt.Sprintf("SELECT tm_shift_zone(TIMESTAMPTZ '%s+00', '%s')", at, zone))[0]
	}
	require.Equal(t, "2024-01-01 01:00:00", shift("2024-01-01 00:00:00", "Europe/Berlin"))
	require.Equal(t, "2024-07-01 02:00:00.000001", shift("2024-07-01 00:00:00.000001", "Europe/Berlin"))
	require.Equal(t, "2024-03-31 01:59:59.999999", shift("2024-03-31 00:59:59.999999", "Europe/Berlin"))
	require.Equal(t, "2024-03-31 03:00:00", shift("2024-03-31 01:00:00", "Europe/Berlin"))
	require.Equal(t, "2024-10-27 02:30:00", shift("2024-10-27 00:30:00", "Europe/Berlin"))
	require.Equal(t, "2024-10-27 02:30:00", shift("2024-10-27 01:30:00", "Europe/Berlin"))
	require.Equal(t, "2023-12-31 18:30:00", shift("2024-01-01 00:00:00", "-05:30"))
	require.Equal(t, "2024-01-01 00:00:00", shift("2024-01-01 00:00:00", "UTC"))
	for _, zone := range []string{"", "Local", "Mars/Olympus", "+99:00", "../x"} {
		_, err := try(e, "SELECT tm_shift_zone(TIMESTAMPTZ '2024-01-01 00:00:00+00', "+Quote(zone)+")")
		require.ErrorContains(t, err, "unknown time zone")
	}
	// A whole year by half hours, against DuckDB's own time zones.
	require.Equal(t, []string{"17568|0"}, ask(t, e, `SELECT count(*), count(*) FILTER (tm_shift_zone(t, 'America/New_York') <> timezone('America/New_York', t))
		FROM (SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_minutes(30 * range) AS t FROM range(17568))`))
}

func TestDiv(t *testing.T) {
	e := open(t)
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))
	least := new(big.Int).Sub(new(big.Int).Neg(largest), big.NewInt(1))
	numbers := []*big.Int{big.NewInt(1), big.NewInt(-1), big.NewInt(2), big.NewInt(-2), big.NewInt(3), big.NewInt(7), big.NewInt(-10), big.NewInt(0), largest, least, new(big.Int).Rsh(largest, 1), new(big.Int).Rsh(least, 1), big.NewInt(5)}
	for _, a := range numbers {
		for _, b := range numbers {
			sql := fmt.Sprintf("SELECT tm_div('%s'::HUGEINT, '%s'::HUGEINT)", a, b)
			switch {
			case b.Sign() == 0:
				require.Equal(t, []string{"NULL"}, ask(t, e, sql))
			case a.Cmp(least) == 0 && b.Cmp(big.NewInt(-1)) == 0:
				_, err := try(e, sql)
				require.ErrorContains(t, err, "Overflow")
			default:
				require.Equal(t, []string{halfUp(a, b)}, ask(t, e, sql), "%s / %s", a, b)
			}
		}
	}
	require.Equal(t, []string{"NULL"}, ask(t, e, "SELECT tm_div(NULL, 1)"))
}

// halfUp divides and rounds half away from zero.
func halfUp(a, b *big.Int) string {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if new(big.Int).Abs(new(big.Int).Lsh(r, 1)).CmpAbs(b) >= 0 {
		q.Add(q, big.NewInt(int64(a.Sign()*b.Sign())))
	}
	return q.String()
}
