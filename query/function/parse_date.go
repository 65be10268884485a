package function

import (
	"bytes"
	"errors"
	"strings"
	"time"
)

// ErrIncompleteDate tells a date without a year, month or day, which MySQL makes NULL or a partial date by its sql_mode.
var ErrIncompleteDate = errors.New("STR_TO_DATE of an incomplete date is not supported yet")

// DateFormat is a format of STR_TO_DATE whose specifiers are all known here. HasDate and HasTime tell what it reads.
type DateFormat struct {
	text             string
	HasDate, HasTime bool
	Fraction         bool
}

// ParseDateFormat reads a format; ok is false for one with specifiers that are not supported.
func ParseDateFormat(s string) (f DateFormat, ok bool) {
	s = strings.NewReplacer("%T", "%H:%i:%S", "%r", "%I:%i:%S %p").Replace(s)
	f.text = s
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			continue
		}
		if i++; i == len(s) {
			return f, false
		}
		switch {
		case strings.IndexByte("YymcdebM", s[i]) >= 0:
			f.HasDate = true
		case strings.IndexByte("HkhIlisSpf", s[i]) >= 0:
			f.HasTime = true
			f.Fraction = f.Fraction || s[i] == 'f'
		default:
			return f, false
		}
	}
	return f, true
}

// dateReader reads one text by a format.
type dateReader struct {
	rest                         []byte
	year, month, day             int
	hour, minute, second, micros int
	pm, half                     bool // %p was PM; the hour is one of twelve
}

// StrToDate reads a text by a format: a wall clock time in UTC, on 1970-01-01 when the format has no date. ok is false
// where MySQL gives NULL.
func StrToDate(text []byte, f DateFormat) (at time.Time, ok bool, err error) {
	r := dateReader{rest: text}
	for i := 0; i < len(f.text); i++ {
		r.rest = bytes.TrimLeft(r.rest, " \t\n\v\f\r")
		if len(r.rest) == 0 {
			break
		}
		switch c := f.text[i]; {
		case c == '%':
			i++
			ok = r.read(f.text[i])
		case isSpace(c):
			ok = true
		default:
			ok = r.rest[0] == c
			r.rest = r.rest[1:]
		}
		if !ok {
			return at, false, nil
		}
	}
	return r.time(f)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func (r *dateReader) read(spec byte) (ok bool) {
	switch spec {
	case 'Y':
		before := len(r.rest)
		if r.year, ok = r.number(4, 9999); ok && before-len(r.rest) <= 2 {
			r.year = fullYear(r.year)
		}
	case 'y':
		r.year, ok = r.number(2, 99)
		r.year = fullYear(r.year)
	case 'm', 'c':
		r.month, ok = r.number(2, 12)
	case 'd', 'e':
		r.day, ok = r.number(2, 31)
	case 'b', 'M':
		ok = r.monthName(spec == 'M')
	case 'H', 'k':
		r.hour, ok = r.number(2, 23)
	case 'h', 'I', 'l':
		r.hour, ok = r.number(2, 12)
		ok, r.half = ok && r.hour > 0, true
	case 'i':
		r.minute, ok = r.number(2, 59)
	case 's', 'S':
		r.second, ok = r.number(2, 59)
	case 'f':
		before := len(r.rest)
		r.micros, ok = r.number(6, 999999)
		for n := before - len(r.rest); n < 6; n++ {
			r.micros *= 10
		}
	case 'p':
		ok = r.halfDay()
	}
	return ok
}

// number reads up to width digits.
func (r *dateReader) number(width, most int) (n int, ok bool) {
	i := 0
	for i < len(r.rest) && i < width && r.rest[i] >= '0' && r.rest[i] <= '9' {
		n = n*10 + int(r.rest[i]-'0')
		i++
	}
	r.rest = r.rest[i:]
	return n, i > 0 && n <= most
}

func fullYear(y int) int {
	switch {
	case y < 70:
		return y + 2000
	case y < 100:
		return y + 1900
	}
	return y
}

func (r *dateReader) monthName(full bool) bool {
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if !full {
			name = name[:3]
		}
		if len(r.rest) >= len(name) && strings.EqualFold(string(r.rest[:len(name)]), name) {
			r.month, r.rest = int(m), r.rest[len(name):]
			return true
		}
	}
	return false
}

func (r *dateReader) halfDay() bool {
	if len(r.rest) < 2 {
		return false
	}
	word := strings.ToUpper(string(r.rest[:2]))
	r.pm, r.rest = word == "PM", r.rest[2:]
	return word == "AM" || word == "PM"
}

func (r *dateReader) time(f DateFormat) (at time.Time, ok bool, err error) {
	if r.half {
		if r.hour %= 12; r.pm {
			r.hour += 12
		}
	} else if r.pm {
		return at, false, nil
	}
	y, m, d := 1970, 1, 1
	if f.HasDate {
		y, m, d = r.year, r.month, r.day
		if y == 0 || m == 0 || d == 0 {
			return at, false, ErrIncompleteDate
		}
	}
	at = time.Date(y, time.Month(m), d, r.hour, r.minute, r.second, r.micros*1000, time.UTC)
	return at, at.Day() == d, nil
}

// ErrUnclearDate tells a text that MySQL may read as a date, but not in a form that is known here.
var ErrUnclearDate = errors.New("reading this text as a date is not supported yet")

// maxFraction is the number of digits of a second's fraction that MySQL keeps; it rounds more.
const maxFraction = 6

// Moment reads a text as a date, with or without a time of day, in the forms YYYY-MM-DD and YYYY-MM-DD HH:MM:SS[.f]. ok is
// false for a text without a digit at its start, which MySQL makes NULL.
func Moment(text []byte) (at time.Time, ok bool, err error) {
	s := strings.TrimSpace(string(text))
	if s == "" || s[0] >= 'A' && s[0] <= 'z' {
		return at, false, nil
	}
	if _, fraction, found := strings.Cut(s, "."); found && len(fraction) > maxFraction {
		return at, false, ErrUnclearDate
	}
	for _, layout := range []string{"2006-1-2", "2006-1-2 15:4:5", "2006-1-2T15:4:5"} {
		if at, err := time.Parse(layout, s); err == nil && at.Year() > 0 {
			return at, true, nil
		}
	}
	return at, false, ErrUnclearDate
}
