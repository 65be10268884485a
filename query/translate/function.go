package translate

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// builder makes a function's expression from its translated arguments.
type builder func(t *translator, e *env, args []expr) (expr, error)

// builtin is a function that is translated. most is -1 where there is no upper limit of arguments.
type builtin struct {
	least, most int
	build       builder
}

// builtins are the functions whose arguments are plain expressions, by their names in lower case.
var builtins map[string]builtin

func init() {
	builtins = map[string]builtin{
		"if": {3, 3, fnIf}, "ifnull": {2, 2, fnCoalesce}, "coalesce": {1, -1, fnCoalesce}, "nullif": {2, 2, fnNullIf},
		"greatest": {2, -1, fnGreatest("greatest")}, "least": {2, -1, fnGreatest("least")},
		"isnull": {1, 1, fnIsNull}, "any_value": {1, 1, fnAnyValue},
	}
	for _, group := range []map[string]builtin{stringFunctions(), listFunctions(), mathFunctions(), floatFunctions(), dateFunctions(), clockFunctions(), jsonFunctions()} {
		for name, b := range group {
			builtins[name] = b
		}
	}
}

// call translates a function call.
func (t *translator) call(e *env, n *ast.FuncCallExpr) (expr, error) {
	name := n.FnName.L
	if n.Schema.O != "" {
		return expr{}, unsupported("the stored function %s.%s", n.Schema.O, n.FnName.O)
	}
	if x, done, err := t.specialCall(e, n); done || err != nil {
		return x, err
	}
	b, ok := builtins[name]
	if !ok {
		return expr{}, t.unknownFunction(n)
	}
	if len(n.Args) < b.least || b.most >= 0 && len(n.Args) > b.most {
		return expr{}, errWrongParamCount(n.FnName.O)
	}
	args, err := t.exprs(e, n.Args)
	if err != nil {
		return expr{}, err
	}
	return b.build(t, e, args)
}

// specialCall translates functions of the session, which are constants, and those with arguments that are no
// expressions (units of time, directions).
func (t *translator) specialCall(e *env, n *ast.FuncCallExpr) (x expr, done bool, err error) {
	switch n.FnName.L {
	case "grouping":
		x, err = t.groupingCall(e, n)
		return x, true, err
	case "convert":
		x, err = t.convertUsing(e, n)
		return x, true, err
	case "trim":
		x, err = t.trim(e, n)
		return x, true, err
	case "date_add", "date_sub", "adddate", "subdate":
		x, err = t.dateArithmetic(e, n)
		return x, true, err
	case "extract", "timestampdiff", "timestampadd", "get_format":
		x, err = t.unitCall(e, n)
		return x, true, err
	case "now", "current_timestamp", "localtime", "localtimestamp", "sysdate", "curdate", "current_date", "utc_date", "utc_timestamp", "curtime", "current_time", "utc_time":
		x, err = t.now(n)
		return x, true, err
	case "'tidb`.(dateliteral", "'tidb`.(timestampliteral", "'tidb`.(timeliteral":
		x, err = t.temporalKeyword(e, n)
		return x, true, err
	}
	return t.sessionCall(n)
}

// groupingCall translates GROUPING(key).
func (t *translator) groupingCall(e *env, n *ast.FuncCallExpr) (expr, error) {
	if e.group == nil || !e.group.rollup || len(n.Args) != 1 {
		return expr{}, unsupported("this use of GROUPING")
	}
	raw, err := t.expr(e.with(func(c *env) { c.group, c.aggs, c.windows = nil, aggForbidden, false }), n.Args[0])
	if err != nil {
		return raw, err
	}
	for _, k := range e.group.keys {
		if k.e.sql == raw.sql {
			return bigintResult("CAST(grouping("+k.sql+") AS BIGINT)", 1), nil
		}
	}
	return raw, errorf(3602, "HY000", "Argument #1 of GROUPING function is not in GROUP BY")
}

