package server

import (
	"errors"
	"syscall"
)

// isTooManyFiles tells an error of accept that passes by itself.
func isTooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
