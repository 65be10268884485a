package compat

import (
	"strings"
	"testing"
	"time"
)

// good is a source with which nothing is wrong, by its variables.
func good() map[string]string {
	return map[string]string{
		"version": "8.4.7", "version_comment": "MySQL Community Server - GPL", "server_uuid": "3e11fa47-71ca-11e1-9e33-c80aa9429562", "server_id": "7", "gtid_mode": "ON", "log_bin": "ON",
		"binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_expire_logs_seconds": "2592000", "sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1",
		"log_replica_updates": "ON", "time_zone": "+00:00",
	}
}

// sourceWith is a good source, of an account that may do everything, with some variables set otherwise; "-" takes one away.
func sourceWith(t *testing.T, set map[string]string) *Source {
	t.Helper()
	vars := good()
	for name, value := range set {
		vars[name] = value
		if value == "-" {
			delete(vars, name)
		}
	}
	s := &Source{Addr: "db.example:3306", Status: statusStatements[0], MayRecoverXA: true}
	s.identify(vars)
	if err := s.takeVariables(vars); err != nil {
		t.Fatal(err)
	}
	if s.LogBin {
		s.Position.File, s.Position.Offset = "binlog.000004", 157
	}
	s.Grants = ParseGrants([]string{"GRANT ALL PRIVILEGES ON *.* TO `tm`@`%`", "GRANT XA_RECOVER_ADMIN ON *.* TO `tm`@`%`"})
	s.Grants.Account = "'tm'@'%'"
	return s
}

var (
	onRDS      = map[string]string{"basedir": "/rdsdbbin/mysql-8.4.7/"}
	onAurora   = map[string]string{"aurora_version": "3.10.0"}
	onCloudSQL = map[string]string{"version": "8.4.7-google"}
	onAzure    = map[string]string{"version": "8.0.42-azure"}
)

