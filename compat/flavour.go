package compat

import (
	"strconv"
	"strings"
)

// Flavour is the product that a server is.
type Flavour string

// The flavours that are told apart. Those that merely speak MySQL's protocol are refused.
const (
	MySQL    Flavour = "MySQL"
	Percona  Flavour = "Percona Server"
	RDS      Flavour = "Amazon RDS for MySQL"
	Aurora   Flavour = "Amazon Aurora MySQL"
	CloudSQL Flavour = "Cloud SQL for MySQL"
	Azure    Flavour = "Azure Database for MySQL"
	MariaDB  Flavour = "MariaDB"
	Vitess   Flavour = "Vitess"
	TiDB     Flavour = "TiDB"
	Other    Flavour = "another server with MySQL's protocol"
)

// lookAlikes are words in the version or its comment by which servers are known that are neither MySQL nor have its binlog.
var lookAlikes = []string{"oceanbase", "polardb-x", "tddl", "doris", "starrocks", "singlestore", "memsql", "clickhouse", "dolt",
	"matrixone", "databend", "readyset", "proxysql", "tidemark", "byconity"}

// identify reads version and flavour. Product names stand in the version or its comment, or in variables that only the
// product has.
func (s *Source) identify(vars map[string]string) {
	s.Version = vars["version"]
	s.Major, s.Minor, s.Patch = parseVersion(s.Version)
	text := strings.ToLower(s.Version + " " + vars["version_comment"])
	has := func(name string) bool { _, ok := vars[name]; return ok }
	switch {
	case strings.Contains(text, "mariadb"):
		s.Flavour = MariaDB
	case containsAny(text, "vitess", "planetscale"):
		s.Flavour = Vitess
	case has("tidb_version"), strings.Contains(text, "tidb"):
		s.Flavour = TiDB
	case containsAny(text, lookAlikes...):
		s.Flavour = Other
	case has("aurora_version"):
		s.Flavour = Aurora
	case strings.HasPrefix(vars["basedir"], "/rdsdbbin"):
		s.Flavour = RDS
	case strings.Contains(text, "google"):
		s.Flavour = CloudSQL
	case has("azure_server_name"), strings.Contains(text, "azure"):
		s.Flavour = Azure
	case strings.Contains(text, "percona"):
		s.Flavour = Percona
	default:
		s.Flavour = MySQL
	}
}

func containsAny(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func parseVersion(v string) (major, minor, patch int) {
	end := strings.IndexFunc(v, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end >= 0 {
		v = v[:end]
	}
	parts := append(strings.Split(v, "."), "", "", "")
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(parts[1])
	patch, _ = strconv.Atoi(parts[2])
	return major, minor, patch
}

// OfVersion is a server of which only the version is known, because it is not asked: it wrote binlog files.
func OfVersion(version string) *Source {
	s := &Source{Version: version}
	s.Major, s.Minor, s.Patch = parseVersion(version)
	s.NativeForeignKeys = !s.AtLeast(9, 6)
	return s
}

// VersionNumber is the version as one number: 80406 for 8.4.6.
func (s *Source) VersionNumber() int { return s.Major*10000 + s.Minor*100 + s.Patch }

// AtLeast compares the version.
func (s *Source) AtLeast(major, minor int) bool {
	return s.Major > major || s.Major == major && s.Minor >= minor
}

func (s *Source) isMySQL() bool { return quirks[s.Flavour].refused == "" }
