//go:build unix

package cli

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestBrowse checks that a browser which stays in the foreground holds up nothing, and ends with the pages.
func TestBrowse(t *testing.T) {
	t.Parallel()
	var file string
	end := browse(t.Context(), &State{}, `http://127.0.0.1:1/#key="x`, func(ctx context.Context, name string) *exec.Cmd {
		file = name
		return exec.CommandContext(ctx, "sleep", "1000")
	})
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), "url=http://127.0.0.1:1/#key=&#34;x") {
		t.Errorf("%s %v", b, err)
	}
	end()
	if _, err := os.Stat(file); err == nil {
		t.Error("the file with the key is left behind")
	}
}

// TestRepeat checks that what a process of --detach said cannot steer the terminal.
func TestRepeat(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := repeat(&out, strings.NewReader("a\x1b[2J\nb\n")); err != nil || out.String() != "a\\u001b[2J\nb\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}
