package server

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
)

// varKind is the type of a system variable.
type varKind uint8

const (
	varBool varKind = iota
	varInt
	varDouble
	varText
	varEnum // one of the values in choices, separated by blanks
)

// varScope says where a variable may be read and set.
type varScope uint8

const (
	inSession varScope = 1 << iota
	inGlobal
	fixed // cannot be set

	anyScope = inSession | inGlobal
)

// variable is a system variable: a name, what it may hold, and its value at the start.
type variable struct {
	name    string
	kind    varKind
	scope   varScope
	value   string
	choices string
}

// defaultMode is MySQL's sql_mode at the start.
const defaultMode = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"

// systemVariables are the variables that clients, drivers and tools ask for or set, with the values of a MySQL server
// as it comes. Those that mean something here are read where they do.
var systemVariables = []variable{
	{"auto_increment_increment", varInt, anyScope, "1", ""},
	{"auto_increment_offset", varInt, anyScope, "1", ""},
	{"autocommit", varBool, anyScope, "ON", ""},
	{"big_tables", varBool, anyScope, "OFF", ""},
	{"binlog_format", varEnum, anyScope, "ROW", "MIXED STATEMENT ROW"},
	{"binlog_row_image", varEnum, anyScope, "FULL", "MINIMAL NOBLOB FULL"},
	{"bulk_insert_buffer_size", varInt, anyScope, "8388608", ""},
	{"character_set_client", varText, anyScope, "utf8mb4", ""},
	{"character_set_connection", varText, anyScope, "utf8mb4", ""},
	{"character_set_database", varText, anyScope, "utf8mb4", ""},
	{"character_set_filesystem", varText, anyScope, "binary", ""},
	{"character_set_results", varText, anyScope, "utf8mb4", ""},
	{"character_set_server", varText, anyScope, "utf8mb4", ""},
	{"character_set_system", varText, inGlobal | fixed, "utf8mb3", ""},
	{"collation_connection", varText, anyScope, "utf8mb4_0900_ai_ci", ""},
	{"collation_database", varText, anyScope, "utf8mb4_0900_ai_ci", ""},
	{"collation_server", varText, anyScope, "utf8mb4_0900_ai_ci", ""},
	{"completion_type", varEnum, anyScope, "NO_CHAIN", "NO_CHAIN CHAIN RELEASE"},
	{"connect_timeout", varInt, inGlobal, "10", ""},
	{"cte_max_recursion_depth", varInt, anyScope, "1000", ""},
	{"default_collation_for_utf8mb4", varText, anyScope, "utf8mb4_0900_ai_ci", ""},
	{"default_storage_engine", varText, anyScope, "InnoDB", ""},
	{"default_tmp_storage_engine", varText, anyScope, "InnoDB", ""},
	{"default_week_format", varInt, anyScope, "0", ""},
	{"div_precision_increment", varInt, anyScope, "4", ""},
	{"eq_range_index_dive_limit", varInt, anyScope, "200", ""},
	{"explicit_defaults_for_timestamp", varBool, anyScope, "ON", ""},
	{"foreign_key_checks", varBool, anyScope, "ON", ""},
	{"general_log", varBool, inGlobal, "OFF", ""},
	{"group_concat_max_len", varInt, anyScope, "1024", ""},
	{"gtid_mode", varText, inGlobal | fixed, "OFF", ""},
	{"gtid_next", varText, inSession, "AUTOMATIC", ""},
	{"gtid_owned", varText, anyScope | fixed, "", ""},
	{"gtid_purged", varText, inGlobal | fixed, "", ""},
	{"have_profiling", varText, inGlobal | fixed, "NO", ""},
	{"have_query_cache", varText, inGlobal | fixed, "NO", ""},
	{"have_symlink", varText, inGlobal | fixed, "DISABLED", ""},
	{"information_schema_stats_expiry", varInt, anyScope, "86400", ""},
	{"init_connect", varText, inGlobal, "", ""},
	{"innodb_lock_wait_timeout", varInt, anyScope, "50", ""},
	{"innodb_page_size", varInt, inGlobal | fixed, "16384", ""},
	{"innodb_read_only", varBool, inGlobal | fixed, "OFF", ""},
	{"innodb_strict_mode", varBool, anyScope, "ON", ""},
	{"interactive_timeout", varInt, anyScope, "28800", ""},
	{"join_buffer_size", varInt, anyScope, "262144", ""},
	{"lc_messages", varText, anyScope, "en_US", ""},
	{"lc_time_names", varText, anyScope, "en_US", ""},
	{"license", varText, inGlobal | fixed, "Apache-2.0", ""},
	{"local_infile", varBool, inGlobal, "OFF", ""},
	{"lock_wait_timeout", varInt, anyScope, "31536000", ""},
	{"log_bin", varBool, inGlobal | fixed, "OFF", ""},
	{"log_replica_updates", varBool, inGlobal | fixed, "OFF", ""},
	{"log_slave_updates", varBool, inGlobal | fixed, "OFF", ""},
	{"long_query_time", varDouble, anyScope, "10.000000", ""},
	{"low_priority_updates", varBool, anyScope, "OFF", ""},
	{"lower_case_file_system", varBool, inGlobal | fixed, "OFF", ""},
	{"lower_case_table_names", varInt, inGlobal | fixed, "0", ""},
	{"max_allowed_packet", varInt, anyScope, strconv.Itoa(maxAllowedPacket), ""},
	{"max_connections", varInt, inGlobal, "", ""},
	{"max_error_count", varInt, anyScope, "1024", ""},
	{"max_execution_time", varInt, anyScope, "0", ""},
	{"max_heap_table_size", varInt, anyScope, "16777216", ""},
	{"max_join_size", varInt, anyScope, "18446744073709551615", ""},
	{"max_length_for_sort_data", varInt, anyScope, "4096", ""},
	{"max_prepared_stmt_count", varInt, inGlobal, strconv.Itoa(maxPrepared), ""},
	{"max_sort_length", varInt, anyScope, "1024", ""},
	{"max_user_connections", varInt, anyScope, "0", ""},
	{"net_buffer_length", varInt, anyScope, "16384", ""},
	{"net_read_timeout", varInt, anyScope, "30", ""},
	{"net_write_timeout", varInt, anyScope, "600", ""},
	{"old_alter_table", varBool, anyScope, "OFF", ""},
	{"optimizer_switch", varText, anyScope, "", ""},
	{"performance_schema", varBool, inGlobal | fixed, "OFF", ""},
	{"profiling", varBool, anyScope, "OFF", ""},
	{"protocol_version", varInt, inGlobal | fixed, "10", ""},
	{"query_cache_size", varInt, inGlobal, "0", ""},
	{"query_cache_type", varEnum, anyScope, "OFF", "OFF ON DEMAND"},
	{"read_buffer_size", varInt, anyScope, "131072", ""},
	{"read_only", varBool, inGlobal | fixed, "ON", ""},
	{"secure_file_priv", varText, inGlobal | fixed, "NULL", ""},
	{"server_id", varInt, inGlobal | fixed, "0", ""},
	{"session_track_gtids", varEnum, anyScope, "OFF", "OFF OWN_GTID ALL_GTIDS"},
	{"session_track_schema", varBool, anyScope, "ON", ""},
	{"session_track_state_change", varBool, anyScope, "OFF", ""},
	{"session_track_system_variables", varText, anyScope, "time_zone,autocommit,character_set_client,character_set_results,character_set_connection", ""},
	{"session_track_transaction_info", varEnum, anyScope, "OFF", "OFF STATE CHARACTERISTICS"},
	{"show_create_table_verbosity", varBool, anyScope, "OFF", ""},
	{"skip_networking", varBool, inGlobal | fixed, "OFF", ""},
	{"sort_buffer_size", varInt, anyScope, "262144", ""},
	{"sql_auto_is_null", varBool, anyScope, "OFF", ""},
	{"sql_big_selects", varBool, anyScope, "ON", ""},
	{"sql_buffer_result", varBool, anyScope, "OFF", ""},
	{"sql_log_bin", varBool, inSession, "ON", ""},
	{"sql_log_off", varBool, anyScope, "OFF", ""},
	{"sql_mode", varText, anyScope, defaultMode, ""},
	{"sql_notes", varBool, anyScope, "ON", ""},
	{"sql_quote_show_create", varBool, anyScope, "ON", ""},
	{"sql_safe_updates", varBool, anyScope, "OFF", ""},
	{"sql_select_limit", varInt, anyScope, "18446744073709551615", ""},
	{"sql_warnings", varBool, anyScope, "OFF", ""},
	{"storage_engine", varText, anyScope, "InnoDB", ""},
	{"super_read_only", varBool, inGlobal | fixed, "ON", ""},
	{"table_definition_cache", varInt, inGlobal, "2000", ""},
	{"table_open_cache", varInt, inGlobal, "4000", ""},
	{"thread_cache_size", varInt, inGlobal, "9", ""},
	{"thread_stack", varInt, inGlobal | fixed, "1048576", ""},
	{"time_zone", varText, anyScope, "SYSTEM", ""},
	{"tmp_table_size", varInt, anyScope, "16777216", ""},
	{"transaction_isolation", varEnum, anyScope, "REPEATABLE-READ", "READ-UNCOMMITTED READ-COMMITTED REPEATABLE-READ SERIALIZABLE"},
	{"transaction_read_only", varBool, anyScope, "OFF", ""},
	{"tx_isolation", varEnum, anyScope, "REPEATABLE-READ", "READ-UNCOMMITTED READ-COMMITTED REPEATABLE-READ SERIALIZABLE"},
	{"tx_read_only", varBool, anyScope, "OFF", ""},
	{"unique_checks", varBool, anyScope, "ON", ""},
	{"updatable_views_with_limit", varText, anyScope, "YES", ""},
	{"version_comment", varText, inGlobal | fixed, "Tidemark", ""},
	{"version_compile_machine", varText, inGlobal | fixed, "", ""},
	{"version_compile_os", varText, inGlobal | fixed, "", ""},
	{"wait_timeout", varInt, anyScope, "28800", ""},
	{"windowing_use_high_precision", varBool, anyScope, "ON", ""},

	// computed where they are read
	{"error_count", varInt, inSession | fixed, "", ""},
	{"gtid_executed", varText, inGlobal | fixed, "", ""},
	{"hostname", varText, inGlobal | fixed, "", ""},
	{"identity", varInt, inSession | fixed, "0", ""},
	{"insert_id", varInt, inSession, "0", ""},
	{"last_insert_id", varInt, inSession, "0", ""},
	{"port", varInt, inGlobal | fixed, "", ""},
	{"pseudo_thread_id", varInt, inSession, "", ""},
	{"datadir", varText, inGlobal | fixed, "", ""},
	{"server_uuid", varText, inGlobal | fixed, "", ""},
	{"socket", varText, inGlobal | fixed, "", ""},
	{"system_time_zone", varText, inGlobal | fixed, "UTC", ""},
	{"timestamp", varDouble, inSession, "", ""},
	{"version", varText, inGlobal | fixed, "", ""},
	{"warning_count", varInt, inSession | fixed, "", ""},

	// ours
	{"tidemark_collation", varEnum, anyScope, "mysql", "mysql binary"},
	{"tidemark_mixed_points", varBool, anyScope, "OFF", ""},
	{"tidemark_version", varText, inGlobal | fixed, "", ""},
}

