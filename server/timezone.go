package server

import (
	"sync"
	"time"
)

// zoneCache knows the time zones of the databases' sources, which are the default of sessions: TIMESTAMP values are
// shown as the source shows them.
type zoneCache struct {
	manager Manager

	mu      sync.Mutex
	read    time.Time
	zones   map[string]string // by database
	common  string            // the zone of all databases, where they agree
	current bool
}

// zonesLast is how long what was read holds: a source's time zone hardly ever changes, and every statement asks.
const zonesLast = time.Second

// of gives the time zone for a session with this default database; without one, the one on which all databases agree.
// It is systemZone where none is known.
func (z *zoneCache) of(database string) string {
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.current || time.Since(z.read) > zonesLast {
		z.refresh()
	}
	if zone, ok := z.zones[database]; ok {
		return zone
	}
	return z.common
}

// systemZone is the time zone of this server.
const systemZone = "SYSTEM"

func (z *zoneCache) refresh() {
	z.zones, z.common, z.read, z.current = map[string]string{}, systemZone, time.Now(), true
	agree := true
	for _, st := range z.manager.Status() {
		zone := st.TimeZone
		if _, err := loadLocation(zone); err != nil || zone == "" {
			continue
		}
		agree = agree && (len(z.zones) == 0 || z.common == zone)
		z.zones[st.Name], z.common = zone, zone
	}
	if !agree {
		z.common = systemZone
	}
}
