package ddl

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/schema"
)

// dateParts are year, month, day, hour, minute, second, microsecond.
type dateParts [7]int

// parseDateTime reads the literals that the server takes for a date and time (manual, "Date and Time Literals"): groups
// of digits with any punctuation between them, or one group without.
func parseDateTime(s string) (dateParts, error) {
	s = strings.TrimSpace(s)
	whole, fraction, _ := strings.Cut(s, ".")
	if isAllDigits(whole) {
		return parseCompact(whole, fraction)
	}
	var p dateParts
	groups := strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if len(groups) < 3 || len(groups) > 7 {
		return p, errForm
	}
	for i, g := range groups {
		if i == 6 {
			p[6] = micros(g)
			continue
		}
		n, err := strconv.Atoi(g)
		if err != nil {
			return p, errForm
		}
		p[i] = n
	}
	if len(groups[0]) <= 2 {
		p[0] = fullYear(p[0])
	}
	return p, nil
}

// parseCompact reads YYYYMMDD[hhmmss] and YYMMDD[hhmmss]; 0 is the zero date.
func parseCompact(digits, fraction string) (dateParts, error) {
	var p dateParts
	if strings.Trim(digits, "0") == "" {
		return p, nil
	}
	yearDigits := 4
	switch len(digits) {
	case 8, 14:
	case 6, 12:
		yearDigits = 2
	default:
		return p, errForm
	}
	p[0], _ = strconv.Atoi(digits[:yearDigits])
	for i, rest := 1, digits[yearDigits:]; len(rest) > 0; i, rest = i+1, rest[2:] {
		p[i], _ = strconv.Atoi(rest[:2])
	}
	if yearDigits == 2 {
		p[0] = fullYear(p[0])
	}
	p[6] = micros(fraction)
	return p, nil
}

func isAllDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func fullYear(n int) int {
	if n < 70 {
		return n + 2000
	}
	return n + 1900
}

// micros reads a fraction as microseconds, rounding beyond six digits.
func micros(fraction string) int {
	n, _ := strconv.Atoi((fraction + "0000000")[:7])
	return (n + 5) / 10
}

// roundTo rounds the microseconds to fsp digits, half up.
func roundTo(us, fsp int) int {
	unit := pow10(6 - fsp)
	return (us + unit/2) / unit * unit
}

// time gives the moment, rounded, in loc. ok is false for zero, partial and invalid dates, such as 2024-02-30.
func (p dateParts) time(fsp int, loc *time.Location) (time.Time, bool) {
	if p[0] == 0 || p[1] == 0 || p[2] == 0 {
		return time.Time{}, false
	}
	if day := time.Date(p[0], time.Month(p[1]), p[2], 0, 0, 0, 0, time.UTC); day.Day() != p[2] {
		return time.Time{}, false
	}
	return time.Date(p[0], time.Month(p[1]), p[2], p[3], p[4], p[5], roundTo(p[6], fsp)*1000, loc), true
}

func dateTime(c *schema.Column, literal string, kind literalKind) (string, error) {
	if kind != litString && kind != litNumber {
		return "", errForm
	}
	p, err := parseDateTime(literal)
	if err != nil {
		return "", err
	}
	if c.Type == schema.Date {
		return string(schema.AppendDate(nil, p[0], p[1], p[2])), nil
	}
	if t, ok := p.time(c.FSP, time.UTC); ok {
		return printTime(c, t)
	}
	return string(schema.AppendDateTime(nil, p[0], p[1], p[2], p[3], p[4], p[5], p[6], c.FSP)), nil
}

// timestamp converts from the session's time zone to UTC.
func (s *statement) timestamp(c *schema.Column, l *literal) (string, error) {
	if l.kind != litString && l.kind != litNumber {
		return "", errForm
	}
	p, err := parseDateTime(l.text)
	if err != nil {
		return "", err
	}
	if p == (dateParts{}) {
		return string(schema.AppendDateTime(nil, 0, 0, 0, 0, 0, 0, 0, c.FSP)), nil
	}
	loc, err := s.location()
	if err != nil {
		return "", err
	}
	t, ok := p.time(c.FSP, loc)
	if !ok {
		return "", errForm
	}
	return printTime(c, t.UTC())
}

// timeOfDay reads [-][d ]hh:mm[:ss][.f], hhmmss, and numbers of the form hhmmss.
func timeOfDay(c *schema.Column, l *literal) (string, error) {
	if l.kind != litString && l.kind != litNumber {
		return "", errForm
	}
	s, negative := strings.CutPrefix(strings.TrimSpace(l.text), "-")
	whole, fraction, _ := strings.Cut(s, ".")
	days, clock, hasDays := strings.Cut(whole, " ")
	if !hasDays {
		days, clock = "0", whole
	}
	seconds, err := clockSeconds(clock)
	d, err2 := strconv.Atoi(days)
	if err != nil || err2 != nil {
		return "", errForm
	}
	us := (int64(d)*86400+seconds)*1_000_000 + int64(roundTo(micros(fraction), c.FSP))
	if negative {
		us = -us
	}
	return string(schema.AppendTime(nil, us, c.FSP)), nil
}

func clockSeconds(clock string) (int64, error) {
	groups := strings.Split(clock, ":")
	if len(groups) == 1 {
		n, err := strconv.ParseInt(clock, 10, 64)
		return n/10000*3600 + n/100%100*60 + n%100, err
	}
	if len(groups) > 3 {
		return 0, errForm
	}
	total := int64(0)
	for i, unit := range []int64{3600, 60, 1}[:len(groups)] {
		n, err := strconv.ParseInt(groups[i], 10, 64)
		if err != nil {
			return 0, err
		}
		total += n * unit
	}
	return total, nil
}
