package translate

import (
	"fmt"

	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/tidemarkdb/tidemark/query/function"
)

// jsonFunctions take parts out of JSON columns; j->path and j->>path arrive as JSON_EXTRACT and JSON_UNQUOTE of it.
func jsonFunctions() map[string]builtin {
	return map[string]builtin{"json_extract": {2, 2, fnJSONExtract}, "json_unquote": {1, 1, fnJSONUnquote}}
}

func fnJSONExtract(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind != KindJSON {
		return expr{}, unsupported("JSON_EXTRACT of anything but a JSON column")
	}
	l := args[1].lit
	if l == nil || l.Kind != TextValue {
		return expr{}, unsupported("a JSON path that is no constant")
	}
	if _, ok := function.ParseJSONPath(l.Text); !ok {
		return expr{}, unsupported("the JSON path '%s'", l.Text)
	}
	ty := args[0].typ
	ty.Nullable, ty.Scale = true, NotFixed
	return expr{sql: fmt.Sprintf("tm_json_extract(%s, %s)", args[0].sql, args[1].sql), typ: ty, phys: phys{k: physText}}, nil
}

func fnJSONUnquote(t *translator, e *env, args []expr) (expr, error) {
	if args[0].typ.Kind != KindJSON {
		return expr{}, unsupported("JSON_UNQUOTE of anything but a JSON value")
	}
	ty := textType(1<<32-1, t.effective(collationByName("utf8mb4_bin")), Implicit)
	ty.Field, ty.Nullable = mysql.TypeBlob, true
	return expr{sql: "tm_json_unquote(" + args[0].sql + ")", typ: ty, phys: phys{k: physText}}, nil
}
