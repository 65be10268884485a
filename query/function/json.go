package function

import (
	"strconv"
	"strings"
)

// JSONPath is a path of plain steps, such as $.a[0]."b c".
type JSONPath []jsonStep

type jsonStep struct {
	key   string
	index int // -1 for a key
}

// ParseJSONPath reads a path. ok is false for one with wildcards, ranges or "last", and for what is no path.
func ParseJSONPath(s string) (path JSONPath, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimSpace(s), "$")
	for ok && s != "" {
		var step jsonStep
		if step, s, ok = nextStep(s); ok {
			path = append(path, step)
		}
	}
	return path, ok
}

func nextStep(s string) (step jsonStep, rest string, ok bool) {
	if after, found := strings.CutPrefix(s, "["); found {
		digits, rest, found := strings.Cut(after, "]")
		n, err := strconv.Atoi(digits)
		return jsonStep{index: n}, rest, found && err == nil && n >= 0
	}
	after, found := strings.CutPrefix(s, ".")
	if !found || after == "" {
		return step, s, false
	}
	if after[0] == '"' {
		end := stringEnd(after)
		if end < 0 {
			return step, s, false
		}
		return jsonStep{key: unquote(after[:end]), index: -1}, after[end:], true
	}
	n := 0
	for n < len(after) && isNameByte(after[n]) {
		n++
	}
	return jsonStep{key: after[:n], index: -1}, after[n:], n > 0
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// JSONExtract gives the part of a document that a path names, as it is written there. The document is one that MySQL
// printed. An index 0 names a value that is no array, too.
func JSONExtract(doc string, path JSONPath) (part string, ok bool) {
	for _, step := range path {
		if step.index >= 0 {
			doc, ok = element(doc, step.index)
		} else {
			doc, ok = member(doc, step.key)
		}
		if !ok {
			return "", false
		}
	}
	return doc, true
}

func element(doc string, n int) (string, bool) {
	if !strings.HasPrefix(doc, "[") {
		return doc, n == 0
	}
	for rest := doc[1:]; rest != "" && rest[0] != ']'; n-- {
		end := valueEnd(rest)
		if n == 0 {
			return rest[:end], true
		}
		rest = strings.TrimLeft(rest[end:], ", ")
	}
	return "", false
}

func member(doc, key string) (string, bool) {
	if !strings.HasPrefix(doc, "{") {
		return "", false
	}
	for rest := doc[1:]; rest != "" && rest[0] == '"'; {
		end := stringEnd(rest)
		if end < 0 {
			return "", false
		}
		name := unquote(rest[:end])
		rest = strings.TrimLeft(rest[end:], ": ")
		end = valueEnd(rest)
		if name == key {
			return rest[:end], true
		}
		rest = strings.TrimLeft(rest[end:], ", ")
	}
	return "", false
}

// valueEnd gives the length of the value that a text starts with.
func valueEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			n := stringEnd(s[i:])
			if n < 0 {
				return len(s)
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(s)
}

// stringEnd gives the length of the quoted string that a text starts with; -1 when it does not end.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// JSONUnquote gives a JSON string's text, and other values as they are written: JSON_UNQUOTE of a JSON value.
func JSONUnquote(value string) string {
	if strings.HasPrefix(value, "\"") {
		return unquote(value)
	}
	return value
}

func unquote(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "\""), "\"")
	if !strings.Contains(s, "\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'u' && i+4 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
				b.WriteRune(rune(n))
				i += 4
				continue
			}
		}
		b.WriteByte(unescaped(s[i]))
	}
	return b.String()
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
