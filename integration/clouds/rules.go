package clouds

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

func statement(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)` + pattern)
}

// Refuse answers statements with an error.
func Refuse(pattern string, e Error) Rule { return Rule{Statement: statement(pattern), Error: &e} }

// RefuseDump answers requests for the binlog with an error.
func RefuseDump(e Error) Rule { return Rule{Error: &e} }

// Instead runs another statement.
func Instead(pattern, other string) Rule {
	return Rule{Statement: statement(pattern), Run: func(string) string { return other }}
}

// Variables sets server variables in SHOW GLOBAL VARIABLES, also ones that the server does not have. Those that are in
// hidden are not shown. A statement that picks variables gets those that it names.
func Variables(set map[string]string, hidden ...string) Rule {
	return Rule{Statement: statement(`^\s*SHOW\s+(GLOBAL\s+)?VARIABLES`), Edit: func(asked string, r *Rows) {
		left := maps.Clone(set)
		var kept [][]*string
		for _, row := range r.Cells {
			name := strings.ToLower(*row[0])
			if slices.Contains(hidden, name) {
				continue
			}
			if value, ok := left[name]; ok {
				row[1] = &value
				delete(left, name)
			}
			kept = append(kept, row)
		}
		asked = strings.ToLower(asked)
		picks := strings.Contains(asked, "like") || strings.Contains(asked, "where")
		for _, name := range slices.Sorted(maps.Keys(left)) {
			if picks && !strings.Contains(asked, "'"+name+"'") {
				continue
			}
			value := left[name]
			kept = append(kept, []*string{&name, &value})
		}
		r.Cells = kept
	}}
}

const globalLock = `^\s*FLUSH\s+(LOCAL\s+|NO_WRITE_TO_BINLOG\s+)?TABLES\s+WITH\s+READ\s+LOCK`
