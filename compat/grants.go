package compat

import (
	"slices"
	"strings"
)

// Grants are the privileges of an account, those of its active roles included.
type Grants struct {
	// Account is the account as a GRANT statement names it.
	Account string
	// Roles lists those that are granted; our sessions activate all of them.
	Roles []string

	scopes []scope
}

// scope is the privileges granted (or, by a partial revoke, taken) on one level.
type scope struct {
	database, table string // "" for *
	privileges      []string
	revoked         bool
}

// ParseGrants reads the lines of SHOW GRANTS.
func ParseGrants(lines []string) Grants {
	var g Grants
	for _, line := range lines {
		verb, rest, ok := strings.Cut(line, " ")
		if !ok || verb != "GRANT" && verb != "REVOKE" {
			continue
		}
		l := lexer{rest}
		privileges := l.list()
		if !l.word("ON") {
			g.Roles = append(g.Roles, privileges...)
			continue
		}
		_ = l.word("TABLE")
		database, table, ok := l.target()
		if !ok {
			continue // a grant on a routine
		}
		g.scopes = append(g.scopes, scope{database: database, table: table, privileges: privileges, revoked: verb == "REVOKE"})
	}
	return g
}

// HasGlobal tells whether the account has the privilege on *.*.
func (g *Grants) HasGlobal(privilege string) bool {
	return slices.ContainsFunc(g.scopes, func(s scope) bool { return !s.revoked && s.database == "" && s.has(privilege) })
}

// HasOnDatabase tells whether the account has the privilege on all tables of a database, by a grant on it or on *.*.
// Grants on single tables do not count: under them the other tables can not even be seen.
func (g *Grants) HasOnDatabase(privilege, database string) bool {
	granted := false
	for _, s := range g.scopes {
		switch {
		case s.table != "" || !s.has(privilege):
		case s.revoked && s.database == database:
			return false
		case s.database == "" || matchPattern(s.database, database):
			granted = true
		}
	}
	return granted
}

func (s scope) has(privilege string) bool {
	for _, p := range s.privileges {
		if p == privilege || p == "ALL PRIVILEGES" && !isDynamic(privilege) {
			return true
		}
	}
	return false
}

// isDynamic tells the privileges that ALL does not stand for in the output of SHOW GRANTS: the server lists them apart.
func isDynamic(privilege string) bool { return strings.Contains(privilege, "_") }

// matchPattern compares a database's name with that of a grant, in which % and _ are wildcards unless escaped.
func matchPattern(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	switch c := pattern[0]; {
	case c == '%':
		for i := range len(name) + 1 {
			if matchPattern(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	case c == '\\' && len(pattern) > 1:
		return name != "" && name[0] == pattern[1] && matchPattern(pattern[2:], name[1:])
	case name == "":
		return false
	case c == '_' || c == name[0]:
		return matchPattern(pattern[1:], name[1:])
	}
	return false
}

// lexer reads the parts of one line of SHOW GRANTS.
type lexer struct{ s string }

func (l *lexer) word(w string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(l.s, " "), w+" ")
	if ok {
		l.s = rest
	}
	return ok
}

// list reads privileges or roles up to ON, TO or FROM. Grants on single columns are left out: they are of no use here.
func (l *lexer) list() []string {
	var items []string
	for {
		item, columns := l.item()
		if item != "" && !columns {
			items = append(items, item)
		}
		rest, more := strings.CutPrefix(l.s, ",")
		if !more {
			return items
		}
		l.s = rest
	}
}

func (l *lexer) item() (text string, columns bool) {
	l.s = strings.TrimLeft(l.s, " ")
	i := 0
	for i < len(l.s) && l.s[i] != ',' {
		switch {
		case l.s[i] == '`' || l.s[i] == '\'':
			i = skipQuoted(l.s, i)
			continue
		case l.s[i] == '(':
			columns = true
			for i < len(l.s) && l.s[i] != ')' {
				i++
			}
		case strings.HasPrefix(l.s[i:], " ON "), strings.HasPrefix(l.s[i:], " TO "), strings.HasPrefix(l.s[i:], " FROM "):
			text, l.s = l.s[:i], l.s[i+1:]
			return strings.TrimSpace(text), columns
		}
		i++
	}
	i = min(i, len(l.s))
	text, l.s = l.s[:i], l.s[i:]
	return strings.TrimSpace(text), columns
}

func skipQuoted(s string, i int) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			i++
			continue
		}
		return i + 1
	}
	return len(s)
}

// target reads *.*, `db`.* or `db`.`table`.
func (l *lexer) target() (database, table string, ok bool) {
	if rest, all := strings.CutPrefix(l.s, "*.*"); all {
		l.s = rest
		return "", "", true
	}
	if !strings.HasPrefix(l.s, "`") {
		return "", "", false
	}
	end := skipQuoted(l.s, 0)
	database = unquote(l.s[:end])
	rest, dot := strings.CutPrefix(l.s[end:], ".")
	switch {
	case !dot:
		return "", "", false
	case strings.HasPrefix(rest, "*"):
		return database, "", true
	case strings.HasPrefix(rest, "`"):
		return database, unquote(rest[:skipQuoted(rest, 0)]), true
	}
	return "", "", false
}

func unquote(s string) string {
	return strings.ReplaceAll(s[1:max(1, len(s)-1)], "``", "`")
}

// quoteAccount turns user@host, as CURRENT_USER() gives it, into what a GRANT statement takes.
func quoteAccount(account string) string {
	at := strings.LastIndexByte(account, '@')
	if at < 0 {
		return account
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	return quote(account[:at]) + "@" + quote(account[at+1:])
}