var variableByName = func() map[string]*variable {
	m := make(map[string]*variable, len(systemVariables))
	for i := range systemVariables {
		m[systemVariables[i].name] = &systemVariables[i]
	}
	return m
}()

// findVariable gives a variable by its name in any case.
func findVariable(name string) (*variable, error) {
	if v := variableByName[strings.ToLower(name)]; v != nil {
		return v, nil
	}
	return nil, sqlerr.New(sqlerr.UnknownVariable, "Unknown system variable '%s'", name)
}

// globals are the global values that were set since the start, and those that the server knows at its start.
type globals struct {
	mu     sync.Mutex
	values map[string]string
}

func (g *globals) get(v *variable) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s, ok := g.values[v.name]; ok {
		return s
	}
	return v.value
}

func (g *globals) set(name, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values[name] = value
}

// typed gives a variable's text as the constant that SELECT @@name is.
func (v *variable) typed(text string) translate.Value {
	switch v.kind {
	case varBool:
		if text == "ON" {
			return translate.Value{Kind: translate.IntValue, Int: 1}
		}
		return translate.Value{Kind: translate.IntValue}
	case varInt:
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			return translate.Value{Kind: translate.UintValue, Uint: u}
		}
		i, _ := strconv.ParseInt(text, 10, 64)
		return translate.Value{Kind: translate.IntValue, Int: i}
	case varDouble:
		f, _ := strconv.ParseFloat(text, 64)
		return translate.Value{Kind: translate.DoubleValue, Float: f}
	}
	if text == nullText {
		return translate.Value{}
	}
	return translate.Value{Kind: translate.TextValue, Text: text}
}

