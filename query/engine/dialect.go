package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// TableName is a table as a statement names it. Database is empty where the statement does not say.
type TableName struct{ Database, Table string }

// Select is one SELECT in DuckDB's own dialect, parsed and found to do nothing but read tables.
//
// It is DuckDB's parser that reads the text, and its syntax tree that is checked and rewritten: each table becomes a
// placeholder, in whose place SQL puts a relation.
type Select struct {
	tree    any
	mark    string // begins each placeholder
	tables  []TableName
	aliases map[string]bool // databases named by tables
}

// Tables lists the tables that the statement reads, each once.
func (s *Select) Tables() []TableName { return s.tables }

// Table functions without access to anything.
var plainTableFunctions = []string{"range", "generate_series", "unnest"}

// Scalar functions that look at the engine instead of the data.
var refusedFunctions = []string{
	"current_setting", "getenv", "getvariable", "nextval", "currval", "txid_current", "write_log", "add_parquet_key", "parse_duckdb_log_message",
}

// ParseSelect reads a statement of DuckDB's dialect. Anything but exactly one SELECT over tables and plain table
// functions is refused with an [Error] of KindSyntax or KindAccess that names what is not allowed.
func (e *Engine) ParseSelect(ctx context.Context, sql string) (*Select, error) {
	text, err := e.askText(ctx, "SELECT json_serialize_sql("+Quote(sql)+")")
	if err != nil {
		return nil, err
	}
	var parsed struct {
		Error      bool              `json:"error"`
		Type       string            `json:"error_type"`
		Message    string            `json:"error_message"`
		Statements []json.RawMessage `json:"statements"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("engine: unreadable syntax tree: %w", err)
	}
	switch {
	case parsed.Error && parsed.Type == "parser":
		return nil, &Error{Kind: KindSyntax, Message: parsed.Message}
	case parsed.Error:
		return nil, refused("a statement that is not a SELECT")
	case len(parsed.Statements) != 1:
		return nil, refused(fmt.Sprintf("a text of %d statements", len(parsed.Statements)))
	}
	s := &Select{mark: placeholder(sql), aliases: map[string]bool{}}
	// Numbers are kept as they are written: 64 bits do not fit a float.
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&s.tree); err != nil {
		return nil, fmt.Errorf("engine: unreadable syntax tree: %w", err)
	}
	if err := s.walk(s.tree, nil); err != nil {
		return nil, err
	}
	s.shortenNames(s.tree)
	return s, nil
}

// placeholder makes a name that does not occur in the text.
func placeholder(sql string) string {
	mark := "tidemark_table_"
	for strings.Contains(strings.ToLower(sql), mark) {
		mark += "x_"
	}
	return mark
}

func refused(what string) error {
	return &Error{Kind: KindAccess, Message: what + " is not allowed here; one SELECT over materialized tables is"}
}

// walk checks a part of the tree and replaces its tables. ctes are the names that common table expressions give to
// relations in this part.
func (s *Select) walk(node any, ctes []string) error {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			if err := s.walk(child, ctes); err != nil {
				return err
			}
		}
	case map[string]any:
		if m, ok := n["cte_map"].(map[string]any); ok {
			ctes = append(slices.Clone(ctes), cteNames(m)...)
		}
		if n["type"] == "RECURSIVE_CTE_NODE" {
			ctes = append(slices.Clone(ctes), strings.ToLower(text(n, "cte_name")))
		}
		if err := s.check(n, ctes); err != nil {
			return err
		}
		for _, child := range n {
			if err := s.walk(child, ctes); err != nil {
				return err
			}
		}
	}
	return nil
}

func cteNames(m map[string]any) []string {
	var names []string
	entries, _ := m["map"].([]any)
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok {
			names = append(names, strings.ToLower(text(entry, "key")))
		}
	}
	return names
}

func text(n map[string]any, key string) string {
	s, _ := n[key].(string)
	return s
}

func (s *Select) check(n map[string]any, ctes []string) error {
	_, isTable := n["sample"]
	switch {
	case n["class"] == "FUNCTION":
		return checkFunction(text(n, "function_name"))
	case !isTable || n["class"] != nil || strings.HasSuffix(text(n, "type"), "_NODE"):
		return nil
	}
	switch text(n, "type") {
	case "EMPTY", "JOIN", "SUBQUERY", "EXPRESSION_LIST", "PIVOT":
		return nil
	case "TABLE_FUNCTION":
		f, _ := n["function"].(map[string]any)
		if name := text(f, "function_name"); !slices.Contains(plainTableFunctions, strings.ToLower(name)) {
			return refused("table function " + name)
		}
		return nil
	case "BASE_TABLE":
		return s.replaceTable(n, ctes)
	case "SHOW_REF":
		return refused(text(n, "show_type"))
	default:
		return refused("a relation of kind " + text(n, "type"))
	}
}

func checkFunction(name string) error {
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, "tidemark_") || slices.Contains(refusedFunctions, lower) {
		return refused("function " + name)
	}
	return nil
}

func (s *Select) replaceTable(n map[string]any, ctes []string) error {
	name := TableName{Database: text(n, "schema_name"), Table: text(n, "table_name")}
	switch {
	case text(n, "catalog_name") != "":
		return refused("a table name of three parts")
	case n["at_clause"] != nil:
		return refused("AT")
	case name.Database == "" && slices.Contains(ctes, strings.ToLower(name.Table)):
		return nil
	}
	i := slices.Index(s.tables, name)
	if i < 0 {
		i = len(s.tables)
		s.tables = append(s.tables, name)
	}
	if text(n, "alias") == "" {
		n["alias"] = name.Table
	}
	if name.Database != "" {
		s.aliases[name.Database] = true
	}
	n["schema_name"], n["table_name"] = "", s.placeholder(i)
	return nil
}

// The end mark keeps placeholder 1 from being the start of placeholder 10.
func (s *Select) placeholder(i int) string { return fmt.Sprintf("%s%d_", s.mark, i) }

// shortenNames takes the database off column names, since the relations have the tables' names only.
func (s *Select) shortenNames(node any) {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			s.shortenNames(child)
		}
	case map[string]any:
		if names, ok := n["column_names"].([]any); ok && n["class"] == "COLUMN_REF" && len(names) >= 3 {
			if database, ok := names[0].(string); ok && s.aliases[database] {
				n["column_names"] = names[1:]
			}
		}
		for _, child := range n {
			s.shortenNames(child)
		}
	}
}

// SQL gives the statement with relation(i), a SELECT in parentheses, in place of table i.
func (s *Select) SQL(ctx context.Context, e *Engine, relation func(i int) string) (string, error) {
	tree, err := json.Marshal(s.tree)
	if err != nil {
		return "", fmt.Errorf("engine: syntax tree: %w", err)
	}
	sql, err := e.askText(ctx, "SELECT json_deserialize_sql("+Quote(string(tree))+"::JSON)")
	if err != nil {
		return "", err
	}
	var pairs []string
	for i := range s.tables {
		pairs = append(pairs, s.placeholder(i), relation(i))
	}
	return strings.NewReplacer(pairs...).Replace(string(sql)), nil
}

// askText runs a query that gives one text.
func (e *Engine) askText(ctx context.Context, sql string) ([]byte, error) {
	rows, err := e.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	chunk, err := rows.Next()
	if errors.Is(err, io.EOF) || err == nil && (chunk.Len() != 1 || !chunk.Vector(0).Valid(0)) {
		return nil, errors.New("engine: no answer from the parser")
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(chunk.Vector(0).Bytes(0)), nil
}
