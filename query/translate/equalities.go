package translate

import (
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
)

// Equalities gives the integers that columns must equal in all rows that count, by the columns' names in lower case. It
// knows only the plainest statements, a SELECT from a single table without subqueries, and of its WHERE the conditions
// `column = integer` that are joined by AND; nil stands for everything else. What it gives is for finding the rows faster;
// the statement still has to be carried out as it is.
func Equalities(stmt ast.StmtNode, params []Value) map[string]Value {
	s, ok := stmt.(*ast.SelectStmt)
	if !ok || s.Where == nil || s.With != nil || !readsOneTable(s) {
		return nil
	}
	t := &translator{session: (&Session{}).withDefaults(), params: params, markers: orderMarkers(stmt)}
	out := map[string]Value{}
	t.equalities(s.Where, out)
	return out
}

func readsOneTable(s *ast.SelectStmt) bool {
	if s.From == nil || s.From.TableRefs == nil || s.From.TableRefs.Right != nil {
		return false
	}
	source, ok := s.From.TableRefs.Left.(*ast.TableSource)
	if !ok {
		return false
	}
	if _, ok := source.Source.(*ast.TableName); !ok {
		return false
	}
	sub := &deepFinder{&finder{hit: func(n ast.Node) bool {
		_, ok := n.(*ast.SubqueryExpr)
		return ok
	}}}
	s.Accept(sub)
	return !sub.found
}

func (t *translator) equalities(n ast.ExprNode, out map[string]Value) {
	b, ok := unwrapParens(n).(*ast.BinaryOperationExpr)
	if !ok {
		return
	}
	switch b.Op {
	case opcode.LogicAnd:
		t.equalities(b.L, out)
		t.equalities(b.R, out)
	case opcode.EQ:
		t.equality(b.L, b.R, out)
		t.equality(b.R, b.L, out)
	}
}

func (t *translator) equality(column, value ast.ExprNode, out map[string]Value) {
	c, ok := unwrapParens(column).(*ast.ColumnNameExpr)
	if !ok {
		return
	}
	if v, ok, err := t.constant(value); err == nil && ok && (v.Kind == IntValue || v.Kind == UintValue) {
		out[c.Name.Name.L] = v
	}
}
