package translate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// compareTemporal compares dates and times. A constant string or number is read as the other side's type.
func (t *translator) compareTemporal(op string, x, y expr) (expr, error) {
	if !x.typ.temporal() {
		x, y, op = y, x, mirrored[op]
	}
	if !y.typ.temporal() {
		c, err := temporalConstant(x, y)
		if err != nil {
			return x, err
		}
		y = c
	}
	a, b := x.typ.Kind, y.typ.Kind
	if (a == KindTime) != (b == KindTime) {
		return x, unsupported("comparing TIME with DATE or DATETIME")
	}
	if x.utc != "" || y.utc != "" {
		return t.compareUTC(op, x, y)
	}
	if a != b {
		return compareDateWithTime(op, x, y), nil
	}
	return comparison(op, x.sql, y.sql, x, y), nil
}

// compareDateWithTime compares DATE with DATETIME: the date is its midnight. A constant at midnight is made a DATE so
// that the column stays as it is.
func compareDateWithTime(op string, x, y expr) expr {
	for _, p := range []*expr{&x, &y} {
		if p.typ.Kind == KindDateTime {
			continue
		}
		p.sql, p.phys = "CAST("+p.sql+" AS TIMESTAMP)", phys{k: physTimestamp}
	}
	if x.lit == nil {
		if d, ok := y.civilConstant(); ok && d.midnight() && strings.HasPrefix(x.sql, "CAST(") {
			x.sql = strings.TrimSuffix(strings.TrimPrefix(x.sql, "CAST("), " AS TIMESTAMP)")
			return comparison(op, x.sql, d.dateSQL(), x, y)
		}
	}
	return comparison(op, x.sql, y.sql, x, y)
}

func (x expr) civilConstant() (civil, bool) {
	if x.lit == nil || x.lit.Kind != DateValue && x.lit.Kind != DateTimeValue {
		return civil{}, false
	}
	return parseDateTime(x.lit.Text)
}

// compareUTC compares TIMESTAMP columns: with each other as they are, with a constant by moving the constant to UTC.
func (t *translator) compareUTC(op string, x, y expr) (expr, error) {
	if x.utc == "" {
		x, y, op = y, x, mirrored[op]
	}
	if y.utc != "" {
		if _, fixed := fixedOffset(t.session.Location); fixed || !isOrder(op) {
			return comparison(op, x.utc, y.utc, x, y), nil
		}
		return comparison(op, x.sql, y.sql, x, y), nil
	}
	if d, ok := y.civilConstant(); ok {
		if utc, ok := toUTC(d.t, t.session.Location); ok {
			return comparison(op, x.utc, "TIMESTAMPTZ '"+utc.Format("2006-01-02 15:04:05.000000")+"+00'", x, y), nil
		}
	}
	if y.typ.Kind == KindDate {
		return compareDateWithTime(op, x, y), nil
	}
	return comparison(op, x.sql, y.sql, x, y), nil
}

// toUTC gives the moment of a wall clock time; ok is false near a change of the zone's offset, where a wall clock time
// may name two moments or none.
func toUTC(wall time.Time, loc *time.Location) (time.Time, bool) {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), loc)
	_, before := at.Add(-3 * time.Hour).Zone()
	_, after := at.Add(3 * time.Hour).Zone()
	return at.UTC(), before == after
}

// temporalConstant reads constant y as the type of x.
func temporalConstant(x, y expr) (expr, error) {
	kind := map[Kind]string{KindDate: "DATE", KindDateTime: "DATETIME", KindTime: "TIME"}[x.typ.Kind]
	if y.lit == nil {
		return y, unsupported("comparing %s with a value of another type that is no constant", kind)
	}
	s := y.lit.Text
	if y.lit.Kind == IntValue {
		s = strconv.FormatInt(y.lit.Int, 10)
	} else if y.lit.Kind != TextValue {
		return y, unsupported("comparing %s with this constant", kind)
	}
	if x.typ.Kind == KindTime {
		return timeConstant(x, y, s)
	}
	d, ok := parseDateTime(s)
	if !ok {
		return y, unsupported("the constant '%s' compared with %s", s, kind)
	}
	v := Value{Kind: DateTimeValue, Text: s}
	if d.isDate {
		v.Kind = DateValue
	}
	return temporalLiteral(v)
}

// timeConstant reads a constant to compare with a TIME. MySQL rounds one with more decimals than the column has.
func timeConstant(x, y expr, s string) (expr, error) {
	if y.lit.Kind == IntValue && y.lit.Int >= 0 && y.lit.Int%100 < 60 && y.lit.Int/100%100 < 60 {
		s = fmt.Sprintf("%d:%02d:%02d", y.lit.Int/10000, y.lit.Int/100%100, y.lit.Int%100)
	}
	c, err := temporalLiteral(Value{Kind: TimeValue, Text: s})
	if err != nil || c.typ.Scale > x.typ.Scale {
		return y, unsupported("the constant '%s' compared with TIME", s)
	}
	return c, nil
}
