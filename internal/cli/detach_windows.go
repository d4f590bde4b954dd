package cli

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// ownSession makes a process outlive the console that it was started from. It gets no signals.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
