package ddl

import (
	"strconv"
	"strings"

	"github.com/tidemarkdb/tidemark/schema"
)

// columnSpec is a column as a statement defines it, before the table's defaults are known.
type columnSpec struct {
	name string
	typ  typeSpec
	// null is what the statement says; unset leaves the type's default.
	null          nullability
	value         *literal // DEFAULT
	onUpdate      string
	autoIncrement bool
	primary       bool
	unique        bool
	comment       string
	collate       string
	invisible     bool
	generated     string
	stored        bool
	srid          *uint32
	isGenerated   bool
	references    *foreignKey
	first         bool
	after         string
}

type nullability uint8

const (
	nullUnset nullability = iota
	nullYes
	nullNo
)

// literalKind is what stands behind DEFAULT.
type literalKind uint8

const (
	litNull literalKind = iota + 1
	litString
	litNumber
	litHex
	litBits
	litNow  // CURRENT_TIMESTAMP
	litExpr // any other expression
)

// literal is a default. text is the value, digits, or the text of the expression. paren tells that it stood in
// parentheses, which makes a literal an expression for information_schema.
type literal struct {
	kind    literalKind
	text    string
	charset string // of an introducer
	fsp     int    // of CURRENT_TIMESTAMP
	paren   bool
}

// foreignKey is a reference to another table.
type foreignKey struct {
	name    string
	index   string
	columns []indexPart
	actions []string // CASCADE and SET NULL
}

// columnSpec takes name, type and attributes.
func (p *parser) columnSpec() columnSpec {
	c := columnSpec{name: p.name()}
	c.typ = p.dataType()
	p.attributes(&c)
	return c
}

// attributes takes what may follow the type, in any order.
func (p *parser) attributes(c *columnSpec) {
	for p.err == nil {
		switch {
		case p.word("NOT", "SECONDARY"):
		case p.word("NOT", "NULL"):
			c.null = nullNo
		case p.word("NULL"):
			c.null = nullYes
		case p.word("DEFAULT"):
			v := p.defaultValue()
			c.value = &v
		case p.word("ON", "UPDATE"):
			c.onUpdate = p.now().printed()
		case p.word("AUTO_INCREMENT"):
			c.autoIncrement = true
		case p.word("SERIAL", "DEFAULT", "VALUE"):
			c.autoIncrement, c.unique, c.null = true, true, nullNo
		case p.word("PRIMARY", "KEY"), p.word("PRIMARY"), p.word("KEY"):
			c.primary = true
		case p.word("UNIQUE", "KEY"), p.word("UNIQUE"):
			c.unique = true
		case p.word("COMMENT"):
			c.comment = p.text()
		case p.word("COLLATE"):
			c.collate = p.s.collationName(p.value().text)
		case p.oneOf("COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE") != "":
			p.value()
		case p.word("SRID"):
			c.srid = p.srid()
		case p.word("VISIBLE"):
		case p.word("INVISIBLE"):
			c.invisible = true
		case p.word("GENERATED", "ALWAYS", "AS"), p.word("AS"):
			c.isGenerated, c.generated = true, p.parenthesized()
		case p.word("VIRTUAL"):
		case p.oneOf("STORED", "PERSISTENT") != "":
			c.stored = true
		case p.word("REFERENCES"):
			c.references = p.references()
		case p.peek().is("CONSTRAINT"), p.peek().is("CHECK"):
			p.check()
		default:
			return
		}
	}
}

// srid takes the number of a spatial reference system.
func (p *parser) srid() *uint32 {
	t := p.value()
	n, err := strconv.ParseUint(t.text, 10, 32)
	if err != nil {
		p.unexpected("the number of a spatial reference system")
		return nil
	}
	return new(uint32(n))
}

// check takes [CONSTRAINT [name]] CHECK (expr) [[NOT] ENFORCED]. Rows are checked on the source; nothing is kept.
func (p *parser) check() {
	if p.word("CONSTRAINT") && !p.peek().is("CHECK") {
		p.name()
	}
	p.wantWord("CHECK")
	p.parenthesized()
	p.enforced()
}

func (p *parser) enforced() {
	_ = p.word("NOT", "ENFORCED") || p.word("ENFORCED")
}

// references takes the rest of REFERENCES t (..) [MATCH x] [ON DELETE x] [ON UPDATE x].
func (p *parser) references() *foreignKey {
	fk := &foreignKey{}
	p.tableName()
	if p.peek().isPunct('(') {
		p.parenthesized()
	}
	if p.word("MATCH") {
		p.take()
	}
	for p.word("ON", "DELETE") || p.word("ON", "UPDATE") {
		switch {
		case p.word("CASCADE"):
			fk.actions = append(fk.actions, "CASCADE")
		case p.word("SET", "NULL"):
			fk.actions = append(fk.actions, "SET NULL")
		case p.word("NO", "ACTION"), p.word("SET", "DEFAULT"), p.word("RESTRICT"):
		default:
			p.unexpected("a referential action")
		}
	}
	return fk
}

