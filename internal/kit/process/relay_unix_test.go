//go:build unix

package process_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/kit/process"
)

// TestRelay: a program reaches a server through a socket, at an address of its own, with its input, its outputs and its exit code.
func TestRelay(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("this system has no curl")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served ", r.URL.Path) }))
	defer server.Close()
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	stop := process.PassOn(ln, "tcp", strings.TrimPrefix(server.URL, "http://"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	run := func(args ...string) (string, int) {
		cmd := exec.Command(self(t)[0], append([]string{"relay", socket, address}, args...)...)
		cmd.Stdin = strings.NewReader("in")
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	script := fmt.Sprintf("cat; for i in 1 2 3; do curl -sS http://%s/x$i; done; exit 4", address)
	if out, code := run("sh", "-c", script); out != "inserved /x1served /x2served /x3" || code != 4 {
		t.Errorf("%q %d", out, code)
	}
	if out, code := run("no-such-program"); !strings.Contains(out, "no-such-program") || code != 127 {
		t.Errorf("%q %d", out, code)
	}
	stop()
	if out, code := run("curl", "-sS", "http://"+address); code == 0 {
		t.Errorf("after it has stopped: %q", out)
	}
	if code := process.Relay(os.Args[:1]); code != 126 {
		t.Error(code)
	}
}
