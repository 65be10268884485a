package verify

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/snapshot"
	"github.com/tidemarkdb/tidemark/uniquekey"
	"github.com/tidemarkdb/tidemark/wire"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

// copies is an Ours that is right by construction: each Pin makes a new copy of the source, at an exact cut, and lets
// tamper change it.
type copies struct {
	t      *testing.T
	cfg    snapshot.Config
	tamper func(c *aCopy)
	fail   error
	pins   int
}

func (o *copies) Pin(ctx context.Context, end gtid.Position) (Version, error) {
	o.pins++
	if o.fail != nil {
		<-ctx.Done()
		return nil, o.fail
	}
	c := &aCopy{rows: map[string][]*column.Batch{}, quarantine: map[string]string{}}
	r, err := snapshot.Run(ctx, o.cfg, c)
	if err != nil {
		return nil, err
	}
	if r.Point.Position.Compare(end) < 0 {
		return nil, fmt.Errorf("the copy is at %s, before %s", r.Point.Position, end)
	}
	if o.tamper != nil {
		o.tamper(c)
	}
	return c, nil
}

// aCopy is a version in memory, and the sink that fills it.
type aCopy struct {
	mu         sync.Mutex
	defs       []*schema.Table
	rows       map[string][]*column.Batch
	quarantine map[string]string
}

func (c *aCopy) Begin(cut snapshot.Cut) error {
	c.defs = slices.Clone(cut.Tables)
	return nil
}

func (c *aCopy) Open(t *schema.Table) (snapshot.Writer, error) { return &copyWriter{c, t}, nil }

type copyWriter struct {
	c *aCopy
	t *schema.Table
}

func (w *copyWriter) Add(b *column.Batch) error {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.rows[w.t.Name] = append(w.c.rows[w.t.Name], b)
	return nil
}
func (w *copyWriter) Done([]byte) error { return nil }
func (w *copyWriter) Close() error      { return nil }
func (w *copyWriter) Abort()            {}

func (c *aCopy) Tables() []Table {
	out := make([]Table, len(c.defs))
	for i, d := range c.defs {
		out[i] = Table{Name: d.Name, Def: d, Quarantine: c.quarantine[d.Name]}
	}
	return out
}

// Scan gives each batch with a dead row of its own, as storage does, and without keys.
func (c *aCopy) Scan(_ context.Context, table string, fn func(*column.Batch, uniquekey.Bitset) error) error {
	for _, b := range c.rows[table] {
		rows := make([]int, b.Rows()+1)
		for i := range rows {
			rows[i] = min(i, b.Rows()-1)
		}
		withDead := b.Take(rows)
		withDead.Keys = column.Keys{}
		dead := uniquekey.NewBitset(len(rows))
		dead.Set(uint32(b.Rows()))
		if err := fn(withDead, dead); err != nil {
			return err
		}
	}
	return nil
}

