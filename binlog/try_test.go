package binlog

import (
	"testing"

	"github.com/tidemarkdb/tidemark/gtid"
	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

func TestTry(t *testing.T) { // CLOUD-09
	s := mysqltest.Shared(t)
	cfg := config(t, s)
	cfg.ServerID = 0
	if err := Try(timeout(t), cfg); err != nil {
		t.Error(err)
	}
	byPosition := cfg
	byPosition.AutoPosition = false
	if err := Try(timeout(t), byPosition); err != nil {
		t.Error(err)
	}
	byPosition.Start.Position = gtid.Position{File: "nothing.000001", Offset: 4}
	if err := Try(timeout(t), byPosition); ClassOf(err) != PurgedLogs {
		t.Error(err)
	}
	s.Exec(t, "", "CREATE USER looker@'%' IDENTIFIED BY 'Secret-1'", "GRANT SELECT, REPLICATION CLIENT ON *.* TO looker@'%'")
	defer s.Exec(t, "", "DROP USER looker@'%'")
	cfg.Source.User, cfg.Source.Password = "looker", "Secret-1"
	if err := Try(timeout(t), cfg); ClassOf(err) != AuthFailed {
		t.Error(err)
	}
}
