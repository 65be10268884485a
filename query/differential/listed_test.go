package differential

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListed compares the statements of testdata/queries_*.sql.
func TestListed(t *testing.T) {
	b := open(t)
	files, err := filepath.Glob("testdata/queries_*.sql")
	require.NoError(t, err)
	answered, refused := 0, 0
	for _, file := range files {
		for _, sql := range statements(t, file) {
			source := b.ask(sql)
			replica, construct := b.askReplica(sql)
			if construct != "" {
				refused++
				t.Logf("%s: refused: %s\n  %s", filepath.Base(file), construct, sql)
				continue
			}
			answered++
			if d := difference(sql, source, replica); d != "" {
				t.Errorf("%s: %s\n  %s", filepath.Base(file), d, sql)
			}
		}
	}
	t.Logf("%d statements answered alike, %d refused by name", answered, refused)
}
