package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidemarkdb/tidemark/binlog"
	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

// pair is a fixture whose source is the first of two servers, the second a replica of it.
type pair struct {
	*fixture
	a, b *mysqltest.Server
}

func newPair(t *testing.T) *pair {
	a := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true})
	b := mysqltest.Start(t, mysqltest.Options{Own: true, Durable: true})
	if a.Kind() == mysqltest.Testcontainers {
		t.Skip("the servers do not see each other at the addresses that we see")
	}
	b.Exec(t, "", fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '%s', SOURCE_PORT = %d, SOURCE_USER = '%s', SOURCE_PASSWORD = '%s', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, "+
		"SOURCE_CONNECT_RETRY = 1", a.Host, a.Port, a.User, a.Password), "START REPLICA", "SET GLOBAL super_read_only = ON")
	f := newFixture(t, a, a.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO a VALUES (1, 'one'), (2, 'two')", "CREATE TABLE b (id INT PRIMARY KEY, v INT)")
	p := &pair{f, a, b}
	spec := f.spec()
	spec.Others = []wire.Address{{Host: b.Host, Port: b.Port}}
	require.NoError(t, spec.Settings.Set("max_wait_time_when_mysql_unavailable", "200"))
	require.NoError(t, f.manager.Create(t.Context(), spec, false))
	f.streaming()
	return p
}

// level waits until b has everything that a has.
func (p *pair) level() {
	p.t.Helper()
	var set string
	require.NoError(p.t, p.a.DB(p.t, "").QueryRow("SELECT @@gtid_executed").Scan(&set))
	p.has(p.b, set)
}

func (p *pair) has(s *mysqltest.Server, set string) {
	p.t.Helper()
	var timedOut int
	require.NoError(p.t, s.DB(p.t, "").QueryRow("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 60)", set).Scan(&timedOut))
	require.Zero(p.t, timedOut)
}

