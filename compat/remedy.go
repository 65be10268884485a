package compat

import (
	"fmt"
	"strings"

	"github.com/tidemarkdb/tidemark/wire"
)

// or puts other advice in front.
func (r remedy) or(do string) remedy {
	r.do = strings.TrimSuffix(do+"; "+r.do, "; ")
	return r
}

// The remedies of each vendor. Names in capitals are the reader's to fill in.

// persist sets a variable on a server of one's own. 5.7 has no SET PERSIST (from the manual: MySQL 8.0, "Persisted System
// Variables").
func persist(s *Source, name, value string) remedy {
	if s.Major < 8 {
		return remedy{do: "set it, and put " + name + "=" + strings.Trim(value, "'") + " into the server's configuration too",
			statements: []string{"SET GLOBAL " + name + " = " + value}}
	}
	return remedy{statements: []string{"SET PERSIST " + name + " = " + value}}
}

func logBin(*Source) remedy {
	return remedy{do: "start it with log_bin = binlog and a server_id (it is the default since 8.0; look for skip-log-bin)", manual: `MySQL, "The Binary Log"`}
}

func expireSeconds(s *Source) remedy {
	if s.Major < 8 {
		return persist(s, "expire_logs_days", "7")
	}
	return persist(s, "binlog_expire_logs_seconds", "604800")
}

func parameterGroup(_ *Source, name, value string) remedy {
	name, value = awsName(name), strings.Trim(value, "'")
	return remedy{do: fmt.Sprintf("set %s to %s in the instance's DB parameter group (one of your own: the default group can't be changed)", name, orEmpty(value)),
		statements: []string{fmt.Sprintf("aws rds modify-db-parameter-group --db-parameter-group-name GROUP --parameters ParameterName=%s,ParameterValue=%s,ApplyMethod=immediate", name, value)},
		manual:     `Amazon RDS, "Modifying parameters in a DB parameter group"`}
}

// awsName is the parameter's name for a variable. From the manual: Amazon RDS, "Using GTID-based replication".
func awsName(variable string) string {
	if variable == "gtid_mode" {
		return "gtid-mode"
	}
	return variable
}

func clusterParameterGroup(_ *Source, name, value string) remedy {
	name, value = awsName(name), strings.Trim(value, "'")
	return remedy{do: fmt.Sprintf("set %s to %s in the cluster's DB cluster parameter group (one of your own: the default group can't be changed), then reboot the writer", name, orEmpty(value)),
		statements: []string{fmt.Sprintf("aws rds modify-db-cluster-parameter-group --db-cluster-parameter-group-name GROUP --parameters ParameterName=%s,ParameterValue=%s,ApplyMethod=pending-reboot", name, value)},
		manual:     `Amazon Aurora, "Configuring Aurora MySQL binary logging"`}
}

func orEmpty(value string) string {
	if value == "" {
		return "the empty value"
	}
	return value
}

// rdsBackups: log_bin follows from the backups, on a read replica from its own (CLOUD-04).
func rdsBackups(s *Source) remedy {
	where := "this instance"
	if s.ReplicaOf || s.ReadOnly {
		where = "this read replica (it has a setting of its own)"
	}
	return remedy{do: "switch automated backups on (a retention above 0) for " + where + "; log_bin can't be set by itself, and shows ON some minutes before the first file is there",
		statements: []string{"aws rds modify-db-instance --db-instance-identifier INSTANCE --backup-retention-period 1 --apply-immediately"},
		manual:     `Amazon RDS, "Configuring RDS for MySQL binary logging for Single-AZ databases"`}
}

func auroraBinlog(s *Source) remedy {
	if s.Reader { // CLOUD-06
		return remedy{do: "use the cluster's writer endpoint (readers write no binlog), with binlog_format = ROW in the cluster's parameter group", manual: `Amazon Aurora, "Configuring Aurora MySQL binary logging"`}
	}
	return clusterParameterGroup(s, "binlog_format", "ROW")
}

func rdsRetention(*Source) remedy {
	return remedy{statements: []string{"CALL mysql.rds_set_configuration('binlog retention hours', 24)"}, manual: `Amazon RDS, "Setting and showing binary log configuration"`}
}

func databaseFlag(_ *Source, name, value string) remedy {
	value = strings.ToLower(strings.Trim(value, "'"))
	return remedy{do: fmt.Sprintf("set the instance's database flag %s to %s (Edit, Flags; the command replaces all flags, so name those that are set, too)", name, orEmpty(value)),
		statements: []string{fmt.Sprintf("gcloud sql instances patch INSTANCE --database-flags=%s=%s", name, value)},
		manual:     `Cloud SQL for MySQL, "Configure database flags"`}
}

func cloudSQLRecovery(*Source) remedy {
	return remedy{do: "switch point-in-time recovery (binary logging) on for this instance (Edit, Data Protection); on a read replica binary logging is switched on for the replica itself",
		statements: []string{"gcloud sql instances patch INSTANCE --enable-bin-log"}, manual: `Cloud SQL for MySQL, "Use point-in-time recovery (PITR)"`}
}

func cloudSQLRetention(s *Source) remedy {
	return databaseFlag(s, "binlog_expire_logs_seconds", "604800")
}

func azureParameter(_ *Source, name, value string) remedy {
	value = strings.Trim(value, "'")
	return remedy{do: fmt.Sprintf("set %s to %s among the server's parameters", name, orEmpty(value)),
		statements: []string{fmt.Sprintf("az mysql flexible-server parameter set --resource-group GROUP --server-name SERVER --name %s --value %q", name, value)},
		manual:     `Azure Database for MySQL, "Server parameters"`}
}

func azureBinlog(*Source) remedy {
	return remedy{do: "use the primary and not a read replica: it always writes a binlog", manual: `Azure Database for MySQL, "Server parameters"`}
}

func azureRetention(s *Source) remedy {
	return azureParameter(s, "binlog_expire_logs_seconds", "604800")
}

// both sets two variables.
func (s *Source) both(name1, value1, name2, value2 string) remedy {
	a, b := s.quirk().setting(s, name1, value1), s.quirk().setting(s, name2, value2)
	a.statements = append(a.statements, b.statements...)
	if a.do != "" {
		a.do += ", and " + b.do
	}
	return a
}

// switchGTIDs switches GTIDs on while the server runs. From the manual: MySQL 8.4, "Enabling GTID Transactions Online"; Azure
// Database for MySQL, "Server parameters"; Amazon RDS, "Using GTID-based replication".
func (s *Source) switchGTIDs() remedy {
	if !s.quirk().gtidSteps {
		return s.both("enforce_gtid_consistency", "ON", "gtid_mode", "ON")
	}
	r := s.both("enforce_gtid_consistency", "ON", "gtid_mode", "OFF_PERMISSIVE")
	for _, mode := range []string{"ON_PERMISSIVE", "ON"} {
		r.statements = append(r.statements, s.quirk().setting(s, "gtid_mode", mode).statements...)
	}
	r.manual = `MySQL, "Enabling GTID Transactions Online"`
	return r
}

// grant makes the statement that gives privileges to the account.
func (s *Source) grant(privileges []string, on string) string {
	return "GRANT " + strings.Join(privileges, ", ") + " ON " + on + " TO " + s.Grants.Account
}

func allTables(database string) string { return wire.Identifier(database) + ".*" }
