package admin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	tokenEnd    kind = iota
	tokenWord        // a keyword, a name without quotes
	tokenName        // a name in backquotes
	tokenString      // a string in either quotes
	tokenNumber
	tokenMark // one character of punctuation
)

// token is a piece of a statement. text has quotes and escapes resolved.
type token struct {
	kind       kind
	text       string
	start, end int // in bytes
	bad        bool
}

// is tells a keyword or a punctuation character.
func (t token) is(word string) bool {
	return (t.kind == tokenWord || t.kind == tokenMark) && strings.EqualFold(t.text, word)
}

// String describes the token for an error message. What stands in quotes may be a password and is not shown.
func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the statement"
	case tokenString:
		return "a string"
	}
	return "'" + t.text + "'"
}

// lexer cuts a statement into tokens. It knows as much of MySQL's lexical rules as is needed not to be misled by quotes
// and comments.
type lexer struct {
	src string
	at  int
}

func (l *lexer) next() token {
	l.skipBlanks()
	start := l.at
	if start >= len(l.src) {
		return token{kind: tokenEnd, start: start, end: start}
	}
	var t token
	switch c := l.src[start]; {
	case c == '\'' || c == '"':
		t = l.quoted(c, tokenString)
	case c == '`':
		t = l.quoted(c, tokenName)
	case isDigit(c):
		t = l.number()
	default:
		t = l.word()
	}
	t.start, t.end = start, l.at
	return t
}

// skipBlanks skips blanks and comments. Executable comments are comments too: ours have no versions to tell apart.
func (l *lexer) skipBlanks() {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		switch {
		case strings.IndexByte(" \t\r\n\v\f", rest[0]) >= 0:
			l.at++
		case rest[0] == '#', rest == "--", strings.HasPrefix(rest, "--") && strings.IndexByte(" \t\r\n\v\f", rest[2]) >= 0:
			l.skipPast(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			l.skipPast(rest, "*/")
		default:
			return
		}
	}
}

func (l *lexer) skipPast(rest, end string) {
	from := min(2, len(rest))
	if rest[0] == '#' {
		from = 1
	}
	if i := strings.Index(rest[from:], end); i >= 0 {
		l.at += from + i + len(end)
		return
	}
	l.at = len(l.src)
}

// quoted reads up to the closing quote; a doubled quote stands for itself. An open end is a bad token.
func (l *lexer) quoted(quote byte, k kind) token {
	var b strings.Builder
	for l.at++; l.at < len(l.src); l.at++ {
		c := l.src[l.at]
		switch {
		case c == '\\' && quote != '`' && l.at+1 < len(l.src):
			l.at++
			b.WriteByte(unescaped(l.src[l.at]))
		case c != quote:
			b.WriteByte(c)
		case l.at+1 < len(l.src) && l.src[l.at+1] == quote:
			l.at++
			b.WriteByte(c)
		default:
			l.at++
			return token{kind: k, text: b.String()}
		}
	}
	return token{kind: k, text: b.String(), bad: true}
}

// unescaped gives the character that MySQL's backslash sequence stands for.
func unescaped(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'Z':
		return 26
	}
	return c
}

func (l *lexer) number() token {
	start := l.at
	for l.at < len(l.src) && (isDigit(l.src[l.at]) || l.src[l.at] == '.') {
		l.at++
	}
	// a name may start with digits
	if l.at < len(l.src) && isWordByte(l.src[l.at]) {
		return l.wordFrom(start)
	}
	return token{kind: tokenNumber, text: l.src[start:l.at]}
}

func (l *lexer) word() token {
	r, size := utf8.DecodeRuneInString(l.src[l.at:])
	if r != '_' && r != '$' && r != '@' && !unicode.IsLetter(r) {
		l.at += size
		return token{kind: tokenMark, text: l.src[l.at-size : l.at]}
	}
	return l.wordFrom(l.at)
}

func (l *lexer) wordFrom(start int) token {
	for l.at < len(l.src) && isWordByte(l.src[l.at]) {
		l.at++
	}
	return token{kind: tokenWord, text: l.src[start:l.at]}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWordByte: bytes of UTF-8 beyond ASCII may stand in names.
func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c == '@' || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

// FirstWord gives a statement's first word in upper case, comments left out.
func FirstWord(text string) string {
	l := lexer{src: text}
	t := l.next()
	for t.is("(") {
		t = l.next()
	}
	if t.kind != tokenWord {
		return ""
	}
	return strings.ToUpper(t.text)
}

// Split cuts a text at the semicolons between its statements. Empty statements are left out.
func Split(text string) []string {
	var out []string
	l := lexer{src: text}
	start, empty := 0, true
	for {
		t := l.next()
		switch {
		case t.kind == tokenEnd:
			if !empty {
				out = append(out, strings.TrimSpace(text[start:]))
			}
			return out
		case t.is(";"):
			if !empty {
				out = append(out, strings.TrimSpace(text[start:t.start]))
			}
			start, empty = t.end, true
		default:
			empty = false
		}
	}
}

// Redact gives a statement with '...' in place of every string in it.
func Redact(text string) string {
	var b strings.Builder
	l := lexer{src: text}
	at := 0
	for {
		t := l.next()
		switch t.kind {
		case tokenEnd:
			b.WriteString(text[at:])
			return b.String()
		case tokenString:
			b.WriteString(text[at:t.start])
			b.WriteString("'...'")
			at = t.end
		}
	}
}
