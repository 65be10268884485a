package engine

import "github.com/tidemarkdb/tidemark/query/function"

// mysqlFunctions are those of package function, for what query/translate cannot express in SQL. All give NULL when an
// argument is NULL.
//
//	tm_cut(VARCHAR, BIGINT) -> VARCHAR   function.Cut
//	tm_double_text(DOUBLE) -> VARCHAR    function.Double
func mysqlFunctions() []ScalarFunction {
	return []ScalarFunction{
		{Name: "tm_cut", Args: []Type{{ID: Varchar}, {ID: BigInt}}, Result: Type{ID: Varchar}, Call: cutText},
		{Name: "tm_double_text", Args: []Type{{ID: Double}}, Result: Type{ID: Varchar}, Call: doubleText},
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
