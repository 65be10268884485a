package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemarkdb/tidemark/wire"
)

// ExamineStandby looks at a server that shall be followed when the source is lost. What is wrong with it keeps nothing from
// being copied now, so that all of it are warnings, each with the server's address in front.
func ExamineStandby(ctx context.Context, cfg wire.Config, source *Source, w Wishes) ([]Problem, error) {
	c, s, err := Dial(ctx, cfg)
	var refused *wire.ConnectError
	if errors.As(err, &refused) {
		return []Problem{{Code: "standby", What: refused.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	out := s.standbyProblems(source, w.Database)
	for i := range out {
		out[i].Code, out[i].What = "standby", s.Addr+": "+out[i].What
	}
	return out, nil
}

func (s *Source) standbyProblems(source *Source, database string) []Problem {
	if problems := s.productProblems(); len(problems) > 0 {
		return problems
	}
	out := slices.Concat(s.binlogProblems(database), s.privilegeProblems(&Catalog{Database: database}))
	add := func(what, do string) { out = append(out, Problem{What: what, Do: do}) }
	switch {
	case s.UUID == source.UUID:
		add("it is the same server as the first one (server_uuid "+s.UUID.String()+")", "name another one, or none")
		return out
	case !s.GTIDs() || !source.GTIDs():
		add(fmt.Sprintf("nobody can go on there, since gtid_mode is %s there and %s at the first server", s.GTIDMode, source.GTIDMode), "switch GTIDs on, on both")
		return out
	case !source.Executed.IsZero() && source.Executed.Subtract(s.Executed).Equal(source.Executed):
		add("it has none of the first server's transactions: it has another history", "name a replica of the first server")
	}
	if !s.LogReplicaUpdates && !s.ReplicaOf {
		add("it would not log what it applies as a replica (log_replica_updates is OFF)", "start it with log_replica_updates=ON")
	}
	return out
}
