package translate

import (
	"fmt"
	"strings"
	"time"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
)

func dateFunctions() map[string]builtin {
	m := map[string]builtin{
		"date": {1, 1, fnDate}, "last_day": {1, 1, fnLastDay}, "datediff": {2, 2, fnDateDiff}, "to_days": {1, 1, fnToDays},
		"date_format": {2, 2, fnDateFormat}, "dayname": {1, 1, fnDayName("dayname")}, "monthname": {1, 1, fnDayName("monthname")},
		"timestamp": {1, 1, fnTimestamp},
	}
	for name, p := range dateParts {
		m[name] = builtin{1, 1, fnDatePart(name, p)}
	}
	return m
}

// datePart is a number taken from a date or time.
type datePart struct {
	sql    string // of a DATE or TIMESTAMP
	time   string // of a TIME; empty: not for TIME
	length int
	clock  bool // needs a time of day: zero for a DATE
}

var dateParts = map[string]datePart{
	"year": {sql: "year(%s)", length: 4}, "month": {sql: "month(%s)", length: 2},
	"day": {sql: "day(%s)", length: 2}, "dayofmonth": {sql: "day(%s)", length: 2},
	"quarter": {sql: "quarter(%s)", length: 1}, "dayofyear": {sql: "dayofyear(%s)", length: 3},
	"dayofweek": {sql: "(dayofweek(%s) + 1)", length: 1}, "weekday": {sql: "(isodow(%s) - 1)", length: 1},
	"weekofyear":  {sql: "week(%s)", length: 2},
	"hour":        {sql: "hour(%s)", time: "(abs(%s) // 3600000000)", length: 2, clock: true},
	"minute":      {sql: "minute(%s)", time: "(abs(%s) // 60000000 %% 60)", length: 2, clock: true},
	"second":      {sql: "second(%s)", time: "(abs(%s) // 1000000 %% 60)", length: 2, clock: true},
	"microsecond": {sql: "(microsecond(%s) %% 1000000)", time: "(abs(%s) %% 1000000)", length: 6, clock: true},
}

func fnDatePart(name string, p datePart) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		x := args[0]
		if p.clock && x.lit != nil && x.lit.Kind == TextValue {
			if us, fsp, ok := parseTime(x.lit.Text); ok {
				x = expr{sql: itoa(int(us)), typ: timeType(fsp), phys: phys{k: physMicros}}
			} else if d, ok := parseDateTime(x.lit.Text); ok && d.isDate {
				return x, unsupported("%s of the constant '%s'", strings.ToUpper(name), x.lit.Text)
			}
		}
		d, err := t.temporal(x)
		if err != nil {
			return d, err
		}
		sql := p.sql
		switch {
		case d.typ.Kind == KindTime && p.time == "":
			return d, unsupported("%s of a TIME", strings.ToUpper(name))
		case d.typ.Kind == KindTime:
			sql = p.time
		case d.typ.Kind == KindDate && p.clock:
			sql = "CASE WHEN %s IS NOT NULL THEN 0 END"
		}
		out := bigintResult("CAST("+fmt.Sprintf(sql, d.sql)+" AS BIGINT)", p.length, args...)
		out.typ.Nullable = true
		if name == "year" {
			out.typ.Field, out.typ.Unsigned = mysql.TypeYear, true
			out.sql, out.phys = "CAST("+fmt.Sprintf(sql, d.sql)+" AS INTEGER)", phys{k: physInt32}
		}
		return out, nil
	}
}

func fnDate(t *translator, e *env, args []expr) (expr, error) {
	x, err := t.castDate(args[0])
	x.typ.Nullable = true
	return x, err
}

func fnTimestamp(t *translator, e *env, args []expr) (expr, error) {
	fsp := 0
	if args[0].typ.temporal() {
		fsp = args[0].typ.Scale
	}
	x, err := t.castDateTime(args[0], fsp)
	x.typ.Nullable = true
	return x, err
}

func fnLastDay(t *translator, e *env, args []expr) (expr, error) {
	x, err := t.castDate(args[0])
	x.sql = "last_day(" + x.sql + ")"
	x.typ.Nullable = true
	return x, err
}

