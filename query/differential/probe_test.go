package differential

import (
	"os"
	"testing"
)

// TestProbe compares the statements of the file that TIDEMARK_PROBE names and prints both answers where they differ.
func TestProbe(t *testing.T) {
	file := os.Getenv("TIDEMARK_PROBE")
	if file == "" {
		t.Skip("TIDEMARK_PROBE names no file of statements")
	}
	b := open(t)
	for _, sql := range statements(t, file) {
		source := b.ask(sql)
		replica, construct := b.askReplica(sql)
		switch {
		case construct != "":
			t.Logf("refused: %s\n  %s", construct, sql)
		case difference(sql, source, replica) != "":
			t.Errorf("%s\n  %s\n  source %q %s\n  replica %q %s", difference(sql, source, replica), sql, source.rows, source.text, replica.rows, replica.text)
		}
	}
}
