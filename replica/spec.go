// Package replica runs the materialized databases: for each one, one state machine that copies the source, follows its
// binlog, and commits rows and position together.
package replica

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemarkdb/tidemark/compat"
	"github.com/tidemarkdb/tidemark/relay"
	"github.com/tidemarkdb/tidemark/wire"
)

// Spec says what a database is a copy of.
type Spec struct {
	// Name is the database here; SourceDatabase the one on the source.
	Name string
	Host string
	Port int
	// Others are further servers of the same history, which are tried in turn when the source is lost.
	Others         []wire.Address `json:",omitempty"`
	SourceDatabase string
	User           string
	Password       string // in no message, log or SHOW
	Settings       Settings
}

// Source names the source for people: host:port/database, or host:port,host:port/database, or files/database of a database
// that is made of binlog files.
func (s Spec) Source() string {
	if s.replays() {
		return "files/" + s.SourceDatabase
	}
	var hosts []string
	for _, a := range s.addresses() {
		hosts = append(hosts, a.String())
	}
	return strings.Join(hosts, ",") + "/" + s.SourceDatabase
}

// Settings tune one database. The names in comments are those of SQL.
type Settings struct {
	// MaxRowsInBuffer and MaxBytesInBuffer close a batch after the transaction in hand when it has so many row events or
	// bytes, of all tables (max_rows_in_buffer, 65505; max_bytes_in_buffer, 1048576). A stream that lags makes larger batches.
	MaxRowsInBuffer  int64
	MaxBytesInBuffer int64
	// MaxRowsInBuffers and MaxBytesInBuffers are bounds of the same batch; the smaller of the two counts
	// (max_rows_in_buffers, 65505; max_bytes_in_buffers, 1048576).
	MaxRowsInBuffers  int64
	MaxBytesInBuffers int64
	// MaxFlushDataTime closes a batch when its first transaction has waited that long (max_flush_data_time, 200 ms).
	MaxFlushDataTime time.Duration
	// MaxWaitTimeWhenMySQLUnavailable is the longest pause between tries to reach a lost source, which is tried for ever
	// (max_wait_time_when_mysql_unavailable, in ms, 30000).
	MaxWaitTimeWhenMySQLUnavailable time.Duration
	// RelayMaxBytes bounds the source's log that is spooled here and not applied yet; beyond it nothing more is read from the
	// source until some of it is (relay_max_bytes, 16 GiB).
	RelayMaxBytes int64
	// BinlogDir is a directory of a source's binlog files, from its first one on, of which the database is made in place of a
	// server (binlog_dir, empty: there is a server). The address, the user and the password are not used then.
	BinlogDir string
	// AllowsQueryWhenMySQLLost tells whether a database whose source is lost answers queries (allows_query_when_mysql_lost, 1).
	AllowsQueryWhenMySQLLost bool
	// AutoResync lets tables that can't be followed any more, damaged ones included, be copied anew by themselves beside
	// the stream, with growing pauses between the tries, and a database whose source has purged what was not read yet go
	// on that way (auto_resync, 1).
	AutoResync bool
	// TablesList names the tables to copy, empty: all (materialized_mysql_tables_list, separated by commas).
	TablesList []string
	// IncludeTables and ExcludeTables are regular expressions over the whole name of a table; a table is copied when it is
	// on the list, matches the first where that is set, and does not match the second (include_tables, exclude_tables).
	IncludeTables string
	ExcludeTables string
	// SnapshotLock is how copies are cut (snapshot_lock, auto): auto takes the strongest lock plan that the source allows;
	// another that is not allowed there is a refusal.
	SnapshotLock compat.LockPlan
	// Gentle is how much a copy may ask of the source.
	Gentle Gentle
	// Connection is how the source is reached.
	Connection Connection
}

