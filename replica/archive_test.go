package replica

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// A database is made of the binlog files of a source, without the source, and is what the source was.
func TestReplayOfBinlogFiles(t *testing.T) {
	for name, args := range map[string][]string{"gtid": nil, "position": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			source := mysqltest.Start(t, mysqltest.Options{Args: args, Own: true})
			f := newFixture(t, source, "app")
			source.Exec(t, "", "CREATE DATABASE app DEFAULT CHARACTER SET latin1", "CREATE DATABASE other")
			f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "CREATE TABLE b (id INT AUTO_INCREMENT PRIMARY KEY, n DECIMAL(10,2))", "INSERT INTO a VALUES (1, 'one'), (2, 'zwölf')",
				"FLUSH BINARY LOGS", "UPDATE a SET v = 'eins' WHERE id = 1", "ALTER TABLE a ADD w INT DEFAULT 7", "INSERT INTO a VALUES (3, 'three', 3)",
				"SET binlog_transaction_compression = ON", "INSERT INTO b (n) VALUES (1.5), (2.5)", "DROP TABLE IF EXISTS nothing", "XA START 'x'", "INSERT INTO b (n) VALUES (3)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
			dir := t.TempDir()
			copyBinlogs(t, source, dir)
			before := map[string]string{}
			for _, table := range []string{"a", "b"} {
				before[table] = f.sourceRows(table)
			}
			f.exec("INSERT INTO a VALUES (4, 'later', 4)", "FLUSH BINARY LOGS")

			spec := Spec{Name: "shop", SourceDatabase: "app", Settings: DefaultSettings()}
			spec.Settings.BinlogDir = dir
			require.NoError(t, f.manager.Create(t.Context(), spec, false))
			st := f.wait("the end of the files", func(st Status) bool { return st.State == StateEnded })
			require.Nil(t, st.Error)
			require.Equal(t, "binlog.000002", st.File)
			require.Equal(t, before["a"], f.rows("a"))
			require.Equal(t, before["b"], f.rows("b"))
			require.Equal(t, "CREATE DATABASE `shop` ENGINE = MaterializedMySQL('files', 'app', '', '...') SETTINGS auto_resync = 0, binlog_dir = '"+dir+"'", st.CreateStatement())

			f.restart()
			f.wait("the end of the files", func(st Status) bool { return st.State == StateEnded })
			copyBinlogs(t, source, dir) // more files have come
			require.NoError(t, f.manager.Start(t.Context(), "shop"))
			f.wait("the end of more files", func(st Status) bool {
				return st.State == StateEnded && st.File == "binlog.000003" || f.rows("a") != before["a"]
			})
			f.wait("the end of more files", func(st Status) bool { return st.State == StateEnded })
			require.Equal(t, f.sourceRows("a"), f.rows("a"))

			require.NoError(t, f.manager.Drop(t.Context(), "shop", false))
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(left), 3, "files that are not ours are gone")
		})
	}
}

func copyBinlogs(t *testing.T, source *mysqltest.Server, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(source.DataDir(), "binlog.*"))
	require.NoError(t, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), b, 0o600))
	}
}

func TestReplayRefused(t *testing.T) {
	f := &fixture{t: t, dir: t.TempDir()}
	f.open()
	t.Cleanup(f.close)
	spec := Spec{Name: "shop", SourceDatabase: "app", Settings: DefaultSettings()}
	spec.Settings.BinlogDir = "relative"
	require.ErrorContains(t, f.manager.Create(t.Context(), spec, false), "not an absolute path")
	spec.Settings.BinlogDir = t.TempDir()
	require.ErrorIs(t, f.manager.Create(t.Context(), spec, false), os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(spec.Settings.BinlogDir, "binlog.000001"), []byte("not a log"), 0o600))
	err := f.manager.Create(t.Context(), spec, false)
	require.Error(t, err)
	require.False(t, errors.Is(err, os.ErrNotExist))
	require.Empty(t, f.manager.Status())
}
