package replay

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay/ddl"
	"github.com/tidemarkdb/tidemark/schema"
)

// oracle is a source that keeps its rows in a map and logs what it does.
type oracle struct {
	rnd    *rand.Rand
	defs   []*schema.Table
	maps   []*binlog.TableMap
	rows   []map[int]string
	number int64
	xa     map[string][]func()
	locked map[[2]int]bool // keys that a prepared transaction holds
}

func newOracle(seed uint64) *oracle {
	o := &oracle{rnd: rand.New(rand.NewPCG(seed, 1)), xa: map[string][]func(){}, locked: map[[2]int]bool{}}
	for i := range 3 {
		def := &schema.Table{Database: "shop", Name: fmt.Sprintf("t%d", i), Version: 1, NextColumnID: 3, Key: []int{0}, KeyName: "PRIMARY", Columns: []schema.Column{
			{ID: 1, Name: "id", Type: schema.Int, ColumnType: "int"},
			{ID: 2, Name: "v", Type: schema.VarChar, Length: 20, Charset: "utf8mb4", Nullable: true, ColumnType: "varchar(20)"}}}
		o.defs, o.maps, o.rows = append(o.defs, def), append(o.maps, binlogtest.Table(def)), append(o.rows, map[int]string{})
	}
	return o
}

