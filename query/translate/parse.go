package translate

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
)

// Parser parses statements of one session. It is not safe for concurrent use.
type Parser struct{ p *parser.Parser }

// NewParser makes a parser.
func NewParser() *Parser { return &Parser{parser.New()} }

// Parse reads the statements of a text under a sql_mode. A syntax error is MySQL's error 1064.
func (p *Parser) Parse(sql string, mode SQLMode) ([]ast.StmtNode, error) {
	p.p.SetSQLMode(mode.parser())
	stmts, _, err := p.p.ParseSQL(sql)
	if err != nil {
		return nil, parseError(sql, err)
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

// parseError makes MySQL's error 1064 of the parser's, which names line and column of the end of the unexpected token.
func parseError(sql string, err error) error {
	text := err.Error()
	m := nearPattern.FindStringSubmatch(text)
	if m == nil {
		return errorf(1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '%s' at line 1", cut(sql))
	}
	near := text[len(m[0]):]
	if i := strings.LastIndex(near, `"`); i >= 0 {
		near = near[:i]
	}
	line := 1 + strings.Count(strings.TrimSuffix(sql, near), "\n")
	if n, err := strconv.Atoi(m[1]); err == nil && !strings.HasSuffix(sql, near) {
		line = n
	}
	return errorf(1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '%s' at line %d", cut(near), line)
}

func cut(s string) string {
	r := []rune(s)
	if len(r) > nearLength {
		r = r[:nearLength]
	}
	return string(r)
}
