package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/tidemarkdb/tidemark/"

// layers lists our packages from the bottom up. A package may import only what stands above it in this list; a
// subpackage without an entry of its own belongs to the nearest one above it.
var layers = []string{
	"gtid",
	"uniquekey",
	"schema",
	"column",
	"wire",
	"binlog",
	"relay",
	"compat",
	"snapshot",
	"verify",
	"storage/part",
	"storage",
	"replay",
	"replica",
	"query/sqlerr",
	"query/field",
	"query/result",
	"query/number",
	"query/collate",
	"query/function",
	"query/translate",
	"query/engine",
	"query",
	"server",
	"cmd",
	"integration/mysqltest",
	"integration/shop",
	"integration",
	"bench",
}

// bans lists imports that the order alone would allow, or that belong to one package. from and not are packages
// (subpackages included); a ban without from holds for all packages but those in not. Tests are free, except where a
// package must stay pure.
var bans = []struct {
	from, not []string
	imports   []string
	why       string
}{
	{
		from:    []string{"gtid"},
		imports: []string{"github.com/", "golang.org/", "net", "os", "database/sql"},
		why:     "positions are pure values: the standard library without I/O is enough",
	},
	{
		from:    []string{"uniquekey"},
		imports: []string{"net", "os", "database/sql", module + "gtid", "github.com/apache/", "github.com/cockroachdb/"},
		why:     "key bytes are a pure core, whatever stores them",
	},
	{
		from:    []string{"schema", "column"},
		imports: []string{"net", "os", "database/sql", module + "gtid"},
		why:     "values and their types do no I/O",
	},
	{
		from:    []string{"storage"},
		imports: []string{module + "wire", module + "binlog", module + "compat", module + "snapshot", module + "verify", "github.com/go-mysql-org/", "github.com/go-sql-driver/", "database/sql", "github.com/pingcap/"},
		why:     "the store knows nothing of MySQL's protocol or SQL",
	},
	{
		from:    []string{"binlog"},
		imports: []string{module + "relay", module + "compat", module + "snapshot", module + "storage", "database/sql"},
		why:     "the stream delivers transactions and knows no one who takes them",
	},
	{
		from:    []string{"relay"},
		imports: []string{module + "compat", module + "snapshot", module + "storage", module + "wire", "database/sql", "github.com/go-mysql-org/"},
		why:     "the relay keeps the log and knows no one who applies it; binlog alone speaks to the source",
	},
	{
		from:    []string{"snapshot"},
		imports: []string{module + "binlog"},
		why:     "a copy ends at a position; what follows the position is replica's to start",
	},
	{
		from:    []string{"verify"},
		imports: []string{module + "binlog", module + "storage"},
		why:     "a comparison takes any copy through its own small interface",
	},
	{
		from:    []string{"replay"},
		imports: []string{module + "snapshot", module + "compat", "database/sql", "net"},
		why:     "folding is a pure core: it takes transactions and yields a commit",
	},
	{
		from:    []string{"query"},
		imports: []string{module + "binlog", module + "compat", module + "snapshot", module + "replay", module + "replica"},
		why:     "queries read pinned versions of the store and nothing else",
	},
	{
		from:    []string{"query/translate", "query/collate", "query/function"},
		imports: []string{"github.com/duckdb/", module + "storage"},
		why:     "translation is text in, text out; query/engine alone runs it",
	},
	{
		not:     []string{"binlog"},
		imports: []string{"github.com/go-mysql-org/go-mysql/replication"},
		why:     "binlog wraps the replication library once, with its flags fixed in one place",
	},
	{
		not:     []string{"server", "cmd", "integration", "bench"},
		imports: []string{"github.com/go-mysql-org/go-mysql/server"},
		why:     "server alone speaks MySQL's protocol to clients",
	},
	{
		not:     []string{"storage"},
		imports: []string{"github.com/cockroachdb/pebble"},
		why:     "how the store keeps its records is its own affair",
	},
	{
		not:     []string{"query/engine", "bench"},
		imports: []string{"github.com/duckdb/"},
		why:     "query/engine is the one seam to DuckDB",
	},
	{
		not:     []string{"cmd", "integration", "bench"},
		imports: []string{"github.com/spf13/", "github.com/testcontainers/", module + "integration"},
		why:     "command lines and test servers are for the outermost packages",
	},
}

