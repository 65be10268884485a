package compat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/wire"
)

// Source is what a server says of itself.
type Source struct {
	Addr    string
	Flavour Flavour
	// Version is what VERSION() says; Major, Minor and Patch are read from it.
	Version             string
	Major, Minor, Patch int
	UUID                gtid.UUID
	ServerID            uint32
	// GTIDMode is ON, ON_PERMISSIVE, OFF_PERMISSIVE or OFF.
	GTIDMode     string
	LogBin       bool
	BinlogFormat string
	// Retention is for how long binlog files are kept.
	Retention Retention
	// SyncBinlog and FlushAtCommit are sync_binlog and innodb_flush_log_at_trx_commit.
	SyncBinlog, FlushAtCommit int64
	// OrderCommits is binlog_order_commits; EnhancedBinlog is Aurora's aurora_enhanced_binlog.
	OrderCommits, EnhancedBinlog bool
	// ReadOnly is read_only. Reader is innodb_read_only, by which readers of an Aurora cluster are known.
	ReadOnly, Reader bool
	// ReplicaOf tells that the server is itself a replica; LogReplicaUpdates whether what it applies is in its own log.
	// ReplicaFilters are the filters with which it applies, as "Replicate_Do_DB = shop". PreservesOrder is false where
	// its appliers commit in another order than its source did.
	ReplicaOf         bool
	LogReplicaUpdates bool
	ReplicaFilters    []string
	PreservesOrder    bool
	// Cluster is the kind of cluster that the server is a member of: "Group Replication", "Galera", or "".
	Cluster string
	// StrictCluster tells a Galera member that refuses LOCK TABLES (pxc_strict_mode).
	StrictCluster bool
	// NativeForeignKeys tells that InnoDB runs cascades by itself, outside the binlog (all servers before 9.6).
	NativeForeignKeys   bool
	LowerCaseTableNames int
	// TimeZone and SystemTimeZone are the server's variables; UTCOffset is their effect at the time of the probe.
	TimeZone, SystemTimeZone string
	UTCOffset                time.Duration
	Charset, Collation       string
	Grants                   Grants
	// Executed and Purged are gtid_executed and gtid_purged. Position is the end of the binlog. DoDB and IgnoreDB are
	// the server's binlog filters.
	Executed, Purged gtid.Set
	Position         gtid.Position
	DoDB, IgnoreDB   []string
	// ServerIDs are those in use by replicas that are connected now. It is empty without REPLICATION SLAVE.
	ServerIDs []uint32
	// MayRecoverXA tells whether XA RECOVER may be asked.
	MayRecoverXA bool
	// TLS tells whether the server offers encryption, whether it insists on it, and whether our session has it.
	TLS struct{ Offered, Required, Used bool }
	// Locking and Dumping are what happened when the global lock and a dump of the binlog were tried; see Trial.
	Locking, Dumping Trial
	// Status is the statement that gives the position here (SHOW BINARY LOG STATUS, or MASTER before 8.2).
	Status string
}

// GTIDs tells whether every transaction of the server has a GTID, so that a set says where one is.
func (s *Source) GTIDs() bool { return strings.EqualFold(s.GTIDMode, "ON") }

// Probe asks a server everything that a plan depends on. What the account may not see stays empty; it is for NewPlan to
// say that a privilege is missing. An error is one of the connection, or an answer that makes no sense.
func Probe(ctx context.Context, c *wire.Conn) (*Source, error) {
	s := &Source{Addr: c.Addr()}
	vars, err := variables(ctx, c)
	if err != nil {
		return nil, err
	}
	s.identify(vars)
	if !s.isMySQL() {
		return s, nil
	}
	if err := s.takeVariables(vars); err != nil {
		return nil, err
	}
	asks := []func(context.Context, *wire.Conn) error{s.askOffset, s.askGrants, s.askStatus, s.askReplica, s.askReplicas, s.askXA, s.askTLS, s.askVendorRetention}
	for _, ask := range asks {
		if err := ask(ctx, c); err != nil {
			return nil, fmt.Errorf("looking at the source: %w", err)
		}
	}
	return s, nil
}

