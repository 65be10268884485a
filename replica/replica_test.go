package replica

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/column"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/storage"
	"github.com/tidemarkdb/tidemark/uniquekey"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

// fixture is a store with a manager, beside a source.
type fixture struct {
	t       *testing.T
	source  *mysqltest.Server
	db      string // on the source
	dir     string
	store   *storage.Store
	manager *Manager
	auto    bool // auto_resync
	// roleEvery is that of Options.
	roleEvery time.Duration
}

func newFixture(t *testing.T, source *mysqltest.Server, db string) *fixture {
	f := &fixture{t: t, source: source, db: db, dir: t.TempDir()}
	f.open()
	t.Cleanup(f.close)
	return f
}

func (f *fixture) open() {
	var err error
	log := slog.New(slog.NewTextHandler(f.t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	f.store, err = storage.Open(f.dir, storage.Options{ReserveBytes: 1})
	require.NoError(f.t, err)
	f.manager, err = NewManager(f.store, log, Options{Readers: 2, FirstPause: 20 * time.Millisecond, ResyncPause: 50 * time.Millisecond,
		RetentionEvery: 300 * time.Millisecond, RoleEvery: f.roleEvery})
	require.NoError(f.t, err)
}

// close ends with the store's own check, as every test must.
func (f *fixture) close() {
	if f.store == nil {
		return
	}
	f.manager.Close()
	report, err := f.store.Verify(context.Background())
	require.NoError(f.t, err)
	require.Empty(f.t, report.Problems)
	require.NoError(f.t, f.store.Close())
	f.store = nil
}

func (f *fixture) restart() {
	f.close()
	f.open()
}

func (f *fixture) spec() Spec {
	settings := DefaultSettings()
	settings.AutoResync = f.auto
	return Spec{Name: "shop", Host: f.source.Host, Port: f.source.Port, SourceDatabase: f.db, User: f.source.User, Password: f.source.Password, Settings: settings}
}

func (f *fixture) create() {
	f.t.Helper()
	require.NoError(f.t, f.manager.Create(f.t.Context(), f.spec(), false))
}

func (f *fixture) status() Status {
	f.t.Helper()
	all := f.manager.Status()
	require.Len(f.t, all, 1)
	return all[0]
}

// wait waits until the status is as wanted. The time limit is generous: it is there for tests that fail.
func (f *fixture) wait(what string, cond func(Status) bool) Status {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		st := f.status()
		if cond(st) {
			return st
		}
		if st.State == StateError {
			require.Fail(f.t, "the database stands in an error", "waiting for %s: %s", what, *st.Error)
		}
		if time.Now().After(deadline) {
			require.Fail(f.t, "waited too long", "for %s; the status is %+v", what, st)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// caughtUp waits until everything that the source has executed by now is readable.
func (f *fixture) caughtUp() {
	f.t.Helper()
	db := f.source.DB(f.t, "")
	var set, file string
	var position uint64
	require.NoError(f.t, db.QueryRow("SELECT @@gtid_executed").Scan(&set))
	rows, err := db.Query("SHOW BINARY LOG STATUS")
	require.NoError(f.t, err)
	require.True(f.t, rows.Next())
	var a, b, c any
	require.NoError(f.t, rows.Scan(&file, &position, &a, &b, &c))
	require.NoError(f.t, rows.Close())
	f.wait("everything", func(st Status) bool {
		return st.File == file && st.Position >= position || st.File > file
	})
}

// rows prints a table here, a row a line, in key order.
func (f *fixture) rows(table string) string {
	f.t.Helper()
	info, err := f.store.Database("shop")
	require.NoError(f.t, err)
	v, err := f.store.Pin(info.ID)
	require.NoError(f.t, err)
	defer v.Release()
	t, err := f.store.Table(info.ID, table)
	require.NoError(f.t, err)
	var out []string
	require.NoError(f.t, v.Scan(f.t.Context(), t.ID, func(b *column.Batch, dead uniquekey.Bitset) error {
		for i := range b.Rows() {
			if !dead.Has(uint32(i)) {
				out = append(out, printRow(b, i))
			}
		}
		return nil
	}))
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func printRow(b *column.Batch, row int) string {
	var cells []string
	for i := range b.Table.Columns {
		c := &b.Table.Columns[i]
		a := b.Record.Column(i)
		switch {
		case b.Exact != nil && !b.Exact.IsNull(row) && hasExact(b, row, c.ID) != "":
			cells = append(cells, hasExact(b, row, c.ID))
		case a.IsNull(row):
			cells = append(cells, "NULL")
		default:
			cells = append(cells, string(column.Print(nil, c, a, row, time.UTC)))
		}
	}
	return strings.Join(cells, "|")
}

func hasExact(b *column.Batch, row int, id uint32) string {
	text, _ := column.FindExact(b.Exact.Value(row), id)
	return string(text)
}

// sourceRows prints a table of the source the same way.
func (f *fixture) sourceRows(table string) string {
	f.t.Helper()
	rows, err := f.source.DB(f.t, f.db).Query("SELECT * FROM `" + table + "`")
	require.NoError(f.t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(f.t, err)
	var out []string
	for rows.Next() {
		cells := make([]*string, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		require.NoError(f.t, rows.Scan(into...))
		var line []string
		for _, c := range cells {
			if c == nil {
				line = append(line, "NULL")
			} else {
				line = append(line, *c)
			}
		}
		out = append(out, strings.Join(line, "|"))
	}
	require.NoError(f.t, rows.Err())
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (f *fixture) equal(tables ...string) {
	f.t.Helper()
	for _, t := range tables {
		require.Equal(f.t, f.sourceRows(t), f.rows(t), "table %s", t)
	}
}

func (f *fixture) exec(statements ...string) {
	f.t.Helper()
	f.source.Exec(f.t, f.db, statements...)
}

// The whole way: copy, stream, restart.
func TestCopyAndFollow(t *testing.T) {
	source, db := mysqltest.FreshDatabase(t)
	f := newFixture(t, source, db)
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO a VALUES (1, 'one'), (2, 'two')",
		"CREATE TABLE b (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(10,2), t TIMESTAMP(3) NULL)", "INSERT INTO b VALUES (18446744073709551615, 1.5, '2024-01-01 00:00:00.123')")
	f.create()
	f.wait("the copy", func(st Status) bool { return st.State == StateStreaming && st.GTIDSet != "" })
	f.equal("a", "b")
	f.exec("INSERT INTO a VALUES (3, 'three')", "UPDATE a SET v = 'TWO', id = 20 WHERE id = 2", "DELETE FROM a WHERE id = 1", "INSERT INTO b VALUES (7, -3, NULL)",
		"ALTER TABLE a ADD n INT NOT NULL DEFAULT 5", "INSERT INTO a VALUES (4, 'four', 6)", "CREATE TABLE c (id INT PRIMARY KEY)", "INSERT INTO c VALUES (1), (2)")
	f.caughtUp()
	f.equal("a", "b", "c")
	f.restart()
	f.equal("a", "b", "c") // EXACT-16: readable at once
	f.exec("TRUNCATE c", "INSERT INTO c VALUES (9)", "DROP TABLE b")
	f.caughtUp()
	f.equal("a", "c")
	st := f.status()
	require.Nil(t, st.Error)
	require.Len(t, st.Tables, 2)
}

// verify gives the outcome of each table.
func (f *fixture) verify() map[string]TableResult {
	f.t.Helper()
	out := map[string]TableResult{}
	require.NoError(f.t, f.manager.Verify(f.t.Context(), "shop", func(r TableResult) { out[r.Table] = r }))
	return out
}

func TestVerify(t *testing.T) {
	f := shared(t)
	f.exec("INSERT INTO b VALUES (1, 1), (2, 2)")
	got := f.verify()
	require.Equal(t, Equal, got["a"].Outcome, got["a"].Note)
	require.EqualValues(t, 2, got["b"].Rows)
	// PROTO-23: a change that the source did not log.
	conn, err := f.source.DB(t, f.db).Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	for _, s := range []string{"SET sql_log_bin = 0", "UPDATE b SET v = 7 WHERE id = 2", "SET sql_log_bin = 1"} {
		_, err := conn.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	got = f.verify()
	require.Equal(t, Equal, got["a"].Outcome)
	require.Equal(t, Different, got["b"].Outcome, got["b"].Note)
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	f.exec("INSERT INTO a VALUES (3, 'x')")
	require.Equal(t, Undecided, f.verify()["a"].Outcome)
	require.ErrorIs(t, f.manager.Verify(t.Context(), "nonesuch", nil), storage.ErrNotFound)
}
