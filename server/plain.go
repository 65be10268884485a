package server

import (
	"regexp"
	"strings"

	"github.com/tidemarkdb/tidemark/query/sqlerr"
)

// A plain statement is one that the parser does not know and whose answer is always the same: an empty list, or MySQL's
// error for what is never here.
type plain struct {
	form    *regexp.Regexp // of the statement without a semicolon; a group is the name of an object
	columns string         // separated by commas
	err     func(name string) error
}

var plainStatements = []plain{
	{form: statementForm(`SHOW REPLICAS`), columns: "Server_Id:int,Host,Port:int,Source_Id:int,Replica_UUID"},
	{form: statementForm(`SHOW SLAVE HOSTS`), columns: "Server_id:int,Host,Port:int,Master_id:int,Slave_UUID"},
	{form: statementForm(`SHOW ENGINE \w+ (?:STATUS|LOGS|MUTEX)`), columns: "Type,Name,Status"},
	{form: statementForm(`SHOW (?:BINARY|MASTER) LOGS`), err: func(string) error { return sqlerr.New(1381, "You are not using binary logging") }},
	{form: statementForm(`SHOW CREATE FUNCTION (.+)`), err: func(name string) error { return errNoRoutine("FUNCTION", name) }},
	{form: statementForm(`SHOW CREATE TRIGGER (.+)`), err: func(string) error { return sqlerr.New(1360, "Trigger does not exist") }},
	{form: statementForm(`SHOW CREATE EVENT (.+)`), err: func(name string) error { return sqlerr.New(1539, "Unknown event '%s'", name) }},
	{form: statementForm(`((?:CHECK|CHECKSUM) TABLES?) .+`), err: errNotSupported},
	{form: statementForm(`(HANDLER) .+`), err: errNotSupported},
	{form: statementForm(`(BACKUP|RESTORE|CLONE|RESET|PURGE|CHANGE) .+`), err: func(string) error { return errReadOnly() }},
}

func statementForm(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)^\s*` + strings.ReplaceAll(words, " ", `\s+`) + `\s*;?\s*$`)
}

func errNotSupported(words string) error {
	return sqlerr.New(sqlerr.NotSupportedYet, "This version of Tidemark doesn't yet support '%s'", strings.ToUpper(words))
}

// plainAnswer gives the columns of the empty list that a plain statement shows, or its error; nil, nil: it is none.
func plainAnswer(text string) ([]string, error) {
	for _, p := range plainStatements {
		m := p.form.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if p.err != nil {
			return nil, p.err(strings.Trim(m[len(m)-1], "`"))
		}
		return strings.Split(p.columns, ","), nil
	}
	return nil, nil
}

// commandVersionText is the version of MySQL up to which comments such as /*!80023 ... */ are statements.
const commandVersionText = "80400"

// uncomment makes what MySQL takes for a part of the statement of comments such as /*!50503 ... */, and blanks of those
// for later versions.
func uncomment(text string) string {
	if !strings.Contains(text, "/*!") {
		return text
	}
	b, inside := []byte(text), false
	for i := 0; i < len(b); i++ {
		switch rest := text[i:]; {
		case inside && strings.HasPrefix(rest, "*/"):
			blank(b[i : i+2])
			inside = false
			i++
		case strings.HasPrefix(rest, "/*!"):
			digits := len(rest[3:]) - len(strings.TrimLeft(rest[3:], "0123456789"))
			if version := rest[3 : 3+digits]; digits < 5 || digits == 5 && version <= commandVersionText || digits == 6 && version <= "0"+commandVersionText {
				blank(b[i : i+3+digits])
				inside = true
				i += 2 + digits
				continue
			}
			end := endOf(rest, "*/")
			blank(b[i : i+end])
			i += end - 1
		default:
			i += skipped(rest) - 1
		}
	}
	return string(b)
}

func blank(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}

// skipped is the length of the string, name or comment at the start of s, or 1.
func skipped(s string) int {
	switch {
	case s[0] == '\'' || s[0] == '"' || s[0] == '`':
		for i := 1; i < len(s); i++ {
			if s[i] == '\\' && s[0] != '`' {
				i++
			} else if s[i] == s[0] {
				return i + 1
			}
		}
		return len(s)
	case strings.HasPrefix(s, "/*"):
		return endOf(s, "*/")
	case s[0] == '#' || strings.HasPrefix(s, "-- "):
		return endOf(s, "\n")
	}
	return 1
}

// endOf is where the first mark in s ends; the end of s when there is none.
func endOf(s, mark string) int {
	if i := strings.Index(s, mark); i >= 0 {
		return i + len(mark)
	}
	return len(s)
}
