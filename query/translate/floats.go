package translate

import (
	"fmt"
	"strings"
)

// floatFunctions are the functions that compute in DOUBLE. In their texts %s is the argument; where it is outside of the function's
// domain MySQL gives NULL.
func floatFunctions() map[string]builtin {
	m := map[string]builtin{"log": {1, 2, fnLog}, "atan": {1, 2, fnAtan}, "atan2": {2, 2, fnAtan}}
	for name, sql := range map[string]string{
		"exp": "exp(%s)", "ln": "ln(CASE WHEN %[1]s > 0 THEN %[1]s END)", "log2": "log2(CASE WHEN %[1]s > 0 THEN %[1]s END)",
		"log10": "log10(CASE WHEN %[1]s > 0 THEN %[1]s END)", "sin": "sin(%s)", "cos": "cos(%s)", "tan": "tan(%s)",
		"asin": "asin(CASE WHEN %[1]s BETWEEN -1 AND 1 THEN %[1]s END)", "acos": "acos(CASE WHEN %[1]s BETWEEN -1 AND 1 THEN %[1]s END)",
		"radians": "(%s * (3.141592653589793::DOUBLE / 180))", "degrees": "(%s * (180 / 3.141592653589793::DOUBLE))",
	} {
		m[name] = builtin{1, 1, fnFloat(strings.ToUpper(name), sql)}
	}
	return m
}

func floatResult(sql string) expr {
	ty := doubleType()
	ty.Nullable = true
	return expr{sql: sql, typ: ty, phys: phys{k: physDouble}, overflows: true}
}

func fnFloat(name, sql string) builder {
	return func(t *translator, e *env, args []expr) (expr, error) {
		x, err := t.oneNumber(name, args[0])
		if err != nil {
			return x, err
		}
		d, err := t.double(x)
		return floatResult(fmt.Sprintf(sql, d)), err
	}
}

// fnLog: LOG(x) is LN(x), LOG(b, x) the logarithm to base b.
func fnLog(t *translator, e *env, args []expr) (expr, error) {
	if len(args) == 1 {
		return builtins["ln"].build(t, e, args)
	}
	b, err := t.double(args[0])
	if err != nil {
		return expr{}, err
	}
	x, err := t.double(args[1])
	return floatResult(fmt.Sprintf("(CASE WHEN %[1]s > 0 AND %[1]s <> 1 AND %[2]s > 0 THEN ln(%[2]s) / ln(%[1]s) END)", b, x)), err
}

func fnAtan(t *translator, e *env, args []expr) (expr, error) {
	y, err := t.double(args[0])
	if err != nil || len(args) == 1 {
		return floatResult("atan(" + y + ")"), err
	}
	x, err := t.double(args[1])
	return floatResult(fmt.Sprintf("atan2(%s, %s)", y, x)), err
}
