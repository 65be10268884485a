package compat

import (
	"os"
	"testing"

	"github.com/tidemarkdb/tidemark/integration/mysqltest"
	"github.com/tidemarkdb/tidemark/wire"
)

func TestMain(m *testing.M) { os.Exit(mysqltest.Run(m)) }

func config(l mysqltest.Login) wire.Config {
	return wire.Config{Host: l.Host, Port: l.Port, User: l.User, Password: l.Password}
}

func dial(t *testing.T, l mysqltest.Login) *wire.Conn {
	t.Helper()
	c, err := wire.Dial(t.Context(), config(l))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
