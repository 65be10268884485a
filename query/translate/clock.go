package translate

import (
	"fmt"

	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/tidemarkdb/tidemark/query/function"
)

// clockFunctions are those over weeks, seconds and times of day.
func clockFunctions() map[string]builtin {
	return map[string]builtin{
		"week": {1, 2, fnWeek("tm_week", 2)}, "yearweek": {1, 2, fnWeek("tm_yearweek", 6)},
		"from_unixtime": {1, 1, fnFromUnixtime}, "time_to_sec": {1, 1, fnTimeToSec}, "sec_to_time": {1, 1, fnSecToTime},
		"str_to_date": {2, 2, fnStrToDate}, "convert_tz": {3, 3, fnConvertTZ}, "unix_timestamp": {0, 1, fnUnixTimestamp},
		"timediff": {2, 2, fnTimeDiff}, "time": {1, 1, fnTime}, "makedate": {2, 2, fnMakeDate}, "from_days": {1, 1, fnFromDays},
	}
}

const weekModes = 7

func fnWeek(name string, length int) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		d, err := t.castDate(args[0])
		if err != nil {
			return d, err
		}
		mode := int64(0)
		if len(args) == 2 {
			l := args[1].lit
			if l == nil || l.Kind != IntValue || l.Int < 0 || l.Int > weekModes {
				return d, unsupported("a mode of WEEK that is no constant from 0 to 7")
			}
			mode = l.Int
		}
		if name == "tm_yearweek" {
			mode |= 2
		}
		out := bigintResult(fmt.Sprintf("%s(%s, %d)", name, d.sql, mode), length, args...)
		out.typ.Nullable = true
		return out, nil
	}
}

// fnFromUnixtime translates FROM_UNIXTIME of an integer; NULL below 0 and after the year 3001.
func fnFromUnixtime(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind != KindInt {
		return expr{}, unsupported("FROM_UNIXTIME of anything but an integer")
	}
	offset, fixed := fixedOffset(t.session.Location)
	if !fixed {
		return expr{}, unsupported("FROM_UNIXTIME in a time zone with changing offsets")
	}
	n := args[0].number().bigint()
	ty := datetimeType(0)
	ty.Nullable = true
	sql := fmt.Sprintf("(CASE WHEN %[1]s BETWEEN 0 AND 32536771199 THEN make_timestamp((%[1]s + %[2]d) * 1000000) END)", n, offset)
	return expr{sql: sql, typ: ty, phys: phys{k: physTimestamp}}, nil
}

// micros gives the time of day of a value as microseconds: of a TIME all of it.
func (t *translator) micros(x expr) (sql string, fsp int, err error) {
	if x.lit != nil && x.lit.Kind == TextValue {
		if us, fsp, ok := parseTime(x.lit.Text); ok {
			return fmt.Sprintf("%d::BIGINT", us), fsp, nil
		}
	}
	d, err := t.temporal(x)
	if err != nil {
		return "", 0, err
	}
	switch d.typ.Kind {
	case KindTime:
		return d.sql, d.typ.Scale, nil
	case KindDate:
		return "(CASE WHEN " + d.sql + " IS NOT NULL THEN 0::BIGINT END)", 0, nil
	}
	return fmt.Sprintf("(epoch_us(%[1]s) - epoch_us(date_trunc('day', %[1]s)))", d.sql), d.typ.Scale, nil
}

func fnTimeToSec(t *translator, e *env, args []expr) (expr, error) {
	us, _, err := t.micros(args[0])
	out := bigintResult("("+us+" // 1000000)", 10, args...)
	out.typ.Nullable = true
	return out, err
}

func timeResult(sql string, fsp int) expr {
	ty := timeType(fsp)
	ty.Nullable = true
	sql = fmt.Sprintf("(CASE WHEN %[1]s > %[2]d THEN %[2]d WHEN %[1]s < -%[2]d THEN -%[2]d ELSE %[1]s END)", sql, maxTimeMicros)
	return expr{sql: sql, typ: ty, phys: phys{k: physMicros}}
}

