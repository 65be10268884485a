package replica

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/gtid"
)

// database gives what runs behind the fixture's database.
func (f *fixture) database() *database {
	f.t.Helper()
	d, err := f.manager.find("shop")
	require.NoError(f.t, err)
	return d
}

// paused keeps the stream from applying while do runs, as a long commit would; the relay goes on being filled.
func (f *fixture) paused(do func()) {
	f.t.Helper()
	require.NoError(f.t, f.database().gate.between(f.t.Context(), func() error { do(); return nil }))
}

// spooled waits until the relay has everything that the source has written by now.
func (f *fixture) spooled() {
	f.t.Helper()
	var set string
	at := gtid.Position{}
	var a, b any
	require.NoError(f.t, f.source.DB(f.t, "").QueryRow("SHOW BINARY LOG STATUS").Scan(&at.File, &at.Offset, &a, &b, &set))
	want, err := gtid.ParseSet(set)
	require.NoError(f.t, err)
	r := f.database().puller.relay
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		end := r.End()
		if want.IsZero() && end.Position.Compare(at) >= 0 || !want.IsZero() && end.Set.Contains(want) {
			return
		}
		require.True(f.t, time.Now().Before(deadline), "the relay is at %s, and not at %s of %s", end, at, want)
	}
}

var bothModes = map[string][]string{"gtid": nil, "position": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}}

// SNAP-07, PROTO-05, PROTO-14: what the source purges while nothing is applied is here already.
func TestSourcePurgesWhatIsSpooled(t *testing.T) {
	for name, args := range bothModes {
		t.Run(name, func(t *testing.T) {
			f := own(t, args...)
			f.paused(func() {
				for i := range 5 {
					f.exec(fmt.Sprintf("INSERT INTO b VALUES (%d, 1)", i), "FLUSH BINARY LOGS")
				}
				f.spooled()
				f.source.Exec(t, "", "PURGE BINARY LOGS TO '"+f.lastLog()+"'")
			})
			f.caughtUp()
			f.equal("a", "b")
		})
	}
}

func (f *fixture) lastLog() string {
	f.t.Helper()
	var file string
	var position uint64
	var a, b, c any
	require.NoError(f.t, f.source.DB(f.t, "").QueryRow("SHOW BINARY LOG STATUS").Scan(&file, &position, &a, &b, &c))
	return file
}

// PROTO-10: what is spooled is applied while the source is away, also after a restart here; the status says that it is away.
func TestAppliesWhileTheSourceIsAway(t *testing.T) {
	for name, args := range bothModes {
		t.Run(name, func(t *testing.T) {
			f := own(t, args...)
			var want string
			f.paused(func() {
				f.exec("INSERT INTO b VALUES (1, 1), (2, 2)", "ALTER TABLE b ADD c INT DEFAULT 5", "INSERT INTO b VALUES (3, 3, 3)")
				f.spooled()
				want = f.sourceRows("b")
				require.NoError(t, f.source.Kill(t.Context()))
			})
			f.wait("what is spooled", func(Status) bool { return f.rows("b") == want })
			st := f.wait("the loss", func(st Status) bool { return st.Error != nil })
			require.Equal(t, StateStreaming, st.State)
			require.NoError(t, f.source.Restart(t.Context()))
			f.wait("the source's return", func(st Status) bool { return st.Error == nil })

			f.closedWhile(func() {
				f.exec("DELETE FROM b WHERE id = 1", "INSERT INTO a VALUES (9, 'nine')")
				f.spooled()
				want = f.sourceRows("b")
			})
			require.NoError(t, f.source.Kill(t.Context()))
			f.open()
			f.wait("what is spooled, after a restart", func(Status) bool { return f.rows("b") == want })
			require.NoError(t, f.source.Restart(t.Context()))
			f.exec("INSERT INTO b VALUES (10, 10, 10)")
			f.caughtUp()
			f.equal("a", "b")
		})
	}
}

// closedWhile closes the store when do has ended, with nothing applied that it brought about.
func (f *fixture) closedWhile(do func()) {
	f.t.Helper()
	closed := make(chan struct{})
	f.paused(func() {
		do()
		d := f.database()
		go func() {
			defer close(closed)
			f.close()
		}()
		select {
		case <-d.puller.ctx.Done():
			require.Error(f.t, context.Cause(d.puller.ctx)) // which waits until whoever depends on it is cancelled, too
		case <-time.After(time.Minute):
			require.Fail(f.t, "the database goes on")
		}
	})
	<-closed
}

