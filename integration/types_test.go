package integration

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/integration/tidemarktest"
)

// typeCase is a column type and literals of values it can hold, the extreme ones among them. NULL is tested for every type.
type typeCase struct {
	table  string
	column string
	values []string
	random func(r *rand.Rand) string // nil: none
}

// lenient is the mode in which a source accepts all that it can store: zero, partial and invalid dates, ENUM index 0.
// Times are given in UTC so that the ends of TIMESTAMP's range can be written.
const lenient = "SET NAMES utf8mb4; SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES';\n"

func integers(low, high string, random func(r *rand.Rand) string) ([]string, func(r *rand.Rand) string) {
	values := []string{low, "0", "1", "7", high}
	if strings.HasPrefix(low, "-") {
		values = append(values, "-1")
	}
	return values, random
}

func integerCase(table, column, low, high string, random func(r *rand.Rand) string) typeCase {
	values, f := integers(low, high, random)
	return typeCase{table, column, values, f}
}

func between(low, high int64) func(r *rand.Rand) string {
	return func(r *rand.Rand) string { return fmt.Sprint(low + r.Int64N(high-low+1)) }
}

func integerCases() []typeCase {
	return []typeCase{
		integerCase("i8", "TINYINT", "-128", "127", between(-128, 127)),
		integerCase("i8u", "TINYINT UNSIGNED", "0", "255", between(0, 255)),
		integerCase("bool1", "BOOL", "-128", "127", nil), // TYPE-24
		integerCase("i16", "SMALLINT", "-32768", "32767", between(-32768, 32767)),
		integerCase("i16u", "SMALLINT UNSIGNED", "0", "65535", between(0, 65535)),
		integerCase("i24", "MEDIUMINT", "-8388608", "8388607", between(-8388608, 8388607)), // TYPE-02
		integerCase("i24u", "MEDIUMINT UNSIGNED", "0", "16777215", between(0, 16777215)),
		integerCase("i32", "INT", "-2147483648", "2147483647", between(-1<<31, 1<<31-1)),
		integerCase("i32u", "INT UNSIGNED", "0", "4294967295", between(0, 1<<32-1)), // TYPE-01
		integerCase("i64", "BIGINT", "-9223372036854775808", "9223372036854775807", func(r *rand.Rand) string { return fmt.Sprint(int64(r.Uint64())) }),
		integerCase("i64u", "BIGINT UNSIGNED", "0", "18446744073709551615", func(r *rand.Rand) string { return fmt.Sprint(r.Uint64()) }),
		integerCase("i8z", "TINYINT(4) ZEROFILL", "0", "255", between(0, 255)),
		integerCase("i32z", "INT(7) ZEROFILL", "0", "4294967295", between(0, 1<<32-1)),
		integerCase("i64z", "BIGINT(20) ZEROFILL", "0", "18446744073709551615", nil),
		{"year4", "YEAR", []string{"0", "1901", "1999", "2000", "2155"}, between(1901, 2155)}, // TYPE-08
		{"bit1", "BIT(1)", []string{"b'0'", "b'1'"}, nil},                                     // TYPE-23
		{"bit8", "BIT(8)", []string{"0", "1", "9", "10", "92", "255"}, between(0, 255)},
		{"bit13", "BIT(13)", []string{"0", "1", "4097", "8191"}, between(0, 8191)},
		{"bit63", "BIT(63)", []string{"0", "1", "9223372036854775807"}, nil},
		{"bit64", "BIT(64)", []string{"0", "1", "18446744073709551615", "9223372036854775808"}, func(r *rand.Rand) string { return fmt.Sprint(r.Uint64()) }},
	}
}

func digits(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + r.IntN(10))
	}
	return string(b)
}

// decimal gives random numbers with so many digits before and after the point, of all lengths.
func decimal(before, after int) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		s := digits(r, r.IntN(before+1)) + "."
		if after > 0 {
			s += digits(r, 1+r.IntN(after))
		}
		if s == "." {
			return "0"
		}
		return []string{"", "-"}[r.IntN(2)] + strings.TrimSuffix("0"+s, ".")
	}
}

