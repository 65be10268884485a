package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

// memoryStore is a store in memory that does what storage promises, without any cleverness.
type memoryStore struct {
	tables   map[string]*memoryTable
	prepared map[string][]byte
	state    State
	log      []string // what the targets were told
	open     bool
	number   int // of the last row of a table without a key
	fail     func(step string) error
}

type memoryTable struct {
	def    *schema.Table
	rows   map[string]map[uint32]string // by key, then column id
	window *Window
	reason string
	at     gtid.Point
}

func newMemory() *memoryStore {
	return &memoryStore{tables: map[string]*memoryTable{}, prepared: map[string][]byte{}}
}

func (m *memoryStore) Begin(context.Context) (Target, error) {
	if m.open {
		panic("two targets at a time")
	}
	m.open = true
	t := &memoryTarget{m: m, old: m.tables, tables: map[string]*memoryTable{}, prepared: maps.Clone(m.prepared)}
	for name, table := range m.tables {
		t.tables[name] = table.clone()
	}
	return t, nil
}

func (m *memoryStore) Prepared(xid string) ([]byte, bool, error) {
	b, ok := m.prepared[xid]
	return b, ok, nil
}

func (t *memoryTable) clone() *memoryTable {
	n := *t
	n.rows = map[string]map[uint32]string{}
	for k, row := range t.rows {
		n.rows[k] = maps.Clone(row)
	}
	return &n
}

// memoryTarget is one commit of a memoryStore.
type memoryTarget struct {
	m        *memoryStore
	old      map[string]*memoryTable
	tables   map[string]*memoryTable
	prepared map[string][]byte
	log      []string
	done     bool
}

func (t *memoryTarget) note(format string, args ...any) error {
	step := fmt.Sprintf(format, args...)
	t.log = append(t.log, step)
	if t.m.fail != nil {
		return t.m.fail(step)
	}
	return nil
}