func fnDateDiff(t *translator, e *env, args []expr) (expr, error) {
	a, err := t.castDate(args[0])
	if err != nil {
		return a, err
	}
	b, err := t.castDate(args[1])
	out := bigintResult(fmt.Sprintf("(%s - %s)", a.sql, b.sql), 7, args...)
	out.typ.Nullable = true
	return out, err
}

// yearZeroDays is TO_DAYS('1970-01-01').
const yearZeroDays = 719528

func fnToDays(t *translator, e *env, args []expr) (expr, error) {
	a, err := t.castDate(args[0])
	out := bigintResult(fmt.Sprintf("((%s - DATE '1970-01-01') + %d)", a.sql, yearZeroDays), 6, args...)
	out.typ.Nullable = true
	return out, err
}

func fnDayName(name string) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		d, err := t.castDate(args[0])
		c := collated{coll: t.effective(collationByName(t.session.Collation)), coer: Coercible, ascii: true}
		out := textResult(name+"("+d.sql+")", 9, c, args...)
		out.typ.Nullable = true
		return out, err
	}
}

// dateFormats maps the specifiers of DATE_FORMAT to those of strftime.
var dateFormats = map[byte]string{
	'Y': "%Y", 'y': "%y", 'm': "%m", 'c': "%-m", 'd': "%d", 'e': "%-d", 'H': "%H", 'k': "%-H", 'h': "%I", 'I': "%I", 'l': "%-I",
	'i': "%M", 'S': "%S", 's': "%S", 'f': "%f", 'p': "%p", 'M': "%B", 'b': "%b", 'W': "%A", 'a': "%a", 'j': "%j", 'w': "%w",
	'T': "%H:%M:%S", 'r': "%I:%M:%S %p", '%': "%%",
}

func fnDateFormat(t *translator, e *env, args []expr) (expr, error) {
	d, err := t.temporal(args[0])
	if err != nil {
		return d, err
	}
	if d.typ.Kind == KindTime {
		return d, unsupported("DATE_FORMAT of a TIME")
	}
	if args[1].lit == nil || args[1].lit.Kind != TextValue {
		return d, unsupported("DATE_FORMAT with a format that is no constant")
	}
	format := args[1].lit.Text
	c := collated{coll: t.effective(collationByName(t.session.Collation)), coer: Coercible, ascii: isASCII(format)}
	if format == "" {
		return textNull(c), nil
	}
	out := textResult("("+strings.Join(dateFormatParts(d.sql, format), " || ")+")", len(format)*8, c, args...)
	out.typ.Nullable = true
	return out, nil
}

func textNull(c collated) expr {
	x := textResult("CAST(NULL AS VARCHAR)", 0, c)
	x.typ.Nullable = true
	return x
}

// weekFormats are the specifiers that DuckDB has no match for: weeks and their years by WEEK's modes, and the day with
// an English suffix. %s is the date.
var weekFormats = map[byte]string{
	'U': "lpad(CAST(tm_week(%s, 0) AS VARCHAR), 2, '0')", 'u': "lpad(CAST(tm_week(%s, 1) AS VARCHAR), 2, '0')",
	'V': "lpad(CAST(tm_week(%s, 2) AS VARCHAR), 2, '0')", 'v': "lpad(CAST(tm_week(%s, 3) AS VARCHAR), 2, '0')",
	'X': "lpad(CAST(tm_yearweek(%s, 2) // 100 AS VARCHAR), 4, '0')", 'x': "lpad(CAST(tm_yearweek(%s, 3) // 100 AS VARCHAR), 4, '0')",
	'D': "(CAST(day(%[1]s) AS VARCHAR) || CASE WHEN day(%[1]s) IN (1, 21, 31) THEN 'st' WHEN day(%[1]s) IN (2, 22) THEN 'nd' WHEN day(%[1]s) IN (3, 23) THEN 'rd' ELSE 'th' END)",
}

