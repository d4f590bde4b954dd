//go:build unix

package files

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSpecialFiles: a pipe without a writer is refused at once.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "f") //nolint:usetesting // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	pipe, socket := filepath.Join(dir, "p"), filepath.Join(dir, "s")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for path, want := range map[string]string{pipe: "is a pipe, not a regular file", socket: "is a socket, not a regular file", "/dev/null": "is a device, not a regular file"} {
		if _, err := Open(path); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), path+": "+want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