func fnSecToTime(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind != KindInt || args[0].phys.k == physUint64 {
		return expr{}, unsupported("SEC_TO_TIME of anything but an integer")
	}
	n := args[0].number().bigint()
	return timeResult(fmt.Sprintf("(CASE WHEN abs(%[1]s) > 4000000 THEN sign(%[1]s) * 4000000 ELSE %[1]s END * 1000000::BIGINT)", n), 0), nil
}

func fnTimeDiff(t *translator, e *env, args []expr) (expr, error) {
	a, b := args[0].typ.Kind, args[1].typ.Kind
	switch {
	case a == KindTime && b == KindTime:
		return timeResult(fmt.Sprintf("(%s - %s)", args[0].sql, args[1].sql), max(args[0].typ.Scale, args[1].typ.Scale)), nil
	case a == KindDateTime && b == KindDateTime:
		return timeResult(fmt.Sprintf("(epoch_us(%s) - epoch_us(%s))", args[0].sql, args[1].sql), max(args[0].typ.Scale, args[1].typ.Scale)), nil
	}
	return expr{}, unsupported("TIMEDIFF of values that are not both TIME or both DATETIME")
}

func fnTime(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind == KindDate {
		return expr{}, unsupported("TIME of a DATE")
	}
	us, fsp, err := t.micros(args[0])
	return timeResult(us, fsp), err
}

// lastDayNumber is TO_DAYS('9999-12-31').
const lastDayNumber = 3652424

// fnMakeDate: years below 100 have two digits; NULL for a day below 1 and a date after the year 9999.
func fnMakeDate(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind != KindInt || args[1].typ.Kind != KindInt {
		return expr{}, unsupported("MAKEDATE of anything but integers")
	}
	y, err := t.position(args[0])
	if err != nil {
		return expr{}, err
	}
	d, err := t.position(args[1])
	year := fmt.Sprintf("(CASE WHEN %[1]s BETWEEN 0 AND 69 THEN %[1]s + 2000 WHEN %[1]s BETWEEN 70 AND 99 THEN %[1]s + 1900 ELSE %[1]s END)", y)
	first := fmt.Sprintf("make_date(CASE WHEN %[1]s BETWEEN 1 AND 9999 THEN %[1]s END, 1, 1)", year)
	ty := dateType()
	ty.Nullable = true
	sql := fmt.Sprintf("(CASE WHEN %[2]s BETWEEN 1 AND %[3]d AND %[1]s - DATE '1970-01-01' + %[2]s <= %[4]d THEN %[1]s + CAST(CASE WHEN %[2]s BETWEEN 1 AND %[3]d THEN %[2]s - 1 END AS INTEGER) END)",
		first, d, lastDayNumber, lastDayNumber-yearZeroDays+1)
	return expr{sql: sql, typ: ty, phys: phys{k: physDate}}, err
}

func fnFromDays(t *translator, e *env, args []expr) (expr, error) {
	if args[0].lit == nil || args[0].lit.Kind != IntValue || args[0].lit.Int < 400 || args[0].lit.Int > lastDayNumber {
		return expr{}, unsupported("FROM_DAYS of a value that is no constant day after year 0")
	}
	ty := dateType()
	ty.Nullable, ty.Field = true, mysql.TypeDate
	return expr{sql: fmt.Sprintf("(DATE '1970-01-01' + %d)", args[0].lit.Int-yearZeroDays), typ: ty, phys: phys{k: physDate}}, nil
}

