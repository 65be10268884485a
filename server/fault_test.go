package server

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// faulty panics where the server asks it.
type faulty struct{ *fakeManager }

func (faulty) Start(context.Context, string) error { panic("a broken invariant") }

// RES-13: a fault in one statement ends its connection with an error, and the server goes on.
func TestFaultEndsOneConnection(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Manager = faulty{c.Manager.(*fakeManager)} })
	f.fill("shop", 2, "good")
	other := f.db("shop")
	require.NoError(t, other.Ping())
	_, err := f.db("").Exec("SYSTEM START MATERIALIZEDMYSQL shop")
	require.ErrorContains(t, err, "Internal error of Tidemark")
	require.NotContains(t, err.Error(), "broken invariant")
	var n int
	require.NoError(t, other.QueryRow("SELECT COUNT(*) FROM good").Scan(&n))
	require.Equal(t, 2, n)
}
