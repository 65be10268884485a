package mysqltest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
)

// external is a server that somebody runs and named in the environment.
type external struct{ address Login }

func (*external) kind() Kind { return External }

func (e *external) probe(context.Context, *slog.Logger) error {
	text := os.Getenv(envServer)
	if text == "" {
		return fmt.Errorf("%s is not set: %w", envServer, errAbsent)
	}
	login, err := parseLogin(text)
	e.address = login
	return err
}

func (e *external) launch(_ context.Context, o Options) (instance, error) {
	if o.own() {
		return nil, fmt.Errorf("%s names a server, the test needs one of its own: %w", envServer, ErrNotOwn)
	}
	return foreign{e.address}, nil
}

// foreign is the instance of an external server: it is used and left as it is.
type foreign struct{ address Login }

func (f foreign) login() Login               { return f.address }
func (foreign) dataDir() string              { return "" }
func (foreign) failure() string              { return "" }
func (foreign) endCommand() string           { return "" }
func (foreign) start(context.Context) error  { return ErrNotOwn }
func (foreign) stop(context.Context) error   { return ErrNotOwn }
func (foreign) kill(context.Context) error   { return ErrNotOwn }
func (foreign) pause(context.Context) error  { return ErrNotOwn }
func (foreign) resume(context.Context) error { return ErrNotOwn }
func (foreign) remove(context.Context) error { return nil }
