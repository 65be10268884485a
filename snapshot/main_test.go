package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/wire"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

// keeper is a sink that keeps everything, and checks what a sink may assume.
type keeper struct {
	mu      sync.Mutex
	cut     Cut
	begun   int
	open    int
	writers int
	batches map[string][]*column.Batch
	notes   map[string][][]byte
	onDone  func(table string, rows int) error // called without the lock
	onAdd   func(table string)                 // called without the lock
	failAdd error
}

// null stands for NULL among printed values.
const null = "<NULL>"

func newKeeper() *keeper {
	return &keeper{batches: map[string][]*column.Batch{}, notes: map[string][][]byte{}}
}

// resume is what is left for another keeper to go on with.
func (m *keeper) resume() (*keeper, *Resume) {
	next := newKeeper()
	next.batches, next.notes = m.batches, m.notes
	return next, &Resume{Cut: m.cut, Chunks: maps.Clone(m.notes)}
}

func (m *keeper) Begin(c Cut) error {
	m.cut = c
	m.begun++
	return nil
}

func (m *keeper) Open(t *schema.Table) (Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun != 1 {
		return nil, errors.New("rows before the cut")
	}
	m.open++
	m.writers++
	return &keeperWriter{m: m, t: t}, nil
}

type keeperWriter struct {
	m       *keeper
	t       *schema.Table
	pending []*column.Batch
}

func (w *keeperWriter) Add(b *column.Batch) error {
	if w.m.onAdd != nil {
		w.m.onAdd(w.t.Name)
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if b.Rows() == 0 || b.Table != w.t || b.Keys.Len() != b.Rows() {
		return fmt.Errorf("a bad batch of %s", w.t.Name)
	}
	w.pending = append(w.pending, b)
	return w.m.failAdd
}

func (w *keeperWriter) Done(note []byte) error {
	rows := 0
	for _, b := range w.pending {
		rows += b.Rows()
	}
	if w.m.onDone != nil {
		if err := w.m.onDone(w.t.Name, rows); err != nil {
			return err
		}
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.batches[w.t.Name] = append(w.m.batches[w.t.Name], w.pending...)
	w.m.notes[w.t.Name] = append(w.m.notes[w.t.Name], slices.Clone(note))
	w.pending = nil
	if len(note) > 16<<10 {
		return errors.New("a long note")
	}
	return nil
}

func (w *keeperWriter) Close() error {
	w.done()
	if len(w.pending) > 0 {
		return errors.New("rows without a note")
	}
	return nil
}

func (w *keeperWriter) Abort() { w.done() }

func (w *keeperWriter) done() {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.open--
}

// rows gives a table's rows printed, in the order of their keys.
func (m *keeper) rows(t *testing.T, table string, loc *time.Location) [][]string {
	t.Helper()
	var batches []*column.Batch
	batches = append(batches, m.batches[table]...)
	if len(batches) == 0 {
		return nil
	}
	all, err := column.Concat(batches)
	if err != nil {
		t.Fatal(err)
	}
	all = all.SortByKey()
	out := make([][]string, all.Rows())
	for i := range out {
		if i > 0 && bytes.Compare(all.Keys.At(i-1), all.Keys.At(i)) >= 0 {
			t.Fatalf("table %s: a key came twice", table)
		}
		out[i] = printRow(all, i, loc)
	}
	return out
}

func printRow(b *column.Batch, i int, loc *time.Location) []string {
	row := make([]string, b.Record.NumCols())
	for j := range row {
		c := &b.Table.Columns[j]
		if b.Exact != nil && !b.Exact.IsNull(i) {
			if text, ok := column.FindExact(b.Exact.Value(i), c.ID); ok {
				row[j] = string(text)
				continue
			}
		}
		if b.Record.Column(j).IsNull(i) {
			row[j] = null
			continue
		}
		row[j] = string(column.Print(nil, c, b.Record.Column(j), i, loc))
	}
	return row
}

// shared gives the server that the tests have together, with empty databases of these names.
func shared(t *testing.T, databases ...string) *mysqltest.Server {
	t.Helper()
	s := mysqltest.Shared(t)
	for _, db := range databases {
		s.Exec(t, "", "DROP DATABASE IF EXISTS "+db, "CREATE DATABASE "+db)
	}
	return s
}

func sourceConfig(l mysqltest.Login) wire.Config {
	return wire.Config{Host: l.Host, Port: l.Port, User: l.User, Password: l.Password}
}

func config(t *testing.T, s *mysqltest.Server, db string) Config {
	t.Helper()
	_, plan, err := compat.Check(t.Context(), sourceConfig(s.Login), compat.Wishes{Database: db})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Source: sourceConfig(s.Login), Plan: plan, LockPatience: 2 * time.Minute}
}

// run copies a database and checks what always holds.
func run(t *testing.T, cfg Config, m *keeper) (*Result, error) {
	t.Helper()
	r, err := Run(t.Context(), cfg, m)
	if m.open != 0 {
		t.Errorf("%d writers are left open", m.open)
	}
	if err != nil {
		return nil, err
	}
	total, byTables := int64(0), int64(0)
	for _, table := range r.Tables {
		if table.Changed != "" && cfg.Resume != nil {
			continue // what was taken over of it does not count
		}
		byTables += table.Rows
		for _, b := range m.batches[table.Name] {
			total += int64(b.Rows())
		}
	}
	if cfg.Resume == nil && total != r.Rows || total != byTables || !r.Point.Equal(m.cut.Point) || r.Point.IsZero() || r.Exact != (r.LockHeld > 0) {
		t.Errorf("%+v; the sink got %d rows", r, total)
	}
	return r, nil
}

func mustRun(t *testing.T, cfg Config, m *keeper) *Result {
	t.Helper()
	r, err := run(t, cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sourceRows gives a table as MySQL's own client prints it.
func sourceRows(t *testing.T, s *mysqltest.Server, db, table, columns, order string) [][]string {
	t.Helper()
	query := "SELECT " + columns + " FROM " + wire.Identifier(table) + " ORDER BY " + order
	out, err := s.Client(t.Context(), strings.NewReader(query), "--xml", "--default-character-set=utf8mb4", "--max-allowed-packet=256M", db)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, row := range bytes.Split(out, []byte("  <row>\n"))[1:] {
		rows = append(rows, xmlRow(t, row))
	}
	return rows
}

var unxml = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&")

func xmlRow(t *testing.T, row []byte) (values []string) {
	t.Helper()
	for {
		_, rest, more := bytes.Cut(row, []byte("\t<field name=\""))
		if !more {
			return values
		}
		_, rest, _ = bytes.Cut(rest, []byte(`"`))
		if bytes.HasPrefix(rest, []byte(` xsi:nil="true" />`)) {
			values, row = append(values, null), rest
			continue
		}
		value, rest, ok := bytes.Cut(rest[1:], []byte("</field>"))
		if !ok {
			t.Fatal("the client's XML is not understood")
		}
		values, row = append(values, unxml.Replace(string(value))), rest
	}
}

func sameRows(t *testing.T, what string, got, want [][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, the source has %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if slices.Equal(got[i], want[i]) {
			continue
		}
		for j := range got[i] {
			if got[i][j] != want[i][j] {
				t.Errorf("%s: row %d, column %d: %q, the source prints %q", what, i, j, got[i][j], want[i][j])
			}
		}
		return
	}
}
