package ddl

import (
	"fmt"
	"strings"
)

// parser walks over the tokens of a statement. The first fault is kept, and ends every loop: after it the parser
// stands at the end.
type parser struct {
	s   *statement
	i   int
	err error
}

func (p *parser) peek() token { return p.s.tokens[p.i] }

// peekAt looks n tokens ahead.
func (p *parser) peekAt(n int) token { return p.s.tokens[min(p.i+n, len(p.s.tokens)-1)] }

func (p *parser) take() token {
	t := p.s.tokens[p.i]
	if t.kind != tokEnd {
		p.i++
	}
	return t
}

// atEnd tells whether the statement is over: a semicolon may stand at its end.
func (p *parser) atEnd() bool {
	return p.peek().kind == tokEnd || p.peek().isPunct(';') && p.peekAt(1).kind == tokEnd
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.i = len(p.s.tokens) - 1
}

func (p *parser) unexpected(wanted string) {
	t := p.peek()
	if t.kind == tokEnd {
		p.fail("it ends where %s is expected", wanted)
		return
	}
	p.fail("%s is expected at %q", wanted, p.s.text[t.start:t.end])
}

// word takes the words if all of them come next.
func (p *parser) word(words ...string) bool {
	for i, w := range words {
		if !p.peekAt(i).is(w) {
			return false
		}
	}
	p.i += len(words)
	return true
}

// oneOf takes one of the words and gives it in upper case, "" if none comes next.
func (p *parser) oneOf(words ...string) string {
	for _, w := range words {
		if p.word(w) {
			return w
		}
	}
	return ""
}

func (p *parser) wantWord(w string) {
	if !p.word(w) {
		p.unexpected(w)
	}
}

func (p *parser) punct(c byte) bool {
	if p.peek().isPunct(c) {
		p.i++
		return true
	}
	return false
}

func (p *parser) wantPunct(c byte) {
	if !p.punct(c) {
		p.unexpected("'" + string(c) + "'")
	}
}

// name takes a name.
func (p *parser) name() string {
	if !p.peek().isName() {
		p.unexpected("a name")
		return ""
	}
	return p.take().text
}

// tableName takes [database.]table, with any white space around the dot.
func (p *parser) tableName() tableName {
	if p.punct('.') { // ODBC's .table
		return tableName{p.s.st.Database, p.name()}
	}
	n := tableName{p.s.st.Database, p.name()}
	if p.punct('.') {
		n = tableName{n.table, p.name()}
	}
	return n
}

// tableNames takes a list of tables.
func (p *parser) tableNames() []tableName {
	var out []tableName
	for p.err == nil {
		out = append(out, p.tableName())
		if !p.punct(',') {
			break
		}
	}
	return out
}

// value takes what stands behind an option's name: an optional '=', then one token or a list in parentheses.
func (p *parser) value() token {
	p.punct('=')
	if p.peek().isPunct('(') {
		p.parenthesized()
		return token{}
	}
	if p.peek().isPunct('-') || p.peek().isPunct('+') {
		p.take()
	}
	if p.peek().kind == tokPunct || p.peek().kind == tokEnd {
		p.unexpected("a value")
	}
	return p.take()
}

// text takes a string literal, of several parts perhaps.
func (p *parser) text() string {
	if p.peek().kind != tokString {
		p.unexpected("a string")
		return ""
	}
	var b strings.Builder
	for p.peek().kind == tokString {
		b.WriteString(p.take().text)
	}
	return b.String()
}

// parenthesized passes over a parenthesis and gives what stands in it.
func (p *parser) parenthesized() string {
	open := p.peek()
	p.wantPunct('(')
	for depth := 1; p.err == nil; {
		t := p.take()
		switch {
		case t.kind == tokEnd:
			p.fail("a parenthesis is not closed")
		case t.isPunct('('):
			depth++
		case t.isPunct(')'):
			if depth--; depth == 0 {
				return strings.TrimSpace(p.s.text[open.end:t.start])
			}
		}
	}
	return ""
}

// number takes an unsigned integer.
func (p *parser) number() int {
	t := p.peek()
	n := 0
	if t.kind != tokNumber {
		p.unexpected("a number")
		return 0
	}
	for i := range len(t.text) {
		if !isDigit(t.text[i]) || n > 1<<40 {
			p.unexpected("an integer")
			return 0
		}
		n = n*10 + int(t.text[i]-'0')
	}
	p.take()
	return n
}

// ifExists takes IF EXISTS, ifNotExists IF NOT EXISTS.
func (p *parser) ifExists() bool    { return p.word("IF", "EXISTS") }
func (p *parser) ifNotExists() bool { return p.word("IF", "NOT", "EXISTS") }

// charsetWord takes the words in front of a character set's name.
func (p *parser) charsetWord() bool {
	return p.word("CHARACTER", "SET") || p.word("CHAR", "SET") || p.word("CHARSET")
}