// dateFormatParts cuts a format at the specifiers of weekFormats; the rest is left to strftime.
func dateFormatParts(date, format string) []string {
	var parts []string
	plain := 0
	flush := func(end int) {
		if end > plain {
			parts = append(parts, fmt.Sprintf("strftime(%s, %s)", date, quoteText(strftimeFormat(format[plain:end]))))
		}
	}
	for i := 0; i+1 < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if sql, ok := weekFormats[format[i+1]]; ok {
			flush(i)
			parts = append(parts, fmt.Sprintf(sql, "CAST("+date+" AS DATE)"))
			plain = i + 2
		}
		i++
	}
	flush(len(format))
	return parts
}

// strftimeFormat rewrites a format; a specifier that MySQL does not know stands for its letter.
func strftimeFormat(f string) string {
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			if f[i] == '%' {
				b.WriteByte('%')
			}
			b.WriteByte(f[i])
			continue
		}
		i++
		if spec, ok := dateFormats[f[i]]; ok {
			b.WriteString(spec)
		} else {
			b.WriteByte(f[i])
		}
	}
	return b.String()
}

// now gives NOW() and its relatives, one time for the whole statement.
func (t *translator) now(n *ast.FuncCallExpr) (expr, error) {
	fsp := 0
	if len(n.Args) == 1 {
		v, ok, err := t.constant(n.Args[0])
		if err != nil || !ok || v.Kind != IntValue || v.Int < 0 || v.Int > 6 {
			return expr{}, unsupported("%s with this argument", strings.ToUpper(n.FnName.L))
		}
		fsp = int(v.Int)
	}
	at := t.session.Now.In(t.session.Location)
	name := n.FnName.L
	if strings.HasPrefix(name, "utc_") {
		at = t.session.Now.UTC()
	}
	switch name {
	case "curdate", "current_date", "utc_date":
		return temporalLiteral(Value{Kind: DateValue, Text: at.Format("2006-01-02")})
	case "curtime", "current_time", "utc_time":
		return temporalLiteral(Value{Kind: TimeValue, Text: formatFSP(at, fsp)[11:]})
	}
	return temporalLiteral(Value{Kind: DateTimeValue, Text: formatFSP(at.Truncate(time.Microsecond), fsp)})
}

// temporalKeyword translates DATE '...', TIME '...' and TIMESTAMP '...'.
func (t *translator) temporalKeyword(e *env, n *ast.FuncCallExpr) (expr, error) {
	v, ok, err := t.constant(n.Args[0])
	if err != nil || !ok || v.Kind != TextValue {
		return expr{}, unsupported("a temporal literal of this form")
	}
	kind, name := DateValue, "DATE"
	switch {
	case strings.Contains(n.FnName.L, "timestamp"):
		kind, name = DateTimeValue, "DATETIME"
	case strings.Contains(n.FnName.L, "time"):
		kind, name = TimeValue, "TIME"
	}
	if kind != TimeValue {
		if _, ok := parseDateTime(v.Text); !ok {
			return expr{}, errWrongValue(name, v.Text)
		}
	}
	return temporalLiteral(Value{Kind: kind, Text: v.Text})
}

// intervalUnits are the units of INTERVAL that are a whole number of months or microseconds.
var intervalUnits = map[ast.TimeUnitType]struct {
	months int64
	micros int64
}{
	ast.TimeUnitYear: {12, 0}, ast.TimeUnitQuarter: {3, 0}, ast.TimeUnitMonth: {1, 0},
	ast.TimeUnitWeek: {0, 7 * dayMicros}, ast.TimeUnitDay: {0, dayMicros}, ast.TimeUnitHour: {0, 3600e6},
	ast.TimeUnitMinute: {0, 60e6}, ast.TimeUnitSecond: {0, 1e6}, ast.TimeUnitMicrosecond: {0, 1},
}

const dayMicros = 24 * 3600 * int64(1e6)