// DefaultSettings gives the settings of a database for which nothing was said.
func DefaultSettings() Settings {
	return Settings{
		MaxRowsInBuffer: 65505, MaxBytesInBuffer: 1 << 20, MaxRowsInBuffers: 65505, MaxBytesInBuffers: 1 << 20,
		MaxFlushDataTime: 200 * time.Millisecond, MaxWaitTimeWhenMySQLUnavailable: 30 * time.Second, RelayMaxBytes: relay.DefaultMaxBytes, AllowsQueryWhenMySQLLost: true,
		AutoResync: true, SnapshotLock: compat.LockAuto, Gentle: defaultGentle(), Connection: defaultConnection(),
	}
}

// setting reads and prints one of the settings.
type setting struct {
	set func(s *Settings, value string) error
	get func(s *Settings) string
}

var settings = map[string]setting{
	"max_rows_in_buffer":                   number(func(s *Settings) *int64 { return &s.MaxRowsInBuffer }),
	"max_bytes_in_buffer":                  number(func(s *Settings) *int64 { return &s.MaxBytesInBuffer }),
	"max_rows_in_buffers":                  number(func(s *Settings) *int64 { return &s.MaxRowsInBuffers }),
	"max_bytes_in_buffers":                 number(func(s *Settings) *int64 { return &s.MaxBytesInBuffers }),
	"max_flush_data_time":                  milliseconds(func(s *Settings) *time.Duration { return &s.MaxFlushDataTime }),
	"max_wait_time_when_mysql_unavailable": milliseconds(func(s *Settings) *time.Duration { return &s.MaxWaitTimeWhenMySQLUnavailable }),
	"allows_query_when_mysql_lost":         flag(func(s *Settings) *bool { return &s.AllowsQueryWhenMySQLLost }),
	"auto_resync":                          flag(func(s *Settings) *bool { return &s.AutoResync }),
	"relay_max_bytes":                      number(func(s *Settings) *int64 { return &s.RelayMaxBytes }),
	"binlog_dir":                           text(func(s *Settings) *string { return &s.BinlogDir }),
	"materialized_mysql_tables_list":       {setList, func(s *Settings) string { return strings.Join(s.TablesList, ",") }},
	"include_tables":                       expression(func(s *Settings) *string { return &s.IncludeTables }),
	"exclude_tables":                       expression(func(s *Settings) *string { return &s.ExcludeTables }),
	"ssl_mode":                             {setSSLMode, func(s *Settings) string { return s.Connection.SSLMode }},
	"ssl_ca":                               text(func(s *Settings) *string { return &s.Connection.SSLCA }),
	"ssl_cert":                             text(func(s *Settings) *string { return &s.Connection.SSLCert }),
	"ssl_key":                              text(func(s *Settings) *string { return &s.Connection.SSLKey }),
	"server_public_key_path":               text(func(s *Settings) *string { return &s.Connection.ServerPublicKeyPath }),
	"get_server_public_key":                flag(func(s *Settings) *bool { return &s.Connection.GetServerPublicKey }),
	"password_file":                        text(func(s *Settings) *string { return &s.Connection.PasswordFile }),
	"password_command":                     text(func(s *Settings) *string { return &s.Connection.PasswordCommand }),
	"socket":                               text(func(s *Settings) *string { return &s.Connection.Socket }),
	"connect_timeout":                      seconds(func(s *Settings) *time.Duration { return &s.Connection.ConnectTimeout }),
	"read_timeout":                         seconds(func(s *Settings) *time.Duration { return &s.Connection.ReadTimeout }),
	"write_timeout":                        seconds(func(s *Settings) *time.Duration { return &s.Connection.WriteTimeout }),
	"heartbeat_period":                     seconds(func(s *Settings) *time.Duration { return &s.Connection.HeartbeatPeriod }),
	"allow_read_only":                      flag(func(s *Settings) *bool { return &s.Connection.AllowReadOnly }),
	"snapshot_max_threads":                 number(func(s *Settings) *int64 { return &s.Gentle.MaxThreads }),
	"snapshot_max_rows_per_second":         bound(func(s *Settings) *int64 { return &s.Gentle.MaxRowsPerSecond }),
	"snapshot_max_threads_running":         bound(func(s *Settings) *int64 { return &s.Gentle.MaxThreadsRunning }),
	"snapshot_max_replica_lag":             bound(func(s *Settings) *int64 { return &s.Gentle.MaxReplicaLag }),
	"snapshot_max_history_length":          bound(func(s *Settings) *int64 { return &s.Gentle.MaxHistoryLength }),
	"snapshot_lock":                        {setLock, func(s *Settings) string { return string(s.SnapshotLock) }},
}

