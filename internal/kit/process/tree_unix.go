//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// tree is a program and what it starts, as far as they stay in its group.
type tree struct{ cmd *exec.Cmd }

func newTree(cmd *exec.Cmd) *tree {
	cmd.SysProcAttr = OwnSession()
	return &tree{cmd}
}

func (t *tree) start() error { return t.cmd.Start() }

// OwnSession makes a process outlive the terminal that it was started from.
func OwnSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// stop asks the program to stop, and waits for it for a moment.
func (t *tree) stop(exited <-chan struct{}) {
	_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGTERM)
	stopped(exited)
}

// end ends the group. The group keeps its number as long as it has members.
func (t *tree) end() { _ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL) }

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
