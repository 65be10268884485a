package mysqltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// The environment variables; see the package comment.
const (
	envServer = "TIDEMARK_TEST_MYSQL"
	envImage  = "TIDEMARK_TEST_MYSQL_IMAGE"
	envWay    = "TIDEMARK_TEST_MYSQL_WAY"
	envCache  = "TIDEMARK_TEST_CACHE"
)

// way is one way to have a server. probe and launch may take long the first time (images, packages).
type way interface {
	kind() Kind
	// probe makes sure that launch can work here, and fetches what it needs.
	probe(ctx context.Context, log *slog.Logger) error
	launch(ctx context.Context, o Options) (instance, error)
}

// errAbsent says that a way does not apply to this machine; that is no failure.
var errAbsent = errors.New("not here")

// choice is the way taken by this process. It is found once: all servers of a process are had the same way.
var choice struct {
	sync.Mutex
	way way
}

func chosenWay(ctx context.Context, log *slog.Logger) (way, error) {
	choice.Lock()
	defer choice.Unlock()
	if choice.way != nil {
		return choice.way, nil
	}
	only := Kind(os.Getenv(envWay))
	w, err := choose(ctx, log, only, []way{&external{}, &containers{}, &installed{}, &packages{}})
	choice.way = w
	return w, err
}

// choose returns the first way that works. With only set it returns that way or an error.
func choose(ctx context.Context, log *slog.Logger, only Kind, ways []way) (way, error) {
	var failed []error
	for _, w := range ways {
		if only != "" && w.kind() != only {
			continue
		}
		err := w.probe(ctx, log)
		if err == nil {
			return w, nil
		}
		// An address that somebody gave is meant; another server would be a surprise.
		if w.kind() == External && !errors.Is(err, errAbsent) {
			return nil, fmt.Errorf("%s: %w", envServer, err)
		}
		log.Info("mysqltest: no MySQL this way", "way", w.kind(), "why", err)
		failed = append(failed, fmt.Errorf("%s: %w", w.kind(), err))
	}
	if len(failed) == 0 {
		return nil, fmt.Errorf("%s=%s: want external, testcontainers, path or debian", envWay, only)
	}
	return nil, fmt.Errorf("no MySQL server can be had: %w", errors.Join(failed...))
}