// nowWords are the names of the current time that a default may be.
var nowWords = []string{"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"}

// now takes CURRENT_TIMESTAMP or a synonym with its number of digits.
func (p *parser) now() literal {
	if p.oneOf(nowWords...) == "" {
		p.unexpected("CURRENT_TIMESTAMP")
	}
	l := literal{kind: litNow}
	if p.punct('(') {
		if !p.peek().isPunct(')') {
			l.fsp = p.number()
		}
		p.wantPunct(')')
	}
	return l
}

// printed gives CURRENT_TIMESTAMP as information_schema prints it.
func (l literal) printed() string {
	if l.fsp == 0 {
		return "CURRENT_TIMESTAMP"
	}
	return "CURRENT_TIMESTAMP(" + strconv.Itoa(l.fsp) + ")"
}

// defaultValue takes what stands behind DEFAULT.
func (p *parser) defaultValue() literal {
	if !p.peek().isPunct('(') {
		return p.literal()
	}
	start := p.i
	text := p.parenthesized()
	end := p.i
	if p.err != nil {
		return literal{}
	}
	// A literal in parentheses is an expression for MySQL, and a constant for us.
	inner := &parser{s: p.s, i: start + 1}
	l := inner.literal()
	if inner.err != nil || inner.i != end-1 || l.kind == litNow {
		l = literal{kind: litExpr, text: text}
	}
	l.paren = true
	return l
}

func (p *parser) literal() literal {
	t := p.peek()
	switch {
	case t.is("NULL"):
		p.take()
		return literal{kind: litNull}
	case t.is("TRUE"), t.is("FALSE"):
		p.take()
		return literal{kind: litNumber, text: map[bool]string{true: "1", false: "0"}[t.is("TRUE")]}
	case t.kind == tokString:
		return literal{kind: litString, text: p.text()}
	case t.isPunct('-'), t.isPunct('+'):
		return p.signed()
	case t.kind == tokNumber:
		p.take()
		return literal{kind: litNumber, text: t.text}
	case t.kind == tokHex:
		p.take()
		return literal{kind: litHex, text: t.text}
	case t.kind == tokBit:
		p.take()
		return literal{kind: litBits, text: t.text}
	case t.kind == tokWord && strings.HasPrefix(t.text, "_"):
		return p.introduced()
	case t.is("DATE"), t.is("TIME"), t.is("TIMESTAMP"):
		p.take()
		return literal{kind: litString, text: p.text()}
	}
	return p.now()
}

func (p *parser) signed() literal {
	sign := ""
	for p.peek().isPunct('-') || p.peek().isPunct('+') {
		if p.take().isPunct('-') {
			sign = map[string]string{"": "-", "-": ""}[sign]
		}
	}
	t := p.take()
	if t.kind != tokNumber {
		p.fail("a number is expected behind a sign")
	}
	return literal{kind: litNumber, text: sign + t.text}
}

// introduced takes _charset'text'.
func (p *parser) introduced() literal {
	charset := p.s.charsetName(p.take().text[1:])
	l := p.literal()
	if l.kind != litString && l.kind != litHex && l.kind != litBits {
		p.fail("a string is expected behind _%s", charset)
	}
	l.charset = charset
	return l
}

// build makes the column, under the table's character set. The name, type and attributes are as information_schema
// has them; Default is set by the caller.
func (s *statement) build(spec *columnSpec, charset, collation string) (schema.Column, error) {
	text, charset, collation, err := s.resolve(&spec.typ, spec.collate, charset, collation)
	if err != nil {
		return schema.Column{}, err
	}
	c, err := schema.ParseColumnType(text)
	if err != nil {
		return c, err
	}
	c.Name, c.Charset, c.Collation = spec.name, charset, collation
	c.Nullable = spec.null != nullNo && !spec.primary
	if c.Type == schema.Timestamp && spec.null == nullUnset && !s.st.ExplicitDefaults {
		c.Nullable = false
	}
	if spec.typ.serial {
		c.Nullable = false
	}
	c.AutoIncrement = spec.autoIncrement || spec.typ.serial
	c.OnUpdate, c.Comment, c.Invisible, c.SRID = spec.onUpdate, spec.comment, spec.invisible, spec.srid
	c.Generated, c.Stored = spec.generated, spec.stored
	return c, nil
}
