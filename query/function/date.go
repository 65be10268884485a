package function

import (
	"math"
	"time"
)

// Week gives the week of a date under one of WEEK's eight modes, and the year that the week belongs to.
//
// Bit 0 of the mode: weeks start on Monday, not Sunday. Bit 1: the days before the first week belong to the last week of
// the year before, and those behind the last week to the first of the next; without it they are week 0 and 53. Bit 2,
// as MySQL turns it for weeks that start on Sunday: the first week is the first that starts in the year, not the first
// with at least four days in it.
func Week(year, month, day, mode int) (week, weekYear int) {
	monday := mode&1 != 0
	starts := (mode&4 != 0) == monday // the first week starts in the year
	yday := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).YearDay() - 1
	first := firstWeek(year, monday, starts)
	switch {
	case yday < first && mode&2 == 0:
		return 0, year
	case yday < first:
		yday += daysIn(year - 1)
		return (yday-firstWeek(year-1, monday, starts))/7 + 1, year - 1
	case mode&2 != 0 && yday >= daysIn(year)+firstWeek(year+1, monday, starts):
		return 1, year + 1
	}
	return (yday-first)/7 + 1, year
}

// firstWeek gives the day of the year, from 0, on which its first week starts; it may lie in the year before.
func firstWeek(year int, monday, starts bool) int {
	weekday := int(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Weekday())
	if monday {
		weekday = (weekday + 6) % 7
	}
	if starts {
		return (7 - weekday) % 7
	}
	if weekday <= 3 { // at least four days are left
		return -weekday
	}
	return 7 - weekday
}

func daysIn(year int) int { return time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC).YearDay() }

// Round rounds a DOUBLE to a number of decimals, ties to even, after the multiplication by the power of ten: MySQL's
// ROUND. cut drops the digits instead: TRUNCATE.
func Round(x float64, digits int, cut bool) float64 {
	scale := math.Pow(10, math.Abs(float64(digits)))
	round := math.RoundToEven
	if cut {
		round = math.Trunc
	}
	if digits < 0 {
		if math.IsInf(scale, 0) {
			return 0
		}
		return round(x/scale) * scale
	}
	if scaled := x * scale; !math.IsInf(scaled, 0) && !math.IsInf(scale, 0) {
		return round(scaled) / scale
	}
	return x
}
