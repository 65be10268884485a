// Package admin reads the statements that manage materialized databases. MySQL has no such statements, so its parser
// does not know them:
//
//	CREATE DATABASE [IF NOT EXISTS] x ENGINE = MaterializedMySQL('host:port[,host:port ...]', 'database', 'user', 'password')
//	    [SETTINGS name = value, ...]
//	ALTER DATABASE x MODIFY SETTING name = value, ...
//	DROP DATABASE [IF EXISTS] x
//	SYSTEM START MATERIALIZEDMYSQL x
//	SYSTEM STOP MATERIALIZEDMYSQL x
//	SYSTEM RESYNC MATERIALIZEDMYSQL TABLE x.t
//	SYSTEM VERIFY MATERIALIZEDMYSQL x
//	SYSTEM VERIFY STORE
//
// The package is pure. Its errors never show what stands in quotes: it may be a password.
package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemarkdb/tidemark/wire"
)

// Statement is one of the types below.
type Statement interface{ statement() }

// CreateDatabase registers a source and starts to copy it.
type CreateDatabase struct {
	Name           string
	IfNotExists    bool
	Host           string
	Port           int
	Others         []wire.Address // further servers of the same history
	SourceDatabase string
	User           string
	Password       string
	Settings       []Setting
}

// Setting is name = value, the value as text.
type Setting struct{ Name, Value string }

// AlterDatabase changes settings.
type AlterDatabase struct {
	Name     string
	Settings []Setting
}

// DropDatabase ends a database and deletes its data here; the source is not touched.
type DropDatabase struct {
	Name     string
	IfExists bool
}

// Start resumes following the source.
type Start struct{ Name string }

// Stop pauses following the source; the data stay readable.
type Stop struct{ Name string }

// Resync copies one table anew while its old copy is served.
type Resync struct{ Database, Table string }

// Verify compares a database with its source.
type Verify struct{ Name string }

// VerifyStore checks the store's own files.
type VerifyStore struct{}

func (*CreateDatabase) statement() {}
func (*AlterDatabase) statement()  {}
func (*DropDatabase) statement()   {}
func (*Start) statement()          {}
func (*Stop) statement()           {}
func (*Resync) statement()         {}
func (*Verify) statement()         {}
func (*VerifyStore) statement()    {}

// Unsupported is the error of a statement that is known and not carried out yet.
type Unsupported struct{ Construct, Advice string }

func (e *Unsupported) Error() string {
	return fmt.Sprintf("This version of Tidemark doesn't yet support '%s'; %s", e.Construct, e.Advice)
}

// engines are the names under which the engine is known.
var engines = []string{"MATERIALIZEDMYSQL", "MATERIALIZEMYSQL", "CNCHMATERIALIZEDMYSQL"}

// Parse reads a statement. It gives nil without an error when the statement is none of ours.
func Parse(text string) (Statement, error) {
	p := &parser{lexer: lexer{src: text}}
	p.advance()
	switch {
	case p.take("SYSTEM"):
		return p.finish(p.system())
	case p.take("CREATE"):
		if p.takeDatabase() && hasEngine(text) {
			return p.finish(p.create())
		}
	case p.take("ALTER"):
		if p.takeDatabase() && hasModifySetting(text) {
			return p.finish(p.alter())
		}
	case p.take("DROP"):
		if p.takeDatabase() {
			return p.finish(p.drop())
		}
	}
	return nil, nil
}

// hasEngine tells our CREATE DATABASE from MySQL's, which has no ENGINE.
func hasEngine(text string) bool { return hasWords(text, "ENGINE") }

func hasModifySetting(text string) bool { return hasWords(text, "MODIFY", "SETTING") }

func hasWords(text string, words ...string) bool {
	l := lexer{src: text}
	found := 0
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		if !t.is(words[found]) {
			found = 0
			continue
		}
		if found++; found == len(words) {
			return true
		}
	}
	return false
}

// parser reads tokens with one in hand. Its first error sticks.
type parser struct {
	lexer lexer
	tok   token
	err   error
}

func (p *parser) advance() { p.tok = p.lexer.next() }

// take moves past a word when it is next.
func (p *parser) take(word string) bool {
	if p.err != nil || !p.tok.is(word) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) takeDatabase() bool { return p.take("DATABASE") || p.take("SCHEMA") }

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) expect(words ...string) {
	for _, w := range words {
		if !p.take(w) {
			p.fail("%s was expected where %s stands (byte %d)", w, p.tok, p.tok.start)
		}
	}
}

