package engine

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/query/collate"
	"github.com/tidemarkdb/tidemark/query/number"
	"github.com/tidemarkdb/tidemark/schema"
)

// builtins are the scalar functions written in Go. All give NULL when an argument is NULL.
//
//	tm_str_to_double(VARCHAR) -> DOUBLE     number.Double
//	tm_str_to_int(VARCHAR) -> BIGINT        number.Int: CAST(... AS SIGNED)
//	tm_str_to_uint(VARCHAR) -> UBIGINT      number.Uint: CAST(... AS UNSIGNED)
//	tm_double_to_str(DOUBLE) -> VARCHAR     as MySQL prints it
//	tm_float_to_str(FLOAT) -> VARCHAR
//	tm_upper(VARCHAR, INTEGER) -> VARCHAR   the number is the id of the text's collation
//	tm_lower(VARCHAR, INTEGER) -> VARCHAR
//	tm_shift_zone(TIMESTAMP WITH TIME ZONE, VARCHAR) -> TIMESTAMP   the wall clock in a zone: 'Europe/Berlin', '+02:00'
func builtins() []ScalarFunction {
	return []ScalarFunction{
		{Name: "tm_str_to_double", Args: []Type{{ID: Varchar}}, Result: Type{ID: Double}, Call: strToDouble},
		{Name: "tm_str_to_int", Args: []Type{{ID: Varchar}}, Result: Type{ID: BigInt}, Call: strToInt},
		{Name: "tm_str_to_uint", Args: []Type{{ID: Varchar}}, Result: Type{ID: UBigInt}, Call: strToUint},
		{Name: "tm_double_to_str", Args: []Type{{ID: Double}}, Result: Type{ID: Varchar}, Call: doubleToStr},
		{Name: "tm_float_to_str", Args: []Type{{ID: Float}}, Result: Type{ID: Varchar}, Call: floatToStr},
		{Name: "tm_upper", Args: []Type{{ID: Varchar}, {ID: Integer}}, Result: Type{ID: Varchar}, Call: letterCase((*collate.Collation).Upper)},
		{Name: "tm_lower", Args: []Type{{ID: Varchar}, {ID: Integer}}, Result: Type{ID: Varchar}, Call: letterCase((*collate.Collation).Lower)},
		{Name: "tm_shift_zone", Args: []Type{{ID: TimestampTZ}, {ID: Varchar}}, Result: Type{ID: Timestamp}, Call: new(zones).shift},
	}
}

// EachRow calls fn for the rows in which no argument is NULL; the others become NULL.
func EachRow(args []Vector, result *Result, fn func(row int) error) error {
	for row := range result.Len() {
		if anyNull(args, row) {
			result.SetNull(row)
			continue
		}
		if err := fn(row); err != nil {
			return err
		}
	}
	return nil
}

func anyNull(args []Vector, row int) bool {
	for i := range args {
		if !args[i].Valid(row) {
			return true
		}
	}
	return false
}

func strToDouble(args []Vector, result *Result) error {
	out := result.Float64s()
	return EachRow(args, result, func(row int) error {
		out[row] = number.Double(args[0].Bytes(row))
		return nil
	})
}

func strToInt(args []Vector, result *Result) error {
	out := result.Int64s()
	return EachRow(args, result, func(row int) error {
		out[row] = number.Int(args[0].Bytes(row))
		return nil
	})
}

func strToUint(args []Vector, result *Result) error {
	out := result.Uint64s()
	return EachRow(args, result, func(row int) error {
		out[row] = number.Uint(args[0].Bytes(row))
		return nil
	})
}

func doubleToStr(args []Vector, result *Result) error {
	var text []byte
	in := args[0].Float64s()
	return EachRow(args, result, func(row int) error {
		text = schema.AppendDouble(text[:0], in[row])
		result.SetBytes(row, text)
		return nil
	})
}

func floatToStr(args []Vector, result *Result) error {
	var text []byte
	in := args[0].Float32s()
	return EachRow(args, result, func(row int) error {
		text = schema.AppendFloat(text[:0], in[row])
		result.SetBytes(row, text)
		return nil
	})
}

func letterCase(change func(c *collate.Collation, dst, text []byte) []byte) func([]Vector, *Result) error {
	return func(args []Vector, result *Result) error {
		var text []byte
		ids := args[1].Int32s()
		return EachRow(args, result, func(row int) error {
			c, err := collationOf(ids[row])
			if err != nil {
				return err
			}
			text = change(c, text[:0], args[0].Bytes(row))
			result.SetBytes(row, text)
			return nil
		})
	}
}

// zones keeps the time zones that queries have named.
type zones struct{ byName sync.Map }

func (z *zones) find(name string) (*time.Location, error) {
	if loc, ok := z.byName.Load(name); ok {
		return loc.(*time.Location), nil
	}
	loc, err := parseZone(strings.Clone(name))
	if err != nil {
		return nil, err
	}
	z.byName.Store(strings.Clone(name), loc)
	return loc, nil
}

func parseZone(name string) (*time.Location, error) {
	if len(name) == 6 && (name[0] == '+' || name[0] == '-') && name[3] == ':' {
		hours, err1 := strconv.Atoi(name[1:3])
		minutes, err2 := strconv.Atoi(name[4:])
		if err1 == nil && err2 == nil && minutes < 60 && hours <= 14 {
			seconds := hours*3600 + minutes*60
			if name[0] == '-' {
				seconds = -seconds
			}
			return time.FixedZone(name, seconds), nil
		}
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("unknown time zone %q", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q", name)
	}
	return loc, nil
}

const second = 1_000_000 // microseconds

func (z *zones) shift(args []Vector, result *Result) error {
	in, out := args[0].Int64s(), result.Int64s()
	var at span
	return EachRow(args, result, func(row int) error {
		name := args[1].Text(row)
		if name != at.name || !at.has(in[row]) {
			loc, err := z.find(name)
			if err != nil {
				return err
			}
			at = spanAt(name, loc, in[row])
		}
		out[row] = in[row] + at.offset
		return nil
	})
}

// span is the time between two changes of a zone's offset. All in microseconds.
type span struct {
	name               string
	from, to           int64
	offset             int64
	noStart, noEnd, ok bool
}

func (s *span) has(us int64) bool {
	return s.ok && (s.noStart || us >= s.from) && (s.noEnd || us < s.to)
}

func spanAt(name string, loc *time.Location, us int64) span {
	t := time.UnixMicro(us).In(loc)
	start, end := t.ZoneBounds()
	_, offset := t.Zone()
	return span{
		name: name, ok: true, offset: int64(offset) * second,
		noStart: start.IsZero(), from: start.UnixMicro(), noEnd: end.IsZero(), to: end.UnixMicro(),
	}
}