func nines(before, after int) string {
	s := strings.Repeat("9", before)
	if before == 0 {
		s = "0"
	}
	if after > 0 {
		s += "." + strings.Repeat("9", after)
	}
	return s
}

func decimalCase(table string, precision, scale int) typeCase {
	big := nines(precision-scale, scale)
	smallest := "0"
	if scale > 0 {
		smallest = "0." + strings.Repeat("0", scale-1) + "1"
	}
	return typeCase{table, fmt.Sprintf("DECIMAL(%d,%d)", precision, scale),
		[]string{"0", "-" + big, big, smallest, "-" + smallest}, decimal(precision-scale, scale)}
}

func numberCases() []typeCase {
	return []typeCase{
		decimalCase("dec1", 1, 0), decimalCase("dec10", 10, 0), decimalCase("dec5_5", 5, 5), decimalCase("dec13_4", 13, 4),
		decimalCase("dec18_9", 18, 9), decimalCase("dec19_2", 19, 2), decimalCase("dec38_10", 38, 10), decimalCase("dec38_38", 30, 30),
		decimalCase("dec39_1", 39, 1), decimalCase("dec65", 65, 0), decimalCase("dec65_30", 65, 30), // TYPE-21
		{"dec_z", "DECIMAL(10,2) ZEROFILL", []string{"0", "7", "0.01", "99999999.99"}, nil},
		{"dec_u", "DECIMAL(5,5) UNSIGNED", []string{"0", "0.00001", "0.99999"}, nil},
		{"f32", "FLOAT", []string{"0", "-0e0", "1", "-1", "0.1", "16777216", "16777217", "3.4028234663852886e38", "-3.4028234663852886e38",
			"1.17549435e-38", "1e-45", "1234567.8", "999999.5", "1e15", "1e-5", "3.14159274"},
			func(r *rand.Rand) string { return fmt.Sprintf("%v", float32(r.NormFloat64()*1e10)) }},
		{"f32md", "FLOAT(7,3)", []string{"0", "123.456", "-9999.999", "9999.999", "0.001"}, nil}, // TYPE-22
		{"f32u", "FLOAT UNSIGNED", []string{"0", "0.5", "3e38"}, nil},
		{"f32z", "FLOAT(8,2) ZEROFILL", []string{"0", "1.5", "12345.67"}, nil},
		{"f64", "DOUBLE", []string{"0", "-0e0", "1", "0.1", "-0.1", "1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "5e-324",
			"1234567.8901234567", "1e14", "1e15", "1e16", "1e17", "123456789012345678", "0.0001", "0.00001", "1e-15", "9007199254740993"},
			func(r *rand.Rand) string { return fmt.Sprintf("%v", r.NormFloat64()*1e15) }},
		{"f64md", "DOUBLE(20,5)", []string{"0", "0.00001", "-123456789012345.67891", "1.5"}, nil},
		{"f64z", "DOUBLE ZEROFILL", []string{"0", "1.5", "1e30"}, nil},
		{"real8", "REAL", []string{"0.1234567890123456"}, nil},
	}
}

func clock(r *rand.Rand) string {
	return fmt.Sprintf("%02d:%02d:%02d.%06d", r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1_000_000))
}

func day(r *rand.Rand) string {
	return time.Date(1000+r.IntN(9000), 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, r.IntN(365)).Format(time.DateOnly)
}

func quoted(f func(r *rand.Rand) string) func(r *rand.Rand) string {
	return func(r *rand.Rand) string { return "'" + f(r) + "'" }
}

