package replica

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// large gives table a some thousand rows, so that a copy lasts a while.
func (f *fixture) large() {
	f.t.Helper()
	var rows []string
	for i := range 5000 {
		rows = append(rows, fmt.Sprintf("(%d, REPEAT('r', %d))", 1000+i, i%190))
	}
	f.exec("INSERT INTO a VALUES " + strings.Join(rows, ","))
}

// SNAP-03, DDL-11: definitions change while a table is copied anew. Whatever the moment, what comes out is the source's.
func TestDDLDuringResync(t *testing.T) {
	swap := func(n int) []string { // as gh-ost does it
		gho, del := fmt.Sprintf("_a_gho%d", n), fmt.Sprintf("_a_del%d", n)
		return []string{
			"CREATE TABLE " + gho + " LIKE a", fmt.Sprintf("ALTER TABLE %s ADD COLUMN s%d INT NOT NULL DEFAULT 5", gho, n), "INSERT INTO " + gho + " SELECT *, 6 FROM a",
			"rename /* gh-ost */ table a TO " + del + ", " + gho + " TO a", "DROP TABLE " + del,
		}
	}
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := automatic(t, args...)
			f.large()
			f.caughtUp()
			changes := [][]string{
				{"ALTER TABLE a ADD n INT NOT NULL DEFAULT 7"}, {"ALTER TABLE a MODIFY v TEXT"}, swap(1), {"ALTER TABLE a ADD k INT, ALGORITHM=INSTANT", "UPDATE a SET k = id % 7"},
				{"RENAME TABLE a TO elsewhere", "RENAME TABLE elsewhere TO a"}, {"DELETE FROM a WHERE id % 2 = 0"}, swap(2), {"TRUNCATE a"},
				{"DROP TABLE a", "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))"},
			}
			for n, change := range changes {
				f.wait("table a", func(st Status) bool { return len(st.Tables) > 0 && st.Tables[0].Name == "a" })
				require.NoError(t, f.manager.Resync(t.Context(), "shop", "a"))
				time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
				f.exec(change...)
				f.exec(fmt.Sprintf("INSERT INTO a (id, v) VALUES (%d, 'after')", 100+n), fmt.Sprintf("INSERT INTO b VALUES (%d, 1)", n))
				f.caughtUp()
				f.settled()
				f.equal("a", "b")
			}
		})
	}
}

// XA transactions that are prepared before a new copy begins, while it is made, and over the swap.
func TestXADuringResync(t *testing.T) {
	f := automatic(t)
	f.large()
	f.caughtUp()
	db := f.source.DB(t, f.db)
	xa := func(id string, statements ...string) {
		t.Helper()
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		for _, s := range append(append([]string{"XA START '" + id + "'"}, statements...), "XA END '"+id+"'", "XA PREPARE '"+id+"'") {
			_, err := conn.ExecContext(t.Context(), s)
			require.NoError(t, err)
		}
		_ = conn.Raw(func(any) error { return context.Canceled }) // the server keeps what is prepared
	}
	t.Cleanup(func() { // else the server can't drop the database of a test that failed
		for _, id := range []string{"before", "committed", "rolled back"} {
			_, _ = db.Exec("XA ROLLBACK '" + id + "'")
		}
	})
	xa("before", "INSERT INTO a VALUES (1, 'x') ON DUPLICATE KEY UPDATE v = 'before'", "INSERT INTO b VALUES (1, 1)")
	f.caughtUp()
	require.NoError(t, f.manager.Resync(t.Context(), "shop", "a"))
	time.Sleep(300 * time.Millisecond) // the copy waits for it
	f.exec("XA COMMIT 'before'")
	f.wait("the cut", func(Status) bool { return f.kinds("a", "resync") >= 2 })
	xa("committed", "UPDATE a SET v = 'committed' WHERE id = 2", "INSERT INTO b VALUES (2, 2)")
	xa("rolled back", "UPDATE a SET v = 'rolled back' WHERE id = 1000", "INSERT INTO b VALUES (3, 3)")
	f.settled()
	f.caughtUp()
	f.restart()
	f.exec("XA COMMIT 'committed'", "XA ROLLBACK 'rolled back'", "INSERT INTO a VALUES (3, 'three')")
	f.caughtUp()
	f.settled()
	f.equal("a", "b")
}

// A part file that is damaged costs its table a new copy, and nobody anything else.
func TestDamagedTableIsCopiedAnew(t *testing.T) {
	f := automatic(t)
	f.large()
	f.caughtUp()
	require.NoError(t, f.manager.Resync(t.Context(), "shop", "a")) // makes a part of it
	f.settled()
	f.manager.Close()
	require.NoError(t, f.store.Close())
	f.store = nil
	parts, err := filepath.Glob(filepath.Join(f.dir, "parts", "*", "*", "*.parquet"))
	require.NoError(t, err)
	var size int64
	var largest string
	for _, p := range parts {
		info, err := os.Stat(p)
		require.NoError(t, err)
		if info.Size() > size {
			size, largest = info.Size(), p
		}
	}
	require.NoError(t, os.Truncate(largest, size/2))
	f.open()
	require.NotNil(t, f.table("a").Error, "%+v", f.table("a"))
	require.Contains(t, *f.table("a").Error, "auto_resync")
	f.exec("INSERT INTO b VALUES (1, 1)", "UPDATE a SET v = 'after' WHERE id = 1001")
	f.wait("the new copy", func(Status) bool { a := f.table("a"); return a.Error == nil && a.Resync == nil })
	f.caughtUp()
	f.equal("a", "b")
}

// A spooled binlog that is lost while a table is copied anew: the job reads the rest from the source itself.
func TestResyncWithoutTheRelay(t *testing.T) {
	for name, args := range map[string][]string{"with GTIDs": nil, "without": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := automatic(t, args...)
			f.large()
			f.caughtUp()
			conn, err := f.source.DB(t, f.db).Conn(t.Context())
			require.NoError(t, err)
			defer conn.Close()
			in := func(s string) {
				t.Helper()
				_, err := conn.ExecContext(t.Context(), s)
				require.NoError(t, err)
			}
			in("LOCK TABLES a WRITE") // the copy waits for its first rows
			require.NoError(t, f.manager.Resync(t.Context(), "shop", "a"))
			f.wait("the cut", func(Status) bool { return f.kinds("a", "resync") >= 2 })
			in("UPDATE a SET v = 'behind P0' WHERE id < 1100")
			f.exec("FLUSH BINARY LOGS", "INSERT INTO b VALUES (1, 1)")
			f.caughtUp()
			f.close()
			require.NoError(t, os.RemoveAll(filepath.Join(f.dir, "relay")))
			in("UNLOCK TABLES")
			f.open()
			f.exec("INSERT INTO b VALUES (2, 2)", "DELETE FROM a WHERE id = 1")
			f.settled()
			f.caughtUp()
			f.equal("a", "b")
		})
	}
}

func FuzzDecodeJob(f *testing.F) {
	r := jobRecord{Version: jobVersion, Old: 3, Server: "x", P0: []byte{1}, Window: &jobWindow{}}
	b, err := r.encode()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeJob(b)
		if err != nil {
			return
		}
		_, _ = r.point()
		_, _ = r.Window.open()
		again, err := r.encode()
		require.NoError(t, err)
		same, err := decodeJob(again)
		require.NoError(t, err)
		require.Equal(t, r, same)
	})
}