// Set changes one setting by its name in SQL.
func (s *Settings) Set(name, value string) error {
	name = strings.ToLower(name)
	if name == "skip_ddl_patterns" {
		return errors.New("setting skip_ddl_patterns is not accepted: an event whose effect is not known is never passed over " +
			"(guarantee 3). Leave tables out with exclude_tables, or let an unknown statement put its table into quarantine")
	}
	st, ok := settings[name]
	if !ok {
		return fmt.Errorf("unknown setting %s; there are %s", name, strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
	}
	if err := st.set(s, value); err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return nil
}

// Changed lists the settings that differ from the defaults as name = value, by name.
func (s *Settings) Changed() []string {
	defaults := DefaultSettings()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := settings[name].get(s)
		if value == settings[name].get(&defaults) {
			continue
		}
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			value = quote(value)
		}
		out = append(out, name+" = "+value)
	}
	return out
}

func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}

func number(field func(*Settings) *int64) setting {
	return setting{
		set: func(s *Settings, value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is not a number above 0", value)
			}
			*field(s) = n
			return nil
		},
		get: func(s *Settings) string { return strconv.FormatInt(*field(s), 10) },
	}
}

const maxMilliseconds = int64(1<<63-1) / int64(time.Millisecond)

func milliseconds(field func(*Settings) *time.Duration) setting {
	return setting{
		set: func(s *Settings, value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 || n > maxMilliseconds {
				return fmt.Errorf("%q is not a number of milliseconds above 0", value)
			}
			*field(s) = time.Duration(n) * time.Millisecond
			return nil
		},
		get: func(s *Settings) string { return strconv.FormatInt(field(s).Milliseconds(), 10) },
	}
}

func expression(field func(*Settings) *string) setting {
	return setting{
		set: func(s *Settings, value string) error {
			if _, err := regexp.Compile(value); err != nil {
				return err
			}
			*field(s) = value
			return nil
		},
		get: func(s *Settings) string { return *field(s) },
	}
}

func flag(field func(*Settings) *bool) setting {
	return setting{
		set: func(s *Settings, value string) error {
			switch strings.ToLower(value) {
			case "1", "true", "on":
				*field(s) = true
			case "0", "false", "off":
				*field(s) = false
			default:
				return fmt.Errorf("%q is neither 0 nor 1", value)
			}
			return nil
		},
		get: func(s *Settings) string {
			if *field(s) {
				return "1"
			}
			return "0"
		},
	}
}

func setLock(s *Settings, value string) (err error) {
	s.SnapshotLock, err = compat.ParseLockPlan(value)
	return err
}

func setList(s *Settings, value string) error {
	s.TablesList = nil
	for _, name := range strings.Split(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			s.TablesList = append(s.TablesList, name)
		}
	}
	return nil
}

// Validate reports all faults at once.
func (s *Settings) Validate() error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		again := *s
		if err := settings[name].set(&again, settings[name].get(s)); err != nil {
			faults = append(faults, fmt.Errorf("setting %s: %w", name, err))
		}
	}
	return errors.Join(append(faults, s.Connection.validate())...)
}

// Wanted tells whether a table of the source is copied. The settings must be valid.
func (s *Settings) Wanted(table string) bool {
	if len(s.TablesList) > 0 && !slices.Contains(s.TablesList, table) {
		return false
	}
	if s.IncludeTables != "" && !matches(s.IncludeTables, table) {
		return false
	}
	return s.ExcludeTables == "" || !matches(s.ExcludeTables, table)
}

func matches(expression, table string) bool {
	return regexp.MustCompile("^(?:" + expression + ")$").MatchString(table)
}