func timeCases() []typeCase {
	// TYPE-03, TYPE-04: all that a DATE may hold
	dates := []string{"'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "'2024-02-31'", "'2023-02-29'", "'2024-00-00'", "'2024-06-00'", "'0000-01-01'", "'0001-01-01'", "'0000-00-12'", "'1582-10-10'", "'1970-01-01'"}
	moments := []string{"'0000-00-00 00:00:00'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'2024-02-31 01:02:03'", "'2024-00-00 10:20:30'", "'1969-12-31 23:59:59'", "'0001-01-01 00:00:00'"}
	fractions := append([]string{"'9999-12-31 23:59:59.999999'", "'2024-05-06 07:08:09.123456'", "'1969-12-31 23:59:59.999999'", "'2024-02-30 00:00:00.5'", "'0001-01-01 00:00:00.000001'"}, moments...)
	stamps := []string{"'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2024-03-31 01:30:00'", "'2000-02-29 23:59:59'"}
	fineStamps := append([]string{"'1970-01-01 00:00:01.000001'", "'2038-01-19 03:14:07.499999'", "'2024-05-06 07:08:09.120000'"}, stamps...)
	times := []string{"'00:00:00'", "'-838:59:59'", "'838:59:59'", "'-00:00:01'", "'100:00:00'", "'23:59:59'"} // TYPE-07
	fineTimes := append([]string{"'-00:00:00.01'", "'-838:59:58.999999'", "'00:00:01.000001'", "'-15:07:03.020406'", "'100:00:00.5'"}, times...)
	stamp := func(r *rand.Rand) string {
		return time.Unix(1+r.Int64N(1<<31-2), 0).UTC().Format(time.DateTime) + fmt.Sprintf(".%06d", r.IntN(1_000_000))
	}
	span := func(r *rand.Rand) string {
		return []string{"", "-"}[r.IntN(2)] + fmt.Sprintf("%02d:%02d:%02d.%06d", r.IntN(838), r.IntN(60), r.IntN(60), r.IntN(1_000_000))
	}
	moment := func(r *rand.Rand) string { return day(r) + " " + clock(r) }
	return []typeCase{
		{"d", "DATE", dates, quoted(day)},
		{"dt0", "DATETIME", moments, quoted(moment)},
		{"dt3", "DATETIME(3)", fractions, quoted(moment)},
		{"dt6", "DATETIME(6)", fractions, quoted(moment)},
		{"ts0", "TIMESTAMP", stamps, quoted(stamp)},
		{"ts1", "TIMESTAMP(1)", fineStamps, quoted(stamp)},
		{"ts6", "TIMESTAMP(6)", fineStamps, quoted(stamp)},
		{"t0", "TIME", times, quoted(span)},
		{"t2", "TIME(2)", fineTimes, quoted(span)},
		{"t3", "TIME(3)", fineTimes, quoted(span)},
		{"t6", "TIME(6)", fineTimes, quoted(span)},
	}
}

// hexText gives random characters out of ranges as a literal in a charset's own bytes.
func randomText(introducer string, length int, encode func(r *rand.Rand) []byte) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		var b []byte
		for range r.IntN(length + 1) {
			b = append(b, encode(r)...)
		}
		return fmt.Sprintf("%sX'%X'", introducer, b)
	}
}

func utf8Character(r *rand.Rand) []byte {
	ranges := [][2]rune{{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xfffd}, {0x10000, 0x10ffff}}
	c := ranges[r.IntN(len(ranges))]
	return []byte(string(c[0] + r.Int32N(c[1]-c[0]+1)))
}

func anyByte(r *rand.Rand) []byte { return []byte{byte(r.IntN(256))} }

// allBytes is every byte value once.
func allBytes() string {
	var b [256]byte
	for i := range b {
		b[i] = byte(i)
	}
	return fmt.Sprintf("X'%X'", b[:])
}

