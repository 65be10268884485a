package server

import (
	"context"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/sqlerr"
	"github.com/tidemarkdb/tidemark/query/translate"
)

// assignment is one checked part of a SET, ready to take effect.
type assignment func()

// set carries out SET: either all of it or nothing.
func (s *session) set(ctx context.Context, n *ast.SetStmt) error {
	var todo []assignment
	for _, v := range n.Variables {
		a, err := s.assign(ctx, v)
		if err != nil {
			return err
		}
		todo = append(todo, a)
	}
	for _, a := range todo {
		a()
	}
	s.applyVariables()
	return nil
}

func (s *session) assign(ctx context.Context, v *ast.VariableAssignment) (assignment, error) {
	switch {
	case v.Name == ast.SetNames || v.Name == ast.SetCharset:
		return s.assignNames(ctx, v)
	case !v.IsSystem:
		value, err := s.evaluate(ctx, v.Value)
		return func() { s.users[strings.ToLower(v.Name)] = value }, err
	}
	return s.assignSystem(ctx, v)
}

func (s *session) assignNames(ctx context.Context, v *ast.VariableAssignment) (assignment, error) {
	name := "utf8mb4"
	if _, isDefault := v.Value.(*ast.DefaultExpr); !isDefault {
		value, err := s.settingValue(ctx, v.Value)
		if err != nil {
			return nil, err
		}
		if name, err = variableByName["character_set_client"].checkCharset(value); err != nil {
			return nil, err
		}
	}
	c := query.CharsetByName(name)
	coll := query.CollationByName(c.Collation)
	if v.ExtendValue != nil {
		given := v.ExtendValue.GetString()
		if coll = query.CollationByName(given); coll == nil {
			return nil, sqlerr.New(sqlerr.UnknownCollation, "Unknown collation: '%s'", given)
		}
		if coll.Charset != c.Name {
			return nil, sqlerr.New(sqlerr.CollationMismatch, "COLLATION '%s' is not valid for CHARACTER SET '%s'", coll.Name, c.Name)
		}
	}
	if v.Name == ast.SetCharset {
		coll = query.CollationByName(s.text("collation_database"))
		return func() {
			s.setNames(c.Name, c.Collation)
			s.values["character_set_connection"], s.values["collation_connection"] = coll.Charset, coll.Name
		}, nil
	}
	return func() { s.setNames(c.Name, coll.Name) }, nil
}

func (s *session) assignSystem(ctx context.Context, a *ast.VariableAssignment) (assignment, error) {
	v, err := findVariable(strings.TrimSuffix(strings.ToLower(a.Name), "_one_shot")) // SET TRANSACTION without SESSION
	if err != nil {
		return nil, err
	}
	v = v.canonical()
	if err := v.checkScope(a.IsGlobal); err != nil {
		return nil, err
	}
	if _, isDefault := a.Value.(*ast.DefaultExpr); isDefault {
		return s.assignDefault(v, a.IsGlobal), nil
	}
	value, err := s.settingValue(ctx, a.Value)
	if err != nil {
		return nil, err
	}
	text, err := v.check(value)
	if err != nil {
		return nil, err
	}
	if a.IsGlobal {
		return func() { s.server.globals.set(v.name, text) }, nil
	}
	return func() { s.setVariable(v.name, text) }, nil
}

func (s *session) assignDefault(v *variable, global bool) assignment {
	if global {
		return func() { s.server.globals.set(v.name, v.value) }
	}
	return func() {
		delete(s.values, v.name)
		s.afterSet(v.name)
	}
}

func (s *session) setVariable(name, text string) {
	s.values[name] = text
	s.afterSet(name)
}

// afterSet keeps variables that go together together.
func (s *session) afterSet(name string) {
	switch name {
	case "autocommit":
		if s.isOn(name) {
			s.endTransaction()
		}
	case "character_set_connection":
		if c := query.CharsetByName(s.text(name)); c != nil {
			s.values["collation_connection"] = c.Collation
		}
	case "collation_connection":
		if c := query.CollationByName(s.text(name)); c != nil {
			s.values["character_set_connection"] = c.Charset
		}
	}
}

// settingValue gives the value of an assignment, in which a bare word is text: SET sql_mode = ansi.
func (s *session) settingValue(ctx context.Context, e ast.ExprNode) (translate.Value, error) {
	if c, ok := e.(*ast.ColumnNameExpr); ok && c.Name.Table.O == "" {
		return translate.Value{Kind: translate.TextValue, Text: c.Name.Name.O}, nil
	}
	if v, ok := literal(e); ok {
		return v, nil
	}
	return s.evaluate(ctx, e)
}

// literal gives the value of a literal of the common kinds, so that the everyday SET needs no engine.
func literal(e ast.ExprNode) (translate.Value, bool) {
	v, ok := e.(ast.ValueExpr)
	if !ok {
		return translate.Value{}, false
	}
	switch x := v.GetValue().(type) {
	case nil:
		return translate.Value{}, true
	case int64:
		return translate.Value{Kind: translate.IntValue, Int: x}, true
	case uint64:
		return translate.Value{Kind: translate.UintValue, Uint: x}, true
	case string:
		return translate.Value{Kind: translate.TextValue, Text: x}, true
	}
	return translate.Value{}, false
}