func (t *memoryTarget) Apply(_ context.Context, table string, c *storage.Changes) error {
	mt := t.tables[table]
	if mt == nil || mt.reason != "" {
		return fmt.Errorf("table %s takes no rows", table)
	}
	expected := func(list []storage.Expect, i int) storage.Expect {
		if c.Tolerant || list == nil {
			return storage.Any
		}
		return list[i]
	}
	if c.Tolerant != (mt.window != nil) {
		return fmt.Errorf("table %s: tolerance is %v", table, c.Tolerant)
	}
	if mt.def.Multiset() {
		return t.applyBag(mt, c)
	}
	check := func(key []byte, e storage.Expect) error {
		_, exists := mt.rows[string(key)]
		if e == storage.MustExist && !exists || e == storage.MustNotExist && exists {
			return &storage.DivergenceError{Table: mt.def.FullName(), Key: key, Expected: e}
		}
		return nil
	}
	seen := map[string]bool{}
	once := func(key []byte) {
		if seen[string(key)] {
			panic("a key came twice")
		}
		seen[string(key)] = true
	}
	var errs []error
	for i := range c.Deletes.Len() {
		once(c.Deletes.At(i))
		errs = append(errs, check(c.Deletes.At(i), expected(c.DeleteExpect, i)))
	}
	for i := range c.Checks.Len() {
		once(c.Checks.At(i))
		errs = append(errs, check(c.Checks.At(i), expected(c.CheckExpect, i)))
	}
	puts := 0
	if c.Puts != nil {
		puts = c.Puts.Rows()
		if c.Puts.Table.Version != mt.def.Version {
			return fmt.Errorf("rows of version %d for version %d", c.Puts.Table.Version, mt.def.Version)
		}
	}
	for i := range puts {
		once(c.Puts.Keys.At(i))
		errs = append(errs, check(c.Puts.Keys.At(i), expected(c.PutExpect, i)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range c.Deletes.Len() {
		delete(mt.rows, string(c.Deletes.At(i)))
	}
	for i := range puts {
		mt.rows[string(c.Puts.Keys.At(i))] = rowOf(c.Puts, i)
	}
	how := "apply"
	if c.Tolerant {
		how = "tolerantly apply"
	}
	return t.note("%s %s: %d puts, %d deletes, %d checks", how, table, puts, c.Deletes.Len(), c.Checks.Len())
}

// Read gives the rows one by one, so that each is a piece of its own.
func (t *memoryTarget) Read(_ context.Context, table string, keys *column.Keys, fn func(*column.Batch) error) error {
	mt := t.tables[table]
	var pieces []*column.Batch
	for i := range keys.Len() {
		cells, ok := mt.rows[string(keys.At(i))]
		if !ok {
			continue
		}
		b := column.NewBuilder(memory.DefaultAllocator, mt.def)
		for c := range mt.def.Columns {
			text, ok := cells[mt.def.Columns[c].ID]
			if !ok {
				b.Column(c).Null()
			} else if err := column.AppendText(b.Column(c), &mt.def.Columns[c], text); err != nil {
				return err
			}
		}
		b.EndRow()
		batch, err := b.Finish()
		if err != nil {
			return err
		}
		pieces = append(pieces, batch)
	}
	for _, b := range pieces {
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

func rowOf(b *column.Batch, row int) map[uint32]string {
	out := map[uint32]string{}
	for i := range b.Table.Columns {
		a := b.Record.Column(i)
		if !a.IsNull(row) {
			out[b.Table.Columns[i].ID] = string(column.Print(nil, &b.Table.Columns[i], a, row, time.UTC))
		}
		if b.Exact != nil && !b.Exact.IsNull(row) {
			if text, ok := column.FindExact(b.Exact.Value(row), b.Table.Columns[i].ID); ok {
				out[b.Table.Columns[i].ID] = string(text)
			}
		}
	}
	return out
}

func (t *memoryTarget) Create(def *schema.Table) error {
	if t.tables[def.Name] != nil {
		return fmt.Errorf("table %s exists", def.Name)
	}
	t.tables[def.Name] = &memoryTable{def: def, rows: map[string]map[uint32]string{}}
	return t.note("create %s", def.Name)
}

func (t *memoryTarget) Drop(table string) error {
	if t.tables[table] == nil {
		return fmt.Errorf("table %s does not exist", table)
	}
	delete(t.tables, table)
	return t.note("drop %s", table)
}

func (t *memoryTarget) Truncate(table string) error {
	clear(t.tables[table].rows)
	return t.note("truncate %s", table)
}

func (t *memoryTarget) Alter(def *schema.Table) error {
	mt := t.tables[def.Name]
	for i := range def.Columns {
		c := &def.Columns[i]
		if mt.def.ColumnByID(c.ID) >= 0 || c.Initial == nil {
			continue
		}
		for _, row := range mt.rows {
			row[c.ID] = *c.Initial
		}
	}
	mt.def = def
	return t.note("alter %s to version %d", def.Name, def.Version)
}

func (t *memoryTarget) SetWindow(table string, w *Window) error {
	t.tables[table].window = w
	if w == nil {
		return t.note("the copy of %s is passed", table)
	}
	return t.note("the copy of %s ends at %s", table, w.To)
}

func (t *memoryTarget) Quarantine(table, reason string, at gtid.Point) error {
	old := t.old[table]
	if old == nil {
		return fmt.Errorf("table %s was made in this commit", table)
	}
	t.tables[table] = old.clone()
	t.tables[table].reason, t.tables[table].at = reason, at
	return t.note("quarantine %s at %s: %s", table, short(at), reason)
}

func (t *memoryTarget) CreateQuarantined(def *schema.Table, reason string, at gtid.Point) error {
	t.tables[def.Name] = &memoryTable{def: def, reason: reason, at: at}
	return t.note("create %s quarantined at %s: %s", def.Name, short(at), reason)
}

func (t *memoryTarget) PutPrepared(xid string, events []byte) {
	t.prepared[xid] = events
	_ = t.note("prepared %s", xid)
}

func (t *memoryTarget) DeletePrepared(xid string) {
	delete(t.prepared, xid)
	_ = t.note("decided %s", xid)
}

func (t *memoryTarget) Commit(_ context.Context, s State) error {
	if err := t.note("commit %s, %d rows", short(s.Point), s.Rows); err != nil {
		return err
	}
	t.m.tables, t.m.prepared, t.m.state, t.m.open, t.done = t.tables, t.prepared, s, false, true
	t.m.log = append(t.m.log, t.log...)
	return nil
}

func (t *memoryTarget) Abort() error {
	if !t.done {
		t.done, t.m.open = true, false
		t.m.log = append(t.m.log, fmt.Sprintf("(%d steps taken back)", len(t.log)))
	}
	return nil
}

// short prints the transaction numbers of a point.
func short(p gtid.Point) string {
	_, numbers, _ := strings.Cut(p.Set.String(), ":")
	if numbers == "" {
		numbers = "0"
	}
	return numbers
}

// print gives the rows of the tables.
func (m *memoryStore) print() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.tables)) {
		t := m.tables[name]
		fmt.Fprintf(&b, "%s:", name)
		for _, k := range slices.Sorted(maps.Keys(t.rows)) {
			fmt.Fprintf(&b, " (%s)", printRow(t.def, t.rows[k]))
		}
		if t.window != nil {
			b.WriteString(" (converging)")
		}
		if t.reason != "" {
			b.WriteString(" quarantined at " + short(t.at))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func printRow(def *schema.Table, row map[uint32]string) string {
	var out []string
	for i := range def.Columns {
		v, ok := row[def.Columns[i].ID]
		if !ok {
			v = "NULL"
		}
		out = append(out, v)
	}
	return strings.Join(out, ", ")
}
