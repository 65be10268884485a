package translate

import (
	"fmt"

	"github.com/pingcap/tidb/pkg/parser/mysql"
)

// clockFunctions are those over weeks, seconds and times of day.
func clockFunctions() map[string]builtin {
	return map[string]builtin{
		"week": {1, 2, fnWeek("tm_week", 2)}, "yearweek": {1, 2, fnWeek("tm_yearweek", 6)},
		"from_unixtime": {1, 1, fnFromUnixtime}, "time_to_sec": {1, 1, fnTimeToSec}, "sec_to_time": {1, 1, fnSecToTime},
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
