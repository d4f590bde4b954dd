//go:build unix

package cli

import "syscall"

// ownSession makes a process outlive the terminal that it was started from.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
