package server

import (
	"sync"
	"time"

	"github.com/tidemarkdb/tidemark/replica"
)

// statusCache keeps the status of the databases for what every statement asks. Collecting it walks over all tables.
type statusCache struct {
	manager Manager

	mu   sync.Mutex
	read time.Time
	list []replica.Status
}

// statusLasts is how long what was read holds.
const statusLasts = time.Second

func (c *statusCache) get() []replica.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() || time.Since(c.read) > statusLasts {
		c.list, c.read = c.manager.Status(), time.Now()
	}
	return c.list
}

// systemZone is the time zone of this server.
const systemZone = "SYSTEM"

// sourceZone gives the time zone that a session starts with, since TIMESTAMP values are shown as the source shows them:
// the zone of its default database's source; without one, that on which all databases agree; else this server's.
func sourceZone(list []replica.Status, database string) string {
	common := ""
	for _, st := range list {
		if _, err := loadLocation(st.TimeZone); err != nil || st.TimeZone == "" {
			continue
		}
		switch {
		case st.Name == database:
			return st.TimeZone
		case common == "":
			common = st.TimeZone
		case common != st.TimeZone:
			common = systemZone
		}
	}
	if common == "" {
		return systemZone
	}
	return common
}