// goFile is one source file of ours.
type goFile struct {
	dir    string // of its package, relative to the module
	path   string
	syntax *ast.File
}

func ourFiles(t *testing.T, mode parser.Mode) []goFile {
	t.Helper()
	var files []goFile
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), p, nil, mode)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(p, ".."+string(os.PathSeparator)))
		files = append(files, goFile{dir: path.Dir(name), path: name, syntax: syntax})
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func (f goFile) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		paths = append(paths, p)
	}
	return paths
}

// within: pkg is one of the packages or below one.
func within(pkg string, packages []string) bool {
	return slices.ContainsFunc(packages, func(p string) bool { return pkg == p || strings.HasPrefix(pkg, p+"/") })
}

// hits: the import is the banned one or below it.
func hits(imported, banned string) bool {
	return imported == banned || strings.HasPrefix(imported, strings.TrimSuffix(banned, "/")+"/")
}

// layer is the place of a package in layers, -1 if it has none.
func layer(pkg string) int {
	best := -1
	for i, l := range layers {
		if within(pkg, []string{l}) && (best < 0 || len(l) > len(layers[best])) {
			best = i
		}
	}
	return best
}

func TestImportsPointDown(t *testing.T) {
	for _, f := range ourFiles(t, parser.ImportsOnly) {
		from := layer(f.dir)
		require.GreaterOrEqual(t, from, 0, "%s: the package has no place in layers; give it one", f.path)
		for _, imported := range f.imports(t) {
			pkg, ours := strings.CutPrefix(imported, module)
			if !ours || within(pkg, []string{layers[from]}) || within(f.dir, []string{pkg}) {
				continue
			}
			if to := layer(pkg); to > from {
				t.Errorf("%s imports %s, which stands above it", f.path, pkg)
			}
		}
	}
}

func TestImportsBanned(t *testing.T) {
	for _, f := range ourFiles(t, parser.ImportsOnly) {
		for _, imported := range f.imports(t) {
			for _, ban := range bans {
				concerned := within(f.dir, ban.from) || len(ban.from) == 0 && !within(f.dir, ban.not)
				if concerned && slices.ContainsFunc(ban.imports, func(b string) bool { return hits(imported, b) }) {
					t.Errorf("%s must not import %s: %s", f.path, imported, ban.why)
				}
			}
		}
	}
}

// TestEnvironmentIsReadOutsideOnly: configuration is handed down; what a package does depends on its arguments alone.
func TestEnvironmentIsReadOutsideOnly(t *testing.T) {
	readers := map[string]bool{"Getenv": true, "LookupEnv": true, "Environ": true, "ExpandEnv": true}
	for _, f := range ourFiles(t, parser.SkipObjectResolution) {
		if within(f.dir, []string{"cmd", "integration", "bench"}) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && readers[s.Sel.Name] {
				if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "os" {
					t.Errorf("%s reads the environment: os.%s", f.path, s.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestBansBite keeps the rules above from going blind: each must catch what it is meant to catch.
func TestBansBite(t *testing.T) {
	for imported, banned := range map[string]string{
		"github.com/go-mysql-org/go-mysql/replication": "github.com/go-mysql-org/go-mysql/replication",
		"github.com/cockroachdb/pebble/v2/vfs":         "github.com/cockroachdb/pebble",
		"github.com/duckdb/duckdb-go/v2":               "github.com/duckdb/",
		module + "integration/mysqltest":               module + "integration",
		"os/exec":                                      "os",
	} {
		require.True(t, hits(imported, banned), imported)
	}
	require.False(t, hits("github.com/go-mysql-org/go-mysql/mysql", "github.com/go-mysql-org/go-mysql/replication"))
	require.Equal(t, "storage/part", layers[layer("storage/part")])
	require.Equal(t, "storage", layers[layer("storage/internal/x")])
	require.Equal(t, "query", layers[layer("query")])
	require.Equal(t, -1, layer("util"))
	for _, ban := range bans {
		require.NotEmpty(t, ban.why)
		for _, pkg := range append(slices.Clone(ban.from), ban.not...) {
			require.GreaterOrEqual(t, layer(pkg), 0, pkg)
		}
	}
}
