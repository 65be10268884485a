package compat

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemarkdb/tidemark/wire"
)

// Retention is for how long a source keeps its binlog files before it removes them by itself.
type Retention struct {
	// Setting is what decides it, as "binlog_expire_logs_seconds = 86400"; "" when it could not be read.
	Setting string
	// Keep is for how long files are kept at least; 0: they may go at any moment. It means nothing with Forever or
	// without Setting.
	Keep time.Duration
	// Forever tells that no file is removed by its age.
	Forever bool
	// Limit is a bound on space or number of files that also removes files, as "binlog_space_limit = 1073741824"; "".
	Limit string
}

// Known tells whether anything can be said.
func (r Retention) Known() bool { return r.Setting != "" }

const day = 24 * time.Hour

// retentionOf reads the server's own variables. From the manual: MySQL 8.0, "binlog_expire_logs_seconds" (it wins over
// expire_logs_days where both are set; 0 and 0: never), "binlog_expire_logs_auto_purge" (OFF: never); Percona Server,
// "binlog_space_limit" and, 5.7, "max_binlog_files".
func retentionOf(vars map[string]string) Retention {
	var r Retention
	seconds, days := number(vars["binlog_expire_logs_seconds"]), number(vars["expire_logs_days"])
	_, hasSeconds := vars["binlog_expire_logs_seconds"]
	purge, hasPurge := vars["binlog_expire_logs_auto_purge"]
	switch {
	case hasPurge && !on(purge):
		r.Setting, r.Forever = "binlog_expire_logs_auto_purge = OFF", true
	case seconds > 0:
		r.Setting, r.Keep = fmt.Sprintf("binlog_expire_logs_seconds = %d", seconds), time.Duration(seconds)*time.Second
	case days > 0:
		r.Setting, r.Keep = fmt.Sprintf("expire_logs_days = %d", days), time.Duration(days)*day
	case hasSeconds:
		r.Setting, r.Forever = "binlog_expire_logs_seconds = 0", true
	default:
		r.Setting, r.Forever = "expire_logs_days = 0", true
	}
	for _, name := range []string{"binlog_space_limit", "max_binlog_files"} {
		if number(vars[name]) > 0 {
			r.Limit = name + " = " + vars[name]
		}
	}
	return r
}

// askVendorRetention replaces what the variables say by what counts on this product. On RDS and Aurora that stands in a
// table, which comes first (CLOUD-03); NULL and no row mean that files are not kept.
func (s *Source) askVendorRetention(ctx context.Context, c *wire.Conn) error {
	q := s.quirk()
	if q.noRetention && s.Retention.Forever {
		s.Retention = Retention{Setting: s.Retention.Setting}
	}
	if !q.vendorRetention {
		return nil
	}
	r, err := c.Query(ctx, "SELECT value FROM mysql.rds_configuration WHERE name = 'binlog retention hours'")
	if err != nil {
		s.Retention = Retention{}
		return unless(err, wire.CodeNoSuchTable, codeTableDenied, codeDatabaseDenied)
	}
	s.Retention = Retention{Setting: "binlog retention hours = NULL"}
	if r.Rows() > 0 && r.Cell(0, 0) != nil {
		hours := number(r.Text(0, 0))
		s.Retention = Retention{Setting: fmt.Sprintf("binlog retention hours = %d", hours), Keep: time.Duration(hours) * time.Hour}
	}
	return nil
}
