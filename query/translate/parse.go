package translate

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/terror"
)

// Parser parses statements of one session. It is not safe for concurrent use.
type Parser struct {
	p *parser.Parser
	// Hide gives the part of a statement that an error may show; nil: as it stands.
	Hide func(statement, part string) string
}

// NewParser makes a parser.
func NewParser() *Parser { return &Parser{p: parser.New()} }

// Parse reads the statements of a text under a sql_mode. An error is MySQL's: 1064 for its syntax, or that of a thing named
// in it that MySQL does not have, such as a character set.
func (p *Parser) Parse(sql string, mode SQLMode) ([]ast.StmtNode, error) {
	p.p.SetSQLMode(mode.parser())
	stmts, _, err := p.p.ParseSQL(sql)
	if err != nil {
		return nil, p.error(sql, err)
	}
	return stmts, nil
}

func (m SQLMode) parser() mysql.SQLMode {
	var out mysql.SQLMode
	for _, f := range []struct {
		on   bool
		flag mysql.SQLMode
	}{
		{m.ANSIQuotes, mysql.ModeANSIQuotes}, {m.PipesAsConcat, mysql.ModePipesAsConcat},
		{m.NoBackslashEscapes, mysql.ModeNoBackslashEscapes}, {m.HighNotPrecedence, mysql.ModeHighNotPrecedence},
		{m.IgnoreSpace, mysql.ModeIgnoreSpace}, {m.RealAsFloat, mysql.ModeRealAsFloat},
	} {
		if f.on {
			out |= f.flag
		}
	}
	return out
}

var nearPattern = regexp.MustCompile(`^line (\d+) column (\d+) near "`)

// nearLength is the number of characters of the statement that MySQL's error 1064 shows.
const nearLength = 80

// error makes MySQL's error of the parser's, which names line and column of the end of the unexpected token.
func (p *Parser) error(sql string, err error) error {
	if e, ok := errors.AsType[*terror.Error](err); ok && e.Code() != mysql.ErrParse && e.Code() != mysql.ErrSyntax {
		known := terror.ToSQLError(e)
		return errorf(known.Code, known.State, "%s", known.Message)
	}
	near, line := place(sql, err.Error())
	if p.Hide != nil {
		near = p.Hide(sql, near)
	}
	return errorf(1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '%s' at line %d", cut(near), line)
}

// place says from where on a statement is not understood, and in which line that is.
func place(sql, message string) (near string, line int) {
	m := nearPattern.FindStringSubmatch(message)
	if m == nil {
		return sql, 1
	}
	near = message[len(m[0]):]
	if i := strings.LastIndex(near, `"`); i >= 0 {
		near = near[:i]
	}
	line = 1 + strings.Count(strings.TrimSuffix(sql, near), "\n")
	if n, err := strconv.Atoi(m[1]); err == nil && !strings.HasSuffix(sql, near) {
		line = n
	}
	return near, line
}

func cut(s string) string {
	r := []rune(s)
	if len(r) > nearLength {
		r = r[:nearLength]
	}
	return string(r)
}
