package differential

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// expressions makes random expressions over the tables of edge values, with types mixed as they come.
type expressions struct{ r *rand.Rand }

func (g expressions) one(of ...string) string { return of[g.r.IntN(len(of))] }

var randomColumns = strings.Fields(`ti tu si su mi mu i u bi bu b1 b8 ints.y z nn d1 d2 d3 d5 f1 g1 h1 a b c d e f g h k en se
	times.d dt dt6 ts ts3 t t6`)

func (g expressions) column() string {
	c := g.one(randomColumns...)
	return map[string]string{"f1": "nums.f", "g1": "nums.g", "h1": "nums.h", "d": "texts.d", "f": "texts.f", "g": "texts.g", "h": "texts.h"}[c] +
		map[bool]string{true: c}[!strings.Contains(" f1 g1 h1 d f g h ", " "+c+" ")]
}

func (g expressions) literal() string {
	return g.one("0", "1", "-1", "2", "7", "255", "-128", "2147483648", "9223372036854775807", "18446744073709551615", "0.5", "1.50", "-2.25", "100.001",
		"1e0", "1.5e2", "NULL", "'abc'", "'ABC '", "''", "'12'", "'1.5x'", "'a%'", "'2024-02-29'", "'2024-02-29 12:34:56'", "'12:34:56'",
		"DATE '2024-02-29'", "TIMESTAMP '2024-01-01 00:00:00'", "TIME '12:34:56'", "X'41'", "0x41", "b'101'", "'x,y'", "'é'")
}

func (g expressions) expr(depth int) string {
	if depth <= 0 || g.r.IntN(8) == 0 {
		if g.r.IntN(3) == 0 {
			return g.literal()
		}
		return g.column()
	}
	x := func() string { return g.expr(depth - 1 - g.r.IntN(2)) }
	switch g.r.IntN(7) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", x(), g.one("+", "-", "*", "/", "DIV", "%"), x())
	case 1:
		return fmt.Sprintf("(%s %s %s)", x(), g.one("=", "<>", "<", "<=", ">", ">=", "<=>"), x())
	case 2:
		return fmt.Sprintf("(%s %s %s)", x(), g.one("AND", "OR", "XOR", "&", "|", "^"), x())
	case 3:
		return g.predicate(x)
	case 4:
		return g.conditional(x)
	default:
		return g.function(x)
	}
}

func (g expressions) predicate(x func() string) string {
	switch g.r.IntN(7) {
	case 0:
		return fmt.Sprintf("(%s IS %sNULL)", x(), g.one("", "NOT "))
	case 1:
		return fmt.Sprintf("(%s IS %s)", x(), g.one("TRUE", "FALSE", "NOT TRUE", "UNKNOWN"))
	case 2:
		return fmt.Sprintf("(%s %sBETWEEN %s AND %s)", x(), g.one("", "NOT "), x(), x())
	case 3:
		return fmt.Sprintf("(%s %sIN (%s, %s, %s))", x(), g.one("", "NOT "), x(), g.literal(), g.literal())
	case 4:
		return fmt.Sprintf("(%s %sLIKE %s)", x(), g.one("", "NOT "), g.one("'a%'", "'%b%'", "'_bc'", "'1%'", x()))
	case 5:
		return fmt.Sprintf("(NOT %s)", x())
	default:
		return fmt.Sprintf("(- %s)", x())
	}
}

func (g expressions) conditional(x func() string) string {
	switch g.r.IntN(6) {
	case 0:
		return fmt.Sprintf("IF(%s, %s, %s)", x(), x(), x())
	case 1:
		return fmt.Sprintf("IFNULL(%s, %s)", x(), x())
	case 2:
		return fmt.Sprintf("COALESCE(%s, %s, %s)", x(), x(), x())
	case 3:
		return fmt.Sprintf("NULLIF(%s, %s)", x(), x())
	case 4:
		return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", x(), x(), x())
	default:
		return fmt.Sprintf("CASE %s WHEN %s THEN %s WHEN %s THEN %s END", x(), x(), x(), x(), x())
	}
}

