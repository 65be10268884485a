package sqlerr

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewHasMySQLsState(t *testing.T) {
	require.Equal(t, "42S02", New(NoSuchTable, "Table '%s' doesn't exist", "a.b").State)
	require.Equal(t, "HY000", New(UnknownVariable, "x").State)
}

func TestFrom(t *testing.T) {
	e := New(NoSuchTable, "no table: %w", io.EOF)
	require.ErrorIs(t, e, io.EOF)
	require.Same(t, e, From(e))

	wrapped := From(fmt.Errorf("while reading: %w", e))
	require.Equal(t, NoSuchTable, wrapped.Code)
	require.Equal(t, "while reading: no table: EOF", wrapped.Message)

	unknown := From(errors.New("boom"))
	require.Equal(t, Unknown, unknown.Code)
	require.Equal(t, "boom", unknown.Message)
}
