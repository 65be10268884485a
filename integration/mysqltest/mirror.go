package mysqltest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mirror is where this machine has its own Debian packages from.
type mirror struct {
	uri      string
	signedBy string // as in a .sources file; "" for apt's default keys
}

// stanza is the text of a .sources file for another suite of the mirror.
func (m mirror) stanza(suite string) string {
	text := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n", m.uri, suite)
	if m.signedBy != "" {
		text += "Signed-By: " + m.signedBy + "\n"
	}
	return text
}

// debianMirror reads the machine's apt configuration.
func debianMirror() (mirror, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return mirror{}, err
	}
	fields := shellFields(string(release))
	if fields["ID"] != "debian" {
		return mirror{}, fmt.Errorf("this is %s, not Debian: %w", fields["ID"], errAbsent)
	}
	suites := []string{fields["VERSION_CODENAME"], "stable", "testing", "unstable", "sid"}
	files, err := filepath.Glob("/etc/apt/sources.list.d/*")
	if err != nil {
		return mirror{}, err
	}
	for _, file := range append(files, "/etc/apt/sources.list") {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // sources.list is often missing
		}
		if m, ok := findMirror(filepath.Ext(file), string(text), suites); ok {
			return m, nil
		}
	}
	return mirror{}, errors.New("no Debian mirror in /etc/apt/sources.list.d")
}

// findMirror looks for the archive that one of the suites comes from.
func findMirror(ext, text string, suites []string) (mirror, bool) {
	switch ext {
	case ".sources":
		return findInStanzas(text, suites)
	case ".list":
		return findInLines(text, suites)
	}
	return mirror{}, false
}

func findInStanzas(text string, suites []string) (mirror, bool) {
	for _, stanza := range regexp.MustCompile(`\n\s*\n`).Split(text, -1) {
		f := stanzaFields(stanza)
		if strings.EqualFold(f["enabled"], "no") || !slices.Contains(strings.Fields(f["types"]), "deb") {
			continue
		}
		uris := strings.Fields(f["uris"])
		if len(uris) == 0 || !slices.ContainsFunc(strings.Fields(f["suites"]), func(s string) bool { return slices.Contains(suites, s) }) {
			continue
		}
		return mirror{uri: uris[0], signedBy: f["signed-by"]}, true
	}
	return mirror{}, false
}

// stanzaFields reads "Name: value" lines; lines that begin with white space go on with the value.
func stanzaFields(stanza string) map[string]string {
	fields := map[string]string{}
	name := ""
	for line := range strings.Lines(stanza) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			fields[name] += "\n" + line
		default:
			key, value, _ := strings.Cut(line, ":")
			name = strings.ToLower(strings.TrimSpace(key))
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

var sourceLine = regexp.MustCompile(`^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s`)

func findInLines(text string, suites []string) (mirror, bool) {
	for line := range strings.Lines(text) {
		m := sourceLine.FindStringSubmatch(line)
		if m == nil || !slices.Contains(suites, m[3]) {
			continue
		}
		found := mirror{uri: m[2]}
		for _, option := range strings.Fields(m[1]) {
			if key, value, _ := strings.Cut(option, "="); key == "signed-by" {
				found.signedBy = value
			}
		}
		return found, true
	}
	return mirror{}, false
}

// shellFields reads NAME=value and NAME="value" lines.
func shellFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			fields[name] = strings.Trim(value, `"'`)
		}
	}
	return fields
}