// dateArithmetic translates DATE_ADD, DATE_SUB and date ± INTERVAL n unit.
func (t *translator) dateArithmetic(e *env, n *ast.FuncCallExpr) (expr, error) {
	name := n.FnName.L
	unit := ast.TimeUnitDay
	if len(n.Args) == 3 {
		u, ok := n.Args[2].(*ast.TimeUnitExpr)
		if !ok {
			return expr{}, unsupported("this form of INTERVAL")
		}
		unit = u.Unit
	}
	x, err := t.expr(e, n.Args[0])
	if err != nil {
		return x, err
	}
	amount, err := t.expr(e, n.Args[1])
	if err != nil {
		return amount, err
	}
	sign := "+"
	if name == "date_sub" || name == "subdate" {
		sign = "-"
	}
	return t.shiftDate(x, sign, amount, unit)
}

// shiftDate moves a date by an interval. A result outside of the years 1 to 9999 is NULL.
func (t *translator) shiftDate(x expr, sign string, amount expr, unit ast.TimeUnitType) (expr, error) {
	u, ok := intervalUnits[unit]
	if !ok {
		return x, unsupported("INTERVAL ... %s", strings.ToUpper(unit.String()))
	}
	if folded, ok := t.shiftedConstant(x, sign, amount, unit); ok {
		return folded, nil
	}
	if !x.typ.temporal() {
		return x, unsupported("date arithmetic over text or numbers; CAST(... AS DATE) or DATETIME works")
	}
	if x.typ.Kind == KindTime {
		return x, unsupported("INTERVAL arithmetic over TIME")
	}
	if amount.typ.Kind != KindInt && (amount.lit == nil || amount.lit.Kind != TextValue) {
		return x, unsupported("INTERVAL of an amount that is no integer")
	}
	if amount.lit != nil && amount.lit.Kind == TextValue {
		i, ok := integerText(amount.lit.Text)
		if !ok {
			return x, unsupported("INTERVAL '%s'", amount.lit.Text)
		}
		amount = intLiteral(i)
	}
	count := amount.number().bigint()
	if u.months > 0 {
		count = fmt.Sprintf("to_months(CAST(%s * %d AS INTEGER))", count, u.months)
	} else {
		count = fmt.Sprintf("to_microseconds(%s * %d)", count, u.micros)
		if u.micros%dayMicros == 0 {
			count = fmt.Sprintf("to_days(CAST(%s * %d AS INTEGER))", amount.number().bigint(), u.micros/dayMicros)
		}
	}
	if l := amount.lit; l != nil && l.Kind == IntValue && (l.Int > 1e9 || l.Int < -1e9) {
		return x, unsupported("an INTERVAL of that size")
	}
	sum := fmt.Sprintf("(%s %s %s)", x.sql, sign, count)
	fsp := x.typ.Scale
	if unit == ast.TimeUnitMicrosecond {
		fsp = 6
	}
	sum = fmt.Sprintf("(CASE WHEN %[1]s BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN %[1]s END)", sum)
	out := expr{sql: sum, typ: datetimeType(fsp), phys: phys{k: physTimestamp}}
	if x.typ.Kind == KindDate && u.micros%dayMicros == 0 {
		out = expr{sql: "CAST(" + sum + " AS DATE)", typ: dateType(), phys: phys{k: physDate}}
	}
	out.typ.Nullable = true
	return out, nil
}

// shiftedConstant computes the sum of a constant date and a constant interval. A date given as a string gives a string.
func (t *translator) shiftedConstant(x expr, sign string, amount expr, unit ast.TimeUnitType) (expr, bool) {
	if x.lit == nil || amount.lit == nil || amount.lit.Kind != IntValue || x.lit.Kind == TimeValue || unit == ast.TimeUnitMicrosecond {
		return expr{}, false
	}
	d, ok := parseDateTime(x.lit.Text)
	n := amount.lit.Int
	if !ok || n > 1e6 || n < -1e6 {
		return expr{}, false
	}
	if sign == "-" {
		n = -n
	}
	u := intervalUnits[unit]
	at := d.t.Add(time.Duration(n*u.micros/1e6) * time.Second)
	if u.months > 0 {
		at = addMonths(d.t, int(n*u.months))
	}
	if at.Year() < 1 || at.Year() > 9999 {
		return expr{}, false
	}
	sum := civil{t: at, fsp: d.fsp, isDate: d.isDate && u.micros%dayMicros == 0}
	v := Value{Kind: DateTimeValue, Text: sum.text()}
	switch {
	case x.lit.Kind == TextValue:
		return t.textLiteral(sum.text()), true
	case sum.isDate:
		v.Kind = DateValue
	}
	out, err := temporalLiteral(v)
	return out, err == nil
}

