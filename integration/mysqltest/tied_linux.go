package mysqltest

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter is the one thread that starts servers. The kernel ties a child to the life of the thread that started it, not
// of the process, and Go ends threads as it likes; this one is locked and lives as long as the process.
var starter = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// StartTied starts a command that the kernel kills when this process dies, however it dies.
func StartTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}