// promote makes b the source of everybody.
func (p *pair) promote() {
	p.t.Helper()
	p.b.Exec(p.t, "", "STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	p.source = p.b
}

// PROTO-08: writers run, the primary dies, its replica is promoted, and nothing is lost or done twice.
func TestFailover(t *testing.T) {
	p := newPair(t)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer cancel()
	var mu sync.Mutex
	target := p.a
	for w := range 4 {
		writers.Go(func() {
			for i := 100 + w; ctx.Err() == nil; i += 4 {
				mu.Lock()
				db, err := target.Open(p.db)
				mu.Unlock()
				if err == nil {
					_, _ = db.ExecContext(ctx, "INSERT INTO a VALUES (?, REPEAT('x', 100)) ON DUPLICATE KEY UPDATE v = CONCAT('again ', id)", i%1000+100)
					_ = db.Close()
				}
			}
		})
	}
	p.wait("some of it", func(st Status) bool { return st.RowsApplied > 200 })
	// In good order at first: b has everything that a confirmed, and so everything that we can have read.
	p.a.Exec(t, "", "SET GLOBAL super_read_only = ON")
	p.level()
	p.promote()
	require.NoError(t, p.a.Kill(t.Context()))
	mu.Lock()
	target = p.b
	mu.Unlock()
	applied := p.status().RowsApplied
	p.wait("the new source", func(st Status) bool { return st.RowsApplied > applied+200 && st.Error == nil })
	cancel()
	writers.Wait()
	p.caughtUpByGTID()
	p.equal("a", "b")
	require.Equal(t, 1, p.kinds("", "failover"))
	// And again after a restart, with the first address dead.
	p.restart()
	p.exec("INSERT INTO b VALUES (7, 7)")
	p.caughtUpByGTID()
	p.equal("a", "b")
	require.NoError(t, p.manager.Verify(t.Context(), "shop", func(r TableResult) { require.Equal(t, Equal, r.Outcome, r.Table) }))
}

// caughtUpByGTID is caughtUp where the files of several servers are read.
func (p *pair) caughtUpByGTID() {
	p.t.Helper()
	var text string
	require.NoError(p.t, p.source.DB(p.t, "").QueryRow("SELECT @@gtid_executed").Scan(&text))
	want, err := gtid.ParseSet(text)
	require.NoError(p.t, err)
	p.wait("everything", func(st Status) bool {
		set, err := gtid.ParseSet(st.GTIDSet)
		return err == nil && set.Contains(want)
	})
}

// PROTO-08: the new primary lacks transactions that we have: a stop that names them, and nothing of it is taken back.
func TestFailoverLosesTransactions(t *testing.T) {
	p := newPair(t)
	p.level()
	p.b.Exec(t, "", "STOP REPLICA")
	for i := range 5 {
		p.exec(fmt.Sprintf("INSERT INTO a VALUES (%d, 'of a')", 10+i))
	}
	p.caughtUp()
	var lost string
	require.NoError(t, p.a.DB(t, "").QueryRow("SELECT @@gtid_executed").Scan(&lost))
	require.NoError(t, p.b.DB(t, "").QueryRow("SELECT GTID_SUBTRACT(?, @@gtid_executed)", lost).Scan(&lost))
	require.NoError(t, p.a.Kill(t.Context()))
	p.promote()
	for i := range 5 {
		p.exec(fmt.Sprintf("INSERT INTO a VALUES (%d, 'of b')", 10+i))
	}
	says := p.failed()
	require.Contains(t, says, strings.ReplaceAll(lost, "\n", ""))
	require.Contains(t, says, p.b.Addr())
	require.Contains(t, says, "new copy is needed")
	require.Contains(t, p.rows("a"), "10|of a")
}

// A replica that was not promoted is no source, however near it is.
func TestReplicaIsNotTaken(t *testing.T) {
	p := newPair(t)
	p.level()
	require.NoError(t, p.a.Kill(t.Context()))
	st := p.wait("both refused", func(st Status) bool { return st.Error != nil && strings.Contains(*st.Error, "read-only") })
	require.Equal(t, StateStreaming, st.State)
	require.Contains(t, *st.Error, "none of the 2 servers")
	require.Contains(t, *st.Error, "allow_read_only = 1")
	p.promote()
	p.exec("INSERT INTO a VALUES (10, 'of b')")
	p.caughtUpByGTID()
	p.equal("a", "b")
	require.Nil(t, p.status().Error)
}

// CLOUD-20: a server of the same identity with another history, restored from a copy of its files.
func TestRestoredCopy(t *testing.T) {
	f := own(t, "--log-error-verbosity=3")
	if f.source.DataDir() == "" {
		t.Skip("the server's files are not here")
	}
	require.NoError(t, f.source.Stop(t.Context()))
	saved := t.TempDir()
	copyFiles(t, f.source.DataDir(), saved)
	require.NoError(t, f.source.Restart(t.Context()))
	for i := range 20 {
		f.exec(fmt.Sprintf("INSERT INTO a VALUES (%d, 'first history')", 100+i))
	}
	f.caughtUp()
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	require.NoError(t, f.source.Stop(t.Context()))
	copyFiles(t, saved, f.source.DataDir())
	require.NoError(t, f.source.Restart(t.Context()))
	for i := range 30 {
		f.exec(fmt.Sprintf("INSERT INTO a VALUES (%d, 'second history')", 100+i))
	}
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	require.Contains(t, f.failed(), "rewound")
	require.Contains(t, f.rows("a"), "100|first history")
}

// PROTO-08: the same data under another server_uuid. By GTIDs it is the same history, by files it is not known to be.
func TestNewServerUUID(t *testing.T) {
	for name, args := range map[string][]string{"gtid": nil, "position": {"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}} {
		t.Run(name, func(t *testing.T) {
			f := own(t, args...)
			if f.source.DataDir() == "" {
				t.Skip("the server's files are not here")
			}
			f.exec("INSERT INTO a VALUES (3, 'three')")
			f.caughtUp()
			require.NoError(t, f.source.Stop(t.Context()))
			removeAuto(t, f.source)
			require.NoError(t, f.source.Restart(t.Context()))
			f.exec("INSERT INTO a VALUES (4, 'four')")
			if name == "gtid" {
				f.wait("the row", func(Status) bool { return strings.Contains(f.rows("a"), "4|four") })
				f.equal("a")
				return
			}
			require.Contains(t, f.failed(), "another server now")
			require.NotContains(t, f.rows("a"), "4|four")
		})
	}
}

// CLOUD-19: a primary that became read-only is waited out, and followed again when it is told to be.
func TestFormerPrimary(t *testing.T) {
	f := own(t)
	require.NoError(t, f.manager.Stop(t.Context(), "shop"))
	f.exec("INSERT INTO a VALUES (3, 'three')", "SET GLOBAL super_read_only = ON")
	require.NoError(t, f.manager.Start(t.Context(), "shop"))
	st := f.wait("the refusal", func(st Status) bool { return st.Error != nil })
	require.Contains(t, *st.Error, "former primary")
	require.Equal(t, StateStreaming, st.State)
	require.NoError(t, f.manager.ModifySettings(t.Context(), "shop", map[string]string{"allow_read_only": "1"}))
	f.wait("the source", func(st Status) bool { return st.Error == nil })
	f.caughtUp()
	f.equal("a")
}

// A source that is read-only from the start is meant to be a replica.
func TestReadOnlyFromTheStart(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", "SET GLOBAL super_read_only = ON")
	f.create()
	f.streaming()
	require.True(t, f.status().Settings.Connection.AllowReadOnly)
	f.restart()
	f.wait("the source", func(st Status) bool { return st.Error == nil && st.LagSeconds != nil && *st.LagSeconds == 0 })
	f.equal("a")
}

// Where the addresses are changed, the stream moves.
func TestHostsChanged(t *testing.T) {
	p := newPair(t)
	p.level()
	require.NoError(t, p.a.Kill(t.Context()))
	p.promote()
	require.NoError(t, p.manager.ModifySettings(t.Context(), "shop", map[string]string{"host": p.b.Addr()}))
	require.Contains(t, p.status().Source, p.b.Addr()+"/")
	require.NotContains(t, p.status().Source, p.a.Addr())
	p.exec("INSERT INTO a VALUES (10, 'of b')")
	p.caughtUpByGTID()
	p.equal("a")
}

func TestSeveralHostsNeedGTIDs(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Args: []string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY)")
	spec := f.spec()
	spec.Others = []wire.Address{{Host: "127.0.0.1", Port: 1}}
	require.ErrorContains(t, f.manager.Create(t.Context(), spec, false), "several addresses need GTIDs")
}

// What several servers say is joined: another history counts, and waits a while for servers that do not answer.
func TestVerdictOfSeveral(t *testing.T) {
	lost, denied := error(&wire.ConnectError{Err: errors.New("gone")}), error(&wire.ConnectError{Denied: true, Err: errors.New("denied")})
	rewound, role := error(&binlog.Error{Class: binlog.Rewound, Err: errors.New("lost")}), error(&roleError{})
	for _, c := range []struct {
		errs  []error
		kind  string
		tries int
	}{
		{[]error{lost, rewound}, kindRewound, triesWhileAway}, {[]error{rewound, rewound}, kindRewound, 0}, {[]error{denied, lost}, "lost", forever},
		{[]error{role, lost}, "role", forever}, {[]error{denied, denied}, "denied", 0}, {[]error{role, rewound}, kindRewound, triesWhileAway},
	} {
		e := &noSourceError{}
		for _, err := range c.errs {
			e.tried = append(e.tried, attempt{"h", err})
		}
		if v := judge(fmt.Errorf("wrapped: %w", e)); v.kind != c.kind || v.tries != c.tries {
			t.Errorf("%v: %+v", c.errs, v)
		}
	}
}

// A server that lacks something is only known to have lost it where it is no replica that may get it yet.
func TestCheckHistory(t *testing.T) {
	set := func(text string) gtid.Set {
		s, err := gtid.ParseSet(text)
		require.NoError(t, err)
		return s
	}
	const uuid = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
	id, err := gtid.ParseUUID(uuid)
	require.NoError(t, err)
	last := gtid.Identity{Source: id, Committed: 1}
	other := &compat.Source{Addr: "b:3306", Executed: set(uuid + ":1-5")}
	require.NoError(t, checkHistory(other, set(uuid+":1-5"), last))
	err = checkHistory(other, set(uuid+":1-9"), last)
	require.Equal(t, binlog.Rewound, binlog.ClassOf(err))
	require.ErrorContains(t, err, uuid+":6-9")
	other.ReadOnly, other.ReplicaOf = true, true
	var behind *behindError
	require.ErrorAs(t, checkHistory(other, set(uuid+":1-9"), last), &behind)
	require.NoError(t, checkHistory(&compat.Source{UUID: id}, set(uuid+":1-9"), last)) // the same server: for binlog.Open to say
}

// copyFiles makes to a copy of from.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(to))
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// removeAuto takes the server's UUID away.
func removeAuto(t *testing.T, s *mysqltest.Server) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(s.DataDir(), "auto.cnf")))
}

