package translate

import (
	"strconv"
	"strings"
	"time"
)

// civil is a constant date with time of day, read from text.
type civil struct {
	t      time.Time // in UTC: the fields as written
	fsp    int
	isDate bool
}

func (c civil) dateSQL() string { return "DATE '" + c.t.Format("2006-01-02") + "'" }

func (c civil) timestampSQL() string {
	return "TIMESTAMP '" + c.t.Format("2006-01-02 15:04:05.000000") + "'"
}

// midnight tells that the time of day is 00:00:00.
func (c civil) midnight() bool { return c.t.Equal(c.t.Truncate(24 * time.Hour)) }

// text gives the value as MySQL prints it.
func (c civil) text() string {
	if c.isDate {
		return c.t.Format("2006-01-02")
	}
	return formatFSP(c.t, c.fsp)
}

func formatFSP(t time.Time, fsp int) string {
	s := t.Format("2006-01-02 15:04:05.000000")
	if fsp == 0 {
		return s[:19]
	}
	return s[:20+fsp]
}

// parseDateTime reads the forms of date and datetime constants that leave no doubt: YYYY-MM-DD, YYYYMMDD, with a time
// of day HH:MM[:SS[.ffffff]] after a space or T, and YYYYMMDDHHMMSS. Other forms MySQL may accept are not ok here.
func parseDateTime(s string) (civil, bool) {
	s = strings.TrimSpace(s)
	if len(s) == 8 && allDigits(s) {
		s = s[:4] + "-" + s[4:6] + "-" + s[6:]
	}
	if len(s) == 14 && allDigits(s) {
		s = s[:4] + "-" + s[4:6] + "-" + s[6:8] + " " + s[8:10] + ":" + s[10:12] + ":" + s[12:]
	}
	date, clock, hasClock := cutClock(s)
	y, m, d, ok := parseDate(date)
	if !ok {
		return civil{}, false
	}
	if !hasClock {
		return civil{t: time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC), isDate: true}, true
	}
	us, fsp, ok := parseClock(clock)
	if !ok || us >= 24*int64(time.Hour/time.Microsecond) {
		return civil{}, false
	}
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Add(time.Duration(us) * time.Microsecond)
	return civil{t: t, fsp: fsp}, true
}

func cutClock(s string) (date, clock string, ok bool) {
	i := strings.IndexAny(s, " T")
	if i < 0 {
		return s, "", false
	}
	return s[:i], strings.TrimLeft(s[i+1:], " "), true
}

func parseDate(s string) (y, m, d int, ok bool) {
	parts := strings.Split(s, "-")
	if len(parts) != 3 || len(parts[0]) != 4 || len(parts[1]) > 2 || len(parts[2]) > 2 {
		return 0, 0, 0, false
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || !allDigits(p) {
			return 0, 0, 0, false
		}
		n[i] = v
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], 0, 0, 0, 0, time.UTC)
	ok = n[0] >= 1 && t.Year() == n[0] && int(t.Month()) == n[1] && t.Day() == n[2]
	return n[0], n[1], n[2], ok
}

// parseClock reads H:MM[:SS[.ffffff]] as microseconds. More than six digits of a fraction are rounded by MySQL and not
// accepted here.
func parseClock(s string) (us int64, fsp int, ok bool) {
	main, frac, hasFrac := strings.Cut(s, ".")
	parts := strings.Split(main, ":")
	if len(parts) < 2 || len(parts) > 3 || hasFrac && (len(parts) != 3 || len(frac) > 6 || !allDigits(frac)) {
		return 0, 0, false
	}
	limits := [3]int{838, 59, 59}
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || !allDigits(p) || v > limits[i] || i > 0 && len(p) > 2 {
			return 0, 0, false
		}
		us = us*60 + int64(v)
	}
	if len(parts) == 2 {
		us *= 60
	}
	us *= 1e6
	if frac != "" {
		v, _ := strconv.ParseInt((frac + "000000")[:6], 10, 64)
		us += v
	}
	return us, len(frac), true
}

// parseTime reads a TIME constant [-]HHH:MM[:SS[.ffffff]] or [-]D HH:MM:SS as signed microseconds.
func parseTime(s string) (us int64, fsp int, ok bool) {
	s = strings.TrimSpace(s)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	var days int64
	if d, rest, found := strings.Cut(s, " "); found {
		n, err := strconv.ParseInt(d, 10, 64)
		if err != nil || !allDigits(d) || n > 34 {
			return 0, 0, false
		}
		days, s = n, rest
	}
	us, fsp, ok = parseClock(s)
	us += days * 24 * 3600 * 1e6
	if us > maxTimeMicros {
		return 0, 0, false
	}
	if neg {
		us = -us
	}
	return us, fsp, ok
}

// maxTimeMicros is TIME's limit, 838:59:59.
const maxTimeMicros = (838*3600 + 59*60 + 59) * int64(1e6)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