func textCases() []typeCase {
	words := []string{"''", "'a'", "'NULL'", "' lead'", `'\\N'`, `'quote " and '' and \\ back'`, `'tab\tnew\nline\rreturn'`, "X'00'", "X'610062'", "X'01041A7F'", "'<a href=\"&amp;\">'"} // TYPE-31
	unicode := append([]string{"'Müller €'", "'日本語'", "'😀🏴󠁧󠁢󠁥󠁮󠁧󠁿'", "'e\u0301'", "'\ufeffx'", "X'F48FBFBF'", "X'EFBFBF'"}, words...)
	latin := append([]string{"_latin1 X'80818D8F909D9FA0FF'", "'Müller €'"}, words...) // TYPE-13: cp1252, with its five holes
	wide := randomText("_utf8mb4 ", 60, utf8Character)
	narrow := randomText("_latin1 ", 60, anyByte)
	long := func(introducer string, n int) []string {
		return []string{fmt.Sprintf("REPEAT('x', %d)", n), fmt.Sprintf("REPEAT(%s, %d)", introducer, n/4)}
	}
	return []typeCase{
		{"c10", "CHAR(10)", []string{"''", "'a'", "'trail  '", "'😀😀😀😀😀😀😀😀😀😀'", "X'0000'", "'ja'"}, randomText("_utf8mb4 ", 10, utf8Character)},
		{"c5bin", "CHAR(5) COLLATE utf8mb4_bin", []string{"''", "'ja'", "'x '", "'日本語日本'"}, nil}, // TYPE-10
		{"c0", "CHAR(0)", []string{"''"}, nil},
		{"c255l", "CHAR(255) CHARACTER SET latin1", append([]string{"_latin1 " + "X'" + strings.Repeat("E9", 255) + "'"}, latin...), narrow},
		{"v60", "VARCHAR(60)", unicode, wide},
		{"v16000", "VARCHAR(16000)", append(long("'é'", 16000), unicode...), wide},
		{"vl", "VARCHAR(60000) CHARACTER SET latin1", append(long("'é'", 60000), append([]string{"_latin1 " + allBytes()}, latin...)...), narrow},
		{"vci", "VARCHAR(60) COLLATE utf8mb4_general_ci", unicode, wide},
		{"tt", "TINYTEXT", unicode, wide},
		{"txt", "TEXT", append(long("'é'", 60000), unicode...), wide},
		{"txtl", "TEXT CHARACTER SET latin1", append([]string{"_latin1 " + allBytes()}, latin...), narrow},
		{"mt", "MEDIUMTEXT", append(long("'é'", 300000), unicode...), wide},
		{"lt", "LONGTEXT", unicode, wide},
		{"b5", "BINARY(5)", []string{"''", "X'00'", "X'0102'", "X'0102030000'", "X'FFFFFFFFFF'"}, randomText("", 5, anyByte)}, // TYPE-09
		{"b16", "BINARY(16)", []string{"X'AABBCCDDEEFF00112233445566770000'", "X'0000000000000000000000000000000A'"}, randomText("", 16, anyByte)},
		{"vb20", "VARBINARY(20)", []string{"''", "X'00'", "X'0000'", "X'2020'", "X'FF00'"}, randomText("", 20, anyByte)},
		{"tb", "TINYBLOB", []string{"''", "X'00'", "REPEAT(X'FF', 255)"}, randomText("", 200, anyByte)},
		{"bl", "BLOB", []string{"''", allBytes(), "REPEAT(X'00', 65535)"}, randomText("", 200, anyByte)},
		{"mb", "MEDIUMBLOB", []string{"''", allBytes(), "REPEAT(X'5C27', 100000)"}, nil},
		{"lb", "LONGBLOB", []string{"''", allBytes()}, nil},
	}
}

func members(n int) string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = fmt.Sprintf("'m%d'", i+1)
	}
	return strings.Join(labels, ",")
}