// nullText is the value of a text variable that is NULL.
const nullText = "NULL"

// check turns the value of a SET into the variable's text.
func (v *variable) check(val translate.Value) (string, error) {
	switch v.kind {
	case varBool:
		return v.checkBool(val)
	case varInt:
		return v.checkInt(val)
	case varDouble:
		if val.Kind == translate.TextValue || val.Kind == translate.NullValue {
			return "", v.wrongType()
		}
		return valueText(val), nil
	case varEnum:
		return v.checkEnum(val)
	}
	return v.checkText(val)
}

func (v *variable) wrongType() error {
	return sqlerr.New(sqlerr.WrongTypeForVar, "Incorrect argument type to variable '%s'", v.name)
}

func (v *variable) wrongValue(val translate.Value) error {
	return sqlerr.New(sqlerr.WrongValueForVar, "Variable '%s' can't be set to the value of '%s'", v.name, valueText(val))
}

func (v *variable) checkBool(val translate.Value) (string, error) {
	switch strings.ToUpper(valueText(val)) {
	case "1", "ON", "TRUE":
		return "ON", nil
	case "0", "OFF", "FALSE":
		return "OFF", nil
	}
	return "", v.wrongValue(val)
}

func (v *variable) checkInt(val translate.Value) (string, error) {
	switch val.Kind {
	case translate.UintValue:
		return valueText(val), nil
	case translate.IntValue:
		return strconv.FormatInt(max(val.Int, 0), 10), nil // MySQL takes the nearest value that is allowed
	}
	return "", v.wrongType()
}

