package ddl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzApply: whatever the text, no panic, and an error only of the kind that stops the database.
func FuzzApply(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if sql, ok := strings.CutPrefix(line, "> "); ok {
				f.Add(sql, uint64(0), uint16(255))
			}
		}
	}
	for _, sql := range []string{"'", "/*", "/*!", "/*!80000 ", "ALTER TABLE t ADD (", "CREATE TABLE t (a int default", "x'", "@`", "DROP TABLE .", "CREATE"} {
		f.Add(sql, uint64(modeANSIQuotes|modeNoBackslashEscapes), uint16(28))
	}
	f.Fuzz(func(t *testing.T, sql string, mode uint64, client uint16) {
		s := newStory()
		s.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), KEY ib (b))")
		s.st.SQLMode, s.st.Client, s.st.SQL = mode, client, sql
		effects, err := Apply(s.st, s.server, s.w)
		var unknown *UnknownError
		if err != nil && !errors.As(err, &unknown) {
			t.Fatal(err)
		}
		for _, e := range effects {
			if (e.Op == Create || e.Op == Alter) && e.Def == nil {
				t.Fatalf("%s without a definition", e.Op)
			}
		}
	})
}