func (t *translator) sessionCall(n *ast.FuncCallExpr) (x expr, done bool, err error) {
	if len(n.Args) > 0 || t.session.Function == nil {
		return expr{}, false, nil
	}
	v, ok := t.session.Function(strings.ToUpper(n.FnName.L))
	if !ok {
		return expr{}, false, nil
	}
	x, err = t.literalExpr(v)
	if err == nil && x.typ.Kind == KindString {
		x.typ.Collation, x.typ.Coercibility = collationUTF8, SysConst
	}
	if v.Kind == NullValue {
		ty := textType(64, collationUTF8, SysConst)
		ty.Nullable = true
		x = expr{sql: "CAST(NULL AS VARCHAR)", typ: ty, phys: phys{k: physText}, ascii: true}
	}
	return x, true, err
}

// unknownFunction tells MySQL's own functions, which are not supported yet, from names that MySQL does not know either.
func (t *translator) unknownFunction(n *ast.FuncCallExpr) error {
	if mysqlFunctions[n.FnName.L] {
		return unsupported("function %s", strings.ToUpper(n.FnName.L))
	}
	db := t.session.Database
	if db == "" {
		return errNoDatabase()
	}
	return errNoFunction(db, n.FnName.O)
}

func fnIsNull(t *translator, e *env, args []expr) (expr, error) {
	return truth("("+args[0].sql+" IS NULL)", false), nil
}

func fnAnyValue(t *translator, e *env, args []expr) (expr, error) { return args[0], nil }

// nullableBy makes the result NULL where an argument is.
func nullableBy(x expr, args []expr) expr {
	for i := range args {
		x.typ.Nullable = x.typ.Nullable || args[i].typ.Nullable
	}
	return x
}

func bigintResult(sql string, length int, args ...expr) expr {
	ty := intType(length)
	return nullableBy(expr{sql: sql, typ: ty, phys: phys{k: physInt64}}, args)
}

// mysqlFunctions are functions that MySQL has and Tidemark does not translate yet.
var mysqlFunctions = func() map[string]bool {
	m := map[string]bool{}
	for _, f := range strings.Fields(`acos addtime aes_decrypt aes_encrypt asin atan atan2 benchmark bin bin_to_uuid bit_count
		bit_length char charset coercibility collation compress conv convert_tz cos cot crc32 degrees elt
		encode exp export_set extractvalue field find_in_set format format_bytes format_pico_time found_rows from_base64 from_days from_unixtime
		get_format get_lock grouping hex icu_version inet_aton inet_ntoa inet6_aton inet6_ntoa insert interval is_free_lock is_ipv4 is_ipv4_compat
		is_ipv4_mapped is_ipv6 is_used_lock is_uuid json_array json_array_append json_array_insert json_contains json_contains_path json_depth json_extract
		json_insert json_keys json_length json_merge json_merge_patch json_merge_preserve json_object json_overlaps json_pretty json_quote json_remove
		json_replace json_schema_valid json_schema_validation_report json_search json_set json_storage_free json_storage_size json_type json_unquote json_valid
		json_value last_day last_insert_id ln load_file log log10 log2 lpad make_set makedate maketime md5 microsecond
		name_const oct ord period_add period_diff pi quote radians rand random_bytes regexp_instr regexp_like regexp_replace regexp_substr release_all_locks
		release_lock repeat row_count rpad sec_to_time sha sha1 sha2 sin sleep soundex sqrt st_aswkt st_astext st_x st_y statement_digest
		statement_digest_text str_to_date strcmp substring_index subtime sysdate tan time time_format time_to_sec timediff timestamp to_base64 to_days
		to_seconds uncompress uncompressed_length unhex unix_timestamp updatexml upper uuid uuid_short uuid_to_bin validate_password_strength
		weight_string week weekofyear yearweek json_memberof translate insert_func char_func`) {
		m[f] = true
	}
	return m
}()