func (v *variable) checkEnum(val translate.Value) (string, error) {
	choices := strings.Fields(v.choices)
	if val.Kind == translate.IntValue && val.Int >= 0 && val.Int < int64(len(choices)) {
		return choices[val.Int], nil
	}
	text := valueText(val)
	i := slices.IndexFunc(choices, func(c string) bool { return strings.EqualFold(c, text) })
	if val.Kind == translate.NullValue || i < 0 {
		return "", v.wrongValue(val)
	}
	return choices[i], nil
}

func (v *variable) checkText(val translate.Value) (string, error) {
	text := valueText(val)
	switch {
	case strings.HasPrefix(v.name, "character_set_"):
		return v.checkCharset(val)
	case strings.HasPrefix(v.name, "collation_"):
		if query.CollationByName(text) == nil {
			return "", sqlerr.New(sqlerr.UnknownCollation, "Unknown collation: '%s'", text)
		}
		return strings.ToLower(text), nil
	case v.name == "sql_mode":
		return checkMode(v, val)
	case v.name == "time_zone":
		_, err := loadLocation(text)
		return text, err
	case val.Kind == translate.NullValue:
		return "", v.wrongValue(val)
	}
	return text, nil
}

func (v *variable) checkCharset(val translate.Value) (string, error) {
	text := strings.ToLower(valueText(val))
	if val.Kind == translate.NullValue {
		if v.name == "character_set_results" {
			return nullText, nil
		}
		return "", v.wrongValue(val)
	}
	if text == "utf8" {
		text = "utf8mb3"
	}
	if query.CharsetByName(text) == nil {
		return "", sqlerr.New(sqlerr.UnknownCharset, "Unknown character set: '%s'", valueText(val))
	}
	return text, nil
}

// valueText gives a constant as text.
func valueText(v translate.Value) string {
	switch v.Kind {
	case translate.NullValue:
		return nullText
	case translate.IntValue:
		return strconv.FormatInt(v.Int, 10)
	case translate.UintValue:
		return strconv.FormatUint(v.Uint, 10)
	case translate.DoubleValue:
		return strconv.FormatFloat(v.Float, 'f', -1, 64)
	}
	return v.Text
}

