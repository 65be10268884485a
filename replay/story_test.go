package replay

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/binlog/binlogtest"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/replay/ddl"
	"github.com/tidemarkdb/tidemark/schema"
)

var rewrite = flag.Bool("rewrite", false, "write the stories' outcomes as they are now")

var testUUID = gtid.UUID{0: 0xaa, 15: 0x01}

// teller turns the lines of a story into transactions. It keeps the source's own definitions, as the source does: by
// its DDL.
type teller struct {
	t      *testing.T
	m      *memoryStore
	r      *Replayer
	defs   map[string]*schema.Table
	number int64
}

func newTeller(t *testing.T) *teller {
	m := newMemory()
	cfg := Config{Database: "shop", Server: ddl.Server{Version: 90704}, Quarantined: func(q Quarantine) {
		m.log = append(m.log, "told of "+q.Table+map[bool]string{true: ", to be copied again"}[q.Copy])
	}}
	return &teller{t: t, m: m, defs: map[string]*schema.Table{},
		r: New(cfg, m, State{Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci"})}
}

// transaction reads one line: kind, then what it does, separated by semicolons:
//
//	rows insert t (1, a) (2, b); update t (1, a) -> (3, a); delete t (2, b)
//	ddl ALTER TABLE t ADD x INT
//	prepare x1 insert t (5, e)         commit x1         rollback x1
//	rolledback insert t (1, a)         empty             progress
//
// In rows and rolledback, savepoint s and back s stand for SAVEPOINT and ROLLBACK TO; sql .. is any statement.
func (t *teller) transaction(line string) *binlog.Transaction {
	kind, rest, _ := strings.Cut(line, " ")
	t.number++
	g := gtid.GTID{Source: testUUID, Number: t.number}
	start := gtid.Position{File: "binlog.000001", Offset: uint64(t.number * 100)}
	end := gtid.Position{File: "binlog.000001", Offset: uint64(t.number*100 + 100)}
	var xa string
	if kind == "prepare" || kind == "commit" || kind == "rollback" {
		xa, rest, _ = strings.Cut(rest, " ")
	}
	kinds := map[string]binlog.Kind{"rows": binlog.Rows, "ddl": binlog.DDL, "prepare": binlog.XAPrepare, "commit": binlog.XACommit,
		"rollback": binlog.XARollback, "rolledback": binlog.RolledBack, "empty": binlog.Empty, "progress": binlog.Progress}
	if kind == "progress" {
		t.number--
		g = gtid.GTID{}
	}
	require.NotZero(t.t, kinds[kind], line)
	var events []binlog.Event
	if kind == "ddl" {
		events = []binlog.Event{t.ddl(rest)}
	} else if rest != "" {
		for part := range strings.SplitSeq(rest, "; ") {
			events = append(events, t.event(part))
		}
	}
	tx := binlogtest.Transaction(kinds[kind], g, start, end, events...)
	tx.XA = binlog.XID{FormatID: 1, GTRID: xa}
	return tx
}

// sourceWorld is the source's own catalog.
type sourceWorld struct{ *teller }

func (w sourceWorld) Database() string          { return "shop" }
func (w sourceWorld) Charset() (string, string) { return "utf8mb4", "utf8mb4_0900_ai_ci" }
func (w sourceWorld) Follows(string) bool       { return true }
func (w sourceWorld) Tables() []string          { return slices.Sorted(maps.Keys(w.defs)) }

func (w sourceWorld) Table(name string) (*schema.Table, bool, bool) {
	def, ok := w.defs[name]
	return def, true, ok
}

// ddl keeps the source's definitions up to date.
func (t *teller) ddl(sql string) *binlog.Statement {
	s := binlogtest.Statement("shop", sql, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	effects, _ := ddl.Apply(statementOf(s), ddl.Server{Version: 90704}, sourceWorld{t})
	for _, e := range effects {
		switch e.Op {
		case ddl.Create, ddl.Alter:
			t.defs[e.Table] = e.Def
		case ddl.Drop:
			delete(t.defs, e.Table)
		case ddl.Quarantine:
			if e.Def != nil && len(e.Def.Columns) > 0 {
				t.defs[e.Table] = e.Def
			}
		case ddl.Truncate, ddl.Charset:
		}
	}
	return s
}

var tuple = regexp.MustCompile(`\(([^)]*)\)`)

func (t *teller) event(line string) binlog.Event {
	action, rest, _ := strings.Cut(line, " ")
	switch action {
	case "sql":
		return t.ddl(rest)
	case "savepoint":
		return binlogtest.Statement("shop", "SAVEPOINT `"+rest+"`", time.Now())
	case "back":
		return binlogtest.Statement("shop", "ROLLBACK TO `"+rest+"`", time.Now())
	}
	table, values, _ := strings.Cut(rest, " ")
	def := t.defs[table]
	if def == nil { // the source has it, however it came
		def = &schema.Table{Database: "shop", Name: table, Version: 1, Columns: []schema.Column{{ID: 1, Name: "id", Type: schema.Int}, {ID: 2, Name: "v", Type: schema.VarChar, Length: 9, Charset: "utf8mb4", Nullable: true}}}
	}
	var rows []binlogtest.Row
	for _, m := range tuple.FindAllStringSubmatch(values, -1) {
		rows = append(rows, t.row(def, m[1]))
	}
	m := binlogtest.Table(def)
	switch action {
	case "insert":
		return binlogtest.Insert(m, def, rows...)
	case "delete":
		return binlogtest.Delete(m, def, rows...)
	case "update":
		return binlogtest.Update(m, def, rows...)
	}
	t.t.Fatalf("no action %q", action)
	return nil
}

func (t *teller) row(def *schema.Table, values string) binlogtest.Row {
	var row binlogtest.Row
	for i, v := range strings.Split(values, ", ") {
		require.Less(t.t, i, len(def.Columns), "%s has no column %d", def.Name, i+1)
		n, err := strconv.Atoi(v)
		switch {
		case v == "NULL":
			row = append(row, nil)
		case def.Columns[i].Type.IsInteger():
			require.NoError(t.t, err)
			row = append(row, n)
		default:
			row = append(row, v)
		}
	}
	require.Len(t.t, row, len(def.Columns))
	return row
}

// apply carries out a batch and says what happened.
func (t *teller) apply(lines []string) string {
	var txs []*binlog.Transaction
	for _, l := range lines {
		txs = append(txs, t.transaction(l))
	}
	t.m.log = nil
	err := t.r.Apply(t.t.Context(), txs)
	require.False(t.t, t.m.open, "a target was left open")
	require.Equal(t.t, t.m.state.Point, t.r.State().Point)
	var stop *StopError
	out := ""
	for _, l := range t.m.log {
		out += "  " + l + "\n"
	}
	if errors.As(err, &stop) {
		out += "  stop: " + stop.Error() + "\n"
		t.number = int64(t.r.State().Point.Set.Count())
	} else if err != nil {
		out += "  error: " + err.Error() + "\n"
	}
	return out + t.m.print()
}

// TestStories runs testdata/*.txt. A block of lines that start with "> " is one batch, a transaction a line; what follows
// it up to an empty line is its outcome.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := tell(t, string(want))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

// copied gives a table the rows and the window of a copy: its name, the transaction that begins where the window ends,
// the one that begins where its events count (0: all do) or the word bracket or seen and the last one that all reads saw,
// then rows.
func (t *teller) copied(line string) {
	head, values, _ := strings.Cut(line, " (")
	words := strings.Fields(head)
	if values != "" {
		t.copyRows(words[0], "insert "+words[0]+" ("+values)
	}
	at := func(number string) (p gtid.Position) {
		n, err := strconv.Atoi(number)
		require.NoError(t.t, err)
		if n > 0 {
			p = gtid.Position{File: "binlog.000001", Offset: uint64(n * 100)}
		}
		return p
	}
	w := &Window{To: at(words[1])}
	switch words[2] {
	case "bracket":
		w.Bracket = true
	case "seen":
		set, err := gtid.ParseSet(fmt.Sprintf("%s:1-%s", testUUID, words[3]))
		require.NoError(t.t, err)
		w.From = gtid.Point{Set: set, Position: at("99")} // the position does not count
	default:
		w.From.Position = at(words[2])
	}
	state := t.m.state
	state.Tables = maps.Clone(state.Tables)
	table := state.Tables[words[0]]
	table.Window = w
	state.Tables[words[0]], t.m.tables[words[0]].window = table, w
	t.m.state = state
	t.r = New(t.r.cfg, t.m, state)
}

func (t *teller) copyRows(table, insert string) {
	f := newFold(t.defs[table])
	_, err := f.add(t.event(insert).(*binlog.RowsEvent))
	require.NoError(t.t, err)
	changes, _, err := f.changes()
	require.NoError(t.t, err)
	rows := map[string]map[uint32]string{}
	for i := range changes.Puts.Rows() {
		rows[string(changes.Puts.Keys.At(i))] = rowOf(changes.Puts, i)
	}
	t.m.tables[table].rows = rows
}

func tell(t *testing.T, text string) string {
	s := newTeller(t)
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		switch line := lines[i]; {
		case line == "" || line[0] == '#':
			out.WriteString(line + "\n")
		case line == "restart":
			out.WriteString(line + "\n")
			s.r = New(s.r.cfg, s.m, s.m.state)
		case line == "xa unknown", line == "xa known":
			out.WriteString(line + "\n")
			s.r.cfg.XAUnknown = line == "xa unknown"
		case strings.HasPrefix(line, "copied "):
			out.WriteString(line + "\n")
			s.copied(line[7:])
		case strings.HasPrefix(line, "budget "):
			out.WriteString(line + "\n")
			_, err := fmt.Sscan(line[7:], &s.r.cfg.Budget)
			require.NoError(t, err)
		case strings.HasPrefix(line, "> "):
			var batch []string
			for ; i < len(lines) && strings.HasPrefix(lines[i], "> "); i++ {
				batch = append(batch, lines[i][2:])
				out.WriteString(lines[i] + "\n")
			}
			i--
			out.WriteString(s.apply(batch))
		}
	}
	return out.String()
}
