package ddl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/schema"
)

var rewrite = flag.Bool("rewrite", false, "write the stories' outcomes as they are now")

// world is a catalog that applies what Apply says.
type world struct {
	name               string
	charset, collation string
	follow             *regexp.Regexp
	tables             map[string]*worldTable
}

type worldTable struct {
	def  *schema.Table
	live bool
}

func newWorld() *world {
	return &world{name: "shop", charset: "utf8mb4", collation: "utf8mb4_0900_ai_ci", follow: regexp.MustCompile(""), tables: map[string]*worldTable{}}
}

func (w *world) Database() string          { return w.name }
func (w *world) Charset() (string, string) { return w.charset, w.collation }
func (w *world) Follows(table string) bool { return w.follow.MatchString(table) }

func (w *world) Table(name string) (*schema.Table, bool, bool) {
	t, ok := w.tables[name]
	if !ok {
		return nil, false, false
	}
	return t.def, t.live, true
}

func (w *world) Tables() []string {
	var out []string
	for n := range w.tables {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (w *world) apply(effects []Effect) {
	for _, e := range effects {
		switch e.Op {
		case Create, Alter:
			w.tables[e.Table] = &worldTable{e.Def, true}
		case Drop:
			delete(w.tables, e.Table)
		case Quarantine:
			if t := w.tables[e.Table]; t != nil {
				t.live = false
			} else {
				w.tables[e.Table] = &worldTable{e.Def, false}
			}
		case Charset:
			w.charset, w.collation = e.Charset, e.Collation
		case Truncate:
		}
	}
}

// story runs a file of statements. Lines:
//
//	# comment
//	@name value      sets the session or the server from here on
//	> statement      (further lines of it start with two spaces and a dot)
//	anything else    is outcome, and is written by the test
type story struct {
	w      *world
	st     Statement
	server Server
}

func newStory() *story {
	return &story{w: newWorld(), server: Server{Version: 90704},
		st: Statement{Database: "shop", ExplicitDefaults: true, Client: 255, ServerCollation: 255, UTF8MB4Collation: 255,
			Time: time.Date(2026, 11, 30, 12, 34, 56, 789012000, time.UTC)}}
}

func (s *story) set(t *testing.T, name, value string) {
	switch name {
	case "database":
		s.st.Database = value
	case "zone":
		s.st.TimeZone = value
	case "follow":
		s.w.follow = regexp.MustCompile(value)
	case "version":
		_, err := fmt.Sscan(value, &s.server.Version)
		require.NoError(t, err)
	case "mode":
		s.st.SQLMode = map[string]uint64{"": 0, "ANSI_QUOTES": modeANSIQuotes, "NO_BACKSLASH_ESCAPES": modeNoBackslashEscapes, "REAL_AS_FLOAT": modeRealAsFloat}[value]
	case "native_foreign_keys":
		s.server.NativeForeignKeys = value == "ON"
	case "explicit_defaults":
		s.st.ExplicitDefaults = value == "ON"
	case "fold":
		s.server.FoldNames, s.server.LowerNames = value != "0", value == "1"
	default:
		t.Fatalf("no setting %q", name)
	}
}

func (s *story) run(sql string) string {
	s.st.SQL = sql
	effects, err := Apply(s.st, s.server, s.w)
	if err != nil {
		return "stop: " + err.Error() + "\n"
	}
	s.w.apply(effects)
	var b strings.Builder
	for _, e := range effects {
		b.WriteString(printEffect(e))
	}
	return b.String()
}

func printEffect(e Effect) string {
	out := e.Op.String() + " " + e.Table
	switch e.Op {
	case Quarantine:
		out += ": " + e.Reason
	case Charset:
		out += e.Charset + " " + e.Collation
	}
	out += "\n"
	if e.Def != nil && len(e.Def.Columns) > 0 {
		out += printTable(e.Def)
	}
	return out
}

func printTable(t *schema.Table) string {
	var b strings.Builder
	for _, c := range t.Columns {
		fmt.Fprintf(&b, "  %d %s\n", c.ID, printColumn(&c))
	}
	for _, ix := range t.Indexes {
		fmt.Fprintf(&b, "  %s\n", printIndex(t, &ix))
	}
	fmt.Fprintf(&b, "  key %s, version %d, next %d, %s, %s %s%s\n", t.KeyName, t.Version, t.NextColumnID, t.Engine, t.Charset, t.Collation, quoted(" comment ", t.Comment))
	return b.String()
}

func quoted(label, s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%s%q", label, s)
}

func printColumn(c *schema.Column) string {
	out := fmt.Sprintf("%s %s", c.Name, c.ColumnType)
	if c.Collation != "" {
		out += " " + c.Charset + "/" + c.Collation
	}
	if !c.Nullable {
		out += " not null"
	}
	if c.Default != nil {
		out += fmt.Sprintf(" default %q", *c.Default)
	}
	for _, flag := range []struct {
		label string
		on    bool
	}{{" expr", c.DefaultExpr}, {" auto", c.AutoIncrement}, {" invisible", c.Invisible}, {" stored", c.Stored}} {
		if flag.on {
			out += flag.label
		}
	}
	out += quoted(" on update ", c.OnUpdate) + quoted(" as ", c.Generated) + quoted(" comment ", c.Comment)
	if c.Added && c.Initial == nil {
		out += " initial NULL"
	} else if c.Added {
		out += fmt.Sprintf(" initial %q", *c.Initial)
	}
	return out
}

func printIndex(t *schema.Table, ix *schema.Index) string {
	var parts []string
	for _, p := range ix.Parts {
		part := "(" + p.Expr + ")"
		if p.Column != 0 {
			part = t.Columns[t.ColumnByID(p.Column)].Name
		}
		if p.Prefix > 0 {
			part += fmt.Sprintf("(%d)", p.Prefix)
		}
		if p.Desc {
			part += " desc"
		}
		parts = append(parts, part)
	}
	kind := strings.ToLower(ix.Kind)
	if ix.Unique {
		kind = "unique"
	}
	out := fmt.Sprintf("%s %s(%s)", kind, ix.Name, strings.Join(parts, ", "))
	if ix.Invisible {
		out += " invisible"
	}
	return out + quoted(" comment ", ix.Comment)
}

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

// tell runs a story and gives its text with the outcomes as they are now.
func tell(t *testing.T, text string) string {
	s := newStory()
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case line == "" || line[0] == '#':
			out.WriteString(line + "\n")
		case line[0] == '@':
			name, value, _ := strings.Cut(line[1:], " ")
			s.set(t, name, value)
			out.WriteString(line + "\n")
		case strings.HasPrefix(line, "> "):
			sql := line[2:]
			out.WriteString(line + "\n")
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  . ") {
				i++
				sql += "\n" + lines[i][4:]
				out.WriteString(lines[i] + "\n")
			}
			out.WriteString(s.run(sql))
		}
	}
	return out.String()
}
