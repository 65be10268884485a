package replay

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/replay/ddl"
)

// overlapping gives a replayer of one empty table, and transactions that each insert the row of their number.
func overlapping(m *memoryStore) (*Replayer, func(n int) []*binlog.Transaction) {
	def := wide()
	m.tables[def.Name] = &memoryTable{def: def, rows: map[string]map[uint32]string{}}
	m.state = State{Tables: map[string]Table{def.Name: {Def: def, Live: true}}}
	r := New(Config{Database: "shop", Server: ddl.Server{Version: 90704}}, m, m.state)
	of := binlogtest.Table(def)
	return r, func(n int) []*binlog.Transaction {
		return []*binlog.Transaction{numbered(n, binlogtest.Insert(of, def, wideRow(n)))}
	}
}

// Start returns while its commit runs, and tells when it has ended.
func TestStartLeavesTheCommitRunning(t *testing.T) {
	m := newMemory()
	r, tx := overlapping(m)
	goOn, told := make(chan struct{}), make(chan State, 1)
	m.fail = func(step string) error {
		if strings.HasPrefix(step, "commit") {
			<-goOn
		}
		return nil
	}
	require.NoError(t, r.Start(t.Context(), tx(0), func(s State) { told <- s }))
	require.Empty(t, told)
	require.Equal(t, "1", short(r.State().Point))
	close(goOn)
	require.NoError(t, r.Wait())
	require.Equal(t, "1", short((<-told).Point))
	require.Equal(t, "1", short(m.state.Point))
}

// A commit that fails behind Start's back is the error of whoever comes next, nothing of the next one is written, and
// all of it can be done again.
func TestFailedCommitStopsTheNext(t *testing.T) {
	for name, next := range map[string]func(r *Replayer, txs []*binlog.Transaction) error{
		"Start": func(r *Replayer, txs []*binlog.Transaction) error {
			return r.Start(t.Context(), txs, func(State) { t.Error("told of a commit that was not to be") })
		},
		"Wait": func(r *Replayer, _ []*binlog.Transaction) error { return r.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			r, tx := overlapping(m)
			broken := errors.New("the disk is full")
			m.fail = func(step string) error {
				if strings.HasPrefix(step, "commit") {
					return broken
				}
				return nil
			}
			require.NoError(t, r.Start(t.Context(), tx(0), func(State) { t.Error("told of a commit that failed") }))
			require.ErrorIs(t, next(r, tx(1)), broken)
			require.Equal(t, "0", short(r.State().Point))
			require.Equal(t, "0", short(m.state.Point))

			m.fail = nil
			require.NoError(t, r.Apply(t.Context(), append(tx(0), tx(1)...)))
			require.Equal(t, "1-2", short(m.state.Point))
		})
	}
}
