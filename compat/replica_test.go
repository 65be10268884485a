package compat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
)

// A source that is a replica itself: without log_replica_updates it is of no use; filters and a lost order are told. PROTO-21
func TestReplicaAsSource(t *testing.T) {
	primary := mysqltest.Shared(t)
	for _, logs := range []string{"OFF", "ON"} {
		s := mysqltest.Start(t, mysqltest.Options{Durable: true, Args: []string{"--log-replica-updates=" + logs, "--replica-parallel-workers=4", "--replica-preserve-commit-order=OFF", "--skip-replica-start"}})
		db := s.FreshDatabase(t)
		s.Exec(t, "", fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '%s', SOURCE_PORT = %d, SOURCE_USER = '%s', SOURCE_AUTO_POSITION = 1", primary.Host, primary.Port, primary.User),
			"CHANGE REPLICATION FILTER REPLICATE_DO_DB = (shop), REPLICATE_WILD_IGNORE_TABLE = ('shop.tmp%')")
		r := examine(t, s.Login, Wishes{Database: db})
		if !r.Source.ReplicaOf || r.Source.LogReplicaUpdates != (logs == "ON") {
			t.Errorf("%+v", r.Source)
		}
		if got := slices.Contains(codes(r.Problems), "log_replica_updates"); got != (logs == "OFF") {
			t.Error(logs, r.Problems)
		}
		wantAll(t, found(t, r.Plan.Warnings, "replica_filter").What, "Replicate_Do_DB = shop", "Replicate_Wild_Ignore_Table = shop.tmp%")
		p := found(t, r.Plan.Warnings, "replica_order")
		if !strings.Contains(p.What, "which its source never had") {
			t.Error(p)
		}
		s.Exec(t, "", p.Statements...)
		if again := examine(t, s.Login, Wishes{Database: db}); slices.Contains(codes(again.Plan.Warnings), "replica_order") {
			t.Error(again.Plan.Warnings)
		}
	}
}
