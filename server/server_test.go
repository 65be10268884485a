package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/query"
	"github.com/tidemarkdb/tidemark/query/engine"
	"github.com/tidemarkdb/tidemark/query/result"
	"github.com/tidemarkdb/tidemark/replica"
	"github.com/tidemarkdb/tidemark/schema"
	"github.com/tidemarkdb/tidemark/storage"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

// fakeManager stands for the machinery of materialized databases.
type fakeManager struct {
	mu       sync.Mutex
	specs    []replica.Spec
	calls    []string
	err      error
	statuses []replica.Status
	results  []replica.TableResult
}

func (m *fakeManager) call(format string, args ...any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, fmt.Sprintf(format, args...))
	return m.err
}

func (m *fakeManager) Create(_ context.Context, spec replica.Spec, ifNotExists bool) error {
	m.mu.Lock()
	m.specs = append(m.specs, spec)
	m.mu.Unlock()
	return m.call("create %s %v", spec.Name, ifNotExists)
}
func (m *fakeManager) Start(_ context.Context, name string) error { return m.call("start %s", name) }
func (m *fakeManager) Stop(_ context.Context, name string) error  { return m.call("stop %s", name) }
func (m *fakeManager) Drop(_ context.Context, name string, ifExists bool) error {
	return m.call("drop %s %v", name, ifExists)
}
func (m *fakeManager) Resync(_ context.Context, name, table string) error {
	return m.call("resync %s.%s", name, table)
}
func (m *fakeManager) ModifySettings(_ context.Context, name string, settings map[string]string) error {
	return m.call("modify %s %v", name, settings)
}
func (m *fakeManager) Status() []replica.Status { return m.statuses }
func (m *fakeManager) Brief() []replica.Brief {
	var out []replica.Brief
	for _, st := range m.statuses {
		b := replica.Brief{Name: st.Name, TimeZone: st.TimeZone, AllowsQueryWhenMySQLLost: st.Settings.AllowsQueryWhenMySQLLost}
		if st.Error != nil {
			b.Fault = *st.Error
		}
		out = append(out, b)
	}
	return out
}
func (m *fakeManager) Log(int) []replica.LogEntry { return nil }
func (m *fakeManager) Verify(ctx context.Context, name string, report func(replica.TableResult)) error {
	for _, r := range m.results {
		report(r)
	}
	return m.call("verify %s", name)
}

// fixture is a server over a store of its own.
type fixture struct {
	t       testing.TB
	store   *storage.Store
	manager *fakeManager
	server  *Server
	addr    *net.TCPAddr
}

type fixtureOption func(*Config)

func newFixture(t testing.TB, options ...fixtureOption) *fixture {
	t.Helper()
	dir := t.TempDir()
	store, err := storage.Open(dir, storage.Options{CacheBytes: 4 << 20, MemTableBytes: 1 << 20})
	require.NoError(t, err)
	eng, err := engine.Open(engine.Options{
		MemoryLimitBytes: 256 << 20, TempDir: filepath.Join(dir, "tmp"), PartDirs: []string{dir},
	})
	require.NoError(t, err)
	f := &fixture{t: t, store: store, manager: &fakeManager{}}
	queries := query.New(query.Options{
		ProcessList: func() *result.Table { return f.server.ProcessList() },
		Store:       store, Engine: eng, System: map[string]map[string]func() *result.Table{"system": SystemTables(f.manager)}})
	config := Config{
		Users: map[string]string{"root": ""}, Queries: queries, Manager: f.manager, Store: store, DataDir: dir,
	}
	for _, o := range options {
		o(&config)
	}
	f.server, err = New(config)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.addr = l.Addr().(*net.TCPAddr)
	served := make(chan error, 1)
	go func() { served <- f.server.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		f.server.Shutdown(ctx)
		require.NoError(t, <-served)
		require.NoError(t, eng.Close())
		require.NoError(t, store.Close())
	})
	return f
}

func (f *fixture) config() *driver.Config {
	c := driver.NewConfig()
	c.User, c.Net, c.Addr = "root", "tcp", f.addr.String()
	return c
}

// db opens the server with Go's driver.
func (f *fixture) db(database string, options ...func(*driver.Config)) *sql.DB {
	f.t.Helper()
	c := f.config()
	c.DBName = database
	for _, o := range options {
		o(c)
	}
	connector, err := driver.NewConnector(c)
	require.NoError(f.t, err)
	db := sql.OpenDB(connector)
	f.t.Cleanup(func() { _ = db.Close() })
	return db
}

