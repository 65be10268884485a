package ddl

import (
	"errors"
	"strings"
)

// Bits of sql_mode that change how a statement is read (mysql-server, sql/system_variables.h).
const (
	modeRealAsFloat        = 1 << 0
	modeANSIQuotes         = 1 << 2
	modeNoBackslashEscapes = 1 << 20
)

type tokenKind uint8

const (
	tokEnd      tokenKind = iota
	tokWord               // an unquoted name or keyword
	tokQuoted             // a quoted name
	tokString             // a string literal, unescaped
	tokNumber             // a number as written
	tokHex                // the digits of x'..' or 0x..
	tokBit                // the digits of b'..' or 0b..
	tokVariable           // @name, @@name, or the @host of an account
	tokPunct              // one other character
)

// token is one token of a statement. start and end are where it stands in the text that was lexed.
type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// is tells an unquoted word, in any case.
func (t token) is(word string) bool { return t.kind == tokWord && strings.EqualFold(t.text, word) }

func (t token) isPunct(c byte) bool { return t.kind == tokPunct && t.text[0] == c }

func (t token) isName() bool { return t.kind == tokWord || t.kind == tokQuoted }

var (
	errOpenQuote   = errors.New("it has a quote that is not closed")
	errOpenComment = errors.New("it has a comment that is not closed")
)

// quotedEnd gives the place behind the quoted text that starts at i.
func quotedEnd(s string, i int, backslash bool) (int, error) {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && backslash:
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1, nil
		}
	}
	return 0, errOpenQuote
}

// escapes tells whether a backslash escapes in text quoted by q.
func escapes(q byte, mode uint64) bool {
	return q != '`' && mode&modeNoBackslashEscapes == 0 && (q != '"' || mode&modeANSIQuotes == 0)
}

// stripComments replaces comments by a space, and puts the content of executable comments that a server of this
// version executes in their place.
func stripComments(s string, version int, mode uint64) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\'' || c == '"' || c == '`':
			end, err := quotedEnd(s, i, escapes(c, mode))
			if err != nil {
				return "", err
			}
			b.WriteString(s[i:end])
			i = end
		case c == '#', strings.HasPrefix(s[i:], "--") && (i+2 == len(s) || s[i+2] <= ' '):
			b.WriteByte(' ')
			i = lineEnd(s, i)
		case strings.HasPrefix(s[i:], "/*"):
			inner, end, err := comment(s, i, version, mode)
			if err != nil {
				return "", err
			}
			b.WriteString(" " + inner + " ")
			i = end
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), nil
}

func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}

// comment reads the comment at i: what of it is executed, and where it ends.
func comment(s string, i, version int, mode uint64) (inner string, end int, err error) {
	if !strings.HasPrefix(s[i:], "/*!") {
		n := strings.Index(s[i+2:], "*/")
		if n < 0 {
			return "", 0, errOpenComment
		}
		return "", i + 2 + n + 2, nil
	}
	from, least := commentVersion(s, i+3)
	end, err = executableEnd(s, from, mode)
	if err != nil || least > version {
		return "", end, err
	}
	inner, err = stripComments(s[from:end-2], version, mode)
	return inner, end, err
}

// commentVersion reads the five or six digits behind "/*!".
func commentVersion(s string, i int) (from, version int) {
	n := 0
	for n < 6 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '9' {
		version = version*10 + int(s[i+n]-'0')
		n++
	}
	if n < 5 {
		return i, 0
	}
	return i + n, version
}

// executableEnd finds the end of an executable comment, in which quotes and comments nest.
func executableEnd(s string, i int, mode uint64) (int, error) {
	for i < len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '"' || c == '`':
			end, err := quotedEnd(s, i, escapes(c, mode))
			if err != nil {
				return 0, err
			}
			i = end
		case strings.HasPrefix(s[i:], "*/"):
			return i + 2, nil
		case strings.HasPrefix(s[i:], "/*"):
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				return 0, errOpenComment
			}
			i += 2 + n + 2
		default:
			i++
		}
	}
	return 0, errOpenComment
}

// lexer cuts text without comments into tokens.
type lexer struct {
	s    string
	mode uint64
	i    int
	out  []token
}