func (o *oracle) state() State {
	s := State{Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci", Tables: map[string]Table{}}
	for _, d := range o.defs {
		s.Tables[d.Name] = Table{Def: d, Live: true}
	}
	return s
}

// free gives keys of a table that no prepared transaction holds: some that exist, some that do not.
func (o *oracle) free(t int, exists bool, space int) []int {
	var out []int
	for k := range space {
		if _, ok := o.rows[t][k]; ok == exists && !o.locked[[2]int{t, k}] {
			out = append(out, k)
		}
	}
	o.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func (o *oracle) value() string { return fmt.Sprintf("v%d", o.rnd.IntN(1000)) }

const keySpace = 12

// event changes some rows of a table and gives the event that says so. undo is what takes it back.
func (o *oracle) event(t int) (e binlog.Event, undo func()) {
	before := maps.Clone(o.rows[t])
	undo = func() { o.rows[t] = before }
	there, gone := o.free(t, true, keySpace), o.free(t, false, keySpace)
	n := 1 + o.rnd.IntN(3)
	var rows []binlogtest.Row
	switch o.rnd.IntN(4) {
	case 0:
		for _, k := range gone[:min(n, len(gone))] {
			o.rows[t][k] = o.value()
			rows = append(rows, binlogtest.Row{k, o.rows[t][k]})
		}
		return binlogtest.Insert(o.maps[t], o.defs[t], rows...), undo
	case 1:
		for _, k := range there[:min(n, len(there))] {
			rows = append(rows, binlogtest.Row{k, o.rows[t][k]})
			delete(o.rows[t], k)
		}
		return binlogtest.Delete(o.maps[t], o.defs[t], rows...), undo
	case 2:
		for _, k := range there[:min(n, len(there))] {
			old := o.rows[t][k]
			o.rows[t][k] = o.value()
			rows = append(rows, binlogtest.Row{k, old}, binlogtest.Row{k, o.rows[t][k]})
		}
	default: // keys move
		for i, k := range there[:min(n, len(there), len(gone))] {
			old := o.rows[t][k]
			delete(o.rows[t], k)
			o.rows[t][gone[i]] = o.value()
			rows = append(rows, binlogtest.Row{k, old}, binlogtest.Row{gone[i], o.rows[t][gone[i]]})
		}
	}
	return binlogtest.Update(o.maps[t], o.defs[t], rows...), undo
}

// transaction does something on the source and gives its log.
func (o *oracle) transaction() *binlog.Transaction {
	if len(o.xa) > 0 && o.rnd.IntN(4) == 0 {
		return o.decide()
	}
	var events []binlog.Event
	var undo []func()
	touched := map[int]bool{}
	for range 1 + o.rnd.IntN(5) {
		t := o.rnd.IntN(len(o.defs))
		touched[t] = true
		e, u := o.event(t)
		events, undo = append(events, e), append(undo, u)
	}
	if len(o.xa) == 0 && o.rnd.IntN(8) == 0 {
		return o.prepare(events, undo, touched)
	}
	return o.log(binlog.Rows, events...)
}

// prepare makes an XA transaction of what was done. Its tables are locked as a whole until it is decided.
func (o *oracle) prepare(events []binlog.Event, undo []func(), touched map[int]bool) *binlog.Transaction {
	after := map[int]map[int]string{}
	for t := range touched {
		after[t] = maps.Clone(o.rows[t])
	}
	for _, u := range slices.Backward(undo) {
		u()
	}
	for t := range touched {
		for k := range keySpace {
			o.locked[[2]int{t, k}] = true
		}
	}
	tx := o.log(binlog.XAPrepare, events...)
	tx.XA = binlog.XID{FormatID: 1, GTRID: fmt.Sprint("x", o.number)}
	o.xa[tx.XA.GTRID] = []func(){func() {
		for t, rows := range after {
			o.rows[t] = rows
		}
	}}
	return tx
}

func (o *oracle) decide() *binlog.Transaction {
	for id, apply := range o.xa {
		kind := binlog.XARollback
		if o.rnd.IntN(3) > 0 {
			kind = binlog.XACommit
			apply[0]()
		}
		clear(o.locked)
		delete(o.xa, id)
		tx := o.log(kind)
		tx.XA = binlog.XID{FormatID: 1, GTRID: id}
		return tx
	}
	panic("nothing is prepared")
}

func (o *oracle) log(kind binlog.Kind, events ...binlog.Event) *binlog.Transaction {
	o.number++
	at := func(n int64) gtid.Position { return gtid.Position{File: "binlog.000001", Offset: uint64(n * 100)} }
	return binlogtest.Transaction(kind, gtid.GTID{Source: testUUID, Number: o.number}, at(o.number), at(o.number+1), events...)
}

func (o *oracle) print() string {
	var b strings.Builder
	for i, d := range o.defs {
		fmt.Fprintf(&b, "%s:", d.Name)
		for _, k := range slices.Sorted(maps.Keys(o.rows[i])) {
			fmt.Fprintf(&b, " (%d, %s)", k, o.rows[i][k])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Any batch size, budget and place of a restart or a failed commit gives the source's rows.
func TestOracle(t *testing.T) {
	for seed := range uint64(300) {
		o := newOracle(seed)
		m := newMemory()
		for _, d := range o.defs {
			m.tables[d.Name] = &memoryTable{def: d, rows: map[string]map[uint32]string{}}
		}
		m.state = o.state()
		broken := errors.New("the target fails")
		var failing atomic.Bool
		chance := rand.New(rand.NewPCG(seed, 2))
		m.fail = func(string) error { // a commit runs beside the rest, so that it needs chance of its own
			if failing.Load() && chance.IntN(10) == 0 {
				return broken
			}
			return nil
		}
		cfg := Config{Database: "shop", Server: ddl.Server{Version: 90704}, Budget: 1 + o.rnd.IntN(400)}
		r := New(cfg, m, m.state)
		var log []*binlog.Transaction // all of it: what a failed commit took back is needed again
		for range 60 {
			for range 1 + o.rnd.IntN(6) {
				log = append(log, o.transaction())
			}
			failing.Store(o.rnd.IntN(3) == 0)
			err := r.Start(t.Context(), log[r.State().Point.Set.Count():], nil)
			if err == nil && o.rnd.IntN(2) == 0 {
				continue // the next ones are decoded beside its commit
			}
			err = errors.Join(err, r.Wait())
			if err != nil {
				require.ErrorIs(t, err, broken, "seed %d", seed)
			}
			if err != nil || o.rnd.IntN(4) == 0 {
				r = New(cfg, m, m.state)
			}
			if err == nil {
				require.Equal(t, o.print(), m.print(), "seed %d", seed)
			}
		}
		_ = r.Wait() // the last one may fail, too
		require.False(t, m.open, "seed %d: a target was left open", seed)
	}
}