func listCases() []typeCase {
	return []typeCase{
		{"en", "ENUM('a','b','Übergröße','日本','x y')", []string{"'a'", "'x y'", "'Übergröße'", "'日本'", "'not a label'"}, nil}, // TYPE-11: index 0
		{"en_empty", "ENUM('','a')", []string{"''", "'a'", "'not a label'"}, nil},
		{"en_latin", "ENUM('é','ü') CHARACTER SET latin1", []string{"'é'", "'ü'", "'?'"}, nil},
		{"en300", "ENUM(" + members(300) + ")", []string{"'m1'", "'m255'", "'m256'", "300"}, between(1, 300)}, // TYPE-12
		{"se", "SET('a','b','c','ö')", []string{"''", "'a'", "'c,a'", "'a,b,c,ö'", "15"}, between(0, 15)},
		{"se18", "SET(" + members(18) + ")", []string{"''", "'m1,m17,m18'", "'m9'"}, between(0, 1<<18-1)},
		{"se64", "SET(" + members(64) + ")", []string{"''", "'m64'", "'m1,m64'", "18446744073709551615"}, func(r *rand.Rand) string { return fmt.Sprint(r.Uint64()) }},
	}
}

func spatialCases() []typeCase {
	shapes := map[string][]string{
		"POINT":              {"ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(-1.5 1e300)')", "ST_SRID(POINT(10, 50), 4326)"},
		"LINESTRING":         {"ST_GeomFromText('LINESTRING(0 0,1 1,2 0)')"},
		"POLYGON":            {"ST_GeomFromText('POLYGON((0 0,10 0,10 10,0 10,0 0),(5 5,7 5,7 7,5 7,5 5))')"},
		"MULTIPOINT":         {"ST_GeomFromText('MULTIPOINT((0 0),(20 20))')"},
		"MULTILINESTRING":    {"ST_GeomFromText('MULTILINESTRING((10 48,10 21),(16 44,16 23))')"},
		"MULTIPOLYGON":       {"ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 1,0 0)),((5 5,7 5,7 7,5 7,5 5)))')"},
		"GEOMETRYCOLLECTION": {"ST_GeomFromText('GEOMETRYCOLLECTION(POINT(10 10),LINESTRING(15 15,20 20))')", "ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')"},
	}
	var all []string
	var cases []typeCase
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		all = append(all, shapes[name]...)
		cases = append(cases, typeCase{"g_" + strings.ToLower(name), name, shapes[name], nil})
	}
	point := func(r *rand.Rand) string { return fmt.Sprintf("POINT(%v, %v)", r.NormFloat64(), r.NormFloat64()) }
	return append(cases, typeCase{"g_any", "GEOMETRY", all, point}, // TYPE-25
		typeCase{"g_4326", "POINT SRID 4326", []string{"ST_GeomFromText('POINT(50 10)', 4326)"}, nil},
		typeCase{"g_0", "GEOMETRY SRID 0", all[:1], point})
}

func vectorCases() []typeCase {
	floats := func(r *rand.Rand) string {
		return fmt.Sprintf("STRING_TO_VECTOR('[%v, %v, %v]')", float32(r.NormFloat64()), r.IntN(100), float32(r.NormFloat64()*1e30))
	}
	return []typeCase{
		{"vec3", "VECTOR(3)", []string{"STRING_TO_VECTOR('[1, 2, 3]')", "STRING_TO_VECTOR('[1.5, -2]')", "X'0000803F'", "STRING_TO_VECTOR('[-0.0, 1e38, 1e-37]')"}, floats},
		{"vec", "VECTOR", []string{"STRING_TO_VECTOR('[0]')", "REPEAT(X'0000803F', 2048)"}, floats},
	}
}

