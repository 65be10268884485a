package server

import "github.com/tidemarkdb/tidemark/replica"

// systemZone is the time zone of this server.
const systemZone = "SYSTEM"

// sourceZone gives the time zone that a session starts with, since TIMESTAMP values are shown as the source shows them:
// the zone of its default database's source; without one, that on which all databases agree; else this server's.
func sourceZone(list []replica.Brief, database string) string {
	common := ""
	for _, db := range list {
		switch {
		case db.TimeZone == "":
		case db.Name == database:
			return db.TimeZone
		case common == "":
			common = db.TimeZone
		case common != db.TimeZone:
			common = systemZone
		}
	}
	if common == "" {
		return systemZone
	}
	return common
}
