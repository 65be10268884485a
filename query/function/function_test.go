package function

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The values of these tests are MySQL's, asked of a 9.7 server. query/differential compares many more.

func TestCut(t *testing.T) {
	require.Equal(t, "ab", string(Cut([]byte("ab"), 5)))
	require.Equal(t, "ab", string(Cut([]byte("abc"), 2)))
	require.Equal(t, "a", string(Cut([]byte("aé"), 2)))
	require.Empty(t, Cut([]byte("é"), 1))
}

func TestDouble(t *testing.T) {
	for x, want := range map[float64]string{
		-1.7976931348623157e308: "-1.797693134862316e308", 1.7976931348623157e308: "1.7976931348623157e308",
		2.2250738585072014e-308: "2.225073858507201e-308", 0.1: "0.1", 1e300: "1e300", -2.5: "-2.5",
	} {
		require.Equal(t, want, string(Double(nil, x)))
	}
}

func TestSubstringIndex(t *testing.T) {
	for _, c := range []struct {
		text, delimiter string
		n               int64
		want            string
	}{
		{"www.mysql.com", ".", 2, "www.mysql"}, {"www.mysql.com", ".", -2, "mysql.com"}, {"www.mysql.com", ".", 9, "www.mysql.com"},
		{"www.mysql.com", ".", -9, "www.mysql.com"}, {"www.mysql.com", ".", 0, ""}, {"abc", "", 1, ""}, {"aXbXc", "x", 1, "aXbXc"}, {"a--b--", "--", -1, ""},
	} {
		require.Equal(t, c.want, string(SubstringIndex([]byte(c.text), []byte(c.delimiter), c.n)), "%+v", c)
	}
}

func TestGrouped(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "123": "123", "1234.50": "1,234.50", "-1234567": "-1,234,567", "999999.9": "999,999.9"} {
		require.Equal(t, want, string(Grouped(nil, []byte(in))))
	}
}

func TestDecimalPrefix(t *testing.T) {
	for _, c := range []struct {
		text             string
		precision, scale int
		want             string
	}{
		{"12.345", 10, 2, "12.35"}, {"  -1.5e2x", 10, 1, "-150.0"}, {"abc", 5, 2, "0.00"}, {"", 5, 2, "0.00"}, {"99999", 5, 2, "999.99"},
		{".5", 5, 2, "0.50"}, {"1e-3", 5, 2, "0.00"}, {"-99.995", 4, 2, "-99.99"}, {"9.995", 10, 2, "10.00"}, {"1e999999999", 5, 0, "99999"}, {"5e-1", 5, 0, "1"},
	} {
		require.Equal(t, c.want, string(DecimalPrefix([]byte(c.text), c.precision, c.scale)), "%+v", c)
	}
}

func FuzzDecimalPrefix(f *testing.F) {
	for _, s := range []string{"1", "-1.5e3", "e", "1e", "-.e-5", "00000000000000000000000000000000000000001", "9.99999999999"} {
		f.Add(s, 10, 3)
	}
	f.Fuzz(func(t *testing.T, s string, precision, scale int) {
		if scale < 0 || scale > 30 || precision < max(scale, 1) || precision > 38 {
			return
		}
		out := string(DecimalPrefix([]byte(s), precision, scale))
		_, err := strconv.ParseFloat(out, 64)
		require.NoError(t, err)
		whole, fraction, _ := strings.Cut(strings.TrimPrefix(out, "-"), ".")
		require.Len(t, fraction, scale)
		require.LessOrEqual(t, len(whole), max(precision-scale, 1))
	})
}

func TestWeek(t *testing.T) {
	for date, want := range map[string][8]int{ // WEEK(date, 0) to WEEK(date, 7)
		"2024-01-01": {0, 1, 53, 1, 1, 1, 1, 1},
		"2023-12-31": {53, 52, 53, 52, 53, 52, 1, 52},
		"2021-01-01": {0, 0, 52, 53, 0, 0, 53, 52},
		"2016-02-20": {7, 7, 7, 7, 7, 7, 7, 7},
	} {
		y, _ := strconv.Atoi(date[:4])
		m, _ := strconv.Atoi(date[5:7])
		d, _ := strconv.Atoi(date[8:])
		for mode, week := range want {
			got, _ := Week(y, m, d, mode)
			require.Equal(t, week, got, "%s mode %d", date, mode)
		}
	}
	week, year := Week(2021, 1, 1, 3)
	require.Equal(t, []int{53, 2020}, []int{week, year})
}

func TestRound(t *testing.T) {
	require.Equal(t, 2.0, Round(2.5, 0, false))
	require.Equal(t, 1.0, Round(1.005, 2, false))
	require.Equal(t, 1200.0, Round(1234.5, -2, false))
	require.Equal(t, 1.99, Round(1.999, 2, true))
	require.Equal(t, 1e300, Round(1e300, 300, false))
	require.Zero(t, Round(5, -400, false))
}

