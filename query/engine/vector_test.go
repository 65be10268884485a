package engine

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// one gives the first chunk of a query; the rows are closed with the test.
func one(t *testing.T, e *Engine, sql string) (*Rows, *Chunk) {
	t.Helper()
	rows, err := e.Query(context.Background(), sql)
	require.NoError(t, err)
	t.Cleanup(rows.Close)
	c, err := rows.Next()
	require.NoError(t, err)
	return rows, c
}

func TestVectorsOfEachType(t *testing.T) {
	e := open(t)
	rows, c := one(t, e, `SELECT true, -1::TINYINT, -2::SMALLINT, -3::INTEGER, -4::BIGINT, 200::UTINYINT, 60000::USMALLINT, 4000000000::UINTEGER, 18446744073709551615::UBIGINT,
		-170141183460469231731687303715884105727::HUGEINT, 1.5::FLOAT, 2.5::DOUBLE, DATE '1969-12-31', TIME '00:00:01', TIMESTAMP '1970-01-01 00:00:02', TIMESTAMPTZ '1970-01-01 00:00:03+00',
		INTERVAL '1 month 2 days 3 seconds', 'short', 'longer than twelve bytes', '\x00\xFF'::BLOB, [1.5::FLOAT, 2.5], NULL, NULL::INTEGER, ''`)
	names := []string{
		"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP",
		"TIMESTAMP WITH TIME ZONE", "INTERVAL", "VARCHAR", "VARCHAR", "BLOB", "FLOAT[]", "INTEGER", "INTEGER", "VARCHAR",
	}
	for i, column := range rows.Columns() {
		require.Equal(t, names[i], column.Type.String())
	}
	v := c.Vector
	require.Equal(t, []bool{true}, v(0).Bools())
	require.Equal(t, []int8{-1}, v(1).Int8s())
	require.Equal(t, []int16{-2}, v(2).Int16s())
	require.Equal(t, []int32{-3}, v(3).Int32s())
	require.Equal(t, []int64{-4}, v(4).Int64s())
	require.Equal(t, []uint8{200}, v(5).Uint8s())
	require.Equal(t, []uint16{60000}, v(6).Uint16s())
	require.Equal(t, []uint32{4000000000}, v(7).Uint32s())
	require.Equal(t, []uint64{math.MaxUint64}, v(8).Uint64s())
	require.Equal(t, "-170141183460469231731687303715884105727", v(9).Int128s()[0].Big().String())
	require.Equal(t, []float32{1.5}, v(10).Float32s())
	require.Equal(t, []float64{2.5}, v(11).Float64s())
	require.Equal(t, []int32{-1}, v(12).Int32s())
	require.Equal(t, []int64{1e6}, v(13).Int64s())
	require.Equal(t, []int64{2e6}, v(14).Int64s())
	require.Equal(t, []int64{3e6}, v(15).Int64s())
	require.Equal(t, []IntervalValue{{Months: 1, Days: 2, Micros: 3e6}}, v(16).Intervals())
	require.Equal(t, "short", v(17).Text(0))
	require.Equal(t, "longer than twelve bytes", v(18).Text(0))
	require.Equal(t, []byte{0, 255}, v(19).Bytes(0))
	require.Equal(t, []float32{1.5, 2.5}, v(20).Floats(0))
	require.False(t, v(21).Valid(0))
	require.False(t, v(22).Valid(0))
	require.Equal(t, []byte{}, v(23).Bytes(0))
	require.True(t, v(23).Valid(0))
	require.Panics(t, func() { v(0).Int64s() })
	require.Panics(t, func() { v(17).Int32s() })
	require.Panics(t, func() { v(3).Bytes(0) })
}

func TestDecimalsOfEachWidth(t *testing.T) {
	e := open(t)
	_, c := one(t, e, "SELECT -99.99::DECIMAL(4,2), 1.5::DECIMAL(9,1), -123456789012345678::DECIMAL(18,0), '99999999999999999999999999999999999999'::DECIMAL(38,0), '-0.00000000000000000001'::DECIMAL(20,20)")
	for i, want := range []string{"-9999", "15", "-123456789012345678", "99999999999999999999999999999999999999", "-1"} {
		require.Equal(t, want, c.Vector(i).Unscaled(0).Big().String())
	}
	require.True(t, c.Vector(2).Unscaled(0).IsInt64())
	require.False(t, c.Vector(3).Unscaled(0).IsInt64())
	require.True(t, c.Vector(4).Unscaled(0).IsInt64())
}

func TestNullsInAllPlaces(t *testing.T) {
	e := open(t)
	rows, err := e.Query(context.Background(), "SELECT CASE WHEN range % 3 > 0 THEN range END FROM range(5000)")
	require.NoError(t, err)
	defer rows.Close()
	seen := map[int64]bool{}
	nulls := 0
	for {
		c, err := rows.Next()
		if err != nil {
			break
		}
		v := c.Vector(0)
		for i, n := range v.Int64s() {
			if v.Valid(i) {
				seen[n] = true
			} else {
				nulls++
			}
		}
	}
	require.Equal(t, 1667, nulls)
	require.Len(t, seen, 3333)
	require.False(t, seen[3])
}

func TestResultWithoutRows(t *testing.T) {
	e := open(t)
	rows, err := e.Query(context.Background(), "SELECT 1 AS a WHERE false")
	require.NoError(t, err)
	defer rows.Close()
	require.Equal(t, "a", rows.Columns()[0].Name)
	_, err = rows.Next()
	require.Error(t, err)
}

// Some statements give their whole result at once.
func TestResultThatIsNotStreamed(t *testing.T) {
	e := open(t)
	_, c := one(t, e, "EXPLAIN SELECT 1")
	require.Equal(t, 1, c.Len())
	rows, c := one(t, e, "CALL pragma_version()")
	require.Equal(t, 1, c.Len())
	require.NotEmpty(t, rows.Columns())
}

// An error in the middle of a result is an error, not an early end.
func TestErrorAfterRows(t *testing.T) {
	e := open(t)
	rows, err := e.Query(context.Background(), "SELECT CASE WHEN range = 900000 THEN error('late') ELSE range::VARCHAR END FROM range(1000000)")
	require.NoError(t, err)
	defer rows.Close()
	n := 0
	for err == nil {
		var c *Chunk
		if c, err = rows.Next(); err == nil {
			n += c.Len()
		}
	}
	require.ErrorContains(t, err, "late")
	require.Positive(t, n)
	_, again := rows.Next()
	require.Equal(t, err, again)
}