// name is a host's name: a port that leads to one server or another, or into nothing.
type name struct {
	wire.Address
	mu     sync.Mutex
	target string
	mute   bool
}

func newName(t *testing.T, target string) *name {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	n := &name{Address: wire.Address{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}, target: target}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", n.leads(""))
			if err != nil {
				_ = client.Close()
				continue
			}
			go n.carry(server, client)
			go n.carry(client, server)
		}
	}()
	return n
}

// leads gives where the name leads, and changes it.
func (n *name) leads(to string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to != "" {
		n.target = to
	}
	return n.target
}

// swallow lets everything disappear without a sign, or come through again.
func (n *name) swallow(mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute = mute
}

func (n *name) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		size, err := from.Read(b)
		if err != nil {
			return
		}
		n.mu.Lock()
		mute := n.mute
		n.mu.Unlock()
		if mute {
			continue
		}
		if _, err := to.Write(b[:size]); err != nil {
			return
		}
	}
}

// CLOUD-19: the name leads to the promoted server, while the stream from the former primary stays open and silent.
func TestNameMoves(t *testing.T) {
	p := newPair(t)
	name := newName(t, p.a.Addr())
	require.NoError(t, p.manager.ModifySettings(t.Context(), "shop", map[string]string{"host": name.String()}))
	p.close()
	p.roleEvery = 50 * time.Millisecond
	p.open()
	p.exec("INSERT INTO a VALUES (10, 'of a')")
	p.caughtUp()
	p.level()
	p.a.Exec(t, "", "SET GLOBAL super_read_only = ON")
	p.promote()
	p.exec("INSERT INTO a VALUES (11, 'of b')")
	name.leads(p.b.Addr())
	p.caughtUpByGTID()
	p.equal("a")
}