// client runs the real mysql client.
func (f *fixture) client(stdin string, args ...string) string {
	f.t.Helper()
	out, err := f.tryClient(stdin, args...)
	require.NoError(f.t, err, string(out))
	return string(out)
}

// shopTable is a table of everyday columns.
func shopTable(name string) *schema.Table {
	return &schema.Table{
		Database: "shop", Name: name, Version: 1, Key: []int{0}, KeyName: "PRIMARY", NextColumnID: 6,
		Engine: "InnoDB", Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci",
		Columns: []schema.Column{
			{ID: 1, Name: "id", Type: schema.BigInt, ColumnType: "bigint", AutoIncrement: true},
			{ID: 2, Name: "name", Type: schema.VarChar, Length: 100, Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci", Nullable: true, ColumnType: "varchar(100)"},
			{ID: 3, Name: "price", Type: schema.Decimal, Precision: 10, Scale: 2, Nullable: true, ColumnType: "decimal(10,2)"},
			{ID: 4, Name: "at", Type: schema.DateTime, FSP: 3, Nullable: true, ColumnType: "datetime(3)"},
			{ID: 5, Name: "weight", Type: schema.Float, Scale: schema.FloatUnscaled, Nullable: true, ColumnType: "float"},
		},
		Indexes: []schema.Index{{Name: "PRIMARY", Unique: true, Kind: "BTREE", Parts: []schema.IndexPart{{Column: 1}}}},
	}
}

// fill registers a database with tables of n rows each and makes it readable.
func (f *fixture) fill(database string, n int, tables ...string) {
	f.t.Helper()
	ctx := context.Background()
	id, err := f.store.CreateDatabase(ctx, database, []byte("{}"))
	require.NoError(f.t, err)
	x := f.store.Begin(id)
	for _, name := range tables {
		def := shopTable(name)
		def.Database = database
		table, err := x.CreateTable(def)
		require.NoError(f.t, err)
		require.NoError(f.t, x.Apply(ctx, table, &storage.Changes{Puts: shopRows(f.t, def, n)}))
	}
	x.SetPoint([]byte("point"))
	_, err = x.Commit(ctx)
	require.NoError(f.t, err)
}

func shopRows(t testing.TB, def *schema.Table, n int) *column.Batch {
	b := column.NewBuilder(memory.DefaultAllocator, def)
	for i := range n {
		b.Column(0).Int(int64(i + 1))
		b.Column(1).Bytes([]byte(fmt.Sprintf("thing %d é", i)))
		b.Column(2).DecimalText([]byte(fmt.Sprintf("%d.25", i)))
		b.Column(3).DateTime(2024, 2, 29, 12, 30, i%60, 123000)
		b.Column(4).Float(16777216)
		b.EndRow()
	}
	batch, err := b.Finish()
	require.NoError(t, err)
	return batch
}

func (f *fixture) tryClient(stdin string, args ...string) ([]byte, error) {
	server := mysqltest.Shared(f.t)
	login := server.Login
	login.Host, login.Port, login.User, login.Password = "127.0.0.1", f.addr.Port, "root", ""
	return login.Client(context.Background(), strings.NewReader(stdin), args...)
}

func requireCode(t *testing.T, err error, code uint16) {
	t.Helper()
	var e *driver.MySQLError
	require.True(t, errors.As(err, &e), "%v", err)
	require.Equal(t, code, e.Number, "%v", err)
}

func TestSelect(t *testing.T) {
	f := newFixture(t)
	f.fill("shop", 3, "things")
	db := f.db("shop")
	var id int64
	var name, price, at string
	require.NoError(t, db.QueryRow("SELECT id, name, price, at FROM things WHERE id = 2").Scan(&id, &name, &price, &at))
	require.Equal(t, []any{int64(2), "thing 1 é", "1.25", "2024-02-29 12:30:01.123"}, []any{id, name, price, at})
	// the binary protocol, and a FLOAT whose text has fewer digits (TYPE-22)
	var weight float64
	require.NoError(t, db.QueryRow("SELECT id, name, price, at, weight FROM things WHERE id = ?", 2).Scan(&id, &name, &price, &at, &weight))
	require.Equal(t, []any{int64(2), "thing 1 é", "1.25", "2024-02-29 12:30:01.123", 16777216.0}, []any{id, name, price, at, weight})
}

func TestConstants(t *testing.T) {
	db := newFixture(t).db("")
	var a, b, c any
	require.NoError(t, db.QueryRow("SELECT 1, 'x', NULL").Scan(&a, &b, &c))
	require.Equal(t, []any{int64(1), []byte("x"), nil}, []any{a, b, c})
}
