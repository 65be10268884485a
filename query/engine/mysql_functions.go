package engine

import "github.com/tidemarkdb/tidemark/query/function"

// mysqlFunctions are those of package function, for what query/translate cannot express in SQL. All give NULL when an
// argument is NULL.
//
//	tm_cut(VARCHAR, BIGINT) -> VARCHAR   function.Cut
func mysqlFunctions() []ScalarFunction {
	return []ScalarFunction{
		{Name: "tm_cut", Args: []Type{{ID: Varchar}, {ID: BigInt}}, Result: Type{ID: Varchar}, Call: cutText},
	}
}

func cutText(args []Vector, result *Result) error {
	limits := args[1].Int64s()
	return EachRow(args, result, func(row int) error {
		result.SetBytes(row, function.Cut(args[0].Bytes(row), int(limits[row])))
		return nil
	})
}