// addMonths keeps the day of the month, or takes the month's last day.
func addMonths(at time.Time, n int) time.Time {
	first := time.Date(at.Year(), at.Month()+time.Month(n), 1, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(at.Day(), last)-1)
}

// unitCall translates functions whose first argument is a unit of time.
func (t *translator) unitCall(e *env, n *ast.FuncCallExpr) (expr, error) {
	u, ok := n.Args[0].(*ast.TimeUnitExpr)
	if !ok {
		return expr{}, unsupported("function %s", strings.ToUpper(n.FnName.L))
	}
	args, err := t.exprs(e, n.Args[1:])
	if err != nil {
		return expr{}, err
	}
	switch n.FnName.L {
	case "extract":
		return t.extract(e, u.Unit, args)
	case "timestampdiff":
		return t.timestampDiff(u.Unit, args)
	case "timestampadd":
		return t.shiftDate(args[1], "+", args[0], u.Unit)
	}
	return expr{}, unsupported("function %s", strings.ToUpper(n.FnName.L))
}

func (t *translator) extract(e *env, unit ast.TimeUnitType, args []expr) (expr, error) {
	name := strings.ToLower(unit.String())
	if unit == ast.TimeUnitYearMonth {
		d, err := t.castDate(args[0])
		out := bigintResult(fmt.Sprintf("(CAST(year(%[1]s) AS BIGINT) * 100 + month(%[1]s))", d.sql), 6, args...)
		out.typ.Nullable = true
		return out, err
	}
	p, ok := dateParts[name]
	if !ok || unit == ast.TimeUnitWeek {
		return expr{}, unsupported("EXTRACT(%s ...)", strings.ToUpper(name))
	}
	x, err := fnDatePart(name, p)(t, e, args)
	x.typ.Field, x.typ.Unsigned = mysql.TypeLonglong, false
	x.sql, x.phys = x.bigint(), phys{k: physInt64}
	return x, err
}

// monthsBetween counts whole months: one is whole when the day and time of day are reached again.
func monthsBetween(a, b string) string {
	month := func(x string) string { return fmt.Sprintf("(CAST(year(%[1]s) AS BIGINT) * 12 + month(%[1]s))", x) }
	rest := func(x string) string {
		return fmt.Sprintf("(epoch_us(%[1]s) - epoch_us(date_trunc('month', %[1]s)))", x)
	}
	return fmt.Sprintf("(%s - %s + CASE WHEN %[3]s >= %[4]s AND %[5]s < %[6]s THEN -1 WHEN %[3]s < %[4]s AND %[5]s > %[6]s THEN 1 ELSE 0 END)",
		month(b), month(a), b, a, rest(b), rest(a))
}

// timestampDiff counts whole units between two moments, cut towards zero.
func (t *translator) timestampDiff(unit ast.TimeUnitType, args []expr) (expr, error) {
	u, ok := intervalUnits[unit]
	if !ok {
		return expr{}, unsupported("TIMESTAMPDIFF(%s ...)", strings.ToUpper(unit.String()))
	}
	var sides [2]string
	for i := range args {
		d, err := t.temporal(args[i])
		if err != nil {
			return d, err
		}
		if d.typ.Kind == KindTime {
			return d, unsupported("TIMESTAMPDIFF of a TIME")
		}
		sides[i] = d.sql
		if d.typ.Kind == KindDate {
			sides[i] = "CAST(" + d.sql + " AS TIMESTAMP)"
		}
	}
	sql := fmt.Sprintf("((epoch_us(%s) - epoch_us(%s)) // %d)", sides[1], sides[0], u.micros)
	if u.months > 0 {
		sql = fmt.Sprintf("(%s // %d)", monthsBetween(sides[0], sides[1]), u.months)
	}
	out := bigintResult("CAST("+sql+" AS BIGINT)", 21, args...)
	out.typ.Nullable = true
	return out, nil
}