func (p *parser) name() string {
	if p.tok.kind != tokenWord && p.tok.kind != tokenName || p.tok.bad || p.tok.text == "" {
		p.fail("a name was expected where %s stands (byte %d)", p.tok, p.tok.start)
		return ""
	}
	name := p.tok.text
	p.advance()
	return name
}

func (p *parser) string(what string) string {
	if p.tok.kind != tokenString || p.tok.bad {
		// not what stands there: it may be a password without quotes
		p.fail("%s was expected, as a string in quotes, at byte %d", what, p.tok.start)
		return ""
	}
	s := p.tok.text
	p.advance()
	return s
}

// finish demands that the statement ends here.
func (p *parser) finish(s Statement) (Statement, error) {
	p.take(";")
	if p.err == nil && p.tok.kind != tokenEnd {
		p.fail("the statement should end where %s stands (byte %d)", p.tok, p.tok.start)
	}
	if p.err != nil {
		return nil, p.err
	}
	return s, nil
}

func (p *parser) system() Statement {
	switch {
	case p.take("START"):
		p.expect("MATERIALIZEDMYSQL")
		return &Start{Name: p.name()}
	case p.take("STOP"):
		p.expect("MATERIALIZEDMYSQL")
		return &Stop{Name: p.name()}
	case p.take("RESYNC"):
		p.expect("MATERIALIZEDMYSQL", "TABLE")
		return p.resync()
	case p.take("VERIFY"):
		if p.take("STORE") {
			return &VerifyStore{}
		}
		p.expect("MATERIALIZEDMYSQL")
		return &Verify{Name: p.name()}
	default:
		p.fail("SYSTEM is followed by START, STOP, RESYNC or VERIFY, not by %s", p.tok)
	}
	return nil
}

func (p *parser) resync() Statement {
	r := &Resync{Database: p.name()}
	p.expect(".")
	r.Table = p.name()
	return r
}

func (p *parser) create() Statement {
	c := &CreateDatabase{}
	if p.take("IF") {
		p.expect("NOT", "EXISTS")
		c.IfNotExists = true
	}
	c.Name = p.name()
	p.expect("ENGINE")
	p.take("=")
	engine := p.name()
	if p.err == nil && !slices.Contains(engines, strings.ToUpper(engine)) {
		p.fail("unknown database engine %s; the one there is: MaterializedMySQL('host:port', 'database', 'user', 'password')", engine)
	}
	p.source(c)
	if p.take("SETTINGS") {
		c.Settings = p.settings()
	}
	if p.tok.is("TABLE") {
		p.err = &Unsupported{"TABLE OVERRIDE", "leave it out; columns and order are those of the source"}
	}
	return c
}

// source reads the engine's arguments.
func (p *parser) source(c *CreateDatabase) {
	if p.err != nil {
		return
	}
	p.expect("(")
	address := p.string("the source's address 'host:port'")
	p.expect(",")
	c.SourceDatabase = p.string("the source's database")
	p.expect(",")
	c.User = p.string("the user")
	p.expect(",")
	c.Password = p.string("the password")
	p.expect(")")
	if p.err != nil {
		p.err = fmt.Errorf("%w; the engine is MaterializedMySQL('host:port', 'database', 'user', 'password')", p.err)
		return
	}
	var first wire.Address
	first, c.Others, p.err = wire.ParseAddresses(address)
	c.Host, c.Port = first.Host, first.Port
	if p.err == nil && c.SourceDatabase == "" {
		p.fail("the source's database is empty")
	}
}

func (p *parser) settings() []Setting {
	var out []Setting
	for p.err == nil {
		s := Setting{Name: p.name()}
		p.expect("=")
		s.Value = p.value()
		out = append(out, s)
		if !p.take(",") {
			break
		}
	}
	return out
}

func (p *parser) value() string {
	sign := ""
	if p.tok.is("-") {
		sign = "-"
		p.advance()
	}
	t := p.tok
	if t.bad || t.kind != tokenNumber && (sign != "" || t.kind != tokenString && t.kind != tokenWord) {
		p.fail("a value was expected where %s stands (byte %d)", t, t.start)
		return ""
	}
	p.advance()
	return sign + t.text
}

func (p *parser) alter() Statement {
	a := &AlterDatabase{Name: p.name()}
	p.expect("MODIFY", "SETTING")
	a.Settings = p.settings()
	return a
}

func (p *parser) drop() Statement {
	d := &DropDatabase{}
	if p.take("IF") {
		p.expect("EXISTS")
		d.IfExists = true
	}
	d.Name = p.name()
	return d
}
