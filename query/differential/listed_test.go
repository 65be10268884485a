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
	b.compareFiles(files...)
}

// TestListedInZone compares the statements over dates and times in a session whose time zone is not UTC.
func TestListedInZone(t *testing.T) { // TYPE-05
	b := open(t)
	b.inZone("+05:30", 5*3600+1800)
	b.compareFiles("testdata/queries_times.sql", "testdata/queries_basic.sql")
	b.inZone("-11:00", -11*3600)
	b.compareFiles("testdata/queries_times.sql")
}

func (b *both) compareFiles(files ...string) {
	answered, refused := 0, 0
	mayBeRefused := map[string]bool{}
	for _, sql := range statements(b.t, "testdata/refused.sql") {
		mayBeRefused[sql] = true
	}
	for _, file := range files {
		for _, sql := range statements(b.t, file) {
			source := b.ask(sql)
			replica, construct := b.askReplica(sql)
			if construct != "" {
				refused++
				if !mayBeRefused[sql] {
					b.t.Errorf("%s: refused: %s\n  %s", filepath.Base(file), construct, sql)
				}
				continue
			}
			answered++
			if d := difference(sql, source, replica); d != "" {
				b.t.Errorf("%s: %s\n  %s", filepath.Base(file), d, sql)
			}
		}
	}
	b.t.Logf("%d statements answered alike, %d refused by name", answered, refused)
}