// A source that lost the end of its log in a crash, of which nothing was applied here, is followed on: what was spooled
// of the lost transactions is dropped. What was applied of them would be an error.
func TestSourceLostWhatWasNotApplied(t *testing.T) {
	for name, args := range bothModes {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, applied %t", name, applied), func(t *testing.T) {
				f := own(t, args...)
				f.exec("INSERT INTO b VALUES (1, 1)")
				f.caughtUp()
				require.NoError(t, f.source.Stop(t.Context()))
				saved := filepath.Join(t.TempDir(), "saved")
				require.NoError(t, osexec.Command("cp", "-a", f.source.DataDir(), saved).Run())
				require.NoError(t, f.source.Restart(t.Context()))
				f.wait("the source's return", func(st Status) bool { return st.Error == nil })
				if name == "position" { // the restart began a file, which the lost transactions stand in
					require.NoError(t, f.source.Stop(t.Context()))
					require.NoError(t, os.RemoveAll(saved))
					require.NoError(t, osexec.Command("cp", "-a", f.source.DataDir(), saved).Run())
					require.NoError(t, f.source.Restart(t.Context()))
				}
				lost := func() {
					f.exec("INSERT INTO b VALUES (2, 2)", "INSERT INTO b VALUES (3, 3)")
					f.spooled()
				}
				if applied {
					lost()
					f.caughtUp()
					f.loseAll(saved)
					require.Contains(t, f.failed(), "rewound")
					return
				}
				f.closedWhile(lost)
				f.loseAll(saved)
				f.open()
				f.exec("INSERT INTO b VALUES (2, 20)", "INSERT INTO b VALUES (4, 40)")
				f.caughtUp()
				f.equal("a", "b")
				require.Contains(t, fmt.Sprint(f.logKinds()), "relay")
			})
		}
	}
}

// loseAll puts the source back to where it was.
func (f *fixture) loseAll(saved string) {
	f.t.Helper()
	require.NoError(f.t, f.source.Kill(f.t.Context()))
	require.NoError(f.t, os.RemoveAll(f.source.DataDir()))
	require.NoError(f.t, osexec.Command("cp", "-a", saved, f.source.DataDir()).Run())
	require.NoError(f.t, f.source.Restart(f.t.Context()))
}

func (f *fixture) logKinds() []string {
	var kinds []string
	for _, e := range f.manager.Log(100) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (f *fixture) relayDir() string {
	f.t.Helper()
	info, err := f.store.Database("shop")
	require.NoError(f.t, err)
	return f.manager.relayDir(info.Stream)
}

// RES-02, RES-08: at relay_max_bytes nothing more is read from the source, the status says so, and nothing is lost.
func TestRelayBound(t *testing.T) {
	for name, args := range bothModes {
		t.Run(name, func(t *testing.T) {
			f := own(t, args...)
			require.NoError(t, f.manager.ModifySettings(t.Context(), "shop", map[string]string{"relay_max_bytes": "20000"}))
			f.paused(func() {
				for i := range 20 {
					f.exec(fmt.Sprintf("INSERT INTO a VALUES (%d, '%s')", 10+i, strings.Repeat("x", 190)), fmt.Sprintf("INSERT INTO b SELECT id + %d, 1 FROM a", 1000*i))
				}
				for st := f.status(); !st.Relay.Full; st = f.status() {
					require.Less(t, st.Relay.Bytes, int64(40000))
					f.exec(fmt.Sprintf("UPDATE a SET v = '%s%d' WHERE id > 10", strings.Repeat("y", 150), time.Now().Nanosecond()))
				}
			})
			f.caughtUp()
			f.equal("a", "b")
			require.False(t, f.status().Relay.Full)
			// What is left is more than the bound, all of it is applied, and nothing tells so but the start.
			require.NoError(t, f.manager.ModifySettings(t.Context(), "shop", map[string]string{"relay_max_bytes": "1"}))
			f.restart()
			f.exec("DELETE FROM b WHERE id = 1", "DELETE FROM a WHERE id = 2")
			f.caughtUp()
			f.equal("a", "b")
		})
	}
}

// EXACT-18: a damaged relay is read from the source again, at the start and while it runs.
func TestDamagedRelay(t *testing.T) {
	for name, args := range bothModes {
		t.Run(name, func(t *testing.T) {
			f := own(t, args...)
			f.exec("INSERT INTO b VALUES (1, 1)")
			f.caughtUp()
			f.closedWhile(func() {
				f.exec("INSERT INTO b VALUES (2, 2)")
				f.spooled()
			})
			f.damage()
			f.open()
			f.exec("INSERT INTO b VALUES (3, 3)")
			f.caughtUp()
			f.equal("a", "b")
			require.Contains(t, f.logKinds(), "relay")
		})
	}
}

// damage changes a byte in the middle of each file of the relay.
func (f *fixture) damage() {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.dir, "relay", "*", "*.0*"))
	require.NoError(f.t, err)
	require.NotEmpty(f.t, names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(f.t, err)
		b[len(b)/2] ^= 0x10
		require.NoError(f.t, os.WriteFile(name, b, 0o600))
	}
}

// A database that is dropped takes its relay along; one that is left over goes at the next start.
func TestDropRemovesTheRelay(t *testing.T) {
	f := shared(t)
	dir := f.relayDir()
	require.DirExists(t, dir)
	require.NoError(t, f.manager.Drop(t.Context(), "shop", false))
	require.NoDirExists(t, dir)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	f.restart()
	require.NoDirExists(t, dir)
}

// What is applied goes from the relay, whole files at a time.
func TestRelayIsPruned(t *testing.T) {
	f := own(t, bothModes["position"]...)
	first := f.lastLog()
	f.exec("INSERT INTO b VALUES (1, 1)", "FLUSH BINARY LOGS", "INSERT INTO b VALUES (2, 2)", "FLUSH BINARY LOGS", "INSERT INTO b VALUES (3, 3)")
	f.caughtUp()
	f.wait("pruning", func(Status) bool {
		names, err := filepath.Glob(filepath.Join(f.relayDir(), "*."+first))
		require.NoError(t, err)
		return len(names) == 0
	})
}
