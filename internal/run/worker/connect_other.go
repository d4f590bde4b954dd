//go:build !unix

package worker

import (
	"errors"
	"os"
	"os/exec"
)

// connect starts a worker that connects to a port of this machine.
func connect(cmd *exec.Cmd) (Started, error) { return connectLoopback(cmd) }

// askWhere cannot ask a worker where it is.
func askWhere(*os.Process) error { return errors.ErrUnsupported }
