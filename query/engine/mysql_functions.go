package engine

import (
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/query/function"
)

// mysqlFunctions are those of package function, for what query/translate cannot express in SQL. All give NULL when an
// argument is NULL.
//
//	tm_cut(VARCHAR, BIGINT) -> VARCHAR                        function.Cut
//	tm_double_text(DOUBLE) -> VARCHAR                         function.Double
//	tm_substring_index(VARCHAR, VARCHAR, BIGINT) -> VARCHAR   function.SubstringIndex
//	tm_grouped(VARCHAR) -> VARCHAR                            function.Grouped
//	tm_crc32(BLOB) -> BIGINT                                  function.CRC32
//	tm_decimal_text(VARCHAR, INTEGER, INTEGER) -> VARCHAR     function.DecimalPrefix
//	tm_round(DOUBLE, INTEGER) -> DOUBLE                       function.Round
//	tm_truncate(DOUBLE, INTEGER) -> DOUBLE                    function.Round
//	tm_week(DATE, INTEGER) -> BIGINT                          function.Week
//	tm_yearweek(DATE, INTEGER) -> BIGINT                      function.Week, year * 100 + week
//	tm_str_to_date(VARCHAR, VARCHAR) -> TIMESTAMP             function.StrToDate
//	tm_moment(VARCHAR) -> TIMESTAMP                           function.Moment
//	tm_json_extract(VARCHAR, VARCHAR) -> VARCHAR              function.JSONExtract, NULL where there is nothing
//	tm_json_unquote(VARCHAR) -> VARCHAR                       function.JSONUnquote
func mysqlFunctions() []ScalarFunction {
	text, date, integer, long, double, blob := Type{ID: Varchar}, Type{ID: Date}, Type{ID: Integer}, Type{ID: BigInt}, Type{ID: Double}, Type{ID: Blob}
	return []ScalarFunction{
		{Name: "tm_cut", Args: []Type{text, long}, Result: text, Call: cutText},
		{Name: "tm_double_text", Args: []Type{double}, Result: text, Call: doubleText},
		{Name: "tm_substring_index", Args: []Type{text, text, long}, Result: text, Call: substringIndex},
		{Name: "tm_grouped", Args: []Type{text}, Result: text, Call: grouped},
		{Name: "tm_crc32", Args: []Type{blob}, Result: long, Call: checksum},
		{Name: "tm_decimal_text", Args: []Type{text, integer, integer}, Result: text, Call: decimalPrefix},
		{Name: "tm_round", Args: []Type{double, integer}, Result: double, Call: rounding(false)},
		{Name: "tm_truncate", Args: []Type{double, integer}, Result: double, Call: rounding(true)},
		{Name: "tm_week", Args: []Type{date, integer}, Result: long, Call: weeks(func(week, _ int) int { return week })},
		{Name: "tm_yearweek", Args: []Type{date, integer}, Result: long, Call: weeks(func(week, year int) int { return year*100 + week })},
		{Name: "tm_str_to_date", Args: []Type{text, text}, Result: Type{ID: Timestamp}, Call: strToDate},
		{Name: "tm_moment", Args: []Type{text}, Result: Type{ID: Timestamp}, Call: moment},
		{Name: "tm_json_extract", Args: []Type{text, text}, Result: text, Call: jsonExtract},
		{Name: "tm_json_unquote", Args: []Type{text}, Result: text, Call: jsonUnquote},
	}
}

func cutText(args []Vector, result *Result) error {
	limits := args[1].Int64s()
	return EachRow(args, result, func(row int) error {
		result.SetBytes(row, function.Cut(args[0].Bytes(row), int(limits[row])))
		return nil
	})
}

func doubleText(args []Vector, result *Result) error {
	var text []byte
	in := args[0].Float64s()
	return EachRow(args, result, func(row int) error {
		text = function.Double(text[:0], in[row])
		result.SetBytes(row, text)
		return nil
	})
}

func substringIndex(args []Vector, result *Result) error {
	counts := args[2].Int64s()
	return EachRow(args, result, func(row int) error {
		result.SetBytes(row, function.SubstringIndex(args[0].Bytes(row), args[1].Bytes(row), counts[row]))
		return nil
	})
}

func grouped(args []Vector, result *Result) error {
	var text []byte
	return EachRow(args, result, func(row int) error {
		text = function.Grouped(text[:0], args[0].Bytes(row))
		result.SetBytes(row, text)
		return nil
	})
}

func checksum(args []Vector, result *Result) error {
	out := result.Int64s()
	return EachRow(args, result, func(row int) error {
		out[row] = int64(function.CRC32(args[0].Bytes(row)))
		return nil
	})
}

func decimalPrefix(args []Vector, result *Result) error {
	precision, scale := args[1].Int32s(), args[2].Int32s()
	return EachRow(args, result, func(row int) error {
		result.SetBytes(row, function.DecimalPrefix(args[0].Bytes(row), int(precision[row]), int(scale[row])))
		return nil
	})
}

func rounding(cut bool) func([]Vector, *Result) error {
	return func(args []Vector, result *Result) error {
		in, digits, out := args[0].Float64s(), args[1].Int32s(), result.Float64s()
		return EachRow(args, result, func(row int) error {
			out[row] = function.Round(in[row], int(digits[row]), cut)
			return nil
		})
	}
}

func weeks(number func(week, year int) int) func([]Vector, *Result) error {
	return func(args []Vector, result *Result) error {
		days, modes, out := args[0].Int32s(), args[1].Int32s(), result.Int64s()
		return EachRow(args, result, func(row int) error {
			y, m, d := time.Unix(int64(days[row])*24*3600, 0).UTC().Date()
			out[row] = int64(number(function.Week(y, int(m), d, int(modes[row]))))
			return nil
		})
	}
}

func strToDate(args []Vector, result *Result) error {
	var text string
	var format function.DateFormat
	known, out := false, result.Int64s()
	return EachRow(args, result, func(row int) error {
		if t := args[1].Text(row); !known || t != text {
			text = t
			format, known = function.ParseDateFormat(t)
		}
		if !known {
			return fmt.Errorf("the date format %q is not supported yet", text)
		}
		at, ok, err := function.StrToDate(args[0].Bytes(row), format)
		if !ok {
			result.SetNull(row)
		}
		out[row] = at.UnixMicro()
		return err
	})
}

func moment(args []Vector, result *Result) error {
	out := result.Int64s()
	return EachRow(args, result, func(row int) error {
		at, ok, err := function.Moment(args[0].Bytes(row))
		if !ok {
			result.SetNull(row)
		}
		out[row] = at.UnixMicro()
		return err
	})
}

func jsonExtract(args []Vector, result *Result) error {
	var text string
	var path function.JSONPath
	ok := false
	return EachRow(args, result, func(row int) error {
		if t := args[1].Text(row); !ok || t != text {
			text = t
			path, ok = function.ParseJSONPath(t)
		}
		if !ok {
			return fmt.Errorf("the JSON path %q is not supported yet", text)
		}
		if part, found := function.JSONExtract(args[0].Text(row), path); found {
			result.SetText(row, part)
		} else {
			result.SetNull(row)
		}
		return nil
	})
}

func jsonUnquote(args []Vector, result *Result) error {
	return EachRow(args, result, func(row int) error {
		result.SetText(row, function.JSONUnquote(args[0].Text(row)))
		return nil
	})
}
