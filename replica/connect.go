package replica

import "github.com/tidemarkdb/tidemark/wire"

// wire gives the way to the source.
func (s *Spec) wire() wire.Config {
	return wire.Config{Host: s.Host, Port: s.Port, User: s.User, Password: s.Password}
}