func (c *aCopy) Lookup(_ context.Context, table string, keys column.Keys) (*column.Batch, error) {
	wanted := map[string]bool{}
	for i := range keys.Len() {
		wanted[string(keys.At(i))] = true
	}
	var found []*column.Batch
	for _, b := range c.rows[table] {
		var rows []int
		for i := range b.Rows() {
			if wanted[string(b.Keys.At(i))] {
				rows = append(rows, i)
			}
		}
		if len(rows) > 0 {
			found = append(found, b.Take(rows))
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return column.Concat(found)
}

func (c *aCopy) Release() {}

// drop takes a table's n-th row out.
func (c *aCopy) drop(table string, n int) {
	b := c.rows[table][0]
	var rows []int
	for i := range b.Rows() {
		if i != n {
			rows = append(rows, i)
		}
	}
	c.rows[table][0] = b.Take(rows)
}

func setUp(t *testing.T, statements ...string) (*mysqltest.Server, string, *copies, Config) {
	t.Helper()
	s, db := mysqltest.FreshDatabase(t)
	s.Exec(t, db, append([]string{"SET sql_mode = ''", "SET time_zone = '+00:00'", "SET cte_max_recursion_depth = 1000000"}, statements...)...)
	source := wire.Config{Host: s.Host, Port: s.Port, User: s.User, Password: s.Password}
	_, plan, err := compat.Check(t.Context(), source, compat.Wishes{Database: db})
	if err != nil {
		t.Fatal(err)
	}
	return s, db, &copies{t: t, cfg: snapshot.Config{Source: source, Plan: plan}}, Config{Source: source, Database: db, Wait: 20 * time.Second, Pause: 20 * time.Millisecond}
}

func results(t *testing.T, cfg Config, ours Ours) map[string]Result {
	t.Helper()
	out := map[string]Result{}
	err := Run(t.Context(), cfg, ours, func(r Result) { out[r.Table] = r })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func want(t *testing.T, r Result, o Outcome, words ...string) {
	t.Helper()
	text := r.Note + " " + strings.Join(r.Keys, "; ")
	if r.Outcome != o {
		t.Errorf("table %s: %s (%s), want %s", r.Table, r.Outcome, text, o)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("table %s: %q is missing: %s", r.Table, w, text)
		}
	}
}

func numbers(n int) string {
	return fmt.Sprintf("(WITH RECURSIVE s AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM s WHERE i + 1 < %d) SELECT i FROM s) AS s", n)
}

// keyTypes are key columns with an expression for the value in row i, of which there are 200.
var keyTypes = map[string][2]string{
	"k_int":       {"k INT", "i - 100"},
	"k_unsigned":  {"k BIGINT UNSIGNED", "18446744073709551615 - i"},
	"k_decimal":   {"k DECIMAL(20,4)", "(i - 100) / 16"},
	"k_wide":      {"k DECIMAL(60,4)", "(i - 100) / 16 + 10000000000000000000000000000000000000000"},
	"k_float":     {"k FLOAT", "(i - 100) / 7"},
	"k_double":    {"k DOUBLE", "(i - 100) / 7"},
	"k_bit":       {"k BIT(20)", "i * 3"},
	"k_date":      {"k DATE", "IF(i = 7, '0000-00-00', '2024-01-01' + INTERVAL i DAY)"},
	"k_datetime":  {"k DATETIME(6)", "'2024-01-01' + INTERVAL i MICROSECOND"},
	"k_timestamp": {"k TIMESTAMP(3)", "IF(i = 7, '0000-00-00', '2024-01-01' + INTERVAL i HOUR)"},
	"k_time":      {"k TIME(2)", "SEC_TO_TIME((i - 100) * 1.25)"},
	"k_year":      {"k YEAR", "1901 + i"},
	"k_char":      {"k CHAR(10) CHARACTER SET latin1", "CONCAT('é', i)"},
	"k_varchar":   {"k VARCHAR(10)", "CONCAT('日''\\\\', i)"},
	"k_binary":    {"k BINARY(4)", "UNHEX(LPAD(HEX(i), 8, '0'))"},
	"k_varbinary": {"k VARBINARY(10)", "CONCAT(x'00FF', i)"},
	"k_enum":      {"k ENUM('x','y','z'), i INT", "1 + i % 3, i"},
	"k_set":       {"k SET('a','b','c','d','e','f','g','h')", "i"},
}

// A flipped value, a lost row and a row too many are found and named, for every type of key; equal tables are equal.
func TestEveryKeyType(t *testing.T) {
	var statements []string
	for name, k := range keyTypes {
		key, def := "k", k[0]+" NOT NULL"
		if name == "k_enum" {
			key, def = "k, i", "k ENUM('x','y','z') NOT NULL, i INT NOT NULL"
		}
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s (%s, v VARCHAR(20), d DATETIME(3), PRIMARY KEY (%s))", name, def, key),
			fmt.Sprintf("INSERT INTO %s SELECT %s, IF(i = 9, NULL, CONCAT('v', i)), IF(i = 3, '0000-00-00', '2024-05-05') FROM %s", name, k[1], numbers(200)))
	}
	s, db, ours, cfg := setUp(t, statements...)
	for name, r := range results(t, cfg, ours) {
		want(t, r, Equal)
		if r.Rows != 200 {
			t.Errorf("%s: %d rows", name, r.Rows)
		}
	}
	// The copy stays as it was while the source loses a row, gains one and changes one, with the binlog switched off.
	frozen, err := ours.Pin(t.Context(), gtid.Position{})
	if err != nil {
		t.Fatal(err)
	}
	for name := range keyTypes {
		s.Exec(t, db, "SET sql_log_bin = 0", "SET sql_mode = ''", "DELETE FROM "+name+" ORDER BY k LIMIT 1", "UPDATE "+name+" SET v = NULL WHERE v = 'v44'", "UPDATE "+name+" SET d = '0000-01-00' WHERE v = 'v45'")
	}
	for name, r := range results(t, cfg, pinned{frozen}) {
		want(t, r, Different, ": not on the source", ": v differ", ": d differ", "k=")
		if len(r.Keys) != 3 {
			t.Errorf("%s: %q", name, r.Keys)
		}
	}
}

// pinned always gives the same version.
type pinned struct{ v Version }

func (p pinned) Pin(context.Context, gtid.Position) (Version, error) { return p.v, nil }

const account = "CREATE TABLE acc (id INT PRIMARY KEY, n BIGINT NOT NULL, v VARCHAR(30))"

func load(t *testing.T, s *mysqltest.Server, db string, n int, statement func(i int) string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	pool := s.DB(t, db)
	for w := range n {
		wait.Go(func() {
			for i := w; ctx.Err() == nil; i += n {
				if err := exec(ctx, pool, statement(i)); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() { cancel(); wait.Wait() }
}

func exec(ctx context.Context, db *sql.DB, statement string) error {
	_, err := db.ExecContext(ctx, statement)
	if err != nil && strings.Contains(err.Error(), "Deadlock") {
		return nil
	}
	return err
}

// OPS-08: no false alarm under load, and a lost row is found under load.
func TestUnderLoad(t *testing.T) {
	s, db, ours, cfg := setUp(t, account, "INSERT INTO acc SELECT i, 0, 'x' FROM "+numbers(30000))
	stop := load(t, s, db, 4, func(i int) string {
		k := i * 7919 % 20000
		switch i % 3 {
		case 0:
			return fmt.Sprintf("UPDATE acc SET n = n + 1 WHERE id = %d", k)
		case 1:
			return fmt.Sprintf("DELETE FROM acc WHERE id = %d", k)
		}
		return fmt.Sprintf("REPLACE INTO acc VALUES (%d, %d, 'new')", k, i)
	})
	defer stop()
	for range 3 {
		want(t, results(t, cfg, ours)["acc"], Equal)
	}
	ours.tamper = func(c *aCopy) {
		for i := range c.rows["acc"][0].Rows() {
			if row := c.rows["acc"][0]; strings.HasPrefix(keyNames(row, i), "id=25001") {
				c.drop("acc", i)
				return
			}
		}
		for n, b := range c.rows["acc"] {
			for i := range b.Rows() {
				if keyNames(b, i) == "id=25001" {
					c.rows["acc"][0], c.rows["acc"][n] = c.rows["acc"][n], c.rows["acc"][0]
					c.drop("acc", i)
					return
				}
			}
		}
		t.Error("no row 25001")
	}
	want(t, results(t, cfg, ours)["acc"], Different, "id=25001: missing here")
}

// A row that changes all the time is no difference.
func TestHotRow(t *testing.T) {
	s, db, ours, cfg := setUp(t, account, "INSERT INTO acc SELECT i, 0, 'x' FROM "+numbers(10))
	stop := load(t, s, db, 2, func(int) string { return "UPDATE acc SET n = n + 1 WHERE id = 5" })
	defer stop()
	if r := results(t, cfg, ours)["acc"]; r.Outcome == Different {
		t.Errorf("%+v", r)
	}
}

func TestTables(t *testing.T) {
	s, db, ours, cfg := setUp(t, account, "CREATE TABLE gone (id INT PRIMARY KEY)", "CREATE TABLE sick (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY, v INT)", "CREATE TABLE nothing (id INT PRIMARY KEY)")
	frozen, err := ours.Pin(t.Context(), gtid.Position{})
	if err != nil {
		t.Fatal(err)
	}
	frozen.(*aCopy).quarantine["sick"] = "an ALTER TABLE at binlog.000002:77"
	s.Exec(t, db, "DROP TABLE gone", "CREATE TABLE late (id INT PRIMARY KEY)", "ALTER TABLE other MODIFY v BIGINT", "INSERT INTO sick VALUES (1)")
	all := results(t, cfg, pinned{frozen})
	want(t, all["gone"], Different, "the source has no such table")
	want(t, all["late"], Different, "missing here")
	want(t, all["other"], Different, "column 2 is v int here and v bigint on the source")
	want(t, all["sick"], Undecided, "in quarantine: an ALTER TABLE at binlog.000002:77")
	want(t, all["nothing"], Equal)
	want(t, all["acc"], Equal)
	cfg.Filter = func(name string) bool { return name != "late" }
	if _, ok := results(t, cfg, pinned{frozen})["late"]; ok {
		t.Error("a table that is not wanted is compared")
	}
}

func TestCopyBehind(t *testing.T) {
	_, _, ours, cfg := setUp(t, account)
	ours.fail, cfg.Wait = errors.New("the stream stopped"), 100*time.Millisecond
	want(t, results(t, cfg, ours)["acc"], Undecided, "did not come up to")
	cfg.Wait = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Run(ctx, cfg, ours, func(Result) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Everything differs: the first keys are named, and it does not take long.
func TestAllDifferent(t *testing.T) {
	s, db, ours, cfg := setUp(t, account, "INSERT INTO acc SELECT i, 0, 'x' FROM "+numbers(5000))
	frozen, err := ours.Pin(t.Context(), gtid.Position{})
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(t, db, "UPDATE acc SET n = n + 1")
	r := results(t, cfg, pinned{frozen})["acc"]
	want(t, r, Different, "id=0: n differ", "id=9: n differ")
	if len(r.Keys) != namedKeys {
		t.Errorf("%q", r.Keys)
	}
}
