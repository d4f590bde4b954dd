package process

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
)

// Relay runs a program in a place without a network, and passes on its connections to an address of this machine to a socket: args are the socket, the address, and the
// program with its arguments. It returns the exit code of the program.
func Relay(args []string) int {
	if len(args) < 3 {
		return 126
	}
	ln, err := net.Listen("tcp", args[1]) //nolint:noctx // it ends with the process
	if err != nil {
		_, _ = os.Stderr.WriteString("the address of the gateway: " + err.Error() + "\n") //nolint:forbidigo // it stands where the program would
		return 126
	}
	stop := PassOn(ln, "unix", args[0])
	defer stop()
	cmd := exec.Command(args[2], args[3:]...)                          //nolint:gosec,noctx // it is what this process is for
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr //nolint:forbidigo // it stands between Parley and the program
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return ended.ExitCode()
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n") //nolint:forbidigo // it stands where the program would
		return 127
	}
	return 0
}

// PassOn passes on what arrives at ln to an address, until stop is called. Stop ends all connections.
func PassOn(ln net.Listener, network, address string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { connect(ctx, from, network, address) })
		}
	})
	return func() {
		cancel()
		_ = ln.Close()
		all.Wait()
	}
}

// connect connects from with an address, until both sides have ended or ctx has.
func connect(ctx context.Context, from net.Conn, network, address string) {
	defer context.AfterFunc(ctx, func() { _ = from.Close() })()
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = to.Close() })()
	defer to.Close()
	var both sync.WaitGroup
	both.Go(func() { send(to, from) })
	both.Go(func() { send(from, to) })
	both.Wait()
}

// halfCloser is a connection that can say that nothing more will be sent.
type halfCloser interface{ CloseWrite() error }

// send copies until the sender ends its side, and says so to the receiver.
func send(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(halfCloser); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}