func with(maps ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// TestManual has one case for each thing that a manual says and a rule here rests on. What is said is told in our words.
func TestManual(t *testing.T) {
	type vars = map[string]string
	for _, tc := range []struct {
		page, says string
		set        map[string]string
		replica    bool
		code       string   // of the problem or the warning; "" when all is well
		wants      []string // parts of what is said of it
	}{
		{`MySQL 8.4, "The Binary Log"`, "it is on by default", nil, false, "", nil},
		{`MySQL 8.0, "Persisted System Variables"`, "SET PERSIST sets a variable and keeps it over restarts", vars{"binlog_format": "MIXED"}, false, "binlog_format", []string{"SET PERSIST binlog_format = ROW"}},
		{`MySQL 5.7, "SET Syntax for Variable Assignment"`, "there is no SET PERSIST", vars{"version": "5.7.44-log", "binlog_format": "MIXED"}, false, "binlog_format", []string{"put binlog_format=ROW into the server's configuration", "SET GLOBAL binlog_format = ROW"}},
		{`MySQL 5.7, "transaction_isolation"`, "known from 5.7.20 on", vars{"version": "5.7.19"}, false, "version", []string{"before 5.7.20"}},
		{`MySQL 8.4, "binlog_row_image"`, "MINIMAL leaves columns out of row images", vars{"binlog_row_image": "MINIMAL"}, false, "", nil},
		{`MySQL 8.4, "binlog_row_value_options"`, "PARTIAL_JSON logs differences", vars{"binlog_row_value_options": "PARTIAL_JSON"}, false, "", nil},
		{`MySQL 8.4, "binlog_format"`, "a session keeps the value with which it began", vars{"binlog_format": "STATEMENT"}, false, "binlog_format", []string{"connect anew"}},
		{`MySQL 8.0, "binlog_expire_logs_seconds"`, "files may be removed when they are older", vars{"binlog_expire_logs_seconds": "3600"}, false, "binlog_retention", []string{"1h0m0s only (binlog_expire_logs_seconds = 3600)", "SET PERSIST binlog_expire_logs_seconds = 604800"}},
		{`MySQL 8.0, "binlog_expire_logs_seconds"`, "0 there and in expire_logs_days removes nothing", vars{"binlog_expire_logs_seconds": "0", "expire_logs_days": "0"}, false, "", nil},
		{`MySQL 8.0, "binlog_expire_logs_auto_purge"`, "OFF removes nothing", vars{"binlog_expire_logs_seconds": "60", "binlog_expire_logs_auto_purge": "OFF"}, false, "", nil},
		{`MySQL 5.7, "expire_logs_days"`, "files older than these days are removed", vars{"version": "5.7.44", "binlog_expire_logs_seconds": "-", "expire_logs_days": "10"}, false, "", nil},
		{`MySQL 8.4, "log_replica_updates"`, "without it a replica does not log what it applies", vars{"log_replica_updates": "OFF"}, true, "log_replica_updates", []string{"log_replica_updates=ON"}},
		{`MySQL 8.0, "log_slave_updates"`, "the name before 8.0.26", vars{"log_replica_updates": "-", "log_slave_updates": "ON"}, true, "", nil},
		{`MySQL 8.4, "replica_preserve_commit_order"`, "OFF lets appliers commit in another order", vars{"replica_parallel_workers": "4", "replica_preserve_commit_order": "OFF"}, true, "replica_order", []string{"SET PERSIST replica_preserve_commit_order = ON"}},
		{`MySQL 8.4, "Group Replication"`, "members apply what others wrote", vars{"group_replication_group_name": "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "log_replica_updates": "OFF"}, false, "log_replica_updates", []string{"Group Replication"}},
		{`MySQL 8.4, "sync_binlog"`, "with another value than 1 a crash of the machine can lose transactions", vars{"sync_binlog": "0"}, false, "sync_binlog", []string{"SET PERSIST sync_binlog = 1; SET PERSIST innodb_flush_log_at_trx_commit = 1"}},
		{`MySQL 8.4, "gtid_mode"`, "in a permissive mode some transactions have no GTID", vars{"gtid_mode": "ON_PERMISSIVE"}, false, "gtid_mode", []string{"followed by file and position", "SET PERSIST enforce_gtid_consistency = ON; SET PERSIST gtid_mode = OFF_PERMISSIVE; SET PERSIST gtid_mode = ON_PERMISSIVE; SET PERSIST gtid_mode = ON"}},
		{`Percona Server, "binlog_space_limit"`, "files are removed when all together are larger", vars{"version_comment": "Percona Server (GPL)", "binlog_space_limit": "1073741824"}, false, "binlog_limit", []string{"binlog_space_limit = 1073741824"}},
		{`Percona Server 5.7, "max_binlog_files"`, "files are removed when there are more", vars{"version": "5.7.44-48", "version_comment": "Percona Server (GPL)", "max_binlog_files": "10"}, false, "binlog_limit", []string{"max_binlog_files = 10"}},
		{`Percona XtraDB Cluster, "log_replica_updates"`, "without it a member's log lacks what others wrote", vars{"wsrep_on": "ON", "log_replica_updates": "OFF"}, false, "log_replica_updates", []string{"Galera"}},

		{`Amazon RDS, "Configuring RDS for MySQL binary logging"`, "log_bin follows from automated backups", with(onRDS, vars{"log_bin": "OFF"}), false, "log_bin", []string{"automated backups", "aws rds modify-db-instance", "--backup-retention-period 1"}},
		{`Amazon RDS, "Working with MySQL read replicas"`, "a replica's log needs backups of the replica", with(onRDS, vars{"log_bin": "OFF", "read_only": "ON"}), false, "log_bin", []string{"this read replica"}},
		{`Amazon RDS, "Modifying parameters in a DB parameter group"`, "variables are parameters of a group", with(onRDS, vars{"binlog_format": "MIXED"}), false, "binlog_format", []string{"DB parameter group", "aws rds modify-db-parameter-group", "ParameterName=binlog_format,ParameterValue=ROW"}},
		{`Amazon Aurora, "Configuring Aurora MySQL binary logging"`, "binlog_format is a parameter of the cluster", with(onAurora, vars{"log_bin": "OFF"}), false, "log_bin", []string{"cluster parameter group", "aws rds modify-db-cluster-parameter-group", "ParameterName=binlog_format,ParameterValue=ROW,ApplyMethod=pending-reboot"}},
		{`Amazon Aurora, "Configuring Aurora MySQL binary logging"`, "replicas have no binlog", with(onAurora, vars{"log_bin": "OFF", "innodb_read_only": "ON"}), false, "log_bin", []string{"writer endpoint"}},
		{`Amazon Aurora, "Configuring Aurora MySQL binary logging"`, "other variables of the binlog are the cluster's, too", with(onAurora, vars{"binlog_format": "MIXED"}), false, "binlog_format", []string{"--db-cluster-parameter-group-name", "ParameterName=binlog_format"}},
		{`Amazon Aurora, "Configuring Aurora MySQL binary logging"`, "a reader that says log_bin = ON has none either", with(onAurora, vars{"innodb_read_only": "ON"}), false, "log_bin", []string{"is a reader", "writer endpoint"}},
		{`Amazon RDS, "Using GTID-based replication"`, "gtid-mode is a parameter", with(onRDS, vars{"gtid_mode": "OFF_PERMISSIVE"}), false, "gtid_mode", []string{"ParameterName=gtid-mode,ParameterValue=ON,"}},
		{`Cloud SQL for MySQL, "Use point-in-time recovery (PITR)"`, "the binlog is switched on by it", with(onCloudSQL, vars{"log_bin": "OFF"}), false, "log_bin", []string{"point-in-time recovery", "gcloud sql instances patch INSTANCE --enable-bin-log"}},
		{`Cloud SQL for MySQL, "Configure database flags"`, "variables are flags; a patch replaces them all", with(onCloudSQL, vars{"binlog_format": "MIXED"}), false, "binlog_format", []string{"replaces all flags", "--database-flags=binlog_format=row"}},
		{`Cloud SQL for MySQL, "Configure database flags"`, "binlog_expire_logs_seconds is one of them", with(onCloudSQL, vars{"binlog_expire_logs_seconds": "600"}), false, "binlog_retention", []string{"--database-flags=binlog_expire_logs_seconds=604800"}},
		{`Azure Database for MySQL, "Server parameters"`, "variables are parameters of the server", with(onAzure, vars{"binlog_format": "MIXED"}), false, "binlog_format", []string{`az mysql flexible-server parameter set`, `--name binlog_format --value "ROW"`}},
		{`Azure Database for MySQL, "Server parameters"`, "gtid_mode goes step by step", with(onAzure, vars{"gtid_mode": "OFF"}), false, "gtid_mode", []string{`--name gtid_mode --value "OFF_PERMISSIVE"; az`, `--name gtid_mode --value "ON"`}},
		{`Azure Database for MySQL, "Read replicas"`, "replicas write no binlog", with(onAzure, vars{"log_bin": "OFF"}), false, "log_bin", []string{"use the primary"}},
	} {
		t.Run(tc.page+": "+tc.says, func(t *testing.T) {
			s := sourceWith(t, tc.set)
			s.ReplicaOf = tc.replica
			plan, problems := NewPlan(s, &Catalog{Database: "shop"}, Wishes{Database: "shop"})
			all := append(problems, plan.Warnings...)
			if tc.code == "" {
				// Managed servers are warned of by name only where something is wrong.
				if len(all) > 0 {
					t.Error(codes(all), all)
				}
				return
			}
			wantAll(t, found(t, all, tc.code).String(), tc.wants...)
		})
	}
}

// From the manual: Percona XtraDB Cluster, "Strict mode": explicit table locks are refused in ENFORCING and MASTER.
func TestStrictCluster(t *testing.T) {
	for mode, lock := range map[string]LockPlan{"ENFORCING": LockNone, "MASTER": LockNone, "PERMISSIVE": LockTables} {
		s := sourceWith(t, map[string]string{"wsrep_on": "ON", "pxc_strict_mode": mode})
		s.Grants = ParseGrants([]string{"GRANT SELECT, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `tm`@`%`"})
		plan, problems := NewPlan(s, &Catalog{Database: "shop"}, Wishes{})
		if len(problems) > 0 || plan.Lock != lock || plan.MayLockTables != (lock == LockTables) {
			t.Errorf("%s: %+v %v", mode, plan, problems)
		}
	}
}

// From the source of MySQL 5.7 to 9.7 (see order.go): neither setting touches what a window without a lock rests on.
func TestCommitOrder(t *testing.T) {
	for _, set := range []map[string]string{{"sync_binlog": "0"}, {"binlog_order_commits": "OFF"}, onRDS, onCloudSQL, onAzure, onAurora, {"version_comment": "Percona Server"}} {
		if why := sourceWith(t, set).orderProblem(); why != "" {
			t.Errorf("%v: %s", set, why)
		}
	}
	if why := sourceWith(t, with(onAurora, map[string]string{"aurora_enhanced_binlog": "1"})).orderProblem(); !strings.Contains(why, "in parallel") {
		t.Error(why)
	}
}

// A table without a key needs an exact cut; it is said when no lock can give it one.
func TestTablesWithoutKey(t *testing.T) {
	s := sourceWith(t, nil)
	catalog := &Catalog{Database: "shop", Tables: keyless()}
	plan, _ := NewPlan(s, catalog, Wishes{Lock: LockNone})
	if len(plan.NeedExact) != 1 || plan.NeedExact[0] != "log" || len(plan.Warnings) != 0 {
		t.Errorf("%+v", plan)
	}
	s.Grants = ParseGrants([]string{"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO `tm`@`%`"})
	s.Grants.Account = "'tm'@'%'"
	plan, _ = NewPlan(s, catalog, Wishes{})
	wantAll(t, found(t, plan.Warnings, "no_key").String(), "table shop.log has no key", "GRANT LOCK TABLES ON `shop`.* TO 'tm'@'%'")
}

func TestZoneWarning(t *testing.T) {
	s := sourceWith(t, map[string]string{"time_zone": "SYSTEM", "system_time_zone": "CEST"})
	s.UTCOffset = 2 * time.Hour
	wantAll(t, found(t, s.warnings(LockGlobal), "time_zone").String(), "calls its time zone CEST", "+02:00", "SET PERSIST time_zone = 'Europe/Berlin'")
	if got := offset(-(3*time.Hour + 30*time.Minute)); got != "-03:30" {
		t.Error(got)
	}
}

func TestTLSWarning(t *testing.T) {
	s := sourceWith(t, map[string]string{"have_ssl": "YES"})
	found(t, s.warnings(LockGlobal), "tls")
	s.Addr = "127.0.0.1:3306"
	if w := s.warnings(LockGlobal); len(w) > 0 {
		t.Error(w)
	}
}