// lex gives the tokens, an end token last.
func lex(s string, mode uint64) ([]token, error) {
	l := &lexer{s: s, mode: mode}
	for l.i < len(s) {
		if s[l.i] <= ' ' {
			l.i++
			continue
		}
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	return append(l.out, token{kind: tokEnd, start: len(s), end: len(s)}), nil
}

func (l *lexer) emit(kind tokenKind, text string, end int) {
	l.out = append(l.out, token{kind, text, l.i, end})
	l.i = end
}

// afterDot tells that the token follows a dot, where names may start with digits and keywords are names.
func (l *lexer) afterDot() bool {
	n := len(l.out)
	return n > 0 && l.out[n-1].isPunct('.') && l.out[n-1].end == l.i
}

func (l *lexer) next() error {
	c := l.s[l.i]
	switch {
	case c == '`', c == '"' && l.mode&modeANSIQuotes != 0:
		return l.quotedName(c)
	case c == '\'' || c == '"':
		return l.stringLiteral(l.i)
	case c == '@':
		return l.variable()
	case isDigit(c) && !l.afterDot(), c == '.' && l.i+1 < len(l.s) && isDigit(l.s[l.i+1]) && !l.afterName():
		l.number()
		return nil
	case isNameByte(c):
		return l.word()
	default:
		l.emit(tokPunct, l.s[l.i:l.i+1], l.i+1)
		return nil
	}
}

func (l *lexer) afterName() bool {
	n := len(l.out)
	return n > 0 && l.out[n-1].isName() && l.out[n-1].end == l.i
}

func (l *lexer) quotedName(q byte) error {
	end, err := quotedEnd(l.s, l.i, false)
	if err != nil {
		return err
	}
	double := string([]byte{q, q})
	l.emit(tokQuoted, strings.ReplaceAll(l.s[l.i+1:end-1], double, string(q)), end)
	return nil
}

// stringLiteral reads the literal whose quote is at i.
func (l *lexer) stringLiteral(i int) error {
	q := l.s[i]
	backslash := escapes(q, l.mode)
	end, err := quotedEnd(l.s, i, backslash)
	if err != nil {
		return err
	}
	l.emit(tokString, unescape(l.s[i+1:end-1], q, backslash), end)
	return nil
}

func unescape(s string, quote byte, backslash bool) string {
	if strings.IndexByte(s, quote) < 0 && (!backslash || strings.IndexByte(s, '\\') < 0) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			i++ // doubled
			b = append(b, quote)
		case s[i] == '\\' && backslash && i+1 < len(s):
			i++
			b = appendEscaped(b, s[i])
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case 'n':
		return append(b, '\n')
	case 't':
		return append(b, '\t')
	case 'r':
		return append(b, '\r')
	case 'b':
		return append(b, '\b')
	case '0':
		return append(b, 0)
	case 'Z':
		return append(b, 0x1A)
	case '%', '_':
		return append(b, '\\', c)
	default:
		return append(b, c)
	}
}

func (l *lexer) variable() error {
	i := l.i + 1
	for i < len(l.s) && l.s[i] == '@' {
		i++
	}
	if i < len(l.s) && (l.s[i] == '`' || l.s[i] == '\'' || l.s[i] == '"') {
		end, err := quotedEnd(l.s, i, escapes(l.s[i], l.mode))
		if err != nil {
			return err
		}
		l.emit(tokVariable, l.s[l.i:end], end)
		return nil
	}
	for i < len(l.s) && (isNameByte(l.s[i]) || l.s[i] == '.') {
		i++
	}
	l.emit(tokVariable, l.s[l.i:i], i)
	return nil
}

// number reads a number, or a name that starts with digits.
func (l *lexer) number() {
	s, i := l.s, l.i
	if strings.HasPrefix(s[i:], "0x") || strings.HasPrefix(s[i:], "0b") {
		kind, digits := tokHex, "0123456789abcdefABCDEF"
		if s[i+1] == 'b' {
			kind, digits = tokBit, "01"
		}
		end := i + 2
		for end < len(s) && strings.IndexByte(digits, s[end]) >= 0 {
			end++
		}
		if end > i+2 && (end == len(s) || !isNameByte(s[end])) {
			l.emit(kind, s[i+2:end], end)
			return
		}
	}
	end := digitsEnd(s, i)
	if end < len(s) && s[end] == '.' {
		end = digitsEnd(s, end+1)
	}
	if exp := exponentEnd(s, end); exp > 0 {
		end = exp
	} else if end < len(s) && isNameByte(s[end]) && strings.IndexByte(s[i:end], '.') < 0 {
		l.emitWord(i)
		return
	}
	l.emit(tokNumber, s[i:end], end)
}

func digitsEnd(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// exponentEnd gives the place behind an exponent at i, 0 if there is none.
func exponentEnd(s string, i int) int {
	if i >= len(s) || s[i]|0x20 != 'e' {
		return 0
	}
	i++
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	end := digitsEnd(s, i)
	if end == i || end < len(s) && isNameByte(s[end]) {
		return 0
	}
	return end
}

// word reads a name or keyword, or a literal with a letter in front: x'..', b'..', n'..'.
func (l *lexer) word() error {
	if l.i+1 < len(l.s) && l.s[l.i+1] == '\'' {
		switch l.s[l.i] | 0x20 {
		case 'x', 'b':
			end, err := quotedEnd(l.s, l.i+1, false)
			if err != nil {
				return err
			}
			kind := tokHex
			if l.s[l.i]|0x20 == 'b' {
				kind = tokBit
			}
			l.emit(kind, l.s[l.i+2:end-1], end)
			return nil
		case 'n':
			return l.stringLiteral(l.i + 1)
		}
	}
	l.emitWord(l.i)
	return nil
}

func (l *lexer) emitWord(i int) {
	end := i
	for end < len(l.s) && isNameByte(l.s[end]) {
		end++
	}
	l.emit(tokWord, l.s[i:end], end)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameByte(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c >= 0x80
}
