// Package testkit helps tests. process.go runs a part of a test in its own process, so that the test can kill it. golden.go
// compares texts with files that tests keep, and writes them again with the flag -update.
//
// It is not for programs.
package testkit

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childEnv has the argument of a child process.
const childEnv = "PARLEY_TEST_CHILD"

// Main is the TestMain of a package: it runs the tests or, in a process of Start, child.
func Main(m *testing.M, child func(arg string) error) {
	arg, ok := os.LookupEnv(childEnv)
	if !ok {
		goleak.VerifyTestMain(m)
		return
	}
	if err := child(arg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Process is a child process.
type Process struct {
	cmd *exec.Cmd
	// Lines reads what the child prints.
	Lines *bufio.Scanner
	// In is the child's standard input.
	In io.Writer
}

// Start runs the child of Main in a new process. The child's standard input stays open until the process ends.
func Start(t testing.TB, arg string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+arg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &Process{cmd, bufio.NewScanner(out), in}
}

// Line returns the next line that the child prints.
func (p *Process) Line(t testing.TB) string {
	t.Helper()
	if !p.Lines.Scan() {
		t.Fatalf("the child ended: %v", p.Lines.Err())
	}
	return p.Lines.Text()
}

// Kill ends the process as kill -9 does. It may be called more than once, and at the same time.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Signal sends a signal to the process.
func (p *Process) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Wait waits until the killed process has ended.
func (p *Process) Wait() { _ = p.cmd.Wait() }

// StablePort listens at a port that most systems give to nobody by themselves. Once it is closed, connections to it are most likely refused, as
// they may not be with port 0. Another test may draw the same port, and a system may be set to give it out: use ListenAgain then.
func StablePort(t testing.TB) net.Listener {
	t.Helper()
	for tries := 0; ; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err == nil {
			return l
		}
		if tries > 1000 {
			t.Fatal(err)
		}
	}
}

// ListenAgain listens at an address that was closed before. It waits for some seconds while somebody else has it.
func ListenAgain(address string) (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", address); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return l, err
}

// Listen listens on a free port and prints its address as a URL, for a child that is a server.
func Listen() (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println("http://" + ln.Addr().String())
	}
	return ln, err
}