// CLOUD-19: with several addresses, one that became read-only is left for the one that was promoted.
func TestPrimaryDemoted(t *testing.T) {
	p := newPair(t)
	p.close()
	p.roleEvery = 50 * time.Millisecond
	p.open()
	p.exec("INSERT INTO a VALUES (10, 'of a')")
	p.caughtUp()
	p.level()
	p.a.Exec(t, "", "SET GLOBAL super_read_only = ON")
	p.promote()
	p.exec("INSERT INTO a VALUES (11, 'of b')")
	p.caughtUpByGTID()
	p.equal("a")
	require.Equal(t, 1, p.kinds("", "failover"))
}

// PROTO-09, OPS-01: a connection that swallows everything is noticed after three heartbeats, and made anew.
func TestSwallowed(t *testing.T) {
	source := mysqltest.Start(t, mysqltest.Options{Own: true})
	f := newFixture(t, source, source.FreshDatabase(t))
	f.exec("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO a VALUES (1, 'one')")
	name := newName(t, source.Addr())
	spec := f.spec()
	spec.Host, spec.Port = name.Host, name.Port
	for setting, value := range map[string]string{"heartbeat_period": "1", "connect_timeout": "1"} {
		require.NoError(t, spec.Settings.Set(setting, value))
	}
	require.NoError(t, f.manager.Create(t.Context(), spec, false))
	f.streaming()
	f.exec("INSERT INTO a VALUES (2, 'two')")
	f.caughtUp()
	name.swallow(true)
	f.exec("INSERT INTO a VALUES (3, 'three')")
	f.wait("the silence to be noticed", func(st Status) bool { return st.Error != nil && strings.Contains(*st.Error, "silent for 3s") })
	f.wait("what new connections say", func(st Status) bool {
		return st.Error != nil && strings.Contains(*st.Error, "did not answer within 1s")
	})
	name.swallow(false)
	f.caughtUp()
	f.equal("a")
}
