package collate

import (
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// EmptyEscape is the escape character that ESCAPE ” means to MySQL: NUL.
const EmptyEscape = rune(0)

// Pattern is a LIKE pattern prepared for many texts. It is safe for concurrent use.
type Pattern struct {
	collation *Collation
	tokens    []token
}

// token is one element of a pattern: the class of a character, or a wildcard.
type token int64

const (
	anyOne  token = -1 // _
	anyMany token = -2 // %
)

// Like tells whether text LIKE pattern ESCAPE escape.
func (c *Collation) Like(text, pattern []byte, escape rune) bool {
	return c.Pattern(pattern, escape).Match(text)
}

// Pattern prepares a LIKE pattern. An escape character at the pattern's end stands for itself.
func (c *Collation) Pattern(pattern []byte, escape rune) *Pattern {
	c.load()
	p := &Pattern{collation: c}
	escaped := false
	for len(pattern) > 0 {
		r, n := c.next(pattern)
		pattern = pattern[n:]
		switch {
		case escaped:
			p.tokens, escaped = append(p.tokens, c.classOf(r)), false
		case r == escape && len(pattern) > 0:
			escaped = true
		case r == '_':
			p.tokens = append(p.tokens, anyOne)
		case r == '%':
			p.tokens = append(p.tokens, anyMany)
		default:
			p.tokens = append(p.tokens, c.classOf(r))
		}
	}
	return p
}

// Match tells whether the text matches. A mismatch after % is retried one character later only for the last % met: the
// earlier ones have matched as little as they can.
func (p *Pattern) Match(text []byte) bool {
	at := 0
	retryAt, retryText := -1, []byte(nil)
	for len(text) > 0 {
		if at < len(p.tokens) && p.tokens[at] == anyMany {
			at++
			retryAt, retryText = at, text
			continue
		}
		r, n := p.collation.next(text)
		if at < len(p.tokens) && (p.tokens[at] == anyOne || p.tokens[at] == p.collation.classOf(r)) {
			at++
			text = text[n:]
			continue
		}
		if retryAt < 0 {
			return false
		}
		_, n = p.collation.next(retryText)
		retryText = retryText[n:]
		at, text = retryAt, retryText
	}
	for at < len(p.tokens) && p.tokens[at] == anyMany {
		at++
	}
	return at == len(p.tokens)
}

// next gives the first character of a text: a byte for the collation "binary".
func (c *Collation) next(text []byte) (rune, int) {
	if c.charset == "binary" {
		return rune(text[0]), 1
	}
	return utf8.DecodeRune(text)
}

// classes gives characters of equal weight the same number. It is filled as characters are met.
type classes struct {
	mu     sync.Mutex
	pages  [(utf8.MaxRune + 1) >> pageBits]atomic.Pointer[page]
	number map[string]token
}

const pageBits = 8

type page [1 << pageBits]token

func (c *Collation) classOf(r rune) token {
	if c.unit == 0 {
		return token(r)
	}
	p := c.classes.pages[r>>pageBits].Load()
	if p == nil {
		p = c.fill(r >> pageBits)
	}
	return p[r&(1<<pageBits-1)]
}

func (c *Collation) fill(number rune) *page {
	c.classes.mu.Lock()
	defer c.classes.mu.Unlock()
	if c.classes.number == nil {
		c.classes.number = map[string]token{}
	}
	p := new(page)
	for i := range p {
		r := number<<pageBits | rune(i)
		w := c.likeWeight(r)
		class, ok := c.classes.number[w]
		if !ok {
			class = token(len(c.classes.number))
			c.classes.number[w] = class
		}
		p[i] = class
	}
	c.classes.pages[number].Store(p)
	return p
}

// likeWeight gives what LIKE compares of a character: its weights, but in the older UCA collations the code point
// itself for characters beyond the basic plane, which all have one weight there.
func (c *Collation) likeWeight(r rune) string {
	if c.olderUCA() && r > 0xFFFF {
		return "character " + string(r)
	}
	return string(c.appendWeights(nil, utf8.AppendRune(nil, r)))
}