func TestMoment(t *testing.T) {
	for text, want := range map[string]string{
		"2024-02-29": "2024-02-29 00:00:00", " 2024-2-3 4:5:6.5 ": "2024-02-03 04:05:06.5", "2024-02-03T10:11:12": "2024-02-03 10:11:12",
	} {
		at, ok, err := Moment([]byte(text))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, at.Format("2006-01-02 15:04:05.999999"))
	}
	for _, text := range []string{"", "abc", "  "} {
		_, ok, err := Moment([]byte(text))
		require.NoError(t, err)
		require.False(t, ok)
	}
	for _, text := range []string{"20240203", "2024/02/03", "24-1-2", "2024-02-31", "2024-01-02 10:11", "2024-01-02 10:11:12.1234567", "0000-00-00"} {
		_, _, err := Moment([]byte(text))
		require.ErrorIs(t, err, ErrUnclearDate)
	}
}

func TestStrToDate(t *testing.T) {
	for _, c := range []struct{ text, format, want string }{
		{"03/04/24", "%d/%m/%y", "2024-04-03 00:00:00"}, {"Jan 5, 2024", "%b %e, %Y", "2024-01-05 00:00:00"}, {"12:30 AM", "%h:%i %p", "1970-01-01 00:30:00"},
		{"2024-02-30", "%Y-%m-%d", ""}, {"x", "%Y-%m-%d", ""}, {"13 PM", "%H %p", ""}, {"2024-01-02 03:04:05.678", "%Y-%m-%d %T.%f", "2024-01-02 03:04:05.678"},
	} {
		f, ok := ParseDateFormat(c.format)
		require.True(t, ok)
		at, ok, err := StrToDate([]byte(c.text), f)
		require.NoError(t, err)
		require.Equal(t, c.want != "", ok, "%+v", c)
		if ok {
			require.Equal(t, c.want, at.Format("2006-01-02 15:04:05.999999"))
		}
	}
	f, _ := ParseDateFormat("%Y-%m-%d")
	_, _, err := StrToDate([]byte("2024"), f)
	require.ErrorIs(t, err, ErrIncompleteDate)
	for _, format := range []string{"%", "%j", "%U %Y"} {
		_, ok := ParseDateFormat(format)
		require.False(t, ok)
	}
}

func FuzzStrToDate(f *testing.F) {
	f.Add("2024-01-02 03:04:05", "%Y-%m-%d %H:%i:%s")
	f.Add("Jan 5 PM", "%b %e %p")
	f.Add("%", "%%")
	f.Fuzz(func(t *testing.T, text, format string) {
		if d, ok := ParseDateFormat(format); ok {
			_, _, _ = StrToDate([]byte(text), d)
		}
		_, _, _ = Moment([]byte(text))
	})
}

func TestJSON(t *testing.T) {
	doc := `{"a": {"b": [1, "x,]", {"c": null}]}, "q\"k": "é\n\u00e9", "z": 1.50}`
	for path, want := range map[string]string{
		"$": doc, "$.a.b[1]": `"x,]"`, "$.a.b[2].c": "null", "$.z": "1.50", `$."q\"k"`: `"é\n\u00e9"`, "$.z[0]": "1.50", "$.a.b[0][0]": "1",
		"$.nope": "", "$.a.b[9]": "", "$.z.x": "", "$.z[1]": "",
	} {
		p, ok := ParseJSONPath(path)
		require.True(t, ok, path)
		got, found := JSONExtract(doc, p)
		require.Equal(t, want, got, path)
		require.Equal(t, want != "", found, path)
	}
	require.Equal(t, "é\né", JSONUnquote(`"é\n\u00e9"`))
	require.Equal(t, "[1]", JSONUnquote("[1]"))
	for _, path := range []string{"", "a", "$.", "$[x]", "$[*]", "$.*", "$**.a", "$[last]", "$ .a b"} {
		_, ok := ParseJSONPath(path)
		require.False(t, ok, path)
	}
}

func FuzzJSONExtract(f *testing.F) {
	f.Add(`{"a": [1, {"b": "c"}]}`, `$.a[1]."b"`)
	f.Add(`["\`, `$[0]`)
	f.Add(`{"a`, `$.a`)
	f.Fuzz(func(t *testing.T, doc, path string) {
		p, ok := ParseJSONPath(path)
		if !ok || !utf8.ValidString(doc) {
			return
		}
		if part, found := JSONExtract(doc, p); found {
			JSONUnquote(part)
			require.Contains(t, doc, part)
		}
	})
}
