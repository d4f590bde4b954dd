//go:build unix

package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// connect starts a worker with one end of a socket pair.
func connect(cmd *exec.Cmd) (Started, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return Started{}, fmt.Errorf("a socket for a worker: %w", err)
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	ours, theirs := os.NewFile(uintptr(pair[0]), "worker"), os.NewFile(uintptr(pair[1]), "engine")
	conn, err := net.FileConn(ours) // it has its own descriptor
	err = errors.Join(err, ours.Close())
	if err != nil {
		return Started{}, errors.Join(err, theirs.Close())
	}
	cmd.ExtraFiles = []*os.File{theirs} // descriptor 3
	cmd.Env = append(cmd.Env, "PARLEY_WORKER=fd:3")
	err = cmd.Start()
	if err = errors.Join(err, theirs.Close()); err != nil {
		return Started{}, errors.Join(err, conn.Close())
	}
	return Started{Conn: conn, Cmd: cmd, wait: cmd.Wait}, nil
}

// askWhere asks a worker for the lines that it runs, which it writes into its connection.
func askWhere(worker *os.Process) error { return worker.Signal(unix.SIGUSR1) }