func (g expressions) function(x func() string) string {
	switch g.r.IntN(8) {
	case 5:
		return fmt.Sprintf("(%s %s INTERVAL %s %s)", x(), g.one("+", "-"), g.one("1", "-3", "id", "100"), g.one("DAY", "MONTH", "YEAR", "HOUR", "SECOND", "WEEK", "QUARTER"))
	case 6:
		return fmt.Sprintf(g.one("TIMESTAMPDIFF(MONTH, %s, %s)", "TIMESTAMPDIFF(SECOND, %s, %s)", "SUBSTRING_INDEX(%s, %s, 1)", "FIND_IN_SET(%s, %s)", "FIELD(%s, 'abc', %s)",
			"ELT(%s, %s, 'x')", "LOG(%s, %s)", "ATAN2(%s, %s)", "TIMEDIFF(%s, %s)", "REPLACE(%s, %s, 'z')", "CONCAT_WS(',', %s, %s)"), x(), x())
	case 7:
		return fmt.Sprintf(g.one("ROUND(%s, 1)", "TRUNCATE(%s, 2)", "FORMAT(%s, 2)", "LPAD(%s, 5, 'x')", "RPAD(%s, 3, '12')", "REPEAT(%s, 2)", "WEEK(%s)", "YEARWEEK(%s, 1)",
			"DATE_FORMAT(%s, '%%Y-%%m-%%d %%H:%%i:%%s.%%f')", "EXTRACT(YEAR_MONTH FROM %s)", "TIME_TO_SEC(%s)", "SEC_TO_TIME(%s)", "LN(%s)", "EXP(%s)", "FROM_UNIXTIME(%s)", "CRC32(%s)", "MAKEDATE(%s, 5)", "TIME(%s)"), x())
	case 0:
		return fmt.Sprintf("%s(%s)", g.one("ABS", "SIGN", "CEIL", "FLOOR", "ROUND", "SQRT", "BIT_COUNT", "ISNULL"), x())
	case 1:
		return fmt.Sprintf("%s(%s)", g.one("UPPER", "LOWER", "LENGTH", "CHAR_LENGTH", "TRIM", "LTRIM", "REVERSE", "HEX", "ASCII"), x())
	case 2:
		return fmt.Sprintf("%s(%s, %s)", g.one("CONCAT", "LEFT", "RIGHT", "SUBSTR", "LOCATE", "INSTR", "STRCMP", "MOD", "GREATEST", "LEAST", "POW", "DATEDIFF"), x(), x())
	case 3:
		return fmt.Sprintf("%s(%s)", g.one("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER", "DAYOFWEEK", "WEEKDAY", "DATE", "LAST_DAY", "TO_DAYS", "DAYNAME"), x())
	default:
		return fmt.Sprintf("CAST(%s AS %s)", x(), g.one("SIGNED", "UNSIGNED", "CHAR", "CHAR(3)", "DECIMAL(10,2)", "DECIMAL(30,5)", "DOUBLE", "DATE", "DATETIME"))
	}
}

// statement selects an expression, filters by one, or groups or sorts by one.
func (g expressions) statement(depth int) string {
	const from = " FROM ints JOIN nums USING (id) JOIN texts USING (id) JOIN times USING (id)"
	switch g.r.IntN(8) {
	case 0:
		return "SELECT id" + from + " WHERE " + g.expr(depth)
	case 1:
		return "SELECT " + g.one("COUNT", "SUM", "MIN", "MAX", "AVG", "COUNT(DISTINCT ") + "(" + g.expr(depth-1) + ")" + from
	case 2:
		return "SELECT COUNT(*)" + from + " GROUP BY " + g.expr(depth-1)
	default:
		return "SELECT id, " + g.expr(depth) + from
	}
}

func countClosed(sql string) string {
	return strings.Replace(sql, "COUNT(DISTINCT (", "COUNT(DISTINCT ", 1)
}

// TestRandom compares random statements. TIDEMARK_RANDOM is the number of statements, TIDEMARK_SEED the seed.
func TestRandom(t *testing.T) {
	count, seed := numberIn("TIDEMARK_RANDOM", 400), numberIn("TIDEMARK_SEED", 1)
	t.Logf("seed %d", seed)
	b := open(t)
	g := expressions{rand.New(rand.NewPCG(uint64(seed), 0))}
	b.compareRandom(count, func() string { return countClosed(g.statement(1 + g.r.IntN(3))) })
}

// compareRandom compares made statements until too many differ.
func (b *both) compareRandom(count int, statement func() string) {
	const enough = 40
	answered, refused, failed := 0, map[string]int{}, 0
	for range count {
		sql := statement()
		replica, construct := b.askReplica(sql)
		if replica.code == 1690 {
			construct = "a value out of range"
		}
		if construct != "" {
			refused[construct]++
			continue
		}
		source := b.ask(sql)
		if outOfRange(source) {
			continue
		}
		answered++
		if d := difference(sql, source, replica); d != "" {
			failed++
			b.t.Errorf("%s\n  %s\n  source %q %s\n  replica %q %s", d, sql, source.rows, source.text, replica.rows, replica.text)
		}
		if failed > enough {
			break
		}
	}
	b.t.Logf("%d answered alike, %d differently, refused: %v", answered-failed, failed, refused)
}

// outOfRange: whether an overflow in a value that is not needed ends the statement is open, as it depends on what is
// computed for which row.
func outOfRange(a answer) bool { return a.code == 1690 }

func numberIn(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}