// fnStrToDate: the format says whether the result is a DATE, a TIME or a DATETIME.
func fnStrToDate(t *translator, e *env, args []expr) (expr, error) {
	s, _, err := t.oneText("STR_TO_DATE", args[0])
	if err != nil {
		return s, err
	}
	l := args[1].lit
	if l == nil || l.Kind != TextValue {
		return s, unsupported("STR_TO_DATE with a format that is no constant")
	}
	f, ok := function.ParseDateFormat(l.Text)
	if !ok || !f.HasDate && !f.HasTime {
		return s, unsupported("STR_TO_DATE with the format '%s'", l.Text)
	}
	fsp := 0
	if f.Fraction {
		fsp = 6
	}
	sql := fmt.Sprintf("tm_str_to_date(%s, %s)", s.sql, args[1].sql)
	out := expr{sql: sql, typ: datetimeType(fsp), phys: phys{k: physTimestamp}}
	switch {
	case !f.HasTime:
		out = expr{sql: "CAST(" + sql + " AS DATE)", typ: dateType(), phys: phys{k: physDate}}
	case !f.HasDate:
		out = expr{sql: "epoch_us(" + sql + ")", typ: timeType(fsp), phys: phys{k: physMicros}}
	}
	out.typ.Nullable = true
	return out, nil
}

// fnConvertTZ translates CONVERT_TZ between constant offsets; what names of zones mean depends on tables of the server.
func fnConvertTZ(t *translator, e *env, args []expr) (expr, error) {
	var offsets [2]int64
	for i, x := range args[1:] {
		us, ok := int64(0), false
		if x.lit != nil && x.lit.Kind == TextValue && x.lit.Text != "" && (x.lit.Text[0] == '+' || x.lit.Text[0] == '-') {
			us, _, ok = parseTime(x.lit.Text[1:])
			if x.lit.Text[0] == '-' {
				us = -us
			}
		}
		if !ok || us > 14*3600e6 || us < -14*3600e6 {
			return expr{}, unsupported("CONVERT_TZ with zones that are no constant offsets such as '+02:00'")
		}
		offsets[i] = us
	}
	fsp := 0
	if args[0].typ.temporal() {
		fsp = args[0].typ.Scale
	}
	x, err := t.castDateTime(args[0], fsp)
	if err != nil {
		return x, err
	}
	// Moments outside of the range of TIMESTAMP stay as they are.
	utc := fmt.Sprintf("(%s - to_microseconds(%d))", x.sql, offsets[0])
	x.sql = fmt.Sprintf("(CASE WHEN %[1]s BETWEEN TIMESTAMP '1970-01-01 00:00:01' AND TIMESTAMP '3001-01-18 23:59:59.999999' THEN %[1]s + to_microseconds(%[2]d) ELSE %[3]s END)", utc, offsets[1], x.sql)
	x.typ.Nullable, x.lit, x.utc = true, nil, ""
	return x, nil
}

// fnUnixTimestamp gives the seconds since 1970 of a wall clock time in the session's zone, 0 before.
func fnUnixTimestamp(t *translator, e *env, args []expr) (expr, error) {
	if len(args) == 0 {
		return intLiteral(t.session.Now.Unix()), nil
	}
	x, err := t.temporal(args[0])
	if err != nil {
		return x, err
	}
	if x.typ.Kind == KindTime {
		return x, unsupported("UNIX_TIMESTAMP of a TIME")
	}
	offset, fixed := fixedOffset(t.session.Location)
	us := fmt.Sprintf("(epoch_us(%s) - %d000000)", x.sql, offset)
	if x.utc != "" {
		us = "epoch_us(tm_utc(" + x.utc + "))"
	} else if !fixed {
		return x, unsupported("UNIX_TIMESTAMP of a DATE or DATETIME in a time zone with changing offsets")
	}
	us = fmt.Sprintf("(CASE WHEN %[1]s BETWEEN 0 AND 32536771199999999 THEN %[1]s ELSE 0 * %[1]s END)", us)
	if x.typ.Scale == 0 {
		return bigintResult(fmt.Sprintf("CAST(%s // 1000000 AS BIGINT)", us), 21, args...), nil
	}
	out := scaled(fmt.Sprintf("(%s // CAST(1%s AS BIGINT))", us, "000000"[:6-x.typ.Scale]), 12+x.typ.Scale, x.typ.Scale)
	out.typ = decimalType(12+x.typ.Scale, x.typ.Scale)
	return nullableBy(out, args), nil
}