func jsonCases() []typeCase {
	return []typeCase{{"js", "JSON", []string{
		"'null'", "'true'", "'false'", "'0'", "'-1'", "'1.5'", "'-0.0'", "'1e300'", "'1e-7'", "'100000000000000000000'", "'18446744073709551615'", "'-9223372036854775808'",
		`'""'`, `'"text"'`, `'"\\u0000\\u001f\\u007f\\u2028"'`, `'"\\"\\\\\\/\\b\\f\\n\\r\\t"'`, `'"😀日本é"'`, "'[]'", "'{}'", "'[[], {}, [null]]'", `'{"": ""}'`, `'{"b": 1, "a": 2, "aa": 3, "B": 4, "é": 5}'`,
		`'{"a": 1, "a": 2}'`, `'[1, "2", 3.0, true, null, {"k": [1, {"x": {}}]}]'`, "JSON_OBJECT('q', 'say \"hi\" \\\\ back\\nline\\ttab')", // SNAP-21
		"JSON_ARRAY(CAST('2024-05-06 07:08:09.123456' AS DATETIME(6)), CAST('2024-05-06' AS DATE), CAST('-12:34:56.5' AS TIME(1)))", // TYPE-16: opaque scalars
		"JSON_ARRAY(CAST(1.50 AS DECIMAL(10,2)), CAST(-0.001 AS DECIMAL(10,3)), CAST(X'00FF41' AS BINARY(3)), b'1010')",
		"JSON_ARRAY(CAST(18446744073709551615 AS UNSIGNED), CAST(TIMESTAMP'2024-01-01 00:00:00' AS JSON))",
		"CAST(1.10 AS JSON)", "JSON_ARRAY(1e0, 0.1e0, 1e20, 123456789012345680000e0)", "JSON_ARRAY(REPEAT('x', 70000), 1)", "JSON_OBJECT(REPEAT('k', 300), REPEAT('v', 300))",
		"JSON_REMOVE(JSON_OBJECT('flag', TRUE, 'kind', FALSE, 'long', REPEAT('y', 1000)), '$.kind')", // TYPE-17
	}, func(r *rand.Rand) string { return fmt.Sprintf("CAST(%v AS JSON)", r.NormFloat64()*1e5) }}}
}

func allTypeCases() []typeCase {
	var all []typeCase
	for _, cases := range [][]typeCase{integerCases(), numberCases(), timeCases(), textCases(), listCases(), jsonCases(), spatialCases(), vectorCases()} {
		all = append(all, cases...)
	}
	return all
}

// literals are the values of a case, NULL and a few random ones among them.
func (c typeCase) literals(r *rand.Rand) []string {
	values := append([]string{"NULL"}, c.values...)
	if c.random != nil {
		for range 6 {
			values = append(values, c.random(r))
		}
	}
	return values
}

// The rows of a table in the test of types, by their ids: what was there before the snapshot, what came by the stream,
// and what the stream updates and deletes.
const (
	copied   = 0
	streamed = 1000
	updated  = 2000
	deleted  = 3000
)

func (c typeCase) before(values []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (id INT PRIMARY KEY, v %s NULL);\n", c.table, c.column)
	for _, group := range []int{copied, updated, deleted} {
		b.WriteString(c.insert(group, values))
	}
	return b.String()
}

func (c typeCase) insert(group int, values []string) string {
	rows := make([]string, len(values))
	for i, v := range values {
		rows[i] = fmt.Sprintf("(%d, %s)", group+i, v)
	}
	return fmt.Sprintf("INSERT INTO %s VALUES %s;\n", c.table, strings.Join(rows, ", "))
}

// after streams all values as inserts and moves each value on to the next row by updates.
func (c typeCase) after(values []string) string {
	var b strings.Builder
	b.WriteString(c.insert(streamed, values))
	for i := range values {
		fmt.Fprintf(&b, "UPDATE %s SET v = %s WHERE id = %d;\n", c.table, values[(i+1)%len(values)], updated+i)
	}
	fmt.Fprintf(&b, "DELETE FROM %s WHERE id >= %d;\n", c.table, deleted)
	return b.String()
}

func tables(cases []typeCase) []string {
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.table
	}
	return names
}

