//go:build !linux

package mysqltest

import "os/exec"

// StartTied starts a command. Only Linux can tie its life to ours; elsewhere the end of the test ends it.
func StartTied(cmd *exec.Cmd) error { return cmd.Start() }