// loadLocation reads a time_zone: SYSTEM (the server's, which is UTC here), a difference such as +02:00, or a name.
func loadLocation(name string) (*time.Location, error) {
	if strings.EqualFold(name, systemZone) || strings.EqualFold(name, "UTC") {
		return time.UTC, nil
	}
	if offset, ok := parseOffset(name); ok {
		return time.FixedZone(name, offset), nil
	}
	if strings.Contains(name, "/") || len(name) > 2 && !strings.ContainsAny(name, "+-:0123456789") {
		if l, err := time.LoadLocation(name); err == nil && !strings.EqualFold(name, "local") {
			return l, nil
		}
	}
	return nil, sqlerr.New(sqlerr.UnknownTimeZone, "Unknown or incorrect time zone: '%s'", name)
}

// MySQL allows -13:59 to +14:00.
const minOffset, maxOffset = -(13*60 + 59) * 60, 14 * 3600

func parseOffset(s string) (seconds int, ok bool) {
	if len(s) < 5 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	h, m, found := strings.Cut(s[1:], ":")
	hours, err1 := strconv.ParseUint(h, 10, 8)
	minutes, err2 := strconv.ParseUint(m, 10, 8)
	if !found || err1 != nil || err2 != nil || minutes > 59 || len(m) != 2 || len(h) > 2 {
		return 0, false
	}
	seconds = int(hours)*3600 + int(minutes)*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, seconds >= minOffset && seconds <= maxOffset
}

// isolationAlias maps the names that MySQL 5 had to those of today; both hold the same value.
var aliases = map[string]string{
	"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only", "storage_engine": "default_storage_engine",
	"identity": "last_insert_id",
}

func (v *variable) canonical() *variable {
	if a, ok := aliases[v.name]; ok {
		return variableByName[a]
	}
	return v
}

// sqlModes are the flags of sql_mode and the names that stand for several.
var sqlModes = []string{
	"REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ONLY_FULL_GROUP_BY", "NO_UNSIGNED_SUBTRACTION",
	"NO_DIR_IN_CREATE", "ANSI", "NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES",
	"NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL",
	"HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH", "TIME_TRUNCATE_FRACTIONAL",
}

var combinedModes = map[string][]string{
	"ANSI": {"REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ONLY_FULL_GROUP_BY"},
	"TRADITIONAL": {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ERROR_FOR_DIVISION_BY_ZERO",
		"NO_ENGINE_SUBSTITUTION"},
}

// Modes that MySQL 8 dropped are taken and left out: old drivers still send them.
var droppedModes = []string{"NO_AUTO_CREATE_USER", "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS"}

// checkMode gives a sql_mode in MySQL's order, combined names before what they stand for.
func checkMode(v *variable, val translate.Value) (string, error) {
	if val.Kind != translate.TextValue {
		return "", v.wrongValue(val)
	}
	have := map[string]bool{}
	for _, name := range strings.Split(strings.ToUpper(val.Text), ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "" || slices.Contains(droppedModes, name):
		case slices.Contains(sqlModes, name):
			have[name] = true
			for _, part := range combinedModes[name] {
				have[part] = true
			}
		default:
			return "", sqlerr.New(sqlerr.WrongValueForVar, "Variable 'sql_mode' can't be set to the value of '%s'", name)
		}
	}
	var out []string
	for _, name := range sqlModes {
		if have[name] {
			out = append(out, name)
		}
	}
	return strings.Join(out, ","), nil
}

func (v *variable) checkScope(global bool) error {
	switch {
	case v.scope&fixed != 0:
		return sqlerr.New(sqlerr.ReadOnlyVariable, "Variable '%s' is a read only variable", v.name)
	case global && v.scope&inGlobal == 0:
		return sqlerr.New(sqlerr.LocalVariable, "Variable '%s' is a SESSION variable and can't be used with SET GLOBAL", v.name)
	case !global && v.scope&inSession == 0:
		return sqlerr.New(sqlerr.GlobalVariable, "Variable '%s' is a GLOBAL variable and should be set with SET GLOBAL", v.name)
	}
	return nil
}
