package clouds

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// accessDenied is what RDS says to FLUSH TABLES WITH READ LOCK: the error for a wrong password (CLOUD-01).
func accessDenied(user string) Error {
	return Error{1045, "28000", "Access denied for user '" + user + "'@'%' (using password: YES)"}
}

// rdsObjects are Amazon RDS's additions to the schema mysql that concern a reader of the binlog. They stay: other tests on
// the same server may use them.
var rdsObjects = []string{
	"CREATE TABLE IF NOT EXISTS mysql.rds_configuration (name VARCHAR(100) NOT NULL PRIMARY KEY, value VARCHAR(100), description VARCHAR(300) NOT NULL)",
	"INSERT IGNORE INTO mysql.rds_configuration VALUES ('binlog retention hours', NULL, 'binlog retention hours specifies the duration in hours before binary logs are automatically deleted.')," +
		" ('source delay', '0', 'source delay specifies replication delay in seconds between current instance and its master.')",
	"CREATE TABLE IF NOT EXISTS mysql.rds_heartbeat2 (id INT NOT NULL PRIMARY KEY, value BIGINT)",
	"CREATE TABLE IF NOT EXISTS mysql.rds_history (action_timestamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, called_by_user VARCHAR(352) NOT NULL, action VARCHAR(20) NOT NULL)",
	"DROP PROCEDURE IF EXISTS mysql.rds_set_configuration",
	`CREATE PROCEDURE mysql.rds_set_configuration(IN what VARCHAR(100), IN hours INT)
	BEGIN
		IF hours IS NOT NULL AND (hours < 1 OR hours > 168) THEN
			SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'For binlog retention hours the value must be between 1 and 168 inclusive or be NULL';
		END IF;
		UPDATE mysql.rds_configuration SET value = hours WHERE name = what;
		INSERT INTO mysql.rds_history (called_by_user, action) VALUES (USER(), 'set configuration');
	END`,
	"DROP PROCEDURE IF EXISTS mysql.rds_show_configuration",
	"CREATE PROCEDURE mysql.rds_show_configuration() SELECT name, value, description FROM mysql.rds_configuration",
}

// rdsPrivileges are those of RDS's master user that concern a reader; it has neither SUPER nor any of its successors.
const rdsPrivileges = "SELECT, RELOAD, PROCESS, SHOW DATABASES, LOCK TABLES, EXECUTE, REPLICATION SLAVE, REPLICATION CLIENT"

// RDS makes a server look like Amazon RDS for MySQL to the account that it gives. RDS's tables and procedures are there,
// and its heartbeat is written, as a statement and as rows in turns, until the test ends.
func RDS(tb testing.TB, s *mysqltest.Server) mysqltest.Login {
	tb.Helper()
	install(tb, s, rdsObjects)
	beat(tb, s, "INSERT INTO mysql.rds_heartbeat2 (id, value) VALUES (1, UNIX_TIMESTAMP() * 1000) ON DUPLICATE KEY UPDATE value = VALUES(value)")
	l := Account(tb, s, rdsPrivileges)
	return NewProxy(tb, l, "", Variables(map[string]string{"basedir": "/rdsdbbin/mysql-" + versionOf(tb, s) + "/", "version_comment": "Source distribution"}),
		Refuse(globalLock, accessDenied(l.User))).Login
}

// CloudSQL makes a server look like Cloud SQL for MySQL to the account that it gives: its privileges come through a role,
// and its heartbeat is written.
func CloudSQL(tb testing.TB, s *mysqltest.Server) mysqltest.Login {
	tb.Helper()
	install(tb, s, []string{"CREATE TABLE IF NOT EXISTS mysql.heartbeat (id INT NOT NULL PRIMARY KEY, master_time TIMESTAMP(6) NULL)"})
	beat(tb, s, "REPLACE INTO mysql.heartbeat (id, master_time) VALUES (1, '2026-11-30 12:00:00.5')")
	l := bare(tb, s)
	role := l.User + "_superuser"
	s.Exec(tb, "", "CREATE ROLE "+role, "GRANT SELECT, RELOAD, PROCESS, SHOW DATABASES, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO "+role,
		"GRANT XA_RECOVER_ADMIN ON *.* TO "+role, "GRANT "+role+" TO '"+l.User+"'@'%'", "SET DEFAULT ROLE ALL TO '"+l.User+"'@'%'")
	tb.Cleanup(func() { drop(tb, s, "ROLE "+role) })
	version := versionOf(tb, s) + "-google"
	return NewProxy(tb, l, version, Variables(map[string]string{"version": version, "version_comment": "(Google)"}),
		Refuse(globalLock, Error{1227, "42000", "Access denied; you need (at least one of) the SUPER privilege(s) for this operation"})).Login
}

// versionOf asks the server.
func versionOf(tb testing.TB, s *mysqltest.Server) (version string) {
	tb.Helper()
	db, err := s.Open("")
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(tb.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		tb.Fatal(err)
	}
	return version
}

// Aurora gives the rules of an Aurora MySQL writer; of a reader with reader set.
func Aurora(reader bool) []Rule {
	set := map[string]string{"aurora_version": "3.10.0", "version": "8.0.42", "version_comment": "Source distribution", "basedir": "/rdsdbbin/oscar-8.0.mysql_aurora/"}
	if reader {
		set["innodb_read_only"], set["log_bin"] = "ON", "OFF"
	}
	return []Rule{Variables(set), Refuse(globalLock, accessDenied("admin")), Instead(`AURORA_VERSION\(\)`, "SELECT '3.10.0'")}
}

// Azure gives the rules of an Azure Database for MySQL flexible server, which keeps no binlogs by default.
func Azure() []Rule {
	return []Rule{Variables(map[string]string{"version": "8.0.42-azure", "binlog_expire_logs_seconds": "0"}), Refuse(globalLock, accessDenied("admin"))}
}

var installing sync.Mutex // servers are shared

func install(tb testing.TB, s *mysqltest.Server, statements []string) {
	tb.Helper()
	installing.Lock()
	defer installing.Unlock()
	s.Exec(tb, "", statements...)
}

// beatEvery is more often than the products do it, so that tests meet it.
const beatEvery = 500 * time.Millisecond

// beat runs a statement again and again until the test ends.
func beat(tb testing.TB, s *mysqltest.Server, statement string) {
	tb.Helper()
	db, err := s.Open("")
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for format := "STATEMENT"; ; {
			// The server may be down for a while: the test may have stopped it.
			_, _ = db.ExecContext(ctx, "SET SESSION binlog_format = '"+format+"'")
			_, _ = db.ExecContext(ctx, statement)
			if format = "ROW"; time.Now().UnixMilli()/beatEvery.Milliseconds()%2 == 0 {
				format = "STATEMENT"
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	tb.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = db.Close()
	})
}