// Dial connects and probes.
func Dial(ctx context.Context, cfg wire.Config) (*wire.Conn, *Source, error) {
	c, err := wire.Dial(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	s, err := Probe(ctx, c)
	if err != nil {
		_ = c.Close() // the probe's error says more
		return nil, nil, err
	}
	return c, s, nil
}

var variableNames = []string{
	"version", "version_comment", "basedir", "aurora_version", "server_uuid", "server_id", "gtid_mode", "log_bin", "binlog_format",
	"read_only", "innodb_read_only",
	"binlog_expire_logs_seconds", "binlog_expire_logs_auto_purge", "expire_logs_days", "binlog_space_limit", "max_binlog_files",
	"sync_binlog", "innodb_flush_log_at_trx_commit", "binlog_order_commits", "aurora_enhanced_binlog",
	"replica_preserve_commit_order", "slave_preserve_commit_order", "replica_parallel_workers", "slave_parallel_workers",
	"group_replication_group_name", "wsrep_on", "pxc_strict_mode", "have_ssl", "ssl_ca", "ssl_cert", "require_secure_transport",
	"log_slave_updates", "log_replica_updates", "innodb_native_foreign_keys", "lower_case_table_names", "time_zone",
	"system_time_zone", "character_set_server", "collation_server", "gtid_executed", "gtid_purged", "tidb_version",
	"azure_server_name", "cloudsql_iam_authentication", "version_compile_os",
}

func variables(ctx context.Context, c *wire.Conn) (map[string]string, error) {
	quoted := make([]string, len(variableNames))
	for i, n := range variableNames {
		quoted[i] = wire.Literal(n)
	}
	r, err := c.Query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ("+strings.Join(quoted, ", ")+")")
	if err != nil {
		return nil, fmt.Errorf("reading the source's settings: %w", err)
	}
	vars := make(map[string]string, r.Rows())
	for i := range r.Rows() {
		vars[strings.ToLower(r.Text(i, 0))] = r.Text(i, 1)
	}
	return vars, nil
}

func on(v string) bool { return strings.EqualFold(v, "ON") || v == "1" }

func (s *Source) takeVariables(vars map[string]string) (err error) {
	if s.UUID, err = gtid.ParseUUID(vars["server_uuid"]); err != nil {
		return fmt.Errorf("MySQL at %s: server_uuid: %w", s.Addr, err)
	}
	if s.Executed, err = gtid.ParseSet(vars["gtid_executed"]); err != nil {
		return fmt.Errorf("MySQL at %s: gtid_executed: %w", s.Addr, err)
	}
	if s.Purged, err = gtid.ParseSet(vars["gtid_purged"]); err != nil {
		return fmt.Errorf("MySQL at %s: gtid_purged: %w", s.Addr, err)
	}
	id, err := strconv.ParseUint(vars["server_id"], 10, 32)
	if err != nil {
		return fmt.Errorf("MySQL at %s: server_id: %w", s.Addr, err)
	}
	s.ServerID = uint32(id)
	s.GTIDMode, s.LogBin, s.BinlogFormat = vars["gtid_mode"], on(vars["log_bin"]), vars["binlog_format"]
	s.Retention = retentionOf(vars)
	s.SyncBinlog, s.FlushAtCommit = number(vars["sync_binlog"]), number(vars["innodb_flush_log_at_trx_commit"])
	s.OrderCommits, s.EnhancedBinlog = on(vars["binlog_order_commits"]), on(vars["aurora_enhanced_binlog"])
	s.Reader = on(vars["innodb_read_only"])
	s.ReadOnly = on(vars["read_only"]) || s.Reader
	s.PreservesOrder = number(vars["replica_parallel_workers"])+number(vars["slave_parallel_workers"]) <= 1 ||
		on(vars["replica_preserve_commit_order"]) || on(vars["slave_preserve_commit_order"])
	s.takeCluster(vars)
	// have_ssl is gone since 8.4 or so (from the manual: "The have_openssl and have_ssl system variables are removed").
	s.TLS.Offered = vars["have_ssl"] == "YES" || vars["have_ssl"] == "" && vars["ssl_cert"] != ""
	s.TLS.Required = on(vars["require_secure_transport"])
	s.LogReplicaUpdates = on(vars["log_replica_updates"]) || on(vars["log_slave_updates"])
	// Servers before 9.6 have no such variable and know no other way.
	native, known := vars["innodb_native_foreign_keys"]
	s.NativeForeignKeys = !known || on(native)
	s.LowerCaseTableNames, _ = strconv.Atoi(vars["lower_case_table_names"])
	s.TimeZone, s.SystemTimeZone = vars["time_zone"], vars["system_time_zone"]
	s.Charset, s.Collation = vars["character_set_server"], vars["collation_server"]
	return nil
}

// takeCluster finds out whether other servers' transactions come in beside replication.
func (s *Source) takeCluster(vars map[string]string) {
	switch {
	case on(vars["wsrep_on"]):
		s.Cluster = "Galera"
		// From the manual: Percona XtraDB Cluster, "Strict mode": ENFORCING and MASTER refuse explicit table locking.
		s.StrictCluster = vars["pxc_strict_mode"] == "ENFORCING" || vars["pxc_strict_mode"] == "MASTER"
	case vars["group_replication_group_name"] != "":
		s.Cluster = "Group Replication"
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// askOffset reads the offset of the server's default time zone, in which DATETIME defaults such as CURRENT_TIMESTAMP
// stand. Our session runs in UTC, so the zone is named.
func (s *Source) askOffset(ctx context.Context, c *wire.Conn) error {
	const query = "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@global.time_zone))"
	r, err := c.Query(ctx, query)
	if err != nil {
		return err
	}
	if r.Rows() == 1 && r.Cell(0, 0) != nil {
		s.UTCOffset = time.Duration(r.Int(0, 0)) * time.Second
	}
	return nil
}

func (s *Source) askGrants(ctx context.Context, c *wire.Conn) error {
	r, err := c.Query(ctx, "SHOW GRANTS")
	if err != nil {
		return err
	}
	lines := make([]string, r.Rows())
	for i := range lines {
		lines[i] = r.Text(i, 0)
	}
	s.Grants = ParseGrants(lines)
	if r, err = c.Query(ctx, "SELECT CURRENT_USER()"); err != nil {
		return err
	}
	s.Grants.Account = quoteAccount(r.Text(0, 0))
	return nil
}

// unless gives an error of the server, nil where it is one of those expected.
func unless(err error, expected ...uint16) error {
	if slices.Contains(expected, wire.Code(err)) {
		return nil
	}
	return err
}

// askTLS finds out whether our own session is encrypted.
func (s *Source) askTLS(ctx context.Context, c *wire.Conn) error {
	r, err := c.Query(ctx, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
	if err == nil && r.Rows() == 1 {
		s.TLS.Used = r.Text(0, 1) != ""
	}
	return err
}

// statusStatements in the order in which they are tried: the spelling of 8.2 and later first (CLOUD-08).
var statusStatements = []string{"SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"}

// StatusStatement finds the statement that gives the position on a server, "" when the account may not ask for it.
// Versions are not compared: what works is taken.
func StatusStatement(ctx context.Context, c *wire.Conn) (string, error) {
	for _, statement := range statusStatements {
		_, err := c.Query(ctx, statement)
		switch {
		case err == nil:
			return statement, nil
		case denied(err):
			return "", nil
		case wire.Code(err) != wire.CodeParse:
			return "", err
		}
	}
	return "", nil
}

func (s *Source) askStatus(ctx context.Context, c *wire.Conn) (err error) {
	if s.Status, err = StatusStatement(ctx, c); err != nil || s.Status == "" {
		return err
	}
	r, err := c.Query(ctx, s.Status)
	if err != nil || r.Rows() != 1 {
		return err
	}
	s.Position = gtid.Position{File: r.Named(0, "File"), Offset: uint64(r.Int(0, r.Find("Position")))}
	s.DoDB, s.IgnoreDB = list(r.Named(0, "Binlog_Do_DB")), list(r.Named(0, "Binlog_Ignore_DB"))
	return nil
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// denied tells the errors that say "not allowed". At these statements 1045 is no matter of the password (CLOUD-01).
func denied(err error) bool {
	switch wire.Code(err) {
	case wire.CodeAccessDenied, wire.CodeNoPrivilege, wire.CodeXARecoverDenied:
		return true
	}
	return false
}

func (s *Source) askReplica(ctx context.Context, c *wire.Conn) error {
	r, err := firstThatParses(ctx, c, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
	if r == nil {
		return err
	}
	s.ReplicaOf = r.Rows() > 0
	for i := range r.Rows() {
		for _, name := range replicaFilters {
			if text := r.Named(i, name); text != "" {
				s.ReplicaFilters = append(s.ReplicaFilters, name+" = "+text)
			}
		}
	}
	return err
}

var replicaFilters = []string{"Replicate_Do_DB", "Replicate_Ignore_DB", "Replicate_Do_Table", "Replicate_Ignore_Table",
	"Replicate_Wild_Do_Table", "Replicate_Wild_Ignore_Table", "Replicate_Rewrite_DB"}

func (s *Source) askReplicas(ctx context.Context, c *wire.Conn) error {
	r, err := firstThatParses(ctx, c, "SHOW REPLICAS", "SHOW SLAVE HOSTS")
	if r == nil {
		return err
	}
	for i := range r.Rows() {
		s.ServerIDs = append(s.ServerIDs, uint32(r.Int(i, 0)))
	}
	return nil
}

// firstThatParses gives the result of the first statement that the server knows; nil when none may be asked.
func firstThatParses(ctx context.Context, c *wire.Conn, statements ...string) (*wire.Result, error) {
	for _, statement := range statements {
		r, err := c.Query(ctx, statement)
		switch {
		case wire.Code(err) == wire.CodeParse:
			continue
		case denied(err):
			return nil, nil
		}
		return r, err
	}
	return nil, nil
}

func (s *Source) askXA(ctx context.Context, c *wire.Conn) error {
	_, err := c.Query(ctx, "XA RECOVER")
	s.MayRecoverXA = err == nil
	if denied(err) {
		return nil
	}
	return err
}
