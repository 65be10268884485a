package translate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sized is the shop with another number of rows and another key.
type sized struct {
	shop
	rows int64
	key  []int
}

func (s sized) Table(database, name string) (*TableInfo, error) {
	info, err := s.shop.Table(database, name)
	if info != nil {
		info.Rows, info.Table.Key = s.rows, s.key
	}
	return info, err
}

// A plain SELECT of a small table comes in the order of its key, as InnoDB gives it, and so does what a LIMIT lets through.
func TestKeyOrder(t *testing.T) {
	const byID = " ORDER BY t1.c1 ASC NULLS FIRST"
	for _, tc := range []struct {
		sql  string
		rows int64
		key  []int
		want string // behind the last relation; "" when the order stays open
	}{
		{"SELECT * FROM t", 10, []int{0}, byID},
		{"SELECT n FROM t WHERE n > 1", 10, []int{0}, " ORDER BY t1.c1 ASC NULLS FIRST"},
		{"SELECT n FROM t", 10, []int{8, 1}, " ORDER BY list_position(['b', 'a'], t1.c9) ASC NULLS FIRST, tm_sortkey(t1.c2, 255) ASC NULLS FIRST"},
		{"SELECT n FROM t", keyOrderRows + 1, []int{0}, ""},
		{"SELECT n FROM t LIMIT 5", keyOrderRows + 1, []int{0}, byID + " LIMIT 5"},
		{"SELECT n FROM t ORDER BY n", 10, []int{0}, " ORDER BY t1.c5 ASC NULLS FIRST"},
		{"SELECT DISTINCT n FROM t", 10, []int{0}, ""},
		{"SELECT n FROM t GROUP BY n", 10, []int{0}, ""},
		{"SELECT COUNT(*) FROM t", 10, []int{0}, ""},
		{"SELECT a.n FROM t a JOIN t b ON a.id = b.n", 10, []int{0}, ""},
		{"SELECT n FROM (SELECT n FROM t) q", 10, []int{0}, ""},
		{"SELECT ROW_NUMBER() OVER () FROM t", 10, []int{0}, ""},
		{"SELECT n FROM t", 10, nil, ""},
		{"SELECT n FROM t", 10, []int{9}, ""}, // a key with exact values can't be sorted by
	} {
		stmts, err := NewParser().Parse(tc.sql, testSession().SQLMode)
		require.NoError(t, err)
		s, err := Select(stmts[0], testSession(), sized{rows: tc.rows, key: tc.key}, nil)
		require.NoError(t, err, tc.sql)
		text := rendered(s)
		if tc.want == "" {
			require.NotContains(t, text, "ORDER BY", tc.sql)
			continue
		}
		require.True(t, strings.HasSuffix(text, tc.want), "%s: %s", tc.sql, text)
	}
}
