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

// Logs are the binlog files that a source has at a moment.
type Logs struct {
	Server gtid.UUID
	// Files are in the order in which they were written, the last one being written to.
	Files     []LogFile
	Purged    gtid.Set
	Retention Retention
}

// LogFile is one binlog file.
type LogFile struct {
	Name string
	Size uint64 // bytes
}

// ReadLogs asks for the binlog files and for how long they are kept.
func ReadLogs(ctx context.Context, c *wire.Conn) (*Logs, error) {
	vars, err := variables(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Source{Addr: c.Addr()}
	s.identify(vars)
	if err := s.takeVariables(vars); err != nil {
		return nil, err
	}
	if err := s.askVendorRetention(ctx, c); err != nil {
		return nil, fmt.Errorf("asking for how long binlogs are kept: %w", err)
	}
	l := &Logs{Server: s.UUID, Purged: s.Purged, Retention: s.Retention}
	r, err := c.Query(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return nil, fmt.Errorf("asking for the binlog files: %w", err)
	}
	for i := range r.Rows() {
		l.Files = append(l.Files, LogFile{Name: r.Text(i, 0), Size: uint64(r.Int(i, 1))})
	}
	return l, nil
}

// Held is what somebody has read of a source's binlog.
type Held struct {
	// Point is its end; Server the server whose file it names. A set of the point that is not known is empty.
	Point  gtid.Point
	Server gtid.UUID
	// GTIDs tells that it goes on by set and not by file.
	GTIDs bool
	// Time is when the source committed it, zero where that is not known; now, for who has read everything.
	Time time.Time
}

// Margin is how far a source is from removing what is needed next.
type Margin struct {
	// Left is for how long at least it is still there, if the settings stay and nobody removes files by hand. It means
	// nothing without Known.
	Left  time.Duration
	Known bool
	// Older is the number of files that will be removed earlier; -1 where the position can't be found in the list. Ahead is
	// what is still to be read, in bytes.
	Older int
	Ahead uint64
	// Gone tells that something that is needed was removed already.
	Gone bool
	// Code is what to warn of: "", "gone", "oldest", "tight" or "none"; Warning says it in words.
	Code, Warning string
}

// tightShare is the part of the retention from which on it is called tight.
const tightShare = 4

// Margin computes it. From the manual: MySQL, "binlog_expire_logs_seconds" and "PURGE BINARY LOGS": files are removed whole,
// oldest first, by the time of their last change, which is not before that of any transaction in them.
func (l *Logs) Margin(h Held, now time.Time) Margin {
	m := Margin{Older: -1}
	at := slices.IndexFunc(l.Files, func(f LogFile) bool { return f.Name == h.Point.Position.File })
	if h.Server == l.Server && at >= 0 {
		m.Older = at
		for _, f := range l.Files[at:] {
			m.Ahead += f.Size
		}
		m.Ahead -= min(m.Ahead, h.Point.Position.Offset)
	}
	switch {
	case h.GTIDs:
		m.Gone = !l.Purged.Subtract(h.Point.Set).IsZero()
	case h.Server == l.Server:
		m.Gone = at < 0
	}
	if keep := l.Retention; keep.Known() && !keep.Forever && !h.Time.IsZero() {
		m.Known, m.Left = true, max(0, keep.Keep-max(0, now.Sub(h.Time)))
	}
	m.warn(l)
	return m
}

func (m *Margin) warn(l *Logs) {
	keep := l.Retention
	switch {
	case m.Gone:
		m.Code, m.Warning = "gone", "the source has removed binlog that is still needed"
	case m.Known && keep.Keep == 0:
		m.Code, m.Warning = "none", "the source keeps no binlog that it does not need itself ("+keep.Setting+"): what is not read at once may be lost"
	case m.Known && m.Left < keep.Keep/tightShare:
		m.Code, m.Warning = "tight", fmt.Sprintf("the source keeps its binlog for %s (%s), and what is needed next is there for %s more; read faster, or let it keep more", keep.Keep, keep.Setting, m.Left.Round(time.Second))
	case m.Older == 0 && len(l.Files) > 1 && l.everRemoved():
		m.Code, m.Warning = "oldest", fmt.Sprintf("what is needed next stands in %s, the oldest binlog file that the source still has: it is the next to be removed", l.Files[0].Name)
	}
}

// everRemoved tells whether files were removed so far: the first one has number 1.
func (l *Logs) everRemoved() bool {
	name := l.Files[0].Name
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
	return err != nil || n > 1
}
