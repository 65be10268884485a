package replica

// Brief is what every statement asks of a database. Unlike [Status] it costs next to nothing.
type Brief struct {
	Name string
	// TimeZone is that of [Status].
	TimeZone string
	// Fault is [Status.Error]; empty: there is none.
	Fault string
	// AllowsQueryWhenMySQLLost is the setting.
	AllowsQueryWhenMySQLLost bool
	// Unreadable says how far the first copy is while nothing can be read; empty: all can.
	Unreadable string
}

// Brief gives the databases by name, as they are now.
func (m *Manager) Brief() []Brief {
	databases := m.all()
	out := make([]Brief, len(databases))
	for i, d := range databases {
		out[i] = d.brief()
	}
	return out
}

func (d *database) brief() Brief {
	d.mu.Lock()
	defer d.mu.Unlock()
	unreadable := ""
	if d.phase() != complete {
		unreadable = "it has not begun"
		if c := d.copyNow(); c != nil {
			unreadable = c.Text()
		}
	}
	return Brief{
		Unreadable: unreadable,
		Name:       d.cfg.Spec.Name, TimeZone: d.cfg.TimeZone, Fault: d.fault(),
		AllowsQueryWhenMySQLLost: d.cfg.Spec.Settings.AllowsQueryWhenMySQLLost,
	}
}