func newRandom(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestEveryTypeByteForByte: what the source prints, Tidemark prints, whichever way the row came, and still after a
// restart and in parts as well as in segments.
func TestEveryTypeByteForByte(t *testing.T) {
	t.Parallel()
	source, r := sharedSource(t, abroad...), newRandom(t)
	db := source.FreshDatabase(t)
	cases := allTypeCases()
	before, after := lenient, lenient
	for _, c := range cases {
		values := c.literals(r)
		before += c.before(values)
		after += c.after(values)
	}
	script(t, source.Login, db, before)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	t.Run("snapshot", func(t *testing.T) { tidemarktest.SameTables(t, source.Login, tm.Login, db, tables(cases)...) })
	script(t, source.Login, db, after)
	allLive(t, tm.CatchUp(source, db))
	t.Run("stream", func(t *testing.T) { tidemarktest.SameTables(t, source.Login, tm.Login, db, tables(cases)...) })
	t.Run("binary protocol", func(t *testing.T) { samePrepared(t, source, tm, db, tables(cases)) })
	t.Run("metadata", func(t *testing.T) { sameMetadata(t, source.Login, tm.Login, db, tables(cases)) })
	t.Run("show create table", func(t *testing.T) { sameDefinitions(t, source.Login, tm.Login, db, tables(cases)...) })
	verifyEqual(t, tm, db)
	tm.VerifyStore()
	tm.Restart()
	t.Run("restart", func(t *testing.T) { tidemarktest.SameTables(t, source.Login, tm.Login, db, tables(cases)...) })
	script(t, source.Login, db, lenient+"UPDATE i32 SET v = id; UPDATE js SET v = JSON_ARRAY(id); UPDATE dt6 SET v = NULL WHERE id = 1;")
	tm.CatchUp(source, db)
	t.Run("after restart", func(t *testing.T) { tidemarktest.SameTables(t, source.Login, tm.Login, db, tables(cases)...) })
	verifyEqual(t, tm, db)
}

// TestTimeZoneByName: a source whose zone has a name and summer time shows its TIMESTAMPs here as it does there.
func TestTimeZoneByName(t *testing.T) {
	t.Parallel()
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	loadZone(t, source)
	source.Exec(t, "", "SET GLOBAL time_zone = 'Europe/Berlin'")
	db := source.FreshDatabase(t)
	var cases []typeCase
	for _, c := range timeCases() {
		if strings.HasPrefix(c.table, "ts") {
			// both sides of a change, and the hour that there is twice
			c.values = append(c.values, "'2024-03-31 00:59:59'", "'2024-03-31 01:00:00'", "'2024-10-27 00:30:00'", "'2024-10-27 01:30:00'", "'1980-04-06 00:30:00'")
			cases = append(cases, c)
		}
	}
	r := newRandom(t)
	before, after := lenient, lenient
	for _, c := range cases {
		values := c.literals(r)
		before += c.before(values)
		after += c.after(values)
	}
	script(t, source.Login, db, before)
	tm := tidemarktest.Start(t, tidemarktest.Options{})
	tm.Create(source.Login, db)
	script(t, source.Login, db, after)
	tm.CatchUp(source, db)
	tidemarktest.SameTables(t, source.Login, tm.Login, db, tables(cases)...)
	for _, zone := range []string{"+00:00", "-03:30", "Europe/Berlin"} {
		var queries []tidemarktest.Query
		for _, c := range cases {
			queries = append(queries, tidemarktest.Query{Name: c.table + " in " + zone, Text: "SET time_zone = '" + zone + "'; SELECT * FROM " + c.table})
		}
		tidemarktest.Same(t, source.Login, tm.Login, db, queries...)
	}
	verifyEqual(t, tm, db)
}

// loadZone gives the source the zone's rules since 1980, as mysql_tzinfo_to_sql would.
func loadZone(t *testing.T, source *mysqltest.Server) {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("this machine has no time zone data: %v", err)
	}
	text := "INSERT INTO time_zone (Time_zone_id, Use_leap_seconds) VALUES (77, 'N');\n" +
		"INSERT INTO time_zone_name (Name, Time_zone_id) VALUES ('Europe/Berlin', 77);\n" +
		"INSERT INTO time_zone_transition_type VALUES (77, 0, 3600, 0, 'CET'), (77, 1, 7200, 1, 'CEST');\n"
	for at := time.Date(1970, 1, 1, 0, 0, 0, 0, zone); ; {
		_, next := at.ZoneBounds()
		if next.IsZero() || next.Year() > 2037 {
			break
		}
		kind := 0
		if next.IsDST() {
			kind = 1
		}
		text += fmt.Sprintf("INSERT INTO time_zone_transition VALUES (77, %d, %d);\n", next.Unix(), kind)
		at = next
	}
	script(t, source.Login, "mysql", text)
}

// unknowable is what SHOW CREATE TABLE of the source shows and nobody else can know: the next AUTO_INCREMENT value, and
// whether a column was given a character set or collation that it would have had anyway.
var unknowable = regexp.MustCompile(` AUTO_INCREMENT=\d+| CHARACTER SET \w+| COLLATE \w+`)

// sameDefinitions compares SHOW CREATE TABLE but for what is unknowable, and SHOW FULL COLUMNS, which has the collations.
func sameDefinitions(t *testing.T, source, tm mysqltest.Login, db string, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, query := range []string{"SHOW CREATE TABLE `%s`.`%s`", "SHOW FULL COLUMNS FROM `%s`.`%s`"} {
			query = fmt.Sprintf(query, db, name)
			want, got := value(t, source, "%s", query), value(t, tm, "%s", query)
			want = strings.ReplaceAll(want, "select,insert,update,references", "select") // there are no writes here
			if unknowable.ReplaceAllString(want, "") != unknowable.ReplaceAllString(got, "") {
				t.Errorf("%s\nsource: %s\nhere:   %s", query, want, got)
			}
		}
	}
}

// samePrepared compares what prepared statements give, which comes in the binary protocol.
func samePrepared(t *testing.T, source *mysqltest.Server, tm *tidemarktest.Server, db string, names []string) {
	t.Helper()
	from, here := source.DB(t, db), tm.DB(db)
	for _, name := range names {
		query := "SELECT * FROM `" + name + "` WHERE id >= ? ORDER BY id"
		want, got := prepared(t, from, query), prepared(t, here, query)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Errorf("%s: row %d differs: source %.300q, here %.300q", name, i, want[min(i, len(want)-1)], got[min(i, len(got)-1)])
				break
			}
		}
	}
}

// prepared gives the rows in Go's own notation, which shows the types that the driver chose.
func prepared(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, 0)
	if err != nil {
		t.Fatalf("%v\nin: %s", err, query)
	}
	defer rows.Close()
	out := []string{"no rows"}
	for rows.Next() {
		var id int64
		var v any
		if err := rows.Scan(&id, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d %T %v", id, v, v))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// sameMetadata compares what clients are told of the columns.
func sameMetadata(t *testing.T, source, tm mysqltest.Login, db string, names []string) {
	t.Helper()
	for _, name := range names {
		ask := func(s mysqltest.Login) string {
			out, err := s.Client(t.Context(), nil, "--table", "--column-type-info", "-e", "SELECT * FROM `"+name+"` LIMIT 0", db)
			must(t, err)
			return string(out)
		}
		if want, got := ask(source), ask(tm); want != got {
			t.Errorf("%s: the columns are announced differently:\nsource: %s\nhere: %s", name, want, got)
		}
	}
}

// verifyEqual runs `tidemark verify` and wants every table equal.
func verifyEqual(t *testing.T, tm *tidemarktest.Server, db string) {
	t.Helper()
	if r := tm.Run("verify", db); r.Code != 0 {
		t.Errorf("verify %s: code %d\n%s%s", db, r.Code, r.Out, r.Err)
	}
}

// allLive wants no table in quarantine.
func allLive(t *testing.T, st tidemarktest.Status) {
	t.Helper()
	for _, table := range st.Tables {
		if table.State != "live" {
			t.Errorf("table %s is %s: %s", table.Name, table.State, table.Problem())
		}
	}
}
